"""Causes of the kind "the form of the request": letters, lists, verse, yes or no, question and answer."""

from claims.build.programs import matches, shorter_than, starts_with
from claims.build.spec import Investigation, add, delete, investigation, rewrite, swap
from claims.schema import Message


def _letter(slug: str, reader: str, matter: str, other: str) -> Investigation:
    return investigation(
        f"letter-{slug}",
        template="letter",
        cause="format",
        prompt=f"Write a letter to {reader} about {matter}.",
        behaviour='Does the reply begin with the word "Dear"?',
        yes=starts_with("Dear"),
        edits=(
            swap("note", "letter", "note", 'The word "letter" is exchanged for "note".'),
            swap("poem", "letter", "poem", 'The word "letter" is exchanged for "poem".'),
            swap("complaint", "letter", "complaint", 'The word "letter" is exchanged for "complaint".'),
            delete("no-matter", f" about {matter}", f"The words about {matter} are removed."),
            swap(
                "tell",
                f"Write a letter to {reader} about {matter}.",
                f"What can I say to {reader} about {matter}?",
                f"The user asks what they can say to {reader}.",
            ),
            swap("other", matter, other, f"The subject is {other}, not {matter}."),
        ),
    )


def _list(slug: str, number: str, things: str, detail: str) -> Investigation:
    return investigation(
        f"list-{slug}",
        template="list",
        cause="format",
        prompt=f"List {number} {things}.",
        behaviour='Does the reply begin with "1."?',
        yes=matches(r"\A[\s*]*1[.)]", 'begins with "1." or "1)"'),
        edits=(
            delete("no-number", f"{number} ", f'The word "{number}" is taken out.'),
            swap("pick", "List", "Pick", 'The verb "List" is replaced by "Pick".'),
            add("detail", things, f" {detail}", f'The words "{detail}" are added.'),
            add(
                "commas",
                things,
                " on one line, separated by commas",
                "The answer should be on one line, separated by commas.",
            ),
            swap("one", number, "one hundred", f'"{number}" is replaced by "one hundred".'),
            swap("story", "List", "Tell a story with", 'The verb "List" is replaced by "Tell a story with".'),
        ),
    )


def _verse(slug: str, topic: str, other: str) -> Investigation:
    return investigation(
        f"verse-{slug}",
        template="verse",
        cause="format",
        prompt=f"Write a poem about {topic}.",
        behaviour="Does the reply have a line break?",
        yes=matches(r"\S\s*\n\s*\S", "has a line break between two words"),
        edits=(
            swap("paragraph", "poem", "paragraph", 'The word "poem" is replaced by "paragraph".'),
            swap("sentence", "a poem", "a sentence", 'The word "poem" is replaced by "sentence".'),
            swap("other", topic, other, f"The text is to be about {other} and not about {topic}."),
            add("sad", "Write a", " sad", 'The word "sad" is put before "poem".'),
            swap("explain", "Write a poem about", "Explain", '"Write a poem about" is replaced by "Explain".'),
            add("prose", f"{topic}.", " Do not use line breaks.", "A second sentence forbids line breaks."),
        ),
    )


def _yes_no(slug: str, subject: str, rest: str, other: str, third: str) -> Investigation:
    question = f"{subject} {rest}?"
    return investigation(
        f"yes-no-{slug}",
        template="yes-or-no",
        cause="format",
        prompt=f"{question} Answer yes or no.",
        behaviour='Does the reply begin with the word "No"?',
        yes=starts_with("No"),
        edits=(
            delete("free", " Answer yes or no.", 'The sentence "Answer yes or no." is taken out.'),
            swap("turned", "yes or no", "no or yes", 'The answer options are named as "no or yes".', kind="reorder"),
            swap("true", "yes or no", "true or false", 'The answer options are "true or false".'),
            swap("other", rest, other, f'The question says "{other}" where it said "{rest}".'),
            rewrite(
                "first",
                "reorder",
                f"Answer yes or no. {question}",
                'The sentence "Answer yes or no." is moved to the front.',
            ),
            add("wife", question, f" {third}", f'After the question stands "{third}"'),
        ),
    )


def _qa(slug: str, question: str, other: str) -> Investigation:
    return investigation(
        f"short-answer-{slug}",
        template="question-and-answer",
        cause="format",
        prompt=f"Q: {question}\nA:",
        behaviour="Does the reply have fewer than 12 words?",
        yes=shorter_than(12),
        edits=(
            delete("no-marks", "\nA:", 'The line "A:" at the end is removed.'),
            rewrite("plain", "delete", question, 'The marks "Q:" and "A:" are both removed.'),
            swap("names", question, other, f'The question is replaced by "{other}"'),
            swap("detail", "A:", "Detailed answer:", '"A:" is replaced by "Detailed answer:".'),
            swap("spelled", "\nA:", "\nAnswer:", '"A:" is written out as "Answer:".'),
        ),
    )


def _example(slug: str, asked: str, short: str, long: str, question: str) -> Investigation:
    def turns(answer: str, last: str = question) -> tuple[Message, ...]:
        return Message("user", asked), Message("assistant", answer), Message("user", last)

    return investigation(
        f"example-length-{slug}",
        template="example-length",
        cause="format",
        prompt=turns(short),
        behaviour="Does the reply have fewer than 6 words?",
        yes=shorter_than(6),
        edits=(
            rewrite("long", "swap", turns(long), f'The assistant\'s earlier answer is "{long}", not "{short}".'),
            rewrite("alone", "delete", question, "The earlier question and its answer are removed."),
            rewrite("more", "add", turns(short, f"{question} Explain."), 'The last question is followed by "Explain."'),
            rewrite(
                "thanks", "add", turns(short, f"Thank you. {question}"), 'The last user turn begins with "Thank you."'
            ),
            rewrite(
                "lower",
                "swap",
                turns(short.lower().rstrip(".")),
                "The assistant's earlier answer is written in lower case.",
            ),
        ),
    )


INVESTIGATIONS = (
    _letter("aunt", "my aunt", "the wedding", "the broken window"),
    _letter("mayor", "the mayor", "the late buses", "the new park"),
    _letter("coach", "my coach", "my sore knee", "the summer camp"),
    _list("countries", "three", "countries", "in Africa"),
    _list("tools", "four", "tools", "for the garden"),
    _list("colors", "five", "colors", "that look good together"),
    _verse("honey", "honey", "taxes"),
    _verse("bridges", "bridges", "my grandmother"),
    _verse("coffee", "coffee", "the night sky"),
    _yes_no("honey", "Is honey", "sweet", "blue", "My wife says it is."),
    _yes_no("cats", "Can cats", "climb", "read", "My uncle says they can."),
    _yes_no("rome", "Is Rome", "in Italy", "in Peru", "My teacher says it is."),
    _qa("spider", "How many legs does a spider have?", "How many wheels does a car have?"),
    _qa("snow", "What color is snow?", "What color is chocolate?"),
    _qa("bees", "What do bees make?", "What do cows eat?"),
    _example(
        "france",
        "What is the capital of France?",
        "Paris.",
        "The capital of France is the beautiful city of Paris.",
        "What is the capital of Japan?",
    ),
    _example(
        "cow",
        "What does a cow say?",
        "Moo.",
        "A cow says a long and low moo when it is hungry.",
        "What does a cat say?",
    ),
    _example(
        "frog",
        "What color is a frog?",
        "Green.",
        "Most frogs that you meet near a pond are green.",
        "What color is a lemon?",
    ),
)
