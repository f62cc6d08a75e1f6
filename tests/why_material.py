"""Claims, outputs, outcomes and verdicts made by hand."""

from collections.abc import Sequence

from claims.schema import Claim
from harness.logs import Setting
from harness.outcomes import Outcome
from harness.why.clues import ClaimClues, weigh
from harness.why.judge import Judged, Verdict
from harness.why.outputs import Output

SAE = Setting("tiny-gemma", "scripted", "sae", 5, 32)
BASE = Setting("tiny-gemma", "scripted", "transcript", 0, 0)


def claim(number: int, *, cluster: int | None = None, intervention: str = "") -> Claim:
    edit = intervention or f"The word kind{number} is deleted."
    of = number if cluster is None else cluster
    return Claim(f"claim-{number:03}", f"cluster-{of}", f"i-{number}", f"t-{number}", "Does it say blue?", 0.9, edit)


def output(number: int, text: str, *, asked: str = "", position: int | None = 1) -> Output:
    return Output(f"claim-{number:03}", SAE, 0, 1, position, asked, text)


def outcome(number: int, p_true: float | None, *, arm: Setting = BASE, epoch: int = 0, label: bool = True) -> Outcome:
    setting = Setting(arm.target, arm.predictor, arm.arm, arm.calls, arm.positions, epoch)
    kind = "no_answer" if p_true is None else "answered"
    name = f"claim-{number:03}"
    return Outcome(setting, name, f"cluster-{number // 2}", f"i-{number}", label, kind, p_true, 0, None, "", 1, 1)


def judged_of(verdicts: dict[tuple[str, str, str], Verdict]) -> Judged:
    return Judged("script/model", verdicts, 1, 0, 0, 0.0)


def hinted_clues(n: int, points: Sequence[str | None]) -> dict[str, ClaimClues]:
    claims = {f"claim-{number:03}": claim(number, cluster=number // 2) for number in range(n)}
    said = [output(number, f"text {number}") for number in range(n)]
    verdicts = {one.content: Verdict("", point) for one, point in zip(said, points, strict=True)}
    return weigh(said, claims, judged_of(verdicts))
