"""`python -m tools.training TOOL TARGET`: train what is shipped for a tool and a target again; resumes."""

import sys
from collections.abc import Sequence
from importlib import import_module

from claims.schema import UserError
from tools import TOOLS, get_tool


def main(arguments: Sequence[str] | None = None) -> None:
    """Hand over to the tool's trainer; status 2 when the user must mend something first."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if not given:
            raise UserError(f"No tool is named. Expected one of: {', '.join(TOOLS)}, then a target.")
        trainer = get_tool(given[0]).trainer
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
    import_module(trainer).main(given[1:])


if __name__ == "__main__":
    main()
