"""Whether two sentences give different values for the same thing. In doubt there is no conflict. Pure."""

from __future__ import annotations

import re

from assay.language.particulars import CLAUSE
from assay.language.terms import content_terms, fold_case, stem_word
from assay.language.words import stop_words

ALIKE = 0.5  # similarity by meaning
SHARED = 0.6  # of the question's words that either sentence has, both must have this share
ASKS = re.compile(
    r"\bhow (?:many|much|long|far|old|often|large|high|fast|big|tall|deep|soon|frequently)\b|\bwhen\b|\bas often\b"
    r"|\bwhat (?:is |was |are |were )?(?:the )?(?:[\w-]+ )?"
    r"(?:year|date|number|limit|time|timeout|rate|share|percentage|period|interval|price|cost|amount|deadline)\b",
    re.I,
)
MEASURE = re.compile(r"(\d[\d,.]{0,40}+)\s*+(%|[^\W\d_]+)")
NUMBER = re.compile(r"\d[\d,.]*")
MONTHS = frozenset(
    (
        "january february march april may june july august september october november december monday tuesday "
        "wednesday thursday friday saturday sunday"
    ).split()
)
WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
TitledSentence = tuple[str, str]  # a sentence, and the titles above it


def between(question: str, left: TitledSentence, right: TitledSentence, alike: float) -> str:
    """What they disagree about, "30 days / 90 days"; empty if they agree or are about different things."""
    if alike < ALIKE or not ASKS.search(question) or not _same_thing(question, left, right):
        return ""
    ours, theirs = measures(left[0]), measures(right[0])
    for unit in sorted(ours.keys() & theirs.keys()):
        if not ours[unit].keys() & theirs[unit].keys():
            return f"{min(ours[unit].values())} / {min(theirs[unit].values())}"
    return ""


def _same_thing(question: str, left: TitledSentence, right: TitledSentence) -> bool:
    """Both have the same words of the question, the same names and days, and are not two issues of a series."""
    asked = frozenset(content_terms(question))
    ours, theirs = (asked & frozenset(content_terms(sentence)) for sentence, _ in (left, right))
    common = len(ours & theirs)
    if common < 2 or common < SHARED * max(len(ours), len(theirs)):
        return False
    return marks(left[0]) == marks(right[0]) and not series(left[1], right[1])


def marks(sentence: str) -> frozenset[str]:
    """What distinguishes one case from another: names inside the sentence, months and days, designations like KX-40."""
    words = WORD.findall(CLAUSE.sub("", sentence))
    inside = (word for word in words[1:] if word[0].isupper())
    coded = (word for word in words if any(c.isdigit() for c in word) and any(c.isalpha() for c in word))
    dated = (word for word in words if word.lower() in MONTHS)
    return frozenset(fold_case(word) for word in (*inside, *coded, *dated))


def series(left: str, right: str) -> bool:
    """Whether titles differ only in a date or number: each issue is about its own time."""
    ours, theirs = (frozenset(WORD.findall(fold_case(each))) for each in (left, right))
    return bool(ours ^ theirs) and all(word in MONTHS or word.isdigit() for word in ours ^ theirs)


def measures(sentence: str) -> dict[str, dict[str, str]]:
    """Unit → number → as written: "kept for 30 days" has 30 under the stem of days, written "30 days"."""
    found: dict[str, dict[str, str]] = {}
    for number, unit in MEASURE.findall(CLAUSE.sub("", sentence)):
        if unit.lower() not in MONTHS and unit.lower() not in stop_words():
            value = number.rstrip(".,")
            found.setdefault(stem_word(unit.lower()), {})[value] = f"{value} {unit}"
    return found


def numbers(sentence: str) -> frozenset[str]:
    return frozenset(number.rstrip(".,") for number in NUMBER.findall(sentence))
