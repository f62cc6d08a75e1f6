"""Remote activations without a network: nnsight's own dry run serializes the block and runs it here."""

import pytest
import torch

from claims.schema import UserError
from tools.activations import ActivationError, PlainHookReader, make_reader
from tools.engines.app import Wanted, build_app
from tools.model import Loaded
from tools.ndif import NdifReader, load_hollow, require_key
from tools.nnsight_import import import_nnsight
from tools.registered import Registered
from tools.targets import get_target

BATCH = [[2, 20, 30, 40, 50], [2, 21, 31], list(range(10, 40))]


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_nnsight().CONFIG.API, "APIKEY", "a key")


@pytest.fixture
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_nnsight().CONFIG.API, "APIKEY", None)


class DryRun(NdifReader):
    """The remote path up to the wire, with the weights here."""

    remote = "local"

    def _options(self) -> dict[str, object]:
        return {**super()._options(), "dispatch": True, "dtype": torch.float32}


@pytest.mark.parametrize("name", ["tiny-gemma", "tiny-qwen"])
def test_what_the_fabric_would_run_gives_the_plain_hooks_activations(
    key: None, name: str, tiny_gemma: Loaded, tiny_qwen: Loaded
) -> None:
    whole = tiny_gemma if name == "tiny-gemma" else tiny_qwen
    hollow = load_hollow(get_target(name))
    assert all(weight.is_meta for weight in hollow.model.parameters())
    assert (hollow.weights, hollow.d_model) == (whole.weights, whole.d_model)
    remote = DryRun(hollow).read(BATCH, [0, 2])
    plain = PlainHookReader(whole).read(BATCH, [0, 2])
    for one, other in zip(remote, plain, strict=True):
        torch.testing.assert_close(one, other)


def test_without_a_key_the_user_is_told_where_to_get_one(no_key: None, tiny_gemma: Loaded) -> None:
    for attempt in (
        require_key,
        lambda: load_hollow(get_target("tiny-gemma")),
        lambda: make_reader("ndif", tiny_gemma),
        lambda: build_app(Wanted("sae", "tiny-gemma", Registered({}, ""), reader="ndif")),
    ):
        with pytest.raises(UserError, match="no key .* Expected one in NDIF_API_KEY.*--activations nnsight"):
            attempt()


@pytest.mark.parametrize("tool", ["ao", "nla"])
def test_a_tool_that_writes_needs_the_weights_here(key: None, tool: str) -> None:
    with pytest.raises(UserError, match=f"The tool {tool} writes its answers with the target's own weights"):
        build_app(Wanted(tool, "tiny-gemma", Registered({}, ""), reader="ndif"))


def test_what_goes_wrong_at_the_fabric_is_our_fault(key: None, monkeypatch: pytest.MonkeyPatch) -> None:
    hollow = load_hollow(get_target("tiny-gemma"))
    monkeypatch.setattr(NdifReader, "remote", "http://127.0.0.1:9")
    reader = make_reader("ndif", hollow)
    with pytest.raises(ActivationError, match="The fabric gave no activations of gemma3_text"):
        reader.read([[2, 20, 30]], [1])
