"""The one way to a model: every reply is looked up first, paid for at most once, and kept before it is used.

Invariant: a key covers everything that determines a reply (model, settings, messages, tools, tool choice, the item and
the number of the attempt), so a run that was killed asks nothing twice and a changed prompt never gets an old answer.
"""

import asyncio
import hashlib
import json
import math
import re
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import ChatMessage, ChatMessageAssistant, GenerateConfig, Model, ModelOutput, get_model
from inspect_ai.tool import ToolChoice, ToolInfo

from claims.build.wild.log import AppendLog, Json
from claims.build.wild.money import Entry, Purse, Usage
from claims.build.wild.roles import Role
from claims.build.wild.usage import normalised
from claims.schema import UserError

FORMAT = 1
"""Raise it when a stored reply would mean something else than before."""
MAX_RETRIES = 8
"""Tries of one request after the first, by Inspect, with growing waits."""
ATTEMPT_TIMEOUT_S = 600
"""Longest single try."""

# Inspect's messages are marked up for its own console.
_MARKUP = re.compile(r"\[/?[a-z ]+\]")

T = TypeVar("T")


@dataclass(frozen=True)
class Question:
    """One request to a model."""

    stage: str
    """Which step asks: a row of the cost table."""
    item: str
    """The prompt it is about."""
    role: str
    """Who is asked."""
    messages: tuple[ChatMessage, ...]
    """The conversation."""
    tools: tuple[ToolInfo, ...] = ()
    """What the model may call."""
    choice: ToolChoice = "auto"
    """Whether it must."""
    attempt: int = 0
    """Another number, another reply: judges and repeated tries count up."""


@dataclass(frozen=True)
class Reply:
    """What a model said."""

    message: ChatMessageAssistant
    """As it goes back into the conversation, reasoning and tool calls included."""
    stop: str
    """Why it ended, in Inspect's words."""
    usage: Usage
    """Its tokens."""


class StoppedError(Exception):
    """The run was stopped by another call's failure; raised where a new call would have been paid."""


class Clerk:
    """Asks models and keeps the books."""

    def __init__(
        self, roles: Mapping[str, Role], log: AppendLog, purse: Purse, *, models: Mapping[str, Model] | None = None
    ) -> None:
        """Keep replies in `log` and pay from `purse`.

        Args:
            roles: Who has which model.
            log: Of replies.
            purse: Prices and cap.
            models: Ready models by role; those of `roles` are made by Inspect.
        """
        self.roles = roles
        self.log = log
        self.purse = purse
        self.entries: dict[str, Entry] = {}
        self.n_paid = 0
        self._given = frozenset(models or {})
        self._models = dict(models or {})
        self._in_flight: dict[str, asyncio.Future[Json]] = {}
        self._stopped = False

    def check_models(self) -> None:
        """Build every model, so that a missing key or package shows before anything is paid.

        Raises:
            UserError: A model cannot be had; the text is Inspect's, which names what is missing.
        """
        for name, role in self.roles.items():
            try:
                self._model(name)
            except PrerequisiteError as error:
                told = " ".join(_MARKUP.sub("", str(error.message)).split())
                raise UserError(f"The model {role.model!r} of the {name} cannot be used: {told}") from None
            except ValueError as error:
                raise UserError(f"The model {role.model!r} of the {name} is unknown to Inspect: {error}") from None

    async def ask(self, question: Question) -> Reply:
        """The reply to `question`, from the log or from the model."""
        role = self.roles[question.role]
        key = question_key(question, role)
        row = self.log.get(key)
        if row is None:
            row = await self._once(key, question, role)
        usage = Usage(**{name: _count(value) for name, value in _mapping(row["usage"]).items()})
        dollars = row["dollars"]
        paid = float(dollars) if isinstance(dollars, int | float) else math.nan
        self.entries[key] = Entry(question.stage, question.item, usage, paid)
        return Reply(ChatMessageAssistant.model_validate(row["message"]), str(row["stop"]), usage)

    async def _once(self, key: str, question: Question, role: Role) -> Json:
        if key in self._in_flight:
            return await asyncio.shield(self._in_flight[key])
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._in_flight[key] = future
        try:
            row = await self._pay(key, question, role)
            future.set_result(row)
        except BaseException as error:
            future.set_exception(error if isinstance(error, Exception) else StoppedError("cancelled"))
            # Nobody else may be waiting for it, and an exception that nobody looks at is a warning.
            future.exception()
            raise
        finally:
            del self._in_flight[key]
        return row

    async def _pay(self, key: str, question: Question, role: Role) -> Json:
        if self._stopped:
            raise StoppedError("another call failed; nothing new is paid for")
        n_bytes = len(json.dumps(_shown(question), ensure_ascii=False).encode("utf-8", "surrogatepass"))
        most_output = role.max_tokens + (role.reasoning_tokens or 0)
        ticket = await self.purse.hold(role.model, n_bytes, most_output, batch=role.batch)
        dollars = 0.0
        try:
            output = await self._generate(question, role)
            usage = normalised(output.usage)
            dollars = self.purse.prices.cost(role.model, usage, batch=role.batch)
            row = self.log.put(key, _row(question, output, usage, dollars))
            self.n_paid += 1
        finally:
            await self.purse.settle(ticket, dollars)
        return row

    async def _generate(self, question: Question, role: Role) -> ModelOutput:
        model = self._model(question.role)
        return await model.generate(
            list(question.messages), list(question.tools), question.choice if question.tools else None, _config(role)
        )

    def _model(self, name: str) -> Model:
        if name not in self._models:
            self._models[name] = get_model(self.roles[name].model, memoize=False)
        return self._models[name]

    async def close(self) -> None:
        """Close the connections of the models made here; a later question makes them anew."""
        made = [name for name in self._models if name not in self._given]
        for name in made:
            await self._models.pop(name).api.aclose()

    async def gather(self, jobs: Iterable[Awaitable[T]]) -> list[T]:
        """Results of all jobs, in order; after a first failure no job pays for anything new, what is in flight is kept.

        Raises:
            Exception: The first failure that is not a consequence of another.
        """
        results = await asyncio.gather(*(self._watched(job) for job in jobs), return_exceptions=True)
        failures = [one for one in results if isinstance(one, BaseException)]
        if failures:
            raise next((one for one in failures if not isinstance(one, StoppedError)), failures[0])
        return [one for one in results if not isinstance(one, BaseException)]

    async def _watched(self, job: Awaitable[T]) -> T:
        try:
            return await job
        except BaseException:
            self._stopped = True
            raise


