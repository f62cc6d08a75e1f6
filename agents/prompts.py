"""Every word that a predictor is given, rendered from the files in `agents/prompts/`.

Invariants: the baseline's user message is a byte prefix of every other arm's; whatever was not written by us stands
between lines that carry a code derived from its content, which therefore it cannot contain; `prompt_sha256` changes
whenever a rendered word does.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from string import Template

from agents.foreign import FIDELITY
from agents.served import About, ServedTool, Token, TokenList
from claims.fence import Texts, code_for, part, section
from claims.schema import Message, Transcript, UserError

FOLDER = Path(__file__).parent / "prompts"


_TEXTS = Texts(FOLDER)
_variant: ContextVar[Path | None] = ContextVar("uplift_prompts", default=None)


@contextmanager
def prompts_from(folder: Path | None) -> Iterator[None]:
    """Let the files of a variant stand in for those of the same name inside the block; None changes nothing.

    Raises:
        UserError: The folder is no variant: see `check_variant`.
    """
    if folder is not None:
        check_variant(folder)
    token = _variant.set(folder)
    try:
        yield
    finally:
        _variant.reset(token)


def check_variant(folder: Path) -> None:
    """Refuse a folder of prompts that says something else than ours can say.

    Raises:
        UserError: It holds no prompt, one that we have not, or one with other placeholders.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder. Expected one that holds prompts under the names of {FOLDER}.")
    names = sorted(path.name for path in folder.glob("*.md"))
    ours = sorted(path.name for path in FOLDER.glob("*.md"))
    strange = [name for name in names if name not in ours]
    if strange or not names:
        found = ", ".join(strange) or "no .md file"
        raise UserError(f"{folder} holds {found}; expected some of {', '.join(ours)}. Rename or add files.")
    for name in names:
        given, expected = (set(Template(texts.text(name)).get_identifiers()) for texts in (Texts(folder), _TEXTS))
        if given != expected:
            raise UserError(
                f"{folder / name} has the placeholders {', '.join(sorted(given)) or 'none'}; expected "
                f"{', '.join(sorted(expected)) or 'none'}, each at least once. Keep those of {FOLDER / name}."
            )


def _texts(name: str) -> Texts:
    folder = _variant.get()
    return Texts(folder) if folder is not None and (folder / name).is_file() else _TEXTS


def text(name: str) -> str:
    """The prompt `name` as a predictor is given it, without its last line break."""
    return _texts(name).text(name)


def fill(name: str, **values: str) -> str:
    """The prompt `name` with its `$placeholders` filled in; every placeholder must be given."""
    return _texts(name).fill(name, **values)


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 call, 5 calls."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def printable(value: str) -> str:
    """`value` on one line: whatever could break a line or hide is shown as its escape."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in value)


_SECTION = re.compile(r"^=== ([0-9a-f]{12}) (\w+) begins ===\n(.*?)\n=== \1 \2 ends ===$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Section:
    """A section read back from a rendered message."""

    code: str
    """The code that its lines carry."""
    body: str
    """What stands between them."""


def sections(message: str) -> dict[str, Section]:
    """The sections of a rendered user message by name; look-alikes inside a section stay inside it."""
    return {match.group(2): Section(match.group(1), match.group(3)) for match in _SECTION.finditer(message)}


def parts(section: Section) -> list[tuple[str, str]]:
    """The parts of a section in order: name and body."""
    split = re.split(rf"^--- {section.code} (.+) ---\n", section.body, flags=re.MULTILINE)
    return [(name, body.removesuffix("\n")) for name, body in zip(split[1::2], split[2::2], strict=True)]


def positions_allowed(message: str) -> int | None:
    """The cap on positions that a rendered tool arm states; None where it states none."""
    stated = re.search(r"At most (\d+) positions? in one call", _SECTION.sub("", message))
    return int(stated.group(1)) if stated else None


def calls_allowed(message: str) -> int | None:
    """The budget of calls that a rendered tool arm states; None where it states none."""
    stated = re.search(r"^Budget: (\d+) calls?\.", _SECTION.sub("", message), re.MULTILINE)
    return int(stated.group(1)) if stated else None


def listed_tokens(message: str) -> TokenList | None:
    """The token list of a rendered tool arm, read back; None where there is none. Texts keep their escapes."""
    section = sections(message).get("tokens")
    if section is None:
        return None
    *lines, masked = section.body.split("\n")
    tokens: list[Token] = []
    for line in lines:
        role, first, shown = _read_run(line)
        # Token texts may look like indices: each index is looked for where the one before it ended.
        start = len(f"[{first}]")
        index = first
        while (end := shown.find(f"[{index + 1}]", start)) >= 0:
            tokens.append(Token(index, shown[start:end], role))
            index += 1
            start = end + len(f"[{index}]")
        tokens.append(Token(index, shown[start:], role))
    return TokenList(tuple(tokens), tuple(int(index) for index in re.findall(r"\d+", masked)))


def _read_run(line: str) -> tuple[str, int, str]:
    match = re.match(r"(.+?) (\d+)-\d+: (\[.*)$", line)
    assert match is not None, "a line of the token list was rendered in another form"
    return match.group(1), int(match.group(2)), match.group(3)


def _transcript_parts(transcript: Transcript) -> list[tuple[str, str]]:
    parts = [
        (f"message {number}, {printable(message.role)}", message.content)
        for number, message in enumerate(transcript.messages, start=1)
    ]
    if transcript.reasoning is not None:
        parts.append(("response, visible reasoning", transcript.reasoning))
    return [*parts, ("response", transcript.response)]


def user_message(transcript: Transcript, claim_text: str) -> str:
    """The baseline's user message: the transcript, the claim, the ask."""
    parts = _transcript_parts(transcript)
    code = code_for([body for pair in parts for body in pair] + [claim_text])
    shown = "\n".join(part(code, name, body) for name, body in parts)
    return fill(
        "user.md",
        code=code,
        transcript=section(code, "transcript", shown),
        claim=section(code, "claim", claim_text.strip()),
    )


