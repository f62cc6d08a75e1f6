"""Tables of predictions that others made: CSV, JSON Lines or Parquet to outcomes.

Invariant: nothing is guessed. A value that is neither a probability nor declared as missing is refused, by line.
"""

import csv
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from claims.schema import UserError
from harness.logs import Setting
from harness.outcomes import Outcome

_TRUE, _FALSE = {"true", "1", "1.0", "yes"}, {"false", "0", "0.0", "no"}
_NOTHING = {"", "nan", "none", "null", "na"}


@dataclass(frozen=True)
class Names:
    """What the columns are called."""

    claim: str = "claim_id"
    """Identifies a claim."""
    cluster: str = "cluster_id"
    """What is resampled."""
    label: str = "label"
    """The truth."""
    arm: str = "arm"
    """What the predictor was given."""
    p_true: str = "p_true"
    """The probability that the claim is true."""

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns that a table must have."""
        return self.claim, self.cluster, self.label, self.arm, self.p_true


def read_predictions(
    path: Path, names: Names, *, missing: Iterable[str] = (), baseline: str = "transcript"
) -> tuple[Outcome, ...]:
    """The outcomes in a table.

    Beside the named columns these are used where they exist: target, predictor, calls, positions, epoch,
    investigation_id, outcome.

    Args:
        path: A .csv, .jsonl or .parquet file.
        names: Of its columns.
        missing: Values of the probability that stand for no answer, such as -1.
        baseline: The arm that the others are compared with; it becomes `transcript`.

    Raises:
        UserError: Another kind of file, a column that is absent, a value that cannot be read, or no baseline.
    """
    rows = list(_rows(path))
    if not rows:
        raise UserError(f"{path} holds no row. Expected one a claim and arm.")
    absent = [name for name in names.needed if name not in rows[0]]
    if absent:
        raise UserError(
            f"{path} has no column {', '.join(map(repr, absent))}; it has {', '.join(rows[0])}. Name its columns with "
            "--claim, --cluster, --label, --arm and --p-true."
        )
    none = {_plain(value) for value in missing}
    outcomes = tuple(
        _outcome(row, names, none, baseline, f"{path} row {number}") for number, row in enumerate(rows, start=1)
    )
    arms = sorted({str(row[names.arm]) for row in rows})
    if baseline not in arms:
        raise UserError(
            f"{path} has no arm {baseline!r} to compare with; it has {', '.join(arms)}. "
            "Name the baseline with --baseline."
        )
    return outcomes


def _rows(path: Path) -> Iterable[Mapping[str, object]]:
    if not path.is_file():
        raise UserError(f"{path} is not a file. Expected a table in CSV, JSON Lines or Parquet.")
    kind = path.suffix.lower()
    try:
        if kind == ".csv":
            with path.open(encoding="utf-8-sig", newline="") as file:
                return list(csv.DictReader(file))
        if kind in (".jsonl", ".ndjson"):
            lines = path.read_text(encoding="utf-8").split("\n")
            return [json.loads(line) for line in lines if line.strip()]
        if kind in (".parquet", ".pq"):
            # Imported late: pyarrow takes half a second, and few tables need it.
            from pyarrow import parquet

            listed: list[Mapping[str, object]] = parquet.read_table(path).to_pylist()
            return listed
    except (ValueError, OSError, csv.Error) as error:
        raise UserError(f"{path} cannot be read as {kind} ({error}). Mend the file.") from None
    raise UserError(f"{path} has the ending {kind!r}. Expected .csv, .jsonl or .parquet.")


def _outcome(row: Mapping[str, object], names: Names, none: set[str], baseline: str, place: str) -> Outcome:
    arm = str(row[names.arm])
    p_true = _p_true(row[names.p_true], names.p_true, none, place)
    cluster = str(row[names.cluster])
    return Outcome(
        setting=Setting(
            target=str(row.get("target") or "unnamed"),
            predictor=str(row.get("predictor") or "unnamed"),
            arm="transcript" if arm == baseline else arm,
            calls=_whole(row, "calls", place),
            positions=_whole(row, "positions", place),
            epoch=_whole(row, "epoch", place),
        ),
        claim_id=str(row[names.claim]),
        cluster_id=cluster,
        investigation_id=str(row.get("investigation_id") or cluster),
        label=_label(row[names.label], names.label, place),
        outcome="no_answer" if p_true is None else "answered",
        p_true=p_true,
        calls_used=0,
        how=None,
        detail="",
        input_tokens=0,
        output_tokens=0,
    )


def _plain(value: object) -> str:
    """A value as text, numbers in their shortest form."""
    text = str(value).strip().lower()
    try:
        return f"{float(text):g}"
    except ValueError:
        return text


def _p_true(value: object, name: str, none: set[str], place: str) -> float | None:
    plain = _plain("" if value is None else value)
    if plain in _NOTHING or plain in none:
        return None
    try:
        p_true = float(plain if isinstance(value, str) else str(value))
    except ValueError:
        p_true = math.nan
    if not 0 <= p_true <= 1:
        raise UserError(
            f"{place}: {name} is {value!r}. Expected a probability from 0 to 1, or nothing where there is no answer. "
            f"If it stands for a missing answer, say --missing {value}; a sentinel must not be ranked."
        )
    return p_true


def _label(value: object, name: str, place: str) -> bool:
    plain = str(value).strip().lower()
    if plain in _TRUE | _FALSE:
        return plain in _TRUE
    raise UserError(f"{place}: {name} is {value!r}. Expected true or false (or 1 or 0, yes or no).")


def _whole(row: Mapping[str, object], name: str, place: str) -> int:
    value = row.get(name)
    if value in (None, ""):
        return 0
    try:
        return int(float(str(value)))
    except ValueError:
        raise UserError(f"{place}: {name} is {value!r}. Expected a whole number.") from None
