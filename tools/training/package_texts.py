"""Prose that every installation has: descriptions, licences and docstrings of pinned packages, and Python's own.

Invariant: the texts are read from the installed environment, in a fixed order; none is stored in the repository.
"""

import ast
import email
import importlib.metadata
import re
import sysconfig
import tomllib
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics

from claims.schema import UserError

PACKAGES: dict[str, list[str]] = tomllib.loads((Path(__file__).parent / "packages.toml").read_text(encoding="utf-8"))
MIN_CHARS = 300
"""Shorter texts say too little."""


def package_texts() -> dict[str, str]:
    """Every text by a name that says where it is from, at least `MIN_CHARS` long, in a fixed order.

    Raises:
        UserError: A package of the project's pinned environment is not installed.
    """
    texts: dict[str, str] = {}
    for name, text in (*_descriptions(), *_topics(), *_docstrings()):
        plain = _plain(text)
        if len(plain) >= MIN_CHARS:
            texts.setdefault(name, plain)
    return texts


def _plain(text: str) -> str:
    text = re.sub(r"<[^>\n]{1,400}>|!?\[[^\]\n]{0,80}\]\(https?[^)\n]*\)|https?://\S+", " ", text)
    text = re.sub(r"[ \t]+", " ", text)
    return re.sub(r"\n\s*\n\s*", "\n\n", text).strip()


def _descriptions() -> Iterator[tuple[str, str]]:
    for name in PACKAGES["described"]:
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            raise UserError(
                f"The package {name} is not installed. Expected the project's pinned environment, whose descriptions "
                "are part of the corpus. Run `make install`."
            ) from None
        yield f"{name} description", _description(found)
        for path in sorted(found.files or (), key=str):
            if path.name in ("LICENSE", "LICENSE.txt", "LICENSE.md") and "third_party" not in path.parts:
                yield f"{name} {path}", Path(str(path.locate())).read_text(encoding="utf-8", errors="replace")


def _description(found: importlib.metadata.Distribution) -> str:
    # The body of METADATA, which older files hold in a header instead.
    message = email.message_from_string(found.read_text("METADATA") or "")
    return str(message.get_payload() or message.get("Description") or "")


def _topics() -> Iterator[tuple[str, str]]:
    for name in sorted(topics):
        yield f"python topic {name}", str(topics[name])


def _docstrings() -> Iterator[tuple[str, str]]:
    packages = Path(sysconfig.get_paths()["purelib"])
    standard = Path(sysconfig.get_paths()["stdlib"])
    paths = [standard / f"{name}.py" for name in PACKAGES["standard"]]
    paths += [path for folder in PACKAGES["documented"] for path in sorted((packages / folder).rglob("*.py"))]
    for path in paths:
        if "tests" not in path.parts and path.exists():
            yield from _docstrings_of(path)


def _docstrings_of(path: Path) -> Iterator[tuple[str, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    place = "/".join(path.parts[-3:])
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield f"{place} {getattr(node, 'name', 'module')}", text
