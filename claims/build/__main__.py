"""`python -m claims.build TARGET`: build a target's bank, or look at what its investigations measure."""

import argparse
import logging
import sys
from pathlib import Path

from claims.build.pipeline import Plan, build
from claims.schema import UserError
from tools.targets import get_target
from tools.weights import cache_root

BANKS = Path(__file__).parent.parent / "data"
"""Where the shipped banks are."""


def parse(arguments: list[str]) -> Plan:
    """The plan that a command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m claims.build", description=__doc__)
    parser.add_argument("target", help="full name of the target, such as smollm2-135m")
    parser.add_argument("--out", type=Path, help="the bank's folder (default: claims/data/<target>)")
    parser.add_argument("--only", help="shell pattern of investigation ids, such as 'capital-*'")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--screen-only", action="store_true", help="ten responses of every prompt, no bank")
    parser.add_argument("--most", type=int, help="investigations to sample in full at most (default: all)")
    parser.add_argument("--grow", type=Path, help="a bank whose investigations go before all others")
    parser.add_argument("--report", action="store_true", help="write a Markdown report of the rates")
    options = parser.parse_args(arguments)
    target = get_target(options.target)
    return Plan(
        target=target,
        out=options.out or BANKS / target.name,
        seed=options.seed,
        only=options.only,
        screen_only=options.screen_only,
        most=options.most,
        grow=options.grow,
        report=cache_root() / "sampling" / target.name / "report.md" if options.report else None,
    )


def main() -> int:
    """Run and return the exit status: 2 for a mistake that the user can mend."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    try:
        build(parse(sys.argv[1:]))
    except UserError as error:
        logging.getLogger(__name__).error("%s", error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
