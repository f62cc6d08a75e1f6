"""Positions: what a predictor may send, what it is told otherwise, and what is masked."""

import pytest
import torch
from mcp.server.mcpserver.exceptions import ToolError

from tools.positions import masked_positions, read_positions


def test_good_positions_come_back_in_the_order_asked_for() -> None:
    assert read_positions([9, 0, 4], n_tokens=10, limit=3) == (9, 0, 4)


@pytest.mark.parametrize(
    ("positions", "found", "expected"),
    [
        ("3", "'3'", "a list of integers"),
        (None, "None", "a list of integers"),
        ({"a": 1}, "{'a': 1}", "a list of integers"),
        ([], "empty", "1 to 4 integers from 0 to 9"),
        ([0, 1, 2, 3, 4], "5 entries", "at most 4"),
        ([10], "10, which is past the last token", "integers from 0 to 9"),
        ([-1], "-1, which is negative", "integers from 0 to 9"),
        ([2.0], "2.0, which is not an integer", "integers from 0 to 9"),
        ([float("nan")], "nan, which is not an integer", "integers from 0 to 9"),
        (["Sydney"], "'Sydney', which is not an integer", "integers from 0 to 9"),
        ([True], "True, which is not an integer", "integers from 0 to 9"),
        ([[1, 2]], "[1, 2], which is not an integer", "integers from 0 to 9"),
        ([10**400], "which is past the last token", "integers from 0 to 9"),
        ([3, 5, 3, 5], "3, 5 more than once", "each position once"),
    ],
)
def test_a_mistake_is_answered_with_what_was_found_and_what_was_expected(
    positions: object, found: str, expected: str
) -> None:
    with pytest.raises(ToolError) as error:
        read_positions(positions, n_tokens=10, limit=4)
    text = str(error.value)
    assert found in text
    assert f"Expected {expected}." in text
    assert text.count(".") >= 3, "found, expected, and what to do"


def test_a_long_mistake_is_answered_shortly() -> None:
    with pytest.raises(ToolError) as error:
        read_positions("x" * 10_000, n_tokens=10, limit=4)
    assert len(str(error.value)) < 300


def test_the_first_token_of_a_model_with_bos_is_masked_whatever_its_norm() -> None:
    residual = torch.ones(5, 4)
    assert list(masked_positions(residual, has_bos=True)) == [0]
    assert masked_positions(residual, has_bos=False) == {}


def test_tokens_over_ten_times_the_median_norm_are_masked_with_the_ratio() -> None:
    # Norms 1, 2, 3, 20, 31: the median is 3, ten times it is 30. 20 stays, 31 goes (31 / 3 = 10.3).
    residual = torch.tensor([[1.0, 0], [0, 2], [3, 0], [0, 20], [31, 0]])
    assert masked_positions(residual, has_bos=False) == {4: "its norm is 10 times the transcript's median"}


def test_exactly_ten_times_the_median_is_no_outlier() -> None:
    assert masked_positions(torch.tensor([[1.0], [1], [1], [10]]), has_bos=False) == {}


def test_the_mask_does_not_depend_on_the_scale_of_the_activations() -> None:
    residual = torch.randn(40, 8, generator=torch.Generator().manual_seed(0))
    residual[7] *= 100
    assert list(masked_positions(residual, has_bos=False)) == list(masked_positions(1000 * residual, has_bos=False))
    assert list(masked_positions(residual, has_bos=False)) == [7]
