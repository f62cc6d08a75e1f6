"""The gallery: investigations as cards that a person can read and check."""

from claims.build.gallery.page import Gallery, make_gallery
from claims.build.gallery.read import read_cards

__all__ = ["Gallery", "make_gallery", "read_cards"]
