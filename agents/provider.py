"""The one door to a provider: how long we wait, what we ask again, when we stop, and what we say about it.

Invariants: waits and tries are bounded; a provider's own word on when to come back is kept; a reply that breaks off is
never taken for an answer; a quota that is spent for the day stops all further requests at once, and so does a provider
that nothing comes back from; no error that leaves here holds a key.
"""

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from inspect_ai._util.http import parse_retry_after_from_exception, status_code_of
from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import ChatMessage, GenerateConfig, Model, ModelCall, ModelOutput, RetryDecision
from inspect_ai.tool import ToolChoice, ToolDef, ToolInfo
from inspect_ai.util import LimitExceededError
from pydantic import JsonValue
from tenacity import RetryCallState, RetryError
from tenacity.wait import wait_base

from agents.secrets import hide, hide_in

FIRST_WAIT_S = 3.0
"""Wait before the first repetition; doubles with each, unless the provider says when to come back."""
LONGEST_WAIT_S = 600.0
"""Longest single wait. A provider that says to come back later than this is taken to be done for the day."""

MOST_FAILED = 8
"""Requests that fail for good, one after the other without an answer in between, before no more are made."""
SPEAK_EVERY_S = 30.0
"""Least time between two words about faults that are waited for."""

_DAILY = re.compile(r"per ?day|\b[RT]PD\b|daily|insufficient_quota|limit: 0\b", re.IGNORECASE)
_ACCOUNT = re.compile(
    r"credit balance is too low|reached your specified API usage limits|billing_(?:error|hard_limit)", re.IGNORECASE
)


BOTCHED = "botched_calls"
"""Key in a reply's metadata: Gemini could not read its own model's calls, in any of Inspect's three tries."""


class ClosedError(Exception):
    """No more is asked in this run: the quota is spent, or request after request failed for good."""


class ProviderError(Exception):
    """A request failed for good: refused as wrong, or still failing after every repetition. A fault, no outcome."""


class BrokenReplyError(Exception):
    """A reply that broke off in the middle, though the protocol went through."""


@dataclass
class _Account:
    """What is known of a model's provider in this process."""

    closed: str = ""
    """Why no more is asked."""
    failed: int = 0
    """Requests that failed for good since the last answer."""
    say: Callable[[str], None] = lambda _: None
    """Told of faults that are waited for."""
    spoke: float = -math.inf
    """When it was told something last."""

    def waits(self, words: str) -> None:
        """Tell of a fault that is waited for, now and then."""
        if time.monotonic() - self.spoke >= SPEAK_EVERY_S:
            self.spoke = time.monotonic()
            self.say(words)


_accounts: dict[Model, _Account] = {}
"""Kept to the end of the process: Inspect 0.3.285 closes no model, and one that is collected leaves sockets open."""


def closed(model: Model) -> str:
    """Why nothing more is asked of `model`; empty as long as it is."""
    account = _accounts.get(model)
    return account.closed if account else ""


def listen(model: Model, say: Callable[[str], None]) -> None:
    """Let `say` hear of faults of a remote model that are waited for."""
    if model in _accounts:
        _accounts[model].say = say


def _details(error: BaseException) -> Mapping[str, object]:
    """The body of Google's errors, which name quotas and delays there."""
    details = getattr(error, "details", None)
    inner = details.get("error", details) if isinstance(details, dict) else {}
    return inner if isinstance(inner, dict) else {}


def told_to_wait(error: BaseException) -> float | None:
    """Seconds after which the provider wants to be asked again, as it says in a header or in Google's details."""
    header = parse_retry_after_from_exception(error)
    if header is not None:
        return header
    listed = _details(error).get("details")
    for item in listed if isinstance(listed, list) else []:
        delay = re.fullmatch(r"(\d+(?:\.\d+)?)s", str(item.get("retryDelay", "")))
        if delay:
            return float(delay.group(1))
    return None


def is_quota_spent(error: BaseException) -> bool:
    """Whether an error says that no answer can be had today, as opposed to this minute."""
    status = status_code_of(error)
    words = f"{error} {getattr(error, 'code', '')} {json.dumps(_details(error), default=str)}"
    if status == 429:
        return _DAILY.search(words) is not None or (told_to_wait(error) or 0) > LONGEST_WAIT_S
    return status in (400, 402, 403) and _ACCOUNT.search(words) is not None


