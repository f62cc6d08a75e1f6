"""What a user can get wrong, and the one message that each mistake is answered with."""

import errno
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from claims.labels import Label, load_evidence, load_labels
from claims.load import load_claims
from claims.schema import Claim, UserError
from harness.cli import app
from harness.files import DiskFullError, write_text
from harness.selection import select_claims
from harness.task import ceiling_responses, claim_samples
from tests.claim_bank import label_of, write_bank
from tests.planted import facts, planted
from tests.tool_servers import build, serving


@pytest.fixture(scope="session")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bank(tmp_path_factory.mktemp("bank"))


def answer(*arguments: str, status: int = 2) -> str:
    """What `uplift` says to a mistake: one message, its own exit status, no traceback."""
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == status, done.output
    assert "Traceback" not in done.output
    return done.output


def evaluation(bank: Path, results: Path, *more: str) -> list[str]:
    given = ["eval", "--no-report", "--target", "tiny-gemma", "--predictor", "scripted/reader", "--claims", str(bank)]
    return [*given, "--results", str(results), *more]


@pytest.mark.parametrize(
    ("options", "found", "known"),
    [
        (("--tool", "sea"), "Unknown tool 'sea'", "Known tools: sae"),
        (("--target", "gema"), "Unknown target 'gema'", "gemma-3-270m"),
        (("--target", "gema"), "Unknown target 'gema'", "Known families: "),
        (("--predictor", "claude"), "Unknown predictor 'claude'", "Known predictors: local, anthropic/<model>"),
        (("--arms", "transcript,sae,roof"), "Unknown arms roof", "Known arms: transcript, transcript-2, sae, sham-"),
        (("--arms", "sae"), "lack 'transcript'", "Add it to --arms"),
        (("--arms", "transcript sham-sae"), "'sham-sae' is compared with 'sae'", "Add 'sae' to --arms"),
        (("--epochs", "0"), "--epochs is 0", "expected at least 1"),
        (("--margin", "1.5"), "--margin is 1.5", "between 0 and 1"),
        (("--calls", "0"), "--calls is 0", "expected at least 1"),
        (("--positions", "-3"), "--positions is -3", "expected at least 1"),
        (("--profile", "fast"), "Unknown profile 'fast'", "Known profiles: paper"),
        (("--limit", "2"), "--limit 2 is less than the smallest cluster", "give at least 3"),
        (("--claims", "/nowhere"), "/nowhere is not a folder", "Expected a claims folder"),
        (("--calls", "many"), "Invalid value for '--calls'", "--help"),
    ],
)
def test_a_mistyped_option_is_answered_with_what_is_known(
    bank: Path, tmp_path: Path, options: tuple[str, str], found: str, known: str
) -> None:
    said = answer(*evaluation(bank, tmp_path, *options))
    assert found in said
    assert known in said
    assert not list(tmp_path.iterdir())


def first_line(path: Path, change: Callable[[dict[str, object]], object]) -> None:
    lines = path.read_text(encoding="utf-8").split("\n")
    lines[0] = json.dumps(change(json.loads(lines[0])))
    path.write_text("\n".join(lines), encoding="utf-8")


def without(name: str) -> Callable[[dict[str, object]], object]:
    return lambda row: {key: value for key, value in row.items() if key != name}


def broken_line(folder: Path) -> None:
    path = folder / "claims.jsonl"
    path.write_text(path.read_text(encoding="utf-8") + '{"claim_id": \n', encoding="utf-8")


