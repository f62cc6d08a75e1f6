"""The ledger of a run: one line for every reply that was paid for, also for those that a fault then lost.

Invariant: a line is written before the reply is used, so what a killed run has paid is known to the next one.
"""

import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from claims.build.wild.money import Usage
from harness.files import disk_full_said

NAME = "spend.jsonl"


@dataclass(frozen=True)
class Payment:
    """What one request cost."""

    setting: str
    """Arm and budget that asked."""
    claim_id: str
    """Claim that it was about."""
    usage: Usage
    """Its tokens; none known for a lost reply."""
    dollars: float
    """Its price; for a lost reply the mean price of the others, for the provider may have billed it."""
    lost: bool
    """Whether no reply came back though one may have been made: a reset, a hang, a broken body."""


class Ledger:
    """The payments of a run's folder, read once and then appended to."""

    def __init__(self, path: Path) -> None:
        """Read what earlier starts of the run have paid."""
        self._path = path
        self._whole = True
        self.dollars = 0.0
        self.n_paid = 0
        self.n_lost = 0
        for row in self._rows():
            self._count(float(row["dollars"]), lost=bool(row["lost"]))

    def _rows(self) -> list[dict[str, float]]:
        if not self._path.is_file():
            return []
        content = self._path.read_bytes()
        self._whole = not content or content.endswith(b"\n")
        rows = []
        for line in content.split(b"\n"):
            try:
                rows.append(json.loads(line))
            except ValueError:
                # The end of a line that a full disk or a killed process cut.
                continue
        return rows

    def _count(self, dollars: float, *, lost: bool) -> None:
        self.dollars += dollars
        self.n_lost += lost
        self.n_paid += not lost

    @property
    def mean(self) -> float:
        """Mean price of a reply so far; 0 before the first."""
        paid = self.n_paid + self.n_lost
        return self.dollars / paid if paid else 0.0

    def add(self, payment: Payment) -> None:
        """Write one payment down.

        Raises:
            DiskFullError: There is no room.
        """
        assert not math.isnan(payment.dollars), "a run without a price keeps no ledger"
        self._count(payment.dollars, lost=payment.lost)
        line = json.dumps({**asdict(payment), "dollars": round(payment.dollars, 9)}, ensure_ascii=False) + "\n"
        start = "" if self._whole else "\n"
        self._whole = True
        with disk_full_said(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(handle, (start + line).encode("utf-8"))
            finally:
                os.close(handle)