def spent(log: AppendLog) -> float:
    """Dollars of every reply in the log whose price was known."""
    paid = [row["dollars"] for _, row in log.rows()]
    return math.fsum(float(one) for one in paid if isinstance(one, int | float))


def question_key(question: Question, role: Role) -> str:
    """A sha256 over everything that determines the reply."""
    settings = [role.model, role.max_tokens, role.reasoning_tokens, role.temperature]
    parts = [FORMAT, settings, question.item, question.attempt, _shown(question)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _shown(question: Question) -> list[object]:
    # Inspect gives messages random ids: they are no part of what is asked.
    messages = [message.model_dump(mode="json", exclude={"id"}, exclude_none=True) for message in question.messages]
    tools = [tool.model_dump(mode="json", exclude_none=True) for tool in question.tools]
    choice = question.choice if isinstance(question.choice, str) else {"name": question.choice.name}
    return [messages, tools, choice]


def _config(role: Role) -> GenerateConfig:
    return GenerateConfig(
        max_tokens=role.max_tokens + (role.reasoning_tokens or 0),
        reasoning_tokens=role.reasoning_tokens,
        temperature=role.temperature,
        batch=role.batch or None,
        max_retries=MAX_RETRIES,
        attempt_timeout=None if role.batch else ATTEMPT_TIMEOUT_S,
    )


def _row(question: Question, output: ModelOutput, usage: Usage, dollars: float) -> Json:
    message = ChatMessageAssistant(content="") if output.empty else output.message
    return {
        "stage": question.stage,
        "item": question.item,
        "role": question.role,
        "message": message.model_dump(mode="json", exclude_none=True),
        "stop": output.stop_reason,
        "usage": usage.as_row(),
        "dollars": None if math.isnan(dollars) else dollars,
    }


def _mapping(value: object) -> Mapping[str, object]:
    assert isinstance(value, dict), "a row of the log has another shape than it was written with"
    return value


def _count(value: object) -> int:
    assert isinstance(value, int), "a row of the log has another shape than it was written with"
    return value
