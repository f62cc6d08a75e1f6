"""The old place of `claims.atomic`, for modules that have not moved yet."""

from claims.atomic import write_atomically

__all__ = ["write_atomically"]
