"""A real vLLM server with vllm-lens: `make proofs` on a GPU machine; it says what the local model says."""

import socket
import subprocess
import time
from contextlib import closing
from importlib.util import find_spec

import pytest
import torch
from test_vllm import DECODING, items, local

from claims.schema import UserError
from tools.engines.address import VllmAddress
from tools.engines.vllm_server import VllmWriter, embedding_of
from tools.model import Loaded
from tools.steered import AfterBlock, AtEmbedding
from tools.weights import prepare


@pytest.mark.slow
@pytest.mark.skipif(not torch.cuda.is_available(), reason="vLLM's engine needs a GPU; there is none here")
@pytest.mark.skipif(find_spec("vllm_lens") is None, reason="the extra `vllm` is not installed")
def test_a_real_server_says_what_the_local_model_says(tiny_gemma: Loaded) -> None:
    folder = str(prepare(tiny_gemma.target))
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--enable-prompt-embeds", "--no-enable-prefix-caching", "--enforce-eager", "--dtype", "float32"]
    with subprocess.Popen(
        ["vllm", "serve", folder, "--port", str(port), "--served-model-name", "x", *options]
    ) as server:
        try:
            writer = VllmWriter(VllmAddress(f"http://127.0.0.1:{port}", "x"), embed=embedding_of(tiny_gemma.model))
            wait_for(writer, server)
            for injection in (AfterBlock(1), AtEmbedding()):
                here = local(tiny_gemma, items(), injection)
                there = writer.write(items(), injection, DECODING, prefix=0)
                assert [one.token_ids[:1] for one in there] == [one.token_ids[:1] for one in here]
        finally:
            server.kill()


def wait_for(writer: VllmWriter, server: "subprocess.Popen[bytes]") -> None:
    while True:
        try:
            writer.check()
        except UserError:
            assert server.poll() is None
            time.sleep(2)
        else:
            return
