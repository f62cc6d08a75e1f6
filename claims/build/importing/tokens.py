"""Token ids for transcripts that were published without them.

Invariant: a prompt is encoded by `tools.chat` as in every run of ours; a response is encoded as plain text after it,
which may differ from the ids once sampled, so the card says that the ids were made here.
"""

from typing import cast

from transformers import AutoTokenizer, PreTrainedTokenizerFast

from claims.build.importing.convert import Encode
from claims.schema import ClaimsError, Message
from tools.chat import encode_prompt
from tools.targets import Target
from tools.weights import is_present, prepare

_FILES = "'*.json' '*.jinja' '*.model'"


def make_encode(target: Target) -> Encode:
    """The encoder of a target's transcripts; its tokenizer is enough, its weights are not needed.

    Raises:
        ClaimsError: The tokenizer is not on this machine; the text says how to get it.
    """
    tokenizer = _tokenizer(target)

    def encode(messages: tuple[Message, ...], response: str) -> tuple[int, ...]:
        answer = tokenizer(response, add_special_tokens=False)["input_ids"]
        return (*encode_prompt(tokenizer, target, messages), *answer)

    return encode


def _tokenizer(target: Target) -> PreTrainedTokenizerFast:
    if target.source != "hub" or is_present(target):
        place, revision = str(prepare(target)), None
    else:
        place, revision = target.checkpoint, target.revision
    try:
        tokenizer = AutoTokenizer.from_pretrained(place, revision=revision, local_files_only=True)
    except (OSError, ValueError) as error:
        raise ClaimsError(
            f"The file has no token_ids and the tokenizer of {target.name} is not on this machine. Map a column to "
            f"token_ids, or fetch the tokenizer (a few MB) once: hf download {target.checkpoint} "
            f"--revision {target.revision} --include {_FILES}"
        ) from error
    return cast(PreTrainedTokenizerFast, tokenizer)
