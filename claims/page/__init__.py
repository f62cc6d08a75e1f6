"""Pages for a browser: one file each, in which foreign text is text and nothing else."""

from claims.page.html import Page, render
from claims.page.safe import shown

__all__ = ["Page", "render", "shown"]
