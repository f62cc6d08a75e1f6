"""The fields that a map may name, and the values that foreign files write into them.

Invariant: a value is taken as written or refused with its place; nothing is guessed.
"""

import json
from collections.abc import Mapping

from claims.prompts.record import PromptsError
from claims.prompts.turns import UnusableError, message, read_turns
from claims.schema import ClaimsError, Message, Row

FIELDS = {
    "dataset": "name of the data set, in front of every id (mostly a constant)",
    "investigation_id": "all experiments on one transcript share it",
    "cluster_id": "optional: what is held out together; the investigation when absent",
    "transcript_id": "optional: the investigation when absent",
    "claim_id": "optional: made from the claim when absent",
    "behaviour": "yes/no question about one response",
    "intervention": "the edit in words",
    "messages": "the prompt as a list of turns (or give prompt)",
    "prompt": "the prompt as one user turn (or give messages)",
    "system": "optional: system prompt in front of the prompt",
    "response": "the response that the transcript shows (or give responses and verdicts)",
    "responses": "all responses to the prompt; one that shows the behaviour is drawn",
    "verdicts": "the verdict on each of responses",
    "reasoning": "optional: chain of thought of that response",
    "token_ids": "optional: prompt and response as sampled; made with the target's tokenizer when absent",
    "source": "optional: where the prompt came from; the data set when absent",
    "label": "whether the claim is true; needed with labels = 'given', checked otherwise",
    "baseline_rate": "share of yes on the prompt",
    "baseline_yes": "number of yes on the prompt",
    "baseline_n": "number of responses to the prompt",
    "edited_rate": "share of yes on the edited prompt (or give change)",
    "change": "edited rate less baseline rate, signed",
    "edited_yes": "number of yes on the edited prompt",
    "edited_n": "number of responses to the edited prompt",
    "edited_messages": "optional: the edited prompt as a list of turns",
    "edited_prompt": "optional: the edited prompt as one user turn",
    "edited_responses": "optional: responses to the edited prompt behind the label",
    "edited_verdicts": "the verdict on each of edited_responses",
    "fresh": "optional: responses to the edited prompt that are not behind the label",
}
"""Field names and what they hold."""

_YES = frozenset({"true", "yes", "1"})
_NO = frozenset({"false", "no", "0"})


class Fields:
    """The values of one row under our names."""

    def __init__(self, row: Row, columns: Mapping[str, str], constants: Mapping[str, object]) -> None:
        """Hold a row, its columns by field, and the fields that are the same in every row."""
        self.place = row.place
        self._row = row
        self._columns = columns
        self._constants = constants

    def has(self, name: str) -> bool:
        """Whether the map gives the field and this row's value is not null."""
        return self._value(name) is not None

    def _value(self, name: str) -> object:
        if name in self._constants:
            return self._constants[name]
        return pick(self._row, self._columns[name]) if name in self._columns else None

    def _wrong(self, name: str, expected: str) -> ClaimsError:
        found = json.dumps(self._value(name), ensure_ascii=False, default=str)[:80]
        column = f" (column {self._columns[name]!r})" if name in self._columns else ""
        return ClaimsError(
            f"{self.place}: {name}{column} must be {expected}, but it is {found}. Mend the row or the map."
        )

    def text(self, name: str) -> str:
        """A string that is not blank; a whole number is written out."""
        value = self._value(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str) or not value.strip():
            raise self._wrong(name, "a text that is not empty")
        return value

    def any_text(self, name: str) -> str:
        """A string, the empty one included."""
        value = self._value(name)
        if not isinstance(value, str):
            raise self._wrong(name, "a text")
        return value

    def number(self, name: str) -> float:
        """A finite number, also one written as text."""
        value = self._value(name)
        try:
            number = float("nan") if isinstance(value, bool) else float(value)  # type: ignore[arg-type]  # refused below
        except (TypeError, ValueError):
            number = float("nan")
        if number - number != 0:  # nan or infinite
            raise self._wrong(name, "a number")
        return number

    def count(self, name: str) -> int:
        """A whole number of at least 0."""
        number = self.number(name)
        if number < 0 or number != int(number):
            raise self._wrong(name, "a whole number of at least 0")
        return int(number)

    def flag(self, name: str, words: tuple[str, str] | None = None) -> bool:
        """True or false, or one of `words` (for true, for false) where the map gives them."""
        return self._flag(name, self._value(name), words)

    def _flag(self, name: str, value: object, words: tuple[str, str] | None = None) -> bool:
        text = str(value).strip()
        if words is not None and text in words:
            return text == words[0]
        if words is None and text.lower() in _YES | _NO:
            return text.lower() in _YES
        expected = f"{words[0]!r} or {words[1]!r}" if words else "true or false, yes or no, 1 or 0"
        raise self._wrong(name, expected)

    def items(self, name: str) -> list[object]:
        """A list, also one written as JSON in a text (as CSV has to)."""
        value = self._value(name)
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except json.JSONDecodeError:
                raise self._wrong(name, "a list, or a list written as JSON") from None
        if not isinstance(value, list):
            raise self._wrong(name, "a list")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings."""
        found = tuple(item for item in self.items(name) if isinstance(item, str))
        if len(found) < len(self.items(name)):
            raise self._wrong(name, "a list of texts")
        return found

    def flags(self, name: str) -> tuple[bool, ...]:
        """A list of verdicts."""
        return tuple(self._flag(name, item) for item in self.items(name))

    def ids(self, name: str) -> tuple[int, ...]:
        """A list of token ids."""
        found = tuple(item for item in self.items(name) if type(item) is int and item >= 0)
        if not found or len(found) < len(self.items(name)):
            raise self._wrong(name, "a list of token ids")
        return found

    def messages(self, turns: str, prompt: str) -> tuple[Message, ...]:
        """The turns under one name, or the single user turn under the other; a system prompt goes first."""
        try:
            if self.has(turns):
                found = read_turns(self.items(turns), self.place)
            else:
                found = (message("user", self.text(prompt)),)
            if self.has("system"):
                found = (message("system", self.text("system")), *found)
        except (UnusableError, PromptsError) as error:
            raise ClaimsError(f"{self.place}: {turns} cannot be read: {error}.") from None
        return found


def pick(row: Row, path: str) -> object:
    """The value of a column; dots lead into objects unless a column has that very name.

    Raises:
        ClaimsError: There is no such column.
    """
    if path in row.values:
        return row.values[path]
    value: object = row.values
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            raise ClaimsError(
                f"{row.place}: there is no column {path!r} (found: {', '.join(sorted(row.values))}). Mend the map."
            )
        value = value[name]
    return value
