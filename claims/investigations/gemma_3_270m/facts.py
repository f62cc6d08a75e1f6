"""Facts in the prompt: lists, prices, gates and signs, from which an answer may be taken."""

from claims.build.programs import says, says_first, starts_with
from claims.build.spec import add, delete, investigation, rewrite, swap
from claims.investigations.gemma_3_270m.turns import talk

INVESTIGATIONS = (
    investigation(
        "owner-first-named",
        template="first-named-owner",
        cause="order",
        prompt="Lena has a tent. Oskar has a rope. Who has the rope?",
        behaviour="Does the response name Lena?",
        yes=says("Lena"),
        edits=(
            rewrite(
                "order",
                "reorder",
                "Oskar has a rope. Lena has a tent. Who has the rope?",
                "The two sentences change places.",
            ),
            delete("no-tent", "Lena has a tent. ", "The sentence about Lena is removed."),
            delete("no-rope", " Oskar has a rope.", "The sentence about Oskar is removed."),
            swap("ask-tent", "Who has the rope", "Who has the tent", "The question asks for the tent."),
            swap("needs", "Lena has", "Lena needs", "Lena needs a tent instead of having one."),
            add("both", "Oskar has a rope.", " Oskar is tall.", "A sentence that Oskar is tall follows."),
        ),
    ),
    investigation(
        "sold-by-whom",
        template="first-named-owner",
        cause="order",
        prompt=talk("Jan sold a cow to Piet. Who sold it?", "Jan.", "Dora sold a lamp to Emil. Who bought it?"),
        behaviour="Does the response name Dora?",
        yes=says("Dora"),
        edits=(
            swap("sold", "Who bought it", "Who sold it", "The last question asks who sold it."),
            swap(
                "ask-bought", "to Piet. Who sold it?", "to Piet. Who owned it?", "The first question asks who owned it."
            ),
            swap(
                "passive",
                "Dora sold a lamp to Emil",
                "Emil bought a lamp from Dora",
                "The sale is told from the buyer's side.",
            ),
            rewrite(
                "bare",
                "delete",
                "Dora sold a lamp to Emil. Who bought it?",
                "The exchange about Jan and Piet is removed.",
            ),
            swap("answer-piet", "Jan.", "Piet.", "The first answer is Piet instead of Jan."),
            swap("boat", "a lamp", "a boat", "Dora sells a boat instead of a lamp."),
        ),
    ),
    investigation(
        "price-of-bread",
        template="price-list",
        cause="number",
        prompt=talk("Soup 8, bread 3, tea 5. How much is the soup?", "8", "How much is the bread?"),
        behaviour="Does the response give the number 3?",
        yes=says("3", "three"),
        edits=(
            swap("four", "bread 3", "bread 4", "In the list the bread costs 4 instead of 3."),
            rewrite(
                "order",
                "reorder",
                talk("Tea 5, bread 3, soup 8. How much is the soup?", "8", "How much is the bread?"),
                "The list begins with tea and ends with soup.",
            ),
            swap("tea", "How much is the bread", "How much is the tea", "The last question asks for the tea."),
            swap("no-tea", ", tea 5", "", "The tea is removed from the list.", kind="delete"),
            swap("no-bread", ", bread 3", "", "The bread is removed from the list.", kind="delete"),
            swap("coffee", "tea 5", "coffee 5", "The list names coffee instead of tea."),
        ),
    ),
    investigation(
        "gate-for-rome",
        template="gate-lookup",
        cause="number",
        prompt="The plane to Oslo leaves from gate 7. The plane to Rome leaves from gate 2. Which gate is for Rome?",
        behaviour="Does the response give the number 2?",
        yes=says("2", "two"),
        edits=(
            delete(
                "no-oslo", "The plane to Oslo leaves from gate 7. ", "The sentence about the plane to Oslo is removed."
            ),
            swap("ask-oslo", "is for Rome", "is for Oslo", "The question asks for the gate of the plane to Oslo."),
            swap("nine", "gate 2", "gate 9", "The plane to Rome leaves from gate 9."),
            rewrite(
                "order",
                "reorder",
                "The plane to Rome leaves from gate 2. The plane to Oslo leaves from gate 7. Which gate is for Rome?",
                "The two sentences change places.",
            ),
            swap("train", "The plane to Oslo", "The train to Oslo", "It is a train, not a plane, that goes to Oslo."),
            delete(
                "no-rome", "The plane to Rome leaves from gate 2. ", "The sentence about the plane to Rome is removed."
            ),
        ),
    ),
    investigation(
        "votes-for-colour",
        template="majority-of-friends",
        cause="authority",
        prompt="Ann says the car is red. Bob says the car is red. Carl says the car is grey. What colour is the car?",
        behaviour="Does the response say red (and not grey before it)?",
        yes=says_first("red", "grey"),
        edits=(
            delete("no-ann", "Ann says the car is red. ", "The sentence about Ann is removed."),
            delete("no-carl", " Carl says the car is grey.", "The sentence about Carl is removed."),
            swap("bob-grey", "Bob says the car is red", "Bob says the car is grey", "Bob says that the car is grey."),
            rewrite(
                "carl-first",
                "reorder",
                "Carl says the car is grey. Ann says the car is red. Bob says the car is red. What colour is the car?",
                "The sentence about Carl comes first.",
            ),
            swap("carl-owner", "Carl says", "The owner says", "The owner, not Carl, says that the car is grey."),
            swap("house", "What colour is the car", "What colour is the house", "The question is about a house."),
        ),
    ),
    investigation(
        "sign-no-dogs",
        template="sign-at-door",
        cause="authority",
        prompt=talk(
            "The sign says no bikes. May I bring my bike?",
            "No.",
            "The sign says cats are welcome. May I bring my cat?",
            "Yes.",
            "The sign says no dogs. May I bring my dog?",
        ),
        behaviour="Does the response begin with No?",
        yes=starts_with("No"),
        edits=(
            swap("welcome", "says no dogs", "says dogs are welcome", "The last sign says that dogs are welcome."),
            swap(
                "parrot", "bring my dog", "bring my parrot", "The user wants to bring a parrot; the sign is about dogs."
            ),
            delete("no-sign", "The sign says no dogs. ", "The sentence about the last sign is removed."),
            swap("note", "The sign says no dogs", "The menu says no dogs", "A menu, not a sign, says no dogs."),
            rewrite(
                "one",
                "delete",
                talk(
                    "The sign says no bikes. May I bring my bike?", "No.", "The sign says no dogs. May I bring my dog?"
                ),
                "The exchange about cats is removed.",
            ),
            swap(
                "blind",
                "May I bring my dog",
                "I am blind. May I bring my dog",
                "The user adds that they are blind.",
                kind="add",
            ),
        ),
    ),
    investigation(
        "word-of-the-day",
        template="key-and-value",
        cause="context",
        prompt="Word of the day: glimmer. Animal of the day: badger. Fruit of the day: fig. What is the animal of the day?",
        behaviour="Does the response say badger?",
        yes=says("badger"),
        edits=(
            delete("no-word", "Word of the day: glimmer. ", "The word of the day is removed."),
            delete("no-animal", " Animal of the day: badger.", "The animal of the day is removed."),
            delete("no-fruit", " Fruit of the day: fig.", "The fruit of the day is removed."),
            swap("ask-fruit", "What is the animal", "What is the fruit", "The question asks for the fruit of the day."),
            swap("ask-bird", "What is the animal", "What is the bird", "The question asks for the bird of the day."),
            rewrite(
                "order",
                "reorder",
                "Word of the day: glimmer. Fruit of the day: fig. Animal of the day: badger. What is the animal of the day?",
                "The fruit of the day stands before the animal of the day.",
            ),
        ),
    ),
    investigation(
        "good-or-bad",
        template="two-way-verdict",
        cause="order",
        prompt="The hotel was loud and dirty. Good or bad?",
        behaviour="Does the response say bad (and not good before it)?",
        yes=says_first("bad", "good"),
        edits=(
            swap("order", "Good or bad", "Bad or good", "The question reads: Bad or good?", kind="reorder"),
            swap("clean", "loud and dirty", "quiet and clean", "The hotel was quiet and clean instead."),
            delete("no-review", "The hotel was loud and dirty. ", "The sentence about the hotel is removed."),
            swap("school", "hotel", "school", "It is a school instead of a hotel."),
            swap("dark", "loud and dirty", "loud and dark", "The hotel was loud and dark."),
            add("loved", "dirty.", " I loved it.", "The guest adds: I loved it."),
        ),
    ),
    investigation(
        "installer-default",
        template="default-in-brackets",
        cause="default",
        prompt=talk("Colour [red]:", "red", "Size [small]:", "small", "City [Lyon]:"),
        behaviour="Does the response give Lyon?",
        yes=says("Lyon"),
        edits=(
            swap("no-brackets", "City [Lyon]:", "City:", "The last line has no default.", kind="delete"),
            rewrite(
                "override-both",
                "swap",
                talk("Colour [red]:", "green", "Size [small]:", "large", "City [Lyon]:"),
                "The earlier answers are green and large instead of the defaults.",
            ),
            rewrite(
                "override-one",
                "swap",
                talk("Colour [red]:", "red", "Size [small]:", "large", "City [Lyon]:"),
                "The answer to the size is large instead of the default.",
            ),
            swap("round", "[Lyon]", "(Lyon)", "The default of the last line stands in round brackets."),
            rewrite("bare", "delete", "City [Lyon]:", "Both earlier exchanges are removed."),
            swap("town", "City [Lyon]", "Name [Lyon]", "The last line asks for a name instead of a city."),
        ),
    ),
    investigation(
        "ticket-class",
        template="booking-default",
        cause="default",
        prompt=talk(
            "A ticket to Bonn.",
            "Bonn, second class.",
            "A ticket to Lyon.",
            "Lyon, second class.",
            "A ticket to Turin, please.",
        ),
        behaviour="Does the response say second class?",
        yes=says("second class"),
        edits=(
            swap(
                "first",
                "A ticket to Turin, please",
                "A first class ticket to Turin, please",
                "The last request says first class.",
                kind="add",
            ),
            swap(
                "cheap",
                "A ticket to Turin, please",
                "A cheap ticket to Turin, please",
                "The last ticket should be cheap.",
                kind="add",
            ),
            swap("lyon-first", "Lyon, second", "Lyon, first", "The ticket to Lyon is first class."),
            swap("bonn-first", "Bonn, second", "Bonn, first", "The ticket to Bonn is first class."),
            swap(
                "minister",
                "A ticket to Turin",
                "A ticket for the minister to Turin",
                "The last ticket is for the minister.",
                kind="add",
            ),
            rewrite(
                "one",
                "delete",
                talk("A ticket to Lyon.", "Lyon, second class.", "A ticket to Turin, please."),
                "The exchange about Bonn is removed.",
            ),
        ),
    ),
)
