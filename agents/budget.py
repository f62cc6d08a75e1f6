"""The tools of one sample: budget, positions cap, bound transcript, and a record of every call.

Invariants: a call is charged before it is awaited, so that parallel calls cannot overspend; a call that was declined
for its arguments is refunded; every call is answered and recorded, charged or not.
"""

import json
from collections.abc import Mapping
from typing import Any

from inspect_ai.tool import ToolDef, ToolError, ToolParams

from agents.connect import ToolMistake, ToolServer
from agents.outcome import CallRecord
from agents.prompts import counted, fill
from agents.served import ServedTool


class Budget:
    """What one predictor may still spend on one claim, and what it has spent."""

    def __init__(self, calls: int, positions: int) -> None:
        """Allow `calls` charged calls of at most `positions` positions each."""
        self.calls = calls
        self.positions = positions
        self.left = calls
        self.records: list[CallRecord] = []

    def note(self, name: str, arguments: Mapping[str, object], output: str, *, charged: bool) -> None:
        """Record one call."""
        self.records.append(CallRecord(name, dict(arguments), charged, len(output)))

    def refusal(self, tool: ServedTool, arguments: Mapping[str, object]) -> str | None:
        """Why the host does not pass a call on, in words for the predictor; None when it does."""
        positions = arguments.get("positions")
        if isinstance(positions, list) and len(positions) > self.positions:
            return (
                f"Found {len(positions)} positions; expected at most {self.positions} in one call. "
                f"Call {tool.name} again with fewer. This call was not charged."
            )
        if self.left <= 0:
            return fill("spent.md", calls=counted(self.calls, "call"))
        return None


def expected(parameters: ToolParams) -> str:
    """The parameters of a tool in one line, for an answer to a malformed call."""
    named = []
    for name, schema in parameters.properties.items():
        items = f" of {schema.items.type}s" if schema.items is not None else ""
        named.append(f"{name} ({schema.type}{items}{'' if name in parameters.required else ', optional'})")
    return ", ".join(named) or "no arguments"


def malformed_call(name: str, arguments: Mapping[str, object], problem: str, parameters: ToolParams | None) -> str:
    """The answer to a call whose arguments do not fit the tool's parameters, or that names no tool on offer."""
    if parameters is None:
        return f"Found a call of {name[:60]!r}; no tool has that name. Call one of the tools listed. Not charged."
    shown = json.dumps(dict(arguments), ensure_ascii=False, default=str)[:120]
    return (
        f"Found {shown} ({' '.join(problem.split())[:160]}); expected {expected(parameters)}. "
        f"Call {name} again with such arguments. This call was not charged."
    )


def host_tool(tool: ServedTool, server: ToolServer, transcript_id: str, budget: Budget) -> ToolDef:
    """`tool` as Inspect runs it for one sample."""

    async def execute(**kwargs: Any) -> str:
        refusal = budget.refusal(tool, kwargs)
        if refusal is not None:
            budget.note(tool.name, kwargs, refusal, charged=False)
            raise ToolError(refusal)
        budget.left -= 1
        try:
            output = await server.call(tool, kwargs, transcript_id)
        except ToolMistake as mistake:
            budget.left += 1
            budget.note(tool.name, kwargs, str(mistake), charged=False)
            raise ToolError(f"{mistake} This call was not charged.") from mistake
        budget.note(tool.name, kwargs, output, charged=True)
        return output

    return ToolDef(
        execute,
        name=tool.name,
        description=tool.description,
        parameters=tool.parameters,
        parallel=True,
        max_output=0,
    )
