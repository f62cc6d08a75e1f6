"""Render templates to one self-contained page.

Invariants: the page loads nothing and runs nothing but the one script it was made with; its policy says so to the
browser by hash; the same material gives the same bytes.
"""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from claims.page.safe import plain, shown

BASE = Path(__file__).parent
"""Holds the frame of every page and the style that all share."""


@dataclass(frozen=True)
class Page:
    """A page to be made."""

    folder: Path
    """Holds the template and what it includes, its style and its script."""
    template: str
    """Name of the template; it extends `frame.html`."""
    style: str
    """Name of the style sheet, which comes after the shared one."""
    script: str | None = None
    """Name of the script; None for a page that runs nothing."""


def render(page: Page, values: Mapping[str, object]) -> str:
    """The whole page.

    Args:
        page: Which.
        values: What the template shows; every text in it is escaped.
    """
    environment = Environment(
        loader=FileSystemLoader([page.folder, BASE]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(shown=shown, plain=plain)
    style = _read(BASE / "base.css") + _read(page.folder / page.style)
    script = _read(page.folder / page.script) if page.script else ""
    frame = {"style": style, "script": script, "policy": policy(style, script)}
    return environment.get_template(page.template).render(**frame, **values)


def policy(style: str, script: str) -> str:
    """The content security policy of a page with this style and this script, both inline."""
    rules = ["default-src 'none'", f"style-src {_source(style)}", "base-uri 'none'", "form-action 'none'"]
    rules += [f"script-src {_source(script)}"] if script else []
    return "; ".join(rules)


def _source(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
