"""Answers from a vLLM server: the GPU engine behind the same interface as `tools.steered.generate`.

Invariant: vLLM batches what it is sent, so every item is a request of its own; results keep the order of the items.
Activations are read by this process or by another backend; only the writing of answers is done there.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from claims.schema import UserError
from tools.engines.vllm_wire import Decoding, Embed, WireError, completion_request, read_answer
from tools.owner import ModelThread
from tools.steered import Generated, Injection, Steered

IN_FLIGHT = 64
"""Requests at a time; the server queues and batches them."""
TIMEOUT_S = 240.0
"""Longest wait for one answer, below that of a host."""


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


class VllmWriter:
    """Writes answers on a vLLM server."""

    def __init__(self, address: VllmAddress, *, embed: Embed) -> None:
        """Connect to nothing yet.

        Args:
            address: Where the server is.
            embed: Embeds a prompt as the model that writes does.
        """
        self._address = address
        self._embed = embed
        self._client = httpx.Client(
            timeout=httpx.Timeout(TIMEOUT_S, connect=10),
            limits=httpx.Limits(max_connections=IN_FLIGHT, max_keepalive_connections=IN_FLIGHT),
        )
        self.thread = ModelThread("vllm")

    def check(self) -> None:
        """Ask the server what it has.

        Raises:
            UserError: Nothing answers, or it has no model of that name.
        """
        url = f"{self._address.url}/v1/models"
        try:
            names = [row["id"] for row in self._client.get(url).raise_for_status().json()["data"]]
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"No vLLM server answers at {url} ({type(error).__name__}: {error}). Start one and pass --vllm-url."
            ) from error
        if self._address.model not in names:
            raise UserError(
                f"The vLLM server at {self._address.url} has {', '.join(names)}, but not {self._address.model!r}. Pass "
                "its name there as --vllm-model (a LoRA module is named by `--lora-modules NAME=FOLDER`)."
            )

    def generate(
        self,
        items: Sequence[Steered],
        injection: Injection,
        *,
        max_tokens: int,
        temperature: float,
        top_p: float,
        stop: str | None,
    ) -> list[Generated]:
        """As `tools.steered.generate`; the server finds shared prefixes itself.

        Raises:
            WireError: The server is gone, answered with an error, or out of contract.
        """
        decoding = Decoding(max_tokens, temperature, top_p, stop)
        bodies = [
            completion_request(self._address.model, item, injection, decoding, embed=self._embed) for item in items
        ]
        with ThreadPoolExecutor(max_workers=min(IN_FLIGHT, max(1, len(bodies)))) as pool:
            return list(pool.map(self._post, bodies))

    def _post(self, body: dict[str, object]) -> Generated:
        try:
            answer = self._client.post(f"{self._address.url}/v1/completions", json=body)
        except httpx.HTTPError as error:
            raise WireError(
                f"The vLLM server at {self._address.url} is gone ({type(error).__name__}: {error}). Start it again."
            ) from error
        return read_answer(answer.status_code, answer.text)
