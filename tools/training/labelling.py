"""A label for each live feature, made from the tokens and contexts that it is most active on.

Invariant: a label is written from training documents alone, and it states a rule (these tokens, or the token after
them) that can be checked on other text.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tools.training.corpus import Document
from tools.training.firings import Firings
from tools.training.harvest import Harvest

SOURCE = "auto-token"
STRONGEST = 400
"""Activations looked at, strongest first."""
EXAMPLES = 40
"""Different contexts kept of them."""
CONTEXT = 4
"""Tokens that must differ for two contexts to count as different; also shown before the token."""
MIN_EXAMPLES = 3
"""A feature with fewer is not labelled."""
ONE_TOKEN, FEW_TOKENS = 0.8, 0.6
"""Share of the examples that one token, or the `MAX_TOKENS` most frequent, must make up to name the feature."""
MAX_TOKENS = 4
MAX_CHARS = 60


@dataclass(frozen=True)
class FeatureLabel:
    """What a feature is called, and the rule behind it."""

    index: int
    """The feature."""
    label: str
    """The text, at most `MAX_CHARS` characters."""
    kind: str
    """`token` (one), `tokens` (a few), `after` (what precedes), `context` (none of these)."""
    forms: tuple[str, ...]
    """The tokens named, most frequent first; for `after`, those that precede."""
    density: float
    """Share of the training tokens on which it is active."""
    strongest: float
    """Its highest activation there."""


class Labeller:
    """Knows the tokens around every activation."""

    def __init__(self, documents: Sequence[Document], harvest: Harvest, texts: dict[int, str]) -> None:
        """Look up the tokens of every row of `harvest`; `texts` has the printable text of each token id."""
        self._documents = documents
        self._texts = texts
        self._document = harvest.document.numpy()
        self._position = harvest.position.numpy()
        forms = {token_id: form(text) for token_id, text in texts.items()}
        self.forms = tuple(sorted(set(forms.values())))
        self.number = {text: index for index, text in enumerate(self.forms)}
        by_id = np.zeros(max(texts) + 1, dtype=np.int64)
        for token_id, text in forms.items():
            by_id[token_id] = self.number[text]
        self.at = by_id[self._ids(0)]
        self.before = by_id[self._ids(1)]

    def _ids(self, back: int) -> NDArray[np.int64]:
        pairs = zip(self._document, self._position, strict=True)
        return np.array([self._documents[document].token_ids[position - back] for document, position in pairs])

    def label(self, fired: Firings, feature: int) -> FeatureLabel | None:
        """The label of one feature; None when it was active on too few contexts."""
        tokens, values = fired.of(feature)
        rows = self._examples(tokens[:STRONGEST])
        if len(rows) < MIN_EXAMPLES:
            return None
        kind, chosen = self._rule(rows)
        head = self._head(kind, chosen, rows)
        return FeatureLabel(
            index=feature,
            label=self._text(head, rows[0]),
            kind=kind,
            forms=tuple(self.forms[index] for index in chosen),
            density=round(len(tokens) / len(self._document), 6),
            strongest=round(float(values[0]), 3),
        )

    def _examples(self, tokens: NDArray[np.int64]) -> list[int]:
        """Rows of different contexts, strongest first: one text repeated says no more than once."""
        rows: dict[tuple[int, ...], int] = {}
        for row in tokens.tolist():
            position = int(self._position[row])
            ids = self._documents[int(self._document[row])].token_ids
            rows.setdefault(ids[max(0, position - CONTEXT) : position + 1], row)
            if len(rows) == EXAMPLES:
                break
        return list(rows.values())

    def _rule(self, rows: Sequence[int]) -> tuple[str, list[int]]:
        here = Counter(self.at[rows].tolist()).most_common(MAX_TOKENS)
        before = Counter(self.before[rows].tolist()).most_common(MAX_TOKENS)
        if here[0][1] >= ONE_TOKEN * len(rows):
            return "token", [here[0][0]]
        if sum(count for _, count in here) >= FEW_TOKENS * len(rows):
            return "tokens", _frequent(here, len(rows))
        if sum(count for _, count in before) >= FEW_TOKENS * len(rows):
            return "after", _frequent(before, len(rows))
        return "context", _frequent(here, len(rows))

    def _head(self, kind: str, chosen: Sequence[int], rows: Sequence[int]) -> str:
        """The tokens as they are mostly written."""
        back = 1 if kind == "after" else 0
        column = self.before if back else self.at
        spelt: dict[int, Counter[str]] = {index: Counter() for index in chosen}
        for row in rows:
            if int(column[row]) in spelt:
                spelt[int(column[row])][self._token(row, back).strip() or self._token(row, back)] += 1
        shown = ", ".join(f"'{spelt[index].most_common(1)[0][0]}'" for index in chosen)
        return {"after": f"after {shown}", "context": f"mixed: {shown}"}.get(kind, shown)

    def _token(self, row: int, back: int) -> str:
        ids = self._documents[int(self._document[row])].token_ids
        return self._texts[ids[int(self._position[row]) - back]]

    def _text(self, head: str, row: int) -> str:
        """The head and as much of the strongest example as there is room for."""
        ids = self._documents[int(self._document[row])].token_ids
        position = int(self._position[row])
        room = MAX_CHARS - len(head) - 3
        for first in range(max(0, position - CONTEXT), position):
            before = "".join(self._texts[token_id] for token_id in ids[first:position]).lstrip()
            example = f"{before}«{self._texts[ids[position]]}»"
            if len(example) <= room:
                return f"{head}: {example}"
        return head if len(head) <= MAX_CHARS else head[: MAX_CHARS - 1] + "…"


def _frequent(counts: Sequence[tuple[int, int]], n: int) -> list[int]:
    """Those that make up a tenth, or at least the first: the others are accidents."""
    return [index for place, (index, count) in enumerate(counts) if not place or count >= n / 10]


def form(text: str) -> str:
    """A token's text without case and surrounding blanks; blanks alone stay as they are."""
    return text.strip().casefold() or text
