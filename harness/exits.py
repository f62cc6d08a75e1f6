"""How a command ends: which status, and what the user is told.

Invariant: no traceback for a user's mistake; a fault of ours never goes without one, in a file that is named.
"""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from claims.schema import UserError

FAULT, MISTAKE, UNFINISHED, LEAK, INTERRUPTED = 1, 2, 3, 4, 130


class UnfinishedError(Exception):
    """The run stopped before all claims had an outcome; the same command continues it."""


class LeakError(Exception):
    """The leak audit found something; the run's numbers must not be used."""


@contextmanager
def told(folder: Path) -> Iterator[None]:
    """Turn whatever ends the block early into a message and an exit status.

    Args:
        folder: Where the traceback of a fault of ours is kept.
    """
    try:
        yield
    except UserError as error:
        _leave(str(error), MISTAKE)
    except UnfinishedError as error:
        _leave(str(error), UNFINISHED)
    except LeakError as error:
        _leave(str(error), LEAK)
    except KeyboardInterrupt:
        _leave("Stopped. What was answered is kept: give the same command again to continue.", INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the last door: a fault of any kind is written down here
        _leave(f"A fault of ours: {type(error).__name__}: {error}\n{_keep(folder)}", FAULT)


def _leave(message: str, status: int) -> None:
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()
    raise SystemExit(status)


def _keep(folder: Path) -> str:
    """Write the traceback of the current exception to a file and say where it is."""
    report = traceback.format_exc()
    path = folder.resolve() / f"fault-{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(report, encoding="utf-8")
    except OSError as error:
        return f"{report}(This traceback could not be written to {path}: {error.strerror}.)"
    return f"Its traceback is in {path}. Please report it with that file."
