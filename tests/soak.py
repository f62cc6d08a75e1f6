"""The soak: a whole evaluation against a fake provider that fails, and against `kill -9`; nothing is lost or doubled.

`python -m tests.soak` runs the paper's size (1,294 claims under four arms) and writes `results/soak.json`; the tests
run a small one. Three runs over one bank: undisturbed, with faults, and killed at random moments until it is done.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from claims.build.wild.money import Usage, read_prices
from harness.seeding import keyed_rng
from tests.claim_bank import write_bank
from tests.fakes import FakeServer, Faults, serving
from tests.planted import planted
from tests.watching import Watch, growth_of, watching

PREDICTOR = "anthropic/claude-opus-4-8"
ARMS = "transcript,transcript-2,sae,ceiling"
N_ARMS = 4
RATES = {"429": 0.05, "500": 0.02, "reset": 0.01, "hang": 0.01, "malformed": 0.01}
PAID_FAULTS = ("reset", "hang", "malformed")
TRIES = 6
"""Times that the command is given before the soak gives up."""
MOST_IN_FLIGHT = 4 * 25
"""Claims that a kill may find half asked: those in flight in four arms."""
_ROOT = Path(__file__).parent.parent
# What a real run waits for, a soak cannot: hangs end after seconds, repetitions come at once.
_CHILD = """
import os, dataclasses as d
import agents.predictors as p, agents.provider as r
from harness.cli import main
family = p.PREDICTORS["anthropic"]
settings = d.replace(family.settings, attempt_timeout_s=int(os.environ["SOAK_TIMEOUT_S"]))
p.PREDICTORS["anthropic"] = d.replace(family, settings=settings)
r.FIRST_WAIT_S = 0.05
main()
"""


@dataclass(frozen=True)
class Run:
    """What one run of the whole evaluation took and left."""

    seconds: float
    starts: int
    """Times the command was given."""
    peak_mib: float
    growth: float
    """Memory at the end over memory at a third of the run: 1 is flat."""
    outcomes: dict[str, int]
    requests: int
    """Requests that were paid for."""
    paid_again: int
    """Of them, those that an undisturbed run does not make."""
    lost: int
    """Replies that the run wrote down as paid for and lost on the way."""
    claims_asked_again: int
    said_dollars: float
    """What the run's ledger says it spent."""
    billed_dollars: float
    """What the provider's bill comes to."""
    faults: dict[str, int]


def evidence(number: int) -> float:
    """What the planted tool says of a claim."""
    return round((number * 7 % 11) / 11, 2)


