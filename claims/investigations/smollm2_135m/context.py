"""Causes of the kind "what the prompt tells, or no longer tells, of the situation"."""

from claims.build.programs import says
from claims.build.spec import Investigation, add, delete, investigation, rewrite, swap
from claims.schema import Message


def _hidden(slug: str, who: str, verb: str, thing: str, place: str, other: str, noise: str) -> Investigation:
    story = f"{who} {verb} the {thing} in the {place}."
    return investigation(
        f"hidden-{slug}",
        template="hidden-thing",
        cause="context",
        prompt=f"{story} Where is the {thing} now?",
        behaviour=f"Does the reply mention the {place}?",
        yes=says(place),
        edits=(
            delete("no-story", f"{story} ", "The first sentence is removed and only the question is left."),
            swap("other", place, other, f"The {place} is replaced by the {other}."),
            add(
                "moved",
                story,
                f" Then a friend moved it to the {other}.",
                f"A sentence is added: then a friend moved it to the {other}.",
            ),
            add("noise", story, f" {noise}", f'The sentence "{noise}" is added before the question.'),
            swap("negated", verb, f"never {verb}", f'The word "never" is put before "{verb}".', kind="add"),
        ),
    )


def _sense(slug: str, place: str, other: str, word: str, words: tuple[str, ...], someone: str) -> Investigation:
    question = f"What is a {word}?"
    return investigation(
        f"sense-{slug}",
        template="word-sense",
        cause="context",
        prompt=f"{place} {question}",
        behaviour=f"Does the reply use one of these words: {', '.join(words)}?",
        yes=says(*words),
        edits=(
            delete("no-place", f"{place} ", "The sentence before the question is removed."),
            swap("other", place, other, f'The first sentence is replaced by "{other}"'),
            rewrite("after", "reorder", f"{question} {place}", "The first sentence is moved behind the question."),
            swap("someone", place, someone, f'The first sentence becomes "{someone}"'),
            swap("plural", "What is a", "Where can I buy a", f"The user asks where to buy a {word}."),
            add("greeting", place, " Good morning.", 'The words "Good morning." are added before the question.'),
        ),
    )


def _pet(slug: str, animal: str, name: str, other: str) -> Investigation:
    fact = f"My {animal} is called {name}. "
    return investigation(
        f"pet-{slug}",
        template="pet-story",
        cause="context",
        prompt=f"{fact}Tell me a short story.",
        behaviour=f"Does the reply mention {name}?",
        yes=says(name),
        edits=(
            delete("no-fact", fact, f"The sentence about the {animal} is removed."),
            swap("neighbor", "My", "My neighbor's", f"The {animal} is the neighbor's."),
            swap("other", name, other, f"The {animal} is called {other} and not {name}."),
            swap(
                "recipe",
                "Tell me a short story.",
                "Give me a recipe for bread.",
                "The user wants a recipe for bread, not a story.",
            ),
            swap(
                "about",
                "a short story",
                "a short story about a storm",
                "The story should be about a storm.",
                kind="add",
            ),
            rewrite(
                "after",
                "reorder",
                f"Tell me a short story. My {animal} is called {name}.",
                f"The sentence about the {animal} is moved behind the request.",
            ),
        ),
    )


def _favorite(slug: str, kind: str, value: str, other: str) -> Investigation:
    def turns(told: str, reply: str, last: str) -> tuple[Message, ...]:
        return Message("user", told), Message("assistant", reply), Message("user", last)

    told = f"My favorite {kind} is {value}."
    reply = f"Good choice! I like {value} too."
    last = f"What is my favorite {kind}?"
    return investigation(
        f"favorite-{slug}",
        template="favorite",
        cause="context",
        prompt=turns(told, reply, last),
        behaviour=f"Does the reply mention {value}?",
        yes=says(value.removeprefix("the ")),
        edits=(
            rewrite("alone", "delete", last, "The first two turns are removed; only the last question stays."),
            rewrite(
                "short-reply",
                "delete",
                turns(told, "Good choice!", last),
                'The assistant\'s turn is cut to "Good choice!".',
            ),
            rewrite(
                "brother",
                "swap",
                turns(told, reply, f"What is my brother's favorite {kind}?"),
                f"The last question is about the brother's favorite {kind}.",
            ),
            rewrite(
                "changed",
                "add",
                turns(told, reply, f"Now I prefer {other}. {last}"),
                f'The last turn begins with "Now I prefer {other}."',
            ),
            rewrite(
                "other",
                "swap",
                turns(told.replace(value, other), reply.replace(value, other), last),
                f"In the first two turns {value} is replaced by {other}.",
            ),
            rewrite("user-only", "swap", turns("Hello!", reply, last), 'The user\'s first turn is just "Hello!".'),
        ),
    )


def _errand(slug: str, first: str, second: str, asked: str, other: str) -> Investigation:
    return investigation(
        f"errand-{slug}",
        template="errand",
        cause="context",
        prompt=f"I went to {first}, then to {second}. What did I {asked} there?",
        behaviour=f"Does the reply mention {second}?",
        yes=says(second, second.removeprefix("the ")),
        edits=(
            swap("other", second, other, f"The second stop is {other}, not {second}."),
            delete("first-only", f", then to {second}", f"The second stop, {second}, is left out."),
            delete("second-only", f"{first}, then to ", f"The first stop, {first}, is left out."),
            swap(
                "turned",
                f"{first}, then to {second}",
                f"{second}, then to {first}",
                "The two stops change places.",
                kind="reorder",
            ),
        ),
    )


INVESTIGATIONS = (
    _hidden("letter", "Ben", "hid", "letter", "piano", "garage", "It was a cold day."),
    _hidden("cake", "Grandma", "left", "cake", "oven", "cellar", "The radio was playing."),
    _hidden("map", "The captain", "buried", "map", "desert", "castle", "His boots were red."),
    _sense(
        "court",
        "I play tennis.",
        "I study law.",
        "court",
        ("tennis", "game", "sport", "sports", "ball", "play", "players"),
        "My uncle plays tennis.",
    ),
    _sense(
        "cell",
        "I work in a prison.",
        "I work in a laboratory.",
        "cell",
        ("prison", "prisoner", "prisoners", "inmate", "inmates", "jail"),
        "My uncle works in a prison.",
    ),
    _sense(
        "star",
        "I work in Hollywood.",
        "I have a telescope.",
        "star",
        ("film", "films", "movie", "movies", "actor", "actors", "actress", "celebrity", "Hollywood"),
        "My uncle works in Hollywood.",
    ),
    _pet("parrot", "parrot", "Pepper", "Captain"),
    _pet("horse", "horse", "Thunder", "Willow"),
    _pet("turtle", "turtle", "Marble", "Rocket"),
    _favorite("animal", "animal", "the otter", "the camel"),
    _favorite("dish", "dish", "lasagna", "pancakes"),
    _favorite("sport", "sport", "rowing", "boxing"),
    _errand("baker", "the library", "the bakery", "buy", "the pharmacy"),
    _errand("zoo", "the station", "the zoo", "see", "the harbor"),
    _errand("market", "the dentist", "the market", "buy", "the bookshop"),
)
