"""An evaluation with each of our tools, from command to table, on a tiny target: nothing in it is one tool's own."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log
from typer.testing import CliRunner

from harness.cli import app
from harness.outcomes import read_outcomes
from tests.claim_bank import write_bank
from tests.tool_servers import Running, serving
from tools import TOOLS
from tools.activations import make_reader
from tools.model import load
from tools.readings import Readings
from tools.registered import register
from tools.server import make_server
from tools.targets import get_target

LIMIT = 9


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bank(tmp_path_factory.mktemp("bank"))


@contextmanager
def serving_tool(name: str, bank: Path, folder: Path) -> Iterator[Running]:
    """The real tool over the transcripts of a bank."""
    folder.mkdir()
    shutil.copy(bank / "transcripts.jsonl", folder)
    tool = import_module(TOOLS[name].module).load(get_target("tiny-gemma"))
    loaded = load(get_target("tiny-gemma"), dtype="float32", device="cpu")
    readings = Readings(
        loaded, make_reader("nnsight", loaded), register(folder), layer=tool.facts.layer, max_positions=32
    )
    with serving(make_server(name, tool, readings)) as running:
        yield running


@pytest.mark.parametrize(
    ("tool", "script", "shown"),
    [("sae", "reader", '[1] "'), ("ao", "asker", "answer"), ("nla", "reader", '[1] "')],
)
def test_a_run_with_a_tool_ends_in_its_table(tool: str, script: str, shown: str, bank: Path, tmp_path: Path) -> None:
    with serving_tool(tool, bank, tmp_path / "transcripts") as running:
        given = ["eval", "--no-report", "--tool", tool, "--target", "tiny-gemma", "--predictor", f"scripted/{script}"]
        more = ["--claims", str(bank), "--results", str(tmp_path / "results"), "--limit", str(LIMIT)]
        done = CliRunner().invoke(app, [*given, *more, "--server", running.url])
    assert done.exit_code == 0, done.output
    (manifest,) = (tmp_path / "results").glob("*/manifest.json")
    told = json.loads(manifest.read_text(encoding="utf-8"))["tools"][tool]
    assert (told["tool"], told["fidelity"], told["offers"]) == (tool, "demo", told["offers"][:1])
    outcomes = [row for row in read_outcomes(manifest.parent / "logs") if row.setting.arm == tool]
    assert len(outcomes) == LIMIT
    assert {row.outcome for row in outcomes} == {"answered"}
    said = [
        message.text
        for path in (manifest.parent / "logs").glob("*.eval")
        for sample in read_eval_log(str(path)).samples or []
        for message in sample.messages
        if message.role == "tool" and message.function in told["offers"]
    ]
    assert len(said) == LIMIT
    assert all(text.startswith(shown) for text in said)
    assert tool in (manifest.parent / "table.md").read_text(encoding="utf-8")
