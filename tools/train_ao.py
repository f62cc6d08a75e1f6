"""`python -m tools.training ao TARGET`: train and measure the activation oracle that is shipped for a target.

Invariant: what it writes depends on the target, the plan and the installed packages alone. A run that was killed goes
on where it was: text, activations and the state of training are kept in the cache.
"""

from collections.abc import Sequence
from pathlib import Path

from tools.training.lora.console import Lines, command
from tools.training.lora.make_oracle import make_oracle, write_oracle
from tools.training.lora.plan import get_plan
from tools.training.lora.run import ARTIFACTS, open_workshop


def main(arguments: Sequence[str] | None = None) -> None:
    """Train for the target that is named; status 2 when the user must mend something first."""
    command("ao", __doc__, train, arguments)


def train(name: str, *, out: Path | None = None, n_steps: int | None = None, minutes: float | None = None) -> Path:
    """Train and measure; return the folder that was written.

    Raises:
        UserError: The target is unknown or has no plan, or its weights cannot be had.
    """
    plan = get_plan("ao", name, n_steps=n_steps, minutes=minutes)
    lines = Lines()
    workshop = open_workshop("ao", name, plan, progress=lines.show)
    made = make_oracle(workshop, plan, progress=lines.show)
    folder = out or ARTIFACTS / "ao" / name
    write_oracle(folder, workshop, plan, made)
    return folder


if __name__ == "__main__":
    main()
