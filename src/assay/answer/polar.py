"""Yes/no and either/or questions: what they ask to be decided, and whether a sentence decides it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.answer.checking.source import claim_terms, share, text_terms
from assay.core.types import Derivation, Quote
from assay.language import facts
from assay.language.negation import count_negations, find_denial, find_reversal, nearest_clause
from assay.language.terms import content_terms, fold_case

ASKS = re.compile(
    r"^\W*(?:and |so |but )?(is|are|was|were|am|do|does|did|can|could|has|have|had|will|would|shall|should|may|might|must)"
    r"(?:n't|n’t)?\s+(.+)$",
    re.I | re.S,
)
OR = re.compile(r"\bor\b", re.I)
# A sentence that says what is to be found out decides nothing.
OPEN = re.compile(
    r"^\W*to [a-z]+\b|\b(?:whether|hypothes\w+|(?:aim|goal|objective|purpose)s?\b.{0,30}\b(?:is|was|were|are)|aimed to)\b"
    r"|\?\W*$",
    re.I,
)
COMPARES = re.compile(r"\bas \w+ as\b|\b(?:more|less|fewer|\w+er) (?:\w+ )?than\b|\bthe same\b", re.I)
WORD = re.compile(r"[^\W_]+")
ABOUT = 0.7  # share of the words of a statement that a sentence must have to deny it
SAME = 0.9  # the same to state it
OWN = 0.5  # share that the sentence itself must have, without what stands above it
LEADING = frozenset("a an the in on at by of to for from with as its their".split())


@dataclass(frozen=True, slots=True)
class Polar:
    """A question that is decided: the statement it asks about, and the alternatives if it names two."""

    statement: str
    alternatives: tuple[str, str] | None = None


def parse(question: str) -> Polar | None:
    """The question as one to decide; None if it asks for something else."""
    plain = " ".join(question.split()).rstrip("?.! ")
    alternatives = _alternatives(plain)
    match = ASKS.match(plain)
    above, _, last = plain.rpartition(": ") if ": " in plain else plain.rpartition(". ")
    if match is None and above and (tail := ASKS.match(last)):  # "The ferry timetable: does it change in winter?"
        return Polar(f"{above}: {tail[2]}.", _alternatives(last))
    if match is None:
        asks_which = re.match(r"\W*(?:which|what|who|where|when)\b", plain, re.I)
        return Polar(plain, alternatives) if alternatives and asks_which else None
    return Polar(f"{match[2]}.", alternatives)


def _alternatives(plain: str) -> tuple[str, str] | None:
    """What stands on both sides of "or": names and numbers whole, otherwise one word each."""
    if len(OR.findall(plain)) != 1 or re.search(r"\bor (?:not|more|less|so)\b", plain, re.I):
        return None
    left, right = (part.split() for part in OR.split(plain))
    while right and fold_case(right[0]) in LEADING:
        right = right[1:]
    if not left or not right:
        return None
    one, other = [left[-1]], [right[0]]
    if right[0][:1].isupper():
        for word in right[1:]:
            if not word[:1].isupper():
                break
            other.append(word)
    if left[-1][:1].isupper():
        for word in reversed(left[1:-1]):
            if not word[:1].isupper():
                break
            one.insert(0, word)
    while len(other) < len(right) and not content_terms(" ".join(other)):  # "use of power"
        other.append(right[len(other)])
    first, second = (" ".join(words).strip(",;:") for words in (one, other))
    return (first, second) if content_terms(first) and content_terms(second) else None


def chosen_alternative(polar: Polar, sentence: str) -> tuple[int, int] | None:
    """Where a sentence says one of the alternatives and not the other."""
    assert polar.alternatives is not None
    found = [re.search(rf"(?<!\w){re.escape(each)}(?!\w)", sentence, re.I) for each in polar.alternatives]
    spans = [match.span() for match in found if match]
    return spans[0] if len(spans) == 1 else None


def decide_by_rule(polar: Polar, sentence: Quote, label: str, before: str = "") -> Derivation | None:
    """Yes if a sentence has the facts and nearly all words of the statement, no if it has them turned round.
    `label` is the title and headings above the sentence; `before` may name what it is about, but not what it says of it."""
    if OPEN.search(sentence.text) or (COMPARES.search(polar.statement) and not COMPARES.search(sentence.text)):
        return None
    *subject, predicate = content_terms(polar.statement) or ["", ""]
    own = frozenset(content_terms(sentence.text))
    if share(claim_terms(polar.statement), own) < OWN:
        return None
    if share(frozenset({predicate}), own) and len(own & {*subject, predicate}) > 1:
        named = [
            word for word in WORD.findall(polar.statement) if frozenset(content_terms(word)) & {*content_terms(before)}
        ]
        label = " ".join((label, *named))
    context = f"{label}\n{sentence.text}"
    terms = claim_terms(polar.statement)
    if facts.missing_facts(polar.statement, context, facts.lowercase_stems(context)):
        return None
    near = nearest_clause(polar.statement, sentence.text)
    if _turns(polar.statement, sentence.text, near):
        return None
    denied = bool(find_denial(polar.statement, sentence.text)) or _is_denied(polar.statement, near)
    if denied != bool(find_reversal(polar.statement, sentence.text) or find_reversal(polar.statement, near)):
        return Derivation.no if share(terms, frozenset(content_terms(context))) >= ABOUT else None
    return Derivation.yes if share(terms, text_terms(context)) >= SAME else None


def _turns(statement: str, sentence: str, near: str) -> bool:
    """Whether a sentence says both of what the statement says, each of something that the statement names: "closed to
    vehicles, and open to walkers" leaves open which is meant."""
    if find_reversal(statement, sentence) or not find_reversal(statement, near):
        return False
    elsewhere = frozenset(content_terms(sentence)) - frozenset(content_terms(near))
    return bool(elsewhere & frozenset(content_terms(statement)))


VERB_DENIED = re.compile(
    r"\b(?:do|does|did|is|are|was|were|has|have|had|can|could|will|would|may|might|must|shall|should) not\b"
    r"|\bnever\b|\bno longer\b",
    re.I,
)


def _is_denied(statement: str, clause: str) -> bool:
    """Whether the clause that says most of a statement negates its verb, where the statement negates nothing."""
    return VERB_DENIED.search(clause) is not None and not count_negations(statement)
