"""The manifest of a run: everything that is needed to know what was measured, and to measure it again.

Invariant: it is written once, before the first claim is asked, and never changed; tables are made from it and the
logs alone.
"""

import json
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from claims.schema import UserError
from harness.files import write_text

NAME = "manifest.json"
_PACKAGES = ("inspect-ai", "mcp", "nnsight", "numpy", "sae-lens", "scipy", "torch", "transformer-lens", "transformers")


@dataclass(frozen=True)
class Manifest:
    """What a run was made of."""

    run: str
    """Name of the run, also of its folder."""
    settings: Mapping[str, str | int | None]
    """What was asked for and what it resolved to: names, budget, limit, seed."""
    arms: tuple[str, ...]
    """In the order of the tables."""
    hashes: Mapping[str, str]
    """sha256 of claim set, prompts, tool weights, predictor."""
    claims: Mapping[str, str | int]
    """Where the claims came from, how many there are and how many were used."""
    tools: Mapping[str, Mapping[str, object]]
    """What the server behind each tool arm and each sham said about itself."""
    made: Mapping[str, object]
    """Command, time, versions, commit."""
    analysis: Mapping[str, object] = field(default_factory=dict)
    """How it will be judged, declared before it starts: settings, margin, families of hypotheses."""
    prices: Mapping[str, object] = field(default_factory=dict)
    """What the predictor's tokens cost, with the day of the price list; see `harness.money.pricing.Tariff`."""


def made_now(command: list[str]) -> dict[str, object]:
    """Command, time, versions and commit of this process."""
    versions = {name: metadata.version(name) for name in _PACKAGES}
    return {
        "command": shlex.join(command),
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "git": _commit(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": versions,
    }


def _commit() -> dict[str, object] | None:
    """The checked-out commit and whether files differ from it; None outside a checkout."""
    here = Path(__file__).parent
    try:
        sha = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=True)
        changed = subprocess.run(["git", "status", "--porcelain"], cwd=here, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return {"sha": sha.stdout.strip(), "changed_files": len(changed.stdout.splitlines())}


def save_manifest(manifest: Manifest, folder: Path) -> None:
    """Write the manifest, unless an earlier start of the same run did."""
    path = folder / NAME
    if not path.exists():
        write_text(path, json.dumps(asdict(manifest), indent=1, ensure_ascii=False) + "\n")


def load_manifest(folder: Path) -> Manifest:
    """The manifest in a run's folder.

    Raises:
        UserError: There is none, or it is not one.
    """
    path = folder / NAME
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return Manifest(**{**values, "arms": tuple(values["arms"])})
    except FileNotFoundError:
        raise UserError(f"{folder} is not a run: it has no {NAME}. Give a folder under results/.") from None
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(f"{path} is not a manifest of this harness ({error}). Give another run.") from None


def this_command() -> list[str]:
    """The command that started this process, with the program's short name."""
    program = Path(sys.argv[0]).name
    return [*(["python", "-m", "harness"] if program == "__main__.py" else [program]), *sys.argv[1:]]
