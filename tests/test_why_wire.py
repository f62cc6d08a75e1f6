"""A judge over each provider's wire: forms are filled in, mended and kept, whatever the provider does."""

import json
from pathlib import Path

import pytest
from test_why_runs import bank as bank
from test_why_runs import finished as finished
from test_why_runs import judge
from test_why_runs import run as run

from agents import provider
from harness.why import Allowance, Wanted, explain
from tests.fakes import Call, Faults, Say, Turn, serving
from tests.wild_models import Turn as JudgeTurn


def script(turn: Turn) -> Say:
    """Prose first, then the form: by free will, or because it is forced."""
    if turn.number == 0 and "record_hints" in turn.tools:
        return Say("Let me look at the outputs.")
    said = judge(JudgeTurn([_Message(turn.users[0])], turn.tools, bool(turn.forced)))
    return Say("I see.", tuple(Call(name, arguments) for name, arguments in said.calls))


class _Message:
    """As much of a message as the judge's script looks at."""

    role = "user"

    def __init__(self, text: str) -> None:
        self.text = text


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "FIRST_WAIT_S", 0.01)


@pytest.mark.parametrize("name", ["anthropic/claude-opus-4-8", "openai/gpt-5.5", "google/gemini-3.1-pro-preview"])
def test_a_judge_of_every_family_fills_in_its_forms(name: str, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(script, faults=Faults(rates={"429": 0.2}, seed=0, retry_after_s=0.01)) as fake:
        for variable, value in fake.env().items():
            monkeypatch.setenv(variable, value)
        wanted = Wanted(judge=name, limit=6, allowance=Allowance(yes=True))
        page = explain(run, wanted)
        n_billed = len(fake.bill.records)
        assert explain(run, wanted) == page
        assert len(fake.bill.records) == n_billed
    found = json.loads((run / "why" / "why.json").read_text(encoding="utf-8"))
    # Six claims: a question each on statements, and two replies each on hints.
    assert n_billed == 18
    assert (found["judge"]["n_questions"], found["judge"]["n_unread"]) == (12, 0)
    assert found["arms"][0]["counted"][0]["claims_stated"]["part"] == 1
    assert found["arms"][0]["counted"][0]["claims_hinted"]["part"] == 3
