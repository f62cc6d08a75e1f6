"""Rates before and after every edit: ten responses first, thirty for what can still become a claim.

Invariant: the thirty hold the ten; verdicts come from the investigation's own program and from nothing else.
"""

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from claims.build.draw import seeded
from claims.build.programs import Program
from claims.build.sampler import Prompt, Sampler
from claims.build.spec import KINDS, Edit, Investigation
from tools.sampling import Sample

logger = logging.getLogger(__name__)

N_SCREEN = 10
"""Responses of a prompt before anything is decided."""
N_FULL = 30
"""Responses behind a label."""
MIN_BASELINE = Fraction(3, 10)
"""Least share of yes on the original prompt."""
SCREEN_BASELINE = Fraction(2, 10)
"""The same among the first ten, with room for chance."""
SCREEN_TRUE = Fraction(4, 10)
"""Among the first ten, a change of this or more can still become a true claim."""
SCREEN_FALSE = Fraction(2, 10)
"""Among the first ten, a change of this or less can still become a false claim."""
PER_TEMPLATE = 3
"""Investigations of one template at most."""
PER_SIDE = 2
"""Edits of one investigation that look true, and that look false, and are sampled in full, at most."""


@dataclass(frozen=True)
class Batch:
    """Responses of one prompt with the verdict on each."""

    samples: tuple[Sample, ...]
    """The responses, by index."""
    verdicts: tuple[bool, ...]
    """True where a response shows the behaviour."""

    @property
    def n(self) -> int:
        """How many responses."""
        return len(self.samples)

    @property
    def n_yes(self) -> int:
        """How many show the behaviour."""
        return sum(self.verdicts)

    @property
    def rate(self) -> Fraction:
        """Share that shows it; a batch is never empty."""
        return Fraction(self.n_yes, self.n)


@dataclass(frozen=True)
class Measured:
    """One investigation with its responses."""

    investigation: Investigation
    """What was asked."""
    baseline: Batch
    """Responses to the original prompt."""
    edits: dict[str, Batch]
    """Responses to every edited prompt, by edit id."""

    def change(self, edit_id: str) -> Fraction:
        """Rate after the edit minus the rate before."""
        return self.edits[edit_id].rate - self.baseline.rate

    def is_full(self, edit_id: str) -> bool:
        """Whether enough was sampled for a label."""
        return self.edits[edit_id].n >= N_FULL and self.baseline.n >= N_FULL


def judge(samples: Sequence[Sample], program: Program) -> Batch:
    """Verdicts of `program` on the samples."""
    return Batch(tuple(samples), tuple(program(sample.text) for sample in samples))


def screen(sampler: Sampler, investigations: Sequence[Investigation], seed: int) -> list[Measured]:
    """Ten responses of every prompt; edits only where the baseline still allows a claim."""
    logger.info("screening the baselines of %d investigations", len(investigations))
    first = sampler.draw([one.messages for one in investigations], N_SCREEN, seed)
    baselines = [judge(first[one.messages], one.program) for one in investigations]
    hopeful = [one for one, base in zip(investigations, baselines, strict=True) if base.rate >= SCREEN_BASELINE]
    edits = [edit.messages for one in hopeful for edit in one.edits]
    logger.info("%d baselines are frequent enough; screening their %d edits", len(hopeful), len(edits))
    drawn = sampler.draw(edits, N_SCREEN, seed)
    hopeful_ids = {one.investigation_id for one in hopeful}
    return [
        Measured(one, base, _judged(one, one.edits if one.investigation_id in hopeful_ids else (), drawn))
        for one, base in zip(investigations, baselines, strict=True)
    ]


