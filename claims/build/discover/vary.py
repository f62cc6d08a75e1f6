"""Edits that change one thing of a prompt: delete, swap, reorder or add.

Invariant: every edit is made by one rule from one place of the prompt, and its description says all that it does and
nothing of what may come of it.
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from claims.build.discover.tables import AT_END, AT_START, SWAPS
from claims.build.draw import seeded
from claims.build.spec import Edit
from claims.schema import Message

PER_KIND = 2
"""Edits of one kind at most."""
Prompt = tuple[Message, ...]
Draw = Callable[[str, list[str]], str]
"""One of some texts, by chance that a key decides."""


def variations(prompt: Prompt, *, seed: int) -> tuple[Edit, ...]:
    """At most `PER_KIND` edits of each kind, drawn by the seed from all that the rules can make."""
    key = "\n".join(f"{message.role}: {message.content}" for message in prompt)

    def draw(place: str, texts: list[str]) -> str:
        return min(texts, key=lambda text: seeded(seed, f"{key}\n{place}\n{text}"))

    made: dict[str, list[Edit]] = {}
    for rule in (_deletions, _number_swaps, _word_swaps, _turned_options, _turned_sentences, _additions):
        for edit in rule(prompt, draw):
            if edit.messages != prompt and edit.messages and edit.messages[-1].role == "user":
                made.setdefault(edit.kind, []).append(edit)
    chosen = []
    for kind in sorted(made):
        order = sorted(made[kind], key=lambda edit: seeded(seed, f"{key}\n{edit.edit_id}\n{edit.description}"))
        chosen += order[:PER_KIND]
    return tuple(chosen)


def _sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.!?])\s+", text) if part]


def _with(prompt: Prompt, place: int, text: str) -> Prompt:
    return (*prompt[:place], Message(prompt[place].role, text), *prompt[place + 1 :])


def _deletions(prompt: Prompt, _draw: Draw) -> Iterator[Edit]:
    if prompt[0].role == "system":
        yield Edit("no-system", "delete", "The system message is removed.", prompt[1:])
    for place, message in enumerate(prompt[:-1]):
        if message.role == "user" and prompt[place + 1].role == "assistant":
            rest = prompt[:place] + prompt[place + 2 :]
            said = f'The turn "{message.content}" and the answer to it are removed.'
            yield Edit(f"no-turn-{place}", "delete", said, rest)
    for place, message in enumerate(prompt):
        sentences = _sentences(message.content) if message.role != "assistant" else []
        for at, sentence in enumerate(sentences if len(sentences) > 1 else []):
            rest_of_it = " ".join(sentences[:at] + sentences[at + 1 :])
            said = f'The sentence "{sentence}" is removed.'
            yield Edit(f"no-sentence-{place}-{at}", "delete", said, _with(prompt, place, rest_of_it))


def _only_place(prompt: Prompt, old: str) -> tuple[int, re.Match[str]] | None:
    """Where `old` stands as a whole word, if it stands once in the prompt."""
    found = [
        (place, match)
        for place, message in enumerate(prompt)
        for match in re.finditer(rf"(?<![\w.,]){re.escape(old)}(?!\w)", message.content)
    ]
    return found[0] if len(found) == 1 else None


def _swapped(prompt: Prompt, old: str, new: str) -> Prompt | None:
    found = _only_place(prompt, old)
    if found is None:
        return None
    place, match = found
    text = prompt[place].content
    return _with(prompt, place, text[: match.start()] + new + text[match.end() :])


def _number_swaps(prompt: Prompt, draw: Draw) -> Iterator[Edit]:
    whole = " ".join(message.content for message in prompt)
    for old in dict.fromkeys(re.findall(r"(?<![\w.,])\d+(?![\w]|[.,]\d)", whole)):
        low = 10 ** (len(old) - 1) if len(old) > 1 else 2
        near = [str(number) for number in range(low, min(10 ** len(old), low + 90)) if str(number) != old]
        new = draw(f"number {old}", near)
        edited = _swapped(prompt, old, new)
        if edited is not None:
            yield Edit(f"number-{old}", "swap", f"The number {old} is replaced by {new}.", edited)


def _word_swaps(prompt: Prompt, draw: Draw) -> Iterator[Edit]:
    for words in SWAPS.values():
        for old in words:
            new = draw(f"word {old}", [word for word in words if word != old])
            edited = _swapped(prompt, old, new)
            if edited is not None:
                yield Edit(f"word-{old}", "swap", f'The word "{old}" is replaced by "{new}".', edited)


def _turned_options(prompt: Prompt, _draw: Draw) -> Iterator[Edit]:
    for place, message in enumerate(prompt):
        for match in re.finditer(r"\b(\w+) (or|and) (\w+)\b", message.content):
            turned = f"{match[3]} {match[2]} {match[1]}"
            text = message.content[: match.start()] + turned + message.content[match.end() :]
            said = f'"{match[0]}" becomes "{turned}".'
            yield Edit(f"turned-{place}-{match.start()}", "reorder", said, _with(prompt, place, text))


def _turned_sentences(prompt: Prompt, _draw: Draw) -> Iterator[Edit]:
    for place, message in enumerate(prompt):
        sentences = _sentences(message.content) if message.role != "assistant" else []
        for at in range(len(sentences) - 1):
            one, two = sentences[at : at + 2]
            text = " ".join([*sentences[:at], two, one, *sentences[at + 2 :]])
            said = f'The sentences "{one}" and "{two}" change places.'
            yield Edit(f"turned-sentences-{place}-{at}", "reorder", said, _with(prompt, place, text))
    turns = [at for at, message in enumerate(prompt[:-1]) if message.role == "user" and prompt[at + 1].role != "user"]
    for one_at, two_at in pairwise(turns):
        turned = (
            f'The turns "{prompt[one_at].content}" and "{prompt[two_at].content}", with their answers, change places.'
        )
        middle = prompt[two_at : two_at + 2] + prompt[one_at : one_at + 2]
        edited = prompt[:one_at] + middle + prompt[two_at + 2 :]
        yield Edit(f"turned-turns-{one_at}", "reorder", turned, edited)


def _additions(prompt: Prompt, draw: Draw) -> Iterator[Edit]:
    last = prompt[-1].content
    end, start = draw("end", AT_END), draw("start", AT_START)
    place = len(prompt) - 1
    turn = "the last turn" if place else "the prompt"
    yield Edit("added-end", "add", f'"{end}" is added at the end of {turn}.', _with(prompt, place, f"{last} {end}"))
    yield Edit(
        "added-start", "add", f'"{start}" is put at the beginning of {turn}.', _with(prompt, place, f"{start} {last}")
    )
