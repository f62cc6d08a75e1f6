"""Edits of a prompt as a model writes them: a list of small steps on numbered messages.

Invariant: steps apply in order to the prompt as it is after the step before; whatever does not fit is a `FormError`
that says what was found; the result is a prompt that ends at a user turn and differs from the original.
"""

from collections.abc import Sequence

from claims.build.wild.engine import Messages
from claims.build.wild.forms import Fields, FormError, objects, said
from claims.prompts.record import ROLES
from claims.schema import Message

ACTIONS = ("replace", "replace_all", "rewrite", "insert", "delete")
MAX_STEPS = 40
"""Steps of one edit."""

EDITS = objects(
    {
        "action": said(
            "string",
            "replace: put `text` for the one occurrence of `find`. replace_all: for every occurrence. rewrite: `text` "
            "becomes the whole message. insert: a new message with `role` and `text` before message number `message` "
            "(one past the last appends it). delete: remove the message.",
        ),
        "message": said("integer", "Number of the message, from 1, as shown; counted anew after every step."),
        "find": said("string", "Exact text to look for, for replace and replace_all."),
        "text": said("string", "The new text; may be empty for replace and replace_all, which then delete."),
        "role": said("string", "Role of an inserted message: system, user or assistant."),
    },
    "Steps that turn the original prompt into the edited one, applied in order. Always starts from the original.",
    required=("action", "message"),
)


def apply_edits(original: Messages, steps: Sequence[Fields]) -> Messages:
    """The edited prompt.

    Raises:
        FormError: A step does not fit, nothing changed, or the result is no prompt.
    """
    if len(steps) > MAX_STEPS:
        raise FormError(f"Found {len(steps)} steps, expected at most {MAX_STEPS}. Use rewrite for a large change.")
    messages = list(original)
    for number, step in enumerate(steps, start=1):
        try:
            _apply(messages, step)
        except FormError as error:
            raise FormError(f"Step {number}: {error}") from None
    edited = tuple(messages)
    if edited == original:
        raise FormError("The edited prompt is the original: nothing changed. Change something.")
    if not edited or edited[-1].role != "user" or not edited[-1].content.strip():
        last = edited[-1].role if edited else "nothing"
        raise FormError(
            f"The edited prompt ends with {last}, expected a user message with text: the target answers it."
        )
    return edited


def _apply(messages: list[Message], step: Fields) -> None:
    action = step.text("action")
    if action not in ACTIONS:
        raise FormError(f"action: found {action!r}, expected one of {', '.join(ACTIONS)}.")
    last = len(messages) + (action == "insert")
    place = step.whole("message", 1, last) - 1
    if action == "insert":
        messages.insert(place, Message(_role(step), step.text("text", limit=50_000)))
    elif action == "delete":
        del messages[place]
    elif action == "rewrite":
        messages[place] = Message(messages[place].role, step.text("text", limit=50_000))
    else:
        messages[place] = _replaced(messages[place], step, every=action == "replace_all")
        if not messages[place].content.strip():
            del messages[place]


def _role(step: Fields) -> str:
    role = step.text("role")
    if role not in ROLES:
        raise FormError(f"role: found {role!r}, expected one of {', '.join(ROLES)}.")
    return role


def _replaced(message: Message, step: Fields, *, every: bool) -> Message:
    find, new = step.values.get("find"), step.values.get("text", "")
    if not isinstance(find, str) or not find:
        raise FormError("find: found nothing, expected the exact text to look for.")
    if not isinstance(new, str):
        raise FormError(f"text: found {type(new).__name__}, expected a text.")
    count = message.content.count(find)
    if count == 0:
        raise FormError(f"find: {find[:80]!r} does not occur in that message. Copy it exactly, line breaks included.")
    if count > 1 and not every:
        raise FormError(f"find: {find[:80]!r} occurs {count} times. Make it longer, or use replace_all.")
    return Message(message.role, message.content.replace(find, new))
