"""The command line: `uplift eval`, `tables`, `serve`, `artifacts`, `claims`.

Invariants: standard output carries results, standard error everything else; a user's mistake is one message and status
2, a run to be continued 3, a leak 4, Ctrl-C 130; a fault of ours keeps its traceback in a file and is status 1.
"""

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from claims.schema import UserError
from harness import cli_options as options
from harness.cli_claims import claims_app
from harness.cli_measure import add_measure_commands, numbers_in
from harness.cli_report import report_command
from harness.cli_tune import tune_command
from harness.cli_why import why_command
from harness.exits import told
from tools import TOOLS, get_tool
from tools.targets import get_target, resolve_target

if TYPE_CHECKING:
    from harness.money.session import Money
    from harness.plan import Request

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Do interpretability tools tell anyone something that the transcript does not?",
)
app.add_typer(claims_app, name="claims")
app.command(name="tune")(tune_command)
app.command(name="report")(report_command)
app.command(name="why")(why_command)

RESULTS = Path("results")

ToolOption = Annotated[str, typer.Option(help=f"Tool to measure: {', '.join(TOOLS)}, or mcp:http://host:port/mcp.")]
TargetOption = Annotated[str, typer.Option(help="A target, or a family: its largest member whose weights are here.")]
ClaimsOption = Annotated[Path | None, typer.Option(help="Claims folder. Default: the target's own bank.")]
ResultsOption = Annotated[Path, typer.Option(help="Folder that holds the runs.")]
ReportOption = Annotated[bool, typer.Option("--report/--no-report", help="Make report.html and figures too.")]


@app.command(name="eval")
def evaluate_command(
    tool: ToolOption = "sae",
    target: TargetOption = "gemma",
    predictor: options.Predictor = "local",
    effort: options.Effort = "high",
    calls: options.Calls = None,
    positions: options.Positions = None,
    limit: options.Limit = None,
    claims: ClaimsOption = None,
    seed: options.Seed = 0,
    arms: options.Arms = None,
    profile: options.Profile = None,
    filters: options.Filters = "none",
    epochs: options.Epochs = 1,
    margin: options.Margin = None,
    all_positions: options.AllPositions = False,
    split: options.Split = "",
    split_seed: options.SplitSeed = 0,
    prompts: options.Prompts = None,
    server: options.Server = None,
    max_cost: options.MaxCost = None,
    yes: options.Yes = False,
    batch_baseline: options.BatchBaseline = False,
    prices: options.Prices = None,
    estimate_only: options.EstimateOnly = False,
    report: ReportOption = True,
    sweep_calls: options.Hidden = None,
    sweep_positions: options.Hidden = None,
    results: ResultsOption = RESULTS,
) -> Path | None:
    """Run the arms over the same claims, print the uplift table. The same command again costs nothing or continues."""
    with told(results):
        # Imported late, so that help and mistyped names are answered at once.
        from harness.money.session import Money
        from harness.plan import Request
        from harness.settings import Grid

        listed = tuple(re.split(r"[,\s]+", arms.strip(" ,"))) if arms else None
        request = Request(tool, target, predictor, calls, positions, limit, claims, seed, listed, profile, filters)
        grid = Grid(numbers_in(sweep_calls, "--calls"), numbers_in(sweep_positions, "--positions"))
        request = replace(request, epochs=epochs, grid=grid, margin=margin, all_positions=all_positions, effort=effort)
        request = replace(request, split=split, split_seed=split_seed, prompts=prompts)
        money = Money(max_cost, prices, batch_baseline, yes, typer.confirm if sys.stdin.isatty() else None)
        folder = _evaluate(request, money, results.resolve(), server, estimate_only=estimate_only)
        if folder is not None and report:
            _say_report(folder)
        if folder is not None:
            say(f"Everything is in {folder}")
        return folder


