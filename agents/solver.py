"""The predictor loop: one solver for every arm.

Order of play: turns with the tools on offer (soft ask); one turn in which `submit` is forced; a number read from
prose; no answer. Invariants: the budget is never exceeded; every pending call of a turn is answered before the next
one; no answer is ever made up; a fault of the server or of us leaves as an exception, never as an outcome.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentReasoning,
    ContentText,
    Model,
    ModelOutput,
    execute_tools,
    get_model,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolCall, ToolCallError, ToolChoice, ToolDef, ToolError, ToolFunction, ToolParam, ToolParams

from agents.answer import Reading, read_submitted
from agents.budget import Budget, host_tool, malformed_call
from agents.connect import ToolServer, ToolServerGone, connect
from agents.outcome import How, Prediction
from agents.prompts import all_suffix, sections, text, tool_suffix
from agents.prose import read_prose
from agents.provider import BOTCHED, ask
from agents.served import ServedTool, TokenList

SUBMIT = "submit"
NOTHING_SAID = "(no content)"
"""Stands for the words of a reply that had none, in Inspect's own phrase."""
MAX_BAD_SUBMITS = 3
"""Turns with an unreadable submission; each is answered with a further try, the last makes the outcome `malformed`."""
_CONFLICT = "Not recorded. Found: different values in one turn. Expected: one. Call submit once, with one p_true."


def default_max_turns(calls: int) -> int:
    """Turns that let a predictor spend `calls` one by one, err a few times and still submit."""
    return calls + 6


@dataclass(frozen=True)
class ArmSetup:
    """What an arm gives its predictor."""

    arm: str
    """Name of the arm."""
    tool_url: str | None
    """Where its tool server listens; None for arms without a tool."""
    calls: int
    """Budget of charged calls."""
    positions: int
    """Most positions in one call."""
    max_turns: int
    """Most turns before `submit` is forced."""
    shows_all: bool = False
    """Whether the tool's output at every position stands in the message, with nothing to call."""

    def _repr_params_(self) -> dict[str, object]:
        """What Inspect records as the solver's identity; the URL has a new port in every run and is no part of it."""
        named = {"arm": self.arm, "calls": self.calls, "positions": self.positions, "max_turns": self.max_turns}
        return {**named, "shows_all": True} if self.shows_all else named


def _submit_tool() -> ToolDef:
    async def execute(p_true: float) -> str:
        # `_Game.turn` takes a usable submission before any tool runs: this one is not, or contradicts another.
        raise ToolError(read_submitted(p_true).problem or _CONFLICT)

    return ToolDef(
        execute,
        name=SUBMIT,
        description=text("submit.md"),
        parameters=ToolParams(
            properties={"p_true": ToolParam(type="number", description=text("p_true.md"))}, required=["p_true"]
        ),
        max_output=0,
    )


class _Game:
    """One conversation about one claim."""

    def __init__(self, state: TaskState, model: Model, tools: list[ToolDef], budget: Budget) -> None:
        self.state = state
        self.model = model
        self.tools = [*tools, _submit_tool()]
        self.budget = budget
        self.claim = sections(state.user_prompt.text)["claim"].body
        self.bad_submits = 0
        self.truncated = False

    def end(self, prediction: Prediction) -> Prediction:
        """`prediction` with the calls made."""
        return Prediction(
            prediction.outcome,
            prediction.p_true,
            prediction.how,
            prediction.detail,
            tuple(self.budget.records),
        )

    async def turn(self, how: How, choice: ToolChoice) -> Prediction | None:
        """One turn of the predictor; a prediction when it ended the game."""
        output = await ask(self.model, self.state.messages, self.tools, choice)
        self.state.output = output
        if output.empty:
            return Prediction("no_answer", detail="the provider returned no choice")
        self.state.messages.append(_replayable(output.message))
        ended = _ended_by(output)
        if ended is not None:
            return ended
        self.truncated = output.stop_reason == "max_tokens"
        calls = output.message.tool_calls or []
        readings = [_read_call(call) for call in calls if call.function == SUBMIT]
        stated = {reading.p_true for reading in readings if reading.p_true is not None}
        if len(stated) == 1:
            self._close(calls)
            return Prediction("answered", stated.pop(), how)
        self.bad_submits += bool(readings)
        if calls:
            await self._run(calls)
        if self.bad_submits >= MAX_BAD_SUBMITS:
            return Prediction("malformed", detail=readings[-1].problem or _CONFLICT)
        return None

    def _close(self, calls: list[ToolCall]) -> None:
        """Answer the calls beside a usable submission, so that the log holds a complete conversation."""
        for call in calls:
            said = "Recorded." if call.function == SUBMIT else "Not run: an answer was submitted in the same turn."
            self.state.messages.append(ChatMessageTool(content=said, tool_call_id=call.id, function=call.function))

    async def _run(self, calls: list[ToolCall]) -> None:
        """Run the calls of the last message and append every answer."""
        answers, _ = await execute_tools(self.state.messages, self.tools, max_output=0)
        by_id = {call.id: call for call in calls}
        for answer in answers:
            call = by_id.get(getattr(answer, "tool_call_id", None) or "")
            self.state.messages.append(self._reworded(answer, call) if call else answer)

    def _reworded(self, answer: ChatMessage, call: ToolCall) -> ChatMessage:
        """Inspect's own validation errors, said as found, expected, do."""
        if not isinstance(answer, ChatMessageTool) or answer.error is None or answer.error.type != "parsing":
            return answer
        tool = next((tool for tool in self.tools if tool.name == call.function), None)
        if call.function == SUBMIT:
            said = _read_call(call).problem
        else:
            said = malformed_call(
                call.function, call.arguments, answer.error.message, tool.parameters if tool else None
            )
            self.budget.note(call.function, call.arguments, said, charged=False)
        return answer.model_copy(update={"error": ToolCallError("parsing", said)})

    def prose(self) -> Prediction:
        """The newest number stated in prose, or what is left when there is none."""
        if self.truncated:
            return Prediction("truncated", detail="the output cap cut the last message")
        spoken = [message.text for message in self.state.messages if isinstance(message, ChatMessageAssistant)]
        readings = [read_prose(words, self.claim) for words in reversed(spoken)]
        newest = next((reading for reading in readings if reading is not None), Reading(None, "no number in the prose"))
        if newest.p_true is not None:
            return Prediction("answered", newest.p_true, "prose")
        return Prediction("malformed" if self.bad_submits else "no_answer", detail=newest.problem)


