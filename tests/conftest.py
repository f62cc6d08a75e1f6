"""What all tests share: no network but loopback, a cache of their own, and targets loaded once a session."""

import ipaddress
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tools.model import Loaded, load
from tools.targets import get_target
from tools.weights import cache_root

REAL_CACHE = cache_root()


def _refuse_strangers(address: object) -> None:
    if not isinstance(address, tuple):
        return
    host = str(address[0])
    if host in ("localhost", ""):
        return
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise RuntimeError(f"a test tried to reach {address}; tests may use loopback only")


@pytest.fixture(scope="session", autouse=True)
def no_network() -> Iterator[None]:
    """Sockets connect to this machine only."""
    patch = pytest.MonkeyPatch()
    for name in ("connect", "connect_ex"):
        original = getattr(socket.socket, name)

        def guarded(self: socket.socket, address: object, original: Callable[..., object] = original) -> object:
            _refuse_strangers(address)
            return original(self, address)

        patch.setattr(socket.socket, name, guarded)
    yield
    patch.undo()


@pytest.fixture(scope="session", autouse=True)
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache folder for the session, so that tests neither need nor change the user's. Child processes inherit it."""
    folder = tmp_path_factory.mktemp("cache")
    patch = pytest.MonkeyPatch()
    patch.setenv("UPLIFT_CACHE", str(folder))
    yield folder
    patch.undo()


@pytest.fixture
def real_cache(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own cache for one test: real local models are converted there once, not in every session."""
    monkeypatch.setenv("UPLIFT_CACHE", str(REAL_CACHE))
    return REAL_CACHE


def load_real(name: str, dtype: str) -> Loaded:
    """A real local target from the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UPLIFT_CACHE", str(REAL_CACHE))
        return load(get_target(name), dtype=dtype, device="cpu")


@pytest.fixture(scope="session")
def tiny_gemma() -> Loaded:
    """Random Gemma 3, float32."""
    return load(get_target("tiny-gemma"), dtype="float32", device="cpu")


@pytest.fixture(scope="session")
def tiny_qwen() -> Loaded:
    """Random Qwen 3, float32."""
    return load(get_target("tiny-qwen"), dtype="float32", device="cpu")


@pytest.fixture(scope="session")
def real_gemma() -> Loaded:
    """Gemma-3-270m as it is run: bfloat16."""
    return load_real("gemma-3-270m", "bfloat16")


@pytest.fixture(scope="session")
def real_smollm2() -> Loaded:
    """SmolLM2-135M as it is run: bfloat16."""
    return load_real("smollm2-135m", "bfloat16")
