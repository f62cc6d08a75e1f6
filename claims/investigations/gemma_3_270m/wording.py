"""Wording: one word or phrase of the prompt against its neighbours in meaning."""

from claims.build.programs import matches, says, starts_with
from claims.build.spec import delete, investigation, rewrite, swap
from claims.investigations.gemma_3_270m.turns import talk

INVESTIGATIONS = (
    investigation(
        "vase-falls",
        template="what-happens-next",
        cause="wording",
        prompt="The vase fell on the stone floor. What happened to the vase?",
        behaviour="Does the response say that the vase broke, shattered or cracked?",
        yes=matches(
            r"\b(broke|broken|break|shatter(ed)?|crack(ed)?|smashed|pieces)\b", "says it broke, shattered or cracked"
        ),
        edits=(
            swap("stood", "fell on", "stood on", "The vase stood on the floor instead of falling on it."),
            swap("dropped", "fell on", "dropped on", "The vase dropped on the floor instead of falling on it."),
            swap(
                "pillow", "the stone floor", "a soft pillow", "The vase fell on a soft pillow instead of a stone floor."
            ),
            swap("old", "The vase fell", "The old vase fell", "The vase is called old.", kind="add"),
            delete("no-stone", " stone", "The word stone is removed."),
            rewrite(
                "coin",
                "swap",
                "The coin fell on the stone floor. What happened to the coin?",
                "It is a coin that falls, not a vase.",
            ),
        ),
    ),
    investigation(
        "ice-in-sun",
        template="what-happens-next",
        cause="wording",
        prompt=talk("Paper in the fire?", "It burns.", "A stone in the river?", "It sinks.", "Ice in the sun?"),
        behaviour="Does the response say that it melts?",
        yes=matches(r"\bmelt", "contains melt, melts, melted or melting"),
        edits=(
            swap("wool", "Ice in the sun", "Wool in the sun", "The last question is about wool instead of ice."),
            swap("snow", "Ice in the sun", "Snow in the sun", "The last question is about snow instead of ice."),
            swap("freezer", "Ice in the sun", "Ice in the freezer", "The ice is in the freezer instead of the sun."),
            rewrite(
                "one",
                "delete",
                talk("A stone in the river?", "It sinks.", "Ice in the sun?"),
                "The exchange about paper is removed.",
            ),
            swap("oven", "Ice in the sun", "Ice in the oven", "The ice is in the oven instead of the sun."),
            swap(
                "nail",
                "A stone in the river?",
                "A nail in the river?",
                "The second question is about a nail, not a stone.",
            ),
        ),
    ),
    investigation(
        "true-or-question",
        template="is-it-true",
        cause="wording",
        prompt="Is it true that horses can read?",
        behaviour="Does the response begin with Yes?",
        yes=starts_with("Yes"),
        edits=(
            swap("can", "Is it true that horses can read?", "Can horses read?", "The question is: Can horses read?"),
            swap("hear", "read", "hear", "The question is about hearing instead of reading."),
            swap("false", "true", "false", "The question asks whether it is false instead of true."),
            swap("really", "true", "really true", "The word really is added before true.", kind="add"),
            swap("tables", "horses", "tables", "The question is about tables instead of horses."),
            swap("why", "Is it true that", "Why is it that", "The question asks why, not whether."),
        ),
    ),
    investigation(
        "opposite-of",
        template="word-relation",
        cause="wording",
        prompt=talk("The opposite of big is", "small.", "The opposite of wet is", "dry.", "The opposite of old is"),
        behaviour="Does the response say young or new?",
        yes=says("young", "new"),
        edits=(
            swap(
                "synonym", "The opposite of old", "Another word for old", "The last turn asks for another word for old."
            ),
            swap("tall", "of old is", "of tall is", "The last turn is about tall instead of old."),
            swap("first-same", "small.", "large.", "The answer about big is large instead of small."),
            rewrite("bare", "delete", "The opposite of old is", "Both earlier exchanges are removed."),
            swap("ancient", "of old is", "of ancient is", "The last turn is about ancient instead of old."),
            swap("damp", "of wet is", "of damp is", "The second turn is about damp instead of wet."),
        ),
    ),
    investigation(
        "plural-of",
        template="word-relation",
        cause="wording",
        prompt=talk("one cat", "two cats", "one house", "two houses", "one mouse"),
        behaviour="Does the response contain the word mice?",
        yes=says("mice"),
        edits=(
            swap("rat", "one mouse", "one rat", "The last turn is: one rat."),
            swap("foot", "one house", "one foot", "The second turn is: one foot, while its answer stays two houses."),
            swap("three", "two houses", "three houses", "The second answer is three houses instead of two."),
            swap("grey", "one mouse", "one grey mouse", "The mouse is called grey.", kind="add"),
            rewrite("bare", "delete", "one mouse", "Both earlier exchanges are removed."),
            rewrite(
                "one", "delete", talk("one house", "two houses", "one mouse"), "The exchange about the cat is removed."
            ),
        ),
    ),
    investigation(
        "birthday-line",
        template="famous-line",
        cause="wording",
        prompt=talk("Twinkle, twinkle, little", "star", "Mary had a little", "lamb", "Happy birthday to"),
        behaviour="Does the response contain the word you?",
        yes=says("you"),
        edits=(
            swap("wedding", "Happy birthday", "Happy wedding", "The last line says wedding instead of birthday."),
            swap("merry", "Happy birthday to", "Merry Christmas to", "The last line is: Merry Christmas to."),
            swap("dog", "lamb", "dog", "The second answer is dog instead of lamb."),
            rewrite("bare", "delete", "Happy birthday to", "Both earlier exchanges are removed."),
            swap("give", "Happy birthday to", "I gave a present to", "The last line is: I gave a present to."),
            swap("star", "star", "moon", "The first answer is moon instead of star."),
        ),
    ),
    investigation(
        "as-sweet-as",
        template="simile",
        cause="wording",
        prompt=talk("As white as", "snow", "As busy as", "a bee", "As sweet as"),
        behaviour="Does the response contain honey, sugar or candy?",
        yes=says("honey", "sugar", "candy", "sugarcane"),
        edits=(
            swap("cold", "As sweet as", "As cold as", "The last line says cold instead of sweet."),
            swap("sugary", "As sweet as", "As sugary as", "The last line says sugary instead of sweet."),
            swap("sour", "As sweet as", "As sour as", "The last line says sour instead of sweet."),
            swap("milk", "snow", "milk", "The first answer is milk instead of snow."),
            rewrite(
                "one",
                "delete",
                talk("As busy as", "a bee", "As sweet as"),
                "The exchange As white as, snow is removed.",
            ),
            swap("ant", "a bee", "an ant", "The second answer is an ant instead of a bee."),
        ),
    ),
)
