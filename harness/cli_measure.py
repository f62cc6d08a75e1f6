"""Commands of the measurement: `uplift sweep`, `families`, `score`, `power`, `calibrate`.

Invariant: a grid and a set of predictors are made of the same runs that `uplift eval` makes, and share their answers.
"""

import re
from pathlib import Path
from typing import Annotated

import typer

from harness.cli_plan import calibrate, power
from harness.exits import told

_PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


def add_measure_commands(app: typer.Typer) -> None:
    """Give the application of `uplift`, which has an `eval` command, the commands of the measurement."""

    @app.command(context_settings=_PASSED_ON)
    def sweep(
        context: typer.Context,
        calls: Annotated[str, typer.Option(help="Numbers of calls to sweep.")] = "2 5 10",
        positions: Annotated[str, typer.Option(help="Numbers of positions to sweep.")] = "16 32 64",
        results: Annotated[Path, typer.Option(help="Folder that holds the runs.")] = Path("results"),
    ) -> None:
        """Measure uplift at every budget of a grid (Table 4), in one run. Takes the options of `uplift eval`, too."""
        given = ["--sweep-calls", calls, "--sweep-positions", positions, "--results", str(results)]
        folder = app(["eval", *given, *context.args], standalone_mode=False)
        if folder is not None:
            typer.echo(f"\n{(folder / 'tables' / 'sweep.md').read_text(encoding='utf-8')}", nl=False)

    @app.command(context_settings=_PASSED_ON)
    def families(
        context: typer.Context,
        predictors: Annotated[str, typer.Option(help="Names of predictors, with spaces or commas between.")],
        results: Annotated[Path, typer.Option(help="Folder that holds the runs.")] = Path("results"),
    ) -> None:
        """Run several predictors on the same claims (Table 5). Takes the options of `uplift eval`, too."""
        given = ["--results", str(results), *context.args]
        runs = [app(["eval", *given, "--predictor", name], standalone_mode=False) for name in names_in(predictors)]
        with told(results):
            from harness.families import save_families, write_families
            from harness.tabular import markdown

            if None in runs:
                return
            folder = save_families([Path(run) for run in runs], results.resolve())
            typer.echo(f"\n{markdown(write_families(folder))}", nl=False)
            typer.echo(f"The table is in {folder}", err=True)

    app.command()(score)
    app.command()(power)
    app.command()(calibrate)


def names_in(text: str) -> list[str]:
    """The names in an option that takes several."""
    return list(dict.fromkeys(word for word in re.split(r"[,\s]+", text.strip()) if word))


def numbers_in(text: str | None, option: str) -> tuple[int, ...]:
    """The whole numbers in an option that takes several.

    Raises:
        UserError: One is none.
    """
    from claims.schema import UserError

    try:
        return tuple(dict.fromkeys(int(word) for word in names_in(text or "")))
    except ValueError:
        raise UserError(f"{option} is {text!r}. Expected whole numbers, such as '2 5 10'.") from None


def score(
    file: Annotated[Path, typer.Argument(help="Predictions: .csv, .jsonl or .parquet, one row a claim and arm.")],
    claim: Annotated[str, typer.Option(help="Column of the claim.")] = "claim_id",
    cluster: Annotated[str, typer.Option(help="Column of what is resampled.")] = "cluster_id",
    label: Annotated[str, typer.Option(help="Column of the truth.")] = "label",
    arm: Annotated[str, typer.Option(help="Column of the arm.")] = "arm",
    p_true: Annotated[str, typer.Option("--p-true", help="Column of the probability.")] = "p_true",
    baseline: Annotated[str, typer.Option(help="Arm that the others are compared with.")] = "transcript",
    missing: Annotated[list[str] | None, typer.Option(help="Value that means no answer, such as -1.")] = None,
    margin: Annotated[float, typer.Option(help="Uplifts smaller than this do not matter.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the tables in four forms.")] = None,
) -> None:
    """Score any table of predictions: AUROC and paired uplift by arm, as for a run of our own."""
    with told(Path("results")):
        from harness.paper_tables import checks_table, flips_table, shams_table, targets_table
        from harness.read_table import Names, read_predictions
        from harness.table import score_markdown
        from harness.tabular import write_tables
        from harness.uplift import compare

        names = Names(claim, cluster, label, arm, p_true)
        outcomes = read_predictions(file, names, missing=missing or (), baseline=baseline)
        results = compare(outcomes, seed=f"score {seed}", margin=margin)
        typer.echo(score_markdown(results, file.name), nl=False)
        if out is not None:
            made = (targets_table(results), checks_table(results), flips_table(results), shams_table(results))
            write_tables([table for table in made if table is not None], out)
