"""The residual stream of a target at stored token ids. The only module with hooks.

Invariant: layer k is the stream after block k, from 0, as the model itself computes it: weights unprocessed, nothing
folded or centred. Hooks live for one forward pass in the model's own thread, which ends at the deepest block asked for,
or, those of `adding`, as long as its `with` block.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence

from jaxtyping import Float, Int
from torch import Tensor, nn

from claims.schema import UserError
from tools.memory import halving
from tools.model import Loaded, decoder_layers
from tools.nnsight_import import import_nnsight
from tools.padding import pad

MAX_POSITIONS = 4096
"""Rows times their longest length in one forward pass."""

Activations = dict[int, Float[Tensor, "tokens d_model"]]
"""One sequence's residual stream by layer: float32, CPU, unpadded."""

_Captured = dict[int, Float[Tensor, "rows tokens d_model"]]


class ActivationError(RuntimeError):
    """The model computed something that is no number: our fault or the weights', never a predictor's."""


class _DeepestReached(Exception):  # noqa: N818 - it is no error
    """Ends a forward pass that has nothing more to give."""


class ActivationReader(ABC):
    """Reads activations of one loaded target. A reader may rewire the model: give each its own `Loaded`."""

    def __init__(self, loaded: Loaded) -> None:
        """Attach to the model, in the model's thread."""
        self.loaded = loaded
        loaded.thread.run(self._attach)

    @abstractmethod
    def _attach(self) -> None:
        """Wrap the model."""

    @abstractmethod
    def _capture(
        self, token_ids: Int[Tensor, "rows tokens"], mask: Int[Tensor, "rows tokens"], layers: Sequence[int]
    ) -> _Captured:
        """Run right-padded rows up to the last of `layers`, which ascend."""

    def read(
        self, batch: Sequence[Sequence[int]], layers: Collection[int], *, names: Sequence[str] | None = None
    ) -> list[Activations]:
        """The residual stream at every position of every sequence; callers in other threads wait their turn.

        Args:
            batch: Token ids, a sequence each, of any lengths; a result does not depend on its neighbours.
            layers: Blocks, from 0.
            names: What to call the sequences in an error; their place in the batch by default.

        Raises:
            ValueError: No layer, or one that the target does not have.
            UserError: A sequence is empty, too long, or has an id that is no token of the target's.
            ActivationError: A value is infinite or not a number.
            OutOfMemory: One sequence alone does not fit.
        """
        wanted = self._check_layers(layers)
        called = list(names) if names is not None else [f"number {i} of the batch" for i in range(len(batch))]
        for name, token_ids in zip(called, batch, strict=True):
            self._check_ids(name, token_ids)
        return self.loaded.thread.run(lambda: self._read(batch, wanted, called))

    def _read(self, batch: Sequence[Sequence[int]], layers: list[int], names: Sequence[str]) -> list[Activations]:
        found: dict[int, Activations] = {}
        for group in _groups(batch):
            read = halving(lambda part: self._read_rows([batch[i] for i in part], layers), group)
            found.update(zip(group, read, strict=True))
        for i in range(len(batch)):
            _check_finite(names[i], found[i])
        return [found[i] for i in range(len(batch))]

    def _read_rows(self, rows: Sequence[Sequence[int]], layers: list[int]) -> list[Activations]:
        captured = self._capture(*pad(rows, self.loaded.device), layers)
        return [
            {k: captured[k][row, : len(token_ids)].float().cpu() for k in layers} for row, token_ids in enumerate(rows)
        ]

    def _check_layers(self, layers: Collection[int]) -> list[int]:
        n_layers = self.loaded.target.n_layers
        wrong = [k for k in layers if not 0 <= k < n_layers]
        if wrong or not layers:
            raise ValueError(f"layers {sorted(layers)}: expected at least one, each from 0 to {n_layers - 1}")
        return sorted(set(layers))

    def _check_ids(self, name: str, token_ids: Sequence[int]) -> None:
        config = self.loaded.model.config.get_text_config()
        if not 0 < len(token_ids) <= config.max_position_embeddings:
            raise UserError(
                f"Transcript {name} has {len(token_ids)} tokens; {self.loaded.target.name} reads 1 to "
                f"{config.max_position_embeddings}. Leave this transcript out."
            )
        if min(token_ids) < 0 or max(token_ids) >= config.vocab_size:
            raise UserError(
                f"Transcript {name} has the token id {max(token_ids)}; {self.loaded.target.name} has ids 0 to "
                f"{config.vocab_size - 1}. It is another target's transcript: build it for this one."
            )


