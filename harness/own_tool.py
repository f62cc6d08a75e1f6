"""What the harness calls a tool: one of ours by its name, a server of somebody else's by its address."""

from agents.foreign import ARM, foreign_url, is_foreign
from tools import get_tool


def check_tool(tool: str) -> None:
    """Refuse a tool that is neither one of ours nor `mcp:` with an address.

    Raises:
        UserError: It is unknown, or the address is none.
    """
    if is_foreign(tool):
        foreign_url(tool)
    else:
        get_tool(tool)


def arm_of(tool: str) -> str:
    """The name of a tool's arm, which does not depend on where its server stands."""
    return ARM if is_foreign(tool) else tool
