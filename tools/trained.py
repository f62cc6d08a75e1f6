"""Where the trained weights of a tool are: shipped with the project, in the hub's cache, or random for tests.

Invariant: what is not on this machine and cannot be had is a named error with the remedy.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from claims.schema import UserError
from tools.build_once import build_once
from tools.sae_loader import file_sha256
from tools.targets import Target
from tools.weights import cache_root, has_all_weights

ARTIFACTS = Path(__file__).parent / "artifacts"
"""One folder a tool, in it one a target."""
_FILES = ["*.json", "*.jinja", "*.model", "*.safetensors", "*.yaml", "*.txt"]


def trained_folder(
    tool: str, source: str, target: Target, *, make_random: Callable[[Target, Path], Mapping[str, str]]
) -> Path:
    """The folder that `source` means.

    Args:
        tool: Name of the tool.
        source: "local", "random", or a hub repository.
        target: Whose.
        make_random: Writes random weights for a random target into an empty folder.

    Raises:
        UserError: It is not here and cannot be had.
    """
    if source == "random":
        place = cache_root() / f"{tool}-random" / f"{target.name}-{target.revision}"
        return build_once(place, lambda draft: make_random(target, draft))
    if source == "local":
        return _shipped(tool, target)
    return _from_hub(source)


def _shipped(tool: str, target: Target) -> Path:
    folder = ARTIFACTS / tool / target.name
    if not folder.is_dir():
        raise UserError(
            f"{folder} does not exist. Expected the weights of the tool {tool} for {target.name}. "
            f"Train them with `make artifacts TOOL={tool} TARGET={target.name}`, or choose another target."
        )
    return folder


def _from_hub(repository: str) -> Path:
    # Imported here: the hub's client takes a second, and the local targets do without it.
    from huggingface_hub import snapshot_download

    found = "is not on this machine"
    for local_only in (True, False):
        try:
            folder = Path(snapshot_download(repository, allow_patterns=_FILES, local_files_only=local_only))
        except Exception as error:  # noqa: BLE001 - the client raises its own, two HTTP libraries' and xet's
            found = f"is not on this machine and could not be downloaded ({type(error).__name__})"
            continue
        # An interrupted download leaves a snapshot that lacks files, which the client takes for whole when offline.
        if (folder / "adapter_model.safetensors").is_file() or has_all_weights(folder):
            return folder
        found = f"is on this machine without all of its weights, in {folder}"
    raise UserError(
        f"{repository} {found}. Connect to the internet, unset HF_HUB_OFFLINE and run `hf download {repository}`, then "
        "try again."
    )


def fidelity_of(source: str) -> str:
    """`released` for published weights, `demo` for what is trained or made up here."""
    return "demo" if source in ("local", "random") else "released"


def card_of(folder: Path) -> str | None:
    """Where the folder's card is: the same on every machine for what is shipped, because results name it."""
    path = folder / "card.md"
    if not path.is_file():
        return None
    project = ARTIFACTS.parents[1]
    return path.relative_to(project).as_posix() if path.is_relative_to(project) else str(path)


def files_sha256(paths: Iterable[Path]) -> str:
    """One hash of several files' names and contents. The hub's cache has hashed its large files already."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        blob = path.resolve()
        content = blob.name if blob.parent.name == "blobs" and len(blob.name) == 64 else file_sha256(path)
        digest.update(f"{path.name} {content}\n".encode())
    return digest.hexdigest()