class TransformerLensReader(ActivationReader):
    """Reads through transformer-lens' TransformerBridge, which replaces the model's blocks by its own."""

    def _attach(self) -> None:
        # Imported here, as nnsight is below: each takes seconds, and a process needs one of them.
        from transformer_lens.model_bridge import TransformerBridge

        # The model is given, so the name is looked up nowhere; a bare one may be an alias, which the library warns of.
        self._bridge = TransformerBridge.boot_transformers(
            f"uplift/{self.loaded.target.name}",
            hf_model=self.loaded.model,
            tokenizer=self.loaded.tokenizer,
            device=str(self.loaded.device),
            dtype=self.loaded.dtype,
        )

    def _capture(
        self, token_ids: Int[Tensor, "rows tokens"], mask: Int[Tensor, "rows tokens"], layers: Sequence[int]
    ) -> _Captured:
        captured: _Captured = {}

        def keep(k: int, value: Tensor) -> None:
            captured[k] = value.detach().clone()
            if k == layers[-1]:
                raise _DeepestReached

        hooks = [(f"blocks.{k}.hook_out", lambda value, hook, k=k: keep(k, value)) for k in layers]  # noqa: ARG005
        # Not stop_at_layer: it stops before a block, so it would run the LM head after the last one.
        with self._bridge.hooks(fwd_hooks=hooks), contextlib.suppress(_DeepestReached):
            self._bridge(token_ids, attention_mask=mask, return_type=None)
        return captured


class NNsightReader(ActivationReader):
    """Reads through an nnsight trace of the decoder, which leaves the model as it is."""

    def _attach(self) -> None:
        nnsight = import_nnsight()
        self._decoder = nnsight.NNsight(self.loaded.model.get_decoder())
        self._save = nnsight.save

    def _capture(
        self, token_ids: Int[Tensor, "rows tokens"], mask: Int[Tensor, "rows tokens"], layers: Sequence[int]
    ) -> _Captured:
        captured: dict[int, Tensor | tuple[Tensor, ...]] = {}
        with self._decoder.trace(input_ids=token_ids, attention_mask=mask, use_cache=False) as tracer:
            for k in layers:
                captured[k] = self._save(self._decoder.layers[k].output)
            tracer.stop()
        return {k: value[0] if isinstance(value, tuple) else value for k, value in captured.items()}


class PlainHookReader(ActivationReader):
    """The reference that the backends are held against: torch's own forward hooks, and an exception to stop."""

    def _attach(self) -> None:
        self._layers = decoder_layers(self.loaded.model)

    def _capture(
        self, token_ids: Int[Tensor, "rows tokens"], mask: Int[Tensor, "rows tokens"], layers: Sequence[int]
    ) -> _Captured:
        captured: _Captured = {}

        def keep(k: int, output: Tensor | tuple[Tensor, ...]) -> None:
            captured[k] = output[0] if isinstance(output, tuple) else output
            if k == layers[-1]:
                raise _DeepestReached

        with contextlib.ExitStack() as hooks:
            for k in layers:
                handle = self._layers[k].register_forward_hook(lambda block, args, output, k=k: keep(k, output))  # noqa: ARG005
                hooks.callback(handle.remove)
            with contextlib.suppress(_DeepestReached):
                self.loaded.model.get_decoder()(input_ids=token_ids, attention_mask=mask, use_cache=False)
        return captured


READERS: dict[str, type[ActivationReader]] = {"transformer-lens": TransformerLensReader, "nnsight": NNsightReader}

