"""One arm and budget, summed up: how often it states and hints, what its clues predict, what it won and lost.

Invariant: true and false claims are counted apart, as a statement about a false claim is a false statement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.arms import BASELINE
from harness.logs import Setting
from harness.why.clues import ClaimClues, clue_names, weigh
from harness.why.judge import Judged
from harness.why.material import Material, merged
from harness.why.moved import Move, moves
from harness.why.predicts import Predicts, predicts
from harness.why.questions import DECOY, EDITED, NEITHER
from harness.why.rates import Rate, rate


@dataclass(frozen=True)
class Counted:
    """How often something was said about the claims of one label."""

    label: bool
    """Of the claims."""
    n_outputs: int
    """What the tool said about them, with a verdict."""
    claims_stated: Rate
    """Share of the claims with an output that states the cause."""
    outputs_stated: Rate
    """Share of the outputs that do."""
    claims_hinted: Rate
    """Share of the claims with an output that points at the edited factor."""
    hinted: Rate
    """Share of the outputs that do, averaged over claims."""
    decoyed: Rate
    """Share of the outputs that point at the decoy, averaged over claims: what chance and topic alone give."""
    neither: Rate
    """Share of the outputs that point at neither, averaged over claims."""

    def as_row(self) -> dict[str, object]:
        """JSON-ready."""
        return {name: value.as_row() if isinstance(value, Rate) else value for name, value in vars(self).items()}


@dataclass(frozen=True)
class Summary:
    """What one arm and budget says of why."""

    setting: Setting
    """The arm and its budget."""
    n_asked: int
    """Claims that it was asked about."""
    n_silent: int
    """Claims about which its tool said nothing."""
    n_outputs: int
    """What it said in all."""
    clues: Mapping[str, ClaimClues]
    """By claim."""
    counted: tuple[Counted, ...]
    """True claims, false claims; empty without a judge."""
    predicts: tuple[Predicts, ...]
    """One a clue; empty without a baseline."""
    moves: tuple[Move, ...]
    """The largest win first; empty without a baseline."""


def summaries(material: Material, judged: Judged | None) -> tuple[Summary, ...]:
    """Every arm and budget whose tool said anything."""
    return tuple(_summary(material, setting, judged) for setting in material.settings)


def _summary(material: Material, setting: Setting, judged: Judged | None) -> Summary:
    outputs = [output for output in material.outputs if output.setting == setting]
    clues = weigh(outputs, material.claims, judged)
    asked = merged(material.outcomes, setting)
    baseline = merged(material.outcomes, Setting(setting.target, setting.predictor, BASELINE, 0, 0))
    labels = {claim_id: rows[0].label for claim_id, rows in asked.items()}
    seed = f"{material.manifest.hashes['claim_set']} {material.seed}"
    names = clue_names(judged) if baseline else ()
    return Summary(
        setting=setting,
        n_asked=len(asked),
        n_silent=len(asked.keys() - clues.keys()),
        n_outputs=len(outputs),
        clues=clues,
        counted=tuple(count(clues, labels, label, seed=seed) for label in (True, False)) if judged else (),
        predicts=tuple(predicts(name, clues, baseline, n_asked=len(asked), seed=seed) for name in names),
        moves=moves(baseline, asked, clues, material.claims),
    )


def count(clues: Mapping[str, ClaimClues], labels: Mapping[str, bool], label: bool, *, seed: str) -> Counted:
    """How often something was said about the claims with one label.

    Args:
        clues: By claim.
        labels: By claim.
        label: The one that is counted.
        seed: What the draws are keyed by.
    """
    chosen = [found for claim_id, found in clues.items() if labels[claim_id] == label]
    judged = [found for found in chosen if found.read_statements]
    hinted = [found for found in chosen if found.read_hints]
    outputs = [(float(stated), found.claim.cluster_id) for found in judged for stated in found.read_statements]

    def over(found: Sequence[ClaimClues], parts: Sequence[float]) -> Rate:
        return rate(parts, [one.claim.cluster_id for one in found], key=("why", seed))

    return Counted(
        label=label,
        n_outputs=len(outputs),
        claims_stated=over(judged, [float(any(found.read_statements)) for found in judged]),
        outputs_stated=rate([part for part, _ in outputs], [name for _, name in outputs], key=("why", seed)),
        claims_hinted=over(hinted, [float(EDITED in found.read_hints) for found in hinted]),
        hinted=over(hinted, [found.pointed(EDITED) for found in hinted]),
        decoyed=over(hinted, [found.pointed(DECOY) for found in hinted]),
        neither=over(hinted, [found.pointed(NEITHER) for found in hinted]),
    )
