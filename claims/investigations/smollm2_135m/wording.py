"""Causes of the kind "one phrase": a mood, a kind of text, an exclamation mark."""

from claims.build.programs import Program, matches, says, starts_with
from claims.build.spec import Investigation, add, delete, investigation, swap

_EMOJI: Program = matches("[\U0001f300-\U0001faff☀-➿]", "has an emoji")


def _tweet(slug: str, topic: str, other: str) -> Investigation:
    return investigation(
        f"tweet-{slug}",
        template="tweet",
        cause="wording",
        prompt=f"Write a tweet about {topic}.",
        behaviour="Does the reply contain an emoji?",
        yes=_EMOJI,
        edits=(
            swap("post", "tweet", "blog post", 'The word "tweet" becomes "blog post".'),
            swap("headline", "tweet", "headline", 'The word "tweet" becomes "headline".'),
            swap("other", topic, other, f"The topic is {other}, no longer {topic}."),
            add("plain", f"{topic}.", " Do not use emojis.", "A second sentence forbids emojis."),
            add("funny", "Write a", " funny", 'The word "funny" is put before "tweet".'),
            swap(
                "what",
                f"Write a tweet about {topic}.",
                f"What do you think about {topic}?",
                "The user asks for an opinion on the topic, not for a tweet.",
            ),
        ),
    )


def _twilight(slug: str, topic: str, plain: str) -> Investigation:
    return investigation(
        f"twilight-{slug}",
        template="twilight",
        cause="wording",
        prompt=f"Write a poem about {topic}.",
        behaviour='Does the reply contain the word "twilight"?',
        yes=says("twilight", "twilight's"),
        edits=(
            swap("topic", topic, plain, f"The poem is about {plain} in place of {topic}."),
            swap("haiku", "poem", "haiku", "A haiku is asked for in place of a poem."),
            swap("short", "a poem", "a short poem", "The poem is to be short.", kind="add"),
            swap("essay", "a poem", "an essay", "An essay is asked for in place of a poem."),
            add("child", f"about {topic}", " for my son", 'The words "for my son" are added.'),
            swap("compose", "Write", "Compose", 'The verb "Write" becomes "Compose".'),
        ),
    )


def _tale(slug: str, hero: str, other: str) -> Investigation:
    return investigation(
        f"tale-{slug}",
        template="tale-opening",
        cause="wording",
        prompt=f"Write a fairy tale about {hero}.",
        behaviour='Does the reply begin with "One day", "One fine day", "Once upon a time" or another "One" or "Once"?',
        yes=starts_with("One", "Once"),
        edits=(
            swap("report", "fairy tale", "news report", 'The words "fairy tale" become "news report".'),
            swap("song", "fairy tale", "song", 'The words "fairy tale" become "song".'),
            swap("other", hero, other, f"The text is about {other}, not {hero}."),
            swap("bedtime", "fairy tale", "bedtime story", 'The words "fairy tale" become "bedtime story".'),
            add("daughter", hero, " for my daughter", 'The words "for my daughter" are added at the end.'),
            swap("story", "fairy tale", "crime story", 'The words "fairy tale" become "crime story".'),
        ),
    )


def _praise(slug: str, praise: str, blame: str, subject: str, third: str, rest: str) -> Investigation:
    return investigation(
        f"praise-{slug}",
        template="praise",
        cause="wording",
        prompt=f"{subject} {praise}{rest}!",
        behaviour='Does the reply use one of these words: "glad", "happy", "thrilled", "thank", "thanks", "pleased", "delighted", "honored"?',
        yes=says("glad", "happy", "thrilled", "thank", "thanks", "pleased", "delighted", "honored"),
        edits=(
            swap("blame", praise, blame, f'The word "{praise}" turns into "{blame}".'),
            swap("third", subject, third, f'The sentence speaks of "{third}" and not of "{subject}".'),
            swap("calm", "!", ".", "The exclamation mark turns into a full stop."),
            add(
                "weather", "!", " What is the weather like in Chile?", "A question about the weather in Chile follows."
            ),
            swap("question", "!", ", right?", 'The sentence ends in ", right?" and not in an exclamation mark.'),
        ),
    )


