"""The local predictor: SmolLM2-135M as a model in the same loop as every other, with no key and no network.

Where nothing was read yet it makes one call: of a tool that takes positions, with positions by `reading_policy`, else
of one that needs no argument. Then it answers through the chance of Yes against No as its next token, after its own
shorter rendering of the conversation (`local_prompt`), and submits that. Longer than its context of 8,192 tokens: an
overflow. It reads the messages alone, so it sees what any predictor sees.
"""

from collections.abc import Sequence

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    modelapi,
)
from inspect_ai.tool import ToolCall, ToolChoice, ToolFunction, ToolInfo

from agents.local_prompt import LINE_CHARS, question
from agents.prompts import listed_tokens, positions_allowed, sections
from agents.reading_policy import choose_positions
from tools.targets import get_target
from tools.weights import prepare

CONTEXT = 8192
"""Most tokens of a question."""
POSITIONS = 8
"""Positions it reads when the budget allows them."""


def policy() -> str:
    """What its answers depend on beside its weights and prompts, for the identity of a run."""
    return f"reads {POSITIONS} positions, {LINE_CHARS} characters a line, {CONTEXT} tokens"


def first_call(message: str, tools: Sequence[ToolInfo]) -> ToolCall | None:
    """The one call that the local predictor makes; None where every tool wants what it cannot give."""
    tool = next((tool for tool in tools if "positions" in tool.parameters.properties), None)
    listed = listed_tokens(message)
    if tool is None or listed is None:
        simple = (tool for tool in tools if not tool.parameters.required)
        return next((ToolCall(id="read", function=tool.name, arguments={}) for tool in simple), None)
    allowed = min(POSITIONS, positions_allowed(message) or POSITIONS)
    positions = choose_positions(listed, sections(message)["claim"].body, allowed)
    return ToolCall(id="read", function=tool.name, arguments={"positions": positions})


class LocalAPI(ModelAPI):
    """SmolLM2-135M behind Inspect's model interface."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - Inspect's own signature
    ) -> None:
        """Prepare the weights of the target `model_name`.

        Raises:
            UserError: They cannot be had.
        """
        super().__init__(model_name, base_url, api_key, [], config)
        # Imported late: torch takes seconds to load, and no other predictor needs it.
        from agents.local_engine import engine

        self.engine = engine(prepare(get_target(model_name)))

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002 - Inspect's own name
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,  # noqa: ARG002 - Inspect's own signature
    ) -> ModelOutput:
        """One turn: the tool call if it is time for it, else the answer."""
        message = next(turn.text for turn in input if isinstance(turn, ChatMessageUser))
        outputs = [turn for turn in input if isinstance(turn, ChatMessageTool)]
        call = None if outputs or isinstance(tool_choice, ToolFunction) else first_call(message, tools)
        if call is not None:
            return self._output(call, tokens=0, metadata={"positions": call.arguments.get("positions")})
        shown = [turn.text for turn in outputs if turn.error is None]
        prefix, ids = self.engine.encode(*question(message, shown))
        n_tokens = len(prefix) + len(ids)
        if n_tokens > CONTEXT:
            return self._overflow(n_tokens)
        answer = await self.engine.ask(ids, prefix)
        facts: dict[str, object] = {"p_yes": answer.p_yes, "mass": answer.mass, "yes": answer.yes, "no": answer.no}
        return self._output(
            ToolCall(id="submit", function="submit", arguments={"p_true": answer.p_yes}),
            tokens=n_tokens,
            metadata=facts,
        )

    def _output(self, call: ToolCall, *, tokens: int, metadata: dict[str, object]) -> ModelOutput:
        said = ChatMessageAssistant(content="", tool_calls=[call], source="generate")
        return ModelOutput(
            model=self.model_name,
            choices=[ChatCompletionChoice(message=said, stop_reason="tool_calls")],
            usage=ModelUsage(input_tokens=tokens, output_tokens=1, total_tokens=tokens + 1),
            metadata=metadata,
        )

    def _overflow(self, tokens: int) -> ModelOutput:
        output = ModelOutput.from_content(self.model_name, "", stop_reason="model_length")
        output.error = f"{tokens} tokens; the local predictor's context holds {CONTEXT}"
        output.usage = ModelUsage(input_tokens=tokens, output_tokens=0, total_tokens=tokens)
        return output


@modelapi(name="local")
def local() -> type[ModelAPI]:
    """Register `local/<target>` with Inspect."""
    return LocalAPI
