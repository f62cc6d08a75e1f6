"""The leak audit as a step of a run: done once for the logs as they are, and loud when it finds something.

Invariant: no table is made of a run whose logs were not audited in full, against all evidence that there is.
"""

import hashlib
import json
from pathlib import Path

from harness import audit
from harness.audit import Audit, Finding
from harness.exits import LeakError
from harness.files import write_text
from harness.logs import whole_samples
from harness.plan import Plan
from harness.results import LOGS

PASSED = "audit.json"


def check_leaks(plan: Plan, folder: Path) -> None:
    """Audit the logs of a complete run, unless these very logs passed before.

    Raises:
        LeakError: A predictor was shown what it may not see.
    """
    record = _record(plan, folder)
    if (folder / PASSED).exists() and (folder / PASSED).read_text(encoding="utf-8") == record:
        return
    auditor = Audit(plan.claim_set, plan.labels, plan.evidence)
    found: list[Finding] = []
    for arm in plan.arms:
        found += auditor.findings(arm, whole_samples(folder / LOGS, arm))
    if found:
        _refuse(found, folder)
    write_text(folder / PASSED, record)


def _record(plan: Plan, folder: Path) -> str:
    """What was audited: the logs, by content, with how much evidence, by which code."""
    logs = {path.name: _sha256(path) for path in sorted((folder / LOGS).glob("*.eval"))}
    facts = {
        "found": 0,
        "claims_with_evidence": sum(claim.claim_id in plan.evidence for claim in plan.claims),
        "claims": len(plan.claims),
        "audit_sha256": _sha256(Path(str(audit.__file__))),
        "logs_sha256": logs,
    }
    return json.dumps(facts, indent=1) + "\n"


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _refuse(found: list[Finding], folder: Path) -> None:
    report = folder / "leaks.txt"
    write_text(report, "".join(f"{f.arm}\t{f.claim_id}\t{f.where}\t{f.what}\n" for f in found))
    raise LeakError(
        f"LEAK: {len(found)} places in the logs of {folder} show a predictor what it may not see. The first: "
        f"arm {found[0].arm}, claim {found[0].claim_id!r}, {found[0].where}: {found[0].what}. "
        f"All of them are in {report}. No table was made."
    )