def _bad_news(slug: str, thing: str, bad: str, good: str, other: str) -> Investigation:
    return investigation(
        f"bad-news-{slug}",
        template="bad-news",
        cause="wording",
        prompt=f"My {thing} {bad}.",
        behaviour='Does the reply say "sorry"?',
        yes=says("sorry"),
        edits=(
            swap("good", bad, good, f'"{bad}" is replaced by "{good}".'),
            swap("excited", ".", "!", "The full stop becomes an exclamation mark."),
            swap("cousin", "My", "My cousin's", f"The {thing} belongs to the user's cousin."),
            swap("other", thing, other, f"The sentence is about a {other} and not about a {thing}."),
            add("ask", ".", " What is a good name for a boat?", "A question about a name for a boat is added."),
        ),
    )


def _mail(slug: str, matter: str, reader: str, other: str) -> Investigation:
    return investigation(
        f"mail-{slug}",
        template="mail-subject",
        cause="wording",
        prompt=f"Write an email about {matter}.",
        behaviour='Does the reply contain a subject line, that is the word "Subject" followed by a colon?',
        yes=matches(r"\bsubject( line)?\W*:", 'has the word "Subject" with a colon'),
        edits=(
            swap("reader", "email", f"email to {reader}", f"The email is addressed to {reader}.", kind="add"),
            swap("letter", "an email", "a letter", 'The word "email" becomes "letter".'),
            swap("other", matter, other, f"The email is about {other} in place of {matter}."),
            swap("short", "an email", "a short email", "The email is to be short.", kind="add"),
            swap("read", "Write", "I got", 'The verb "Write" becomes "I got".'),
        ),
    )


def _dictionary(slug: str, opening: str, noun: str, other: str) -> Investigation:
    return investigation(
        f"dictionary-{slug}",
        template="dictionary",
        cause="wording",
        prompt=f"{opening} {noun}?",
        behaviour=f'Does the reply begin with "A {noun}" or "An {noun}" or "{noun}s"?',
        yes=starts_with(f"A {noun}", f"An {noun}", f"{noun}s"),
        edits=(
            swap("how", opening, "How does one use a", f'"{opening}" is replaced by "How does one use a".'),
            swap(
                "other",
                f"{opening} {noun}",
                f"{opening} {other} and a {noun}",
                f"The question is also about a {other}, named first.",
                kind="add",
            ),
            swap("define", f"{opening} {noun}?", f"Define {noun}.", f'The question becomes "Define {noun}."'),
            add("child", "?", " I am a child.", "The user says that they are a child."),
            delete("mark", "?", "The question mark is removed."),
            swap(
                "best",
                f"{opening} {noun}",
                f"{opening} good {noun}",
                f'The word "good" is put before "{noun}".',
                kind="add",
            ),
        ),
    )


INVESTIGATIONS = (
    _tweet("cycling", "cycling", "homework"),
    _tweet("lunch", "school lunches", "space travel"),
    _tweet("job", "my new job", "the rain"),
    _twilight("night", "the night", "my bicycle"),
    _twilight("sea", "the sea", "mathematics"),
    _twilight("autumn", "autumn", "a supermarket"),
    _tale("baker", "a baker", "a computer"),
    _tale("snail", "a snail", "a king"),
    _tale("clock", "a clock", "two sisters"),
    _praise("wonderful", "wonderful", "terrible", "You are", "My brother is", ""),
    _praise("love", "love", "hate", "I", "They", " your work"),
    _praise("kind", "kind", "rude", "You are so", "She is so", ""),
    _bad_news("package", "package", "is late", "is here", "birthday card"),
    _bad_news("phone", "phone", "is broken", "is new", "bicycle"),
    _bad_news("tooth", "tooth", "hurts", "is white", "knee"),
    _mail("machine", "the new coffee machine", "my sister", "the lost keys"),
    _mail("party", "the office party", "our boss", "the parking lot"),
    _mail("holiday", "my holiday plans", "a hotel", "my broken printer"),
    _dictionary("violin", "What is a", "violin", "trumpet"),
    _dictionary("ladder", "What is a", "ladder", "hammer"),
)
