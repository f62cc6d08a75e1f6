"""The files that a run ends with, made from its manifest and its logs alone.

Invariant: making them again gives the same bytes and calls no model.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from agents.predictors import PAPER_BUDGET
from harness.arms import is_sham
from harness.files import write_text
from harness.manifest import Manifest, load_manifest
from harness.money.pricing import tariff_in
from harness.outcomes import outcome_lines, read_outcomes
from harness.table import RunFacts, table_markdown, uplift_json
from harness.uplift import compare

LOGS = "logs"
TABLE = "table.md"


def write_results(folder: Path) -> str:
    """Write `outcomes.jsonl`, `uplift.json` and `table.md` of the run in `folder`; return the table.

    Raises:
        UserError: It is no run, or its logs cannot be used.
        DiskFullError: There is no room.
    """
    manifest = load_manifest(folder)
    outcomes = read_outcomes(folder / LOGS, tariff_in(manifest.prices))
    results = compare(outcomes, seed=f"{manifest.hashes['claim_set']} {manifest.settings['seed']}")
    facts = run_facts(manifest)
    table = table_markdown(results, facts)
    write_text(folder / "outcomes.jsonl", outcome_lines(outcomes))
    write_text(folder / "uplift.json", uplift_json(results, facts))
    write_text(folder / TABLE, table)
    return table


def run_facts(manifest: Manifest) -> RunFacts:
    """What a table says about its run."""
    settings, claims = manifest.settings, manifest.claims
    return RunFacts(
        run=manifest.run,
        target=str(settings["target"]),
        asked_target=str(settings["asked_target"]),
        predictor=str(settings["predictor"]),
        claims=f"{claims['n_used']} of {claims['n_all']} in {claims['folder']}{_filters(claims)}",
        fidelities=tuple((arm, str(about["fidelity"])) for arm, about in manifest.tools.items() if not is_sham(arm)),
        paper_setting=(settings["calls"], settings["positions"]) == (PAPER_BUDGET.calls, PAPER_BUDGET.positions),
    )


def _filters(claims: Mapping[str, str | int]) -> str:
    """Runs from before there were filters name none."""
    filters = claims.get("filters", "none")
    return "" if filters == "none" else f" (filters: {filters})"


def run_folders(root: Path) -> Iterable[Path]:
    """The runs under a results folder, by name."""
    return sorted(path.parent for path in root.glob("*/manifest.json"))
