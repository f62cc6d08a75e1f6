"""What a run's outputs are judged by: its manifest, claims, outcomes and outputs, looked at for fitting together.

Invariant: nothing is judged whose claims are not those that the run asked about.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from claims.load import ClaimSet, load_claims
from claims.schema import Claim, UserError
from harness.arms import shows_all, tool_of
from harness.logs import Setting
from harness.manifest import Manifest, load_manifest
from harness.outcomes import Outcome, read_outcomes
from harness.plan import claims_folder, filtered_folder
from harness.results import LOGS
from harness.why.outputs import Output, read_outputs
from tools.targets import get_target


@dataclass(frozen=True)
class Material:
    """A run, as far as it says why."""

    manifest: Manifest
    """How it was made."""
    claims: dict[str, Claim]
    """Those that it asked about, by id."""
    outcomes: tuple[Outcome, ...]
    """Of every arm."""
    outputs: tuple[Output, ...]
    """What tools said in the arms that are looked at."""

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Those that said anything, in order."""
        return tuple(sorted({output.setting for output in self.outputs}))

    @property
    def seed(self) -> int:
        """Of the run."""
        return int(self.manifest.settings.get("seed") or 0)


def read_material(
    folder: Path,
    *,
    claims: Path | None = None,
    arms: Sequence[str] = (),
    every_position: bool = False,
    limit: int | None = None,
) -> Material:
    """Read a run.

    Args:
        folder: Of the run.
        claims: Claims folder; None takes the one that the manifest names.
        arms: Arms to look at; empty takes all that read a tool at chosen positions.
        every_position: Look at arms that were shown every position, too.
        limit: Look at this many claims at most, the first by id.

    Raises:
        UserError: It is no run, no arm of it reads a tool, no tool said anything, or the claims are others.
    """
    manifest = load_manifest(folder)
    chosen = _arms(manifest, arms, every_position)
    claim_set = _claims(manifest, claims)
    outcomes = read_outcomes(folder / LOGS)
    by_id = {claim.claim_id: claim for claim in claim_set.claims}
    asked = sorted({row.claim_id for row in outcomes})
    strange = [name for name in asked if name not in by_id]
    if strange:
        raise UserError(
            f"{claim_set.path} has no claim {strange[0]!r}, which {folder.name} asked about. Give --claims its folder."
        )
    outputs, n_read = read_outputs(folder / LOGS, chosen)
    if not outputs:
        raise UserError(
            f"{folder.name}: no tool said anything in {n_read} conversations of {', '.join(chosen)}: there is no "
            "output to look at. Choose a run whose predictor called its tool."
        )
    kept = set(asked if limit is None else asked[:limit])
    return Material(
        manifest,
        {name: by_id[name] for name in asked if name in kept},
        tuple(row for row in outcomes if row.claim_id in kept),
        tuple(output for output in outputs if output.claim_id in kept),
    )


def _arms(manifest: Manifest, wanted: Collection[str], every_position: bool) -> tuple[str, ...]:
    reading = [arm for arm in manifest.arms if tool_of(arm) is not None]
    if not reading:
        raise UserError(
            f"The run {manifest.run} has no arm with a tool (it has {', '.join(manifest.arms)}), so no tool said "
            "anything in it. Choose another run."
        )
    unknown = [arm for arm in wanted if arm not in reading]
    if unknown:
        raise UserError(f"--arms: {unknown[0]!r} reads no tool in this run. Choose among {', '.join(reading)}.")
    whole = [arm for arm in reading if shows_all(arm)]
    if every_position and not whole:
        raise UserError(
            f"The run {manifest.run} holds no arm that was shown every position (it has {', '.join(reading)}). "
            "Make one with `uplift eval --all-positions`, or leave --every-position out."
        )
    chosen = [arm for arm in wanted or reading if every_position or not shows_all(arm)]
    if not chosen:
        raise UserError(f"{', '.join(whole)} was shown every position: add --every-position.")
    return tuple(chosen)


def _claims(manifest: Manifest, given: Path | None) -> ClaimSet:
    """The run's claims, with the filters that it used."""
    target, named = str(manifest.settings["target"]), Path(str(manifest.claims["folder"]))
    # A bank that ships is named as it is called in the checkout, whatever folder the command was given in.
    folder = given or (named if named.is_absolute() else claims_folder(None, get_target(target)))
    path = filtered_folder(folder, str(manifest.claims.get("filters", "none")))
    found = load_claims(path, target=target)
    if found.sha256 != manifest.hashes["claim_set"]:
        raise UserError(
            f"{path} has changed since the run {manifest.run} was made: its sha256 begins {found.sha256[:12]}, the "
            f"run's {str(manifest.hashes['claim_set'])[:12]}. Give --claims the folder as it was."
        )
    return found


def merged(outcomes: Sequence[Outcome], setting: Setting) -> dict[str, list[Outcome]]:
    """The outcomes of one arm and budget by claim, in the order of their repetitions."""
    rows: dict[str, list[Outcome]] = {}
    for row in sorted(outcomes, key=lambda row: row.setting.epoch):
        if replace(row.setting, epoch=0) == setting:
            rows.setdefault(row.claim_id, []).append(row)
    return rows
