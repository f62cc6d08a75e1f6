"""Check any claims folder against what a claim set promises, and show its card.

Invariant: a problem is a promise that is broken; a note is a fact that the reader of an uplift should know. A file
that cannot be read at all is a `ClaimsError` of the loaders, not a problem.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from claims.build.thresholds import measured_label
from claims.labels import Evidence, Label, load_evidence, load_labels
from claims.load import ClaimSet, load_claims, read_card
from claims.schema import Claim, Message

MAX_SHOWN = 5
"""Most examples of one problem that are listed."""
FRESH_WANTED = 8
"""Responses that the ceiling arm draws."""
_BALANCED = (0.45, 0.55)
_FEW_CLUSTERS = 30
_RATE_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Check:
    """A claim set in numbers, and what is wrong with it."""

    path: Path
    """The folder."""
    target: str
    """Name of the target that was sampled."""
    temperature: float
    """At which it was sampled."""
    n_claims: int
    """Claims."""
    n_true: int
    """True ones."""
    n_investigations: int
    """Investigations."""
    n_transcripts: int
    """Transcripts that a claim is about."""
    n_clusters: int
    """Clusters: what an interval resamples."""
    largest_cluster: int
    """Claims in the largest cluster."""
    n_measured: int
    """Claims whose label has its counts."""
    n_evidence: int
    """Claims with responses of the edited prompt."""
    card: dict[str, object]
    """How the set was built, as stored."""
    problems: tuple[str, ...]
    """Promises that the set breaks; empty for a set that can be used."""
    notes: tuple[str, ...]
    """What else to know."""

    def text(self) -> str:
        """The card for a reader, one fact a line."""
        lines = [
            f"folder     {self.path}",
            f"target     {self.target}, temperature {self.temperature:g}",
            f"claims     {self.n_claims:,}: {self.n_true:,} true, {self.n_claims - self.n_true:,} false",
            f"clusters   {self.n_clusters:,} (the largest has {self.largest_cluster:,} claims), "
            f"{self.n_investigations:,} investigations on {self.n_transcripts:,} transcripts",
            f"labels     {self.n_measured:,} with counts, {self.n_claims - self.n_measured:,} as given",
            f"evidence   for {self.n_evidence:,} claims",
        ]
        lines += [f"{name:<10} {_shown(value)}" for name, value in self.card.items() if name not in ("target",)]
        lines += [f"note       {note}" for note in self.notes]
        lines += [f"PROBLEM    {problem}" for problem in self.problems]
        return "\n".join(lines) + "\n"


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(item)}" for name, item in value.items())
    if isinstance(value, list):
        return "; ".join(_shown(item) for item in value)
    return str(value)


def check_claims(folder: Path) -> Check:
    """Load every file of the folder and check what the loaders cannot.

    Raises:
        ClaimsError: A file is absent or broken, ids do not fit together, or a label is missing.
    """
    claim_set = load_claims(folder)
    labels = load_labels(claim_set)
    evidence = load_evidence(claim_set) if (folder / "evidence.jsonl").exists() else {}
    clusters = Counter(claim.cluster_id for claim in claim_set.claims)
    return Check(
        path=folder,
        target=claim_set.target,
        temperature=claim_set.temperature,
        n_claims=len(claim_set.claims),
        n_true=sum(label.label for label in labels.values()),
        n_investigations=len({claim.investigation_id for claim in claim_set.claims}),
        n_transcripts=len({claim.transcript_id for claim in claim_set.claims}),
        n_clusters=len(clusters),
        largest_cluster=max(clusters.values()),
        n_measured=sum(label.edited_n > 0 for label in labels.values()),
        n_evidence=len(evidence),
        card=read_card(folder),
        problems=tuple(_problems(claim_set, labels, evidence)),
        notes=tuple(_notes(claim_set, labels, evidence, clusters)),
    )


def _problems(claim_set: ClaimSet, labels: dict[str, Label], evidence: dict[str, Evidence]) -> Iterator[str]:
    claims = claim_set.claims
    wrong = [_wrong_label(claim, labels[claim.claim_id]) for claim in claims]
    yield from _listed("labels do not follow from their counts", (text for text in wrong if text))
    rates = (_wrong_rate(claim, labels[claim.claim_id]) for claim in claims)
    yield from _listed("baseline rates are not those of the counts", (text for text in rates if text))
    yield from _listed("investigations have more than one transcript", _several_transcripts(claims))
    yield from _listed("prompts stand in more than one cluster", _torn_prompts(claim_set))
    found = (_wrong_evidence(claim_set, claim, labels, evidence) for claim in claims)
    yield from _listed("claims have evidence that does not fit", (text for text in found if text))


def _listed(what: str, examples: Iterable[str]) -> Iterator[str]:
    found = list(examples)
    if found:
        more = f" and {len(found) - MAX_SHOWN:,} more" if len(found) > MAX_SHOWN else ""
        yield f"{len(found):,} {what}: {'; '.join(found[:MAX_SHOWN])}{more}"


def _wrong_label(claim: Claim, label: Label) -> str | None:
    if label.edited_n == 0 or label.baseline_n == 0:
        return None
    measured = measured_label(
        Fraction(label.baseline_yes, label.baseline_n), Fraction(label.edited_yes, label.edited_n)
    )
    if measured is label.label:
        return None
    counts = f"{label.baseline_yes}/{label.baseline_n} to {label.edited_yes}/{label.edited_n}"
    return (
        f"{claim.claim_id} is {label.label}, its counts {counts} make it {'unused' if measured is None else measured}"
    )


def _wrong_rate(claim: Claim, label: Label) -> str | None:
    if label.baseline_n == 0:
        return None
    rate = label.baseline_yes / label.baseline_n
    if abs(rate - claim.baseline_rate) <= _RATE_TOLERANCE:
        return None
    return f"{claim.claim_id} says {claim.baseline_rate:.4g}, its counts {label.baseline_yes}/{label.baseline_n}"


def _several_transcripts(claims: tuple[Claim, ...]) -> Iterator[str]:
    seen: dict[str, set[str]] = {}
    for claim in claims:
        seen.setdefault(claim.investigation_id, set()).add(claim.transcript_id)
    return (f"{name} has {len(ids)}" for name, ids in seen.items() if len(ids) > 1)


def _torn_prompts(claim_set: ClaimSet) -> Iterator[str]:
    clusters: dict[tuple[Message, ...], set[str]] = {}
    for claim in claim_set.claims:
        messages = claim_set.transcripts[claim.transcript_id].messages
        clusters.setdefault(messages, set()).add(claim.cluster_id)
    return (" and ".join(sorted(names)[:3]) for names in clusters.values() if len(names) > 1)


def _wrong_evidence(
    claim_set: ClaimSet, claim: Claim, labels: dict[str, Label], evidence: dict[str, Evidence]
) -> str | None:
    shown, label = evidence.get(claim.claim_id), labels[claim.claim_id]
    if shown is None:
        return None
    if shown.messages == claim_set.transcripts[claim.transcript_id].messages:
        return f"{claim.claim_id}: the edited prompt is the original"
    counts = (sum(verdict.yes for verdict in shown.responses), len(shown.responses))
    if label.edited_n and counts != (label.edited_yes, label.edited_n):
        behind = f"{label.edited_yes}/{label.edited_n}"
        return f"{claim.claim_id}: {counts[0]}/{counts[1]} in the evidence, {behind} behind the label"
    return None


def _notes(
    claim_set: ClaimSet, labels: dict[str, Label], evidence: dict[str, Evidence], clusters: Counter[str]
) -> Iterator[str]:
    share = sum(label.label for label in labels.values()) / len(labels)
    if not _BALANCED[0] <= share <= _BALANCED[1]:
        yield f"{share:.0%} of the claims are true: not balanced"
    if len(clusters) < _FEW_CLUSTERS:
        yield f"only {len(clusters)} clusters: intervals from so few are rough"
    texts = Counter((claim.transcript_id, claim.behaviour, claim.intervention) for claim in claim_set.claims)
    doubled = sum(count - 1 for count in texts.values())
    if doubled:
        yield f"{doubled:,} claims repeat another word for word"
    unused = len(claim_set.transcripts) - len({claim.transcript_id for claim in claim_set.claims})
    if unused:
        yield f"{unused:,} transcripts have no claim"
    if not evidence:
        yield "no evidence.jsonl: the ceiling arm cannot run, and the leak audit sees no edited prompts"
    short = sum(len(one.fresh) < FRESH_WANTED for one in evidence.values())
    if short:
        yield f"{short:,} claims have fewer than {FRESH_WANTED} fresh responses for the ceiling arm"
