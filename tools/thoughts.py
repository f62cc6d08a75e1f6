"""Thoughts of a target that thinks before it answers: where they end, and how long they may be."""

from collections.abc import Sequence

from torch import Tensor

from claims.schema import UserError
from tools.chat import END_OF_THOUGHT
from tools.model import Loaded
from tools.targets import Sampling


class Thoughts:
    """Ends a thought that has grown too long, so that tokens are left for the answer."""

    def __init__(self, loaded: Loaded, settings: Sampling) -> None:
        """Take the limit from the settings.

        Raises:
            UserError: A target is to think that has no token to end its thoughts with.
        """
        self.limit = settings.max_thinking
        self.end = loaded.tokenizer.convert_tokens_to_ids(END_OF_THOUGHT)
        if self.limit is not None and self.end in (None, loaded.tokenizer.unk_token_id):
            raise UserError(
                f"{loaded.target.name} was asked to think, but its tokenizer has no token {END_OF_THOUGHT}. Expected a "
                "target that thinks, such as qwen3-8b. Leave thinking out for this one."
            )

    def end_long_ones(self, so_far: Sequence[Sequence[int]], tokens: Tensor) -> Tensor:
        """The next tokens, shape (rows,), with the end of the thought for every row that has used up its limit.

        Args:
            so_far: What each row has sampled.
            tokens: What was drawn next; changed in place.
        """
        for place, token_ids in enumerate(so_far):
            if len(token_ids) == self.limit and self.end not in token_ids:
                tokens[place] = self.end
        return tokens
