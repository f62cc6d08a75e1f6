"""`uplift serve`: what it starts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness import cli, server


class Process:
    """Has ended well."""

    def wait(self) -> int:
        return 0


def test_it_passes_the_options_of_an_engine_on_and_gives_the_server_transcripts_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commands: list[list[str]] = []

    def start(command: list[str]) -> Process:
        commands.append(command)
        folder = Path(command[command.index("--transcripts") + 1])
        assert {path.name for path in folder.glob("*.jsonl")} == {"transcripts.jsonl"}
        donors = json.loads(Path(command[command.index("--donors") + 1]).read_text(encoding="utf-8"))
        assert all(transcript_id != donor for transcript_id, donor in donors.items())
        return Process()

    # `harness.server` names the type when it is imported, so that has to be before the name is replaced.
    assert server.subprocess is subprocess
    monkeypatch.setattr(subprocess, "Popen", start)
    engine = ["--engine", "ray", "--replicas", "2", "--activations", "nnsight"]
    done = CliRunner().invoke(
        cli.app, ["serve", "--tool", "sae", "--target", "smollm2-135m", "--port", "8123", *engine]
    )
    assert done.exit_code == 0, done.output
    (command,) = commands
    assert command[:6] == [sys.executable, "-m", "tools.serve", "sae", "--target", "smollm2-135m"]
    assert command[command.index("--port") + 1] == "8123"
    assert command[-6:] == engine
