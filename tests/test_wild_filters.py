"""The filters of claims from the wild: columns beside the claims, and the views that are made of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from claims.build.wild import run_wild, view
from claims.build.wild.filters import choose_balanced, read_columns
from claims.labels import load_evidence, load_labels
from claims.load import load_claims
from claims.schema import ClaimsError, UserError
from tests.wild_models import (
    Say,
    Turn,
    call,
    make_lab,
)
from tests.wild_runs import plan


def test_filters_are_columns_and_a_view_is_made_when_it_is_read(tmp_path: Path) -> None:
    def described(turn: Turn) -> Say:
        confounded = "farmer" in turn.user
        return call("describe_edit", changes=["x"], description="The sailor changed.", confounded=confounded)

    run_wild(plan(tmp_path), make_lab(tmp_path / "work", describer=described))
    columns = read_columns(tmp_path / "out")
    assert len(columns) == 12
    # The reproducer always removes the sailor: true claims reproduce, false ones do not.
    assert all(one.reproduced == one.label for one in columns.values())
    assert view(tmp_path / "out", "none", tmp_path / "views") == tmp_path / "out"
    paper = load_claims(view(tmp_path / "out", "paper", tmp_path / "views"))
    kept = {one.claim_id for one in paper.claims}
    assert kept == {name for name, one in columns.items() if one.label and one.single_factor}
    assert set(load_labels(paper)) == kept == set(load_evidence(paper))
    single = load_claims(view(tmp_path / "out", "single-factor", tmp_path / "views"))
    assert len(single.claims) == 9
    assert single.sha256 != paper.sha256
    assert len(load_claims(tmp_path / "out").claims) == 12


def test_unknown_filters_and_folders_without_columns_are_told(tmp_path: Path) -> None:
    run_wild(plan(tmp_path, n=1), make_lab(tmp_path / "work"))
    with pytest.raises(UserError, match="Unknown filters 'nice'"):
        view(tmp_path / "out", "nice", tmp_path / "views")
    (tmp_path / "out" / "filters.jsonl").unlink()
    with pytest.raises(ClaimsError, match=r"has no filters\.jsonl"):
        view(tmp_path / "out", "paper", tmp_path / "views")


def test_a_balanced_set_is_half_true_capped_and_the_same_in_any_order() -> None:
    claims = [(f"t{number}", True) for number in range(7)] + [(f"f{number}", False) for number in range(4)]
    chosen = choose_balanced(claims, 2000, 0)
    assert sum(name.startswith("t") for name in chosen) == sum(name.startswith("f") for name in chosen) == 4
    assert choose_balanced(claims[::-1], 2000, 0) == chosen
    assert len(choose_balanced(claims, 5, 0)) == 4
    assert choose_balanced(claims, 2000, 1) != chosen


def test_a_vague_mechanism_keeps_its_claims_out_of_the_balanced_set_but_not_out_of_the_folder(tmp_path: Path) -> None:
    lab = make_lab(tmp_path / "work", grader=lambda _: call("file_grade", reasons="r", grade=2))
    result = run_wild(plan(tmp_path), lab)
    counts = {one.step: one.n for one in result.counts}
    assert (counts["counterfactual claims"], counts["+ concreteness >= 3"]) == (12, 0)
    assert all(one.reproduced is None for one in read_columns(tmp_path / "out").values())
    with pytest.raises(ClaimsError, match="no claim passes"):
        view(tmp_path / "out", "paper", tmp_path / "views")


def test_edits_outside_the_balanced_set_are_reproduced_on_request(tmp_path: Path) -> None:
    lab = make_lab(tmp_path / "work", grader=lambda _: call("file_grade", reasons="r", grade=2))
    run_wild(replace(plan(tmp_path), reproduce_all=True), lab)
    assert all(one.reproduced is True for one in read_columns(tmp_path / "out").values())
