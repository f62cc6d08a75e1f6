"""The frozen question answered for every response: by a model that sees nothing else, or by a checked program.

Invariant: a verdict is yes or no in the agreed form or it is asked for again; after the last try it is None. Nothing
is guessed from what else the classifier says.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from inspect_ai.model import ChatMessageSystem, ChatMessageUser

from claims.build.programs import Program
from claims.build.wild.clerk import Clerk, Question
from claims.build.wild.engine import Response
from claims.build.wild.fence import fenced, fill
from claims.build.wild.forms import MAX_TRIES, role_text
from claims.build.wild.records import Batch

_VERDICT = re.compile(r"verdict:\s*(yes|no)", re.IGNORECASE)


class Classifier(Protocol):
    """Whatever answers a frozen question."""

    async def judge(self, item: str, question: str, responses: Sequence[Response]) -> Batch:
        """Verdicts on all responses to one prompt."""
        ...


class ModelClassifier:
    """A language model, one call a response."""

    def __init__(self, clerk: Clerk) -> None:
        """Ask through `clerk`."""
        self.clerk = clerk

    async def judge(self, item: str, question: str, responses: Sequence[Response]) -> Batch:
        """Verdicts on all responses to one prompt."""
        texts = [response.text for response in responses]
        verdicts = await self.clerk.gather(self._verdict(item, question, text) for text in texts)
        return Batch(tuple(responses), tuple(verdicts))

    async def _verdict(self, item: str, question: str, response: str) -> bool | None:
        user = fill(
            "classify_user.md",
            question=fenced("question", [("question", question)]),
            response=fenced("response", [("response", response)]),
        )
        messages = (ChatMessageSystem(content=role_text("classify")), ChatMessageUser(content=user))
        for attempt in range(MAX_TRIES):
            reply = await self.clerk.ask(Question("classify", item, "classifier", messages, attempt=attempt))
            verdict = read_verdict(reply.message.text)
            if verdict is not None:
                return verdict
        return None


def read_verdict(words: str) -> bool | None:
    """The verdict in the last line of a classifier's reply; None unless that line is `Verdict: yes` or `no`."""
    lines = [line.strip(" *_`#.\t") for line in words.strip().split("\n") if line.strip()]
    match = _VERDICT.fullmatch(lines[-1].replace("*", "")) if lines else None
    return None if match is None else match.group(1).lower() == "yes"


class ProgramClassifier:
    """Checked programs for the questions that have one, another classifier for the rest."""

    def __init__(self, programs: Mapping[str, Program], rest: Classifier) -> None:
        """Programs by the exact text of their question."""
        self.programs = programs
        self.rest = rest

    async def judge(self, item: str, question: str, responses: Sequence[Response]) -> Batch:
        """Verdicts on all responses to one prompt."""
        program = self.programs.get(question)
        if program is None:
            return await self.rest.judge(item, question, responses)
        return Batch(tuple(responses), tuple(program(response.text) for response in responses))
