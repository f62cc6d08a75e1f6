"""Outcomes to uplift: arms are paired by claim with the `transcript` arm of the same target and predictor.

Invariants: the headline uses the claims that both arms answered, in every repetition; a claim without an answer is
never given a probability; repetitions are averaged as AUROCs, as many in both arms; and the same outcomes in another
order give the same bytes.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agents.outcome import OUTCOMES
from claims.schema import UserError
from harness.arm_result import ArmResult as ArmResult
from harness.arm_result import Key, corrected
from harness.arms import BASELINE as BASELINE
from harness.arms import CEILING as CEILING
from harness.arms import arm_place, is_sham, sham_of
from harness.estimates import (
    Answers,
    Frame,
    Side,
    accuracy_estimate,
    auroc_estimate,
    difference,
)
from harness.estimates import Estimate as Estimate
from harness.flips import count_flips
from harness.intervals import sign_test
from harness.logs import Setting
from harness.outcomes import Outcome
from harness.stats import Floats, brier

MARGIN = 0.05
"""Uplifts smaller than this are called too small to matter, unless a run declares another margin."""
KEPT_FRAMES = 6
"""Sets of claims whose resamples are kept in memory."""
FAILURES_DIFFER = 0.05
"""A sign test below this on which arm answered is reported."""


class _Frames:
    """Frames by their claims, the last few kept."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._kept: OrderedDict[tuple[str, ...], Frame] = OrderedDict()

    def of(self, rows: Iterable[Outcome]) -> Frame:
        listed = list(rows)
        name = tuple(sorted(row.claim_id for row in listed))
        if name not in self._kept:
            self._kept[name] = Frame.of(listed, seed=self._seed)
            if len(self._kept) > KEPT_FRAMES:
                self._kept.popitem(last=False)
        self._kept.move_to_end(name)
        return self._kept[name]


def compare(
    outcomes: Sequence[Outcome],
    *,
    seed: str,
    margin: float = MARGIN,
    families: Mapping[str, Sequence[Key]] | None = None,
) -> tuple[ArmResult, ...]:
    """Score every arm and budget, and compare it with the baseline of its target and predictor.

    All comparisons of one claim set share their resamples, as far as their clusters are the same.

    Args:
        outcomes: Rows of any number of settings, in any order.
        seed: What the draws are keyed by, such as the claim set's hash and the run's seed.
        margin: Uplifts smaller than this are too small to matter.
        families: Hypotheses that are corrected together, by name; None makes a family of all tools.

    Raises:
        UserError: A row comes twice, arms disagree about what a claim is, or were repeated differently often.
    """
    groups = _by_arm(outcomes)
    _check_one_claim_set(outcomes)
    frames = _Frames(seed)
    results = tuple(
        _result(setting, answers, groups, frames, margin)
        for setting, answers in sorted(groups.items(), key=lambda item: _place(item[0]))
    )
    return corrected(results, families)


def _by_arm(outcomes: Sequence[Outcome]) -> dict[Setting, Answers]:
    """The answers of each arm and budget, repetitions together."""
    rows: dict[Setting, list[Outcome]] = {}
    seen: set[tuple[Setting, str]] = set()
    for row in sorted(outcomes, key=lambda row: (row.setting, row.claim_id)):
        if (row.setting, row.claim_id) in seen:
            raise UserError(f"Claim {row.claim_id!r} comes twice in the arm {row.setting.arm!r}. Keep one row a claim.")
        seen.add((row.setting, row.claim_id))
        rows.setdefault(replace(row.setting, epoch=0), []).append(row)
    return {setting: Answers(listed) for setting, listed in rows.items()}


def _place(setting: Setting) -> tuple[object, ...]:
    """Order of the tables: by predictor the baseline, the tools with their shams, the ceiling."""
    return setting.target, setting.predictor, arm_place(setting.arm), setting


def _check_one_claim_set(outcomes: Sequence[Outcome]) -> None:
    known: dict[tuple[str, str], tuple[bool, str, str]] = {}
    for row in outcomes:
        facts = (row.label, row.cluster_id, row.investigation_id)
        if known.setdefault((row.setting.target, row.claim_id), facts) != facts:
            raise UserError(
                f"Claim {row.claim_id!r} has two labels, clusters or investigations in these outcomes: they come from "
                "different claim sets. Compare arms of one claim set only."
            )


def _result(
    setting: Setting, answers: Answers, groups: Mapping[Setting, Answers], frames: _Frames, margin: float
) -> ArmResult:
    if setting.arm == BASELINE:
        return _baseline_result(setting, answers, frames)
    baseline = Setting(setting.target, setting.predictor, BASELINE, 0, 0)
    result = _arm_result(setting, answers, groups.get(baseline, Answers(())), frames, margin)
    sham = groups.get(replace(setting, arm=sham_of(setting.arm)))
    if sham is None or is_sham(setting.arm):
        return result
    frame, n_excluded = _shared(answers, sham, frames)
    ids = frame.claim_ids
    sides = Side(answers.p_true(ids), "this arm"), Side(sham.p_true(ids), "the sham arm")
    return replace(result, against_sham=difference(frame, *sides, n_excluded=n_excluded, margin=margin))


