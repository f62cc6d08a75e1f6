"""The client of a tool server: one shared connection, and two failures that are never merged."""

import asyncio
import json
import socket
from collections.abc import Coroutine
from contextlib import closing
from typing import Any

import pytest
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError

from agents import connect as connecting
from agents.connect import ToolMistake, ToolServer, ToolServerGone, check_server, connect
from agents.served import ServerAnswerError, parse_about, parse_tokens, served_tool
from claims.schema import UserError
from tests.tool_servers import about, build, serving


def run(steps: Coroutine[Any, Any, None]) -> None:
    asyncio.run(steps)


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_server_tells_what_it_is_offers_and_numbers() -> None:
    async def steps() -> None:
        server = connect(running.url)
        told = await server.about()
        assert (told.tool, told.target, told.offers) == ("sae", "tiny-gemma", ("read_features",))
        assert told.raw["layer"] == 1
        (tool,) = await server.tools()
        assert tool.description == "Active features at the given positions."
        assert list(tool.parameters.properties) == ["positions"]
        assert tool.parameters.required == ["positions"]
        assert tool.binds_transcript
        listed = await server.list_tokens("t1")
        assert [token.index for token in listed.tokens] == list(range(12))
        assert listed.masked == (0,)
        assert await server.call(tool, {"positions": [3, 4]}, "t1") == "t1: [3] feature 3; [4] feature 4"

    with serving(build()) as running:
        run(steps())


def test_an_event_loop_shares_one_connection_and_another_loop_has_its_own() -> None:
    seen = []

    async def steps() -> None:
        assert connect(running.url) is connect(running.url)
        await asyncio.gather(*(connect(running.url).about() for _ in range(20)))
        seen.append(connect(running.url))

    with serving(build()) as running:
        run(steps())
        run(steps())
    assert seen[0] is not seen[1]


def test_a_declined_call_is_the_predictors_mistake_in_the_tools_own_words() -> None:
    async def steps() -> None:
        server = connect(running.url)
        (tool,) = await server.tools()
        with pytest.raises(ToolMistake, match=r"^Found positions \[99\]; expected 0 to 11"):
            await server.call(tool, {"positions": [99]}, "t1")
        assert "feature 1" in await server.call(tool, {"positions": [1]}, "t1")

    with serving(build()) as running:
        run(steps())


def crash(transcript_id: str, positions: list[int]) -> str:
    raise RuntimeError("a fault of ours")


def rpc_error(transcript_id: str, positions: list[int]) -> str:
    raise MCPError(-32603, "a fault of ours")


@pytest.mark.parametrize("fault", [crash, rpc_error])
def test_a_fault_inside_a_tool_is_ours_and_never_a_mistake(fault: Any) -> None:
    async def steps() -> None:
        server = connect(running.url)
        (tool,) = await server.tools()
        with pytest.raises(ToolServerGone, match="run again on resume"):
            await server.call(tool, {"positions": [1]}, "t1")

    with serving(build(fault)) as running:
        run(steps())


def test_a_server_that_is_not_there_is_ours_and_names_its_url() -> None:
    url = f"http://127.0.0.1:{free_port()}/mcp"

    async def steps() -> None:
        with pytest.raises(ToolServerGone, match=url):
            await connect(url).about()

    run(steps())


def test_a_server_that_dies_is_ours_for_every_waiting_call_and_a_new_one_is_connected_to() -> None:
    async def steps() -> None:
        server = connect(running.url)
        (tool,) = await server.tools()
        running.stop()
        calls = [server.call(tool, {"positions": [1]}, "t1") for _ in range(5)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(answer, ToolServerGone) for answer in answers), answers
        another = connect(running.url)
        assert another is not server
        with pytest.raises(ToolServerGone):
            await another.about()

    with serving(build()) as running:
        run(steps())


