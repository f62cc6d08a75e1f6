"""The investigator's report: a form whose every rate is checked against what was measured.

Invariant: a report names every experiment exactly once, and no rate in it differs from the measured one by more than
a point.
"""

from collections.abc import Sequence
from fractions import Fraction

from claims.build.wild.forms import Fields, Form, FormError, listed, objects, said
from claims.build.wild.records import Batch, Experiment, Report

FILE_REPORT = "file_report"
TOLERANCE_POINTS = 1
"""Rates are written rounded."""

_FIELDS = {
    "observed_behaviour": said("string", "What the target does on the original prompt, as the experiments show it."),
    "core_causes": listed("string", "What drives the behaviour, one cause an item, each borne out by experiments."),
    "refuted_hypotheses": listed("string", "Plausible explanations that experiments speak against, one an item."),
    "final_answer": said("string", "The answer to the question: the mechanism, how far it reaches, what is left open."),
    "experiments": objects(
        {
            "experiment": said("integer", "Its number."),
            "description": said("string", "What was changed, in one line, without the outcome."),
            "rate_before": said("number", "Percent of yes on the original prompt."),
            "rate_after": said("number", "Percent of yes on the edited prompt."),
        },
        "Every experiment you ran, each once.",
    ),
}


def report_form(baseline: Batch, experiments: Sequence[Experiment]) -> Form[Report]:
    """The form of one investigation."""

    def read(fields: Fields) -> Report:
        if not experiments:
            raise FormError("No experiment was run yet, so nothing is shown. Run some first.")
        observed = fields.text("observed_behaviour", limit=8000)
        causes = fields.texts("core_causes")
        if not causes:
            raise FormError("core_causes: found an empty list, expected at least one cause.")
        refuted, final = fields.texts("refuted_hypotheses"), fields.text("final_answer", limit=8000)
        lines = _lines(fields, baseline, {one.number: one for one in experiments})
        return Report(observed, causes, refuted, final, lines)

    return Form(FILE_REPORT, "File the report that ends the investigation.", _FIELDS, read)


def _lines(fields: Fields, baseline: Batch, experiments: dict[int, Experiment]) -> dict[int, str]:
    lines: dict[int, str] = {}
    for row in fields.rows("experiments"):
        number = row.whole("experiment", 1, max(experiments))
        if number in lines:
            raise FormError(f"experiments: number {number} comes twice. Name each once.")
        _check_rate(f"experiment {number}, rate_before", row.share("rate_before"), baseline.rate)
        _check_rate(f"experiment {number}, rate_after", row.share("rate_after"), experiments[number].batch.rate)
        lines[number] = " ".join(row.text("description", limit=600).split())
    missing = sorted(set(experiments) - set(lines))
    if missing:
        raise FormError(f"experiments: {', '.join(map(str, missing))} of {len(experiments)} are not there. Name all.")
    return dict(sorted(lines.items()))


def _check_rate(what: str, percent: float, measured: Fraction | None) -> None:
    if measured is not None and abs(percent - float(100 * measured)) > TOLERANCE_POINTS:
        raise FormError(f"{what}: found {percent:g}, but {float(100 * measured):.1f} percent was measured.")
