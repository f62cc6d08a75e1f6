"""Stage 4: independent judges score how well the experiments support the report.

Invariant: a score is a whole number from 1 to 10; anything else is asked for again, then left out of the average and
counted. Judges share no conversation.
"""

from inspect_ai.tool import ToolParam

from claims.build.wild.fence import fenced, fill, message_parts
from claims.build.wild.forms import Errand, Fields, Form, fill_in, role_text, said
from claims.build.wild.investigate import Lab, show_batch
from claims.build.wild.records import Experiment, Investigated, Report, Scores

SHOWN = 4
"""Responses of each batch that a judge sees."""

_FIELDS: dict[str, ToolParam] = {
    "reasons": said("string", "What supports the explanation, what does not, and what was not tested."),
    "score": said("integer", "From 1 to 10, by the scale you were given."),
}


def _read(fields: Fields) -> int:
    fields.text("reasons", limit=8000)
    return fields.whole("score", 1, 10)


SCORE = Form("file_score", "Record your score. It counts only through this call.", _FIELDS, _read)


async def verify(lab: Lab, one: Investigated) -> Scores:
    """The scores of all judges."""
    user = _material(one)
    errands = [
        Errand("verify", one.prompt.prompt_id, "judge", role_text("judge"), user, attempt=number)
        for number in range(lab.regime.n_judges)
    ]
    given = await lab.clerk.gather(_score(lab, errand) for errand in errands)
    return Scores(tuple(given))


async def _score(lab: Lab, errand: Errand) -> int | None:
    return await fill_in(lab.clerk, errand, SCORE)


def is_verified(lab: Lab, one: Investigated) -> bool:
    """Whether a report was filed and the judges' average reaches the bar."""
    average = one.scores.average
    return one.outcome == "filed" and average is not None and average >= lab.regime.keep_score


def _material(one: Investigated) -> str:
    asked = [("question", one.screened.question), ("frozen classifier question", one.screened.classifier)]
    experiments = "\n\n".join(_experiment(experiment, one.filed) for experiment in one.experiments)
    return fill(
        "judge_user.md",
        prompt=fenced("original prompt", message_parts(one.prompt.messages)),
        asked=fenced("question", asked),
        baseline=f"{one.measured.shown}\n{show_batch(one.measured, 'responses to the original prompt', limit=SHOWN)}",
        experiments=experiments,
        report=report_text(one.filed),
    )


def _experiment(experiment: Experiment, report: Report) -> str:
    head = f"Experiment {experiment.number}: {experiment.batch.shown}."
    described = fenced("what the report says was changed", [("description", report.lines[experiment.number])])
    edited = fenced("edited prompt", message_parts(experiment.messages))
    shown = show_batch(experiment.batch, f"responses in experiment {experiment.number}", limit=SHOWN)
    return "\n".join([head, described, edited, shown])


def report_text(report: Report) -> str:
    """A report, fenced."""
    return fenced(
        "report",
        [
            ("observed behaviour", report.observed),
            ("core causes", _items(report.causes)),
            ("refuted hypotheses", _items(report.refuted) or "none"),
            ("final answer", report.answer),
        ],
    )


def _items(texts: tuple[str, ...]) -> str:
    return "\n".join(f"{number}. {one}" for number, one in enumerate(texts, start=1))
