"""Keys, and how they are kept out of everything that is written down.

Invariant: a key lives in the environment and in the header of a request. Whatever a provider, a proxy or a library
says about it is shown without it.
"""

import os
from collections.abc import Collection, Mapping
from typing import TypeVar, cast

Value = TypeVar("Value")

HIDDEN = "[key]"
_NAMES = ("_API_KEY", "_AUTH_TOKEN", "_ACCESS_TOKEN", "_SECRET_KEY")
_SHORTEST = 8
"""Shorter values are placeholders such as `none`, and words of ordinary text."""


def key_names(environment: Mapping[str, str]) -> list[str]:
    """Names of the variables in `environment` that hold keys."""
    return [name for name in environment if name.endswith(_NAMES)]


def without_keys(environment: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """`environment` without the variables `names`, for a process that has no business with them."""
    return {name: value for name, value in environment.items() if name not in names}


def hide(text: str) -> str:
    """`text` with every key of this process blotted out."""
    keys = {os.environ[name] for name in key_names(os.environ)}
    for key in sorted((key for key in keys if len(key) >= _SHORTEST), key=len, reverse=True):
        text = text.replace(key, HIDDEN)
    return text


def hide_in(value: Value) -> Value:
    """A JSON-like value with every key blotted out of its texts."""
    hidden: object = value
    if isinstance(value, str):
        hidden = hide(value)
    elif isinstance(value, dict):
        hidden = {hide_in(name): hide_in(inner) for name, inner in value.items()}
    elif isinstance(value, list):
        hidden = [hide_in(inner) for inner in value]
    return cast(Value, hidden)
