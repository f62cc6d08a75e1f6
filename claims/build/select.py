"""From measured rates to the claims of a bank: labels, caps, balance.

Invariant: no choice looks at anything but counts, ids, kinds and the seed, and every number dropped is counted.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from claims.build.draw import seeded
from claims.build.measure import MIN_BASELINE, PER_TEMPLATE, Batch, Measured
from claims.build.spec import Edit
from claims.build.thresholds import measured_label

PER_LABEL = 2
"""True, and false, claims of one investigation at most."""


@dataclass(frozen=True)
class Candidate:
    """An edit whose label is known."""

    measured: Measured
    """Its investigation."""
    edit: Edit
    """The edit."""
    label: bool
    """True for a large change, false for a small one."""

    @property
    def claim_id(self) -> str:
        """Investigation and edit."""
        return f"{self.investigation_id}/{self.edit.edit_id}"

    @property
    def investigation_id(self) -> str:
        """Its investigation."""
        return self.measured.investigation.investigation_id

    @property
    def cluster_id(self) -> str:
        """Its family of prompts."""
        return self.measured.investigation.template

    @property
    def edited(self) -> Batch:
        """Responses to the edited prompt."""
        return self.measured.edits[self.edit.edit_id]


def select(measured: Sequence[Measured], seed: int) -> tuple[list[Candidate], dict[str, int]]:
    """The claims of a bank and how many were left after every filter."""
    full = [one for one in measured if any(one.is_full(edit_id) for edit_id in one.edits)]
    frequent = [one for one in full if one.baseline.rate >= MIN_BASELINE]
    labelled = [candidate for one in frequent for candidate in _candidates(one)]
    capped = _cap_labels(labelled, seed)
    spread = _cap_templates(capped, seed)
    chosen = balance(spread, seed)
    counts = {
        "investigations_written": len(measured),
        "edits_written": sum(len(one.investigation.edits) for one in measured),
        "investigations_screened_in": sum(bool(one.edits) for one in measured),
        "edits_screened": sum(len(one.edits) for one in measured),
        "investigations_sampled_in_full": len(full),
        "edits_sampled_in_full": sum(one.is_full(edit_id) for one in full for edit_id in one.edits),
        "investigations_frequent_enough": len(frequent),
        **_count("labelled", labelled),
        **_count("two_of_a_label", capped),
        **_count("three_of_a_template", spread),
        **_count("balanced", chosen),
    }
    return sorted(chosen, key=lambda one: one.claim_id), counts


def _count(stage: str, candidates: Sequence[Candidate]) -> dict[str, int]:
    n_true = sum(one.label for one in candidates)
    return {f"{stage}_true": n_true, f"{stage}_false": len(candidates) - n_true}


def _candidates(one: Measured) -> Iterable[Candidate]:
    for edit in one.investigation.edits:
        if edit.edit_id in one.edits and one.is_full(edit.edit_id):
            label = measured_label(one.baseline.rate, one.edits[edit.edit_id].rate)
            if label is not None:
                yield Candidate(one, edit, label)


def _cap_labels(candidates: Sequence[Candidate], seed: int) -> list[Candidate]:
    """Of each investigation true claims by chance, large changes and small, and the false edits most like them."""
    grouped = defaultdict(list)
    for one in candidates:
        grouped[one.investigation_id].append(one)
    kept: list[Candidate] = []
    for group in grouped.values():
        true = sorted((one for one in group if one.label), key=lambda one: seeded(seed, one.claim_id))[:PER_LABEL]
        kinds = {one.edit.kind for one in true}
        false = sorted(
            (one for one in group if not one.label),
            key=lambda one: (one.edit.kind not in kinds, seeded(seed, one.claim_id)),
        )[:PER_LABEL]
        kept += true + false
    return kept


def _cap_templates(candidates: Sequence[Candidate], seed: int) -> list[Candidate]:
    """Of each template the investigations with both labels and most claims."""
    sizes = Counter(one.investigation_id for one in candidates)
    labels = defaultdict(set)
    members = defaultdict(set)
    for one in candidates:
        labels[one.investigation_id].add(one.label)
        members[one.cluster_id].add(one.investigation_id)
    kept: set[str] = set()
    for group in members.values():
        ranked = sorted(group, key=lambda one: (-len(labels[one]), -sizes[one], seeded(seed, one)))
        kept.update(ranked[:PER_TEMPLATE])
    return [one for one in candidates if one.investigation_id in kept]


def balance(candidates: Sequence[Candidate], seed: int) -> list[Candidate]:
    """As many true as false claims.

    Dropped first are claims whose cluster keeps another one, then claims of a kind of edit that the larger label has
    more of than the smaller (so that the kind says little about the label), then by the seed.
    """
    kept = list(candidates)
    while True:
        n_true = sum(one.label for one in kept)
        larger = 2 * n_true > len(kept)
        if 2 * n_true == len(kept):
            return kept
        clusters = Counter(one.cluster_id for one in kept)
        excess = Counter(one.edit.kind for one in kept if one.label == larger)
        excess.subtract(one.edit.kind for one in kept if one.label != larger)
        kept.remove(
            min(
                (one for one in kept if one.label == larger),
                key=lambda one: (
                    clusters[one.cluster_id] == 1,
                    -excess[one.edit.kind],
                    seeded(seed, one.claim_id),
                ),
            )
        )
