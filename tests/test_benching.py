"""The bench and the device check: on a tiny random model they run, and their numbers mean what they say."""

import json
from pathlib import Path

import pytest
import torch

from tools import bench, device_check, writer
from tools.bench_sampling import BenchRow
from tools.benching.shapes import SHAPES, random_loaded
from tools.benching.stand_ins import Settings, stand_in, without_stops
from tools.benching.workload import Caller, Workload, transcripts_of
from tools.model import Loaded
from tools.targets import get_target


@pytest.fixture(scope="module")
def tiny() -> Loaded:
    return without_stops(random_loaded("tiny"))


@pytest.fixture(scope="module")
def bench_rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    out = tmp_path_factory.mktemp("bench") / "bench.json"
    out.write_text(json.dumps([{"name": "older", "ours_s": 1, "other_s": 2, "ratio": 2}]), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "QUICK", bench.Size(n_tokens=80, max_tokens=2, positions=8, repeats=1, soak_s=0.2))
        bench.main(["--quick", "--out", str(out)])
    return json.loads(out.read_text(encoding="utf-8"))


def test_the_bench_has_a_row_for_every_promise_and_keeps_older_rows(bench_rows: list[dict[str, object]]) -> None:
    names = [str(row["name"]) for row in bench_rows]
    assert names[0] == "older"
    for promise in (
        "sae: 32 positions of 80 tokens, second call on a transcript",
        "sae: 32 positions of 80 tokens, activations from disk",
        "nla, 2 tokens an answer: 8 positions in one call, against one at a time",
        "nla, 2 tokens an answer: 8 callers at once, 1 positions each, against in turn",
        "ao, 2 tokens an answer: 8 questions at once, against one at a time",
        "ao: prefix of",
        "nla: prefix of",
        "MB (not seconds) after a soak",
    ):
        assert sum(promise in name for name in names) == 1, promise
    assert all(set(row) == {"name", "ours_s", "other_s", "ratio"} for row in bench_rows)
    assert all(float(row["ours_s"]) > 0 for row in bench_rows)  # type: ignore[arg-type]


def test_a_row_divides_the_other_way_by_ours() -> None:
    assert bench._row("x", 0.002, 0.5) == BenchRow("x", 0.002, 0.5, 250.0)


@pytest.mark.parametrize("tool", ["ao", "nla"])
def test_a_random_tool_answers_with_exactly_the_tokens_asked_for(
    tiny: Loaded, tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths: list[int] = []
    generate = writer.generate

    def watched(*args: object, **kwargs: object) -> object:
        answers = generate(*args, **kwargs)  # type: ignore[arg-type]
        lengths.extend(len(answer.token_ids) for answer in answers)
        return answers

    monkeypatch.setattr(writer, "generate", watched)
    registered = transcripts_of(tiny, n=2, n_tokens=90)
    assert {len(transcript.token_ids) for transcript in registered.transcripts.values()} == {90}
    made = stand_in(tool, tiny, tmp_path / "tool", Settings(max_tokens=11, d_sae=64))
    work = Workload(made, tool, tiny, registered, disk=tmp_path / "disk")
    assert work.together([Caller("t0", (9,)), Caller("t1", (10,))]) > 0
    assert lengths == [11, 11]


def test_shapes_have_the_dimensions_of_the_real_models() -> None:
    assert SHAPES["gemma-3-27b"].settings["hidden_size"] == 5376
    # What a block of Gemma 3 27B weighs: q, k, v, o and the three matrices of its MLP.
    block = 5376 * 128 * (32 + 16 + 16 + 32) + 3 * 5376 * 21504
    tiny_block = 64 * 16 * (4 + 2 + 2 + 4) + 3 * 64 * 128
    loaded = random_loaded("tiny")
    linear = [m for m in loaded.model.get_decoder().layers[0].modules() if isinstance(m, torch.nn.Linear)]
    assert sum(m.weight.numel() for m in linear) == tiny_block
    assert 62 * block + 262208 * 5376 == pytest.approx(27.0e9, rel=0.02)
    assert get_target("gemma-3-27b-it").n_layers == SHAPES["gemma-3-27b"].n_blocks
    assert get_target("qwen3-8b").n_layers == SHAPES["qwen3-8b"].n_blocks


def test_a_random_model_is_the_same_each_time_and_leaves_the_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    one, two = (random_loaded("tiny", n_blocks=2) for _ in range(2))
    assert torch.equal(torch.rand(1), expected)
    assert all(torch.equal(a, b) for a, b in zip(one.model.parameters(), two.model.parameters(), strict=True))


def test_the_device_check_writes_a_table_and_its_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    device_check.main(
        [
            "--shape",
            "tiny",
            "--tokens",
            "60",
            "--answer",
            "2",
            "--repeats",
            "1",
            "--device",
            "cpu",
            "--out",
            str(tmp_path / "d" / "check"),
        ]
    )
    text = (tmp_path / "d" / "check.md").read_text(encoding="utf-8")
    assert text in capsys.readouterr().out
    checked = json.loads((tmp_path / "d" / "check.json").read_text(encoding="utf-8"))
    assert checked["model"] == "tiny (random weights, 3 of 3 blocks)"
    assert [row["tool"] for row in checked["rows"]] == ["sae"] * 4 + ["ao"] * 4 + ["nla"] * 4
    assert [row["positions"] for row in checked["rows"][:4]] == [1, 1, 32, 32]
    for row in checked["rows"]:
        assert row["positions_per_s"] == pytest.approx(row["positions"] / row["seconds"], rel=0.2)
        assert f"| {row['tool']} | {row['case']} | {row['positions']} |" in text


def test_what_cannot_be_checked_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, why in (
        (["--shape", "gpt-9"], "Unknown shape 'gpt-9'. Known shapes: tiny,"),
        (["--shape", "tiny", "--blocks", "9"], "9 blocks of tiny were asked for. Expected 2 to 3."),
        (["--tools", "probe"], "Unknown tool 'probe'"),
    ):
        with pytest.raises(SystemExit) as left:
            device_check.main([*arguments, "--device", "cpu"])
        assert left.value.code == 2
        assert why in capsys.readouterr().err
