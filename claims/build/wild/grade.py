"""How concrete the mechanism behind an investigation is: the first of the paper's filters.

Invariant: one grade an investigation, a whole number from 1 to 4, or None when none could be read.
"""

from claims.build.wild.fence import fenced, fill
from claims.build.wild.forms import Errand, Fields, Form, fill_in, role_text, said
from claims.build.wild.investigate import Lab
from claims.build.wild.records import Investigated
from claims.build.wild.verify import report_text


def _read(fields: Fields) -> int:
    fields.text("reasons")
    return fields.whole("grade", 1, 4)


GRADE = Form(
    "file_grade",
    "Record your grade. It counts only through this call.",
    {
        "reasons": said("string", "What makes the mechanism concrete or vague, in two sentences."),
        "grade": said("integer", "From 1 to 4, by the scale you were given."),
    },
    _read,
)


async def grade(lab: Lab, one: Investigated) -> int | None:
    """The grade of the mechanism that the report names."""
    user = fill(
        "grade_user.md",
        behaviour=fenced("behaviour", [("frozen classifier question", one.screened.classifier)]),
        report=report_text(one.filed),
    )
    return await fill_in(lab.clerk, Errand("filters", one.prompt.prompt_id, "grader", role_text("grade"), user), GRADE)
