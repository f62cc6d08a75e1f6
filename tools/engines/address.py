"""Where a vLLM server is.

Invariant: standard library only, so that a wrong address is refused before torch is imported.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from claims.schema import UserError


@dataclass(frozen=True)
class VllmAddress:
    """Where answers are written."""

    url: str
    """Such as http://127.0.0.1:8000; `/v1` is added."""
    model: str
    """The name there of what writes: a checkpoint, or the LoRA module of an oracle."""


def check_address(url: str | None, model: str) -> VllmAddress:
    """An address that could be one.

    Raises:
        UserError: There is none, or it is no HTTP URL.
    """
    if url is None or urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
        raise UserError(
            f"The engine vllm was given the address {url!r}. Expected the URL of a running vLLM server, such as "
            "http://127.0.0.1:8000. Start one with `vllm serve MODEL --enable-prompt-embeds` and pass --vllm-url."
        )
    return VllmAddress(url.rstrip("/").removesuffix("/v1"), model)
