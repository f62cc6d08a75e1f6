"""The comparison by hand: what is drawn to be read, and what is kept of it."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from claims.build.companion import FILE
from claims.build.hand import HAND_CHECK, compare, draw, main
from claims.build.pipeline import Plan, build_with
from claims.schema import UserError
from tests.known_rates import CARD, SETTINGS, KnownRates, edits_at
from tools.targets import get_target


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pairs = [edits_at([3, 27], f"i{i}", f"t{i}", baseline=24) for i in range(8)]
    known = KnownRates({text: n for _, rates in pairs for text, n in rates.items()})
    plan = Plan(get_target("tiny-qwen"), tmp_path)
    build_with(known, tuple(one for one, _ in pairs), plan, sampling=SETTINGS, card=CARD)
    return tmp_path


def test_a_quarter_is_drawn_of_every_side_and_verdict_from_many_investigations(folder: Path) -> None:
    shown = draw(folder, seed=3)
    assert Counter((one.prompt, one.program) for one in shown) == {
        (prompt, verdict): 10 for prompt in ("before", "after") for verdict in (True, False)
    }
    assert all(one.program == one.response.startswith("yes") for one in shown)
    assert len({one.claim_id.split("/")[0] for one in shown}) == 8
    assert shown == draw(folder, seed=3) != draw(folder, seed=4)
    # The order does not give the verdict away: it changes more often than in a sorted list.
    assert sum(one.program != two.program for one, two in pairwise(shown)) > 5


def test_the_list_to_read_holds_no_verdict_and_the_answers_are_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*options: str) -> int:
        monkeypatch.setattr("sys.argv", ["hand", str(folder), "--seed", "3", *options])
        return main()

    assert run() == 0
    listed = capsys.readouterr().out
    assert listed.count("Does it say yes?") == 40
    assert "True" not in listed
    answers = ["y" if "'yes " in line else "n" for line in listed.splitlines()[1::2]]
    answers[0] = "n" if answers[0] == "y" else "y"
    assert run("--answers", "".join(answers), "--reader", "a test") == 0
    kept = json.loads((folder / HAND_CHECK).read_text(encoding="utf-8"))
    assert (kept["n"], kept["n_agree"], kept["agreement"], len(kept["disagreements"])) == (40, 39, 0.975, 1)
    assert "by a test" in kept["how"]
    assert run("--answers", "y" * 39, "--reader", "a test") == 2
    assert "Found 39 answers for 40 responses" in capsys.readouterr().err
    assert run("--answers", "maybe") == 2
    with pytest.raises(UserError, match="Expected one each"):
        compare(draw(folder, 3), [True], seed=3, reader="a test")
    (folder / FILE).unlink()
    assert run() == 2
