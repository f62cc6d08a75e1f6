"""What an evaluation costs, from the command line: the estimate, the consent, the cap, the bill."""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from claims.build.wild.money import Usage, read_prices
from harness.cli import app
from harness.money.pricing import tariff_of
from tests.batches import batching
from tests.claim_bank import write_bank
from tests.fakes import FakeServer, serving
from tests.planted import planted

MODEL = "anthropic/claude-opus-4-8"
N_CLAIMS = 6


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bank(tmp_path_factory.mktemp("bank"), n_clusters=N_CLAIMS // 3)


@pytest.fixture(scope="module")
def tool(bank: Path) -> Iterator[str]:
    with planted(bank, lambda number: (number % 5) / 5) as (running, _):
        yield running.url


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    with serving("reader") as running:
        for name, value in running.env().items():
            monkeypatch.setenv(name, value)
        yield running


def uplift(command: str, bank: Path, *more: str, status: int = 0) -> str:
    given = [command, "--target", "tiny-gemma", "--claims", str(bank), "--no-report", *more]
    done = CliRunner().invoke(app, given)
    assert done.exit_code == status, done.output
    assert "Traceback" not in done.output
    return done.output


def rows_of(results: Path) -> list[dict[str, object]]:
    (path,) = results.glob("*/outcomes.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").rstrip("\n").split("\n")]


def billed(fake: FakeServer) -> float:
    prices = read_prices()
    return sum(
        prices.cost(
            name, Usage(1, used.uncached, used.cache_read, used.cache_write, used.written, used.reasoning), batch=False
        )
        for name, used in fake.bill.totals().items()
    )


def dollars_in(line: str) -> list[float]:
    return [float(word.strip("$ ").replace(",", "")) for word in line.split("|") if word.strip().startswith("$")]


def test_the_estimate_starts_nothing_and_the_bill_lies_within_it(
    bank: Path, tool: str, fake: FakeServer, tmp_path: Path
) -> None:
    options = ("--predictor", MODEL, "--results", str(tmp_path))
    said = uplift("cost", bank, *options)
    assert fake.counts["accepted"] == 0
    assert not list(tmp_path.iterdir())
    (total,) = [line for line in said.split("\n") if line.startswith("| total")]
    likely, low, high = dollars_in(total)
    told = uplift("eval", bank, *options, "--server", tool, "--yes")
    assert low < billed(fake) < high
    assert low < likely < high
    # The rows' own prices, and what the run says, are the provider's bill to the cent.
    assert sum(float(str(row["dollars"])) for row in rows_of(tmp_path)) == pytest.approx(billed(fake), rel=1e-6)
    assert f"Paid in all: ${billed(fake):.4f}" in told
    assert sum(row["cache_read_tokens"] for row in rows_of(tmp_path)) > 0


def test_a_batched_baseline_is_estimated_at_half_its_price(bank: Path, fake: FakeServer) -> None:
    plain, half = (
        dollars_in(
            next(
                line
                for line in uplift("cost", bank, "--predictor", MODEL, *more).split("\n")
                if line.startswith("| transcript")
            )
        )
        for more in ((), ("--batch-baseline",))
    )
    assert half == pytest.approx([dollars / 2 for dollars in plain], abs=0.01)


def test_much_money_needs_consent_where_nobody_can_be_asked(
    bank: Path, tool: str, fake: FakeServer, tmp_path: Path
) -> None:
    said = uplift("eval", bank, "--predictor", MODEL, "--results", str(tmp_path), "--server", tool, status=2)
    assert "nobody is here to agree: expected --yes, or --max-cost" in said
    assert fake.counts["accepted"] == 0
    assert not list(tmp_path.glob("*/manifest.json"))


@pytest.mark.parametrize(
    ("answer", "status", "said"), [("n\n", 2, "Not started, nothing was paid"), ("y\n", 0, "Paid in all")]
)
def test_a_person_is_asked_and_decides(
    bank: Path, fake: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, status: int, said: str
) -> None:
    given = ["eval", "--target", "tiny-gemma", "--claims", str(bank), "--predictor", MODEL, "--results", str(tmp_path)]
    given += ["--no-report"]
    monkeypatch.setattr("harness.money.session.ASK_ABOVE", 0.0)
    monkeypatch.setattr("harness.cli.sys", _Terminal(sys))
    done = CliRunner().invoke(app, [*given, "--arms", "transcript", "--limit", "3"], input=answer)
    assert done.exit_code == status, done.output
    assert said in done.output
    assert "| total |" in done.output
    assert (fake.counts["accepted"] > 0) == (status == 0)


def test_a_cost_is_estimated_without_a_key_and_nothing_is_asked_without_one(
    bank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert "| total |" in uplift("cost", bank, "--predictor", MODEL)
    found = uplift("eval", bank, "--predictor", MODEL, "--results", str(tmp_path), "--yes", status=2)
    assert "needs a key: ANTHROPIC_API_KEY" in found
    assert not list(tmp_path.iterdir())


class _Terminal:
    """The `sys` of a process whose standard input is a terminal."""

    def __init__(self, real: object) -> None:
        self._real = real
        self.stdin = self

    def isatty(self) -> bool:
        return True

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)


