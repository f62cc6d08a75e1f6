"""The page: which investigations, which edit of each stands in front, and everything else behind a click.

Invariant: the page is a function of the claims folder and the arguments; it shows the text of a folder, never runs it.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from claims.build.gallery.diff import MessageDiff, Piece, diff_messages, n_changed
from claims.build.gallery.read import read_cards
from claims.build.gallery.records import FALSE_AT, TRUE_AT, Card, Experiment
from claims.load import read_card
from claims.page import Page, render
from claims.schema import UserError

PAGE = Page(Path(__file__).parent / "templates", "gallery.html", "gallery.css")
KEEP = 160
"""Characters of an unchanged stretch that stay in sight on each side of a change."""
MAX_CELLS = 60
"""Most responses that are drawn one by one."""


@dataclass(frozen=True)
class Gallery:
    """A finished page and what is on it."""

    html: str
    """The page."""
    n_shown: int
    """Investigations on it."""
    n_all: int
    """Investigations of the folder."""
    n_unverified: int
    """Investigations left out because the judges did not accept them."""


@dataclass(frozen=True)
class Tried:
    """An experiment with the words it changed."""

    experiment: Experiment
    """What was tried."""
    diffs: tuple[MessageDiff, ...]
    """Against the original prompt; empty where the edited prompt was not kept."""


@dataclass(frozen=True)
class Exhibit:
    """A card with the edit that stands in front."""

    card: Card
    """The investigation."""
    front: Tried | None
    """The most informative edit; None where no experiment gave a rate."""
    tried: tuple[Tried, ...]
    """All experiments."""
    moved: tuple[Experiment, ...]
    """Those that moved the rate by as much as a true claim does."""
    stayed: tuple[Experiment, ...]
    """Those that moved it by no more than a false claim does."""


def make_gallery(folder: Path, *, n_random: int | None = None, seed: int = 0, unverified: bool = False) -> Gallery:
    """The page of a claims folder.

    Args:
        folder: A claims folder.
        n_random: Investigations drawn by the seed; None takes all.
        seed: Of the draw.
        unverified: Also show investigations that the judges did not accept.

    Raises:
        UserError: The folder cannot be read, or there is nothing to show.
    """
    if n_random is not None and n_random < 1:
        raise UserError(f"--random is {n_random}; expected at least 1. Leave it out to show every investigation.")
    name = str(read_card(folder).get("target", folder.name))
    cards = read_cards(folder)
    accepted = [card for card in cards if card.verified or unverified]
    if not accepted:
        raise UserError(
            f"{folder}: none of its {len(cards)} investigations was accepted by the judges. "
            "Add --unverified to see them all the same."
        )
    chosen = accepted if n_random is None else drawn(accepted, n_random, seed)
    n_unverified = len(cards) - len(accepted)
    values = {
        "target": name,
        "set_name": folder.resolve().name,
        "exhibits": [exhibit(card) for card in chosen],
        "n_all": len(cards),
        "n_accepted": len(accepted),
        "n_unverified": n_unverified,
        "drawn": n_random is not None and len(chosen) < len(accepted),
        "seed": seed,
        "MAX_CELLS": MAX_CELLS,
        "points": points,
        "stretches": stretches,
        "old_side": lambda diffs: side(diffs, "removed"),
        "new_side": lambda diffs: side(diffs, "added"),
    }
    return Gallery(render(PAGE, values), len(chosen), len(cards), n_unverified)


def drawn(cards: Sequence[Card], n: int, seed: int) -> list[Card]:
    """`n` cards drawn by the seed, in the order of the set."""

    def key(card: Card) -> str:
        return hashlib.sha256(f"{seed}\ngallery\n{card.investigation_id}".encode("utf-8", "replace")).hexdigest()

    kept = {card.investigation_id for card in sorted(cards, key=key)[:n]}
    return [card for card in cards if card.investigation_id in kept]


def exhibit(card: Card) -> Exhibit:
    """A card with its most informative edit in front."""
    tried = tuple(
        Tried(one, diff_messages(card.messages, one.messages) if one.messages else ()) for one in card.experiments
    )
    measured = [one for one in tried if one.experiment.change is not None]
    changes = [(abs(one.experiment.change or 0.0), one.experiment) for one in measured]
    return Exhibit(
        card=card,
        front=max(measured, key=informative, default=None),
        tried=tried,
        moved=tuple(experiment for change, experiment in changes if change >= TRUE_AT),
        stayed=tuple(experiment for change, experiment in changes if change <= FALSE_AT),
    )


def informative(tried: Tried) -> tuple[bool, bool, float, int, int]:
    """How much an edit tells: a clean one before a confounded one, then the larger change, then the smaller edit."""
    experiment = tried.experiment
    clean = experiment.claim is None or experiment.claim.confounded is not True
    change = round(abs(experiment.change or 0.0), 9)
    is_claim = experiment.claim is not None and experiment.claim.label
    return (clean and change >= TRUE_AT, is_claim, change, -n_changed(tried.diffs), -experiment.number)


def side(diffs: Sequence[MessageDiff], kind: str) -> list[MessageDiff]:
    """One side of a diff: what both prompts have, and what this one alone has."""
    return [
        MessageDiff(diff.role, diff.kind, tuple(piece for piece in diff.pieces if piece.kind in ("same", kind)))
        for diff in diffs
        if diff.kind in ("same", kind)
    ]


def points(change: float) -> str:
    """A change of a rate in percentage points: `+13 points`, `0 points`, `−100 points`."""
    rounded = round(100 * change)
    return f"{f'{rounded:+d}' if rounded else '0'} points".replace("-", "−")


@dataclass(frozen=True)
class Stretch:
    """A piece of a diff, or the middle of an unchanged one that is folded away."""

    kind: str
    """`same`, `removed`, `added` or `folded`."""
    text: str
    """The words."""


def stretches(pieces: Sequence[Piece], *, changed: bool) -> list[Stretch]:
    """The pieces with long unchanged ones folded, so that the change is in sight.

    Args:
        pieces: Of one message, one side.
        changed: Whether anything in the message changed; if not, its beginning stays in sight.
    """
    shown: list[Stretch] = []
    for number, piece in enumerate(pieces):
        head = KEEP if number or not changed else 0
        tail = KEEP if changed and number < len(pieces) - 1 else 0
        if piece.kind != "same" or len(piece.text) <= head + tail + KEEP:
            shown.append(Stretch(piece.kind, piece.text))
            continue
        start, end = _at_space(piece.text, head), len(piece.text) - _at_space(piece.text[::-1], tail)
        parts = (("same", piece.text[:start]), ("folded", piece.text[start:end]), ("same", piece.text[end:]))
        shown += [Stretch(kind, text) for kind, text in parts if text]
    return shown


def _at_space(text: str, near: int) -> int:
    """The end of the word at `near`, when it is not far."""
    space = text.find(" ", near, near + 20)
    return near if near == 0 or space < 0 else space
