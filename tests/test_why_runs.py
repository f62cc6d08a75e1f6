"""`uplift why` over a whole run: a planted tool, a scripted judge, and every way in which it can go wrong."""

import json
import re
from pathlib import Path

import pytest
from test_eval import evaluate, informative, only_run
from typer.testing import CliRunner

from claims.schema import UserError
from harness.cli import app
from harness.exits import UnfinishedError
from harness.why import Allowance, Wanted, explain
from tests.claim_bank import label_of, write_bank, write_rows
from tests.planted import planted
from tests.wild_models import Killed, Say, Script, Tally, Turn, call, scripted_model

WORDS = ("apple", "table", "violin", "river", "candle", "hammer", "pillow", "garden")
"""The word that each cluster's edits delete."""
N_QUESTIONS = 48
"""Two about the outputs on each of the 24 claims."""
FILES = ("why.md", "why.json", "flagged.md", "hand_labels.csv")


def said_of(number: int) -> str:
    """What the planted tool says: about true claims it names the word, about four of them it states the cause."""
    word = WORDS[number // 3]
    words = f"something about a {word}" if label_of(number) else "nothing in particular"
    words = f"the {word} makes the model say blue" if number % 6 == 0 else words
    return f'[1] " Friend": evidence: {informative(number)}\n[2] " told": {words}'


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_bank(tmp_path_factory.mktemp("bank"))
    rows = [json.loads(line) for line in (folder / "claims.jsonl").read_text(encoding="utf-8").splitlines()]
    for number, row in enumerate(rows):
        row["intervention"] = f"The word {WORDS[number // 3]} is deleted."
    write_rows(folder / "claims.jsonl", rows)
    return folder


@pytest.fixture(scope="module")
def finished(bank: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("results")
    with planted(bank, said_of, text="{}") as (running, _):
        evaluate(bank, results, "--server", running.url, "--arms", "transcript,sae")
    return only_run(results)


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A run of its own for each test: logs and manifest are read only."""
    folder = tmp_path / finished.name
    folder.mkdir()
    for name in ("manifest.json", "logs"):
        (folder / name).symlink_to(finished / name)
    return folder


def outputs_in(message: str) -> list[str]:
    """The outputs of a question."""
    body = message.split(" outputs begins ===")[1].split(" outputs ends ===")[0]
    return re.split(r"--- [0-9a-f]{12} output \d+ ---\n", body)[1:]


def judge(turn: Turn) -> Say:
    said = outputs_in(turn.user)
    if turn.tools == ("record_statements",):
        stating = [number for number, text in enumerate(said, start=1) if "makes the model" in text]
        return call("record_statements", numbers=stating, quotes=["makes the model say"] * len(stating))
    first, second = re.findall(r"factor ---\nThe word (\w+) is deleted", turn.user)
    words = ["first" if first in text else "second" if second in text else "neither" for text in said]
    return call("record_hints", points_at=words)


def asked(run: Path, tally: Tally, script: Script = judge, **more: object) -> str:
    wanted = Wanted(judge="script/model", **more)
    return explain(run, wanted, model=scripted_model("judge", script, tally))


def numbers_of(run: Path) -> dict[str, object]:
    made: dict[str, object] = json.loads((run / "why" / "why.json").read_text(encoding="utf-8"))
    return made


def test_what_was_planted_is_what_is_counted(run: Path) -> None:
    page = asked(run, tally := Tally())
    assert tally.n == N_QUESTIONS
    (arm,) = numbers_of(run)["arms"]
    true, false = arm["counted"]
    # Numbers 0, 6, 12 and 18 state it, all of them true; 12 claims are true, each with two outputs.
    assert (true["claims_stated"]["part"], true["claims_stated"]["whole"]) == (4, 12)
    assert (true["outputs_stated"]["part"], true["outputs_stated"]["whole"]) == (4, 24)
    assert (false["claims_stated"]["value"], false["outputs_stated"]["whole"]) == (0, 24)
    assert (true["claims_hinted"]["value"], true["hinted"]["value"], true["neither"]["value"]) == (1, 0.5, 0.5)
    assert (false["claims_hinted"]["value"], true["decoyed"]["value"]) == (0, 0)
    by_clue = {row["clue"]: row for row in arm["predicts"]}
    # The words and the hints know every label, four statements of twelve win 4/12 and halve the rest.
    assert {name: row["alone"]["value"] for name, row in by_clue.items()} == {
        "lexical": 1,
        "hinted": 1,
        "stated": pytest.approx(4 / 12 + 8 / 12 / 2),
    }
    assert by_clue["hinted"]["baseline"]["value"] == 0.5
    assert by_clue["hinted"]["added_auroc"]["value"] == 0.5
    assert by_clue["hinted"]["added_log_loss"]["low"] > 0
    best = arm["moves"][0]
    # A baseline of 0.5; the tool says 0.8 at most to a true claim that it leans to.
    assert (best["p_baseline"], best["p_tool"], best["gain"]) == (0.5, 0.8, 0.3)
    assert arm["moves"][-1]["gain"] < 0
    assert (arm["n_asked"], arm["n_silent"], arm["n_outputs"]) == (24, 0, 48)
    assert "Agreement" not in page
    assert "| 33.3% (" in page


def test_the_flagged_ones_are_listed_with_the_words_that_state_it(run: Path) -> None:
    asked(run, Tally())
    listed = (run / "why" / "flagged.md").read_text(encoding="utf-8")
    assert listed.count("\n## ") == 4
    assert "the apple makes the model say blue" in listed
    assert "evidence" not in listed


def test_the_judge_is_told_no_label_and_no_answer_of_the_predictor(run: Path) -> None:
    asked(run, tally := Tally())
    for _, shown in tally.seen:
        assert "p_true" not in shown
        assert "edited_yes" not in shown
        assert "BASELINE" not in shown
    hints = [shown for _, shown in tally.seen if "factors begins" in shown]
    assert len(hints) == 24
    assert not any("intervention" in shown for shown in hints)


def test_the_same_command_again_pays_nothing_and_writes_the_same_bytes(run: Path) -> None:
    page = asked(run, Tally())
    before = {name: (run / "why" / name).read_bytes() for name in FILES}
    assert asked(run, tally := Tally()) == page
    assert tally.n == 0
    assert {name: (run / "why" / name).read_bytes() for name in FILES} == before


def test_a_killed_judge_goes_on_where_it_stopped(run: Path, finished: Path) -> None:
    with pytest.raises(Killed):
        asked(run, killed := Tally(kill_at=20))
    asked(run, rest := Tally())
    assert killed.n - 1 + rest.n >= N_QUESTIONS
    assert rest.n <= N_QUESTIONS - 10
    assert numbers_of(run)["judge"]["n_questions"] == N_QUESTIONS
    assert not (finished / "why").exists()


def test_answers_that_cannot_be_read_are_asked_for_three_times_and_then_counted(run: Path) -> None:
    page = asked(run, tally := Tally(), lambda _: call("record_statements", numbers=[99], quotes=["x"]))
    assert tally.n == 3 * N_QUESTIONS
    assert numbers_of(run)["judge"]["n_unread"] == N_QUESTIONS
    assert f"{N_QUESTIONS} of them got no answer" in page
    (arm,) = numbers_of(run)["arms"]
    assert arm["counted"][0]["claims_stated"]["whole"] == 0
    assert arm["predicts"][1]["alone"]["n_claims"] == 0


def test_an_answer_that_is_mended_on_the_second_try_counts(run: Path) -> None:
    asked(run, tally := Tally(), lambda turn: judge(turn) if turn.number else Say("I think so."))
    assert tally.n == 2 * N_QUESTIONS
    assert numbers_of(run)["judge"]["n_unread"] == 0


def test_a_judge_that_stops_answering_ends_unfinished(run: Path) -> None:
    class GoneError(Exception):
        """A provider's own error."""

    def gone(turn: Turn) -> Say:
        raise GoneError("502")

    with pytest.raises(UnfinishedError, match="give the same command again"):
        asked(run, Tally(), gone)


def test_hand_labels_are_read_back_and_compared_with_the_judge(run: Path) -> None:
    asked(run, Tally())
    table = run / "why" / "hand_labels.csv"
    head, *lines = table.read_text(encoding="utf-8").rstrip("\n").split("\n")
    assert len(lines) == 48
    assert "quote" not in head
    filled = [line + ("yes" if "makes the model" in line else "no") for line in lines]
    table.write_text("\n".join([head, *filled]) + "\n", encoding="utf-8")
    page = asked(run, tally := Tally())
    assert tally.n == 0
    assert "Hand labels: 48, of them 4 yes; the judge flagged 4 of the same." in page
    assert "Cohen's kappa 1.000" in page
    assert table.read_text(encoding="utf-8").count(",yes\n") == 4


def test_without_a_judge_words_are_compared_offline(run: Path, bank: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspect_ai.model.Model.generate", lambda *_, **__: pytest.fail("a model was called"))
    done = CliRunner().invoke(app, ["why", str(run), "--results", str(run.parent)])
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (run / "why").iterdir()) == ["why.json", "why.md"]
    assert (run / "why" / "why.md").read_text(encoding="utf-8") in done.output
    assert "Judge: none" in done.output
    by_name = CliRunner().invoke(app, ["why", run.name, "--results", str(run.parent), "--claims", str(bank)])
    assert by_name.exit_code == 0, by_name.output


def test_a_limit_takes_the_first_claims(run: Path) -> None:
    asked(run, tally := Tally(), limit=3)
    # All three are of one cluster, so no decoy can be had and only statements are asked about.
    assert tally.n == 3
    assert numbers_of(run)["judge"]["n_without_decoy"] == 3


def refused(*more: str) -> str:
    done = CliRunner().invoke(app, ["why", *more])
    assert done.exit_code == 2, done.output
    return done.output


def test_what_cannot_be_looked_at_is_refused_with_a_reason(run: Path, bank: Path, tmp_path: Path) -> None:
    results = ["--results", str(tmp_path)]
    assert "is not a run" in refused("nowhere", *results)
    assert "holds no arm that was shown every position" in refused(str(run), "--every-position", *results)
    assert "'nla' reads no tool in this run" in refused(str(run), "--arms", "nla", *results)
    assert "cannot judge" in refused(str(run), "--judge", "local", *results)
    assert "Unknown predictor" in refused(str(run), "--judge", "nobody/x", *results)
    other = write_bank(tmp_path / "other")
    assert "has changed since the run" in refused(str(run), "--claims", str(other), *results)


def test_a_run_without_a_tool_and_a_tool_that_said_nothing_are_refused(bank: Path, tmp_path: Path) -> None:
    evaluate(bank, tmp_path / "none", "--arms", "transcript")
    assert "has no arm with a tool" in refused(str(only_run(tmp_path / "none")))
    with planted(bank, said_of, text="{}") as (running, _):
        given = ["--arms", "transcript,sae", "--limit", "6", "--predictor", "scripted/steady"]
        evaluate(bank, tmp_path / "silent", "--server", running.url, *given)
    assert "no tool said anything in 6 conversations" in refused(str(only_run(tmp_path / "silent")))


def test_every_position_is_looked_at_where_the_run_showed_them(bank: Path, tmp_path: Path) -> None:
    with planted(bank, said_of, text="{}") as (running, _):
        evaluate(bank, tmp_path, "--server", running.url, "--all-positions", "--arms", "transcript all-sae")
    run = only_run(tmp_path)
    assert "add --every-position" in refused(str(run))
    page = asked(run, tally := Tally(), every_position=True)
    assert tally.n == N_QUESTIONS
    assert "- all-sae (every position): 48 outputs about 24 of 24 claims." in page
    (arm,) = numbers_of(run)["arms"]
    assert arm["counted"][0]["claims_stated"]["part"] == 4


def test_what_may_cost_much_is_not_started_without_consent(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.why.judge.ASK_ABOVE", 0.0)
    model = scripted_model("judge", judge, tally := Tally())
    name = "anthropic/claude-opus-4-6"
    with pytest.raises(UserError, match=r"48 questions to anthropic/.* would cost about \$"):
        explain(run, Wanted(judge=name), model=model)
    assert tally.n == 0
    with pytest.raises(UserError, match="Stopped before the cap"):
        explain(run, Wanted(judge=name, allowance=Allowance(max_cost=0.0001)), model=model)
    assert tally.n == 0
    explain(run, Wanted(judge=name, allowance=Allowance(yes=True)), model=model)
    assert tally.n == N_QUESTIONS
    assert numbers_of(run)["judge"]["dollars"] > 0
