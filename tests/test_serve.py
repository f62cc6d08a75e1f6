"""The process of a tool server: real ones, with the tiny target."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client

from tests.tool_bench import call, write_transcripts
from tools import serve
from tools.model import Loaded

WAIT = 120
"""Seconds that a busy machine may take; a quiet one takes 5."""


@pytest.fixture(scope="module")
def transcripts(tmp_path_factory: pytest.TempPathFactory, tiny_gemma: Loaded) -> Path:
    return write_transcripts(tmp_path_factory.mktemp("transcripts"), tiny_gemma)


def start(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tools.serve", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def refuse(*arguments: str) -> tuple[int, str, str]:
    # Standard input stays open: its end would be a reason of its own to leave.
    with start(*arguments) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        status = process.wait(WAIT)
        return status, process.stdout.read(), process.stderr.read()


@pytest.fixture(scope="module")
def running(transcripts: Path) -> Iterator["subprocess.Popen[str]"]:
    with start("sae", "--target", "tiny-gemma", "--transcripts", str(transcripts)) as process:
        yield process
        process.kill()


@pytest.fixture(scope="module")
def url(running: "subprocess.Popen[str]") -> str:
    assert running.stdout is not None
    return str(json.loads(running.stdout.readline())["url"])


def ask(url: str, name: str, **arguments: object) -> tuple[bool, str]:
    async def asked() -> tuple[bool, str]:
        async with Client(url) as client:
            return await call(client, name, **arguments)

    return asyncio.run(asked())


def test_answers_are_sent_at_once_which_asyncio_does_for_named_tcp_sockets_only() -> None:
    with serve._listen(0) as listener:
        assert listener.proto == socket.IPPROTO_TCP
        assert listener.getsockname()[0] == "127.0.0.1"


def test_it_says_where_it_is_and_answers_there(url: str) -> None:
    assert url.startswith("http://127.0.0.1:")
    assert url.endswith("/mcp")
    about = json.loads(ask(url, "about")[1])
    assert (about["tool"], about["target"], about["n_transcripts"]) == ("sae", "tiny-gemma", 2)
    mistake, text = ask(url, "read_features", transcript_id="first", positions=[3, 1])
    assert not mistake
    assert [line[:3] for line in text.split("\n")] == ["[3]", "[1]"]


def test_its_mistakes_and_faults_cross_the_wire_apart(url: str) -> None:
    assert ask(url, "read_features", transcript_id="first", positions=[10_000])[0]
    with pytest.raises(ExceptionGroup) as error:
        ask(url, "read_features", transcript_id="nobody", positions=[1])
    assert "No transcript 'nobody' is registered" in repr(error.value)


def test_a_second_one_takes_another_port_outlives_its_standard_input_if_told_to_and_ends_on_a_signal(
    url: str, transcripts: Path
) -> None:
    arguments = ("sae", "--target", "tiny-gemma", "--transcripts", str(transcripts), "--ignore-stdin")
    with start(*arguments) as second:
        assert second.stdin is not None
        assert second.stdout is not None
        second.stdin.close()
        other = json.loads(second.stdout.readline())["url"]
        assert other != url
        assert ask(other, "about")[1] == ask(url, "about")[1]
        second.send_signal(signal.SIGTERM)
        assert second.wait(WAIT) == 0


def test_it_ends_with_its_standard_input_and_has_printed_one_line(running: "subprocess.Popen[str]", url: str) -> None:
    """Last of the tests that use the shared server."""
    assert ask(url, "about")
    assert running.stdin is not None
    assert running.stdout is not None
    running.stdin.close()
    assert running.wait(WAIT) == 0
    assert running.stdout.read() == ""


def test_it_does_not_outlive_a_parent_that_was_killed(transcripts: Path) -> None:
    parent = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-m', 'tools.serve', *sys.argv[1:]],\n"
        "                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "print(child.pid, child.stdout.readline().decode(), flush=True)\n"
        "child.wait()\n"
    )
    command = [sys.executable, "-c", parent, "sae", "--target", "tiny-gemma", "--transcripts", str(transcripts)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline().split()[0])
        pidfd = os.pidfd_open(child)
        process.kill()
        # The descriptor becomes readable when the child has ended.
        asyncio.run(_ended(pidfd))
        os.close(pidfd)


async def _ended(pidfd: int) -> None:
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    loop.add_reader(pidfd, done.set_result, None)
    async with asyncio.timeout(WAIT):
        await done
    loop.remove_reader(pidfd)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("probe", "--target", "tiny-gemma"), "Unknown tool 'probe'. Known tools: sae"),
        (("sae", "--target", "gemma-4"), "Unknown target 'gemma-4'. Known targets: gemma-3-27b-it"),
        (("sae", "--target", "tiny-gemma", "--port", "70000"), "Port 70000 cannot be used"),
    ],
)
def test_what_a_user_must_mend_is_said_on_standard_error(
    transcripts: Path, arguments: tuple[str, ...], text: str
) -> None:
    status, out, err = refuse(*arguments, "--transcripts", str(transcripts))
    assert (status, out) == (2, "")
    assert err.startswith(text)
    assert "Traceback" not in err


def test_a_folder_with_labels_is_refused(tmp_path: Path, transcripts: Path) -> None:
    (tmp_path / "transcripts.jsonl").write_bytes((transcripts / "transcripts.jsonl").read_bytes())
    (tmp_path / "labels.jsonl").write_text("{}\n", encoding="utf-8")
    status, out, err = refuse("sae", "--target", "tiny-gemma", "--transcripts", str(tmp_path))
    assert (status, out) == (2, "")
    assert "has labels.jsonl in it" in err


def test_an_engine_that_is_not_there_is_refused_before_a_model_is_loaded(transcripts: Path) -> None:
    arguments = ("sae", "--target", "tiny-gemma", "--transcripts", str(transcripts))
    status, out, err = refuse(*arguments, "--engine", "tpu")
    assert (status, out) == (2, "")
    assert err.startswith("Unknown engine 'tpu'. Known engines: local, ray")


def test_a_vllm_engine_without_an_address_is_refused_before_a_model_is_loaded(transcripts: Path) -> None:
    arguments = ("sae", "--target", "tiny-gemma", "--transcripts", str(transcripts))
    status, out, err = refuse(*arguments, "--engine", "vllm")
    assert (status, out) == (2, "")
    assert err.startswith("The engine vllm was given the address None.")
