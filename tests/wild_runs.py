"""Runs of claims from the wild with scripted models: one prompt through the stages, or a whole plan."""

import asyncio
from pathlib import Path

from claims.build.wild import WildPlan
from claims.build.wild.records import Investigated
from claims.build.wild.study import study
from tests.wild_models import FakeTarget, Script, Tally, make_lab, sailor_prompts
from tools.targets import get_target


def studied(
    folder: Path, tally: Tally | None = None, engine: FakeTarget | None = None, **scripts: Script
) -> Investigated:
    lab = make_lab(folder, tally=tally, engine=engine, **scripts)
    return asyncio.run(study(lab, sailor_prompts(1)[0]))


def told(tally: Tally, role: str = "investigator") -> str:
    return [words for name, words in tally.seen if name == role][-1]


def plan(folder: Path, n: int = 3, **changed: object) -> WildPlan:
    target = get_target("tiny-gemma")
    values: dict[str, object] = {
        "target": target,
        "sampling": target.sampling,
        "prompts": sailor_prompts(n),
        "out": folder / "out",
        "work": folder / "work",
    }
    return WildPlan(**{**values, **changed})