def token_lines(listed: TokenList) -> str:
    """The numbered tokens, one line a run of tokens of the same role: `user 5-7: [5]How[6] are[7] you`."""
    lines = []
    for role, run in groupby(listed.tokens, key=lambda token: token.role):
        tokens = list(run)
        shown = "".join(f"[{token.index}]{printable(token.text)}" for token in tokens)
        lines.append(f"{printable(role)} {tokens[0].index}-{tokens[-1].index}: {shown}")
    masked = ", ".join(str(index) for index in listed.masked) or "none"
    return "\n".join([*lines, f"masked, not readable: {masked}"])


def tool_suffix(about: About, tools: Sequence[ServedTool], listed: TokenList | None, calls: int, positions: int) -> str:
    """What a tool arm's user message has beyond the baseline's.

    Args:
        about: The server's account of itself.
        tools: The tools on offer.
        listed: The transcript's tokens; None where the server of somebody else's lists none.
        calls: Budget of charged calls.
        positions: Most positions in one call.
    """
    descriptions = [("about", about.description.strip())] if about.description.strip() else []
    descriptions += [(tool.name, tool.description) for tool in tools]
    lines = token_lines(listed) if listed else ""
    code = code_for([body for pair in descriptions for body in pair] + [lines])
    takes_positions = any("positions" in tool.parameters.properties for tool in tools)
    foreign = about.fidelity == FIDELITY
    tokens = section(code, "tokens", lines) if listed else ""
    return fill(
        "own_tool.md" if foreign else "tool.md",
        code=code,
        tool=printable(about.tool),
        descriptions=section(code, "tool", "\n".join(part(code, name, body) for name, body in descriptions)),
        calls=counted(calls, "call"),
        positions=f"At most {counted(positions, 'position')} in one call. " if takes_positions else "",
        use=text("use_positions.md" if takes_positions else "use_questions.md"),
        tokens=f"{tokens}\n\n" if foreign and tokens else tokens,
    )


def all_suffix(about: About, tools: Sequence[ServedTool], outputs: Sequence[str]) -> str:
    """What the message of an arm that is shown everything has beyond the baseline's.

    Args:
        about: The server's account of itself.
        tools: The tools that were read.
        outputs: What was read, at every position, in order.
    """
    descriptions = [("about", about.description.strip()), *((tool.name, tool.description) for tool in tools)]
    readings = "\n".join(outputs)
    code = code_for([body for pair in descriptions for body in pair] + [readings])
    return fill(
        "all.md",
        code=code,
        tool=printable(about.tool),
        descriptions=section(code, "tool", "\n".join(part(code, name, body) for name, body in descriptions)),
        readings=section(code, "readings", readings),
    )


def ceiling_suffix(responses: Sequence[str]) -> str:
    """What the ceiling arm's user message has beyond the baseline's: fresh responses to the edited prompt."""
    code = code_for(responses)
    shown = "\n".join(part(code, f"response {number}", body) for number, body in enumerate(responses, start=1))
    return fill("ceiling.md", code=code, count=str(len(responses)), responses=section(code, "responses", shown))


def _probe() -> str:
    """A rendering of fixed material through every function above, so that a change of format shows in the hash."""
    transcript = Transcript("t", (Message("system", "s"), Message("user", "u")), "why", "r", (0, 1), "probe")
    about = About("tool", "target", "", "", 1, 2, "demo", ("read",), "about", {})
    foreign = About("tool", "", "", "", 0, 2, FIDELITY, ("read",), "", {})
    listed = TokenList((Token(0, "a\n", "user"), Token(1, "b", "response")), (0,))
    suffixes = (tool_suffix(about, (), listed, 5, 32), tool_suffix(foreign, (), None, 5, 32))
    everything = all_suffix(about, (), ["read"])
    return user_message(transcript, "claim") + "".join(suffixes) + everything + ceiling_suffix(["x", "y"])


def prompt_sha256() -> str:
    """Hash of every prompt file and of how they are put together."""
    digest = hashlib.sha256(_probe().encode("utf-8"))
    for path in sorted(path for path in FOLDER.rglob("*") if path.is_file()):
        name = path.relative_to(FOLDER).as_posix()
        variant = _variant.get()
        stands_in = variant / name if variant is not None else path
        digest.update(f"\n{name}\n".encode() + (stands_in if stands_in.is_file() else path).read_bytes())
    return digest.hexdigest()
