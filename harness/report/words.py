"""The sentences of a report that no table has: what the controls say, and how a run was made.

Invariant: an interval that holds zero is reported as open, never as the absence of an effect.
"""

import json
from collections.abc import Iterator

from harness.arms import BASELINE, CEILING, REPEAT, is_sham, sham_of, tool_of
from harness.manifest import Manifest
from harness.report.read import Estimated, Interval, RunFiles


def controls(run: RunFiles) -> list[tuple[str, str]]:
    """Name of each control and what it says, those that were not run included."""
    by_arm: dict[str, list[Estimated]] = {}
    for one in run.estimates:
        by_arm.setdefault(one.series.arm, []).append(one)
    rows = [(CEILING, _ceiling(by_arm.get(CEILING, []))), (REPEAT, _repeat(by_arm.get(REPEAT, [])))]
    return [*rows, *_shams(by_arm)]


def _ceiling(found: list[Estimated]) -> str:
    if not found:
        return "Not run, so it is not known whether this predictor can use good evidence."
    return " ".join(
        f"Shown fresh responses to the edited prompt, the predictor reaches AUROC {_number(one.auroc[0])}; its uplift "
        f"is {_span(one.uplift)}. " + _passed(one)
        for one in found
    )


def _passed(one: Estimated) -> str:
    low = one.uplift[1]
    if low is not None and low > 0:
        return "It passes: this predictor could have used evidence this good."
    return "It does not pass: this instrument cannot measure uplift with this predictor."


def _repeat(found: list[Estimated]) -> str:
    if not found:
        return "Not run, so the noise of asking twice is not known."
    return " ".join(
        f"The same question asked again, without a tool, differs by {_span(one.uplift)}: that much is noise."
        for one in found
    )


def _shams(by_arm: dict[str, list[Estimated]]) -> Iterator[tuple[str, str]]:
    tools = [arm for arm in by_arm if arm not in (BASELINE, REPEAT, CEILING) and not is_sham(arm)]
    for arm, found in by_arm.items():
        if is_sham(arm):
            cost = ", ".join(_span(one.uplift) for one in found)
            yield arm, f"The tool's form with another transcript's activations costs the predictor: uplift {cost}."
    for one in (one for tool in tools for one in by_arm[tool] if one.over_sham[0] is not None):
        yield f"{one.series.arm} minus {sham_of(one.series.arm)}", f"Paired by claim: {_span(one.over_sham)}."
    for tool in tools:
        if not any(is_sham(arm) and tool_of(arm) == tool_of(tool) for arm in by_arm):
            yield (
                f"sham of {tool}",
                "Not run, so the effect of having a tool at all is not told from what it says.",
            )


def _span(interval: Interval) -> str:
    value, low, high = interval
    if value is None:
        return "not estimable"
    bounds = f" ({low:+.3f} to {high:+.3f})" if low is not None and high is not None else ""
    return f"{value:+.3f}{bounds}".replace("-", "−")


def _number(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.3f}"


def made(manifest: Manifest) -> list[tuple[str, str]]:
    """The manifest in words that a reader may want, in order."""
    rows = [("command", str(manifest.made.get("command", ""))), ("started", str(manifest.made.get("started_at", "")))]
    rows += [(str(name), str(value)) for name, value in manifest.settings.items() if value is not None]
    rows += [("claims", ", ".join(f"{name} {value}" for name, value in manifest.claims.items()))]
    rows += [(f"sha256 of {name}", str(value)) for name, value in manifest.hashes.items()]
    rows += [(f"{name} server", json.dumps(about, ensure_ascii=False)) for name, about in manifest.tools.items()]
    rows += [(name, json.dumps(manifest.made.get(name), ensure_ascii=False)) for name in ("git", "versions")]
    return rows
