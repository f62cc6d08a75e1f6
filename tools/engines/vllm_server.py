"""Answers from a vLLM server: the GPU engine behind the same interface as `tools.steered.generate`.

Invariant: vLLM batches what it is sent, so every item is a request of its own; results keep the order of the items.
Activations are read by this process or by another backend; only the writing of answers is done there.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx
import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel

from claims.schema import UserError
from tools.engines.address import VllmAddress
from tools.engines.vllm_wire import Embed, WireError, completion_request, read_answer
from tools.owner import ModelThread
from tools.steered import Generated, Injection, Steered
from tools.writer import Decoding

IN_FLIGHT = 64
"""Requests at a time; the server queues and batches them."""
TIMEOUT_S = 240.0
"""Longest wait for one answer, below that of a host."""


def embedding_of(model: PreTrainedModel) -> Embed:
    """Embeds a prompt as `model` does, in its dtype."""
    module = model.get_input_embeddings()

    def embed(prompt_ids: tuple[int, ...]) -> Float[Tensor, "tokens d_model"]:
        with torch.inference_mode():
            rows: Tensor = module(torch.tensor(prompt_ids, device=module.weight.device))
        return rows

    return embed


class VllmWriter:
    """Writes answers on a vLLM server."""

    def __init__(self, address: VllmAddress, *, embed: Embed) -> None:
        """Connect to nothing yet; `check` asks whether the server is there.

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

    def write(
        self,
        items: Sequence[Steered],
        injection: Injection,
        decoding: Decoding,
        *,
        prefix: int,  # noqa: ARG002 - the server finds shared prefixes itself
    ) -> list[Generated]:
        """As `tools.steered.generate`.

        Raises:
            WireError: The server is gone, answered with an error, or out of contract.
        """
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


def checked_writer(address: VllmAddress, *, embed: Embed) -> VllmWriter:
    """A writer on a server that answers and has the model.

    Raises:
        UserError: Nothing answers, or it has no model of that name.
    """
    writer = VllmWriter(address, embed=embed)
    writer.check()
    return writer