def _read_call(call: ToolCall) -> Reading:
    if call.parse_error:
        return Reading(None, f"{read_submitted(None).problem} (the arguments were not JSON)")
    return read_submitted(call.arguments.get("p_true"))


def _replayable(message: ChatMessageAssistant) -> ChatMessageAssistant:
    """A reply that can stand in the next request.

    One of nothing but reasoning cannot: Anthropic refuses a turn that ends in thinking, OpenAI a reasoning item without
    an item after it.
    """
    if message.text.strip() or message.tool_calls:
        return message
    reasoning = [part for part in message.content if isinstance(part, ContentReasoning)]
    return message.model_copy(update={"content": [*reasoning, ContentText(text=NOTHING_SAID)]})


def _refuses(message: ChatMessageAssistant) -> bool:
    """Whether the provider marked the reply as a refusal, as OpenAI does with ones that have words."""
    parts = message.content if isinstance(message.content, list) else []
    return any(isinstance(part, ContentText) and bool(part.refusal) for part in parts)


def _ended_by(output: ModelOutput) -> Prediction | None:
    """The outcome that the reply itself decides, if it does."""
    if output.stop_reason == "content_filter" or _refuses(output.message):
        return Prediction("blocked", detail=output.error or "content filter or refusal")
    if BOTCHED in (output.metadata or {}):
        return Prediction("malformed", detail="the provider could not read the tool calls that the predictor wrote")
    if output.stop_reason == "model_length":
        return Prediction("overflow", detail=output.error or "the conversation is longer than the model's context")
    if output.stop_reason == "max_tokens" and not output.message.text.strip() and not output.message.tool_calls:
        return Prediction("truncated", detail="the output cap was spent before anything was said")
    return None


async def _play(game: _Game, max_turns: int) -> Prediction:
    asked = False
    for _ in range(max_turns):
        ended = await game.turn("submitted", "auto")
        if ended is not None:
            return ended
        if game.state.messages[-1].role != "tool":
            if asked:
                break
            asked = True
            game.state.messages.append(ChatMessageUser(content=text("ask.md")))
    game.state.messages.append(ChatMessageUser(content=text("force.md")))
    for _ in range(MAX_BAD_SUBMITS):
        ended = await game.turn("forced", ToolFunction(name=SUBMIT))
        if ended is not None:
            return ended
        if game.state.messages[-1].role != "tool":
            break
    return game.prose()


async def _tools_for(setup: ArmSetup, state: TaskState, budget: Budget) -> list[ToolDef]:
    """Offer the arm's tools, and say so at the end of the user message."""
    if setup.tool_url is None:
        return []
    server = connect(setup.tool_url)
    transcript_id = str(state.metadata["transcript_id"])
    tools = await server.tools()
    listed = await server.list_tokens(transcript_id)
    about = await server.about()
    if setup.shows_all:
        outputs = await _read_everything(server, tools, listed, transcript_id, about.max_positions)
        state.user_prompt.text = state.user_prompt.text + all_suffix(about, tools, outputs)
        return []
    suffix = tool_suffix(about, tools, listed, setup.calls, setup.positions)
    state.user_prompt.text = state.user_prompt.text + suffix
    return [host_tool(tool, server, transcript_id, budget) for tool in tools]


async def _read_everything(
    server: ToolServer, tools: Sequence[ServedTool], listed: TokenList | None, transcript_id: str, at_once: int
) -> list[str]:
    """What the tool that takes positions says at every position that it reads, in order."""
    tool = next((tool for tool in tools if "positions" in tool.parameters.properties), None)
    if tool is None or listed is None:
        raise ToolServerGone("The server offers no tool that takes positions, so not all can be shown at once.")
    places = [token.index for token in listed.tokens if token.index not in set(listed.masked)]
    chunks = [places[start : start + at_once] for start in range(0, len(places), at_once)]
    return [await server.call(tool, {"positions": chunk}, transcript_id) for chunk in chunks]


@solver
def predict(setup: ArmSetup) -> Solver:
    """The predictor loop under `setup`; stores `state.metadata["prediction"]` (see `Prediction.as_metadata`)."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001 - the loop calls the model itself
        # A limit of the run ends the sample from outside; what is stored here is then what the scorer finds.
        state.metadata["prediction"] = Prediction("limit", detail="a limit of the run ended the sample").as_metadata()
        budget = Budget(setup.calls, setup.positions)
        tools = await _tools_for(setup, state, budget)
        state.messages.insert(0, ChatMessageSystem(content=text("system.md")))
        game = _Game(state, get_model(), tools, budget)
        prediction = game.end(await _play(game, setup.max_turns))
        state.metadata["prediction"] = prediction.as_metadata()
        state.completed = True
        return state

    return solve