class Soak:
    """One bank and one tool, and runs over them; the first run is the one that others are compared with."""

    def __init__(self, folder: Path, n_clusters: int) -> None:
        self.folder = folder
        self.bank = write_bank(folder / "bank", n_clusters=n_clusters)
        self.n_rows = 3 * n_clusters * N_ARMS
        self.calm: Counter[str] | None = None
        """Bodies of the requests of the first run."""

    def command(self, results: Path, url: str, predictor: str = PREDICTOR) -> list[str]:
        given = ["eval", "--target", "tiny-gemma", "--claims", str(self.bank), "--results", str(results)]
        given += ["--predictor", predictor, "--arms", ARMS, "--server", url, "--yes", "--no-report"]
        return [sys.executable, "-c", _CHILD, *given]

    def overhead_ms(self) -> float:
        """Milliseconds that a claim under one arm takes with a predictor that answers at once, start-up left out."""
        took = []
        with serving("reader") as fake, planted(self.bank, evidence) as (tool, _):
            command = self.command(self.folder / "overhead", tool.url, "scripted/reader")
            for _ in range(2):
                begun = time.monotonic()
                status, _ = self._start(command, fake, None)
                assert status == 0, self._said()
                took.append(time.monotonic() - begun)
        # The second time there is nothing left to ask: that is start-up, audit and tables.
        return round((took[0] - took[1]) / self.n_rows * 1000, 1)

    def run(self, name: str, faults: Faults | None = None, kills: Sequence[float] = ()) -> Run:
        """Run to the end; each of `kills` is a start that is killed after so many seconds of asking."""
        results = self.folder / name
        begun, watches = time.monotonic(), []
        with serving("reader", faults=faults or Faults()) as fake, planted(self.bank, evidence) as (tool, _):
            for wait in (*kills, *[None] * TRIES):
                status, watch = self._start(self.command(results, tool.url), fake, wait)
                watches.append(watch)
                took = time.monotonic() - begun
                sys.stderr.write(f"{name}: start {len(watches)} ended with status {status} after {took:.0f} s in all\n")
                if status == 0:
                    break
                assert status in (3, -9), f"a run of the soak ended with status {status}: {self._said()}"
        assert status == 0, f"the soak did not end: {self._said()}"
        return self._result(results, fake, time.monotonic() - begun, watches)

    def _said(self) -> str:
        return (self.folder / "log.txt").read_text(encoding="utf-8")[-2000:]

    def _start(self, command: list[str], fake: FakeServer, wait: float | None) -> tuple[int, Watch]:
        patience = {"SOAK_TIMEOUT_S": "5" if fake.faults.rates else "120"}
        env = {**os.environ, **fake.env(), **patience, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        before = fake.counts["accepted"]
        with (
            (self.folder / "log.txt").open("ab") as log,
            subprocess.Popen(command, stdout=log, stderr=log, env=env, cwd=_ROOT) as process,
        ):
            with watching(process.pid) as watch:
                while wait is not None and process.poll() is None and fake.counts["accepted"] == before:
                    time.sleep(0.02)
                try:
                    process.wait(wait)
                except subprocess.TimeoutExpired:
                    process.kill()
            return process.wait(), watch

    def _result(self, results: Path, fake: FakeServer, seconds: float, watches: Sequence[Watch]) -> Run:
        records = fake.bill.records
        asked = Counter(record.body_sha256 for record in records)
        self.calm = asked if self.calm is None else self.calm
        again = asked - self.calm
        claims = {record.first_user_sha256 for record in records if record.body_sha256 in again}
        (ledger,) = results.glob("*/spend.jsonl")
        payments = [json.loads(line) for line in _lines(ledger)]
        return Run(
            seconds=round(seconds, 1),
            starts=len(watches),
            peak_mib=round(max(mib for watch in watches for mib in watch.seen), 1),
            growth=round(growth_of(watches[-1].seen), 3),
            outcomes=dict(Counter(str(row["outcome"]) for row in rows_of(results))),
            requests=asked.total(),
            paid_again=again.total(),
            claims_asked_again=len(claims),
            lost=sum(payment["lost"] for payment in payments),
            said_dollars=round(sum(payment["dollars"] for payment in payments), 4),
            billed_dollars=round(billed_dollars(fake), 4),
            faults={name: n for name, n in sorted(fake.counts.items()) if name.startswith("fault")},
        )


def billed_dollars(fake: FakeServer) -> float:
    """What the fake's bill comes to at the house's prices."""
    prices = read_prices()
    return sum(
        prices.cost(
            name, Usage(1, used.uncached, used.cache_read, used.cache_write, used.written, used.reasoning), batch=False
        )
        for name, used in fake.bill.totals().items()
    )


def _lines(path: Path) -> Iterable[str]:
    return path.read_text(encoding="utf-8").rstrip("\n").split("\n")


def rows_of(results: Path) -> list[dict[str, object]]:
    """The outcomes of the one run under a results folder."""
    (path,) = results.glob("*/outcomes.jsonl")
    return [json.loads(line) for line in _lines(path)]


def answers(results: Path) -> list[tuple[object, ...]]:
    """What must not depend on how a run went; tokens may, for a provider's cache remembers an earlier start."""
    names = ("arm", "epoch", "claim_id", "outcome", "p_true", "how", "calls_used")
    return sorted((tuple(row[name] for name in names) for row in rows_of(results)), key=repr)


def kill_times(n: int, longest_s: float, seed: int) -> list[float]:
    """Seconds of asking after which each start is killed."""
    return [float(wait) for wait in keyed_rng("soak", seed).uniform(0.0, longest_s, size=n)]


def soak(
    folder: Path, *, n_clusters: int, rates: dict[str, float], kills: Sequence[float], overhead: bool = False
) -> dict[str, object]:
    """All three runs and what they showed; with `overhead` what the loop itself takes, too."""
    bench = Soak(folder, n_clusters)
    runs = {
        "undisturbed": bench.run("undisturbed"),
        "faults": bench.run("faults", Faults(rates=rates, seed=1)),
        "killed": bench.run("killed", kills=kills),
    }
    check(bench, runs)
    return {
        "predictor": PREDICTOR,
        "arms": ARMS.split(","),
        "n_claims": bench.n_rows // N_ARMS,
        "n_rows": bench.n_rows,
        "rates": rates,
        "kills": len(kills),
        "overhead_ms": bench.overhead_ms() if overhead else None,
        "runs": {name: asdict(run) for name, run in runs.items()},
    }


def check(bench: Soak, runs: dict[str, Run]) -> None:
    """Demand that nothing was lost, nothing doubled, and that faults and kills changed no answer."""
    expected = answers(bench.folder / "undisturbed")
    assert len(expected) == bench.n_rows
    for name, run in runs.items():
        assert sum(run.outcomes.values()) == bench.n_rows, f"{name}: rows are missing or doubled"
        assert answers(bench.folder / name) == expected, f"{name}: other answers than undisturbed"
    assert runs["faults"].paid_again <= runs["faults"].lost, "faults: more was paid again than was lost on the way"
    n_kills = runs["killed"].starts - 1
    assert runs["killed"].claims_asked_again <= n_kills * MOST_IN_FLIGHT, "killed: claims were paid twice"


def summary(found: dict[str, object], runs: dict[str, Run]) -> str:
    """The soak as a table."""
    names = [field.name for field in fields(Run)]
    lines = [f"{found['n_claims']:,} claims under {N_ARMS} arms, {found['kills']} kills", ""]
    lines += ["| | " + " | ".join(runs) + " |", "|---|" + "---:|" * len(runs)]
    for name in names:
        cells = (_cell(getattr(run, name)) for run in runs.values())
        lines.append(f"| {name.replace('_', ' ')} | {' | '.join(cells)} |")
    lines += ["", f"A predictor that answers at once takes {found['overhead_ms']} ms a claim and arm."]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{count} {name}" for name, count in value.items()) or "none"
    return f"{value:,}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="A whole evaluation against fake providers that fail, and kill -9.")
    parser.add_argument("--claims", type=int, default=1294, help="about so many")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--longest", type=float, default=8.0, help="most seconds of asking before a kill")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    parser.add_argument("--out", type=Path, default=Path("results/soak.json"))
    given = parser.parse_args()
    kills = kill_times(given.kills, given.longest, given.seed)
    with tempfile.TemporaryDirectory(prefix="uplift-soak-") as folder:
        found = soak(Path(folder), n_clusters=-(-given.claims // 3), rates=RATES, kills=kills, overhead=True)
    runs = {name: Run(**run) for name, run in dict(found["runs"]).items()}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{summary(found, runs)}\n\nIt is kept in {given.out}.\n")


if __name__ == "__main__":
    main()