def stranger(row: dict[str, object]) -> dict[str, object]:
    return {**row, "claim_id": "claim-99"}


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (broken_line, "claims.jsonl line 25: not JSON"),
        (lambda folder: first_line(folder / "claims.jsonl", without("behaviour")), "the field 'behaviour' is missing"),
        (
            lambda folder: first_line(folder / "claims.jsonl", lambda row: {**row, "claim_id": "claim-01"}),
            "claims.jsonl line 2: claim_id 'claim-01' comes twice",
        ),
        (lambda folder: first_line(folder / "labels.jsonl", stranger), "no claim has the id 'claim-99'"),
        (
            lambda folder: first_line(folder / "evidence.jsonl", lambda row: {**row, "fresh": ["one"]}),
            "evidence.jsonl has 1 fresh responses for claim 'claim-00'",
        ),
        (lambda folder: (folder / "labels.jsonl").unlink(), "labels.jsonl does not exist"),
    ],
)
def test_a_claims_folder_that_is_not_whole_is_refused_by_place(
    tmp_path: Path, spoil: Callable[[Path], object], found: str
) -> None:
    folder = write_bank(tmp_path / "bank")
    spoil(folder)
    assert found in answer(*evaluation(folder, tmp_path / "results"))


def test_a_claim_set_for_another_target_is_refused(tmp_path: Path) -> None:
    folder = write_bank(tmp_path / "bank", target="tiny-qwen")
    said = answer(*evaluation(folder, tmp_path / "results"))
    assert "measured on 'tiny-qwen', not on 'tiny-gemma'" in said


def test_a_target_without_a_bank_is_told_how_to_get_one(tmp_path: Path) -> None:
    given = [
        "eval",
        "--no-report",
        "--target",
        "tiny-qwen",
        "--predictor",
        "scripted/reader",
        "--results",
        str(tmp_path),
    ]
    assert "There is no claim bank for 'tiny-qwen'" in answer(*given)


def test_a_server_that_is_not_there_is_a_mistake(bank: Path, tmp_path: Path) -> None:
    said = answer(*evaluation(bank, tmp_path, "--server", "http://127.0.0.1:9/mcp"))
    assert "No usable tool server at http://127.0.0.1:9/mcp" in said


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"target": "tiny-qwen"}, "tiny-qwen"),
        ({"tool": "nla"}, "nla"),
        ({"transcripts_sha256": "0" * 64}, "serves other transcripts (sha256 000000000000"),
        ({"max_positions": 4}, "4"),
    ],
)
def test_a_server_of_something_else_is_refused(
    bank: Path, tmp_path: Path, changes: dict[str, object], found: str
) -> None:
    with serving(build(facts=lambda: {**facts(bank), **changes})) as running:
        assert found in answer(*evaluation(bank, tmp_path, "--server", running.url))


