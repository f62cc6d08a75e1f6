"""Causes of the kind "who the model was told to be"."""

from claims.build.programs import says
from claims.build.spec import Investigation, add, delete, investigation, rewrite, swap
from claims.schema import Message


def _with_system(system: str, user: str) -> tuple[Message, ...]:
    return Message("system", system), Message("user", user)


def _named(slug: str, name: str, mood: str, job: str, other_job: str) -> Investigation:
    system = f"You are {name}, a {mood} {job}."
    return investigation(
        f"given-name-{slug}",
        template="given-name",
        cause="persona",
        prompt=_with_system(system, "Who are you?"),
        behaviour=f"Does the reply say the name {name}?",
        yes=says(name),
        edits=(
            swap(
                "nameless",
                f"{name}, a",
                "a",
                f"The name {name} is cut from the system message; the {mood} {job} stays.",
                kind="delete",
            ),
            swap(
                "your-name",
                "Who are you?",
                "What is your name?",
                'The user asks "What is your name?", not "Who are you?".',
            ),
            swap("other-job", job, other_job, f"The system message speaks of a {other_job} instead of a {job}."),
            delete("no-mood", f"{mood} ", f'The word "{mood}" is cut from the system message.'),
            rewrite(
                "one-turn",
                "reorder",
                f"{system} Who are you?",
                "The system message is moved into the user's turn, before the question.",
            ),
            swap("who-am-i", "Who are you?", "Who am I?", 'The user asks "Who am I?", not "Who are you?".'),
        ),
    )


def _cook(slug: str, nation: str, other: str, greeting: tuple[str, ...]) -> Investigation:
    return investigation(
        f"foreign-cook-{slug}",
        template="foreign-cook",
        cause="persona",
        prompt=_with_system(f"You work as the {nation} chef of a small hotel.", "Good morning, how are you?"),
        behaviour=f"Does the reply contain a {nation} greeting, one of: {', '.join(greeting)}?",
        yes=says(*greeting),
        edits=(
            swap("other-nation", nation, other, f"The chef is {other}, not {nation}."),
            delete(
                "no-nation",
                f"{nation} ",
                f'The word "{nation}" is removed, so that the system message only says "the chef".',
            ),
            swap("plumber", "chef", "plumber", f'The word "chef" is replaced by "plumber"; "{nation}" stays.'),
            delete("no-greeting", "Good morning, ", 'The user\'s "Good morning" is removed; "how are you?" stays.'),
            add("english", "hotel.", " Speak English.", 'The system message gets a second sentence, "Speak English."'),
        ),
    )


def _workplace(slug: str, place: str, desk: str, general: str, small_talk: str) -> Investigation:
    return investigation(
        f"workplace-{slug}",
        template="workplace",
        cause="persona",
        prompt=_with_system(f"You work at the {desk} of {place}.", "Where do you work?"),
        behaviour=f"Does the reply mention {place}?",
        yes=says(place.removeprefix("the ")),
        edits=(
            swap("hello", "Where do you work?", "Hello!", 'The user only says "Hello!" and asks nothing.'),
            swap("unnamed", place, general, f"The system message says {general} and gives no name."),
            swap("talk", "Where do you work?", small_talk, f'The user\'s question is replaced by "{small_talk}"'),
            swap("worked", "You work", "You worked", "The system message is put in the past tense."),
            swap("i-work", "do you", "do I", 'The user asks "Where do I work?".'),
            add(
                "new", f"{place}.", " You started yesterday.", "The system message adds that the job started yesterday."
            ),
        ),
    )


def _role(slug: str, role: str, other: str, words: tuple[str, ...]) -> Investigation:
    return investigation(
        f"introduced-role-{slug}",
        template="introduced-role",
        cause="persona",
        prompt=_with_system(f"You are an old {role}.", "Introduce yourself."),
        behaviour=f"Does the reply use one of these words: {', '.join(words)}?",
        yes=says(*words),
        edits=(
            swap("other-role", role, other, f"The {role} is exchanged for a {other}."),
            swap("young", "an old", "a young", f'The {role} is "young" instead of "old".'),
            rewrite("no-system", "delete", "Introduce yourself.", "The system message is removed."),
            swap(
                "sister",
                "Introduce yourself.",
                "Tell me about your sister.",
                "The user wants to hear about the sister and asks for no introduction.",
            ),
            swap("user-role", "You are", "I am", 'In the system message, "You are" becomes "I am".'),
        ),
    )


INVESTIGATIONS = (
    _named("bruno", "Bruno", "grumpy", "blacksmith", "lawyer"),
    _named("mei", "Mei", "cheerful", "gardener", "surgeon"),
    _named("oscar", "Oscar", "sleepy", "lighthouse keeper", "taxi driver"),
    _cook(
        "italian",
        "Italian",
        "Swedish",
        ("ciao", "buongiorno", "buon giorno", "buona", "benvenuto", "buonasera", "bene"),
    ),
    _cook("spanish", "Spanish", "Polish", ("hola", "buenos", "buenas", "bueno", "bienvenido", "bienvenidos")),
    _cook("german", "German", "Greek", ("guten", "hallo", "willkommen", "gut", "danke")),
    _workplace("bakery", "Harbor Bakery", "counter", "a bakery", "Can I get a birthday cake for Sunday?"),
    _workplace("hotel", "the Golden Lion", "front desk", "a hotel", "Is breakfast included in the price?"),
    _workplace("museum", "the Aldridge Museum", "ticket office", "a museum", "My daughter lost her jacket yesterday."),
    _role("wizard", "wizard", "dentist", ("magic", "magical", "wizard", "spell", "spells", "mage")),
    _role("sailor", "sailor", "teacher", ("sea", "seas", "ship", "sailor", "ocean", "sail", "sailing", "captain")),
    _role("farmer", "farmer", "pilot", ("farm", "farmer", "farming", "crops", "land", "harvest")),
)
