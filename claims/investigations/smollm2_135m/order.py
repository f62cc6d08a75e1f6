"""Causes of the kind "what comes first, what comes last"."""

from claims.build.programs import says, says_first, starts_with
from claims.build.spec import Investigation, add, delete, investigation, rewrite, swap
from claims.schema import Message


def _compare(slug: str, first: str, second: str, third: str) -> Investigation:
    return investigation(
        f"compared-{slug}",
        template="compared",
        cause="order",
        prompt=f"Compare {first} and {second}.",
        behaviour=f"Does the reply begin with the word {first}?",
        yes=starts_with(first),
        edits=(
            swap(
                "turned",
                f"{first} and {second}",
                f"{second} and {first}",
                f"{second} is named before {first}.",
                kind="reorder",
            ),
            swap("third", second, third, f"{first} is to be compared with {third}, not {second}."),
            swap("with", " and ", " with ", '"and" is replaced by "with".'),
            swap("describe", "Compare", "Describe", '"Compare" is replaced by "Describe".'),
            add("children", second, " for children", "The comparison should be made for children."),
            delete("alone", f" and {second}", f"{second} is deleted, so that {first} stands alone."),
        ),
    )


def _labels(
    slug: str, kinds: tuple[str, str], items: tuple[str, str, str], query: str, others: tuple[str, str]
) -> Investigation:
    one, two = kinds
    first, second, third = items
    other_query, other_second = others

    def turns(*shown: tuple[str, str], last: str = query) -> tuple[Message, ...]:
        pairs = [(Message("user", item), Message("assistant", label)) for item, label in shown]
        return (*(message for pair in pairs for message in pair), Message("user", last))

    a, b, c = (first, one), (second, two), (third, one)
    return investigation(
        f"labelled-{slug}",
        template="labelled-examples",
        cause="order",
        prompt=turns(a, b, c),
        behaviour=f'Does the reply give the label "{two}"?',
        yes=says(two) & ~says(one),
        edits=(
            rewrite(
                "second-first",
                "reorder",
                turns(b, a, c),
                f'The example "{second}" is moved from the second place to the first.',
            ),
            rewrite("no-third", "delete", turns(a, b), f'The third example, "{third}", is taken out.'),
            rewrite("no-second", "delete", turns(a, c), f'The second example, "{second}", is taken out.'),
            rewrite(
                "other-query",
                "swap",
                turns(a, b, c, last=other_query),
                f'The last item is "{other_query}" and not "{query}".',
            ),
            rewrite(
                "other-second",
                "swap",
                turns(a, (other_second, two), c),
                f'In the second example, "{second}" is replaced by "{other_second}".',
            ),
            rewrite("second-last", "reorder", turns(a, c, b), f'The example "{second}" is moved to the third place.'),
        ),
    )


def _card(slug: str, fields: tuple[tuple[str, str], ...], asked: int, other: str, third_person: str) -> Investigation:
    lines = [f"{key}: {value}" for key, value in fields]
    key, value = fields[asked]
    request = "Write one sentence about this person."

    def card(rows: list[str], last: str = request) -> str:
        return "\n".join([*rows, last])

    rest = [line for line in lines if line != f"{key}: {value}"]
    return investigation(
        f"record-{slug}",
        template="record",
        cause="order",
        prompt=card(lines),
        behaviour=f"Does the reply mention {value}?",
        yes=says(value),
        edits=(
            rewrite(
                "backwards", "reorder", card(lines[::-1]), "The lines of the record are put in the opposite order."
            ),
            rewrite("without", "delete", card(rest), f'The line "{key}" is removed from the record.'),
            rewrite(
                "other",
                "swap",
                card([line.replace(value, other) for line in lines]),
                f'The line "{key}" says {other} where it said {value}.',
            ),
            rewrite("request-first", "reorder", "\n".join([request, *lines]), "The request is moved above the record."),
            rewrite("question", "swap", card(lines, third_person), f'The request is replaced by "{third_person}"'),
        ),
    )


def _pick(slug: str, ask: str, first: str, second: str, extra: str) -> Investigation:
    return investigation(
        f"first-option-{slug}",
        template="first-option",
        cause="order",
        prompt=f"{ask} {first} or {second}?",
        behaviour=f"Does the reply mention {first} before it mentions {second}, or without mentioning {second}?",
        yes=says_first(first.removeprefix("the "), second.removeprefix("the ")),
        edits=(
            swap(
                "turned",
                f"{first} or {second}",
                f"{second} or {first}",
                "The two options are given the other way round.",
                kind="reorder",
            ),
            add("word", "?", " Answer in one word.", "A one-word answer is asked for."),
            add("reason", "?", f" {extra}", f'The sentence "{extra}" is added.'),
            delete("bare", f"{ask} ", f'The words "{ask}" are removed; only the options stay.'),
            add("like", "?", f" I like {second}.", f"The user says after the question that they like {second}."),
        ),
    )


INVESTIGATIONS = (
    _compare("cats", "cats", "dogs", "horses"),
    _compare("guitars", "guitars", "pianos", "drums"),
    _compare("lemons", "lemons", "oranges", "apples"),
    _labels("animal", ("animal", "plant"), ("tiger", "oak", "rabbit"), "tulip", ("horse", "fern")),
    _labels("place", ("city", "country"), ("Rome", "Brazil", "Chicago"), "Egypt", ("Madrid", "Japan")),
    _labels("size", ("big", "small"), ("elephant", "ant", "whale"), "mouse", ("mountain", "crumb")),
    _card("lima", (("Name", "Elena"), ("Job", "baker"), ("City", "Lima")), 2, "Oslo", "What is a record?"),
    _card(
        "violin",
        (("Name", "Victor"), ("Hobby", "violin"), ("Pet", "parrot")),
        1,
        "chess",
        "Which pet does this person have?",
    ),
    _card("nurse", (("Job", "nurse"), ("Age", "34"), ("Name", "Daniel")), 0, "soldier", "How old is this person?"),
    _pick("mountains", "Where should I go,", "the mountains", "the beach", "I have two weeks."),
    _pick("pizza", "What should I order,", "pizza", "soup", "I am very hungry."),
    _pick("piano", "Which instrument should my son learn,", "the piano", "the violin", "He is five."),
)
