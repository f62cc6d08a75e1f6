"""Causes of the kind "a value that is set beforehand": defaults of tools, languages, units, earlier calls."""

from claims.build.programs import matches, says
from claims.build.spec import Investigation, add, delete, investigation, rewrite, swap
from claims.schema import Message


def _with_system(system: str, user: str) -> tuple[Message, ...]:
    return Message("system", system), Message("user", user)


def _setting(slug: str, what: str, value: str, other: str, question: str) -> Investigation:
    return investigation(
        f"setting-{slug}",
        template="setting",
        cause="default",
        prompt=_with_system(f"The default {what} is {value}.", question),
        behaviour=f"Does the reply mention {value}?",
        yes=says(value),
        edits=(
            swap("other", value, other, f"The system message sets the {what} to {other}, not {value}."),
            rewrite("none", "delete", question, "The system message with the default is deleted."),
            delete("word", "default ", 'The word "default" is deleted.'),
            swap(
                "wish",
                question,
                f"I want {other}. {question}",
                f'The user says "I want {other}." before the question.',
                kind="add",
            ),
            swap("was", " is ", " was ", 'The system message says "was" where it said "is".'),
        ),
    )


def _home(slug: str, job: str, city: str, other: str, question: str) -> Investigation:
    return investigation(
        f"user-city-{slug}",
        template="user-city",
        cause="default",
        prompt=_with_system(f"You {job}. The user lives in {city}.", question),
        behaviour=f"Does the reply mention {city}?",
        yes=says(city),
        edits=(
            delete("no-city", f" The user lives in {city}.", f"The sentence about {city} is deleted."),
            swap("other", city, other, f"The user lives in {other} in place of {city}."),
            add("trip", question, f" I am in {other} now.", f"The user adds that they are in {other} now."),
            swap(
                "office",
                "user lives",
                "boss was born",
                f"It is the boss who was born in {city}; nothing is said of the user.",
            ),
            delete("no-job", f"You {job}. ", "The first sentence of the system message is deleted."),
        ),
    )


def _unit(slug: str, unit: str, other: str, pattern: str, question: str) -> Investigation:
    return investigation(
        f"unit-{slug}",
        template="unit",
        cause="default",
        prompt=_with_system(f"Use {unit}.", question),
        behaviour=f"Does the reply mention {unit} (in full or as the usual sign)?",
        yes=matches(pattern, f"mentions {unit}"),
        edits=(
            rewrite("none", "delete", question, "The system message is taken out."),
            swap("other", unit, other, f"The system message asks for {other}, not {unit}."),
            swap("avoid", "Use", "Never use", f'The system message says "Never use" in front of {unit}.'),
            rewrite(
                "user",
                "reorder",
                f"{question} Use {unit}.",
                "The instruction is moved from the system message to the end of the user's question.",
            ),
        ),
    )


def _code(slug: str, task: str, purpose: str, explained: str) -> Investigation:
    return investigation(
        f"code-{slug}",
        template="code-language",
        cause="default",
        prompt=f"Write a function that {task}.",
        behaviour='Is the reply in Python, that is, does it contain "Python" or "def "?',
        yes=matches(r"\bpython|\bdef \w", 'contains "python" or "def "'),
        edits=(
            swap("java", "a function", "a Java function", 'The word "Java" is put before "function".', kind="add"),
            swap("formula", "function", "spreadsheet formula", 'The word "function" becomes "spreadsheet formula".'),
            add("purpose", task, f" {purpose}", f'The words "{purpose}" are added at the end.'),
            swap(
                "poem",
                "a function",
                "a poem about a function",
                "The user wants a poem about such a function.",
                kind="add",
            ),
            swap("program", "function", "program", 'The word "function" becomes "program".'),
            swap("explain", f"Write a function that {task}", explained, f'The request becomes "{explained}."'),
        ),
    )


def _call(slug: str, ask: str, amount: int, unit: str, call: str, other: int) -> Investigation:
    shown = call.format(amount)
    asked = f"{ask} {amount} {unit}"

    def turns(first: str, answer: str, last: str) -> tuple[Message, ...]:
        return Message("user", first), Message("assistant", answer), Message("user", last)

    bare = ask.removesuffix(" for").removesuffix(" to").removesuffix(" in")
    return investigation(
        f"last-call-{slug}",
        template="last-call",
        cause="default",
        prompt=turns(asked, shown, f"please {bare}"),
        behaviour=f"Does the reply contain the number {amount}?",
        yes=says(str(amount)),
        edits=(
            rewrite(
                "other",
                "swap",
                turns(f"{ask} {other} {unit}", call.format(other), f"please {bare}"),
                f"The earlier call was for {other}, not {amount}.",
            ),
            rewrite(
                "stated",
                "add",
                turns(asked, shown, f"please {ask} {other} {unit}"),
                f"The last request names {other} {unit}.",
            ),
            rewrite("alone", "delete", f"please {bare}", "The earlier request and its call are deleted."),
            rewrite("rude", "delete", turns(asked, shown, bare), 'The word "please" is deleted.'),
            rewrite(
                "thanks",
                "add",
                turns(asked, shown, f"thanks, now please {bare} again"),
                'The last request starts with "thanks, now" and ends with "again".',
            ),
        ),
    )


INVESTIGATIONS = (
    _setting("language", "language", "Dutch", "Turkish", "Which language does the app use?"),
    _setting("room", "room", "214", "377", "Which room do we use?"),
    _setting("font", "font", "Garamond", "Helvetica", "Which font does the report use?"),
    _home("weather", "give weather reports", "Oslo", "Cairo", "How is the weather today?"),
    _home("food", "recommend restaurants", "Lisbon", "Denver", "Where can I eat fish?"),
    _home("news", "report the news", "Nairobi", "Munich", "What happened today?"),
    _unit("kilometers", "kilometers", "miles", r"kilomet|\bkms?\b", "How far is the moon?"),
    _unit("grams", "grams", "ounces", r"\bgrams?\b|\bg\b|\d+\s?g\b", "How heavy is an egg?"),
    _unit("liters", "liters", "gallons", r"\blit(er|re)s?\b|\bl\b|\d+\s?l\b", "How much water does a horse drink?"),
    _code("reverse", "reverses a string", "for my science class", "Explain how a mirror reverses an image"),
    _code("vowels", "counts the vowels in a word", "as fast as possible", "Count the vowels in the word banana"),
    _code("average", "computes the average of a list", "for my online shop", "Explain what an average is"),
    _call("timer", "set an alarm in", 45, "minutes", "set_alarm(minutes={})", 20),
    _call("table", "book a table for", 6, "people", "book_table(people={})", 3),
    _call("volume", "turn up the volume to", 80, "percent", "set_volume(percent={})", 35),
)
