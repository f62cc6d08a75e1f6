"""Language: which language an answer comes in, and which language a question is about."""

from claims.build.programs import says
from claims.build.spec import investigation, rewrite, swap
from claims.investigations.gemma_3_270m.turns import talk

INVESTIGATIONS = (
    investigation(
        "colour-spanish",
        template="answers-in-tongue",
        cause="language",
        prompt=talk(
            "¿De qué color es la nieve?",
            "Blanco.",
            "¿De qué color es el carbón?",
            "Negro.",
            "¿De qué color es la hierba?",
        ),
        behaviour="Does the response name a colour in Spanish?",
        yes=says("verde", "blanco", "negro", "rojo", "amarillo", "azul", "marrón", "gris", "blanca", "negra", "roja"),
        edits=(
            swap("white", "Blanco.", "White.", "The answer about snow is White, in English."),
            swap("black", "Negro.", "Black.", "The answer about coal is Black, in English."),
            swap(
                "ask-english",
                "¿De qué color es la hierba?",
                "What colour is grass?",
                "The last question is in English.",
            ),
            swap("milk", "la nieve", "la leche", "The first question is about milk instead of snow."),
            rewrite(
                "both-english",
                "swap",
                talk(
                    "¿De qué color es la nieve?",
                    "White.",
                    "¿De qué color es el carbón?",
                    "Black.",
                    "¿De qué color es la hierba?",
                ),
                "Both earlier answers are in English.",
            ),
            swap("blood", "la hierba", "la sangre", "The last question is about blood instead of grass."),
        ),
    ),
    investigation(
        "animals-french",
        template="answers-in-tongue",
        cause="language",
        prompt=talk(
            "Which animal barks?", "Le chien.", "Which animal gives milk?", "La vache.", "Which animal catches mice?"
        ),
        behaviour="Does the response begin its noun with a French article (le, la, les, un or une)?",
        yes=says("le", "la", "les", "un", "une", "l'"),
        edits=(
            swap("dog", "Le chien.", "The dog.", "The answer about barking is The dog, in English."),
            swap("cow", "La vache.", "The cow.", "The answer about milk is The cow, in English."),
            swap("flies", "catches mice", "can fly", "The last question asks which animal can fly."),
            rewrite(
                "one",
                "delete",
                talk("Which animal gives milk?", "La vache.", "Which animal catches mice?"),
                "The exchange about barking is removed.",
            ),
            swap("goat", "La vache.", "La chèvre.", "The answer about milk is the goat, still in French."),
            swap(
                "why",
                "Which animal catches mice",
                "Why do cats catch mice",
                "The last question asks why cats catch mice.",
            ),
        ),
    ),
    investigation(
        "say-dog-german",
        template="word-in-language",
        cause="language",
        prompt=talk(
            "How do you say dog in German?",
            "Hund.",
            "How do you say house in German?",
            "Haus.",
            "How do you say water in German?",
        ),
        behaviour="Does the response give the German word Wasser?",
        yes=says("Wasser"),
        edits=(
            swap(
                "spanish",
                "water in German",
                "water in Spanish",
                "The last question asks for Spanish instead of German.",
            ),
            swap("no-language", "water in German", "water", "The last question names no language.", kind="delete"),
            swap(
                "cat",
                "dog in German?",
                "cat in German?",
                "The first question asks for cat, while its answer stays Hund.",
            ),
            swap("milk", "say water", "say milk", "The last question asks for the word milk instead of water."),
            rewrite("bare", "delete", "How do you say water in German?", "Both earlier exchanges are removed."),
            swap("write", "How do you say water", "How do you spell water", "The last question says spell, not say."),
        ),
    ),
    investigation(
        "language-of-country",
        template="map-country",
        cause="language",
        prompt=talk("Spain", "Spanish", "Poland", "Polish", "Brazil"),
        behaviour="Does the response name the Portuguese language?",
        yes=says("Portuguese"),
        edits=(
            swap("cities", "Polish", "Warsaw", "The answer to Poland is Warsaw instead of Polish."),
            swap("first-city", "Spanish", "Madrid", "The answer to Spain is Madrid instead of Spanish."),
            swap("portugal", "Brazil", "Angola", "The last country is Angola instead of Brazil."),
            rewrite("one", "delete", talk("Poland", "Polish", "Brazil"), "The exchange about Spain is removed."),
            swap("japan", "Poland", "Japan", "The second country is Japan, while its answer stays Polish."),
            rewrite(
                "order",
                "reorder",
                talk("Poland", "Polish", "Spain", "Spanish", "Brazil"),
                "The earlier exchanges change places.",
            ),
        ),
    ),
    investigation(
        "capital-of-country",
        template="map-country",
        cause="language",
        prompt=talk("Norwegen", "Oslo", "Österreich", "Wien", "Griechenland"),
        behaviour="Does the response name the Greek capital (Athen or Athens)?",
        yes=says("Athen", "Athens"),
        edits=(
            swap("food", "Wien", "Schnitzel", "The answer to Österreich is Schnitzel instead of Wien."),
            swap("english", "Griechenland", "Greece", "The last country is named in English."),
            swap("sweden", "Norwegen", "Norway", "The first country is named in English."),
            swap("italien", "Griechenland", "Italien", "The last country is Italien instead of Griechenland."),
            rewrite("bare", "delete", "Griechenland", "Both earlier exchanges are removed."),
        ),
    ),
)
