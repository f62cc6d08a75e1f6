"""What a run declares before its first claim is asked: its settings, the hypotheses, and how they will be judged.

Invariant: what is declared in the manifest of a started run stays: a margin that is chosen after the answers are in
is no test.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.effort import reasoning_for
from claims.build.wild.filters import COLUMNS_FILE, kept_ids, parse_filters, read_columns
from claims.schema import UserError
from harness.arm_result import SHAMS_FAMILY, TOOLS_FAMILY
from harness.arms import BASELINE, is_control, is_sham, sham_of, tool_of
from harness.identity import about_of
from harness.logs import Setting
from harness.manifest import Manifest, load_manifest, made_now, this_command
from harness.money.pricing import Tariff
from harness.plan import Plan
from harness.server import Attached
from harness.stats import LEVEL, N_RESAMPLES
from harness.task import Axes
from harness.uplift import MARGIN

HARD = (0.25, 0.75)
"""Where the baseline counts as unsure, as in the paper."""


@dataclass(frozen=True)
class Declared:
    """How a run is judged."""

    main: tuple[int, int]
    """Calls and positions of the main setting."""
    margin: float
    """Uplifts smaller than this are too small to matter."""
    families: Mapping[str, tuple[tuple[str, int, int], ...]]
    """Hypotheses that are corrected together, each as arm, calls, positions."""
    hard: tuple[float, float]
    """Where the baseline counts as unsure."""
    filtered: tuple[str, ...]
    """Ids of the claims that pass the filters of a set that has filters; empty for one without."""

    @classmethod
    def of(cls, manifest: Manifest) -> "Declared":
        """What a manifest declares; the defaults where an older one is silent."""
        held = manifest.analysis
        calls, positions = manifest.settings["calls"], manifest.settings["positions"]
        families = held.get("families", {})
        hard = held.get("hard", HARD)
        filtered = held.get("filtered", ())
        assert isinstance(families, Mapping)
        assert isinstance(hard, Sequence)
        assert isinstance(filtered, Sequence)
        return cls(
            main=(int(str(calls)), int(str(positions))),
            margin=float(str(held.get("margin", MARGIN))),
            families={
                str(name): tuple((str(arm), int(c), int(p)) for arm, c, p in members)
                for name, members in families.items()
            },
            hard=(float(hard[0]), float(hard[1])),
            filtered=tuple(map(str, filtered)),
        )


def families_of(settings: Sequence[Setting]) -> dict[str, list[tuple[str, int, int]]]:
    """The hypotheses of a run, by family.

    Args:
        settings: Of one target and predictor.
    """
    keys = list(dict.fromkeys((s.arm, s.calls, s.positions) for s in settings))
    arms = {setting.arm for setting in settings}
    shammed = {(s.arm, s.calls, s.positions) for s in settings if is_sham(s.arm)}
    return {
        TOOLS_FAMILY: [key for key in keys if key[0] != BASELINE and not is_control(key[0])],
        SHAMS_FAMILY: [key for key in keys if tool_of(key[0]) in arms and (sham_of(key[0]), key[1], key[2]) in shammed],
    }


def check_margin(plan: Plan, folder: Path) -> None:
    """Refuse a margin that is not the one a started run declared.

    Raises:
        UserError: It is another one.
    """
    asked = plan.request.margin
    if asked is None or not (folder / "manifest.json").exists():
        return
    declared = Declared.of(load_manifest(folder)).margin
    if declared != asked:
        raise UserError(
            f"--margin is {asked:g}, but this run ({folder}) declared {declared:g} before it was started. A margin "
            "chosen afterwards is no test: leave --margin out. To look at another one, use "
            f"`uplift score {folder / 'outcomes.jsonl'} --margin {asked:g}`."
        )


def manifest_of(
    plan: Plan,
    run: str,
    axes: Mapping[Setting, Axes],
    attached: Mapping[str, Attached],
    *,
    tariff: Tariff,
    tuned_on: int,
) -> Manifest:
    """The manifest of a run that is about to start.

    Args:
        plan: What is run.
        run: Its name.
        axes: The identity of every setting.
        attached: The tool servers, by the arm of the tool.
        tariff: What the predictor's tokens cost.
        tuned_on: Clusters that the prompts have been tuned on.
    """
    request, first = plan.request, axes[plan.settings[0]]
    abouts = {arm: about for arm in plan.arms if (about := about_of(arm, attached)) is not None}
    return Manifest(
        run=run,
        settings={**_asked(plan), "tuned_on": tuned_on},
        arms=plan.arms,
        hashes={
            "claim_set": first.claim_set_sha256,
            "prompts": first.prompt_sha256,
            "predictor": first.predictor_sha256,
            **{f"tool {setting.arm}": axis.tool_sha256 for setting, axis in axes.items() if axis.tool_sha256},
        },
        claims={
            "folder": str(request.claims.resolve()) if request.claims else f"claims/data/{plan.target.name}",
            "filters": request.filters,
            "n_all": len(plan.claim_set.claims),
            "n_used": len(plan.claims),
        },
        tools={arm: dict(about.raw) for arm, about in abouts.items()},
        made=made_now(this_command()),
        analysis=_analysis(plan),
        prices=tariff.as_record(),
    )


def _asked(plan: Plan) -> dict[str, str | int | None]:
    """What was asked for and what it resolved to."""
    request = plan.request
    return {
        "target": plan.target.name,
        "asked_target": request.target,
        "tool": request.tool,
        "predictor": request.predictor,
        "effort": request.effort,
        "reasoning_sent": json.dumps(dict(reasoning_for(request.predictor, request.effort).sent)),
        "calls": plan.calls,
        "positions": plan.positions,
        "limit": request.limit,
        "seed": request.seed,
        "profile": request.profile,
        "split": request.split,
        "split_seed": request.split_seed,
        "prompts": str(request.prompts) if request.prompts else "",
    }


def _analysis(plan: Plan) -> dict[str, object]:
    """How the run will be judged."""
    return {
        "settings": [[s.arm, s.calls, s.positions, s.epoch] for s in plan.settings],
        "epochs": plan.request.epochs,
        "margin": MARGIN if plan.request.margin is None else plan.request.margin,
        "level": LEVEL,
        "n_resamples": N_RESAMPLES,
        "families": families_of(plan.settings),
        "hard": list(HARD),
        "filtered": _filtered(plan),
    }


def _filtered(plan: Plan) -> list[str]:
    """Ids of the run's claims that pass the paper's filters, where the set has filters and the run took all of it."""
    if plan.request.filters != "none" or not (plan.claim_set.path / COLUMNS_FILE).is_file():
        return []
    kept = kept_ids(read_columns(plan.claim_set.path).values(), parse_filters("paper"))
    return [claim.claim_id for claim in plan.claims if claim.claim_id in kept]
