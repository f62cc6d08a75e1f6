"""Keys: in the environment and in the header of a request, and nowhere else."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from inspect_ai.log import read_eval_log

from agents import provider
from agents.predictors import provider_keys
from agents.secrets import HIDDEN, hide, hide_in, without_keys
from harness.server import Wanted, tool_server
from tests.claim_bank import write_bank
from tests.fakes import SENTINEL, Faults, serving
from tests.wire_runs import CHAT_GPT, CLAUDE, FAMILIES, GEMINI, GPT, play, wired


def holds_key(folder: Path) -> list[str]:
    """Files that hold the key, as it is or packed as Inspect packs its logs."""
    found = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        text = read_eval_log(str(path)).model_dump_json() if path.suffix == ".eval" else ""
        if SENTINEL.encode() in path.read_bytes() or SENTINEL in text:
            found.append(str(path))
    return found


@pytest.mark.parametrize("fault", ["401_echo", "500_echo", "429_day", "malformed"])
def test_no_log_holds_a_key_even_when_the_provider_repeats_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], fault: str
) -> None:
    with wired("steady", Faults(rates={fault: 1.0})) as fake, pytest.MonkeyPatch.context() as patch:
        patch.setattr(provider, "FIRST_WAIT_S", 0.0)
        played = play(fake, tmp_path, FAMILIES)
        assert all(SENTINEL in json.dumps(dict(request.headers)) for request in fake.requests if not request.free)
    for model, one in played.items():
        assert one.outcome == "error", model
        if fault.endswith("echo"):
            assert HIDDEN in one.sample.error.message, model
    assert holds_key(tmp_path) == []
    said = capfd.readouterr()
    assert SENTINEL not in said.out + said.err


def test_a_run_leaves_no_key_in_its_files_its_output_or_the_process_list(tmp_path: Path) -> None:
    bank, results = write_bank(tmp_path / "bank"), tmp_path / "results"
    command = ["eval", "--tool", "sae", "--target", "tiny-gemma", "--predictor", CLAUDE, "--claims", str(bank)]
    more = ["--results", str(results), "--arms", "transcript", "--yes", "--no-report"]
    with serving("steady", faults=Faults(each=("500_echo",))) as fake:
        environment = {**os.environ, **fake.env(), "XDG_DATA_HOME": str(tmp_path / "data")}
        quick = "import agents.provider as p, harness.cli as c; p.FIRST_WAIT_S = 0.01; c.main()"
        process = subprocess.Popen(
            [sys.executable, "-c", quick, *command, *more],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        lines = [" ".join(process_.info["cmdline"] or []) for process_ in psutil.process_iter(["cmdline"])]
        out, err = process.communicate(timeout=250)
    assert process.returncode == 0, err
    assert fake.counts["fault 500_echo"] == 1
    assert SENTINEL not in out + err + "\n".join(lines)
    assert len(list(results.rglob("*.eval"))) == 1
    assert (tmp_path / "data").exists(), "Inspect's own trace of a run goes where this test looks"
    assert holds_key(tmp_path) == []


def test_a_tool_server_is_not_given_the_keys_of_predictors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in provider_keys():
        monkeypatch.setenv(name, SENTINEL)
    monkeypatch.setenv("NDIF_API_KEY", "its own")
    bank = write_bank(tmp_path / "bank")
    with tool_server(Wanted("sae", "tiny-gemma", bank / "transcripts.jsonl", 4), tmp_path) as attached:
        assert attached.process is not None
        environment = psutil.Process(attached.process.pid).environ()
    assert SENTINEL not in environment.values()
    assert environment["NDIF_API_KEY"] == "its own"


def test_keys_are_blotted_out_of_texts_and_of_what_holds_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abcdefgh")
    monkeypatch.setenv("OTHER_AUTH_TOKEN", "sk-abcdefgh-longer")
    monkeypatch.setenv("GOOGLE_API_KEY", "none")
    assert hide("none of sk-abcdefgh-longer, sk-abcdefgh") == f"none of {HIDDEN}, {HIDDEN}"
    held = {"a": ["sk-abcdefgh", 1, None], "sk-abcdefgh": {"b": True}}
    assert hide_in(held) == {"a": [HIDDEN, 1, None], HIDDEN: {"b": True}}
    assert without_keys({"A": "1", "B": "2"}, {"A"}) == {"B": "2"}


def test_every_family_that_needs_a_key_is_among_those_that_are_kept_from_servers() -> None:
    assert {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"} <= provider_keys()
    assert {model.split("/")[0] for model in (CLAUDE, GPT, CHAT_GPT, GEMINI)} == {"anthropic", "openai", "google"}
