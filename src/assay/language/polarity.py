"""Whether two sentences say yes to the same thing: negations, and words that point one way or the other. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from assay.language import text

NEGATIONS = frozenset(
    (
        "no not never none nobody nothing neither nor without cannot cant lack lacks lacked lacking unable absent absence "
        "hardly scarcely rarely barely seldom nowhere"
    ).split()
)
# Said in several words, made one; "not only" and "whether or not" deny nothing.
PHRASES = (
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"\bnot only\b|\bwhether or not\b|\bno\. ?(?=\d)"), " "),
    (re.compile(r"\b(?:at most|no more than|no later than|up to|not more than)\b"), " atmost "),
    (re.compile(r"\b(?:at least|no less than|no fewer than|no earlier than|not less than)\b"), " atleast "),
    (re.compile(r"\bfail(?:s|ed|ing)? to\b"), " not "),
)
CLAUSE = re.compile(
    r"[;:.!?()]|,|\b(?:but|though|although|however|while|whereas|because|since|unless|except|which|who|yet)\b", re.I
)
WORD = re.compile(r"[^\W_]+")
SCOPE = 3  # words that carry meaning, after a negation, that it is surely about

# One side against the other; forms with the same stem are the same word.
OPPOSITES: tuple[tuple[str, str], ...] = (
    ("increase rise rose risen grow grew growth climb gain raise surge",
     "decrease fall fell fallen decline drop shrink shrank reduce reduction lower lose lost"),
    ("more greater higher larger bigger above exceed highest largest maximum atleast",
     "less fewer lower smaller below lowest smallest minimum atmost"),
    ("before earlier prior precede", "after later follow"),
    ("longer longest", "shorter shortest"),
    ("older oldest", "younger youngest"),
    ("faster fastest quicker", "slower slowest"),
    ("better best improve improvement", "worse worst worsen deteriorate"),
    ("allow permit", "forbid forbidden prohibit ban deny"),
    ("accept approve approval", "reject rejection"),
    ("pass succeed success", "fail failure"),
    ("include", "exclude"),
    ("require mandatory must compulsory", "optional voluntary"),
    ("support confirm", "oppose refute contradict"),
    ("activate promote enhance stimulate", "inhibit suppress block impair"),
    ("always all every", "never none"),
    ("open begin began start", "close end stop"),
    ("positive", "negative"),
    ("north northern", "south southern"),
    ("east eastern", "west western"),
    ("buy bought acquire", "sell sold"),
    ("true correct", "false incorrect wrong"),
    ("high", "low"),
    ("safe", "dangerous hazardous"),
)  # fmt: skip
SIDES: tuple[tuple[str, int, int], ...] = tuple(
    (text.stem(word), pair, side)
    for pair, both in enumerate(OPPOSITES)
    for side, words in enumerate(both)
    for word in words.split()
)
POINTS = {stem: frozenset((pair, side) for own, pair, side in SIDES if own == stem) for stem, _, _ in SIDES}
SMALL = frozenset("more less before after above below always never all none most least".split())  # that point, too
PREFIXES = ("un", "in", "im", "il", "ir", "non", "dis")
# "inform" does not deny "form".
ALONE = frozenset(
    (
        "side form forms formed formation formal put come vest vested deed stance tend tended press port ports ported cover "
        "covered play played count counted less prove proved pose posed part crease creased tense strict ease eases pact flame "
        "tension tact trench sure sured here land migrate position"
    ).split()
)


@dataclass(frozen=True, slots=True)
class Clause:
    """What a stretch between two commas speaks of, and what of it is denied."""

    terms: frozenset[str]
    denied: frozenset[str]
    negative: bool


def clauses(words: str) -> list[Clause]:
    found: list[Clause] = []
    for piece in CLAUSE.split(_plain(words)):
        if own := WORD.findall(piece):
            found.append(_clause(own))
    return found


def _plain(words: str) -> str:
    """Folded, with phrases of one meaning as one word."""
    plain = text.fold(words).replace("’", "'")
    for pattern, instead in PHRASES:
        plain = pattern.sub(instead, plain)
    return plain


def _clause(words: Sequence[str]) -> Clause:
    """A clause denies what follows a negation or, if nothing does ("the cracks were never there"), what stands before it; "no"
    twice says yes, and then nothing is surely denied."""
    places = [place for place, word in enumerate(words) if word in NEGATIONS]
    denied: list[str] = []
    for place in places:
        follows = [term for word in words[place + 1 :] for term in text.terms(word)][:SCOPE]
        denied += follows or [term for word in words[:place] for term in text.terms(word)]
    meant = frozenset(text.terms(" ".join(word for word in words if word not in NEGATIONS)))
    return Clause(meant, frozenset(denied) & meant if len(places) == 1 else frozenset(), bool(places))


def denial(claim: str, source: str) -> str:
    """A word that one denies and the other affirms; empty if there is none."""
    ours, theirs = clauses(claim), clauses(source)
    return _denied_by(ours, theirs) or _denied_by(theirs, ours)


def _denied_by(one: Sequence[Clause], other: Sequence[Clause]) -> str:
    """A word that `one` surely denies and `other` speaks of, but nowhere together with a negation. What `one` also says
    without denying it is not held against anybody."""
    for clause in one:
        for term in sorted(clause.denied):
            if any(term in each.terms and not each.negative for each in one):
                continue
            spoken = [each for each in other if term in each.terms]
            if spoken and not any(each.negative for each in spoken):
                return term
    return ""


def turn(claim: str, source: str) -> str:
    """Words that point one way in the claim and the other way in its source: "rose / fell"."""
    ours, theirs = directions(claim), directions(source)
    for pair in sorted(ours.keys() & theirs.keys()):
        mine, other = ours[pair], theirs[pair]
        if not mine.keys() & other.keys():
            return f"{min(mine.values())} / {min(other.values())}"
    return _prefixed(claim, source)


def directions(words: str) -> dict[int, dict[int, str]]:
    """Pair of opposites → side → the word that takes it."""
    found: dict[int, dict[int, str]] = {}
    for word in WORD.findall(_plain(words)):
        for pair, side in POINTS.get(text.stem(word), ()):
            found.setdefault(pair, {})[side] = word
    return found


def unclear(claim: str, source: str) -> str:
    """A word that points one way, where its source points the other way, or both ways and not this way beside the same words:
    "decreased lymphocytes" where it says "increased lymphocytes, decreased count"."""
    sides, there = directions(source), _pointed(source)
    for word, points, near in _pointed(claim):
        for pair, side in points:
            own = sides.get(pair, {})
            beside = any((pair, side) in other and near & about for _, other, about in there)
            if (own and side not in own) or (len(own) > 1 and not beside):
                return word
    return ""


def _pointed(words: str) -> list[tuple[str, frozenset[tuple[int, int]], frozenset[str]]]:
    """Each word that points somewhere, where it points, and the words beside it that carry meaning."""
    told = [
        (word, text.stem(word)) for word in WORD.findall(_plain(words)) if word not in text.STOP_WORDS or word in SMALL
    ]
    found: list[tuple[str, frozenset[tuple[int, int]], frozenset[str]]] = []
    for place, (word, stem) in enumerate(told):
        if stem in POINTS:
            after = [own for _, own in told[place + 1 :] if own not in POINTS][:1]
            before = [own for _, own in told[:place] if own not in POINTS][-1:]
            found.append((word, POINTS[stem], frozenset(after or before)))
    return found


def negations(words: str) -> int:
    """How often something is denied."""
    return sum(word in NEGATIONS for word in WORD.findall(_plain(words)))


def _prefixed(claim: str, source: str) -> str:
    """ "safe / unsafe": a word of one that the other has only with a prefix that denies it."""
    ours, theirs = (frozenset(WORD.findall(text.fold(words))) for words in (claim, source))
    for left, right in ((ours, theirs), (theirs, ours)):
        for word in sorted(left - right):
            for prefix in PREFIXES:
                if len(word) > 3 and word not in ALONE and prefix + word in right - left:
                    return f"{word} / {prefix}{word}"
    return ""
