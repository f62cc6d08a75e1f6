"""Hand labels: a table for people to fill in, and how well they agree with the judge.

Invariants: the table does not show what the judge said, nor whether a claim is true; a label that somebody wrote is
never lost; a cell can start no formula in a spreadsheet.
"""

import csv
import hashlib
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from claims.schema import UserError
from harness.files import write_text
from harness.seeding import digest, keyed_rng
from harness.stats import N_RESAMPLES, Floats, Indices, percentile_interval
from harness.why.clues import ClaimClues
from harness.why.questions import shown_text
from harness.why.rates import Rate, rate

NAME = "hand_labels.csv"
COLUMNS = ("key", "claim_id", "behaviour", "intervention", "output", "label")
LABEL_WORDS = {"yes": True, "y": True, "true": True, "1": True, "no": False, "n": False, "false": False, "0": False}
"""What a label may be written as, in any case."""
ROWS = 60
"""Rows of the table: what the judge flagged, up to half of them, and others drawn by the seed."""
_NAN = float("nan")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Candidate:
    """One output that a person may label."""

    key: str
    """Hash of claim and output."""
    cluster_id: str
    """Of the claim."""
    cells: tuple[str, str, str, str]
    """Claim id, behaviour, intervention, output."""
    flagged: bool
    """Whether the judge says that it states the cause."""


@dataclass(frozen=True)
class Agreement:
    """How well a person and the judge agree."""

    n_labelled: int
    """Outputs with a hand label."""
    n_yes: int
    """Labelled yes."""
    n_flagged: int
    """Flagged by the judge, of the labelled."""
    raw: Rate
    """Share on which the two agree."""
    kappa: float
    """Cohen's: 1 for full agreement, 0 for that of chance; nan where both say one thing only."""
    kappa_low: float
    """Lower bound over clusters; nan with fewer than two, or where too many resamples have no kappa."""
    kappa_high: float
    """Upper bound."""


def candidates(clues: Iterable[ClaimClues]) -> dict[str, Candidate]:
    """Outputs that have a verdict, once each, by key."""
    found: dict[str, Candidate] = {}
    for of_claim in clues:
        claim = of_claim.claim
        for one in of_claim.weighed:
            if one.verdict is None or one.verdict.quote is None:
                continue
            hashed = json.dumps([*one.output.content, claim.behaviour, claim.intervention])
            key = hashlib.sha256(hashed.encode("ascii")).hexdigest()[:16]
            cells = (claim.claim_id, claim.behaviour, claim.intervention, shown_text(one.output))
            found.setdefault(key, Candidate(key, claim.cluster_id, cells, one.states))
    return found


def read_labels(path: Path) -> dict[str, bool]:
    """The labels that were filled in, by key; none where there is no table yet.

    Raises:
        UserError: The table lacks a column, or a label is none.
    """
    if not path.is_file():
        return {}
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8. Save it as CSV in UTF-8.") from None
    # Spreadsheets of some countries write semicolons.
    comma = ";" if text.split("\n", 1)[0].count(";") > text.split("\n", 1)[0].count(",") else ","
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=comma)
    if not {"key", "label"} <= set(rows.fieldnames or ()):
        raise UserError(f"{path} has the columns {', '.join(rows.fieldnames or ()) or 'none'}; expected key and label.")
    labels = {}
    for row in rows:
        word = (row["label"] or "").strip().casefold()
        if word and word not in LABEL_WORDS:
            raise UserError(f"{path} line {rows.line_num}: the label is {word!r}. Write yes or no, or leave it empty.")
        if word:
            labels[(row["key"] or "").strip()] = LABEL_WORDS[word]
    return labels


def write_labels(path: Path, known: Mapping[str, Candidate], labels: Mapping[str, bool], *, seed: int) -> None:
    """Write the table: what is labelled already, then what is to be labelled, all in an order drawn by the seed."""
    order = sorted(known, key=lambda key: digest("hand", seed, key))
    flagged = [key for key in order if known[key].flagged]
    others = [key for key in order if not known[key].flagged]
    chosen = flagged[: max(ROWS // 2, ROWS - len(others))]
    chosen += others[: ROWS - len(chosen)]
    kept = [key for key in order if key in labels or key in set(chosen)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for key in kept:
        writer.writerow([key, *map(safe_cell, known[key].cells), _word(labels.get(key))])
    # Labels of outputs that this run no longer holds were somebody's work, too.
    writer.writerows([key, "", "", "", "", _word(label)] for key, label in labels.items() if key not in known)
    write_text(path, out.getvalue())


def safe_cell(text: str) -> str:
    """`text` as no spreadsheet computes it."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _word(label: bool | None) -> str:
    return "" if label is None else "yes" if label else "no"


def agreement(known: Mapping[str, Candidate], labels: Mapping[str, bool], *, seed: int) -> Agreement:
    """How well the judge agrees with the labels of outputs that it saw."""
    keys = [key for key in sorted(known) if key in labels]
    by_hand = np.array([labels[key] for key in keys], dtype=np.bool_)
    flagged = np.array([known[key].flagged for key in keys], dtype=np.bool_)
    clusters = [known[key].cluster_id for key in keys]
    names, numbers = np.unique(np.array(clusters, dtype=np.str_), return_inverse=True)
    table = np.zeros((len(names), 2, 2))
    np.add.at(table, (numbers, by_hand.astype(int), flagged.astype(int)), 1)
    low, high = _kappa_interval(table, np.asarray(numbers, dtype=np.int64), seed)
    same = (by_hand == flagged).astype(float).tolist()
    return Agreement(
        n_labelled=len(keys),
        n_yes=int(by_hand.sum()),
        n_flagged=int(flagged.sum()),
        raw=rate(same, clusters, key=("hand", seed)),
        kappa=float(kappas(table.sum(axis=0)[None])[0]),
        kappa_low=low,
        kappa_high=high,
    )


def kappas(tables: Floats) -> Floats:
    """Cohen's kappa of each table of counts, shape (n_tables,); nan where chance alone agrees always.

    Args:
        tables: Shape (n_tables, 2, 2): one rater by the other.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = tables / tables.sum(axis=(1, 2), keepdims=True)
        observed = np.trace(shares, axis1=1, axis2=2)
        chance = (shares.sum(axis=1) * shares.sum(axis=2)).sum(axis=1)
        return np.asarray(np.where(1 - chance > 1e-12, (observed - chance) / (1 - chance), math.nan))


def _kappa_interval(table: Floats, numbers: Indices, seed: int) -> tuple[float, float]:
    if len(table) < 2 or not len(numbers):
        return _NAN, _NAN
    rng = keyed_rng("kappa", seed)
    drawn = rng.multinomial(len(table), np.full(len(table), 1 / len(table)), size=N_RESAMPLES)
    values = kappas(np.einsum("rc,cij->rij", drawn, table))
    defined = values[~np.isnan(values)]
    return percentile_interval(defined) if len(defined) >= 0.95 * len(values) else (_NAN, _NAN)
