"""Causes of the kind "a figure in the prompt": sums, times, prices, ages, series."""

from claims.build.programs import says
from claims.build.spec import Investigation, add, delete, investigation, swap

_WORDS = {3: "three", 4: "four", 6: "six", 7: "seven", 8: "eight", 9: "nine"}


def _sum(slug: str, left: int, right: int) -> Investigation:
    total = left + right
    return investigation(
        f"sum-{slug}",
        template="sum",
        cause="number",
        prompt=f"What is {left} + {right}?",
        behaviour=f"Does the reply contain the number {total}?",
        yes=says(str(total)),
        edits=(
            swap("turned", f"{left} + {right}", f"{right} + {left}", "The two numbers change places.", kind="reorder"),
            swap(
                "words", f"{left} + {right}", f"{_WORDS[left]} plus {_WORDS[right]}", "The sum is spelled out in words."
            ),
            swap("times", "+", "*", "The plus sign becomes a multiplication sign."),
            swap("one-more", f"+ {right}", f"+ {right + 1}", f"The second number is {right + 1}, not {right}."),
            add("hint", "?", f" My sister says {total + 1}.", f"The user adds that their sister says {total + 1}."),
            swap("calculate", "What is", "Calculate", 'The opening "What is" becomes "Calculate".'),
        ),
    )


def _clock(slug: str, what: str, verb: str, opposite: str, time: str, other: str) -> Investigation:
    fact = f"The {what} {verb}s at {time}. "
    return investigation(
        f"clock-{slug}",
        template="clock",
        cause="number",
        prompt=f"{fact}When does the {what} {verb}?",
        behaviour=f"Does the reply contain the time {time}?",
        yes=says(time),
        edits=(
            swap("other-time", time, other, f"The stated time is {other}, not {time}."),
            delete("no-fact", fact, "The statement before the question is dropped."),
            swap(
                "opposite",
                f"does the {what} {verb}",
                f"does the {what} {opposite}",
                f'The question says "{opposite}" where it said "{verb}".',
            ),
            add(
                "late", f"at {time}.", " Today it is one hour late.", "A sentence says that today it is one hour late."
            ),
            add(
                "noise",
                f"at {time}.",
                " The walls of the hall are yellow.",
                "A sentence about the color of the walls is put before the question.",
            ),
            swap("why", "When does", "Why does", "The user asks why, not when."),
        ),
    )


def _price(slug: str, item: str, items: str, price: int, currency: str, other: str) -> Investigation:
    return investigation(
        f"price-{slug}",
        template="price",
        cause="number",
        prompt=f"One {item} costs {price} {currency}. How much do I pay for one {item}?",
        behaviour=f"Does the reply contain the number {price}?",
        yes=says(str(price)),
        edits=(
            swap("two", f"for one {item}?", f"for two {items}?", f"The question is about two {items}."),
            swap("currency", currency, other, f"The price is in {other} in place of {currency}."),
            swap("other-price", str(price), str(price + 11), f"The price is {price + 11}, no longer {price}."),
            swap("many", str(price), "many", f'The number {price} is replaced by the word "many".'),
            add("free", f"one {item}?", " It is free today.", "The user says at the end that it is free today."),
        ),
    )


def _series(slug: str, shown: tuple[int, ...], following: int) -> Investigation:
    text = ", ".join(map(str, shown))
    backwards = ", ".join(map(str, reversed(shown)))
    return investigation(
        f"series-{slug}",
        template="series",
        cause="number",
        prompt=f"Continue the sequence: {text},",
        behaviour=f"Does the reply contain the number {following}?",
        yes=says(str(following)),
        edits=(
            swap("backwards", text, backwards, "The given numbers stand in the opposite order.", kind="reorder"),
            delete("short", ", ".join(map(str, shown[:2])) + ", ", "The first two numbers are removed."),
            delete("no-order", "Continue the sequence: ", "The words before the numbers are removed."),
            swap(
                "explain",
                "Continue the sequence",
                "Explain the sequence",
                'The word "Continue" is replaced by "Explain".',
            ),
            swap("list", "Continue the sequence", "Continue this list", '"the sequence" is replaced by "this list".'),
        ),
    )


def _age(slug: str, age: int, other: int, word: str, words: tuple[str, ...]) -> Investigation:
    return investigation(
        f"age-{slug}",
        template="age",
        cause="number",
        prompt=f"I am {age} years old. What do people of my age do?",
        behaviour=f"Does the reply speak of {word}, by one of these words: {', '.join(words)}?",
        yes=says(*words),
        edits=(
            swap("other-age", str(age), str(other), f"The user is {other} years old, not {age}."),
            delete("no-age", f"I am {age} years old. ", "The user's age is not stated any more."),
            swap("grandson", "I am", "My cousin is", "The age belongs to the user's cousin."),
            swap("month", "years", "months", 'The word "years" is replaced by "months".'),
        ),
    )


INVESTIGATIONS = (
    _sum("eight-six", 8, 6),
    _sum("nine-four", 9, 4),
    _sum("six-three", 6, 3),
    _price("umbrella", "umbrella", "umbrellas", 14, "dollars", "euros"),
    _price("lamp", "lamp", "lamps", 35, "euros", "pounds"),
    _price("melon", "melon", "melons", 7, "pesos", "dollars"),
    _series("fives", (5, 10, 15, 20), 25),
    _series("tens", (10, 20, 30, 40), 50),
    _series("hundreds", (100, 200, 300, 400), 500),
    _age("seven", 7, 70, "children", ("child", "children", "childhood", "kid", "kids", "school", "toys", "young")),
    _age(
        "eighty",
        80,
        18,
        "old age",
        ("retire", "retired", "retirement", "elderly", "senior", "seniors", "older", "aging", "grandchildren"),
    ),
)

EXCLUDED = (
    _clock("ferry", "ferry", "leave", "return", "9:40", "6:15"),
    _clock("concert", "concert", "start", "end", "8:30", "5:45"),
    _clock("shop", "shop", "open", "close", "7:15", "10:20"),
)
"""Sampled, read by hand and left out of the bank: their program does not see a time that is glued to "am" or "pm" (7:15pm)."""
