"""Questions: the last question changes or stays while the turns before it stay or change."""

from claims.build.programs import matches, says, starts_with
from claims.build.spec import delete, investigation, rewrite, swap
from claims.investigations.gemma_3_270m.turns import talk

_YEAR = matches(r"\b1[0-9]{3}\b|\b20[0-9]{2}\b", "contains a number from 1000 to 2099")
_WEEKDAY = says("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

INVESTIGATIONS = (
    investigation(
        "coins-of-leo",
        template="count-lookup",
        cause="number",
        prompt="Mia has 6 stamps. Leo has 9 coins. How many coins does Leo have?",
        behaviour="Does the response give the number 9?",
        yes=says("9", "nine"),
        edits=(
            swap(
                "ask-stamps",
                "How many coins does Leo",
                "How many stamps does Mia",
                "The question asks for Mia's stamps.",
            ),
            swap("eight", "9 coins", "8 coins", "Leo has 8 coins instead of 9."),
            delete("no-mia", "Mia has 6 stamps. ", "The sentence about Mia is removed."),
            swap("mia-coins", "6 stamps", "6 coins", "Mia has 6 coins instead of 6 stamps."),
            swap("needs", "does Leo have?", "does Leo need?", "The question asks how many coins Leo needs."),
            rewrite(
                "order",
                "reorder",
                "Leo has 9 coins. Mia has 6 stamps. How many coins does Leo have?",
                "The two sentences change places.",
            ),
        ),
    ),
    investigation(
        "floor-of-museum",
        template="floor-lookup",
        cause="number",
        prompt=talk(
            "The bank is on floor 3. The museum is on floor 8. Where is the bank?", "Floor 3.", "Where is the museum?"
        ),
        behaviour="Does the response give the number 8?",
        yes=says("8", "eight", "8th", "eighth"),
        edits=(
            swap("five", "on floor 8", "on floor 5", "The museum is on floor 5 instead of floor 8."),
            swap("school", "Where is the museum", "Where is the school", "The last question asks for a school."),
            swap(
                "what", "Where is the museum", "What is in the museum", "The last question asks what is in the museum."
            ),
            swap("on-three", "Floor 3.", "On the third floor.", "The answer about the bank reads: On the third floor."),
            swap(
                "find",
                "Where is the museum",
                "Where do I find the museum",
                "The last question reads: Where do I find the museum?",
            ),
            swap(
                "bank-four",
                "bank is on floor 3",
                "bank is on floor 4",
                "The first turn puts the bank on floor 4; the answer stays.",
            ),
        ),
    ),
    investigation(
        "year-of-school",
        template="year-answers",
        cause="number",
        prompt=talk(
            "When was the bridge built?", "1910.", "When was the church built?", "1840.", "When was the school built?"
        ),
        behaviour="Does the response give a year?",
        yes=_YEAR,
        edits=(
            swap(
                "who",
                "When was the school built",
                "Who built the school",
                "The last question asks who built the school.",
            ),
            swap("castle", "the school", "the castle", "The last question is about a castle instead of a school."),
            swap(
                "how",
                "When was the school built",
                "How was the school built",
                "The last question asks how the school was built.",
            ),
            swap("ago", "1840.", "Long ago.", "The answer about the church is: Long ago."),
            swap("closed", "school built", "school closed", "The last question asks when the school was closed."),
            swap("bridge-ago", "1910.", "Long ago.", "The answer about the bridge is: Long ago."),
        ),
    ),
    investigation(
        "moon-of-cheese",
        template="yes-to-all",
        cause="order",
        prompt=talk("Is the sea deep?", "Yes.", "Is sand soft?", "Yes.", "Is the moon made of cheese?"),
        behaviour="Does the response begin with Yes?",
        yes=starts_with("Yes"),
        edits=(
            swap(
                "what",
                "Is the moon made of cheese",
                "What is the moon made of",
                "The last question asks what the moon is made of.",
            ),
            swap(
                "ice",
                "Is the moon made of cheese",
                "Is ice made of water",
                "The last question is whether ice is made of water.",
            ),
            swap("sand-hard", "Is sand soft?", "Is sand hard?", "The second question asks whether sand is hard."),
            rewrite(
                "both-no",
                "swap",
                talk("Is the sea dry?", "No.", "Is sand sweet?", "No.", "Is the moon made of cheese?"),
                "Both earlier questions are answered with No, and ask about a dry sea and sweet sand.",
            ),
            rewrite(
                "longer",
                "swap",
                talk("Is the sea deep?", "Yes, it is.", "Is sand soft?", "Yes, it is.", "Is the moon made of cheese?"),
                "Both earlier answers read: Yes, it is.",
            ),
            swap(
                "why",
                "Is the moon made of cheese",
                "Why is the moon made of cheese",
                "The last question asks why the moon is made of cheese.",
            ),
        ),
    ),
    investigation(
        "in-the-cupboard",
        template="where-things-are",
        cause="format",
        prompt=talk(
            "Where is the spoon?", "In the drawer.", "Where is the broom?", "In the cupboard.", "Where is the bread?"
        ),
        behaviour="Does the response begin with In?",
        yes=starts_with("In"),
        edits=(
            swap("who", "Where is the bread", "Who took the bread", "The last question asks who took the bread."),
            swap(
                "ladder",
                "Where is the bread",
                "Where is the ladder",
                "The last question is about a ladder instead of bread.",
            ),
            swap("how", "Where is the bread", "How is the bread", "The last question asks how the bread is."),
            swap("spoon-on", "In the drawer.", "On the table.", "The spoon is on the table instead of in the drawer."),
            rewrite(
                "both-under",
                "swap",
                talk(
                    "Where is the spoon?",
                    "Under the table.",
                    "Where is the broom?",
                    "Under the bed.",
                    "Where is the bread?",
                ),
                "Both things are under something: the table and the bed.",
            ),
            swap("fork", "the spoon", "the fork", "The first question is about a fork instead of a spoon."),
        ),
    ),
    investigation(
        "green-again",
        template="colour-repeats",
        cause="context",
        prompt=talk(
            "What colour is your coat?", "Green.", "What colour is your bike?", "Green.", "What colour is your house?"
        ),
        behaviour="Does the response say green?",
        yes=says("green"),
        edits=(
            swap("snow", "is your house", "is snow", "The last question asks for the colour of snow."),
            swap(
                "size",
                "What colour is your house",
                "What size is your house",
                "The last question asks for the size of the house.",
            ),
            swap("boat", "your house", "your boat", "The last question is about a boat instead of a house."),
            rewrite(
                "bike-blue",
                "swap",
                talk(
                    "What colour is your coat?",
                    "Green.",
                    "What colour is your bike?",
                    "Blue.",
                    "What colour is your house?",
                ),
                "The bike is blue instead of green.",
            ),
            rewrite(
                "both-black",
                "swap",
                talk(
                    "What colour is your coat?",
                    "Black.",
                    "What colour is your bike?",
                    "Black.",
                    "What colour is your house?",
                ),
                "Both earlier answers are Black instead of Green.",
            ),
            swap("shirt", "your coat", "your shirt", "The first question is about a shirt instead of a coat."),
        ),
    ),
    investigation(
        "please-and-here",
        template="magic-word",
        cause="wording",
        prompt=talk(
            "Give me the salt.", "No.", "Please give me the pepper.", "Here you are.", "Please give me the sugar."
        ),
        behaviour="Does the response say Here you are?",
        yes=says("here you are", "here you go", "here it is"),
        edits=(
            swap(
                "no-please",
                "Please give me the sugar",
                "Give me the sugar",
                "The word please is removed from the last request.",
                kind="delete",
            ),
            swap("knife", "the sugar", "the knife", "The last request is for the knife instead of the sugar."),
            swap(
                "kindly",
                "Please give me the sugar",
                "Kindly give me the sugar",
                "The last request says kindly instead of please.",
            ),
            rewrite(
                "no-salt",
                "delete",
                talk("Please give me the pepper.", "Here you are.", "Please give me the sugar."),
                "The exchange about the salt is removed.",
            ),
            swap(
                "time", "Please give me the sugar", "Please tell me the time", "The last request is to tell the time."
            ),
            swap("pepper-never", "Here you are.", "Never.", "The answer about the pepper is Never."),
        ),
    ),
)
