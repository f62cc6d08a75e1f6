"""The paper's prompts: four sources, mixed by share, a fixed slice, training prompts left out.

Invariant: the slice is the same whatever is left out of it afterwards.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from claims.build.wild.roles import PAPER_FIRST, PAPER_SHARES
from claims.prompts import Prompt, PromptsError, collect_prompts, mix


def paper_prompts(
    files: Mapping[str, Sequence[Path]], excluded: Collection[str] = (), *, first: int = PAPER_FIRST
) -> tuple[tuple[Prompt, ...], list[dict[str, object]]]:
    """The prompts of a paper run and the count of every drop on the way to them.

    Args:
        files: Files of each source, by its format: wildchat, toolace, systemchat, hermes.
        excluded: Prompt ids of the training data.
        first: Size of the slice.

    Raises:
        PromptsError: A source is missing or unknown, or a file is broken.
    """
    if set(files) != set(PAPER_SHARES):
        raise PromptsError(
            f"The profile 'paper' mixes {', '.join(PAPER_SHARES)}; found {', '.join(sorted(files)) or 'none'}. "
            "Give every source as format=FILE."
        )
    pools: dict[str, tuple[Prompt, ...]] = {}
    rows: list[dict[str, object]] = []
    seen: set[str] = set()
    for name in PAPER_SHARES:
        collected = collect_prompts(list(files[name]), format_name=name)
        rows += [{"source": name, **row} for row in collected.funnel.rows()]
        # A prompt that two sources hold counts for the first: ids must be unique in a run.
        pools[name] = tuple(one for one in collected.prompts if one.prompt_id not in seen)
        seen.update(one.prompt_id for one in pools[name])
    mixed = mix(pools, PAPER_SHARES)
    chosen = mixed[:first]
    left_out = frozenset(excluded)
    kept = tuple(one for one in chosen if one.prompt_id not in left_out)
    n_read = sum(map(len, pools.values()))
    rows += [
        {"source": "mixture", "reason": "beyond the shares", "dropped": n_read - len(mixed), "left": len(mixed)},
        {
            "source": "mixture",
            "reason": f"after the first {first:,}",
            "dropped": len(mixed) - len(chosen),
            "left": len(chosen),
        },
        {"source": "mixture", "reason": "excluded by id", "dropped": len(chosen) - len(kept), "left": len(kept)},
    ]
    return kept, rows
