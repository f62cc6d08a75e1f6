"""The local predictor's own rendering of a conversation: short, worked examples first, one yes/no question last.

A stated adapter. It shows what the message shows (the turns and the response, the claim's BEHAVIOR, BASELINE and
INTERVENTION, the fresh responses or what the tool said) and leaves out what this model cannot use: the instructions,
the token list, the wording that all claims share. One thing is cut: of each line of a tool's answer it reads the first
`LINE_CHARS` characters (of the sae tool, the two or three strongest features of a position). Whole, an answer has about
2,900 tokens, and 240 characters a line took the 118 claims of gemma-3-270m past 5 minutes on 2 cores.
"""

import json
import re
from collections.abc import Sequence
from functools import cache

from agents.prompts import fill, parts, sections, text

LINE_CHARS = 100
"""Characters of each line of a tool's answer that are read."""

_PART = re.compile(r"^(BEHAVIOR|BASELINE|INTERVENTION|PREDICTION)\b[^:]*:[ \n]*", re.MULTILINE)

Chat = list[dict[str, str]]
"""Messages as a chat template takes them."""


def claim_parts(claim: str) -> dict[str, str]:
    """The labelled parts of a claim's text; empty where its template labels them in another way."""
    split = _PART.split(claim)
    found = {name: " ".join(body.split()) for name, body in zip(split[1::2], split[2::2], strict=True)}
    return found if {"BEHAVIOR", "BASELINE", "INTERVENTION"} <= found.keys() else {}


def _claim(claim: str) -> str:
    found = claim_parts(claim)
    if not found:
        return claim
    stated = re.search(r"about (\d+%)", found["BASELINE"])
    return fill(
        "local/claim.md",
        behaviour=found["BEHAVIOR"],
        baseline=f"about {stated.group(1)} yes." if stated else found["BASELINE"],
        intervention=found["INTERVENTION"],
    )


def cut_lines(output: str) -> str:
    """Each line of a tool's answer, cut to `LINE_CHARS` characters."""
    return "\n".join(line[:LINE_CHARS] for line in output.splitlines())


def _ceiling(responses: Sequence[str]) -> str:
    return fill("local/ceiling.md", responses="\n".join(f"- {' '.join(body.split())}" for body in responses))


def _speaker(name: str) -> str:
    """Who speaks in a part of the transcript: User, System, Assistant."""
    return "Assistant" if name.startswith("response") else name.split(", ")[-1].capitalize()


@cache
def _shots(*, with_responses: bool) -> tuple[tuple[str, str], ...]:
    """The worked examples, as questions and answers."""
    rows = json.loads(text("local/shots.json"))
    pairs = []
    for row in rows:
        claim = fill("local/claim.md", **{name: row[name] for name in ("behaviour", "baseline", "intervention")})
        transcript = f"User: {row['prompt']}\nAssistant: {row['response']}"
        evidence = _ceiling(row["edited"]) if with_responses else ""
        asked = fill("local/question.md", transcript=transcript, evidence=evidence, claim=claim)
        pairs.append((asked, str(row["answer"])))
    return tuple(pairs)


def examples(*, with_responses: bool) -> Chat:
    """The system message and the worked examples; those of the ceiling arm show fresh responses as it does."""
    chat = [{"role": "system", "content": text("local/system.md")}]
    for asked, answer in _shots(with_responses=with_responses):
        chat += [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]
    return chat


def question(message: str, tool_outputs: Sequence[str]) -> tuple[Chat, Chat]:
    """The worked examples, and the question after them.

    Args:
        message: The user message, of any arm.
        tool_outputs: What the tool answered, in order.
    """
    found = sections(message)
    shown_at_once = [found["readings"].body] if "readings" in found else []
    evidence = "".join(fill("local/tool.md", output=cut_lines(output)) for output in (*shown_at_once, *tool_outputs))
    responses = [body for _, body in parts(found["responses"])] if "responses" in found else []
    if responses:
        evidence += _ceiling(responses)
    spoken = "\n".join(f"{_speaker(name)}: {body.strip()}" for name, body in parts(found["transcript"]))
    asked = fill("local/question.md", transcript=spoken, evidence=evidence, claim=_claim(found["claim"].body))
    return examples(with_responses=bool(responses)), [{"role": "user", "content": asked}]
