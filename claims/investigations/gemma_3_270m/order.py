"""Order: which of the offered things stands first, and which stands last."""

from claims.build.programs import says, says_first, starts_with
from claims.build.spec import add, delete, investigation, rewrite, swap
from claims.investigations.gemma_3_270m.turns import talk

INVESTIGATIONS = (
    investigation(
        "boat-name",
        template="which-is-nicer",
        cause="order",
        prompt="Which name is better for a boat, Comet or Pebble?",
        behaviour="Does the response choose Comet (it names Comet, and not Pebble before it)?",
        yes=says_first("Comet", "Pebble"),
        edits=(
            rewrite(
                "order", "reorder", "Which name is better for a boat, Pebble or Comet?", "The two names change places."
            ),
            swap("walnut", "Pebble", "Walnut", "The second name on offer is Walnut instead of Pebble."),
            swap("horse", "a boat", "a horse", "The name is wanted for a horse instead of a boat."),
            swap("worse", "better", "worse", "The user asks which name is worse."),
            add("third-first", "a boat,", " Meadow,", "A third name, Meadow, is offered in front of the two."),
            swap(
                "third-last",
                "Comet or Pebble",
                "Comet, Pebble or Meadow",
                "A third name, Meadow, is offered last.",
                kind="add",
            ),
        ),
    ),
    investigation(
        "pet-choice",
        template="which-is-nicer",
        cause="order",
        prompt="Which animal is more fun, a hamster or a goldfish?",
        behaviour="Does the response choose the hamster (it names it, and not the goldfish before it)?",
        yes=says_first("hamster", "goldfish"),
        edits=(
            rewrite(
                "order",
                "reorder",
                "Which animal is more fun, a goldfish or a hamster?",
                "The two animals change places.",
            ),
            swap("cheaper", "more fun", "cheaper", "The user asks which animal is cheaper instead of more fun."),
            swap("wolf", "a goldfish", "a wolf", "The second animal is a wolf instead of a goldfish."),
            swap("swims", "is more fun", "swims better", "The user asks which animal swims better."),
            add("said-last", "a goldfish?", " Not the hamster.", "The user adds: Not the hamster."),
        ),
    ),
    investigation(
        "two-doors",
        template="pick-from-list",
        cause="order",
        prompt=talk(
            "Pick one: tea, juice, milk.",
            "Tea.",
            "Pick one: chess, cards, dice.",
            "Chess.",
            "Pick one: violin, flute, drum.",
        ),
        behaviour="Does the response pick the violin (it names it before the flute and the drum)?",
        yes=says_first("violin", "flute") & says_first("violin", "drum"),
        edits=(
            rewrite(
                "last-order",
                "reorder",
                talk(
                    "Pick one: tea, juice, milk.",
                    "Tea.",
                    "Pick one: chess, cards, dice.",
                    "Chess.",
                    "Pick one: drum, flute, violin.",
                ),
                "The three instruments on offer are listed in the opposite order.",
            ),
            rewrite(
                "picks-last",
                "swap",
                talk(
                    "Pick one: tea, juice, milk.",
                    "Milk.",
                    "Pick one: chess, cards, dice.",
                    "Dice.",
                    "Pick one: violin, flute, drum.",
                ),
                "In both earlier exchanges the assistant picks the last thing offered, not the first.",
            ),
            swap("one-differs", "Tea.", "Milk.", "In the first exchange the assistant picks milk instead of tea."),
            swap("guitar", "drum", "guitar", "The third instrument on offer is a guitar instead of a drum."),
            swap("loud", "Pick one: violin", "Pick the loudest: violin", "The last request asks for the loudest one."),
            rewrite("bare", "delete", "Pick one: violin, flute, drum.", "Both earlier exchanges are removed."),
        ),
    ),
    investigation(
        "letters-abc",
        template="lettered-options",
        cause="order",
        prompt=talk(
            "Which is a fruit? A) pear B) spoon",
            "A",
            "Which is a tool? A) saw B) plum",
            "A",
            "Which is a bird? A) desk B) owl",
        ),
        behaviour="Does the response give the letter A?",
        yes=starts_with("A"),
        edits=(
            rewrite(
                "options-swapped",
                "reorder",
                talk(
                    "Which is a fruit? A) pear B) spoon",
                    "A",
                    "Which is a tool? A) saw B) plum",
                    "A",
                    "Which is a bird? A) owl B) desk",
                ),
                "In the last question the owl is option A and the desk option B.",
            ),
            rewrite(
                "answers-b",
                "reorder",
                talk(
                    "Which is a fruit? A) spoon B) pear",
                    "B",
                    "Which is a tool? A) plum B) saw",
                    "B",
                    "Which is a bird? A) desk B) owl",
                ),
                "The right option stands second, as B, in both earlier exchanges.",
            ),
            rewrite(
                "one-b",
                "reorder",
                talk(
                    "Which is a fruit? A) pear B) spoon",
                    "A",
                    "Which is a tool? A) plum B) saw",
                    "B",
                    "Which is a bird? A) desk B) owl",
                ),
                "The saw and the plum change places, and the assistant answers that exchange with B.",
            ),
            swap("chair", "desk", "chair", "Option A of the last question is a chair instead of a desk."),
            swap("furniture", "Which is a bird", "Which is furniture", "The last question asks which is furniture."),
        ),
    ),
    investigation(
        "last-spoken",
        template="repeat-after-list",
        cause="order",
        prompt="Otto, Greta and Paul came in. Greta left. Then Otto left. Who is still here?",
        behaviour="Does the response name Otto?",
        yes=says("Otto"),
        edits=(
            rewrite(
                "order",
                "reorder",
                "Otto, Greta and Paul came in. Otto left. Then Greta left. Who is still here?",
                "Otto leaves before Greta instead of after her.",
            ),
            delete("no-otto", " Then Otto left.", "The sentence that Otto left is removed."),
            delete("no-greta", " Greta left.", "The sentence that Greta left is removed."),
            rewrite(
                "list-order",
                "reorder",
                "Paul, Greta and Otto came in. Greta left. Then Otto left. Who is still here?",
                "In the first sentence Paul is named first and Otto last.",
            ),
            swap("who-left", "Who is still here", "Who left last", "The question asks who left last."),
        ),
    ),
)
