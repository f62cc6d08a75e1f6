"""Causes of the kind "a language in the prompt"."""

from claims.build.programs import Program, matches, says
from claims.build.spec import Investigation, add, delete, investigation, rewrite, swap
from claims.schema import Message

_WORDS = {
    "French": "le la les est un une je vous et des du qui bonjour bien dans c'est pour mon ma",
    "German": "der das ist und ein eine einen ich sie nicht wir zu wie guten mein",
    "Spanish": "el la los las es una yo por que mi con para hola muy",
    "Italian": "il la lo di che una sono della ciao gli nel molto mio buongiorno",
    "Portuguese": "os um uma da eu para não você está meu minha muito é olá",
}
_LETTERS = {
    "French": "àâçèêëîïôùûœé",
    "German": "äöüß",
    "Spanish": "áíóúñ¿¡é",
    "Italian": "àèìòù",
    "Portuguese": "ãõçáâêô",
}


def _contains(language: str) -> Program:
    words = says(*_WORDS[language].split())
    return words | matches(f"[{_LETTERS[language]}]", f"has one of the letters {_LETTERS[language]}")


def _asked(slug: str, language: str, question: str, english: str, other: str, polite: str) -> Investigation:
    return investigation(
        f"foreign-question-{slug}",
        template="foreign-question",
        cause="language",
        prompt=question,
        behaviour=f"Does the reply contain {language} words?",
        yes=_contains(language),
        edits=(
            swap("english", question, english, "The same question is asked in English."),
            add(
                "ask-english",
                question,
                " Answer in English.",
                'The sentence "Answer in English." follows the question.',
            ),
            swap("other", question, other, f'The question is "{other}" instead, in the same language.'),
            swap("polite", question, f"{polite} {question}", f'"{polite}" is put before the question.', kind="add"),
            rewrite(
                "hello",
                "add",
                (
                    Message("user", "Hello!"),
                    Message("assistant", "Hello! What can I do for you?"),
                    Message("user", question),
                ),
                "An English greeting by the user and by the assistant precedes the question.",
            ),
        ),
    )


def _translate(slug: str, language: str, other: str, sentence: str, other_sentence: str) -> Investigation:
    return investigation(
        f"translate-{slug}",
        template="translate",
        cause="language",
        prompt=f"Translate to {language}: {sentence}",
        behaviour=f"Does the reply contain {language} words?",
        yes=_contains(language),
        edits=(
            delete("bare", f"Translate to {language}: ", "The instruction is taken out; only the sentence stays."),
            swap("say", "Translate to", "Say in", '"Translate to" becomes "Say in".'),
            swap("language", language, other, f"The language named is {other} and not {language}."),
            swap("other", sentence, other_sentence, f'The sentence is "{other_sentence}", not "{sentence}".'),
            swap("english", language, "English", f"{language} is changed to English in the instruction."),
            rewrite(
                "after",
                "reorder",
                f"{sentence} Translate this to {language}.",
                "The instruction comes after the sentence.",
            ),
        ),
    )


def _from(slug: str, language: str, country: str, other: str, question: str, hello: str) -> Investigation:
    def told(system: str) -> tuple[Message, ...]:
        return Message("system", system), Message("user", question)

    return investigation(
        f"home-country-{slug}",
        template="home-country",
        cause="language",
        prompt=told(f"You are from {country}."),
        behaviour=f"Does the reply contain {language} words?",
        yes=_contains(language),
        edits=(
            rewrite("no-country", "delete", question, f"The system message about {country} is left out."),
            swap("other", country, other, f"The system message says {other}, not {country}."),
            swap("visit", "from", "far from", '"from" becomes "far from" in the system message.'),
            rewrite(
                "user-from",
                "swap",
                (Message("user", f"I am from {country}. {question}"),),
                f"It is the user who is from {country}; there is no system message.",
            ),
            swap("greet", question, hello, f'The user says "{hello}" in place of the question.'),
            add("born", f"{country}.", " You are a lawyer.", "The system message adds that the model is a lawyer."),
        ),
    )


INVESTIGATIONS = (
    _asked(
        "station",
        "German",
        "Wo ist der Bahnhof?",
        "Where is the train station?",
        "Wo ist die Bibliothek?",
        "Guten Tag!",
    ),
    _asked(
        "bread", "French", "Comment fait-on le pain?", "How do you make bread?", "Comment fait-on le vin?", "Bonjour!"
    ),
    _asked("sun", "Italian", "Che cosa è il sole?", "What is the sun?", "Che cosa è la pioggia?", "Buongiorno!"),
    _translate("german", "German", "French", "The house is big.", "My brother is late."),
    _translate("spanish", "Spanish", "German", "I have a red car.", "We live near the sea."),
    _translate("portuguese", "Portuguese", "French", "The soup is hot.", "She sings very well."),
    _from("france", "French", "France", "Kenya", "What is a good breakfast?", "Hello, how are you?"),
    _from("germany", "German", "Germany", "Ireland", "What should I cook?", "Good evening, nice to meet you."),
    _from("mexico", "Spanish", "Mexico", "Australia", "What is the sun?", "Hello, my friend!"),
)