class _Wait(wait_base):
    """The provider's word where it gave one, else doubling."""

    def __call__(self, retry_state: RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        told = told_to_wait(error) if error else None
        doubled = FIRST_WAIT_S * 2.0 ** min(retry_state.attempt_number - 1, 20)
        return min(doubled if told is None else told, LONGEST_WAIT_S)


def make_careful(model: Model) -> None:
    """Give a model of a remote family the manners at the top of this module."""
    api, account = model.api, _accounts.setdefault(model, _Account())
    generate, should_retry = api.generate, api.should_retry

    async def careful_generate(
        input: list[ChatMessage],  # noqa: A002 - Inspect's own name
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput | tuple[ModelOutput | Exception, ModelCall]:
        try:
            made = await generate(input=input, tools=tools, tool_choice=tool_choice, config=config)
        except Exception as error:
            _blot(error)
            _blot_last_call()
            raise
        output, call = made if isinstance(made, tuple) else (made, None)
        if isinstance(output, Exception):
            _blot(output)
            _blot_last_call()
        elif call is not None:
            _check_whole(output, call)
        return made

    def careful_retry(error: BaseException) -> bool | RetryDecision:
        if is_quota_spent(error):
            account.closed = f"{model} gives no more answers today ({_said(error)})."
            return RetryDecision.no()
        account.waits(f"{model}: {_said(error)}")
        # A body that is no JSON came through the protocol whole, and all three SDKs let its parser's error through.
        if isinstance(error, BrokenReplyError | json.JSONDecodeError):
            return RetryDecision.transient()
        return should_retry(error)  # type: ignore[arg-type]  # Inspect passes BaseException too

    # Instances are dressed, not classes: which class serves a name is Inspect's business.
    vars(api).update(generate=careful_generate, should_retry=careful_retry, retry_wait=_Wait)


def _check_whole(output: ModelOutput, call: ModelCall) -> None:
    """Refuse a reply without an end; name the ends that Inspect 0.3.285 has no word for.

    Anthropic's SDK makes a message of a stream that stops half way: its `stop_reason` is then missing.
    """
    response = call.response or {}
    if output.empty:
        return
    if output.stop_reason == "unknown" and "MALFORMED_FUNCTION_CALL" in json.dumps(
        response.get("candidates"), default=str
    ):
        output.metadata = {**(output.metadata or {}), BOTCHED: True}
    if response.get("stop_reason", "") is None:
        raise BrokenReplyError("the stream ended before the message did")
    if response.get("stop_reason") == "model_context_window_exceeded":
        output.choices[0].stop_reason = "model_length"


def _blotted(response: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
    return None if response is None else {hide(name): hide_in(value) for name, value in response.items()}


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            waiting += [one.__cause__, one.__context__]
            yield one


def _blot(error: BaseException) -> None:
    """Take keys out of an error, out of what caused it, and out of what the provider answered."""
    for one in _chain(error):
        one.args = tuple(map(hide_in, one.args))
        for name, value in list(vars(one).items()):
            if isinstance(value, str | dict | list):
                setattr(one, name, hide_in(value))


def _blot_last_call() -> None:
    """Take keys out of the record of the request that has just failed, before Inspect writes it to its log."""
    for event in reversed(transcript().events):
        if isinstance(event, ModelEvent):
            if event.call is not None:
                event.call.response = _blotted(event.call.response)
            return


def _said(error: BaseException) -> str:
    """What went wrong, in one line without the request; of a request that was repeated, what went wrong last."""
    if isinstance(error, RetryError):
        error = error.last_attempt.exception() or error
    words = getattr(error, "provider_message", None) or str(error)
    cause = error.__cause__ if getattr(error, "provider_message", None) and error.__cause__ else error
    return hide(f"{type(cause).__name__}: {' '.join(str(words).split())[:300]}")


async def ask(model: Model, messages: list[ChatMessage], tools: list[ToolDef], choice: ToolChoice) -> ModelOutput:
    """One reply of a predictor.

    Raises:
        ClosedError: No answer can be had in this run; said once by the provider, from then on by us.
        ProviderError: The request failed for good.
    """
    account = _accounts.get(model)
    if account is None:
        return await model.generate(messages, tools, choice)
    _refuse_closed(account)
    try:
        output = await model.generate(messages, tools, choice)
    except LimitExceededError:
        raise
    except Exception as error:
        _refuse_closed(account)
        account.failed += 1
        if account.failed >= MOST_FAILED:
            account.closed = f"{model} failed {account.failed} requests in a row ({_said(error)})."
        raise ProviderError(f"{model}: {_said(error)}") from error
    account.failed = 0
    return output


def _refuse_closed(account: _Account) -> None:
    if account.closed:
        raise ClosedError(account.closed)
