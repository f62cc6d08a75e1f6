"""From files to the prompts that are sampled, with a count for every drop, and onto disk.

Invariant: the same files and limits give the same prompts in the same order, and the counts add up.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from claims.atomic import write_atomically
from claims.prompts.filters import PETRI_LIMITS, CountTokens, Limits, build_filters
from claims.prompts.petri import FAILED, is_petri
from claims.prompts.reading import read_all
from claims.prompts.record import Funnel, Prompt, PromptsError, Reading, count_roles, funnel
from claims.prompts.turns import UNUSABLE
from claims.schema import message_rows


@dataclass(frozen=True)
class Collected:
    """The prompts of a run and how they were come by."""

    prompts: tuple[Prompt, ...]
    """In the order of the files."""
    funnel: Funnel
    """Counts for every drop: rows that are no prompt first, then the filters in order."""
    n_cut: int
    """Prompts read whose turns after the last user turn (or an auditor's prefill) were cut off."""
    roles: dict[str, int]
    """How many of the prompts hold a turn of each role."""
    limits: Limits
    """What the prompts keep to."""


def collect_prompts(
    paths: Sequence[Path],
    *,
    format_name: str | None = None,
    limits: Limits | None = None,
    count_tokens: CountTokens | None = None,
    excluded: Collection[str] = (),
) -> Collected:
    """Read the files and filter.

    Args:
        paths: Files of conversations, or logs of inspect-petri; not both.
        format_name: One of `FORMATS`; None detects it file by file.
        limits: None takes the paper's for that kind of source.
        count_tokens: Tokens of a rendered prompt, needed for a limit in tokens.
        excluded: Prompt ids to leave out, such as those of the training data.

    Raises:
        PromptsError: A file is broken or of an unknown layout, or both kinds are mixed.
    """
    chosen = limits or default_limits(paths, format_name)
    readings = read_all(list(paths), format_name=format_name)
    return _filter(readings, chosen, count_tokens, excluded)


def default_limits(paths: Sequence[Path], format_name: str | None = None) -> Limits:
    """The paper's limits for PETRI logs, or for everything else.

    Raises:
        PromptsError: Logs and conversations are mixed: their limits differ.
    """
    logs = {format_name == "petri" or (format_name is None and is_petri(path)) for path in paths}
    if len(logs) > 1:
        raise PromptsError("Found logs of inspect-petri beside files of conversations. Collect each kind apart.")
    return PETRI_LIMITS if logs == {True} else Limits()


def _filter(
    readings: Iterable[Reading], limits: Limits, count_tokens: CountTokens | None, excluded: Collection[str]
) -> Collected:
    filters = build_filters(limits, count_tokens=count_tokens, excluded=excluded)
    dropped: Counter[str] = Counter()
    prompts: list[Prompt] = []
    read = n_cut = 0
    for reading in readings:
        read += 1
        n_cut += reading.cut
        if reading.prompt is None:
            dropped[reading.unusable or ""] += 1
            continue
        prompt = reading.prompt
        refused = next((each.reason for each in filters if not each.keep(prompt)), None)
        if refused is None:
            prompts.append(prompt)
        else:
            dropped[refused] += 1
    reasons = [reason for reason in (*UNUSABLE, FAILED) if dropped[reason]] + [each.reason for each in filters]
    steps = funnel(read, [(reason, dropped[reason]) for reason in reasons])
    return Collected(tuple(prompts), steps, n_cut, count_roles(prompts), limits)


def read_excluded(path: Path) -> frozenset[str]:
    """Prompt ids, one a line, from a list of ids or of their whole sha256; blank lines and `#` lines are skipped.

    Raises:
        PromptsError: The file is absent, or a line is no id.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        raise PromptsError(f"{path} does not exist. Expected one prompt id a line.") from None
    ids = set()
    for number, line in enumerate(lines, start=1):
        text = line.strip().lower()
        if not text or text.startswith("#"):
            continue
        if len(text) not in (16, 64) or set(text) - set("0123456789abcdef"):
            raise PromptsError(
                f"{path.name} line {number}: {text[:40]!r} is no prompt id. Expected 16 (or all 64) hexadecimal digits."
            )
        ids.add(text[:16])
    return frozenset(ids)


def mix(pools: Mapping[str, Sequence[Prompt]], shares: Mapping[str, float]) -> tuple[Prompt, ...]:
    """Interleave pools so that every beginning of the result keeps to the shares, as long as no pool runs out.

    Args:
        pools: Prompts of each source, in order.
        shares: Positive weights by the same names, such as 91.3, 5.2, 2.5, 1.0.

    Raises:
        PromptsError: The names differ, or a share is not positive.
    """
    if set(pools) != set(shares) or any(share <= 0 for share in shares.values()):
        raise PromptsError(f"Found pools {sorted(pools)} and shares {dict(shares)}. Give each pool a share above 0.")
    total = sum(shares.values())
    taken = dict.fromkeys(shares, 0)
    mixed: list[Prompt] = []
    while True:
        # The source that is furthest behind its share at the next place; the first named wins a tie.
        name = max(shares, key=lambda each: shares[each] / total * (len(mixed) + 1) - taken[each])
        if taken[name] == len(pools[name]):
            return tuple(mixed)
        mixed.append(pools[name][taken[name]])
        taken[name] += 1


def save_prompts(collected: Collected, path: Path) -> None:
    """Write the prompts as JSON Lines, and the counts beside them as `<name>.funnel.json`; both atomically."""
    lines = [
        json.dumps(
            {"prompt_id": prompt.prompt_id, "messages": message_rows(prompt.messages), "source": prompt.source},
            ensure_ascii=False,
        )
        for prompt in collected.prompts
    ]
    report = {
        "funnel": collected.funnel.rows(),
        "n_cut": collected.n_cut,
        "roles": collected.roles,
        "limits": asdict(collected.limits),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, "".join(line + "\n" for line in lines))
    write_atomically(
        path.with_name(f"{path.stem}.funnel.json"), json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    )
