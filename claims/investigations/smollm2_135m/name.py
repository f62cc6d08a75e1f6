"""Causes of the kind "a name decides": people, titles, places."""

from claims.build.programs import says
from claims.build.spec import Investigation, add, delete, investigation, swap

_SHE = says("she", "her", "hers", "woman", "female")
_HE = says("he", "his", "him", "man", "male")


def _pronoun(slug: str, name: str, opposite: str, job: str, other_job: str, is_she: bool) -> Investigation:
    words = (
        '"she" or "her" (or call the person a woman)' if is_she else '"he", "his" or "him" (or call the person a man)'
    )
    return investigation(
        f"pronoun-{slug}",
        template="pronoun",
        cause="name",
        prompt=f"Write one sentence about {name}, who is a {job}.",
        behaviour=f"Does the reply use {words}?",
        yes=_SHE if is_she else _HE,
        edits=(
            swap("opposite", name, opposite, f"The person is called {opposite}, not {name}."),
            swap("sam", name, "Sam", f"The person is called Sam, not {name}."),
            swap("other-job", job, other_job, f"The person is a {other_job}, not a {job}."),
            delete("jobless", f", who is a {job}", f"The words about the job are removed; only the name {name} stays."),
            swap("three", "one sentence", "three sentences", "Three sentences are asked for, not one."),
            add("question", f"a {job}.", " Do not use any pronouns.", "A second sentence forbids pronouns."),
        ),
    )


def _cuisine(slug: str, name: str, other: str, nation: str, extra: tuple[str, ...]) -> Investigation:
    return investigation(
        f"cuisine-{slug}",
        template="cuisine-by-name",
        cause="name",
        prompt=f"My friend {name} is cooking a traditional dinner. What is on the table?",
        behaviour=f"Does the reply mention {nation} food or cooking, by one of these words: {', '.join((nation, *extra))}?",
        yes=says(nation, *extra),
        edits=(
            swap("other-name", name, other, f"The friend is called {other} instead of {name}."),
            delete("unnamed", f" {name}", "The friend's name is taken out."),
            swap("breakfast", "dinner", "breakfast", "Breakfast takes the place of dinner."),
            swap("uncle", "friend", "uncle", f"{name} is an uncle and not a friend."),
            swap(
                "build",
                "cooking a traditional dinner",
                "building a wooden house",
                f"{name} is building a wooden house rather than cooking a traditional dinner.",
            ),
            delete("modern", "traditional ", 'The word "traditional" is taken out.'),
        ),
    )


def _author(
    slug: str, work: str, other: str, verb: str, other_verb: str, surname: str, described: str
) -> Investigation:
    return investigation(
        f"author-{slug}",
        template="author",
        cause="name",
        prompt=f"Who {verb} {work}?",
        behaviour=f"Does the reply mention {surname}?",
        yes=says(surname),
        edits=(
            swap("other-work", work, other, f"The question is about {other}, not {work}."),
            swap("verb", verb, other_verb, f'The verb "{verb}" is replaced by "{other_verb}".'),
            swap("described", work, described, f'{work} is not named but described as "{described}".'),
            add("hint", "?", " I believe it was Mark Twain.", "The user adds that they believe it was Mark Twain."),
            swap("lower", work, work.lower(), "The title is written in lower case."),
            swap(
                "when",
                f"Who {verb} {work}",
                f"When was the first copy of {work} sold",
                f"The question is when the first copy of {work} was sold.",
            ),
        ),
    )


def _landmark(slug: str, landmark: str, other: str, place: str, fake: str) -> Investigation:
    return investigation(
        f"landmark-{slug}",
        template="landmark",
        cause="name",
        prompt=f"I took a photo of {landmark}. Where was I?",
        behaviour=f"Does the reply mention {place}?",
        yes=says(place),
        edits=(
            swap("other", landmark, other, f"The photo shows {other} and not {landmark}."),
            swap("drew", "took a photo", "dreamed", f"The user dreamed of {landmark} and took no photo."),
            add("replica", landmark, f" in {fake}", f"The user adds that it was in {fake}."),
            swap("sister", "I took", "My sister took", "The photo was taken by the user's sister."),
            swap(
                "camera",
                "Where was I?",
                "Which camera should I use?",
                "The user asks which camera to use, not where they were.",
            ),
        ),
    )


INVESTIGATIONS = (
    _pronoun("grace", "Grace", "Henry", "pilot", "nurse", True),
    _pronoun("sofia", "Sofia", "Marco", "carpenter", "dancer", True),
    _pronoun("peter", "Peter", "Julia", "nurse", "plumber", False),
    _cuisine("hiroshi", "Hiroshi", "Pierre", "Japanese", ("Japan", "sushi", "miso", "ramen")),
    _cuisine("priyanka", "Priyanka", "Olga", "Indian", ("India", "curry", "naan", "biryani")),
    _cuisine(
        "carlos",
        "Carlos",
        "Ingrid",
        "Mexican",
        ("Mexico", "tacos", "taco", "tortilla", "tortillas", "Spanish", "Spain"),
    ),
    _author(
        "potter", "Harry Potter", "The Hobbit", "wrote", "reads", "Rowling", "the story of a boy at a school of magic"
    ),
    _author(
        "mona",
        "the Mona Lisa",
        "The Starry Night",
        "painted",
        "stole",
        "Vinci",
        "the portrait of a smiling woman in the Louvre",
    ),
    _author(
        "oz",
        "Oliver Twist",
        "The Old Man and the Sea",
        "wrote",
        "illustrated",
        "Dickens",
        "the novel about an orphan who asks for more",
    ),
    _landmark("taj", "the Taj Mahal", "the Statue of Liberty", "India", "Dubai"),
    _landmark("ben", "Big Ben", "the Colosseum", "London", "Tokyo"),
    _landmark("wall", "the Great Wall", "the Grand Canyon", "China", "Canada"),
)
