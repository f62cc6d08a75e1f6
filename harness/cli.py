"""The command line: `uplift eval`, `tables`, `serve`, `artifacts`, `claims`.

Invariants: standard output carries results, standard error everything else; a user's mistake is one message and status
2, a run to be continued 3, a leak 4, Ctrl-C 130; a fault of ours keeps its traceback in a file and is status 1.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from claims.schema import UserError
from harness.cli_claims import claims_app
from harness.cli_measure import add_measure_commands, numbers_in
from harness.cli_report import report_command
from harness.cli_tune import tune_command
from harness.cli_why import why_command
from harness.exits import told
from tools import TOOLS, get_tool
from tools.targets import get_target, resolve_target

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

ToolOption = Annotated[str, typer.Option(help=f"Tool to measure: {', '.join(TOOLS)}.")]
TargetOption = Annotated[str, typer.Option(help="A target, or a family: its largest member whose weights are here.")]
ClaimsOption = Annotated[Path | None, typer.Option(help="Claims folder. Default: the target's own bank.")]
ResultsOption = Annotated[Path, typer.Option(help="Folder that holds the runs.")]
ReportOption = Annotated[bool, typer.Option("--report/--no-report", help="Make report.html and figures too.")]


@app.command(name="eval")
def evaluate_command(
    tool: ToolOption = "sae",
    target: TargetOption = "gemma",
    predictor: Annotated[
        str,
        typer.Option(help="`local`, or an Inspect model (anthropic/..., openai/..., google/..., vllm/...)."),
    ] = "local",
    effort: Annotated[
        str, typer.Option(help="How hard the predictor thinks, where it can: low, medium, high.")
    ] = "high",
    calls: Annotated[int | None, typer.Option(help="Tool calls per claim. Default: 5; local predictor: 1.")] = None,
    positions: Annotated[int | None, typer.Option(help="Positions per call. Default: 32; local predictor: 8.")] = None,
    limit: Annotated[int | None, typer.Option(help="Most claims: whole clusters drawn by seed, classes even.")] = None,
    claims: ClaimsOption = None,
    seed: Annotated[int, typer.Option(help="Of every draw: the limit's, the ceiling's, the sham's, bootstrap.")] = 0,
    arms: Annotated[
        str | None,
        typer.Option(help="Of transcript, transcript-2, <tool>, sham-<tool>, ceiling. Default: the 1st, 3rd and last."),
    ] = None,
    profile: Annotated[str | None, typer.Option(help="`paper`: a family means the paper's target.")] = None,
    filters: Annotated[
        str,
        typer.Option(help="none, paper, or some of concrete,balanced,reproduced,single-factor (wild claims)."),
    ] = "none",
    epochs: Annotated[int, typer.Option(help="Repetitions of every arm; their AUROCs are averaged.")] = 1,
    margin: Annotated[
        float | None, typer.Option(help="Smallest uplift that would matter, declared with the run. Default: 0.05.")
    ] = None,
    all_positions: Annotated[
        bool, typer.Option("--all-positions", help="Show the tool at every position at once (short transcripts).")
    ] = False,
    split: Annotated[str, typer.Option(help="tune or eval: half of the clusters, the other half for the other.")] = "",
    split_seed: Annotated[int, typer.Option(help="Moves clusters between the halves.")] = 0,
    prompts: Annotated[Path | None, typer.Option(help="Folder of prompts in place of the house's.")] = None,
    server: Annotated[str | None, typer.Option(help="URL of a tool server that runs already.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="Dollars in all: the run stops before, and resumes.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Agree to what it costs, whatever that is.")] = False,
    batch_baseline: Annotated[
        bool, typer.Option("--batch-baseline", help="The transcript arm through the batch API: half price, slow.")
    ] = False,
    prices: Annotated[Path | None, typer.Option(help="Price list. Default: the shipped one.")] = None,
    estimate_only: Annotated[bool, typer.Option("--estimate-only", help="Show what it would cost and stop.")] = False,
    report: ReportOption = True,
    sweep_calls: Annotated[str | None, typer.Option(hidden=True)] = None,
    sweep_positions: Annotated[str | None, typer.Option(hidden=True)] = None,
    results: ResultsOption = RESULTS,
) -> Path | None:
    """Run the arms over the same claims, print the uplift table. The same command again costs nothing or continues."""
    with told(results):
        # Imported late, so that help and mistyped names are answered at once.
        from harness.money.session import Money
        from harness.plan import Request, make_plan
        from harness.run import evaluate
        from harness.settings import Grid

        listed = tuple(re.split(r"[,\s]+", arms.strip(" ,"))) if arms else None
        request = Request(
            tool,
            target,
            predictor,
            calls,
            positions,
            limit,
            claims,
            seed,
            listed,
            profile,
            filters,
            epochs=epochs,
            grid=Grid(numbers_in(sweep_calls, "--calls"), numbers_in(sweep_positions, "--positions")),
            margin=margin,
            all_positions=all_positions,
            effort=effort,
            split=split,
            split_seed=split_seed,
            prompts=prompts,
        )
        plan = make_plan(request)
        say(f"Target: {plan.target.name}" + ("" if plan.target.name == target else f" (what {target!r} means here)"))
        if plan.not_paper:
            say(plan.not_paper)
        say(f"Claims: {len(plan.claims)} of {len(plan.claim_set.claims)} in {plan.claim_set.path}")
        money = Money(max_cost, prices, batch_baseline, yes, typer.confirm if sys.stdin.isatty() else None)
        if estimate_only:
            typer.echo(money.estimate(plan))
            return None
        finished = evaluate(plan, results.resolve(), url=server, say=say, money=money)
        typer.echo(finished.table, nl=False)
        if report:
            _say_report(finished.folder)
        say(f"Everything is in {finished.folder}")
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
