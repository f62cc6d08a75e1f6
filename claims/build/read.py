"""The investigations of a target: those written in modules, then those that were discovered.

Invariant: the order is that of the modules' names and of each module's own list, and every id is unique.
"""

import importlib
import pkgutil
from fnmatch import fnmatch
from pathlib import Path

from claims.build.discover.found import FILE, read_found
from claims.build.spec import Investigation
from claims.schema import UserError

ROOT = "claims.investigations"


def package_of(target: str) -> str:
    """Name of the package that holds a target's investigations."""
    return f"{ROOT}.{target.replace('-', '_').replace('.', '_')}"


def read_investigations(target: str, only: str | None = None) -> tuple[Investigation, ...]:
    """All investigations written for `target`.

    Args:
        target: Full name of the target.
        only: A shell pattern; other investigation ids are left out.

    Raises:
        UserError: There are none, or an id comes twice.
    """
    package_name = package_of(target)
    try:
        package = importlib.import_module(package_name)
    except ModuleNotFoundError as error:
        if error.name != package_name:
            raise
        raise UserError(f"No investigations for {target!r}: the package {package_name} does not exist.") from None
    found: list[Investigation] = []
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda module: module.name):
        found.extend(getattr(importlib.import_module(f"{package_name}.{module.name}"), "INVESTIGATIONS", ()))
    for folder in package.__path__:
        found.extend(one.investigation() for one in read_found(Path(folder) / FILE))
    _check_unique(found)
    chosen = tuple(one for one in found if only is None or fnmatch(one.investigation_id, only))
    if not chosen:
        raise UserError(
            f"No investigation of {target!r} matches {only or '*'!r}: {package_name} holds {len(found)}. "
            f"Each module lists its own under the name INVESTIGATIONS; {FILE} holds what was discovered."
        )
    return chosen


def read_excluded(target: str) -> dict[str, str]:
    """Ids of investigations that yield no claims although they were sampled, with the reason for each.

    They are what a target's package says under the name EXCLUDED: programs found wanting by somebody who read the
    responses. They stay among the investigations, so that leaving one out changes nothing else.
    """
    return dict(getattr(importlib.import_module(package_of(target)), "EXCLUDED", {}))


def _check_unique(found: list[Investigation]) -> None:
    seen: set[str] = set()
    for one in found:
        if one.investigation_id in seen:
            raise UserError(f"The investigation id {one.investigation_id!r} comes twice. Rename one of the two.")
        seen.add(one.investigation_id)
