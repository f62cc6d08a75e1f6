"""Forms: what a model has to fill in through a tool call, read strictly, asked again a bounded number of times.

Invariant: a value that does not fit is answered with what was found and what was expected and asked for again; when
the tries are spent the form is None, which its caller counts. Nothing is ever guessed from prose.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageTool, ChatMessageUser
from inspect_ai.tool import ToolCall, ToolFunction, ToolInfo, ToolParam, ToolParams

from claims.build.wild.clerk import Clerk, Question
from claims.build.wild.fence import fill, text

MAX_TRIES = 3
"""Replies that may be paid for until a form is right; the last try forces the tool call."""

T = TypeVar("T")


class FormError(Exception):
    """A form that cannot be used; the text says what was found, what was expected, what to do."""


@dataclass(frozen=True)
class Form(Generic[T]):
    """One form."""

    name: str
    """Of the tool call."""
    description: str
    """What the model is told of it."""
    fields: Mapping[str, ToolParam]
    """Its parameters; all are required."""
    read: Callable[["Fields"], T]
    """Makes the value, or raises `FormError`."""

    @property
    def tool(self) -> ToolInfo:
        """The tool that the model calls."""
        return tool_info(self.name, self.description, self.fields)

    def fill(self, call: ToolCall) -> T:
        """The value of a call.

        Raises:
            FormError: It cannot be used.
        """
        if call.parse_error:
            raise FormError(
                f"Found arguments that are not JSON ({call.parse_error}). Expected {', '.join(self.fields)}."
            )
        return self.read(Fields(call.arguments))


class Fields:
    """The arguments of a call, read one by one."""

    def __init__(self, values: Mapping[str, object]) -> None:
        """Hold the arguments."""
        self.values = values

    def _get(self, name: str) -> object:
        if name not in self.values:
            raise FormError(f"{name} is missing. Found: {', '.join(self.values) or 'nothing'}. Give every field.")
        return self.values[name]

    def _wrong(self, name: str, expected: str) -> FormError:
        found = json.dumps(self.values[name], ensure_ascii=False, default=str)[:80]
        return FormError(f"{name}: found {found}, expected {expected}.")

    def text(self, name: str, *, limit: int = 4000) -> str:
        """A text with something in it."""
        value = self._get(name)
        if not isinstance(value, str) or not value.strip():
            raise self._wrong(name, "a text")
        if len(value) > limit:
            raise FormError(f"{name}: found {len(value)} characters, expected at most {limit}. Shorten it.")
        return value.strip()

    def whole(self, name: str, low: int, high: int) -> int:
        """A whole number from `low` to `high`; a float that is one counts."""
        value = self._get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise self._wrong(name, f"a whole number from {low} to {high}")
        if not low <= value <= high:
            raise self._wrong(name, f"a whole number from {low} to {high}")
        return int(value)

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self._get(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def _list(self, name: str) -> list[object]:
        value = self._get(name)
        if isinstance(value, str):
            # Some models write a list as JSON inside a string.
            try:
                value = json.loads(value)
            except json.JSONDecodeError:
                raise self._wrong(name, "a list") from None
        if not isinstance(value, list):
            raise self._wrong(name, "a list")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts, the empty list included."""
        items = self._list(name)
        if not all(isinstance(item, str) and item.strip() for item in items):
            raise self._wrong(name, "a list of texts")
        return tuple(str(item).strip() for item in items)

    def numbers(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers, the empty list included."""
        items = self._list(name)
        if not all(isinstance(item, int) and not isinstance(item, bool) for item in items):
            raise self._wrong(name, "a list of whole numbers")
        return tuple(int(str(item)) for item in items)

    def rows(self, name: str) -> tuple["Fields", ...]:
        """A list of objects with something in it."""
        items = self._list(name)
        if not items or not all(isinstance(item, dict) for item in items):
            raise self._wrong(name, "a list of objects, at least one")
        return tuple(Fields(item) for item in items if isinstance(item, dict))

    def share(self, name: str) -> float:
        """A percentage."""
        value = self._get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
            raise self._wrong(name, "a percentage from 0 to 100")
        return float(value)


def tool_info(name: str, description: str, fields: Mapping[str, ToolParam], required: tuple[str, ...] = ()) -> ToolInfo:
    """A tool with flat parameters, all required when none are named."""
    parameters = ToolParams(properties=dict(fields), required=list(required or fields))
    return ToolInfo(name=name, description=description, parameters=parameters)


def said(kind: str, description: str) -> ToolParam:
    """A parameter of a plain type: string, integer, number or boolean."""
    return ToolParam.model_validate({"type": kind, "description": description})


def listed(kind: str, description: str) -> ToolParam:
    """A list of a plain type."""
    return ToolParam(type="array", description=description, items=ToolParam.model_validate({"type": kind}))


def objects(fields: Mapping[str, ToolParam], description: str, required: tuple[str, ...] = ()) -> ToolParam:
    """A list of objects."""
    item = ToolParam(type="object", properties=dict(fields), required=list(required or fields))
    return ToolParam(type="array", description=description, items=item)


def answer(call: ToolCall, words: str) -> ChatMessageTool:
    """What a call is answered with."""
    return ChatMessageTool(content=words, tool_call_id=call.id, function=call.function)


@dataclass(frozen=True)
class Errand:
    """Who is asked to fill in a form, and about what."""

    stage: str
    """A row of the cost table."""
    item: str
    """The prompt."""
    role: str
    """Who is asked."""
    system: str
    """The system text."""
    user: str
    """The material and the task."""
    attempt: int = 0
    """Counts up for independent copies."""


async def fill_in(clerk: Clerk, errand: Errand, form: Form[T]) -> T | None:
    """The form as the model fills it in, or None when every try failed."""
    messages: list[ChatMessage] = [ChatMessageSystem(content=errand.system), ChatMessageUser(content=errand.user)]
    for number in range(1, MAX_TRIES + 1):
        reply = await clerk.ask(
            Question(
                errand.stage,
                errand.item,
                errand.role,
                tuple(messages),
                (form.tool,),
                ToolFunction(name=form.name) if number == MAX_TRIES else "auto",
                errand.attempt,
            )
        )
        if reply.stop == "content_filter":
            return None
        found, answers = _read(reply.message, form)
        if found:
            return found[0]
        messages += [reply.message, *answers]
    return None


def _read(message: ChatMessageAssistant, form: Form[T]) -> tuple[list[T], list[ChatMessage]]:
    """The first usable form in a reply, if there is one, and else what to say back."""
    answers: list[ChatMessage] = []
    for call in message.tool_calls or []:
        if call.function != form.name:
            answers.append(answer(call, f"There is no tool {call.function!r}. Call {form.name}."))
            continue
        try:
            return [form.fill(call)], []
        except FormError as error:
            answers.append(answer(call, f"Not recorded. {error} Call {form.name} again."))
    return [], answers or [ChatMessageUser(content=fill("form_ask.md", tool=form.name))]


def role_text(name: str) -> str:
    """The system text of a stage."""
    return text(f"{name}_system.md")