def _evaluate(
    request: "Request", money: "Money", results: Path, server: str | None, *, estimate_only: bool
) -> Path | None:
    """The folder of the finished run; None where only its cost was asked for."""
    from harness.plan import make_plan
    from harness.run import evaluate

    plan = make_plan(request)
    named = plan.target.name == request.target
    say(f"Target: {plan.target.name}" + ("" if named else f" (what {request.target!r} means here)"))
    if plan.not_paper:
        say(plan.not_paper)
    say(f"Claims: {len(plan.claims)} of {len(plan.claim_set.claims)} in {plan.claim_set.path}")
    if estimate_only:
        typer.echo(money.estimate(plan))
        return None
    finished = evaluate(plan, results, url=server, say=say, money=money)
    typer.echo(finished.table, nl=False)
    return finished.folder


add_measure_commands(app)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def cost(context: typer.Context) -> None:
    """Show what an evaluation would cost, arm by arm, without starting it. Takes the options of `uplift eval`."""
    app(["eval", *context.args, "--estimate-only"])


@app.command()
def tables(
    runs: Annotated[list[Path] | None, typer.Argument(help="Folders of runs. Default: every run.")] = None,
    report: ReportOption = True,
    results: ResultsOption = RESULTS,
) -> None:
    """Make the tables of runs, and their reports, again from their logs, without calling a model."""
    with told(results):
        from harness.families import family_folders, write_families
        from harness.overview import write_overview
        from harness.results import run_folders, write_results
        from harness.tabular import markdown

        folders = runs or list(run_folders(results))
        if not folders:
            raise UserError(f"{results} holds no run. Run `uplift eval` first, or give --results another folder.")
        for folder in folders:
            run = folder if folder.exists() else results / folder
            typer.echo(write_results(run))
            if report:
                _say_report(run)
        if runs:
            return
        for folder in family_folders(results):
            typer.echo(markdown(write_families(folder)))
        write_overview(folders, results)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def serve(
    context: typer.Context,
    tool: ToolOption = "sae",
    target: TargetOption = "gemma",
    claims: ClaimsOption = None,
    port: Annotated[int, typer.Option(help="0 takes any that is free.")] = 0,
    seed: Annotated[int, typer.Option(help="Of the sham's donors.")] = 0,
    results: ResultsOption = RESULTS,
) -> None:
    """Serve a tool over a claim set's transcripts until Ctrl-C, for other MCP clients and for `eval --server`.

    Further options go to the serving program, such as `--engine ray --replicas 2`, `--engine vllm --vllm-url URL` or
    `--activations ndif`; `python -m tools.serve --help` lists them.
    """
    with told(results):
        from claims.load import load_claims
        from harness.donors import donor_options
        from harness.plan import claims_folder
        from harness.server import server_command
        from tools.weights import is_present

        get_tool(tool)
        resolved = resolve_target(target, present=is_present)
        claim_set = load_claims(claims_folder(claims, resolved), target=resolved.name)
        with tempfile.TemporaryDirectory(prefix="uplift-serve-") as folder:
            copy = Path(folder) / "transcripts.jsonl"
            copy.write_bytes((claim_set.path / copy.name).read_bytes())
            command = [*server_command(tool, resolved.name, Path(folder)), "--port", str(port), "--ignore-stdin"]
            command += [*donor_options(claim_set, Path(folder), seed=seed), *context.args]
            say(f"Starting {tool} for {resolved.name}; its address follows on standard output. Ctrl-C ends it.")
            sys.exit(_wait(subprocess.Popen(command)))


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for a child that gets the terminal's Ctrl-C itself."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def artifacts(
    context: typer.Context,
    tool: Annotated[str, typer.Argument(help=f"One of: {', '.join(TOOLS)}.")],
    target: Annotated[str, typer.Argument(help="Full name of a target.")],
) -> None:
    """Train the artefact of a tool for a target again; resumes. Further options go to the training program."""
    with told(RESULTS):
        get_tool(tool)
        get_target(target)
        command = [sys.executable, "-m", "tools.training", tool, target, *context.args]
        sys.exit(_wait(subprocess.Popen(command)))


def _say_report(folder: Path) -> None:
    from harness.report import write_report

    say(f"Report: {write_report(folder)}")


def say(line: str) -> None:
    """Show one line to the user, beside the results."""
    typer.echo(line, err=True)


def main() -> None:
    """Entry of the console script `uplift`."""
    # Two processes on a laptop's two cores: threads that spin while they wait take the other's time.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    app()