def test_who_bills_nobody_and_who_has_no_price_are_never_asked(bank: Path, fake: FakeServer, tmp_path: Path) -> None:
    limits = ("--arms", "transcript", "--limit", "3")
    said = uplift("eval", bank, "--predictor", "vllm/some-model", "--results", str(tmp_path / "a"), *limits)
    assert "price unknown: prices.json has no price for 'vllm/some-model'" in said
    assert "Nothing is asked, nothing limits the run." in said
    assert {row["dollars"] for row in rows_of(tmp_path / "a")} == {None}
    assert "price unknown" in uplift("cost", bank, "--predictor", "vllm/some-model")
    uplift("eval", bank, "--predictor", "scripted/steady", "--results", str(tmp_path / "b"), *limits)
    assert {row["dollars"] for row in rows_of(tmp_path / "b")} == {0.0}


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--max-cost", "1", "--predictor", "vllm/m"), "--max-cost cannot be kept, price unknown"),
        (("--max-cost", "0", "--predictor", MODEL), "--max-cost is 0; expected dollars above 0"),
        (("--batch-baseline", "--predictor", "scripted/steady"), "has no batch API here"),
        (("--prices", "/nowhere.json", "--predictor", MODEL), "/nowhere.json does not exist"),
    ],
)
def test_what_cannot_be_kept_is_refused(
    bank: Path, fake: FakeServer, tmp_path: Path, options: tuple[str, ...], found: str
) -> None:
    assert found in uplift("eval", bank, "--results", str(tmp_path), "--yes", *options, status=2)
    assert not list(tmp_path.iterdir())


def test_a_cap_stops_the_run_before_it_and_a_higher_one_completes_it_without_paying_twice(
    bank: Path, tool: str, fake: FakeServer, tmp_path: Path
) -> None:
    options = ("--predictor", MODEL, "--server", tool)
    uplift("eval", bank, *options, "--results", str(tmp_path / "calm"), "--yes")
    undisturbed, whole = Counter(record.body_sha256 for record in fake.bill.records), billed(fake)
    fake.bill.records.clear()
    # The dearest possible reply of this model is 32,000 tokens at 25 dollars a million.
    cap = whole / 2 + 1.7
    said = uplift("eval", bank, *options, "--results", str(tmp_path / "capped"), "--max-cost", str(cap), status=3)
    assert f"Stopped before the cap of ${cap:.2f}" in said
    assert "Give the same command with a higher --max-cost" in said
    assert 0 < billed(fake) < cap
    uplift("eval", bank, *options, "--results", str(tmp_path / "capped"), "--max-cost", "500")
    assert Counter(record.body_sha256 for record in fake.bill.records) == undisturbed
    names = ("arm", "claim_id", "outcome", "p_true", "calls_used")
    calm, capped = (
        [tuple(row[name] for name in names) for row in rows_of(tmp_path / folder)] for folder in ("calm", "capped")
    )
    assert calm == capped


def test_the_price_list_of_a_run_is_kept_with_it(bank: Path, fake: FakeServer, tmp_path: Path) -> None:
    prices = tmp_path / "mine.json"
    row = {"input": 1.0, "output": 2.0, "cache_read": 0.1, "cache_write": 1.0}
    prices.write_text(json.dumps({"as_of": "2026-11-01", "models": {"vllm/m": row}}), encoding="utf-8")
    options = ("--predictor", "vllm/m", "--arms", "transcript", "--limit", "3", "--results", str(tmp_path / "r"))
    uplift("eval", bank, *options, "--prices", str(prices), "--max-cost", "1")
    (manifest,) = (tmp_path / "r").glob("*/manifest.json")
    held = json.loads(manifest.read_text(encoding="utf-8"))["prices"]
    assert (held["as_of"], held["price"]["output"]) == ("2026-11-01", 2.0)
    assert held != tariff_of("vllm/m").as_record()
    assert all(row["dollars"] > 0 for row in rows_of(tmp_path / "r"))


def test_a_baseline_through_the_batch_api_costs_half_and_the_other_arms_do_not(
    bank: Path, tool: str, fake: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DEFAULT_BATCH_TICK", "DEFAULT_SEND_DELAY"):
        monkeypatch.setattr(f"inspect_ai.model._providers.util.batch.{name}", 0.05)
    options = ("--predictor", MODEL, "--server", tool, "--arms", "transcript,sae", "--limit", "3", "--yes")
    with batching(fake) as proxy:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"{proxy.url}/anthropic")
        uplift("eval", bank, *options, "--batch-baseline", "--results", str(tmp_path))
    # The fake's reader submits at once without a tool: one request a claim.
    assert len(proxy.custom_ids) == 3
    assert fake.counts["accepted"] == 3 + 3 * 3
    price = read_prices().models[MODEL]
    for row in rows_of(tmp_path):
        read, written, kept = row["cache_read_tokens"], row["cache_write_tokens"], row["output_tokens"]
        usage = Usage(1, row["input_tokens"] - read - written, read, written, kept, row["reasoning_tokens"])
        assert row["dollars"] == pytest.approx(price.cost(usage, batch=row["arm"] == "transcript"), rel=1e-6)
