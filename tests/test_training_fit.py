"""Fitting and measuring an autoencoder: planted features, figures by hand, resumption."""

from pathlib import Path

import pytest
import torch
from torch.nn import functional

from tools.activations import NNsightReader
from tools.model import Loaded, decoder_layers
from tools.sae_local import TopK
from tools.training import fit as fitting
from tools.training.corpus import Document, Plan
from tools.training.firings import firings
from tools.training.fit import fit
from tools.training.measure import prediction, reconstruction
from tools.training.recipe import RECIPES, Recipe, get_recipe

NO_TEXT = Plan(0, 0, 0, 0, 0, 0, 0)
D, N_PLANTED = 16, 24


def silent(what: str, done: int, n: int) -> None:
    """No progress."""


def recipe(**changes: object) -> Recipe:
    settings = {"d_sae": 48, "k": 3, "passes": 6, "batch": 64, "learning_rate": 3e-3, "seed": 0, **changes}
    return Recipe(NO_TEXT, **settings)


@pytest.fixture(scope="module")
def planted() -> tuple[torch.Tensor, torch.Tensor]:
    """Activations that are sums of three of 24 directions on a large mean, and the directions."""
    generator = torch.Generator().manual_seed(0)
    directions = functional.normalize(torch.randn(N_PLANTED, D, generator=generator), dim=-1)
    chosen = torch.rand(6000, N_PLANTED, generator=generator).topk(3, dim=-1).indices
    strength = 100 * (1 + torch.rand(6000, 3, generator=generator))
    return 300 + (strength[..., None] * directions[chosen]).sum(dim=1), directions


def test_training_finds_the_directions_that_activations_are_made_of(
    tmp_path: Path, planted: tuple[torch.Tensor, torch.Tensor]
) -> None:
    residual, directions = planted
    fitted = fit(residual, recipe(passes=15), tmp_path, progress=silent)
    assert reconstruction(fitted.topk, residual).explained_variance > 0.9
    best = (directions @ functional.normalize(fitted.topk.w_dec, dim=-1).T).max(dim=-1).values
    assert float((best > 0.9).float().mean()) > 0.8
    assert fitted.losses[-1] < 0.3 * fitted.losses[0]
    assert torch.allclose(fitted.topk.w_dec.norm(dim=-1), torch.ones(48), atol=1e-4)


def test_the_result_is_in_the_scale_of_the_activations(
    tmp_path: Path, planted: tuple[torch.Tensor, torch.Tensor]
) -> None:
    residual, _ = planted
    small = fit(residual, recipe(), tmp_path / "a", progress=silent).topk
    # A power of two changes no digit of any number on the way.
    large = fit(1024 * residual, recipe(), tmp_path / "b", progress=silent).topk
    rows = residual[:50]
    assert torch.allclose(large.encode(1024 * rows), 1024 * small.encode(rows))
    assert 50 < float(small.encode(rows).max()) < 1000


