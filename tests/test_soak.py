"""The soak at a size for every day: faults at high rates, a kill, nothing lost and nothing paid twice."""

from pathlib import Path

from tests.soak import N_ARMS, PAID_FAULTS, soak

N_CLUSTERS = 2
RATES = {"429": 0.1, "500": 0.06, "reset": 0.08, "hang": 0.02, "malformed": 0.08}


def test_faults_and_kills_lose_no_claim_change_no_answer_and_are_not_paid_twice(tmp_path: Path) -> None:
    # `soak` itself demands that rows are complete, answers equal and payments single.
    found = soak(tmp_path, n_clusters=N_CLUSTERS, rates=RATES, kills=(0.3,))
    runs = found["runs"]
    assert isinstance(runs, dict)
    assert found["n_rows"] == 3 * N_CLUSTERS * N_ARMS
    assert runs["undisturbed"]["paid_again"] == 0
    assert runs["undisturbed"]["said_dollars"] == runs["undisturbed"]["billed_dollars"] > 0
    faults = runs["faults"]["faults"]
    assert sum(faults.values()) >= 3
    assert any(f"fault {kind}" in faults for kind in PAID_FAULTS)
    assert runs["killed"]["starts"] == 2