def test_a_full_disk_is_one_message_and_nothing_is_left_half_written(
    bank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with planted(bank, lambda _: 0.5) as (running, _):
        monkeypatch.setattr("claims.atomic.os.fsync", full)
        said = answer(*evaluation(bank, tmp_path, "--server", running.url))
    assert "No space left on the device that holds" in said
    assert "give the same command again" in said
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_failed_write_leaves_the_old_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.md"
    write_text(path, "old")

    def full(*_: object) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr("claims.atomic.os.fsync", full)
    with pytest.raises(DiskFullError):
        write_text(path, "new")
    assert [(p.name, p.read_text(encoding="utf-8")) for p in tmp_path.iterdir()] == [("table.md", "old")]


def test_a_leak_fails_the_run_loudly_and_leaves_no_table(bank: Path, tmp_path: Path) -> None:
    leaky = write_bank(tmp_path / "bank", n_clusters=2)
    secret = "When nobody mentions a friend, the answer turns out to be green and never blue at all."
    first_line(leaky / "evidence.jsonl", lambda row: {**row, "responses": [{"response": secret, "yes": False}]})
    with planted(leaky, lambda number: secret if number == 0 else "nothing", text="{}") as (running, _):
        said = answer(*evaluation(leaky, tmp_path / "r", "--server", running.url), status=4)
    (report,) = (tmp_path / "r").glob("*/leaks.txt")
    assert "LEAK: 1 places" in said
    assert "arm sae, claim 'claim-00', tool output" in said
    assert report.read_text(encoding="utf-8").startswith("sae\tclaim-00\ttool output\t")
    assert not list((tmp_path / "r").glob("*/table.md"))


def test_a_fault_of_ours_keeps_its_traceback_in_a_file(
    bank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("harness.plan.load_claims", broken)
    said = answer(*evaluation(bank, tmp_path), status=1)
    (log,) = tmp_path.glob("fault-*.log")
    assert f"RuntimeError: a bug\nIts traceback is in {log}" in said
    assert "RuntimeError: a bug" in log.read_text(encoding="utf-8")
    assert "Traceback (most recent call last)" in log.read_text(encoding="utf-8")


def test_tables_of_what_is_no_run_are_refused(tmp_path: Path) -> None:
    assert "is not a run: it has no manifest.json" in answer("tables", str(tmp_path))
    assert "holds no run" in answer("tables", "--results", str(tmp_path))


def some_claims(sizes: list[int]) -> tuple[list[Claim], dict[str, Label]]:
    claims, labels = [], {}
    for cluster, size in enumerate(sizes):
        for index in range(size):
            name = f"{cluster}-{index}"
            claims.append(Claim(name, f"cluster-{cluster}", name, "t", "b", 0.5, "i"))
            labels[name] = Label(name, index % 2 == cluster % 2, 0, 0, 0, 0)
    return claims, labels


def test_a_limit_takes_whole_clusters_keeps_classes_even_and_moves_with_the_seed() -> None:
    claims, labels = some_claims([1, 2, 3, 4, 1, 2, 3, 4, 3, 3])
    picks = [select_claims(claims, labels, limit=12, seed=seed) for seed in range(6)]
    for pick in picks:
        chosen = {claim.cluster_id for claim in pick}
        assert 8 < len(pick) <= 12
        assert list(pick) == [claim for claim in claims if claim.cluster_id in chosen]
        assert abs(2 * sum(labels[claim.claim_id].label for claim in pick) - len(pick)) <= 2
    assert len({tuple(claim.claim_id for claim in pick) for pick in picks}) > 1


def test_a_limit_does_not_depend_on_the_order_of_lines() -> None:
    claims, labels = some_claims([1, 2, 3, 4, 3, 3])
    one = select_claims(claims, labels, limit=7, seed=0)
    other = select_claims(claims[::-1], labels, limit=7, seed=0)
    assert {claim.claim_id for claim in one} == {claim.claim_id for claim in other}


def test_no_limit_and_a_large_one_take_everything() -> None:
    claims, labels = some_claims([1, 2, 3])
    assert select_claims(claims, labels, limit=None, seed=0) == tuple(claims)
    assert select_claims(claims, labels, limit=99, seed=0) == tuple(claims)


def test_a_label_reaches_the_target_of_a_sample_and_nothing_else(bank: Path) -> None:
    claim_set = load_claims(bank)
    labels = load_labels(claim_set)
    flipped = {name: Label(name, not label.label, 0, 0, 0, 0) for name, label in labels.items()}
    one = claim_samples(claim_set, claim_set.claims, labels)
    other = claim_samples(claim_set, claim_set.claims, flipped)
    assert [sample.model_dump(exclude={"target"}) for sample in one] == [
        sample.model_dump(exclude={"target"}) for sample in other
    ]
    assert [sample.target for sample in one] == ["true" if label_of(number) else "false" for number in range(24)]


def test_the_ceiling_draws_eight_fresh_responses_by_claim_and_seed(bank: Path) -> None:
    claim_set = load_claims(bank)
    evidence = load_evidence(claim_set)
    first, second, *_ = claim_set.claims
    drawn = ceiling_responses(evidence, first, seed=0)
    assert len(set(drawn)) == 8
    assert set(drawn) <= set(evidence[first.claim_id].fresh)
    assert drawn == ceiling_responses(evidence, first, seed=0)
    assert drawn != ceiling_responses(evidence, first, seed=1)
    with pytest.raises(UserError, match="leave the arm out with --arms"):
        ceiling_responses({}, second, seed=0)
