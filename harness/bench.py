"""`python -m harness.bench`: the statistics against the naive way, and the whole analysis of the paper's size.

Invariant: both sides of a row compute the same statistic from the same simulated answers; where the naive side would
take minutes, fewer of its resamples are timed and scaled, and the row's name says so.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy import stats as scipy_stats

from harness.arm_result import ArmResult
from harness.arms import BASELINE, CEILING, REPEAT, sham_of
from harness.logs import Setting
from harness.outcomes import Outcome
from harness.paper_tables import checks_table, flips_table, shams_table, sweep_table, targets_table
from harness.seeding import keyed_rng
from harness.simulate import Design
from harness.stats import N_RESAMPLES, Flags, Floats, bootstrap
from harness.tabular import csv_text, json_text, latex, markdown
from harness.uplift import compare
from tools.bench_sampling import RESULTS, BenchRow, save

N_CLAIMS = 1294
PAPER = Design(n_clusters=433, size=3, auroc=0.81, uplift=0.0, between_arms=0.8, within_clusters=0.3, one_label=False)
"""About the size of the paper's main evaluation."""
BUDGETS = ((5, 32), (2, 32), (10, 32), (5, 16), (5, 64), (1, 32), (20, 32), (5, 8), (5, 128))
NAIVE = 200
"""Resamples of the naive side that are timed."""


def auroc_by_ranks(p_true: Floats, labels: Flags) -> float:
    """The textbook formula over mid-ranks."""
    n_true, n_false = int(labels.sum()), int((~labels).sum())
    ranks = scipy_stats.rankdata(p_true)
    return float((ranks[labels].sum() - n_true * (n_true + 1) / 2) / (n_true * n_false))


def paper_outcomes() -> tuple[Outcome, ...]:
    """Simulated answers of the paper's size: baseline, its repetition, a tool at nine budgets, its sham, a ceiling."""
    rng = keyed_rng("bench")
    settings = [(BASELINE, 0, 0), (REPEAT, 0, 0), (CEILING, 0, 0), (sham_of("sae"), 5, 32)]
    settings += [("sae", calls, positions) for calls, positions in BUDGETS]
    rows = []
    for arm, calls, positions in settings:
        p_true, _ = PAPER.draw(rng)
        setting = Setting("target", "predictor", arm, calls, positions)
        missing = rng.random(len(p_true)) < (0.01 if calls else 0)
        rows += [
            _row(setting, claim, bool(PAPER.labels[claim]), None if missing[claim] else float(p_true[claim]))
            for claim in range(N_CLAIMS)
        ]
    return tuple(rows)


def _row(setting: Setting, claim: int, label: bool, p_true: float | None) -> Outcome:
    cluster = f"cluster-{PAPER.clusters[claim]}"
    outcome = "no_answer" if p_true is None else "answered"
    return Outcome(setting, f"claim-{claim}", cluster, cluster, label, outcome, p_true, 0, None, "", 0, 0)


def analyse(outcomes: Sequence[Outcome]) -> tuple[ArmResult, ...]:
    """Everything that is made of outcomes: results, and tables in four forms."""
    results = compare(outcomes, seed="bench")
    tables = [targets_table(results), checks_table(results), flips_table(results)]
    tables += filter(None, (sweep_table(results, (5, 32)), shams_table(results)))
    for table in tables:
        for form in (markdown, csv_text, latex, json_text):
            form(table)
    return results


def rows() -> list[BenchRow]:
    """The comparisons."""
    arm, base = (p[:N_CLAIMS] for p in PAPER.draw(keyed_rng("bench pair")))
    labels, clusters = PAPER.labels[:N_CLAIMS], PAPER.clusters[:N_CLAIMS]
    members = [np.flatnonzero(clusters == cluster) for cluster in range(int(clusters.max()) + 1)]

    def ours() -> None:
        bootstrap([arm, base], labels, clusters, rng=keyed_rng("bench draws"))

    def difference(drawn: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
        rows = np.concatenate([members[cluster] for cluster in drawn])
        return auroc_by_ranks(arm[rows], labels[rows]) - auroc_by_ranks(base[rows], labels[rows])

    def loop() -> None:
        rng = keyed_rng("bench draws")
        for _ in range(NAIVE):
            difference(rng.integers(len(members), size=len(members)))

    def scipys() -> None:
        rng = keyed_rng("bench draws")
        places = (np.arange(len(members)),)
        scipy_stats.bootstrap(places, difference, n_resamples=NAIVE, method="percentile", vectorized=False, rng=rng)

    what = f"{N_RESAMPLES:,} paired resamples of {N_CLAIMS:,} claims in {len(members)} clusters"
    ours()
    mine = min(_seconds(ours) for _ in range(3))
    scale = N_RESAMPLES / NAIVE
    made = []
    for name, other in (("a loop over scipy.stats.rankdata", loop), ("scipy.stats.bootstrap", scipys)):
        theirs = scale * min(_seconds(other) for _ in range(2))
        made.append(_bench_row(f"statistics: {what}, against {name} (timed {NAIVE})", mine, theirs))
    outcomes = paper_outcomes()
    whole = min(_seconds(lambda: analyse(outcomes)) for _ in range(2))
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    name = f"statistics: the whole analysis, {N_CLAIMS:,} claims, 4 arms, {len(BUDGETS)} budgets, against 10 s"
    made.append(_bench_row(f"{name} (peak {megabytes:.0f} MB in all)", whole, 10.0))
    return made


def _bench_row(name: str, ours_s: float, other_s: float) -> BenchRow:
    return BenchRow(name, round(ours_s, 3), round(other_s, 3), round(other_s / ours_s, 2))


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparisons, print the rows and keep them in `results/bench.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    made = rows()
    save(options.out, made)
    for row in made:
        sys.stdout.write(f"{row.ours_s:8.2f} s {row.other_s:8.2f} s {row.ratio:6.2f}x  {row.name}\n")


if __name__ == "__main__":
    main()
