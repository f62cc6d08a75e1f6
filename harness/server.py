"""The tool server of a run: started, attached to, and stopped.

Invariants: a server that we start dies with us, however we die, because it ends when its standard input does; it is
given a folder with `transcripts.jsonl` and nothing else; one that we attach to must say that it serves this tool,
this target and these very transcripts.
"""

import asyncio
import hashlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agents.connect import check_foreign, check_server
from agents.foreign import is_foreign
from agents.predictors import provider_keys
from agents.secrets import without_keys
from agents.served import About
from claims.schema import UserError
from harness.files import write_text
from tools.donors import donors_sha256, donors_text

START_TIMEOUT_S = 900.0
"""Longest wait for a server to say that it answers; the first start may have to convert or load big weights."""
_STOP_TIMEOUT_S = 10.0
_TAIL_CHARS = 2000


class ServerStartError(RuntimeError):
    """A tool server of ours did not come up, and not by a mistake of the user. A fault of ours."""


@dataclass(frozen=True)
class Wanted:
    """What a run needs to be served."""

    tool: str
    """Name of the tool."""
    target: str
    """Name of the target."""
    transcripts: Path
    """The `transcripts.jsonl` of the claims folder."""
    positions: int
    """Most positions in one call."""
    donors: Mapping[str, str] | None = None
    """For its sham, by transcript id; None when no arm reads the sham."""


@dataclass(frozen=True)
class Attached:
    """A server that answers as wanted."""

    url: str
    """Where it listens."""
    about: About
    """What it says about itself."""
    sham_url: str | None
    """Where its sham does; None when none is wanted."""
    sham_about: About | None
    """What the sham says about itself."""
    process: subprocess.Popen[bytes] | None
    """Ours to stop; None when somebody else started it."""
    log: Path | None
    """Where our process writes what it has to say."""

    def ended(self) -> str | None:
        """What to tell the user when the process is gone; None while it runs, or when it is not ours."""
        if self.process is None or self.process.poll() is None:
            return None
        return f"The {self.about.tool} server ended with status {self.process.returncode} (its log: {self.log})."


def serving_folder(transcripts: Path, root: Path) -> Path:
    """A folder that holds a copy of `transcripts` and nothing else, named after its content.

    Args:
        transcripts: A `transcripts.jsonl`.
        root: The results folder.
    """
    content = transcripts.read_bytes()
    folder = root / ".served" / hashlib.sha256(content).hexdigest()[:16]
    write_text(folder / "transcripts.jsonl", content.decode("utf-8"))
    return folder


@contextmanager
def tool_server(wanted: Wanted, root: Path, *, url: str | None = None) -> Iterator[Attached]:
    """A server that answers as `wanted`: the one at `url`, or one of our own that ends with the block.

    Args:
        wanted: Tool, target, transcripts, positions.
        root: The results folder; the server's log goes there.
        url: Attach to this one and leave it running.

    Raises:
        UserError: The server serves something else, or cannot start for a reason that the user can mend.
        ServerStartError: It did not come up.
    """
    if is_foreign(wanted.tool):
        yield Attached(wanted.tool, asyncio.run(check_foreign(wanted.tool)), None, None, None, None)
        return
    if url is not None:
        yield _attached(wanted, url, sham_of_url(url), None, None)
        return
    folder = serving_folder(wanted.transcripts, root)
    command = [*server_command(wanted.tool, wanted.target, folder), *_donor_options(wanted, folder)]
    log = root / ".served" / f"{wanted.tool}-{wanted.target}.log"
    with log.open("wb") as stderr:
        process = _start(command, stderr.fileno())
    try:
        urls = _ready_urls(process, log, wanted)
        yield _attached(wanted, urls["url"], urls.get("sham_url", ""), process, log)
    finally:
        _stop(process)


def sham_of_url(url: str) -> str:
    """Where a server that listens at `url` serves its sham."""
    return f"{url.removesuffix('/mcp')}/sham/mcp"


def _donor_options(wanted: Wanted, folder: Path) -> list[str]:
    if wanted.donors is None:
        return []
    path = folder.parent / f"donors-{donors_sha256(wanted.donors)[:16]}.json"
    write_text(path, donors_text(wanted.donors))
    return ["--donors", str(path)]


def _attached(
    wanted: Wanted, url: str, sham_url: str, process: subprocess.Popen[bytes] | None, log: Path | None
) -> Attached:
    about = check(url, wanted)
    if wanted.donors is None:
        return Attached(url, about, None, None, process, log)
    sham = check(sham_url, wanted)
    if sham.raw.get("donors_sha256") != donors_sha256(wanted.donors):
        raise UserError(
            f"The sham at {sham_url} has other donors than this run's (they depend on the claims and --seed). "
            "Leave --server out, or start the server with `uplift serve` on these claims and this seed."
        )
    return Attached(url, about, sham_url, sham, process, log)


def check(url: str, wanted: Wanted) -> About:
    """Ask the server at `url` what it is.

    Raises:
        UserError: Nothing answers, or it serves another tool, target or set of transcripts.
    """
    about = asyncio.run(
        check_server(url, tool=wanted.tool, target=wanted.target, positions=wanted.positions),
    )
    expected = hashlib.sha256(wanted.transcripts.read_bytes()).hexdigest()
    if about.transcripts_sha256 != expected:
        raise UserError(
            f"The server at {url} serves other transcripts (sha256 {about.transcripts_sha256[:12]}…, "
            f"{about.n_transcripts} of them) than {wanted.transcripts} (sha256 {expected[:12]}…). "
            "Start one on these, or leave --server out."
        )
    return about


def server_command(tool: str, target: str, folder: Path) -> list[str]:
    """The command line of a tool server over the transcripts in `folder`."""
    return [sys.executable, "-m", "tools.serve", tool, "--target", target, "--transcripts", str(folder)]


def _start(command: list[str], stderr: int) -> subprocess.Popen[bytes]:
    # A session of its own: Ctrl-C in the terminal reaches us first, and we stop the server when the logs are closed.
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
        # A tool server talks to no predictor.
        env=without_keys(os.environ, provider_keys()),
    )


def _ready_urls(process: subprocess.Popen[bytes], log: Path, wanted: Wanted) -> dict[str, str]:
    line = _first_line(process, time.monotonic() + START_TIMEOUT_S)
    if line is None:
        raise ServerStartError(f"The {wanted.tool} server was not ready after {START_TIMEOUT_S:.0f} s. Its log: {log}")
    try:
        urls = json.loads(line)
    except ValueError:
        urls = None
    if isinstance(urls, dict) and isinstance(urls.get("url"), str):
        return urls
    process.wait(_STOP_TIMEOUT_S)
    said = log.read_text(encoding="utf-8", errors="replace").strip()
    if process.returncode == 2:
        raise UserError(said)
    raise ServerStartError(
        f"The {wanted.tool} server ended with status {process.returncode} before it was ready.\n{said[-_TAIL_CHARS:]}"
    )


def _first_line(process: subprocess.Popen[bytes], deadline: float) -> bytes | None:
    """The first line of standard output, or what there is of it when it closes; None past the deadline."""
    assert process.stdout is not None
    stdout = process.stdout.fileno()
    line = b""
    while b"\n" not in line:
        readable, _, _ = select.select([stdout], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            return None
        chunk = os.read(stdout, 4096)
        if not chunk:
            break
        line += chunk
    return line


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Close its standard input, which ends it; insist if it does not end."""
    assert process.stdin is not None
    assert process.stdout is not None
    for end in (process.stdin.close, process.terminate, process.kill):
        end()
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            continue
        break
    process.stdout.close()
