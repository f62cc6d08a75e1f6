"""The table of targets and what a name on the command line means."""

import subprocess
import sys

import pytest

from claims.schema import UserError
from tools.chat import TEMPLATES
from tools.targets import PAPER_MEMBER, TARGETS, Target, families, get_target, resolve_target


def present(*names: str):
    return lambda target: target.name in names


def everything(target: Target) -> bool:
    return True


def nothing(target: Target) -> bool:
    return False


def test_the_table_imports_no_torch():
    code = "import sys, tools.targets; assert not {'torch', 'transformers', 'numpy'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_paper_s_targets_have_their_checkpoints_layers_and_saes():
    gemma, qwen = get_target("gemma-3-27b-it"), get_target("qwen3-8b")
    assert (gemma.checkpoint, gemma.n_layers) == ("google/gemma-3-27b-it", 62)
    assert gemma.sae.release == "gemma-scope-2-27b-it-res"
    assert gemma.sae.sae_id == "layer_31_width_65k_l0_medium"
    assert (gemma.sae.layer, gemma.sae.labels) == (31, "gemma-3-27b-it/31-gemmascope-2-res-65k")
    assert (qwen.checkpoint, qwen.n_layers) == ("Qwen/Qwen3-8B", 36)
    assert qwen.sae.release == "adamkarvonen/qwen3-8b-saes"
    assert (qwen.sae.layer, qwen.sae.labels) == (18, "qwen3-8b/18-resid-batchtopk-65k__l0-80")


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
def test_every_row_can_be_used(target: Target):
    assert target.source in {"hub", "wheel", "random"}
    assert target.sae is None or 0 <= target.sae.layer < target.n_layers
    assert target.chat.template == "tokenizer" or (TEMPLATES / target.chat.template).is_file()
    assert {"user", "assistant"} <= set(target.chat.roles)
    assert target.sampling.temperature > 0
    assert 0 < target.sampling.top_p <= 1
    if target.source == "hub":
        assert (target.sampling.temperature, target.sampling.max_tokens) == (1.0, 500)
    if target.source == "wheel":
        assert len(target.revision) == 64


def test_an_exact_name_is_itself_whatever_is_present():
    for name in TARGETS:
        assert resolve_target(name, present=nothing).name == name
        assert resolve_target(name, profile="paper", present=nothing).name == name


def test_a_family_means_its_largest_present_member():
    assert resolve_target("gemma", present=present("gemma-3-270m")).name == "gemma-3-270m"
    assert resolve_target("gemma", present=everything).name == "gemma-3-27b-it"
    assert resolve_target("qwen", present=present("qwen3-8b", "qwen3-32b")).name == "qwen3-32b"
    assert resolve_target("smollm2", present=present("smollm2-135m")).name == "smollm2-135m"
    assert resolve_target("llama", present=everything).name == "llama-3.1-8b"


def test_a_tiny_target_never_answers_to_a_family_name():
    tiny = [name for name in TARGETS if name.startswith("tiny")]
    assert len(tiny) == 3
    assert not {member.name for members in families().values() for member in members} & set(tiny)
    with pytest.raises(UserError, match="No member of the family 'gemma'"):
        resolve_target("gemma", present=present(*tiny))


def test_a_family_without_weights_names_its_members_and_the_remedy():
    with pytest.raises(UserError) as raised:
        resolve_target("qwen", present=nothing)
    text = str(raised.value)
    for part in ("qwen3-8b", "qwen3-32b", "qwen3.5-397b-a17b", "hf download Qwen/Qwen3-8B", "HF_HUB_OFFLINE"):
        assert part in text
    with pytest.raises(UserError, match="weights.txt"):
        resolve_target("smollm2", present=nothing)


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(UserError) as raised:
        resolve_target("gpt-2", present=everything)
    for name in (*TARGETS, "gemma", "qwen", "smollm2", "llama"):
        assert name in str(raised.value)
    with pytest.raises(UserError, match="Unknown target 'gemma'"):
        get_target("gemma")


def test_the_paper_s_profile_takes_the_paper_s_member_or_says_what_is_missing():
    for family, name in PAPER_MEMBER.items():
        assert resolve_target(family, profile="paper", present=everything).name == name
    smaller = present("gemma-3-270m", "qwen3-32b")
    with pytest.raises(UserError, match="needs gemma-3-27b-it.*hf download google/gemma-3-27b-it"):
        resolve_target("gemma", profile="paper", present=smaller)
    with pytest.raises(UserError, match="needs qwen3-8b"):
        resolve_target("qwen", profile="paper", present=smaller)
    with pytest.raises(UserError, match="no target of the family 'smollm2'"):
        resolve_target("smollm2", profile="paper", present=everything)
