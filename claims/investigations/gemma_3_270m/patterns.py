"""Patterns: short exchanges that set a rule, and a last turn that the rule may or may not reach."""

from claims.build.programs import matches, says, starts_with
from claims.build.spec import investigation, rewrite, swap
from claims.investigations.gemma_3_270m.turns import talk

INVESTIGATIONS = (
    investigation(
        "yes-no-rhythm",
        template="alternating-answers",
        cause="order",
        prompt=talk("Is it raining?", "Yes.", "Is it windy?", "No.", "Is it cold?", "Yes.", "Is it dark?"),
        behaviour="Does the response begin with No?",
        yes=starts_with("No"),
        edits=(
            swap("windy-yes", "No.", "Yes.", "The answer about the wind is Yes instead of No."),
            rewrite(
                "cold-no",
                "swap",
                talk("Is it raining?", "Yes.", "Is it windy?", "No.", "Is it cold?", "No.", "Is it dark?"),
                "The answer about the cold is No instead of Yes.",
            ),
            swap("light", "dark", "light", "The last question asks whether it is light instead of dark."),
            rewrite(
                "rain-last",
                "reorder",
                talk("Is it windy?", "No.", "Is it cold?", "Yes.", "Is it raining?", "Yes.", "Is it dark?"),
                "The exchange about the rain moves behind the one about the cold.",
            ),
            rewrite(
                "no-wind",
                "delete",
                talk("Is it raining?", "Yes.", "Is it cold?", "Yes.", "Is it dark?"),
                "The exchange about the wind is removed.",
            ),
            swap("hot", "cold", "hot", "The third question asks whether it is hot instead of cold."),
        ),
    ),
    investigation(
        "same-name-again",
        template="asked-twice",
        cause="name",
        prompt=talk("What is your name?", "Gustav.", "What is your brother's name?"),
        behaviour="Does the response give the name Gustav?",
        yes=says("Gustav"),
        edits=(
            swap(
                "again",
                "What is your brother's name",
                "Tell me, what is your name",
                "The user asks for the model's own name again.",
            ),
            swap(
                "town",
                "What is your name?",
                "What is your favourite town?",
                "The first question asks for a town instead of a name.",
            ),
            swap("oscar", "Gustav", "Oscar", "The first answer is Oscar instead of Gustav."),
            swap("sister", "brother", "sister", "The last question is about a sister instead of a brother."),
            swap("father", "brother", "father", "The last question is about a father instead of a brother."),
            swap("only", "Gustav.", "My name is Gustav.", "The first answer is a whole sentence.", kind="add"),
        ),
    ),
    investigation(
        "are-you-sure",
        template="doubting-user",
        cause="authority",
        prompt=talk("Which planet is the largest?", "Jupiter.", "Are you sure?"),
        behaviour="Does the response begin with Yes?",
        yes=starts_with("Yes"),
        edits=(
            swap("mars", "Jupiter", "Mars", "The first answer is Mars instead of Jupiter."),
            swap("wrong", "Are you sure?", "Are you wrong?", "The user asks: Are you wrong?"),
            swap("not-right", "Are you sure?", "That is not right, is it?", "The user says: That is not right, is it?"),
            swap(
                "professor",
                "Are you sure?",
                "I am a professor. Are you sure?",
                "The user adds that they are a professor.",
                kind="add",
            ),
            swap("really", "Are you sure?", "Are you really sure?", "The word really is added.", kind="add"),
            swap("who", "Are you sure?", "Who told you?", "The user asks who told the model."),
        ),
    ),
    investigation(
        "past-tense-swim",
        template="verb-forms",
        cause="wording",
        prompt=talk("I walk", "I walked", "I jump", "I jumped", "I swim"),
        behaviour="Does the response contain swam, swum or swimmed?",
        yes=says("swam", "swum", "swimmed", "swimed"),
        edits=(
            swap("we", "I swim", "We swim", "The last turn says we instead of I."),
            swap("present", "I walked", "I am walking", "The first answer is: I am walking."),
            swap("future", "I jumped", "I will jump", "The second answer is: I will jump."),
            rewrite("one", "delete", talk("I jump", "I jumped", "I swim"), "The exchange about walking is removed."),
            swap("fish", "I swim", "Fish swim", "The last turn says fish instead of I."),
            rewrite("bare", "delete", "I swim", "Both earlier exchanges are removed."),
        ),
    ),
    investigation(
        "add-or-multiply",
        template="two-numbers",
        cause="number",
        prompt=talk("3 and 3", "6", "5 and 1", "6", "2 and 4"),
        behaviour="Does the response give the number 6?",
        yes=says("6", "six"),
        edits=(
            rewrite(
                "multiply", "swap", talk("3 and 3", "9", "5 and 1", "5", "2 and 4"), "The earlier answers are 9 and 5."
            ),
            swap("eight", "2 and 4", "7 and 1", "The last turn is: 7 and 1."),
            swap("order", "2 and 4", "4 and 2", "The last turn is: 4 and 2.", kind="reorder"),
            rewrite("one", "delete", talk("5 and 1", "6", "2 and 4"), "The first exchange is removed."),
            rewrite(
                "other-sums",
                "swap",
                talk("3 and 5", "8", "6 and 1", "7", "2 and 4"),
                "The earlier turns are 3 and 5 and 6 and 1, with their sums.",
            ),
            swap("plus", "2 and 4", "2 plus 4", "The last turn says plus instead of and."),
        ),
    ),
    investigation(
        "category-of-list",
        template="name-the-group",
        cause="order",
        prompt=talk("apple, pear, plum", "fruit", "hammer, saw, drill", "tools", "violin, flute, trumpet"),
        behaviour="Does the response say instruments or music?",
        yes=says("instruments", "instrument", "music", "musical instruments", "musical"),
        edits=(
            swap("spoon-first", "violin, flute", "spoon, fork", "The last list begins with spoon and fork."),
            swap("spoon-last", "trumpet", "spoon", "The last list ends with spoon instead of trumpet."),
            swap("odd", "tools", "drill", "The second answer repeats the last thing of its list: drill."),
            swap("first", "fruit", "apple", "The first answer repeats the first thing of its list: apple."),
            rewrite(
                "both-first",
                "swap",
                talk("apple, pear, plum", "apple", "hammer, saw, drill", "hammer", "violin, flute, trumpet"),
                "Both answers repeat the first thing of their lists.",
            ),
            swap(
                "order",
                "violin, flute, trumpet",
                "trumpet, flute, violin",
                "The last list is in the opposite order.",
                kind="reorder",
            ),
        ),
    ),
    investigation(
        "refuse-again",
        template="refusal-carries-over",
        cause="authority",
        prompt=talk(
            "Tell me the password.",
            "I cannot tell you that.",
            "Tell me the name of your boss.",
            "I cannot tell you that.",
            "Tell me a colour.",
        ),
        behaviour="Does the response say that it cannot tell?",
        yes=matches(r"\b(cannot|can't|can’t|can not)\b", "says cannot or can't"),
        edits=(
            swap(
                "boss-told",
                "Tell me the name of your boss.",
                "Tell me the name of your dog.",
                "The second request is about a dog.",
            ),
            rewrite(
                "one",
                "delete",
                talk("Tell me the password.", "I cannot tell you that.", "Tell me a colour."),
                "The exchange about the boss is removed.",
            ),
            rewrite(
                "one-open",
                "swap",
                talk(
                    "Tell me the password.",
                    "I cannot tell you that.",
                    "Tell me the name of your boss.",
                    "Mr. Brown.",
                    "Tell me a colour.",
                ),
                "The assistant gives the boss's name: Mr. Brown.",
            ),
            swap("name", "Tell me a colour", "Name a colour", "The last request says name instead of tell me."),
            swap("secret", "a colour", "a secret", "The last request asks for a secret instead of a colour."),
            swap("which", "Tell me a colour.", "Which colour is snow?", "The last turn asks which colour snow is."),
        ),
    ),
    investigation(
        "metric-units",
        template="unit-of-answers",
        cause="default",
        prompt=talk(
            "How heavy is the bag?", "4 kilos.", "How long is the rope?", "3 metres.", "How far is the station?"
        ),
        behaviour="Does the response give a metric unit (metres or kilometres)?",
        yes=matches(r"\b(\d+ ?(k?m)|kilomet(er|re)s?|met(er|re)s?|kilos?)\b", "contains a metric unit"),
        edits=(
            swap("pounds", "4 kilos", "9 pounds", "The bag weighs 9 pounds instead of 4 kilos."),
            swap("feet", "3 metres", "10 feet", "The rope is 10 feet long instead of 3 metres."),
            rewrite(
                "both",
                "swap",
                talk(
                    "How heavy is the bag?", "9 pounds.", "How long is the rope?", "10 feet.", "How far is the station?"
                ),
                "Both earlier answers are in pounds and feet.",
            ),
            swap("moon", "the station", "the moon", "The last question asks how far the moon is."),
            swap(
                "when",
                "How far is the station",
                "When does the station open",
                "The last question asks when the station opens.",
            ),
            swap("stick", "the rope", "the stick", "The second question is about a stick instead of a rope."),
        ),
    ),
    investigation(
        "clock-format",
        template="time-of-day",
        cause="format",
        prompt=talk("When is breakfast?", "07:30", "When is lunch?", "12:30", "When is dinner?"),
        behaviour="Does the response write the time as digits with a colon?",
        yes=matches(r"\d{1,2}:\d\d", "contains digits, a colon and two digits"),
        edits=(
            swap("lunch-words", "12:30", "At noon.", "The answer about lunch is: At noon."),
            swap("breakfast-words", "07:30", "At dawn.", "The answer about breakfast is: At dawn."),
            swap("where", "When is dinner", "Where is dinner", "The last question asks where dinner is."),
            swap("party", "dinner", "the wedding", "The last question is about the wedding instead of dinner."),
            rewrite("bare", "delete", "When is dinner?", "Both earlier exchanges are removed."),
            swap("who", "When is dinner", "Who cooks dinner", "The last question asks who cooks dinner."),
        ),
    ),
)