def test_a_run_that_was_killed_goes_on_to_the_same_result(
    tmp_path: Path, planted: tuple[torch.Tensor, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    residual, _ = planted
    whole = fit(residual, recipe(), tmp_path / "whole", progress=silent)
    step, seen = fitting._step, [0]

    def until_killed(*arguments: object) -> None:
        seen[0] += 1
        if seen[0] == 250:
            raise KeyboardInterrupt
        step(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(fitting, "_step", until_killed)
        with pytest.raises(KeyboardInterrupt):
            fit(residual, recipe(), tmp_path / "killed", progress=silent)
    steps: list[int] = []
    resumed = fit(residual, recipe(), tmp_path / "killed", progress=lambda what, done, n: steps.append(done))
    # 6000 // 64 = 93 steps a pass: two passes were saved.
    assert steps[0] == 187
    assert torch.equal(resumed.topk.w_dec, whole.topk.w_dec)
    assert resumed.losses == whole.losses


def test_another_recipe_or_other_activations_start_afresh(
    tmp_path: Path, planted: tuple[torch.Tensor, torch.Tensor]
) -> None:
    residual, _ = planted
    for activations, settings in (
        (residual, recipe(passes=1)),
        (residual, recipe(passes=2)),
        (residual + 1, recipe(passes=1)),
    ):
        steps: list[int] = []
        fit(activations, settings, tmp_path, progress=lambda what, done, n, steps=steps: steps.append(done))
        assert steps[0] == 1


def identity(d: int, k: int | None = None) -> TopK:
    return TopK(torch.eye(d), torch.zeros(d), torch.eye(d), torch.zeros(d), torch.zeros(d), k or d)


def test_explained_variance_is_what_it_is_by_hand() -> None:
    # Rows (3, 1), (1, 3), mean (2, 2), distances 1 + 1 + 1 + 1 = 4. With one feature kept they are rebuilt as (3, 0)
    # and (0, 3): errors 1 + 1 = 2. 1 - 2 / 4 = 0.5; cosine of (3, 1) and (3, 0) is 3 / sqrt(10).
    figures = reconstruction(identity(2, k=1), torch.tensor([[3.0, 1], [1, 3]]))
    assert figures.explained_variance == pytest.approx(0.5)
    assert figures.cosine == pytest.approx(3 / 10**0.5)
    assert (figures.l0, figures.dead_share, figures.n_tokens) == (1, 0, 2)


def test_explained_variance_is_one_when_perfect_and_zero_for_the_mean() -> None:
    residual = torch.rand(30, 4, generator=torch.Generator().manual_seed(0))
    assert reconstruction(identity(4), residual).explained_variance == pytest.approx(1)
    mean = residual.mean(dim=0)
    silent_one = TopK(torch.eye(4), torch.full((4,), -9.0), torch.eye(4), mean, mean, 2)
    figures = reconstruction(silent_one, residual)
    assert figures.explained_variance == pytest.approx(0, abs=1e-6)
    assert (figures.l0, figures.dead_share) == (0, 1)


def test_nothing_to_explain_is_undefined() -> None:
    assert reconstruction(identity(2), torch.ones(3, 2)).explained_variance != 0
    assert str(reconstruction(identity(2), torch.ones(3, 2)).explained_variance) == "nan"


def test_firings_are_sorted_by_feature_and_then_by_strength() -> None:
    fired = firings(identity(3, k=2), torch.tensor([[1.0, 2, 0], [5, 0, 0], [1, 0, 7]]))
    assert [fired.of(feature)[0].tolist() for feature in range(3)] == [[1, 0, 2], [0], [2]]
    assert [fired.of(feature)[1].tolist() for feature in range(3)] == [[5, 1, 1], [2], [7]]


def test_a_perfect_autoencoder_changes_no_prediction_and_the_model_is_left_as_it_was(tiny_gemma: Loaded) -> None:
    documents = [Document("a", "chat", (2, 3, 50, 60, 70, 80)), Document("b", "chat", (2, 9, 90, 33))]
    both_signs = torch.cat([torch.eye(64), -torch.eye(64)], dim=1)
    perfect = TopK(both_signs, torch.zeros(128), both_signs.T.contiguous(), torch.zeros(64), torch.zeros(64), 128)
    block = decoder_layers(tiny_gemma.model)[1]
    before = vars(block).get("forward")
    figures = prediction(tiny_gemma, perfect, documents, 1, torch.zeros(64))
    assert figures.rebuilt == pytest.approx(figures.clean, rel=1e-4)
    assert figures.recovered == pytest.approx(1, abs=1e-2)
    assert figures.n_tokens == 5 + 3
    assert vars(block).get("forward") is before


def test_a_reader_still_reads_after_predictions_were_measured(tiny_gemma: Loaded) -> None:
    reader = NNsightReader(tiny_gemma)
    before = reader.read([(2, 3, 50, 60)], [1])[0][1]
    prediction(tiny_gemma, identity(64), [Document("a", "chat", (2, 3, 50))], 1, torch.zeros(64))
    assert torch.equal(reader.read([(2, 3, 50, 60)], [1])[0][1], before)


def test_the_clean_loss_is_the_models_own(tiny_gemma: Loaded) -> None:
    token_ids = (2, 3, 50, 60, 70, 80)
    figures = prediction(tiny_gemma, identity(64), [Document("a", "chat", token_ids)], 1, torch.zeros(64))
    ids = torch.tensor([token_ids])
    with torch.inference_mode():
        own = tiny_gemma.model(input_ids=ids, labels=ids).loss
    assert figures.clean == pytest.approx(float(own), rel=1e-4)
    assert figures.mean != pytest.approx(figures.clean, rel=1e-3)


def test_every_recipe_is_for_a_target_that_has_a_layer_for_it() -> None:
    from tools.targets import get_target

    assert {"gemma-3-270m", "smollm2-135m"} <= set(RECIPES)
    assert all(get_target(name).sae is not None for name in RECIPES)
    assert get_recipe("smollm2-135m") is RECIPES["smollm2-135m"]
