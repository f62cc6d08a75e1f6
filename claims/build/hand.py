"""The comparison by hand: forty responses read without the programs' verdicts, then compared with them.

Invariant: what is drawn depends on the bank and the seed alone, and the list to read holds no verdict.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from claims.atomic import write_atomically
from claims.build.bank import HAND_CHECK
from claims.build.companion import FILE
from claims.build.draw import seeded
from claims.labels import load_evidence
from claims.load import load_claims
from claims.schema import ClaimsError, UserError, read_rows

N = 40
"""Responses to read."""
HOW = (
    "{n} responses behind the labels, drawn by seed: a quarter for every pair of (before or after the edit, verdict of "
    "the program), from as many investigations as possible. They were read one by one against the question, from a "
    "list without the programs' verdicts, by {reader}."
)


@dataclass(frozen=True)
class Shown:
    """One response to read."""

    claim_id: str
    """A claim it is behind."""
    prompt: str
    """`before` or `after` the edit."""
    question: str
    """To be answered of the response."""
    response: str
    """The response."""
    program: bool
    """The program's verdict, which the reader does not see."""


def draw(folder: Path, seed: int, n: int = N) -> list[Shown]:
    """What to read, in an order that tells nothing."""
    pool = sorted(_behind_labels(folder), key=lambda one: seeded(seed, "\n".join(map(str, asdict(one).values()))))
    chosen: list[Shown] = []
    for prompt in ("before", "after"):
        for verdict in (True, False):
            cell = [one for one in pool if (one.prompt, one.program) == (prompt, verdict)]
            chosen += _spread(cell, {_investigation(one) for one in chosen}, n // 4)
    return sorted(chosen, key=pool.index)


def _spread(cell: Sequence[Shown], used: Iterable[str], n: int) -> list[Shown]:
    """The first `n`, those of investigations that are not used yet before the others."""
    seen = set(used)
    first: list[Shown] = []
    later: list[Shown] = []
    for one in cell:
        (later if _investigation(one) in seen else first).append(one)
        seen.add(_investigation(one))
    return (first + later)[:n]


def _investigation(one: Shown) -> str:
    return one.claim_id.rsplit("/", 1)[0]


def _behind_labels(folder: Path) -> Iterator[Shown]:
    claim_set = load_claims(folder)
    evidence = load_evidence(claim_set)
    first = {claim.investigation_id: claim for claim in reversed(claim_set.claims)}
    for claim in claim_set.claims:
        for verdict in evidence[claim.claim_id].responses:
            yield Shown(claim.claim_id, "after", claim.behaviour, verdict.response, verdict.yes)
    for row in read_rows(folder / FILE):
        claim = first[row.text("investigation_id")]
        baseline = row.values["baseline"]
        assert isinstance(baseline, dict)
        for said in baseline["responses"]:
            yield Shown(claim.claim_id, "before", claim.behaviour, said["response"], said["yes"])


def compare(shown: Sequence[Shown], answers: Sequence[bool], *, seed: int, reader: str) -> dict[str, object]:
    """The content of `hand_check.json`.

    Raises:
        UserError: There is not one answer for every response.
    """
    if len(answers) != len(shown):
        raise UserError(f"Found {len(answers)} answers for {len(shown)} responses. Expected one each, in their order.")
    rows = [{**asdict(one), "hand": hand} for one, hand in zip(shown, answers, strict=True)]
    differing = [row for row in rows if row["hand"] != row["program"]]
    n_agree = len(rows) - len(differing)
    return {
        "n": len(rows),
        "n_agree": n_agree,
        "agreement": round(n_agree / len(rows), 4),
        "how": HOW.format(n=len(rows), reader=reader),
        "seed": seed,
        "disagreements": differing,
        "rows": rows,
    }


def main() -> int:
    """Show the list to read, or compare and keep the answers: `--answers ynny… --reader WHO`."""
    parser = argparse.ArgumentParser(prog="python -m claims.build.hand", description=main.__doc__)
    parser.add_argument("folder", type=Path, help="a bank's folder")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--answers", help="one letter a response, y or n, in the order shown; spaces are ignored")
    parser.add_argument("--reader", help="who read, such as 'the author of the investigations'")
    options = parser.parse_args()
    try:
        shown = draw(options.folder, options.seed)
        if options.answers is None:
            sys.stdout.writelines(
                f"{place:>2} [{one.claim_id} {one.prompt}] {one.question}\n   {one.response!r}\n"
                for place, one in enumerate(shown, start=1)
            )
            return 0
        letters = options.answers.replace(" ", "").lower()
        if set(letters) - {"y", "n"} or not options.reader:
            raise UserError(f"--answers takes y and n only and needs --reader; found {options.answers!r}.")
        found = compare(shown, [letter == "y" for letter in letters], seed=options.seed, reader=options.reader)
        write_atomically(options.folder / HAND_CHECK, json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        sys.stdout.write(f"{found['n_agree']} of {found['n']} verdicts agree\n")
    except (UserError, ClaimsError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
