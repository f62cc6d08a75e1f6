"""The interpretability tools: one row a tool, its code in a module of its own.

Invariant: importing this table loads neither torch nor a model.
"""

from dataclasses import dataclass

from claims.schema import UserError


@dataclass(frozen=True)
class ToolSpec:
    """One tool that a predictor may be given."""

    name: str
    """Short name, used on the command line and in results."""
    module: str
    """Where it is built: a module with `load(target) -> tools.server.Tool`."""
    trainer: str
    """What trains the weights that are shipped for local targets: a module with `main(arguments)`."""
    blurb: str
    """One line for people who choose a tool."""
    takes_positions: bool = True
    """Whether a predictor chooses token positions; where not, the cap on positions does not apply."""


TOOLS: dict[str, ToolSpec] = {
    spec.name: spec
    for spec in (
        ToolSpec("sae", "tools.sae", "tools.train_sae", "active features of a sparse autoencoder, with a label each"),
        ToolSpec(
            "ao",
            "tools.ao",
            "tools.train_ao",
            "an activation oracle's answer to a question about a segment",
            takes_positions=False,
        ),
        ToolSpec("nla", "tools.nla", "tools.train_nla", "a description in plain language of the activation at a token"),
    )
}


def get_tool(name: str) -> ToolSpec:
    """The row called `name`.

    Raises:
        UserError: No row has this name.
    """
    if name not in TOOLS:
        raise UserError(f"Unknown tool {name!r}. Known tools: {', '.join(TOOLS)}. Choose one of them.")
    return TOOLS[name]
