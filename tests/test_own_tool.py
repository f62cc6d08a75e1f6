"""A tool of the user's own: any read-only MCP server as an arm, and the example that README gives."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from socket import socket

import pytest
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
from typer.testing import CliRunner

from agents.connect import ToolMistake, check_foreign, connect
from agents.foreign import foreign_url
from agents.prompts import sections, tool_suffix
from claims.schema import UserError
from harness.cli import app
from harness.identity import tool_sha256
from tests.claim_bank import write_bank
from tests.tool_servers import serving, tokens

EXAMPLE = Path(__file__).parent.parent / "examples" / "shared_words.py"
READ_ONLY = ToolAnnotations(read_only_hint=True)


def lookup(transcript_id: str, word: str, top: int | None = None) -> str:
    """Where a word stands."""
    return f"{word} in {transcript_id}, top {top}"


def server(
    *tools: Callable[..., object], name: str = "mine", marks: ToolAnnotations | None = READ_ONLY, **more: str
) -> MCPServer:
    made = MCPServer(name, log_level="CRITICAL", **more)
    for tool in tools:
        made.add_tool(tool, annotations=marks, structured_output=False)
    return made


def address(url: str) -> str:
    return f"mcp:{url}"


def checked(made: MCPServer) -> object:
    with serving(made) as running:
        return asyncio.run(check_foreign(address(running.url)))


def test_a_strangers_tool_is_offered_with_its_own_words_and_the_transcript_is_bound() -> None:
    async def steps() -> None:
        own = connect(address(running.url))
        about = await own.about()
        (tool,) = await own.tools()
        assert (about.tool, about.fidelity, about.offers) == ("mine", "foreign", ("lookup",))
        assert (tool.description, tool.binds_transcript) == ("Where a word stands.", True)
        assert list(tool.parameters.properties) == ["word", "top"]
        assert tool.parameters.properties["top"].type == "integer"
        assert tool.parameters.required == ["word"]
        assert await own.list_tokens("t1") is None
        assert await own.call(tool, {"word": "blue"}, "t1") == "blue in t1, top None"
        suffix = tool_suffix(about, (tool,), None, 3, 8)
        assert "tokens" not in sections(suffix)
        assert "Where a word stands." in sections(suffix)["tool"].body
        assert "Budget: 3 calls. A call with bad arguments" in suffix
        assert "reads activations" not in suffix

    with serving(server(lookup)) as running:
        asyncio.run(steps())


def test_a_token_list_is_used_where_a_stranger_gives_one_and_is_not_offered() -> None:
    def list_tokens(transcript_id: str) -> str:
        return json.dumps(tokens(transcript_id))

    def read(positions: list[int]) -> str:
        """Read positions."""
        return str(positions)

    async def steps() -> None:
        own = connect(address(running.url))
        about, offered, listed = await own.about(), await own.tools(), await own.list_tokens("t1")
        assert about.offers == ("read",)
        assert listed is not None
        assert len(listed.tokens) == 12
        suffix = tool_suffix(about, offered, listed, 1, 8)
        assert "At most 8 positions in one call. A call" in suffix
        assert "[3]" in sections(suffix)["tokens"].body

    with serving(server(list_tokens, read)) as running:
        asyncio.run(steps())


def test_the_same_server_on_another_port_is_the_same_arm_and_other_words_are_another() -> None:
    def other(transcript_id: str) -> str:
        """Where a word stands."""
        return ""

    first, again = checked(server(lookup)), checked(server(lookup))
    changed = [
        checked(server(lookup, name="theirs")),
        checked(server(lookup, version="2")),
        checked(server(lookup, instructions="Use it.")),
        checked(server(other)),
        checked(server(lookup, other)),
    ]
    assert tool_sha256(first) == tool_sha256(again)
    assert len({tool_sha256(about) for about in (first, *changed)}) == 6


@pytest.mark.parametrize(
    ("marks", "refused"),
    [
        (ToolAnnotations(read_only_hint=False), True),
        (ToolAnnotations(destructive_hint=True), True),
        (ToolAnnotations(read_only_hint=True, destructive_hint=True), False),
        (READ_ONLY, False),
        (None, False),
    ],
)
def test_a_tool_that_is_marked_as_writing_is_refused(marks: ToolAnnotations | None, refused: bool) -> None:
    made = server(lookup, marks=marks)
    if refused:
        with pytest.raises(UserError, match="'mine' marks lookup as not read-only.*Serve the reading tools alone"):
            checked(made)
    else:
        assert checked(made).raw["not_marked"] == ([] if marks else ["lookup"])


def test_what_cannot_be_an_arm_is_refused_in_words() -> None:
    def submit(p_true: float) -> str:
        return ""

    def nested(where: dict[str, list[int]]) -> str:
        return ""

    with pytest.raises(UserError, match="has tools called submit"):
        checked(server(submit))
    with pytest.raises(UserError, match="parameter 'where' that is neither plain"):
        checked(server(nested))
    with pytest.raises(UserError, match="lists no tool"):
        checked(server())
    with pytest.raises(UserError, match=r"No usable MCP server at http://127.0.0.1:9/mcp"):
        asyncio.run(check_foreign("mcp:http://127.0.0.1:9/mcp"))


@pytest.mark.parametrize("bad", ["mcp:", "mcp:stdio", "mcp:ftp://host/mcp", "mcp:/mcp", "mcp:http:///mcp"])
def test_an_address_that_is_none_is_refused(bad: str) -> None:
    with pytest.raises(UserError, match="Expected mcp:http://host:port/mcp"):
        foreign_url(bad)


def test_an_address_that_holds_a_secret_is_refused_without_repeating_it() -> None:
    for bad in ("mcp:http://me:sesame@host/mcp", "mcp:http://host/mcp?key=sesame", "mcp:http://host/mcp#sesame"):
        with pytest.raises(UserError, match="must hold no secret") as caught:
            foreign_url(bad)
        assert "sesame" not in str(caught.value)


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bank(tmp_path_factory.mktemp("bank"), n_clusters=3)


@contextmanager
def example(bank: Path) -> Iterator[str]:
    """The example of README, as a user would start it; its address."""
    with closing(socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = [sys.executable, str(EXAMPLE), str(bank / "transcripts.jsonl"), port]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert any("running on" in line for line in process.stderr)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()


def evaluation(bank: Path, results: Path, *more: str, status: int = 0) -> str:
    given = ["eval", "--target", "tiny-gemma", "--claims", str(bank), "--results", str(results)]
    done = CliRunner().invoke(app, [*given, "--arms", "transcript,mcp", "--no-report", *more])
    assert done.exit_code == status, done.output
    return done.output


def by_arm(results: Path) -> dict[str, dict[str, object]]:
    (path,) = results.glob("*/uplift.json")
    return {str(row["arm"]): row for row in json.loads(path.read_text(encoding="utf-8"))}


def test_a_server_of_ones_own_is_an_arm_under_the_same_budget(bank: Path, tmp_path: Path) -> None:
    asked = []

    def look(transcript_id: str, positions: list[int]) -> str:
        """Look at positions."""
        asked.append((transcript_id, positions))
        return "evidence: 0.9"

    options = ("--predictor", "scripted/reader")
    with serving(server(look)) as running:
        evaluation(bank, tmp_path, "--tool", address(running.url), *options)
    row = by_arm(tmp_path)["mcp"]
    assert (row["fidelity"], row["calls"], row["mean_calls_used"]) == ("foreign", 5, 1)
    assert sorted(asked) == [(f"transcript-{number:02}", [1, 2]) for number in range(9)]
    (run,) = tmp_path.glob("tiny-gemma-mcp-*")
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["tools"]["mcp"]["tool"] == "mine"
    # The same server on another port is the same run, and complete: nothing is asked again.
    with serving(server(look)) as running:
        evaluation(bank, tmp_path, "--tool", address(running.url), *options)
    assert len(asked) == 9


def test_a_server_that_writes_is_refused_before_anything_is_asked(bank: Path, tmp_path: Path) -> None:
    with serving(server(lookup, marks=ToolAnnotations(read_only_hint=False))) as running:
        said = evaluation(bank, tmp_path, "--tool", address(running.url), "--predictor", "scripted/reader", status=2)
    assert "marks lookup as not read-only" in said
    assert not list(tmp_path.glob("*/manifest.json"))


def test_the_example_works_from_copy_and_paste(bank: Path, tmp_path: Path) -> None:
    source = EXAMPLE.read_text(encoding="utf-8")
    assert len(source.rstrip("\n").split("\n")) <= 40

    async def steps(url: str) -> None:
        own = connect(address(url))
        (tool,) = await own.tools()
        assert (tool.name, tool.binds_transcript, tool.parameters.required) == ("shared_words", True, [])
        # "Friend 0 told me that the answer is blue. Is it?" and "Yes, I think number 0 is blue." share one long word.
        assert await own.call(tool, {}, "transcript-00") == "blue: 1"
        with pytest.raises(ToolMistake, match="Found top = 99; expected 1 to 50"):
            await own.call(tool, {"top": 99}, "transcript-00")

    with example(bank) as url:
        asyncio.run(steps(url))
        evaluation(bank, tmp_path, "--tool", address(url), "--predictor", "scripted/steady")
    assert by_arm(tmp_path)["mcp"]["n_claims"] == 9
