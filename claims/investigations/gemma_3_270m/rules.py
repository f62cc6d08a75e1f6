"""Rules: a decree, a line, a party, a list or a greeting that the last turn keeps or leaves."""

from claims.build.programs import matches, says
from claims.build.spec import investigation, rewrite, swap
from claims.investigations.gemma_3_270m.turns import talk

_YEAR = matches(r"\b1[0-9]{3}\b|\b20[0-9]{2}\b", "contains a number from 1000 to 2099")
_WEEKDAY = says("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

INVESTIGATIONS = (
    investigation(
        "king-says-black",
        template="king-decrees",
        cause="authority",
        prompt=talk(
            "The king says grass is red. What colour is grass?",
            "Red.",
            "The king says snow is black. What colour is snow?",
        ),
        behaviour="Does the response say black?",
        yes=says("black"),
        edits=(
            swap("jester", "The king says snow", "The jester says snow", "A jester, not the king, speaks of snow."),
            swap("truth", "Red.", "Green.", "The answer about grass is Green instead of Red."),
            swap(
                "doubts",
                "The king says snow is",
                "The king denies that snow is",
                "The king denies that snow is black instead of saying it.",
            ),
            swap(
                "milk", "What colour is snow", "What colour is milk", "The last question is about milk instead of snow."
            ),
            rewrite(
                "bare",
                "delete",
                "The king says snow is black. What colour is snow?",
                "The exchange about grass is removed.",
            ),
            swap(
                "really",
                "What colour is snow",
                "What colour is snow really",
                "The word really is added to the last question.",
                kind="add",
            ),
        ),
    ),
    investigation(
        "who-comes-last",
        template="place-in-line",
        cause="order",
        prompt=talk(
            "First Max, then Tom, then Eva. Who is last?", "Eva.", "First Kim, then Lou, then Ben. Who is last?"
        ),
        behaviour="Does the response name Ben?",
        yes=says("Ben"),
        edits=(
            swap("first", "Ben. Who is last?", "Ben. Who is first?", "The last question asks who is first."),
            swap("tallest", "Ben. Who is last?", "Ben. Who is tallest?", "The last question asks who is tallest."),
            swap(
                "lou-last",
                "First Kim, then Lou, then Ben",
                "First Kim, then Ben, then Lou",
                "In the last line Ben stands before Lou.",
                kind="reorder",
            ),
            swap("four", "then Lou, then Ben", "then Lou, then Ben, then Sam", "Sam is added behind Ben.", kind="add"),
            rewrite(
                "bare", "delete", "First Kim, then Lou, then Ben. Who is last?", "The earlier exchange is removed."
            ),
            swap(
                "example-first",
                "Eva. Who is last?",
                "Eva. Who is here?",
                "The first question asks who is here; the answer stays.",
            ),
        ),
    ),
    investigation(
        "table-for-two",
        template="party-size",
        cause="default",
        prompt=talk("Book a table.", "For 2 people.", "Book a taxi.", "For 2 people.", "Book a boat."),
        behaviour="Does the response say 2 people?",
        yes=matches(r"\b(2|two) (people|persons|guests)\b", "says 2 people"),
        edits=(
            swap("five", "Book a boat", "Book a boat for 5 people", "The last request is for 5 people.", kind="add"),
            swap("paint", "Book a boat", "Paint a boat", "The user wants a boat painted instead of booked."),
            swap("room", "Book a boat", "Book a room", "The last request is for a room instead of a boat."),
            rewrite(
                "taxi-six",
                "swap",
                talk("Book a table.", "For 2 people.", "Book a taxi.", "For 6 people.", "Book a boat."),
                "The taxi is for 6 people instead of 2.",
            ),
            rewrite(
                "table-six",
                "swap",
                talk("Book a table.", "For 6 people.", "Book a taxi.", "For 2 people.", "Book a boat."),
                "The table is for 6 people instead of 2.",
            ),
            rewrite(
                "both-six",
                "swap",
                talk("Book a table.", "For 6 people.", "Book a taxi.", "For 6 people.", "Book a boat."),
                "Both earlier answers are for 6 people.",
            ),
        ),
    ),
    investigation(
        "list-of-threes",
        template="example-leaks",
        cause="context",
        prompt="Finish the list: 3, 6, 9,",
        behaviour="Does the response name a day of the week?",
        yes=_WEEKDAY,
        edits=(
            swap("colours", "3, 6, 9,", "red, green, blue,", "The list holds colours instead of numbers."),
            swap(
                "what",
                "Finish the list: 3, 6, 9,",
                "What comes after 3, 6, 9?",
                "The user asks what comes after 3, 6, 9.",
            ),
            swap("longer", "9,", "9, 12,", "The list is one number longer.", kind="add"),
            swap("months", "3, 6, 9,", "May, June, July,", "The list holds months instead of numbers."),
            swap("hundreds", "3, 6, 9,", "300, 600, 900,", "The list holds 300, 600, 900 instead of 3, 6, 9."),
            swap("numbers", "list", "numbers", "The request says numbers instead of list."),
        ),
    ),
    investigation(
        "evening-greeting",
        template="greeting-echo",
        cause="wording",
        prompt=talk("Good morning, Mr. Smith.", "Good morning.", "Good evening, Mr. Smith."),
        behaviour="Does the response say Good evening?",
        yes=says("good evening"),
        edits=(
            swap("night", "Good evening", "Good night", "The last greeting says night instead of evening."),
            swap("brown", "Good evening, Mr. Smith", "Good evening, Mrs. Brown", "The last greeting is to Mrs. Brown."),
            swap("hello", "Good morning.", "Hello.", "The first answer is Hello instead of Good morning."),
            swap(
                "no-name",
                "Good evening, Mr. Smith.",
                "Good evening.",
                "The name is removed from the last greeting.",
                kind="delete",
            ),
            swap("answer-bye", "Good morning.", "Go away.", "The first answer is: Go away."),
            rewrite("bare", "delete", "Good evening, Mr. Smith.", "The earlier exchange is removed."),
        ),
    ),
)
