"""Results to `uplift.json`.

Invariant: one object an arm and budget; what is not defined is null, never a word or a sentinel.
"""

import json
from collections.abc import Sequence

from harness.arm_result import ArmResult
from harness.estimates import Estimate
from harness.flips import Flips
from harness.money.spend import Spend, spend_fields
from harness.stats import LEVEL, N_RESAMPLES
from harness.table import RunFacts
from harness.tabular import defined


def uplift_json(results: Sequence[ArmResult], facts: RunFacts, spends: Sequence[Spend] = ()) -> str:
    """The whole of `uplift.json`: a list with one object an arm; what is not defined is null."""
    fidelities = dict(facts.fidelities)
    rows = [
        {
            **_json_row(result, fidelities.get(result.setting.arm)),
            "split": facts.split or None,
            **spend_fields(spends, result.setting),
        }
        for result in results
    ]
    return json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _json_row(result: ArmResult, fidelity: str | None) -> dict[str, object]:
    setting, uplift, half = result.setting, result.uplift, result.half_credit
    main = uplift or result.auroc
    return {
        "target": setting.target,
        "predictor": setting.predictor,
        "arm": setting.arm,
        "calls": setting.calls,
        "positions": setting.positions,
        "fidelity": fidelity,
        "n_claims": main.n_claims,
        "n_true": main.n_true,
        "n_investigations": main.n_investigations,
        "n_clusters": main.n_clusters,
        "n_excluded": main.n_excluded,
        "auroc": defined(result.auroc.value),
        "auroc_low": defined(result.auroc.low),
        "auroc_high": defined(result.auroc.high),
        "auroc_transcript": defined(result.baseline_auroc),
        "uplift": defined(uplift.value) if uplift else None,
        "low": defined(uplift.low) if uplift else None,
        "high": defined(uplift.high) if uplift else None,
        "uplift_half_credit": defined(half.value) if half else None,
        "low_half_credit": defined(half.low) if half else None,
        "high_half_credit": defined(half.high) if half else None,
        "n_claims_half_credit": half.n_claims if half else None,
        "accuracy": defined(result.accuracy),
        "brier": defined(result.brier),
        "outcomes": dict(result.outcome_counts),
        "mean_calls_used": result.mean_calls_used,
        "level": LEVEL,
        "n_resamples": N_RESAMPLES,
        "one_class_share": defined(main.one_class_share),
        "epochs": result.epochs,
        "accuracy_low": defined(result.accuracy_low),
        "accuracy_high": defined(result.accuracy_high),
        "family": result.family or None,
        "p_holm": defined(result.p_holm),
        **_tests(uplift),
        "worst_case": _interval(result.worst_case),
        "flips": _flips(result.flips),
        "tool_minus_sham": _interval(result.against_sham),
        "p_holm_sham": defined(result.p_holm_sham),
        "notes": list(main.notes),
    }


def _tests(uplift: Estimate | None) -> dict[str, object]:
    """The second opinions; null where nothing was tested."""
    tests = uplift.tests if uplift is not None else None
    if tests is None:
        return dict.fromkeys(("p_value", "low_bca", "high_bca", "bca_fallback", "delong", "equivalence"))
    return {
        "p_value": tests.p_value,
        "low_bca": tests.bca.low,
        "high_bca": tests.bca.high,
        "bca_fallback": tests.bca.fallback or None,
        "delong": {name: defined(value) for name, value in vars(tests.delong).items()},
        "equivalence": vars(tests.equivalence),
    }


def _interval(estimate: Estimate | None) -> dict[str, object] | None:
    """Value, bounds, claims and p-value of a further difference."""
    if estimate is None:
        return None
    return {
        "value": defined(estimate.value),
        "low": defined(estimate.low),
        "high": defined(estimate.high),
        "n_claims": estimate.n_claims,
        "n_clusters": estimate.n_clusters,
        "p_value": estimate.tests.p_value if estimate.tests is not None else None,
    }


def _flips(flips: Flips | None) -> dict[str, object] | None:
    if flips is None:
        return None
    return {"true": vars(flips.of_true), "false": vars(flips.of_false), "undecided": flips.undecided}
