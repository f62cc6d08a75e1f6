"""Dialogues: what an earlier turn, a name or a phrase does to the answers after it."""

from claims.build.programs import matches, says, shorter_than
from claims.build.spec import delete, investigation, rewrite, swap
from claims.investigations.gemma_3_270m.turns import talk

INVESTIGATIONS = (
    investigation(
        "sorry-for-loss",
        template="news-and-reply",
        cause="wording",
        prompt=talk("I won the lottery.", "Congratulations!", "I lost my job.", "I am sorry.", "My sister is ill."),
        behaviour="Does the response say sorry?",
        yes=says("sorry"),
        edits=(
            swap("engaged", "is ill", "is engaged", "The sister is engaged instead of ill."),
            swap(
                "got-job", "I lost my job", "I got a job", "The user got a job instead of losing it; the answer stays."
            ),
            rewrite(
                "no-job",
                "delete",
                talk("I won the lottery.", "Congratulations!", "My sister is ill."),
                "The exchange about the job is removed.",
            ),
            swap("neighbour", "My sister", "My neighbour", "It is the neighbour who is ill, not the sister."),
            swap("bad", "I am sorry.", "That is bad.", "The answer about the job is: That is bad."),
            rewrite(
                "no-lottery",
                "delete",
                talk("I lost my job.", "I am sorry.", "My sister is ill."),
                "The exchange about the lottery is removed.",
            ),
        ),
    ),
    investigation(
        "congratulate-exam",
        template="news-and-reply",
        cause="wording",
        prompt=talk("It is my birthday.", "Congratulations!", "I passed the exam."),
        behaviour="Does the response say congratulations?",
        yes=matches(r"\bcongrat", "contains congratulations or congrats"),
        edits=(
            swap("failed", "I passed", "I failed", "The user failed the exam instead of passing it."),
            swap("well-done", "Congratulations!", "Very nice!", "The first answer is: Very nice!"),
            swap(
                "wedding", "It is my birthday", "It is my wedding", "The first turn is about a wedding, not a birthday."
            ),
            swap("wrote", "I passed", "I wrote", "The user wrote the exam; passing is not mentioned."),
            rewrite("bare", "delete", "I passed the exam.", "The exchange about the birthday is removed."),
            swap("we", "I passed", "We passed", "The last turn says we instead of I."),
        ),
    ),
    investigation(
        "from-which-country",
        template="first-name-origin",
        cause="name",
        prompt=talk("Where is Pablo from?", "Spain.", "Where is Ivan from?", "Russia.", "Where is Giuseppe from?"),
        behaviour="Does the response say Italy?",
        yes=says("Italy", "Italian"),
        edits=(
            swap("haruki", "Giuseppe", "Haruki", "The last person is called Haruki instead of Giuseppe."),
            swap("lorenzo", "Giuseppe", "Lorenzo", "The last person is called Lorenzo instead of Giuseppe."),
            swap("pizza", "Giuseppe", "pizza", "The last question is about pizza instead of Giuseppe."),
            swap("china", "Spain.", "China.", "The first answer is China instead of Spain."),
            rewrite("bare", "delete", "Where is Giuseppe from?", "Both earlier exchanges are removed."),
            swap(
                "live",
                "Where is Giuseppe from",
                "Where is Giuseppe now",
                "The last question asks where Giuseppe is now.",
            ),
        ),
    ),
    investigation(
        "language-of-name",
        template="first-name-origin",
        cause="name",
        prompt=talk(
            "Which language does Fritz speak?",
            "German.",
            "Which language does Mei speak?",
            "Chinese.",
            "Which language does Amelie speak?",
        ),
        behaviour="Does the response say French?",
        yes=says("French"),
        edits=(
            swap("svetlana", "Amelie", "Svetlana", "The last person is called Svetlana instead of Amelie."),
            swap("celine", "Amelie", "Celine", "The last person is called Celine instead of Amelie."),
            swap(
                "learn", "does Amelie speak", "does Amelie learn", "The last question asks which language she learns."
            ),
            swap("city", "Amelie", "Paris", "The last question is about Paris instead of Amelie."),
            swap("latin", "German.", "Latin.", "The first answer is Latin instead of German."),
            rewrite(
                "one",
                "delete",
                talk("Which language does Mei speak?", "Chinese.", "Which language does Amelie speak?"),
                "The exchange about Fritz is removed.",
            ),
        ),
    ),
    investigation(
        "repeat-after-me",
        template="say-the-word",
        cause="wording",
        prompt=talk("Say sun.", "sun", "Say lake.", "lake", "Say banana."),
        behaviour="Does the response contain the word banana?",
        yes=says("banana"),
        edits=(
            swap("never", "Say banana", "Never say banana", "The last request reads: Never say banana.", kind="add"),
            swap(
                "colour",
                "Say banana",
                "Say the colour of a banana",
                "The last request asks for the colour of a banana.",
                kind="add",
            ),
            swap("mango", "Say banana", "Say mango", "The last request is about mango instead of banana."),
            swap("hear", "Say banana", "I ate a banana", "The last turn says that the user ate a banana."),
            swap("a-lake", "Say lake.", "Say a lake.", "The second request reads: Say a lake.", kind="add"),
            rewrite(
                "opposites",
                "swap",
                talk("Say sun.", "moon", "Say lake.", "river", "Say banana."),
                "The earlier answers are moon and river.",
            ),
        ),
    ),
    investigation(
        "one-word-only",
        template="brief-answers",
        cause="format",
        prompt="Tell me in one word: how was your holiday?",
        behaviour="Does the response have fewer than three words?",
        yes=shorter_than(3),
        edits=(
            delete("no-limit", " in one word", "The words in one word are removed."),
            swap("many", "one word", "many words", "The user wants many words instead of one."),
            swap("weekend", "holiday", "weekend", "The question is about the weekend instead of the holiday."),
            swap("where", "how was", "where was", "The question asks where the holiday was."),
            swap(
                "poem",
                "Tell me in one word",
                "Tell me in a long poem",
                "The user wants a long poem instead of one word.",
            ),
        ),
    ),
    investigation(
        "seasons-south",
        template="month-and-weather",
        cause="context",
        prompt=talk("July in Spain?", "Hot.", "January in Norway?", "Cold.", "January in Sweden?"),
        behaviour="Does the response say cold?",
        yes=says("cold", "freezing"),
        edits=(
            swap("july", "January in Sweden", "July in Sweden", "The last question is about July instead of January."),
            swap(
                "egypt", "January in Sweden", "January in Egypt", "The last question is about Egypt instead of Sweden."
            ),
            swap("norway-hot", "Cold.", "Hot.", "The answer about Norway is Hot instead of Cold."),
            rewrite(
                "no-norway",
                "delete",
                talk("July in Spain?", "Hot.", "January in Sweden?"),
                "The exchange about Norway is removed.",
            ),
            swap("august", "July in Spain", "August in Spain", "The first question is about August instead of July."),
            rewrite(
                "order",
                "reorder",
                talk("January in Norway?", "Cold.", "July in Spain?", "Hot.", "January in Sweden?"),
                "The two earlier exchanges change places.",
            ),
        ),
    ),
    investigation(
        "rhyme-or-not",
        template="rhyming-answers",
        cause="wording",
        prompt=talk("hat", "cat", "log", "dog", "house"),
        behaviour="Does the response contain mouse or another word that ends in -ouse?",
        yes=matches(r"\b(mouse|louse|blouse|spouse|grouse)\b", "contains mouse, louse, blouse, spouse or grouse"),
        edits=(
            swap("rat", "cat", "rat", "The first answer is rat instead of cat."),
            swap("tree", "dog", "tree", "The second answer is tree instead of dog."),
            swap("boat", "house", "boat", "The last word is boat instead of house."),
            swap("cap", "hat", "cap", "The first word is cap instead of hat; its answer stays cat."),
            rewrite("bare", "delete", "house", "Both earlier exchanges are removed."),
        ),
    ),
)
