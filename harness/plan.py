"""What the user asked for, checked and resolved into what will be run.

Invariant: every mistake that can be found without starting anything is found here, before anything is started.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from agents.effort import DEFAULT_EFFORT, reasoning_for
from agents.foreign import ARM, foreign_url, is_foreign
from agents.predictors import PAPER_BUDGET, default_budget, family_of
from agents.prompts import check_variant, counted
from claims.build.wild.filters import parse_filters, view
from claims.labels import Evidence, Label, load_evidence, load_labels
from claims.load import ClaimSet, load_claims
from claims.schema import Claim, UserError
from harness.arms import BASELINE, CEILING, REPEAT, all_of, is_sham, sham_of, shows_all, tool_of
from harness.donors import choose_donors
from harness.logs import Setting
from harness.selection import select_claims
from harness.settings import Budget, Grid, settings_of, takes_positions
from harness.splits import check_split, split_claims
from harness.task import ceiling_suffix_of
from tools import TOOLS, get_tool
from tools.targets import Target, resolve_target
from tools.weights import cache_root, is_present

SHORT_TOKENS = 800
"""A transcript that is shown at every position is shorter than this, as in the paper."""


@dataclass(frozen=True)
class Request:
    """The command line, as typed; None where nothing was said."""

    tool: str
    """Name of the tool, or several with commas between."""
    target: str
    """Name of a target or of a family."""
    predictor: str
    """Name of the predictor."""
    calls: int | None
    """Budget of tool calls."""
    positions: int | None
    """Most positions in one call."""
    limit: int | None
    """Most claims."""
    claims: Path | None
    """A claims folder."""
    seed: int
    """Picks claims under a limit, the ceiling's responses and the sham's donors, and keys the bootstrap."""
    arms: tuple[str, ...] | None
    """Names of arms."""
    profile: str | None
    """`paper`, or nothing."""
    filters: str = "none"
    """Which claims of a set with filters: `none`, `paper`, or names separated by commas."""
    epochs: int = 1
    """Repetitions of every setting."""
    margin: float | None = None
    """Uplifts smaller than this are declared too small to matter, before the run."""
    grid: Grid = field(default_factory=Grid)
    """Budgets to sweep."""
    all_positions: bool = False
    """Show the tool's output at every position at once, on short transcripts."""
    effort: str = DEFAULT_EFFORT
    """How hard the predictor thinks."""
    split: str = ""
    """`tune` or `eval`: one half of the clusters; empty for all of them."""
    split_seed: int = 0
    """Moves clusters between the halves."""
    prompts: Path | None = None
    """A folder of prompts that stand in for the house's."""

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools, by name or, for a server of somebody else's, as `mcp:URL`."""
        return tuple(dict.fromkeys(name.strip() for name in self.tool.split(",") if name.strip()))


@dataclass(frozen=True)
class Plan:
    """A request that can be run."""

    request: Request
    """What was asked for."""
    target: Target
    """What the target's name resolved to."""
    calls: int
    """Budget of tool calls in the main setting."""
    positions: int
    """Most positions in one call in the main setting."""
    arms: tuple[str, ...]
    """Names of arms, the baseline first."""
    settings: tuple[Setting, ...]
    """Every arm with its budgets and repetitions, the baseline first."""
    claim_set: ClaimSet
    """All claims of the folder."""
    claims: tuple[Claim, ...]
    """Those of this run."""
    labels: Mapping[str, Label]
    """By claim id."""
    evidence: Mapping[str, Evidence]
    """By claim id; empty where the folder has none and no arm needs it."""
    donors: Mapping[str, str] | None
    """Whose activations a sham shows, by transcript id; None without one."""

    @property
    def not_paper(self) -> str:
        """How the budget differs from the paper's, as a sentence; empty when it does not."""
        if (self.calls, self.positions) == (PAPER_BUDGET.calls, PAPER_BUDGET.positions):
            return ""
        return (
            f"Budget: {counted(self.calls, 'call')} of {counted(self.positions, 'position')}. "
            f"Not the paper's setting ({PAPER_BUDGET.calls} calls of {PAPER_BUDGET.positions} positions)."
        )

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that arms read, as asked for."""
        read = {tool_of(arm) for arm in self.arms}
        return tuple(tool for tool in self.request.tools if arm_name(tool) in read)

    @property
    def most_positions(self) -> int:
        """The largest cap on positions of any setting."""
        return max(setting.positions for setting in self.settings)


def arm_name(tool: str) -> str:
    """The arm of a tool: its own name, or `mcp` for a server of somebody else's."""
    return ARM if is_foreign(tool) else tool


def make_plan(request: Request) -> Plan:
    """Check and resolve a request. A key is not needed yet: a plan is also what a run's cost is estimated from.

    Raises:
        UserError: Something in it is unknown, absent, out of range, or does not fit the rest.
    """
    _check_tools(request)
    family_of(request.predictor)
    reasoning_for(request.predictor, request.effort)
    _check_numbers(request)
    check_split(request.split)
    if request.prompts is not None:
        check_variant(request.prompts)
    budgets = _budgets(request)
    arms = _arms(request)
    target = resolve_target(request.target, profile=_profile(request), present=is_present)
    claim_set = load_claims(filtered_folder(claims_folder(request.claims, target), request.filters), target=target.name)
    labels = load_labels(claim_set)
    askable = short_claims(claim_set) if any(map(shows_all, arms)) else claim_set.claims
    askable = split_claims(askable, request.split, seed=request.split_seed)
    claims = select_claims(askable, labels, limit=request.limit, seed=request.seed)
    evidence = _evidence(claim_set, needed=CEILING in arms)
    if CEILING in arms:
        suffix = ceiling_suffix_of(evidence, seed=request.seed)
        for claim in claims:
            suffix(claim)
    donors = choose_donors(claim_set, seed=request.seed) if any(map(is_sham, arms)) else None
    settings = settings_of(target.name, request.predictor, arms, budgets, epochs=request.epochs)
    return Plan(
        request,
        target,
        budgets[0].calls,
        budgets[0].positions,
        arms,
        settings,
        claim_set,
        claims,
        labels,
        evidence,
        donors,
    )


