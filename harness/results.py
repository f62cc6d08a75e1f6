"""The files that a run ends with, made from its manifest and its logs alone.

Invariant: making them again gives the same bytes and calls no model.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agents.predictors import PAPER_BUDGET
from harness.arm_result import ArmResult
from harness.arms import REPEAT, is_sham
from harness.declared import Declared
from harness.files import write_text
from harness.manifest import Manifest, load_manifest
from harness.money.pricing import tariff_in
from harness.money.spend import spend_line, spend_table, spends_of
from harness.outcomes import Outcome, outcome_lines, read_outcomes
from harness.paper_tables import checks_table, flips_table, shams_table, subset_table, sweep_table, targets_table
from harness.splits import TUNE
from harness.subsets import hard_claims, only
from harness.table import RunFacts, table_markdown
from harness.tabular import Table, write_tables
from harness.uplift import compare
from harness.uplift_json import uplift_json

LOGS = "logs"
TABLE = "table.md"
TABLES = "tables"


def write_results(folder: Path) -> str:
    """Write everything that is made from the logs of the run in `folder`; return the table.

    Raises:
        UserError: It is no run, or its logs cannot be used.
        DiskFullError: There is no room.
    """
    manifest = load_manifest(folder)
    declared = Declared.of(manifest)
    tariff = tariff_in(manifest.prices)
    outcomes = read_outcomes(folder / LOGS, tariff)
    spends = spends_of(outcomes)
    n_missing = _n_missing(manifest, outcomes)
    scored = same_repetitions(outcomes) if n_missing else outcomes
    results = run_results(manifest, declared, scored)
    facts = run_facts(manifest, n_missing=n_missing, spent=spend_line(spends, tariff))
    table = table_markdown(results, facts)
    write_text(folder / "outcomes.jsonl", outcome_lines(outcomes))
    write_text(folder / "uplift.json", uplift_json(results, facts, spends))
    write_text(folder / TABLE, table)
    tables = _tables(manifest, declared, scored, results)
    write_tables(tables if tariff.silent else [*tables, spend_table(spends, tariff)], folder / TABLES)
    return table


def run_results(manifest: Manifest, declared: Declared, outcomes: Sequence[Outcome]) -> tuple[ArmResult, ...]:
    """The results of a run, or of a part of its claims."""
    seed = f"{manifest.hashes['claim_set']} {manifest.settings['seed']}"
    families = declared.families or None
    return compare(outcomes, seed=seed, margin=declared.margin, families=families)


def _tables(
    manifest: Manifest, declared: Declared, outcomes: Sequence[Outcome], results: Sequence[ArmResult]
) -> list[Table]:
    """The paper's tables of one run."""
    made = [targets_table(results), checks_table(results), flips_table(results)]
    made += filter(None, (sweep_table(results, declared.main), shams_table(results)))
    hard = hard_claims(outcomes, *declared.hard)
    if hard:
        part = tuple(r for r in run_results(manifest, declared, only(outcomes, hard)) if r.setting.arm != REPEAT)
        low, high = declared.hard
        title = f"Claims on which the baseline is unsure ({low:g} to {high:g}), chosen on {REPEAT}"
        made.append(subset_table("hard", title, part, (f"chosen on {REPEAT} alone, which is therefore not shown",)))
    if declared.filtered:
        part = run_results(manifest, declared, only(outcomes, set(declared.filtered)))
        made.append(subset_table("filtered", "Claims that pass the paper's filters", part, ()))
        made.append(subset_table("unfiltered", "All claims, filtered or not", results, ()))
    return made


def same_repetitions(outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """The outcomes of the repetitions that every arm has begun: what an interrupted run can be scored on."""
    begun: dict[tuple[str, int, int], set[int]] = {}
    for row in outcomes:
        setting = row.setting
        begun.setdefault((setting.arm, setting.calls, setting.positions), set()).add(setting.epoch)
    common = set[int].intersection(*begun.values())
    return tuple(row for row in outcomes if row.setting.epoch in common) if common else tuple(outcomes)


def _n_missing(manifest: Manifest, outcomes: Sequence[Outcome]) -> int:
    """Answers that the manifest announces and the logs have not got."""
    settings = manifest.analysis.get("settings")
    n_settings = len(settings) if isinstance(settings, list) else len(manifest.arms)
    return max(0, n_settings * int(manifest.claims["n_used"]) - len(outcomes))


def run_facts(manifest: Manifest, *, n_missing: int = 0, spent: str = "") -> RunFacts:
    """What a table says about its run."""
    settings, claims = manifest.settings, manifest.claims
    return RunFacts(
        run=manifest.run,
        target=str(settings["target"]),
        asked_target=str(settings["asked_target"]),
        predictor=str(settings["predictor"]),
        claims=f"{claims['n_used']} of {claims['n_all']} in {claims['folder']}{_filters(claims)}{_split(settings)}",
        fidelities=tuple((arm, str(about["fidelity"])) for arm, about in manifest.tools.items() if not is_sham(arm)),
        paper_setting=(settings["calls"], settings["positions"]) == (PAPER_BUDGET.calls, PAPER_BUDGET.positions),
        n_missing=n_missing,
        split=str(settings.get("split") or ""),
        spent=spent,
    )


def _filters(claims: Mapping[str, str | int]) -> str:
    """Runs from before there were filters name none."""
    filters = claims.get("filters", "none")
    return "" if filters == "none" else f" (filters: {filters})"


def _split(settings: Mapping[str, str | int | None]) -> str:
    """The half of the clusters, and what the prompts have seen of it outside a tuning."""
    split, tuned_on = settings.get("split"), settings.get("tuned_on")
    said = f" (split: {split}, seed {settings['split_seed']})" if split else ""
    if tuned_on and split != TUNE:
        said += f" (these prompts were compared with others on {tuned_on} of the clusters)"
    return said


def run_folders(root: Path) -> Iterable[Path]:
    """The runs under a results folder, by name."""
    return sorted(path.parent for path in root.glob("*/manifest.json"))
