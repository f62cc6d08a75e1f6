"""Which transcript lends its activations to which, as a host writes it down and a server reads it.

Invariant: this module imports no torch, so that a wrong file is refused at once.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from claims.schema import UserError
from tools.registered import Registered


def donors_text(donors: Mapping[str, str]) -> str:
    """A choice of donors as a file: a JSON object from transcript id to donor's id."""
    return json.dumps(dict(sorted(donors.items())), indent=1) + "\n"


def donors_sha256(donors: Mapping[str, str]) -> str:
    """Identity of a choice of donors."""
    return hashlib.sha256(donors_text(donors).encode("utf-8")).hexdigest()


def read_donors(path: Path, registered: Registered) -> dict[str, str]:
    """The donors in a file: a JSON object that names another registered transcript for every registered one.

    Raises:
        UserError: It is not such a file.
    """
    try:
        donors = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read as JSON ({error}). Expected a file of donors.") from None
    known = registered.transcripts.keys()
    if not isinstance(donors, dict) or donors.keys() != known or not set(donors.values()) <= known:
        raise UserError(
            f"{path} does not name a donor among the {len(known)} registered transcripts for each of them. Expected "
            "a JSON object from transcript ids to transcript ids of the same claim set."
        )
    own = [name for name, donor in donors.items() if name == donor]
    if own:
        raise UserError(f"{path} makes {own[0]!r} its own donor. A sham shows another transcript's activations.")
    return donors
