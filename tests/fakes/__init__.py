"""Fake providers over real HTTP: Anthropic Messages, OpenAI Responses and Chat Completions, Gemini generateContent.

They enforce the rules of each wire, count tokens and cached prefixes as each family does, keep a bill, and meet
requests with faults on demand. `python -m tests.fakes --port N` starts one for development; `serving` does in tests.
"""

from tests.fakes.bill import Bill, Billed, Usage
from tests.fakes.faults import Faults
from tests.fakes.script import SCRIPTS, Call, Say, Script, Turn, read, submit
from tests.fakes.server import SENTINEL, FakeServer, Received, serving

__all__ = [
    "SCRIPTS",
    "SENTINEL",
    "Bill",
    "Billed",
    "Call",
    "FakeServer",
    "Faults",
    "Received",
    "Say",
    "Script",
    "Turn",
    "Usage",
    "read",
    "serving",
    "submit",
]
