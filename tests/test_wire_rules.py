"""The rules of the wires: our loop keeps every one of them, and a client that breaks one is refused."""

import json
from collections.abc import Iterator

import pytest

from tests.fakes import FakeServer
from tests.tool_servers import build
from tests.tool_servers import serving as tool_serving
from tests.wire_breaks import BREAKS, Break
from tests.wire_runs import CHAT_GPT, GEMINI, MODELS, OLLAMA, VLLM, Played, play, post, wired


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeServer, dict[str, Played]]]:
    """A thinking tool loop of every model: two calls at once, one more, the answer."""
    with tool_serving(build()) as tool, wired("reader") as fake:
        yield fake, play(fake, tmp_path_factory.mktemp("loop"), tool_url=tool.url)


@pytest.mark.parametrize("model", MODELS)
def test_a_thinking_tool_loop_keeps_the_rules_of_every_wire(
    loop: tuple[FakeServer, dict[str, Played]], model: str
) -> None:
    played = loop[1][model]
    assert played.sample.error is None, played.sample.error
    assert played.problems == []
    assert len(played.requests) == 3
    assert (played.outcome, played.prediction["calls"], played.prediction["how"]) == ("answered", 3, "submitted")


@pytest.mark.parametrize("broken", BREAKS, ids=lambda broken: f"{broken.model}: {broken.rule}")
def test_a_client_that_breaks_one_rule_is_refused(loop: tuple[FakeServer, dict[str, Played]], broken: Break) -> None:
    fake, played = loop
    right = played[broken.model].requests[-1]
    assert post(fake, right)[0] == 200, "the request itself is right, so that what is broken is what is refused"
    body = json.loads(right.raw)
    broken.change(body)
    kept = {name: value for name, value in right.headers.items() if name not in ("host", "content-length")}
    headers = {name: value for name, value in {**kept, **broken.headers}.items() if value}
    if broken.rule == "thinking is bound to what came before":
        del body["thinking"]["block_binding"]
    status, said = post(fake, right, body, headers)
    assert (status, broken.says in said) == (broken.status, True), said


def test_every_wire_and_generation_has_rules_that_are_tested() -> None:
    rules = {model: [one.rule for one in BREAKS if one.model == model] for model in MODELS}
    assert all(rules.values())
    assert len({(one.model, one.rule) for one in BREAKS}) == len(BREAKS)


def test_a_dropped_block_binding_is_what_lets_an_edited_prefix_through(
    loop: tuple[FakeServer, dict[str, Played]],
) -> None:
    fake, played = loop
    right = played["anthropic/claude-opus-5-5"].requests[-1]
    body = json.loads(right.raw)
    body["system"][0]["text"] = "Be kind."
    assert post(fake, right, body)[0] == 200


@pytest.mark.parametrize("model", [CHAT_GPT, VLLM, OLLAMA, GEMINI])
def test_calls_made_at_once_are_answered_at_once_and_in_order(
    loop: tuple[FakeServer, dict[str, Played]], model: str
) -> None:
    text = json.dumps(loop[1][model].requests[1].body)
    assert text.index("[1] feature 1; [2] feature 2") < text.index("[3] feature 3")