def test_a_server_that_hangs_is_ours_after_the_timeout() -> None:
    release = []

    async def hang(transcript_id: str, positions: list[int]) -> str:
        gate = asyncio.Event()
        release.append((asyncio.get_running_loop(), gate))
        await gate.wait()
        return ""

    async def steps() -> None:
        (tool,) = await connect(running.url).tools()
        server = ToolServer(running.url, timeout_s=0.2)
        with pytest.raises(ToolServerGone, match="timed out"):
            await server.call(tool, {"positions": [1]}, "t1")

    server = MCPServer("test", log_level="CRITICAL")
    server.add_tool(hang, name="read_features", structured_output=False)
    server.add_tool(lambda: json.dumps(about()), name="about", structured_output=False)
    with serving(server) as running:
        run(steps())
        for loop, gate in release:
            loop.call_soon_threadsafe(gate.set)


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"tool": None}, "'tool' to be a str"),
        ({"max_positions": "many"}, "'max_positions' to be a int"),
        ({"offers": []}, "'offers' to be a list of tool names"),
        ({"offers": ["steer"]}, "offers steer but does not list it"),
    ],
)
def test_a_server_out_of_contract_is_ours(facts: dict[str, object], why: str) -> None:
    async def steps() -> None:
        with pytest.raises(ToolServerGone, match=why):
            await connect(running.url).tools()

    with serving(build(facts=lambda: about(**facts))) as running:
        run(steps())


@pytest.mark.parametrize(
    "rows",
    [
        {"tokens": [], "masked": "none"},
        {"tokens": [{"index": 1, "text": "a", "role": "user"}], "masked": []},
        {"tokens": [{"index": 0, "text": 3, "role": "user"}], "masked": []},
        {"tokens": [{"index": 0, "text": "a", "role": "user"}], "masked": [1]},
        {"masked": []},
    ],
)
def test_a_token_list_out_of_contract_is_refused(rows: dict[str, object]) -> None:
    with pytest.raises(ServerAnswerError, match="list_tokens"):
        parse_tokens(rows)


def test_an_account_without_a_field_is_refused() -> None:
    row = about()
    del row["fidelity"]
    with pytest.raises(ServerAnswerError, match="fidelity"):
        parse_about(row)


def test_a_nested_parameter_is_refused_with_the_remedy() -> None:
    with pytest.raises(UserError, match="flat parameters"):
        served_tool("t", "d", {"properties": {"where": {"$ref": "#/$defs/Where"}}})
    with pytest.raises(UserError, match="flat parameters"):
        served_tool("t", "d", {"properties": {"pairs": {"type": "array", "items": {"type": "array"}}}})


def test_schema_words_that_providers_reject_are_left_out() -> None:
    schema = {"type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": 3, "title": "P"}
    tool = served_tool("t", " d ", {"properties": {"positions": schema}, "required": ["positions"]})
    shown = tool.parameters.properties["positions"].model_dump(exclude_none=True)
    assert shown == {"type": "array", "items": {"type": "integer"}, "description": "positions"}
    assert not tool.binds_transcript


def test_the_right_server_passes_the_check() -> None:
    with serving(build()) as running:
        told = asyncio.run(check_server(running.url, tool="sae", target="tiny-gemma", positions=32))
    assert told.tool == "sae"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"target": "gemma-3-270m"}, "serves the tool 'sae' for the target 'tiny-gemma'; expected 'sae' for 'gemma"),
        ({"tool": "nla"}, "serves the tool 'sae' for the target 'tiny-gemma'; expected 'nla'"),
        ({"positions": 65}, "at most 64 positions in one call, but 65 were asked for"),
    ],
)
def test_another_server_fails_the_check_as_a_users_mistake(asked: dict[str, Any], said: str) -> None:
    wanted = {"tool": "sae", "target": "tiny-gemma", "positions": 32, **asked}
    with serving(build()) as running, pytest.raises(UserError, match=said):
        asyncio.run(check_server(running.url, **wanted))


def test_no_server_fails_the_check_as_a_users_mistake() -> None:
    url = f"http://127.0.0.1:{free_port()}/mcp"
    with pytest.raises(UserError, match=r"No usable tool server at .*make serve TOOL=sae TARGET=tiny-gemma"):
        asyncio.run(check_server(url, tool="sae", target="tiny-gemma", positions=8))


def test_an_http_server_that_speaks_no_mcp_fails_the_check() -> None:
    with serving(build()) as running, pytest.raises(UserError, match="No usable tool server"):
        asyncio.run(check_server(running.url + "/other", tool="sae", target="tiny-gemma", positions=8))


def test_the_first_leaf_of_nested_groups_is_named() -> None:
    nested = ExceptionGroup("a", [ExceptionGroup("b", [OSError("refused")]), ValueError("x")])
    assert connecting.innermost(nested) == "OSError: refused"
    assert connecting.innermost(None) == "it ended"