REMOTE_READER = "ndif"
"""Reads on other people's machines (`tools.ndif`), so it is no part of what is compared here."""

DEFAULT_READER = "nnsight"
"""Measured by `make parity`: the faster one, and equal to a plain hook to the last bit."""


def make_reader(name: str, loaded: Loaded) -> ActivationReader:
    """The backend called `name`, attached to a target.

    Raises:
        UserError: There is no such backend.
    """
    if name == REMOTE_READER:
        from tools.ndif import NdifReader

        return NdifReader(loaded)
    if name not in READERS:
        raise UserError(f"Unknown reader {name!r}. Expected one of: {', '.join([*READERS, REMOTE_READER])}.")
    return READERS[name](loaded)


@contextlib.contextmanager
def adding(
    model: nn.Module,
    block: int,
    rows: Int[Tensor, " n"],
    positions: Int[Tensor, " n"],
    vectors: Float[Tensor, "n d_model"],
    *,
    coefficient: float = 1.0,
) -> Iterator[None]:
    """While open, add a vector to the residual stream at chosen places: h becomes h + coefficient * |h| * v / |v|.

    Only forward passes with more than one token a row are touched, so that decoding after the prompt is left alone.
    Norms are taken in float32. What is added is a constant to autograd, as in the oracles' own training; gradients
    flow through h. A zero vector adds nothing.

    Args:
        model: A language model, wrapped by peft or not.
        block: The block whose output is changed, from 0.
        rows: The row of the batch of each vector.
        positions: The column of each vector, padding counted.
        vectors: One a place, of any length but zero.
        coefficient: How much of h's own norm is added.

    Raises:
        ValueError: No such block, or as many rows, positions and vectors as one another there are not.
    """
    layers = decoder_layers(model)
    if not 0 <= block < len(layers):
        raise ValueError(f"block {block}: expected one from 0 to {len(layers) - 1}")
    if not len(rows) == len(positions) == len(vectors):
        raise ValueError(f"{len(rows)} rows, {len(positions)} positions, {len(vectors)} vectors: expected one of each")
    directions = nn.functional.normalize(vectors.detach().float(), dim=-1)

    def add(module: nn.Module, args: object, output: Tensor | tuple[Tensor, ...]) -> Tensor | tuple[Tensor, ...]:  # noqa: ARG001
        stream = output[0] if isinstance(output, tuple) else output
        if stream.shape[1] <= 1:
            return output
        changed = _with_added(stream, rows, positions, directions, coefficient)
        return (changed, *output[1:]) if isinstance(output, tuple) else changed

    handle = layers[block].register_forward_hook(add)
    try:
        yield
    finally:
        handle.remove()


def _with_added(stream: Tensor, rows: Tensor, positions: Tensor, directions: Tensor, coefficient: float) -> Tensor:
    place = (rows.to(stream.device), positions.to(stream.device))
    before = stream[place]
    norms = before.detach().float().norm(dim=-1, keepdim=True)
    added = coefficient * norms * directions.to(stream.device)
    return stream.index_put(place, before + added.to(stream.dtype))


def _groups(batch: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Places of the batch's sequences, those of like length together, within `MAX_POSITIONS` unless alone."""
    group: list[int] = []
    for i in sorted(range(len(batch)), key=lambda i: len(batch[i])):
        if group and (len(group) + 1) * len(batch[i]) > MAX_POSITIONS:
            yield group
            group = []
        group.append(i)
    if group:
        yield group


def _check_finite(name: str, activations: Activations) -> None:
    for layer, values in activations.items():
        bad = (~values.isfinite()).any(dim=-1).nonzero()
        if len(bad):
            position = int(bad[0])
            value = values[position][~values[position].isfinite()][0].item()
            raise ActivationError(
                f"Transcript {name}: the residual stream after block {layer} holds {value} at position {position} "
                f"({len(bad)} of {len(values)} positions are affected). Expected finite numbers: check the weights, "
                "and load them in bfloat16 or float32."
            )
