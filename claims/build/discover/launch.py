"""The whole of a discovery: files of prompts in, a file of investigations out."""

import importlib
import logging
from collections.abc import Sequence
from pathlib import Path

from claims.build.discover.find import discover
from claims.build.discover.found import FILE, Found, save_found
from claims.build.pipeline import sampler_of
from claims.build.read import package_of
from claims.prompts import Limits, collect_prompts
from claims.schema import UserError
from tools.targets import get_target

logger = logging.getLogger(__name__)

LIMITS = Limits(min_chars=None, max_chars=4000, per_group=3)
"""Short prompts are welcome here; at most three that start alike."""


def run(
    target_name: str, files: Sequence[Path], *, out: Path | None = None, seed: int = 0, first: int | None = None
) -> tuple[Path, list[Found]]:
    """Discover investigations of the prompts and write them; resumes like every sampling.

    Args:
        target_name: Full name of the target.
        files: Prompts in any public layout.
        out: The file to write; None puts it where the builder of the target's bank reads it.
        seed: Of the bank that will be built.
        first: Take this many prompts at most.

    Returns:
        The file and what is in it.

    Raises:
        UserError: No target of that name, unreadable prompts, no habit at all, or no place for the file.
    """
    target = get_target(target_name)
    path = out or _place(target_name)
    limits = Limits(LIMITS.min_chars, LIMITS.max_chars, LIMITS.per_group, first=first)
    collected = collect_prompts(files, limits=limits)
    if not collected.prompts:
        raise UserError(
            f"No prompt is left of {', '.join(map(str, files))}. Expected at least one of 1 to 4,000 characters."
        )
    found = discover(sampler_of(target), collected.prompts, seed)
    if not found:
        raise UserError(
            f"None of {len(collected.prompts)} prompts shows a habit in 30 % of its responses that an edit could test. "
            "Give other prompts."
        )
    try:
        save_found(found, path)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}. Choose another file with --out.") from error
    return path, found


def _place(target_name: str) -> Path:
    try:
        package = importlib.import_module(package_of(target_name))
    except ModuleNotFoundError:
        raise UserError(
            f"{target_name} has no package of investigations ({package_of(target_name)}), so there is no place for "
            "what is discovered. Make the package or name a file with --out."
        ) from None
    return Path(next(iter(package.__path__))) / FILE
