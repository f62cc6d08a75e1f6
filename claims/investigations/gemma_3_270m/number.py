"""Numbers: which of the numbers at hand the answer takes, and what they stand for."""

from claims.build.programs import matches, says
from claims.build.spec import add, delete, investigation, rewrite, swap
from claims.investigations.gemma_3_270m.turns import talk

INVESTIGATIONS = (
    investigation(
        "architect-age",
        template="stray-number",
        cause="number",
        prompt="The tower has 61 floors. How old is the architect?",
        behaviour="Does the response give the number 61?",
        yes=says("61"),
        edits=(
            delete("no-number", "The tower has 61 floors. ", "The sentence about the tower is removed."),
            swap("floors-34", "61", "34", "The tower has 34 floors instead of 61."),
            swap("windows", "floors", "windows", "The number counts windows instead of floors."),
            swap("owner", "the architect", "the owner", "The question asks for the age of the owner."),
            swap("name", "How old is", "What is the name of", "The question asks for the architect's name."),
            swap("words", "61", "sixty-one", "The number of floors is written in words."),
        ),
    ),
    investigation(
        "bus-driver",
        template="stray-number",
        cause="number",
        prompt="Bus 47 leaves at noon. The driver is my cousin. How many passengers are on the bus?",
        behaviour="Does the response give the number 47?",
        yes=says("47"),
        edits=(
            delete("no-number", " 47", "The number of the bus is removed."),
            delete("no-cousin", " The driver is my cousin.", "The sentence about the driver is removed."),
            swap("tram", "Bus 47", "Tram 47", "The number belongs to a tram instead of a bus."),
            swap("seats", "passengers", "wheels", "The question asks how many wheels are on the bus."),
            add("doors", "at noon.", " It has 3 doors.", "A sentence that the bus has 3 doors is added."),
        ),
    ),
    investigation(
        "plums-left",
        template="small-sum",
        cause="number",
        prompt="Rosa had 9 plums. She ate 2 plums. How many plums did Rosa have at first?",
        behaviour="Does the response give the number 9?",
        yes=says("9", "nine"),
        edits=(
            delete("no-eating", "She ate 2 plums. ", "The sentence about eating is removed."),
            delete("no-first", "Rosa had 9 plums. ", "The sentence about the plums that Rosa had is removed."),
            swap("ask-eaten", "did Rosa have at first", "did Rosa eat", "The question asks how many plums Rosa ate."),
            swap("twelve", "9", "14", "Rosa had 14 plums instead of 9."),
            swap("pears", "ate 2 plums", "ate 2 pears", "Rosa eats 2 pears instead of 2 plums."),
            swap("end", "at first", "at the end", "The question is about the end instead of the beginning."),
        ),
    ),
    investigation(
        "count-up",
        template="number-series",
        cause="number",
        prompt=talk("2, 4, 6", "8", "20, 22, 24", "26", "50, 52, 54"),
        behaviour="Does the response give the number 56?",
        yes=says("56"),
        edits=(
            swap("by-ten", "50, 52, 54", "50, 60, 70", "The last series goes up in tens: 50, 60, 70."),
            swap("first-wrong", "8", "9", "The answer to the first series is 9 instead of 8."),
            rewrite("one-example", "delete", talk("20, 22, 24", "26", "50, 52, 54"), "The first exchange is removed."),
            swap(
                "long",
                "50, 52",
                "46, 48, 50, 52",
                "The last series starts at 46 and is two numbers longer.",
                kind="add",
            ),
            rewrite(
                "down",
                "reorder",
                talk("2, 4, 6", "8", "20, 22, 24", "26", "54, 52, 50"),
                "The last series runs backwards.",
            ),
            rewrite("bare", "delete", "50, 52, 54", "Both earlier exchanges are removed."),
        ),
    ),
    investigation(
        "repeat-answer",
        template="same-answer-twice",
        cause="number",
        prompt=talk(
            "How many days are in a week?",
            "7",
            "How many dwarfs did Snow White meet?",
            "7",
            "How many legs does a spider have?",
        ),
        behaviour="Does the response give the number 7?",
        yes=says("7", "seven"),
        edits=(
            swap(
                "months",
                "How many days are in a week?",
                "How many seas are there?",
                "The first question asks for seas.",
            ),
            rewrite(
                "one-other",
                "swap",
                talk(
                    "How many months are in a year?",
                    "12",
                    "How many dwarfs did Snow White meet?",
                    "7",
                    "How many legs does a spider have?",
                ),
                "The first exchange is about months and its answer is 12.",
            ),
            swap("ant", "a spider", "an ant", "The last question is about an ant instead of a spider."),
            swap("eyes", "legs does", "eyes does", "The last question asks for eyes instead of legs."),
            rewrite("bare", "delete", "How many legs does a spider have?", "Both earlier exchanges are removed."),
            rewrite(
                "no-snow-white",
                "delete",
                talk("How many days are in a week?", "7", "How many legs does a spider have?"),
                "The exchange about Snow White is removed.",
            ),
        ),
    ),
    investigation(
        "digits-or-words",
        template="number-style",
        cause="format",
        prompt=talk("How many legs does a cow have?", "Four.", "How many eyes does an owl have?"),
        behaviour="Does the response write a number in words?",
        yes=matches(
            r"\b(one|two|three|four|five|six|seven|eight|nine|ten)\b", "contains a number word from one to ten"
        ),
        edits=(
            swap("digit", "Four.", "4.", "The answer about the cow is written 4 instead of Four."),
            swap("horse", "a cow", "a horse", "The first question is about a horse instead of a cow."),
            swap("five", "Four.", "Five.", "The answer about the cow is Five instead of Four."),
            swap("sixty", "eyes does an owl", "bones does an owl", "The last question asks for bones instead of eyes."),
            rewrite("bare", "delete", "How many eyes does an owl have?", "The exchange about the cow is removed."),
        ),
    ),
)
