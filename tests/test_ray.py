"""Ray Serve for real, with the tiny target: `make proofs`, where the extra `ray` is installed.

The kill is certain to hit calls in flight: the replica is stopped first, so that calls pile up in it, then killed.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from agents.connect import ToolServer, connect
from tests.tool_bench import write_transcripts
from tools.model import Loaded

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(find_spec("ray") is None, reason="the extra `ray` is not installed"),
]

CALLERS = 8
CALLS = 25


@dataclass(frozen=True)
class Cluster:
    process: "subprocess.Popen[str]"
    url: str
    log: Path


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, tiny_gemma: Loaded) -> Iterator[Cluster]:
    transcripts = write_transcripts(tmp_path_factory.mktemp("transcripts"), tiny_gemma)
    log = tmp_path_factory.mktemp("log") / "stderr"
    command = [sys.executable, "-m", "tools.serve", "sae", "--target", "tiny-gemma", "--transcripts", str(transcripts)]
    command += ["--engine", "ray", "--replicas", "2", "--min-replicas", "2", "--device", "cpu"]
    with (
        log.open("w") as stderr,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, log.read_text(encoding="utf-8")
        yield Cluster(process, json.loads(line)["url"], log)
        process.kill()


def replicas(cluster: Cluster) -> set[int]:
    """Process ids of the cluster's replicas."""
    # Ray writes what a process does into its title: idle, or answering.
    name = f"uplift-sae-tiny-gemma-{cluster.process.pid}"
    titles = (f"ray::ServeReplica:{name}:", f"ray::SERVE_REPLICA::{name}#")
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                command = (folder / "cmdline").read_text(encoding="utf-8")
            except OSError:
                continue
            if command.startswith(titles):
                found.add(int(folder.name))
    return found


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(180):
        while not holds():
            await asyncio.sleep(0.1)


async def calls(server: ToolServer, caller: int, done: list[int]) -> list[str]:
    (tool,) = await server.tools()
    answers = []
    for call in range(CALLS):
        positions = [(caller + call + i) % 30 for i in range(1 + call % 4)]
        answers.append(await server.call(tool, {"positions": positions}, "first"))
        done.append(caller)
    return answers


async def under_load(cluster: Cluster, *, kill: bool) -> list[list[str]]:
    done: list[int] = []
    server = connect(cluster.url)
    running = [asyncio.create_task(calls(server, caller, done)) for caller in range(CALLERS)]
    if kill:
        await until(lambda: len(done) > CALLERS)
        victim = min(replicas(cluster))
        os.kill(victim, signal.SIGSTOP)
        # The other replica goes on until every caller has a call in the stopped one, or nearly all.
        before = -1
        while before != len(done):
            before = len(done)
            await asyncio.sleep(0.5)
        assert len(done) < CALLERS * CALLS
        os.kill(victim, signal.SIGKILL)
    return await asyncio.gather(*running)


def test_two_replicas_answer_at_one_address(cluster: Cluster) -> None:
    assert len(replicas(cluster)) == 2

    async def steps() -> None:
        about = await connect(cluster.url).about()
        assert (about.tool, about.target, about.n_transcripts) == ("sae", "tiny-gemma", 2)

    asyncio.run(steps())


def test_a_replica_that_is_killed_under_load_loses_no_call_and_is_replaced(cluster: Cluster) -> None:
    calm = asyncio.run(under_load(cluster, kill=False))
    before = replicas(cluster)
    assert asyncio.run(under_load(cluster, kill=True)) == calm
    assert [len(answers) for answers in calm] == [CALLS] * CALLERS
    assert "a replica was lost" in cluster.log.read_text(encoding="utf-8")
    asyncio.run(until(lambda: len(replicas(cluster)) == 2 and replicas(cluster) != before))
    assert asyncio.run(under_load(cluster, kill=False)) == calm


def test_nothing_is_left_when_the_server_ends(cluster: Cluster) -> None:
    """Last of the tests that use the shared cluster."""
    assert cluster.process.stdin is not None
    cluster.process.stdin.close()
    assert cluster.process.wait(120) == 0
    asyncio.run(until(lambda: not replicas(cluster)))
