"""Commands that plan and check a measurement without one: `uplift power` and `uplift calibrate`."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from harness.exits import told

PilotOption = Annotated[Path | None, typer.Option(help="Folder of a run: its variance instead of assumptions.")]


def power(
    pilot: PilotOption = None,
    arm: Annotated[str | None, typer.Option(help="Arm of the pilot. Default: its first tool.")] = None,
    claims: Annotated[int | None, typer.Option("--claims", "-n", help="Claims of the study. Default: 1294.")] = None,
    investigations: Annotated[int | None, typer.Option(help="Its clusters. Default: claims / claims per.")] = None,
    claims_per: Annotated[float, typer.Option(help="Claims per investigation.")] = 3.0,
    auroc: Annotated[float, typer.Option(help="AUROC of the baseline.")] = 0.8,
    between_arms: Annotated[float, typer.Option(help="Correlation of the arms' answers, label given.")] = 0.8,
    within: Annotated[float, typer.Option(help="Correlation of answers within an investigation.")] = 0.3,
    predictor: Annotated[str, typer.Option(help="Whose tokens are paid.")] = "local",
    tokens_in: Annotated[int, typer.Option(help="Tokens read per claim by both arms; a pilot knows.")] = 14_000,
    tokens_out: Annotated[int, typer.Option(help="Tokens written per claim by both arms; a pilot knows.")] = 3_000,
) -> None:
    """The smallest uplift that a study detects in 80 of 100 cases, and what it costs."""
    with told(Path("results")):
        from harness.planning import Assumed, plan_assumed, plan_pilot

        if pilot is not None:
            typer.echo(plan_pilot(pilot, arm, claims, predictor), nl=False)
            return
        assumed = Assumed(
            claims, investigations, claims_per, auroc, between_arms, within, predictor, tokens_in, tokens_out
        )
        typer.echo(plan_assumed(assumed), nl=False)


def calibrate(
    replications: Annotated[int, typer.Option(help="Simulated data sets a design.")] = 2_000,
    resamples: Annotated[int, typer.Option(help="Resamples of each bootstrap.")] = 1_000,
    out: Annotated[Path, typer.Option(help="Folder for figure and numbers.")] = Path("docs"),
) -> None:
    """Simulate predictors with known uplift: do intervals cover, is the false-positive rate right, what is found?"""
    with told(Path("results")):
        from rich.console import Console
        from rich.progress import track

        from harness.calibrate import SCENARIOS, UPLIFTS, judge, power_curve, summary
        from harness.calibration_figure import draw_calibration
        from harness.files import write_text

        total = replications * (len(SCENARIOS) + len(UPLIFTS))
        console = Console(stderr=True)
        steps = iter(track(range(total), "simulating", console=console, disable=not sys.stderr.isatty()))

        def tick() -> object:
            return next(steps, None)

        judged = [
            one
            for name, design in SCENARIOS.items()
            for one in judge(name, design, replications=replications, resamples=resamples, tick=tick)
        ]
        points = power_curve(SCENARIOS["no uplift"], replications=replications, tick=tick)
        out.mkdir(parents=True, exist_ok=True)
        held = {"intervals": [asdict(one) for one in judged], "power": [asdict(point) for point in points]}
        write_text(out / "calibration.json", json.dumps(held, indent=1) + "\n")
        write_text(out / "calibration.md", summary(judged, points))
        draw_calibration(judged, points, out)
        typer.echo(summary(judged, points), nl=False)
