"""Tuning: halves that share no cluster, prompts that stand in for ours, and what they saw is remembered."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agents.prompts import FOLDER, prompt_sha256, prompts_from, text
from claims.schema import Claim, UserError
from harness.cli import app
from harness.splits import TUNE_SHARE, split_claims, split_of
from tests.claim_bank import write_bank
from tests.planted import planted

N_CLUSTERS = 12


def claims_of(clusters: int, each: int = 2) -> list[Claim]:
    return [
        Claim(f"{cluster}-{index}", f"cluster-{cluster}", "i", "t", "b", 0.5, "x")
        for cluster in range(clusters)
        for index in range(each)
    ]


def test_the_halves_share_no_cluster_and_together_are_everything() -> None:
    claims = claims_of(400)
    tune, rest = (split_claims(claims, name, seed=3) for name in ("tune", "eval"))
    assert not {claim.cluster_id for claim in tune} & {claim.cluster_id for claim in rest}
    assert sorted(claim.claim_id for claim in (*tune, *rest)) == sorted(claim.claim_id for claim in claims)
    assert len(tune) / len(claims) == pytest.approx(TUNE_SHARE, abs=0.07)
    assert split_claims(claims, "", seed=3) == tuple(claims)


def test_a_cluster_stays_in_its_half_when_others_come_and_moves_with_the_seed() -> None:
    few, many = claims_of(50), claims_of(80)[::-1]
    assert {c.claim_id for c in split_claims(few, "tune", seed=0)} <= {
        c.claim_id for c in split_claims(many, "tune", seed=0)
    }
    assert len({tuple(split_of(f"cluster-{n}", seed) for n in range(20)) for seed in range(8)}) == 8


def test_a_split_that_is_none_or_empty_is_refused() -> None:
    with pytest.raises(UserError, match="Unknown split 'test'. Known splits: tune, eval"):
        split_claims(claims_of(3), "test", seed=0)
    lone = [claim for claim in claims_of(30) if split_of(claim.cluster_id, 0) == "eval"][:1]
    with pytest.raises(UserError, match=r"The split 'tune' \(seed 0\) holds none of the 1 clusters"):
        split_claims(lone, "tune", seed=0)


def variant(folder: Path, name: str = "system.md", words: str = "Forecast.") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(words + "\n", encoding="utf-8")
    return folder


def test_a_variant_stands_in_for_the_files_it_holds_and_for_no_other(tmp_path: Path) -> None:
    ours, hash_before = text("system.md"), prompt_sha256()
    with prompts_from(variant(tmp_path / "short")):
        assert text("system.md") == "Forecast."
        assert text("ask.md") == (FOLDER / "ask.md").read_text(encoding="utf-8").removesuffix("\n")
        inside = prompt_sha256()
    assert (text("system.md"), prompt_sha256()) == (ours, hash_before)
    assert inside != hash_before


@pytest.mark.parametrize(
    ("name", "words", "found"),
    [
        ("sytem.md", "x", "holds sytem.md; expected some of"),
        ("spent.md", "Spent.", "has the placeholders none; expected calls"),
        ("ask.md", "Answer, $name.", "has the placeholders name; expected none"),
        ("notes.txt", "x", "holds no .md file"),
    ],
)
def test_a_folder_that_is_no_variant_is_refused(tmp_path: Path, name: str, words: str, found: str) -> None:
    with pytest.raises(UserError, match=found), prompts_from(variant(tmp_path / "v", name, words)):
        pass
    with pytest.raises(UserError, match="is no folder"), prompts_from(tmp_path / "nowhere"):
        pass


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bank(tmp_path_factory.mktemp("bank"), n_clusters=N_CLUSTERS)


@pytest.fixture(scope="module")
def tool(bank: Path) -> Iterator[str]:
    with planted(bank, lambda number: (number % 5) / 5) as (running, _):
        yield running.url


def uplift(command: str, bank: Path, results: Path, *more: str, status: int = 0) -> str:
    given = [command, "--target", "tiny-gemma", "--predictor", "scripted/reader", "--claims", str(bank)]
    given += ["--no-report"] if command == "eval" else []
    done = CliRunner().invoke(app, [*given, "--results", str(results), "--arms", "transcript,sae", *more])
    assert done.exit_code == status, done.output
    return done.output


def test_a_tuning_tries_every_variant_and_budget_and_evaluation_keeps_off_what_it_saw(
    bank: Path, tool: str, tmp_path: Path
) -> None:
    short, results, server = variant(tmp_path / "short"), tmp_path / "r", ("--server", tool)
    said = uplift("tune", bank, results, str(short), "--calls", "1,2", *server)
    found = json.loads((results / "tune-tiny-gemma-scripted-reader" / "tune.json").read_text(encoding="utf-8"))
    assert (found["split"], found["split_seed"]) == ("tune", 0)
    tried = {(row["variant"], row["arm"], row["calls"]) for row in found["tried"]}
    assert tried == {(name, *arm) for name in ("house", "short") for arm in (("transcript", 0), ("sae", 1), ("sae", 2))}
    assert said.count("Split: tune (seed 0, about 30% of the clusters)") == 1
    tuned = {cluster for cluster in (f"cluster-{n}" for n in range(N_CLUSTERS)) if split_of(cluster, 0) == "tune"}
    assert {row["n_clusters"] for row in found["tried"]} == {len(tuned)}

    refused = uplift("eval", bank, results, "--prompts", str(short), *server, status=2)
    assert f"were tuned on {len(tuned)} of these {N_CLUSTERS} clusters" in refused
    assert "Give --split eval" in refused
    elsewhere = tmp_path / "other"
    assert "were tuned on" in uplift("eval", bank, elsewhere, "--prompts", str(short), *server, status=2)

    table = uplift("eval", bank, results, "--prompts", str(short), "--split", "eval", *server)
    assert "(split: eval, seed 0)" in table
    run = next(path.parent for path in results.glob("*-short-eval-*/outcomes.jsonl"))
    rows = [json.loads(line) for line in (run / "outcomes.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")]
    assert {row["cluster_id"] for row in rows} == {f"cluster-{n}" for n in range(N_CLUSTERS)} - tuned
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["settings"]["split"], manifest["settings"]["prompts"]) == ("eval", str(short))

    # The house's prompts, which nobody wrote for these claims, may be evaluated on all of them; the table says it.
    house = uplift("eval", bank, results, *server)
    assert f"these prompts were compared with others on {len(tuned)} of the clusters" in house


def test_a_tuning_that_is_mistyped_is_refused(bank: Path, tmp_path: Path) -> None:
    assert "--calls is '1;5'" in uplift("tune", bank, tmp_path / "r", "--calls", "1;5", status=2)
    assert "is no folder" in uplift("tune", bank, tmp_path / "r", str(tmp_path / "nowhere"), status=2)
