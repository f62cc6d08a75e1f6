"""Names: what a person's, a city's or a thing's name brings with it."""

from claims.build.programs import matches, says
from claims.build.spec import add, delete, investigation, rewrite, swap
from claims.investigations.gemma_3_270m.turns import talk

_ITALIAN = says("pizza", "pasta", "spaghetti", "lasagna", "lasagne", "risotto", "Italian", "ravioli", "tiramisu")
_ASKED = "Does the response name an Italian dish or say that the food is Italian?"

INVESTIGATIONS = (
    investigation(
        "chef-luigi",
        template="dish-of-the-chef",
        cause="name",
        prompt=talk(
            "Pierre opens a restaurant. What is on the menu?",
            "Onion soup.",
            "Carlos opens a restaurant. What is on the menu?",
            "Tacos.",
            "Luigi opens a restaurant. What is on the menu?",
        ),
        behaviour=_ASKED,
        yes=_ITALIAN,
        edits=(
            swap("kenji", "Luigi", "Kenji", "The last restaurant is opened by Kenji instead of Luigi."),
            swap("matteo", "Luigi", "Matteo", "The last restaurant is opened by Matteo instead of Luigi."),
            swap("brothers", "Luigi opens", "Luigi's sister opens", "Luigi's sister opens the restaurant.", kind="add"),
            swap("bakery", "Luigi opens a restaurant", "Luigi opens a bakery", "Luigi opens a bakery."),
            swap("pierre", "Pierre", "Heinrich", "The first restaurant is opened by Heinrich instead of Pierre."),
            add("in-india", "Luigi opens a", "n Indian", "The word Indian is put before the last restaurant."),
        ),
    ),
    investigation(
        "currency-of-city",
        template="country-currency",
        cause="name",
        prompt=talk(
            "Anna shops in Tokyo. What does she pay with?",
            "Yen.",
            "Ben shops in London. What does he pay with?",
            "Pounds.",
            "Clara shops in Chicago. What does she pay with?",
        ),
        behaviour="Does the response say dollars?",
        yes=says("dollar", "dollars", "$"),
        edits=(
            swap("berlin", "Chicago", "Berlin", "Clara shops in Berlin instead of Chicago."),
            swap("boston", "Chicago", "Boston", "Clara shops in Boston instead of Chicago."),
            swap("yuki", "Clara", "Yuki", "The last shopper is called Yuki instead of Clara."),
            swap("yen", "Yen.", "Coins.", "The answer about Tokyo is Coins instead of Yen."),
            delete("no-city", " in Chicago", "The words that say where Clara shops are removed."),
            swap("moscow", "Chicago", "Moscow", "Clara shops in Moscow instead of Chicago."),
        ),
    ),
    investigation(
        "she-or-he",
        template="pronoun-of-name",
        cause="name",
        prompt=talk(
            "Why is Martin late?",
            "He missed the bus.",
            "Why is Helen sad?",
            "She lost her ring.",
            "Why is Susan happy?",
        ),
        behaviour="Does the response call the person she or her?",
        yes=says("she", "her"),
        edits=(
            swap("robert", "Susan", "Robert", "The person asked about last is Robert instead of Susan."),
            swap("emma", "Susan", "Emma", "The person asked about last is Emma instead of Susan."),
            swap("angry", "happy", "angry", "The last question asks why Susan is angry instead of happy."),
            swap("nurse", "Susan", "the nurse", "The last question is about the nurse instead of Susan."),
            swap("captain", "Susan", "the captain", "The last question is about the captain instead of Susan."),
            rewrite(
                "order",
                "reorder",
                talk(
                    "Why is Helen sad?",
                    "She lost her ring.",
                    "Why is Martin late?",
                    "He missed the bus.",
                    "Why is Susan happy?",
                ),
                "The two earlier exchanges change places.",
            ),
        ),
    ),
    investigation(
        "she-or-he-job",
        template="pronoun-of-name",
        cause="name",
        prompt=talk(
            "Where is the king?",
            "He is in the hall.",
            "Where is the queen?",
            "She is in the garden.",
            "Where is the farmer?",
        ),
        behaviour="Does the response call the farmer he?",
        yes=says("he"),
        edits=(
            swap("ballerina", "farmer", "ballerina", "The last question asks for the ballerina instead of the farmer."),
            swap("soldier", "farmer", "soldier", "The last question asks for the soldier instead of the farmer."),
            swap(
                "farmers", "is the farmer", "are the farmers", "The last question asks for the farmers, in the plural."
            ),
            rewrite(
                "order",
                "reorder",
                talk(
                    "Where is the queen?",
                    "She is in the garden.",
                    "Where is the king?",
                    "He is in the hall.",
                    "Where is the farmer?",
                ),
                "The two earlier exchanges change places.",
            ),
            swap("mary", "the farmer", "the farmer Mary", "The farmer is given the name Mary.", kind="add"),
            swap("wife", "the farmer", "the farmer's wife", "The last question asks for the farmer's wife."),
        ),
    ),
    investigation(
        "animal-sound",
        template="sound-of-name",
        cause="name",
        prompt=talk(
            "Rex is a dog. What does Rex say?",
            "Woof.",
            "Tom is a cat. What does Tom say?",
            "Meow.",
            "Bella is a cow. What does Bella say?",
        ),
        behaviour="Does the response contain moo?",
        yes=matches(r"\bmoo+\b|\bmu+h?\b", "contains moo, mooo, muu or muh"),
        edits=(
            swap("duck", "a cow", "a duck", "Bella is a duck instead of a cow."),
            swap("rosa", "Bella is a cow. What does Bella", "Rosa is a cow. What does Rosa", "The cow is called Rosa."),
            swap("woof", "Woof.", "Bow-wow.", "The dog says Bow-wow instead of Woof."),
            delete("no-cow", "Bella is a cow. ", "The sentence that Bella is a cow is removed."),
            swap("calf", "a cow", "a calf", "Bella is a calf instead of a cow."),
            rewrite("bare", "delete", "Bella is a cow. What does Bella say?", "Both earlier exchanges are removed."),
        ),
    ),
)
