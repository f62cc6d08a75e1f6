"""Foreign text made fit for a page.

Invariants: what comes out is escaped; no character in it can reorder, hide or end anything around it, because those
that could are shown by their code points.
"""

import re

from markupsafe import Markup, escape

# Controls but tab and line feed; marks and overrides of direction; zero-width space and the byte order mark; line and
# paragraph separators; tags and interlinear marks; lone surrogates and noncharacters. Joiners stay: scripts need them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)


def code_point(char: str) -> str:
    """How a character that would not show is written: `U+202E`."""
    return f"U+{ord(char):04X}"


def plain(text: str) -> str:
    """`text` with every character that would not show replaced by its code point; for attributes and titles."""
    return _HIDDEN.sub(lambda found: f"[{code_point(found.group())}]", text.replace("\r\n", "\n"))


def shown(text: str) -> Markup:
    """`text` as HTML: escaped, with every character that would not show as a marked code point."""
    text = text.replace("\r\n", "\n")
    pieces, end = [], 0
    for found in _HIDDEN.finditer(text):
        pieces += [escape(text[end : found.start()]), _mark(found.group())]
        end = found.end()
    return Markup("").join([*pieces, escape(text[end:])])


def _mark(char: str) -> Markup:
    return Markup('<span class="code-point">{}</span>').format(code_point(char))