def _baseline_result(setting: Setting, answers: Answers, frames: _Frames) -> ArmResult:
    answered = [rows[0] for claim_id, rows in answers.by_claim.items() if answers.answered(claim_id)]
    frame = frames.of(answered)
    side = Side(answers.p_true(frame.claim_ids), "this arm")
    estimate = auroc_estimate(frame, side, n_excluded=len(answers.by_claim) - len(answered))
    return _described(setting, answers, frame, side, estimate)


def _shared(one: Answers, other: Answers, frames: _Frames) -> tuple[Frame, int]:
    """The claims that both arms answered, and how many of either's claims are not among them."""
    if one.epochs and other.epochs and one.epochs != other.epochs:
        raise UserError(
            f"One arm was repeated {one.epochs} times and the other {other.epochs} times. Averaging more repetitions "
            "raises nothing but the precision of one side: give both arms the same number."
        )
    answered = [
        rows[0]
        for name, rows in one.by_claim.items()
        if one.answered(name) and name in other.by_claim and other.answered(name)
    ]
    return frames.of(answered), len(one.by_claim.keys() | other.by_claim.keys()) - len(answered)


def _arm_result(setting: Setting, answers: Answers, base: Answers, frames: _Frames, margin: float) -> ArmResult:
    frame, n_excluded = _shared(answers, base, frames)
    arm = Side(answers.p_true(frame.claim_ids), "this arm")
    there = Side(base.p_true(frame.claim_ids), f"the {BASELINE} arm")
    uplift = difference(frame, arm, there, n_excluded=n_excluded, margin=margin)
    half = worst = uplift
    shared = [rows[0] for name, rows in answers.by_claim.items() if name in base.by_claim]
    if not shared and base.by_claim:
        note = f"the arm and the {BASELINE} arm have no claim in common: they were asked about different claims"
        uplift = replace(uplift, notes=(note,))
    if len(frame.claim_ids) < len(shared):
        whole = frames.of(shared)
        n_left = len(answers.by_claim.keys() | base.by_claim.keys()) - len(shared)
        half, worst = _with_missing(whole, answers, base, n_left, margin)
        uplift = _warned(uplift, answers, base)
    estimate = auroc_estimate(frame, arm, n_excluded=n_excluded, beside=(there,))
    return replace(
        _described(setting, answers, frame, arm, estimate),
        baseline_auroc=frame.value(there.p_true),
        uplift=uplift,
        half_credit=half,
        worst_case=worst,
        flips=count_flips(arm.p_true, there.p_true, frame.labels) if there.p_true else None,
    )


def _with_missing(
    whole: Frame, answers: Answers, base: Answers, n_excluded: int, margin: float
) -> tuple[Estimate, Estimate]:
    """Half credit, and the worst case: what is missing costs the arm every pair and the baseline none."""
    arm, there = answers.p_true(whole.claim_ids), base.p_true(whole.claim_ids)
    half, worst = (
        difference(
            whole,
            Side(arm, "this arm", mine),
            Side(there, f"the {BASELINE} arm", theirs),
            n_excluded=n_excluded,
            margin=margin,
        )
        for mine, theirs in ((0.5, 0.5), (0.0, 1.0))
    )
    return half, worst


def _warned(uplift: Estimate, answers: Answers, base: Answers) -> Estimate:
    """The uplift with a note when the arms fail on claims at different rates."""
    names = answers.by_claim.keys() & base.by_claim.keys()
    here = {name for name in names if not answers.answered(name)}
    there = {name for name in names if not base.answered(name)}
    if sign_test(len(here - there), len(there - here)) >= FAILURES_DIFFER:
        return uplift
    note = (
        f"{len(here) / len(names):.1%} of its claims have no answer, but {len(there) / len(names):.1%} of the "
        f"{BASELINE} arm's: the arms fail at different rates, so read half credit and the worst case, too"
    )
    return replace(uplift, notes=(*uplift.notes, note))


def _described(setting: Setting, answers: Answers, frame: Frame, side: Side, estimate: Estimate) -> ArmResult:
    rows = [row for listed in answers.by_claim.values() for row in listed]
    counts = Counter(row.outcome for row in rows)
    accuracy, low, high = accuracy_estimate(frame, side)
    return ArmResult(
        setting=setting,
        auroc=estimate,
        baseline_auroc=float("nan"),
        uplift=None,
        half_credit=None,
        accuracy=accuracy,
        accuracy_low=low,
        accuracy_high=high,
        brier=_mean_brier(side.p_true, frame),
        outcome_counts=tuple((name, counts[name]) for name in OUTCOMES if counts[name]),
        mean_calls_used=sum(row.calls_used for row in rows) / len(rows),
        epochs=answers.epochs,
    )


def _mean_brier(p_true: Sequence[Floats], frame: Frame) -> float:
    return sum(brier(p, frame.labels) for p in p_true) / len(p_true) if p_true else float("nan")
