"""The comparison of the backends that `make parity` prints."""

import math

import pytest
import torch

from tools.activations import READERS
from tools.parity import FULL_PASS, PLAIN_HOOK, Row, main, measure, relative_error, table


def test_the_relative_error_is_the_worst_position_s():
    expected = [{0: torch.tensor([[3.0, 4.0], [0.0, 1.0]])}]
    found = [{0: torch.tensor([[3.0, 4.5], [0.0, 1.2]])}]
    # 0.5 / 5 at the first position, 0.2 / 1 at the second.
    assert relative_error(found, expected) == pytest.approx(0.2)
    assert relative_error(expected, expected) == 0


def test_every_way_is_measured_and_the_backends_agree():
    rows = measure("tiny-gemma", "float32", n_tokens=20, rounds=1)
    assert {row.way for row in rows} == {FULL_PASS, PLAIN_HOOK, *READERS}
    for row in rows:
        assert row.seconds > 0
        assert math.isnan(row.error) if row.way == FULL_PASS else row.error < 1e-5


def test_the_table_shows_each_row(capsys: pytest.CaptureFixture[str]):
    row = Row("t", "float32", 9, "nnsight", seconds=0.5, cheaper=2.0, error=1e-6)
    last = table([row]).splitlines()[-1]
    assert last == "| t | float32 | 9 | nnsight | 0.500 | 2.0 | 1.0e-06 |"
    main(["tiny-qwen", "--dtypes", "float32", "--tokens", "5", "--rounds", "1"])
    assert capsys.readouterr().out.count("| tiny-qwen |") == 4
