"""Format: the shape of earlier answers, or of the request, carries over to the answer."""

from claims.build.programs import Program, matches, says, shorter_than
from claims.build.spec import investigation, rewrite, swap
from claims.investigations.gemma_3_270m.turns import talk

_CAPITALS = Program(
    "has at least two letters, all of them capitals",
    lambda response: len([c for c in response if c.isalpha()]) > 1 and response.upper() == response,
)

INVESTIGATIONS = (
    investigation(
        "capitals-echo",
        template="letter-case",
        cause="format",
        prompt=talk("Name a tree.", "OAK", "Name a river.", "NILE", "Name a metal."),
        behaviour="Is the response written in capital letters only?",
        yes=_CAPITALS,
        edits=(
            swap("first-small", "OAK", "Oak", "The first answer is written Oak, not OAK."),
            swap("second-small", "NILE", "Nile", "The second answer is written Nile, not NILE."),
            rewrite(
                "one-example", "delete", talk("Name a river.", "NILE", "Name a metal."), "The tree exchange is removed."
            ),
            swap("birch", "OAK", "BIRCH", "The first answer is BIRCH instead of OAK."),
            swap("country", "a metal", "a country", "The last request asks for a country instead of a metal."),
            swap("please", "Name a metal.", "Please name a metal.", "The last request begins with please.", kind="add"),
        ),
    ),
    investigation(
        "capitals-shout",
        template="letter-case",
        cause="format",
        prompt="WHAT IS YOUR FAVOURITE FOOD?",
        behaviour="Is the response written in capital letters only?",
        yes=_CAPITALS,
        edits=(
            swap(
                "small",
                "WHAT IS YOUR FAVOURITE FOOD?",
                "What is your favourite food?",
                "The question is in small letters.",
            ),
            swap("drink", "FOOD", "DRINK", "The question asks for a drink instead of a food."),
            swap("no-mark", "FOOD?", "FOOD", "The question mark is removed.", kind="delete"),
            swap("half", "WHAT IS YOUR", "What is your", "The first three words are in small letters."),
            swap("answer", "FOOD?", "FOOD? Answer quietly.", "A request to answer quietly is added.", kind="add"),
        ),
    ),
    investigation(
        "sir-at-end",
        template="closing-word",
        cause="format",
        prompt=talk("Is the door open?", "Yes, captain.", "Is the crew awake?", "No, captain.", "Is the ship ready?"),
        behaviour="Does the response contain the word captain?",
        yes=says("captain"),
        edits=(
            rewrite(
                "no-title",
                "delete",
                talk("Is the door open?", "Yes.", "Is the crew awake?", "No.", "Is the ship ready?"),
                "The word captain is removed from both earlier answers.",
            ),
            swap(
                "first-only", "No, captain.", "No.", "The second earlier answer lacks the word captain.", kind="delete"
            ),
            swap(
                "second-only",
                "Yes, captain.",
                "Yes.",
                "The first earlier answer lacks the word captain.",
                kind="delete",
            ),
            swap("cake", "the ship", "the cake", "The last question is about the cake instead of the ship."),
            swap("where", "Is the ship ready", "Where is the ship", "The last question asks where the ship is."),
            swap("door", "Is the door open?", "Is the door red?", "The first question asks whether the door is red."),
        ),
    ),
    investigation(
        "because-answers",
        template="length-of-answers",
        cause="format",
        prompt=talk(
            "Do you like rain?",
            "No, because it makes my shoes wet.",
            "Do you like noise?",
            "No, because it keeps me awake.",
            "Do you like spinach?",
        ),
        behaviour="Does the response contain the word because?",
        yes=says("because"),
        edits=(
            swap("rain-short", "No, because it makes my shoes wet.", "No.", "The first answer is only: No."),
            swap("noise-short", "No, because it keeps me awake.", "No.", "The second answer is only: No."),
            swap("chocolate", "spinach", "chocolate", "The last question is about chocolate instead of spinach."),
            swap(
                "love", "Do you like spinach", "Do you eat spinach", "The last question asks about eating, not liking."
            ),
            swap("who", "Do you like spinach", "Who likes spinach", "The last question asks who likes spinach."),
        ),
    ),
    investigation(
        "sentence-answers",
        template="sentence-or-word",
        cause="format",
        prompt=talk(
            "What is ice?", "Ice is frozen water.", "What is a lamb?", "A lamb is a young sheep.", "What is a sword?"
        ),
        behaviour="Does the response have fewer than three words?",
        yes=shorter_than(3),
        edits=(
            swap("lamb-word", "A lamb is a young sheep.", "Sheep.", "The answer about the lamb is only: Sheep."),
            swap("ice-word", "Ice is frozen water.", "Water.", "The answer about ice is only: Water."),
            rewrite("bare", "delete", "What is a sword?", "Both earlier exchanges are removed."),
            swap("hammer", "a sword", "a hammer", "The last question is about a hammer instead of a sword."),
            rewrite(
                "both-word",
                "swap",
                talk("What is ice?", "Water.", "What is a lamb?", "Sheep.", "What is a sword?"),
                "Both earlier answers are a single word.",
            ),
        ),
    ),
    investigation(
        "one-word-answers",
        template="sentence-or-word",
        cause="format",
        prompt=talk("Where do fish live?", "Water.", "Where do bees live?", "Hives.", "Where do lions live?"),
        behaviour="Does the response have fewer than three words?",
        yes=shorter_than(3),
        edits=(
            swap("bees-sentence", "Hives.", "Bees live in hives.", "The answer about bees is a whole sentence."),
            swap("fish-sentence", "Water.", "Fish live in water.", "The answer about fish is a whole sentence."),
            swap("kings", "Where do lions", "Where do kings", "The last question is about kings instead of lions."),
            swap("how", "Where do lions live", "How do lions live", "The last question asks how lions live."),
            swap("no-stop", "Hives.", "Hives", "The full stop after Hives is removed.", kind="delete"),
        ),
    ),
    investigation(
        "brackets-around",
        template="wrapping-marks",
        cause="format",
        prompt=talk("red", "[red]", "lamp", "[lamp]", "garden"),
        behaviour="Does the response contain an opening square bracket?",
        yes=matches(r"\[", "contains an opening square bracket"),
        edits=(
            swap("one-bare", "[lamp]", "lamp!", "The second answer is lamp! instead of [lamp]."),
            swap("round", "[red]", "(red)", "The first answer has round brackets instead of square ones."),
            rewrite("no-first", "delete", talk("lamp", "[lamp]", "garden"), "The first exchange is removed."),
            swap("sentence", "garden", "Where is the garden?", "The last turn is the question: Where is the garden?"),
            rewrite(
                "stars", "swap", talk("red", "*red*", "lamp", "*lamp*", "garden"), "Stars replace all square brackets."
            ),
            swap("two-words", "garden", "big garden", "The last turn is: big garden.", kind="add"),
        ),
    ),
)
