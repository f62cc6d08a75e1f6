"""The last resort: a probability that was stated in prose and never submitted.

Invariant: a number counts only if it was stated as the probability that the claim is true. The rule, in order:

1. Quoted passages and block quotes are dropped, and so are marks of emphasis.
2. Text that is nothing but one number is that number.
3. Else the last number that directly follows an explicit label ("p_true", "probability", "my answer", "final
   answer", "credence", "confidence", with or without "that the claim is true", then "is", ":", "=" or "about").
4. Else, in the last sentence that speaks of chance ("I'd say", "likely", "chance", ...), its only number; none if
   that sentence holds several, if it speaks of the claim being false or of no change, or if the claim holds the same
   number (its threshold, its baseline), for then it may be quoted from there.

A number is a decimal in [0, 1] with a point, or 0 to 100 with a percent sign; after a label also a bare 0 or 1. It
never counts as part of a range, as "points", as a rate or baseline, or as a share of responses. When a rule finds a
number that does not count, the later rules are not tried on an earlier number: what was said last is what was meant,
or nothing is.
"""

import re

from agents.answer import Reading, read_submitted

_RANGE_BEFORE = r"(?<![\d.])(?<![\d%][-–—])(?<![\d%]\s[-–—]\s)(?<![\d%] to )(?<![\d%] or )(?<![\d%] and )"
_VALUE = rf"{_RANGE_BEFORE}(?P<number>\d{{1,3}}(?:\.\d+)?\s?(?:%|percent\b)|(?:0|1)?\.\d+)"
_NOT_FOLLOWED = (
    r"(?!\d)(?!\s*(?:[-–—]|to\b|or\b|and\b)\s*\.?\d)"
    r"(?!(?:age)?[\s-]*(?:points?|pp|p\.p\.)\b)"
    r"(?!\s*(?:of|in)\s+(?:the\s+|all\s+)?(?:\w+\s+)?(?:responses?|completions?|samples?|time|cases|runs)\b)"
    r"(?!\s*(?:baseline|rate)\b)(?!\s*(?:in|out of|/)\s*\d)"
)
_LABEL = (
    r"(?:\bp_true\b|\bp\((?:true|claim)\)|\bprobability\b|\bcredence\b|\bconfidence\b|\blikelihood\b"
    r"|\bfinal answer\b|\bmy (?:final |best )?(?:answer|estimate|guess)\b)"
)
_LINK = (
    r"[\"']?\s*(?:that\s+(?:the|this)\s+claim\s+(?:is\s+true|holds)\s*)?(?:of\s+(?:the|this)\s+claim\s*)?"
    r"(?:is|was|as|of|at|[:=≈→])?\s*(?:therefore\s+|then\s+)?(?:about|around|roughly|approximately|near|~|≈)?\s*"
)
_EXPLICIT = re.compile(_LABEL + _LINK + rf"(?:{_VALUE}|(?P<certain>[01])(?![\d.]*\d|\s?%))", re.IGNORECASE)
_LOOSE = re.compile(_VALUE, re.IGNORECASE)
_COUNTS = re.compile(_NOT_FOLLOWED, re.IGNORECASE)
_CHANCE = re.compile(
    r"\b(?:I(?:'d|’d| would| will|'ll|’ll)? (?:say|put|estimate|guess|go with|answer)|likely|chance|probability"
    r"|likelihood|confident|confidence|credence|odds)\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"\b(?:false|untrue|incorrect|wrong|unchanged|not (?:be )?true|(?:no|not|n't|n’t|never) (?:\w+ )?changed?"
    r"|stays? the same|does(?: not|n't|n’t) hold|against the claim)\b",
    re.IGNORECASE,
)
_ABOUT_RATE = re.compile(
    r"\b(?:baseline|rate|threshold|at least|drops?|falls?|rises?|occurs?|from)\b[^.;]*$", re.IGNORECASE
)
_QUOTES = re.compile(r"^\s*>[^\n]*$|\"[^\"\n]*\s[^\"\n]*\"|“[^”]*”|```.*?```", re.MULTILINE | re.DOTALL)
_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")


def _counts(text: str, end: int) -> bool:
    return _COUNTS.match(text, end) is not None


def _value(text: str) -> Reading:
    reading = read_submitted(text)
    return reading if reading.p_true is not None else Reading(None, "the number in the prose is not a probability")


def _explicit(text: str) -> Reading | None:
    matches = list(_EXPLICIT.finditer(text))
    if not matches:
        return None
    last = matches[-1]
    rest = _SENTENCES.split(text[last.end() :], maxsplit=1)[0]
    denied = re.match(r"\s*(?:that|for)\b", rest) is not None and _DENIAL.search(rest) is not None
    if denied or not _counts(text, last.end()):
        return Reading(None, "the last labelled number in the prose is not the probability that the claim is true")
    return _value(last.group("number") or last.group("certain"))


def _loose(text: str, claim: str) -> Reading | None:
    sentences = [part for part in _SENTENCES.split(text) if _CHANCE.search(part) and _LOOSE.search(part)]
    if not sentences:
        return None
    sentence = sentences[-1]
    found = [match for match in _LOOSE.finditer(sentence) if _counts(sentence, match.end())]
    if len(found) != 1 or len(list(_LOOSE.finditer(sentence))) != 1 or _DENIAL.search(sentence):
        return Reading(None, "the prose states no single probability that the claim is true")
    number = found[0].group("number")
    quoted = re.search(rf"(?<![\d.]){re.escape(number.rstrip('% '))}(?!\d)", claim) is not None
    if quoted or _ABOUT_RATE.search(sentence[: found[0].start()]):
        return Reading(None, "the only number in the prose may be quoted from the claim")
    return _value(number)


def read_prose(text: str, claim: str) -> Reading | None:
    """Read the probability that `text` states, by the rule at the top of this module; None when it states no number.

    Args:
        text: What the predictor wrote.
        claim: The message that the predictor was asked; numbers in it are not taken on rule 4.
    """
    bare = _QUOTES.sub(" ", text.replace("*", "").replace("`", "")).strip()
    alone = read_submitted(bare.strip("[](){} .")) if re.search(r"\.\d|%", bare) else Reading(None)
    if alone.p_true is not None:
        return alone
    return _explicit(bare) or _loose(bare, claim)