def deepen(
    sampler: Sampler,
    screened: Sequence[Measured],
    seed: int,
    *,
    most: int | None = None,
    kept: Collection[str] = (),
) -> list[Measured]:
    """Thirty responses of every prompt that is drawn to become a claim, and of its baseline.

    Args:
        sampler: Of the target.
        screened: What `screen` found.
        seed: Of the samples and of what is drawn.
        most: Investigations to sample in full at most; those in which both labels may come out go first, and among
            them those with short responses, which cost least.
        kept: Ids of investigations that go before all others: those of the bank that is to grow.
    """
    excess = excess_of_kinds(screened)
    wanted = {one.investigation.investigation_id: drawn_edits(one, seed, excess) for one in screened}
    for one in _left_out(screened, seed, most, kept):
        wanted[one.investigation.investigation_id] = ()
    prompts: list[Prompt] = []
    for one in screened:
        chosen = wanted[one.investigation.investigation_id]
        prompts += [one.investigation.messages, *(edit.messages for edit in chosen)] if chosen else []
    logger.info("sampling %d prompts up to %d responses", len(set(prompts)), N_FULL)
    drawn = sampler.draw(prompts, N_FULL, seed)
    return [_deepened(one, wanted[one.investigation.investigation_id], drawn) for one in screened]


def promising(one: Measured) -> tuple[Edit, ...]:
    """Edits whose change among the first ten is clearly large or clearly small."""
    edits = [edit for edit in one.investigation.edits if edit.edit_id in one.edits]
    return tuple(edit for edit in edits if not SCREEN_FALSE < abs(one.change(edit.edit_id)) < SCREEN_TRUE)


def _left_out(screened: Sequence[Measured], seed: int, most: int | None, kept: Collection[str]) -> list[Measured]:
    """Investigations that are not sampled in full: all but `most`, three of a template at most."""

    def rank(one: Measured) -> tuple[bool, bool, int, str]:
        name = one.investigation.investigation_id
        sides = {_is_large(one, edit) for edit in promising(one)}
        n_tokens = sum(len(sample.token_ids) for sample in one.baseline.samples)
        return name not in kept, len(sides) == 1, n_tokens, seeded(seed, f"in full\n{name}")

    taken: Counter[str] = Counter()
    left_out = []
    for one in sorted((one for one in screened if promising(one)), key=rank):
        template = one.investigation.template
        if taken[template] < PER_TEMPLATE and (most is None or taken.total() < most):
            taken[template] += 1
        else:
            left_out.append(one)
    return left_out


def excess_of_kinds(screened: Sequence[Measured]) -> dict[str, float]:
    """For every kind of edit the share it has among large changes minus the share it has among small ones."""
    sides = {True: Counter[str](), False: Counter[str]()}
    for one in screened:
        for edit in promising(one):
            sides[_is_large(one, edit)][edit.kind] += 1
    return {
        kind: sides[True][kind] / max(sides[True].total(), 1) - sides[False][kind] / max(sides[False].total(), 1)
        for kind in KINDS
    }


def _is_large(one: Measured, edit: Edit) -> bool:
    return abs(one.change(edit.edit_id)) >= SCREEN_TRUE


def drawn_edits(one: Measured, seed: int, excess: Mapping[str, float]) -> tuple[Edit, ...]:
    """Of the promising edits at most `PER_SIDE` of either side, whatever the size of the change.

    Of large changes the kinds that are rarer among the large go first, of small ones those that are rarer among the
    small, so that the kind of an edit says little about its label; the seed decides between equals.
    """
    edits = promising(one)

    def order(edit: Edit) -> tuple[float, str]:
        towards = excess[edit.kind] if _is_large(one, edit) else -excess[edit.kind]
        return towards, seeded(seed, f"in full\n{one.investigation.investigation_id}/{edit.edit_id}")

    large = sorted((edit for edit in edits if _is_large(one, edit)), key=order)[:PER_SIDE]
    small = sorted((edit for edit in edits if not _is_large(one, edit)), key=order)[:PER_SIDE]
    return tuple(edit for edit in edits if edit in large or edit in small)


def _judged(one: Investigation, edits: Sequence[Edit], drawn: dict[Prompt, tuple[Sample, ...]]) -> dict[str, Batch]:
    return {edit.edit_id: judge(drawn[edit.messages], one.program) for edit in edits}


def _deepened(one: Measured, edits: Sequence[Edit], drawn: dict[Prompt, tuple[Sample, ...]]) -> Measured:
    if not edits:
        return one
    baseline = judge(drawn[one.investigation.messages], one.investigation.program)
    return Measured(one.investigation, baseline, {**one.edits, **_judged(one.investigation, edits, drawn)})
