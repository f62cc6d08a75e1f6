"""Investigations and a sampler for the builder's tests: a target whose rates are known."""

from collections.abc import Sequence
from dataclasses import replace

from claims.build.measure import Measured, judge
from claims.build.programs import says
from claims.build.select import Candidate
from claims.build.spec import Investigation, delete, investigation, swap
from claims.schema import Message
from tools.sampling import Sample
from tools.targets import Sampling

SETTINGS = Sampling(0.6, 0, 0.9, 8)
CARD = {"target": "tiny-qwen", "revision": "0", "weights": "w"}


def an_investigation(name: str = "one", template: str = "t", **changes: object) -> Investigation:
    parts: dict[str, object] = {
        "template": template,
        "cause": "wording",
        "prompt": f"{name}: please say yes.",
        "behaviour": "Does it say yes?",
        "yes": says("yes"),
        "edits": [delete("no-please", "please ", "The word 'please' is removed.")],
    }
    return investigation(name, **{**parts, **changes})  # type: ignore[arg-type]


class KnownRates:
    """A sampler whose responses say yes in a known number of cases out of 10 and of 30."""

    def __init__(self, yes_of_30: dict[str, int], yes_of_10: dict[str, int] | None = None) -> None:
        self.yes_of_30 = yes_of_30
        self.yes_of_10 = yes_of_10 or {}
        self.asked: list[tuple[str, int, int]] = []

    def prompt_ids(self, prompt: tuple[Message, ...]) -> tuple[int, ...]:
        return tuple(prompt[-1].content.encode())

    def draw(
        self, prompts: Sequence[tuple[Message, ...]], n: int, seed: int
    ) -> dict[tuple[Message, ...], tuple[Sample, ...]]:
        self.asked += [(prompt[-1].content, n, seed) for prompt in dict.fromkeys(prompts)]
        return {prompt: self.responses(prompt[-1].content)[:n] for prompt in prompts}

    def responses(self, text: str) -> tuple[Sample, ...]:
        n_yes = self.yes_of_30[text]
        early = self.yes_of_10.get(text, round(n_yes / 3))
        says_yes = [i < early for i in range(10)] + [i < n_yes - early for i in range(20)]
        return tuple(
            Sample(f"yes {i}" if yes else f"no {i}", (100 + i,), finished=True) for i, yes in enumerate(says_yes)
        )


def edits_at(
    yes_of_30: Sequence[int], name: str = "one", template: str = "t", baseline: int = 30
) -> tuple[Investigation, dict[str, int]]:
    """An investigation whose i-th edit gives `yes_of_30[i]`, and the rates of its prompts."""
    prompt = f"{name}: say yes."
    edits = [swap(f"e{i}", "yes", f"word{i}", f"'yes' becomes 'word{i}'") for i in range(len(yes_of_30))]
    one = an_investigation(name, template, prompt=prompt, edits=edits)
    rates = {prompt: baseline, **{f"{name}: say word{i}.": n for i, n in enumerate(yes_of_30)}}
    return one, rates


def measured(yes_of_30: Sequence[int], name: str = "one", template: str = "t", baseline: int = 30) -> Measured:
    one, rates = edits_at(yes_of_30, name, template, baseline)
    known = KnownRates(rates)
    drawn = {edit.edit_id: judge(known.responses(edit.messages[-1].content), one.program) for edit in one.edits}
    return Measured(one, judge(known.responses(f"{name}: say yes."), one.program), drawn)


def candidates(*rows: tuple[str, str, bool]) -> list[Candidate]:
    """One candidate for every (cluster, kind, label)."""
    made = []
    for place, (cluster, kind, label) in enumerate(rows):
        one = measured([0], f"i{place}", cluster)
        made.append(Candidate(one, replace(one.investigation.edits[0], kind=kind), label))
    return made
