"""What a fake model says: scripts that see a conversation as a model would, whatever the wire."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Stop = Literal["end", "length", "window", "refused", "overflow", "prompt_blocked", "malformed_call"]
"""How a reply ends. `length`: the output cap; `window`: the context window (Anthropic says so); `refused`: a filter or
a refusal; `overflow`: the prompt is too long; `prompt_blocked`: the prompt itself was filtered; `malformed_call`: the
model botched a tool call (Gemini says so)."""


@dataclass(frozen=True)
class Call:
    """One tool call. Arguments given as text go out as they are, JSON or not, where the wire has text for them."""

    name: str
    arguments: dict[str, object] | str


@dataclass(frozen=True)
class Say:
    """One reply."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thought: str = "Let me think."
    """Sent only where the request asks for reasoning."""
    stop: Stop = "end"
    spent: int = 0
    """More output tokens than the words account for (reasoning that ate the cap)."""


@dataclass(frozen=True)
class Turn:
    """What a script is shown."""

    family: str
    model: str
    number: int
    """Replies of the model so far."""
    tools: tuple[str, ...]
    forced: str
    """The tool that must be called; empty where none is."""
    system: str
    users: tuple[str, ...]
    """Texts of the user, in order."""
    results: tuple[str, ...]
    """Outputs of tools, in order."""

    @property
    def readers(self) -> tuple[str, ...]:
        """Tools besides `submit`."""
        return tuple(name for name in self.tools if name != "submit")


Script = Callable[[Turn], Say]

_CLUE = re.compile(r"evidence: (\d(?:\.\d+)?)")


def submit(value: object) -> Say:
    return Say(calls=(Call("submit", {"p_true": value}),))


def read(turn: Turn, *groups: list[int]) -> Say:
    """One call of the first tool a group of positions, all in one turn."""
    return Say("I look inside.", tuple(Call(turn.readers[0], {"positions": group}) for group in groups))


def _reader(turn: Turn) -> Say:
    """Two calls at once, one more, then the number behind "evidence:", 0.5 where there is none."""
    if turn.readers and not turn.forced and turn.number < 2:
        return read(turn, [1, 2], [3]) if turn.number == 0 else read(turn, [4])
    clue = _CLUE.search("\n".join(turn.results))
    return submit(float(clue.group(1)) if clue else 0.5)


def _steady(turn: Turn) -> Say:
    """A number that is a function of the claim, at once."""
    return submit(round(sum(turn.users[0].encode("utf-8")) % 101 / 100, 2) if turn.users else 0.5)


def _late(turn: Turn) -> Say:
    """Says something twice, and submits only when it is made to or asked a third time."""
    return submit(0.9) if turn.forced or turn.number >= 2 else Say(f"I am not sure yet ({turn.number}).")


def _greedy(turn: Turn) -> Say:
    """Never stops calling the tool until `submit` is all that is left."""
    if turn.forced or not turn.readers or "last turn" in turn.users[-1]:
        return submit(0.6)
    return read(turn, [1], [2], [3], [4])


def _mends(turn: Turn) -> Say:
    return submit(1.7) if turn.number == 0 else submit(0.17)


SCRIPTS: dict[str, Script] = {
    "reader": _reader,
    "steady": _steady,
    "late": _late,
    "greedy": _greedy,
    "mends": _mends,
    "prose": lambda turn: Say("I'd say 70%."),
    "thinks_only": lambda turn: Say(""),
    "hedges": lambda turn: Say("It could go either way."),
    "truncated": lambda turn: Say("", stop="length", spent=2000),
    "cut": lambda turn: Say("The claim has a probability of 0.8 if we first", stop="length"),
    "refused": lambda turn: Say("", stop="refused"),
    "prompt_blocked": lambda turn: Say("", stop="prompt_blocked"),
    "refuses": lambda turn: Say("I can't help with that.", stop="refused"),
    "window": lambda turn: Say("So", stop="window"),
    "overflow": lambda turn: Say("", stop="overflow"),
    "over_one": lambda turn: submit(1.7),
    "text_value": lambda turn: submit("85%"),
    "broken_json": lambda turn: Say(calls=(Call("submit", '{"p_true": 0.'),)),
    "malformed_call": lambda turn: Say(stop="malformed_call"),
    "unknown_tool": lambda turn: submit(0.3) if turn.number else Say(calls=(Call("steer", {"by": 3}),)),
    "bad_positions": lambda turn: (
        submit(0.4) if turn.number else Say(calls=(Call(turn.readers[0], {"positions": "first"}),))
    ),
    "both": lambda turn: Say(calls=(*read(turn, [1]).calls, *submit(0.8).calls)),
}
