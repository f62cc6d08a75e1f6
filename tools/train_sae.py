"""`python -m tools.train_sae TARGET`: train, label and measure the sparse autoencoder that is shipped for a target.

Invariant: what it writes depends on the target, the recipe and the installed packages alone. A run that was killed
goes on where it was: text, activations and passes are kept in the cache.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TaskID, TimeRemainingColumn

from claims.schema import UserError
from tools.activations import DEFAULT_READER, make_reader
from tools.model import load
from tools.sae_local import ARTIFACTS
from tools.targets import get_target
from tools.training.make import Source, make, write
from tools.training.recipe import get_recipe


def main(arguments: Sequence[str] | None = None) -> None:
    """Train for the target that is named; status 2 when the user must mend something first."""
    parser = argparse.ArgumentParser(prog="python -m tools.train_sae", description=__doc__)
    parser.add_argument("target", help="such as gemma-3-270m")
    parser.add_argument("--out", type=Path, help="folder to write; default: the one that is shipped")
    options = parser.parse_args(arguments)
    try:
        train(options.target, out=options.out)
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)


def train(name: str, *, out: Path | None = None) -> Path:
    """Train, label and measure; return the folder that was written.

    Raises:
        UserError: The target is unknown, has no recipe or no layer for an autoencoder, or its weights cannot be had.
    """
    target, recipe = get_target(name), get_recipe(name)
    if target.sae is None:
        raise UserError(f"{name} has no layer for an autoencoder. Give its row in tools/targets.py one (`sae`).")
    loaded = load(target)
    source = Source(loaded, make_reader(DEFAULT_READER, loaded), DEFAULT_READER, target.sae.layer, recipe)
    with _Bars() as bars:
        made = make(source, progress=bars.show)
    folder = out or ARTIFACTS / target.sae.sae_id
    write(folder, source, made, command=f"python -m tools.train_sae {name}")
    return folder


class _Bars(Progress):
    """One bar for each thing that is being done, on standard error."""

    def __init__(self) -> None:
        columns = Progress.get_default_columns()[:2]
        super().__init__(*columns, MofNCompleteColumn(), TimeRemainingColumn(), console=Console(stderr=True))
        self._bars: dict[str, TaskID] = {}

    def show(self, what: str, done: int, n: int) -> None:
        """Move the bar of `what`."""
        if what not in self._bars:
            self._bars[what] = self.add_task(what, total=n)
        self.update(self._bars[what], completed=done, total=n)


if __name__ == "__main__":
    main()
