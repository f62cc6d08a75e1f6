"""From verified investigations to claims: which experiments, which label, and the edit in the words of a blinded judge.

Invariant: `describe` takes the two prompts and nothing else, so no outcome can reach its wording; a label follows from
counts alone.
"""

from dataclasses import dataclass

from claims.build.thresholds import measured_label
from claims.build.wild.clerk import Clerk
from claims.build.wild.engine import Messages
from claims.build.wild.fence import fenced, fill, message_parts
from claims.build.wild.forms import Errand, Fields, Form, FormError, fill_in, listed, role_text, said
from claims.build.wild.investigate import Lab
from claims.build.wild.records import Experiment, Investigated
from claims.build.wild.verify import report_text

PER_LABEL = 2
"""True, and false, claims of one investigation at most."""


@dataclass(frozen=True)
class Description:
    """An edit in words."""

    text: str
    """What was changed, by its intent."""
    changes: tuple[str, ...]
    """Every difference that could matter, one an item."""
    confounded: bool
    """Whether more than one factor was changed."""


@dataclass(frozen=True)
class Drafted:
    """A claim before the filters."""

    one: Investigated
    """Its investigation."""
    experiment: Experiment
    """Its experiment."""
    label: bool
    """True for a change of at least 50 points, false for at most 15."""
    description: Description
    """The edit in words."""

    @property
    def claim_id(self) -> str:
        """Investigation and experiment."""
        return f"{self.one.prompt.prompt_id}/{self.experiment.number}"


def eligible(lab: Lab, one: Investigated) -> dict[int, bool]:
    """The label of every experiment that can be a claim, by its number."""
    labels: dict[int, bool] = {}
    for experiment in one.experiments:
        before, after = one.measured.rate, experiment.batch.rate
        if before is None or after is None or experiment.batch.n < lab.regime.min_usable:
            continue
        label = measured_label(before, after)
        if label is not None:
            labels[experiment.number] = label
    return labels


async def select(lab: Lab, one: Investigated) -> tuple[int, ...] | None:
    """Numbers of the most informative experiments, at most two of each label; None when the form never came right."""
    labels = eligible(lab, one)
    groups = {label: [number for number in labels if labels[number] is label] for label in (True, False)}
    if all(len(group) <= PER_LABEL for group in groups.values()):
        return tuple(sorted(labels))
    lines = [f"{experiment.number}. {_line(one, experiment, labels)}" for experiment in one.experiments]
    user = fill(
        "select_user.md",
        question=fenced("question", [("question", one.screened.question)]),
        report=report_text(one.filed),
        experiments=fenced("experiments", [("one a line", "\n".join(lines))]),
        supporting=_numbers(groups[True]),
        refuting=_numbers(groups[False]),
    )
    errand = Errand("claims", one.prompt.prompt_id, "selector", role_text("select"), user)
    return await fill_in(lab.clerk, errand, _choice_form(groups))


def _line(one: Investigated, experiment: Experiment, labels: dict[int, bool]) -> str:
    kind = {True: "large change", False: "no change", None: "in between"}[labels.get(experiment.number)]
    return f"{one.filed.lines[experiment.number]} ({one.measured.shown} to {experiment.batch.shown}: {kind})"


def _numbers(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"


def _choice_form(groups: dict[bool, list[int]]) -> Form[tuple[int, ...]]:
    def read(fields: Fields) -> tuple[int, ...]:
        chosen: list[int] = []
        for name, label in (("supporting", True), ("refuting", False)):
            numbers = fields.numbers(name)
            wanted = min(PER_LABEL, len(groups[label]))
            if len(set(numbers)) != wanted or len(numbers) != wanted or not set(numbers) <= set(groups[label]):
                allowed = _numbers(groups[label])
                raise FormError(f"{name}: found {list(numbers)}, expected {wanted} different numbers of: {allowed}.")
            chosen += numbers
        return tuple(sorted(chosen))

    return Form(
        "choose_experiments",
        "Record the chosen experiments. They count only through this call.",
        {
            "supporting": listed("integer", "Numbers of the experiments most informative about the cause."),
            "refuting": listed("integer", "Numbers of the experiments that best refute plausible explanations."),
        },
        read,
    )


def _read_description(fields: Fields) -> Description:
    changes = fields.texts("changes")
    if not changes:
        raise FormError("changes: found an empty list, expected every difference, one an item.")
    return Description(fields.text("description", limit=1500), changes, fields.flag("confounded"))


DESCRIPTION = Form(
    "describe_edit",
    "Record the description. It counts only through this call.",
    {
        "changes": listed("string", "Every difference between the two prompts that could matter, one an item."),
        "description": said(
            "string", "The edit by its intent, in one to three sentences, for a reader who sees only the original."
        ),
        "confounded": said("boolean", "True when the edit changes more than one independent factor."),
    },
    _read_description,
)


async def describe(clerk: Clerk, item: str, before: Messages, after: Messages) -> Description | None:
    """The edit from `before` to `after` in words, by a judge that sees these two prompts and nothing else."""
    user = fill(
        "describe_user.md",
        before=fenced("original prompt", message_parts(before)),
        after=fenced("edited prompt", message_parts(after)),
    )
    return await fill_in(clerk, Errand("claims", item, "describer", role_text("describe"), user), DESCRIPTION)


@dataclass(frozen=True)
class Drafts:
    """Claims of one investigation, and what was lost on the way."""

    claims: tuple[Drafted, ...]
    """In order of their experiments."""
    unselected: bool = False
    """Whether the selector never chose."""
    n_undescribed: int = 0
    """Chosen experiments without a usable description."""


async def draft(lab: Lab, one: Investigated) -> Drafts:
    """The claims of one verified investigation, before any filter."""
    numbers = await select(lab, one)
    if numbers is None:
        return Drafts((), unselected=True)
    labels = eligible(lab, one)
    chosen = [experiment for experiment in one.experiments if experiment.number in numbers]
    item, before = one.prompt.prompt_id, one.prompt.messages
    described = await lab.clerk.gather(describe(lab.clerk, item, before, each.messages) for each in chosen)
    pairs = zip(chosen, described, strict=True)
    claims = tuple(Drafted(one, each, labels[each.number], words) for each, words in pairs if words is not None)
    return Drafts(claims, n_undescribed=len(chosen) - len(claims))