def _check_tools(request: Request) -> None:
    for tool in request.tools:
        if is_foreign(tool):
            foreign_url(tool)
        else:
            get_tool(tool)
    if not request.tools:
        raise UserError(f"--tool names no tool. Known tools: {', '.join(TOOLS)}. Name one.")


def _check_numbers(request: Request) -> None:
    if request.epochs < 1:
        raise UserError(f"--epochs is {request.epochs}; expected at least 1.")
    if request.margin is not None and not 0 < request.margin < 1:
        raise UserError(f"--margin is {request.margin}; expected an AUROC difference between 0 and 1, such as 0.05.")


def _budgets(request: Request) -> tuple[Budget, ...]:
    usual = PAPER_BUDGET if request.profile == "paper" else default_budget(request.predictor)
    swept = request.grid.main(Budget(usual.calls, usual.positions))
    main = Budget(
        swept.calls if request.calls is None else request.calls,
        swept.positions if request.positions is None else request.positions,
    )
    budgets = request.grid.budgets(main)
    for budget in budgets:
        for name, value in (("--calls", budget.calls), ("--positions", budget.positions)):
            if value < 1:
                raise UserError(
                    f"{name} is {value}; expected at least 1. For a run without the tool, give --arms {BASELINE}."
                )
    return budgets


def _profile(request: Request) -> str | None:
    if request.profile not in (None, "", "paper"):
        raise UserError(
            f"Unknown profile {request.profile!r}. Known profiles: paper. Leave it out for the local default."
        )
    return request.profile or None


def _arms(request: Request) -> tuple[str, ...]:
    """The arms asked for, in the order of the tables; every known tool may be named, `--tool` or not."""
    tools = [arm_name(tool) for tool in request.tools]
    shown = [all_of(tool) for tool in tools] if request.all_positions else tools
    known = [BASELINE, REPEAT, *(arm for tool in tools for arm in (tool, sham_of(tool), all_of(tool))), CEILING]
    asked = request.arms or (BASELINE, *shown, CEILING)
    unknown = [arm for arm in asked if arm not in known]
    if unknown:
        raise UserError(f"Unknown arms {', '.join(unknown)}. Known arms: {', '.join(known)}. Choose among them.")
    if BASELINE not in asked:
        raise UserError(
            f"The arms {', '.join(asked)} lack {BASELINE!r}, which every other arm is compared with. Add it to --arms."
        )
    _check_arms_fit(asked)
    return tuple(arm for arm in known if arm in asked)


def _check_arms_fit(arms: Sequence[str]) -> None:
    for arm in arms:
        tool = tool_of(arm) or ""
        if is_sham(arm) and tool == ARM:
            raise UserError(f"The arm {arm!r} cannot be: a server of somebody else's takes no donors. Leave it out.")
        if shows_all(arm) and (tool == ARM or not takes_positions(tool)):
            raise UserError(f"The arm {arm!r} cannot be: {tool} takes no positions to show at once. Leave it out.")
        if is_sham(arm) and tool not in arms:
            raise UserError(f"The arm {arm!r} is compared with {tool!r}. Add {tool!r} to --arms.")


def short_claims(claim_set: ClaimSet) -> tuple[Claim, ...]:
    """The claims whose transcripts are shorter than `SHORT_TOKENS`.

    Raises:
        UserError: There is none.
    """
    transcripts = claim_set.transcripts
    short = tuple(c for c in claim_set.claims if len(transcripts[c.transcript_id].token_ids) < SHORT_TOKENS)
    if not short:
        raise UserError(
            f"No transcript of {claim_set.path} is shorter than {SHORT_TOKENS} tokens, and only such transcripts are "
            "shown at every position. Leave --all-positions out."
        )
    return short


def claims_folder(given: Path | None, target: Target) -> Path:
    """The claims folder that was given, else the target's own bank.

    Raises:
        UserError: None was given and the target has no bank.
    """
    if given is not None:
        return given.resolve()
    banks = Path(str(files("claims"))) / "data"
    folder = banks / target.name
    if not folder.is_dir():
        there = sorted(path.parent.name for path in banks.glob("*/claims.jsonl"))
        raise UserError(
            f"There is no claim bank for {target.name!r}. There are banks for: {', '.join(there) or 'no target yet'}. "
            f"Build one with `uplift claims build {target.name}`, or give --claims a folder."
        )
    return folder


def filtered_folder(folder: Path, filters: str) -> Path:
    """The folder that holds the claims that pass the filters; kept in the cache and made once.

    Raises:
        UserError: A filter is unknown, the set has none, or nothing passes.
    """
    parse_filters(filters)
    return view(folder, filters, cache_root() / "views") if folder.is_dir() else folder


def _evidence(claim_set: ClaimSet, *, needed: bool) -> Mapping[str, Evidence]:
    if not needed and not (claim_set.path / "evidence.jsonl").exists():
        return {}
    return load_evidence(claim_set)
