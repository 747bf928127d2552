"""How two insights relate: a model's proposal verified against both documents, or a classification by rule. Pure.

A relation is kept only if quoted words of both documents, located in their text, support it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from assay.answer.checking.source import claim_terms, share, text_terms
from assay.answer.conflicts import pair as conflict
from assay.core.account import Insight, Pair, Relation, RelationSide, RelationType
from assay.core.types import Document, Evidence, Quote
from assay.evidence.assess import SAYS, whole
from assay.evidence.quotation import locate_quote, stands
from assay.evidence.weigh import quote
from assay.language import facts
from assay.language.clean import clean_text
from assay.language.injection import is_suspicious
from assay.language.negation import find_denial, find_reversal
from assay.language.sentences import is_statement, split_sentences, split_statements
from assay.language.terms import content_terms, fold_case

NEAR = 0.5  # similarity from which two sentences that name the same thing are about the same thing
MOULD = 0.6  # share of the smaller passage's words above which two passages follow one template
PARALLEL = 0.8  # cosine from which two sentences say the same, if no figure differs and neither negates the other
LONG = 2  # sentences per side
SHARED = 4  # words that a reason names
REASON, TITLE = 400, 120  # characters
REASON_SHARE = 0.4  # share of the words of a reason that the two sides must have
OPENING = 5  # lines in which a document identifies itself
SENTENCES = 12  # sentences of a passage that are compared with another
Documents = Callable[[str], Document | None]


@dataclass(frozen=True, slots=True)
class InsightPair:
    """A pair of insights with the evidence of each and the names of both documents."""

    pair: Pair
    left: Insight
    right: Insight
    ours: tuple[Evidence, ...]
    theirs: tuple[Evidence, ...]
    labels: tuple[str, str]
    question: str = ""  # the question that both answer, if it is the same

    @property
    def odd(self) -> bool:
        """Whether one side rests on a passage that looks like an instruction. Such pairs are not shown to a model."""
        return any(each.flagged for each in (*self.ours, *self.theirs))

    @property
    def name(self) -> str:
        return f"{self.pair.left} and {self.pair.right}"


@dataclass(frozen=True, slots=True)
class ProposedRelation:
    """A relation as proposed by a model."""

    type: RelationType
    reason: str
    left: str
    right: str


# --- verification of proposals --------------------------------------------------------------------------------------


def verify_proposal(
    couple: InsightPair, proposed: ProposedRelation, document: Documents, by: str, *, small: bool
) -> Relation | str:
    """The relation, if words of both documents support it; otherwise the reason why it is dropped. With a small
    model the rules take precedence: contradictions and reasons come from them."""
    if small and (ruled := find_contradiction(couple, document)) is not None:
        return ruled
    about = f"{proposed.type} between {couple.name}"
    if couple.left.doc_id == couple.right.doc_id:
        return f"{about}: both are of the same document"
    sides: list[RelationSide] = []
    for label, words, insight, evidence in (
        (couple.labels[0], proposed.left, couple.left, couple.ours),
        (couple.labels[1], proposed.right, couple.right, couple.theirs),
    ):
        side = _locate_side(words, insight, evidence, document)
        if isinstance(side, str):
            return f"{about}: {side} {label}"
        sides.append(side)
    left, right = _shorten_side(sides[0], sides[1]), _shorten_side(sides[1], sides[0])
    if small and not shared_words(left.quote.text, right.quote.text):
        return f"{about}: a small model says so, and the two have no word in common"
    at_odds = _disagreement(left, right, couple, document) if proposed.type is RelationType.contradiction else ""
    if proposed.type is RelationType.contradiction and small and not at_odds:
        return f"{about}: a small model says so, and no rule bears it out"
    given = "" if small else _usable_reason(couple, proposed)
    reason = given or write_reason(couple, _trusted_type(proposed.type, small=small), left, right, at_odds)
    return Relation(left, right, _trusted_type(proposed.type, small=small), reason, by)


def _trusted_type(tie: RelationType, *, small: bool) -> RelationType:
    """The type, weakened for a small model: it can tell that two insights are related, but guesses which goes
    further or is better."""
    return RelationType.complement if small and tie in (RelationType.extension, RelationType.improvement) else tie


def _shorten_side(side: RelationSide, other: RelationSide) -> RelationSide:
    """Shorten a side of more than two sentences to the one that shares most with the other side."""
    spans = split_sentences(side.quote.text)
    if len(spans) <= LONG:
        return side
    theirs = frozenset(content_terms(other.quote.text))
    start, end = max(spans, key=lambda span: len(theirs & frozenset(content_terms(side.quote.text[slice(*span)]))))
    at = side.quote.start
    return replace(side, quote=Quote(side.doc_id, at + start, at + end, side.quote.text[start:end]))


def _locate_side(words: str, insight: Insight, evidence: Sequence[Evidence], document: Documents) -> RelationSide | str:
    """Locate the words in the evidence of this side, widened to whole sentences; a string says why that failed."""
    if not words.strip():
        return "nothing is quoted from"
    if len(words.split()) < SAYS:
        return "too little is quoted from"
    # If several passages contain the words, prefer the evidence that quotes them.
    for each in sorted(evidence, key=lambda each: locate_quote(words, each.quote.text) is None):
        if each.passage.doc_id == insight.doc_id and (span := locate_quote(words, each.passage.text)):
            found = quote(each.passage, *whole(each.passage.text, *span))
            if not is_statement(found.text):
                return "too little is quoted from"
            if is_suspicious(found.text):
                return "an instruction is quoted from"
            source = document(insight.doc_id)
            if source is not None and stands(found, source):
                return RelationSide(insight.id, insight.doc_id, each.key, found)
    return "what is quoted does not stand in the evidence of"


def _disagreement(left: RelationSide, right: RelationSide, couple: InsightPair, document: Documents) -> str:
    """What the two sides disagree about by rule, given that they are about the same thing."""
    ours, theirs = left.quote.text, right.quote.text
    found = _disputed(left, right, couple, document, 1.0)
    return found or find_reversal(ours, theirs) or find_denial(ours, theirs)


def _disputed(left: RelationSide, right: RelationSide, couple: InsightPair, document: Documents, alike: float) -> str:
    from assay.answer.conflicts.dispute import Statement, describe_dispute

    around = {each.key: each.passage.text for each in (*couple.ours, *couple.theirs)}
    ours, theirs = (
        Statement(side.quote.text, around.get(side.key, ""), _opening(document(side.doc_id))) for side in (left, right)
    )
    if found := describe_dispute(ours, theirs, alike, couple.question):
        return found
    if are_same_template(ours.around, theirs.around):
        return ""
    return describe_dispute(replace(ours, around=""), replace(theirs, around=""), alike)


def are_same_template(ours: str, theirs: str) -> bool:
    """Whether two passages are nearly the same throughout. Then a difference may be due to their subject (two towns,
    each with its census). Independently written texts that share one sentence are about the same thing there."""
    mine, other = frozenset(content_terms(ours)), frozenset(content_terms(theirs))
    return len(mine & other) > MOULD * max(1, min(len(mine), len(other)))


def _opening(source: Document | None) -> str:
    """The first line of a document, independent of its title: it identifies issues of a series."""
    lines = (line.strip("#*>= \t") for line in source.text.split("\n", OPENING)[:OPENING]) if source else ()
    return next((line[:TITLE] for line in lines if line), "")


# Words that describe a relation; a reason may use them even if neither side has them.
RELATING = re.compile(
    r"\b(?:D\d+|left|right|both|former|latter|documents?|insights?|whereas|while|respectively|contradict\w*|disagree\w*"
    r"|conflict\w*|extend\w*|extension|complement\w*|improve\w*|improvement|parallel\w*|similar\w*|likewise|agree\w*"
    r"|differ\w*|contrast\w*|oppos\w*|builds?|adds?|further|focus\w*|address\w*|emphasi[sz]\w*|aspects?|sides?|same"
    r"|different|other|another|related?|relation\w*|compar\w*|approach\w*|topic|subject|describ\w*|discuss\w*|provid\w*)\b",
    re.I,
)


def _usable_reason(couple: InsightPair, proposed: ProposedRelation) -> str:
    """The given reason, if it states nothing that neither side says. The reason for a contradiction may negate one
    side."""
    reason = " ".join(clean_text(proposed.reason).split())
    stated = " ".join(RELATING.sub(" ", reason).split())
    evidence = (*couple.ours, *couple.theirs)
    words = "\n".join(f"{each.passage.above}\n{each.passage.text}" for each in evidence)
    is_grounded = share(claim_terms(stated), text_terms(words)) >= REASON_SHARE and not facts.missing_facts(
        stated, words
    )
    holds = len(reason) <= REASON and not is_suspicious(reason) and not _misattributes(couple, reason)
    return reason if holds and is_grounded else ""


LABELLED = re.compile(r"\b(D[1-9]\d*)\b((?:(?!\bD[1-9]\d*\b).)*)")


def _misattributes(couple: InsightPair, reason: str) -> bool:
    """Whether a reason misattributes: it names a third document, or assigns to one side a name, number or date that
    only the other has."""
    ours, theirs = (
        "\n".join(f"{each.passage.above}\n{each.passage.text}" for each in side)
        for side in (couple.ours, couple.theirs)
    )
    sides = {couple.labels[0]: (ours, theirs), couple.labels[1]: (theirs, ours)}
    for label, words in LABELLED.findall(reason):
        if label not in sides:
            if not re.search(rf"\b{label}\b", f"{ours}\n{theirs}"):  # "vitamin D3" is not a document label
                return True
        elif facts.missing_facts(words, sides[label][0]) and not facts.missing_facts(words, sides[label][1]):
            return True
    return False


# --- by rule --------------------------------------------------------------------------------------------------------


def by_rule(couple: InsightPair, document: Documents) -> Relation | None:
    """Contradiction if the two disagree in a number, date or negation: in the insights or, if both answer the same
    question, in their evidence. Parallel if they say the same, or the same of another time. Complement if they are
    similar and name the same thing. The other types cannot be detected by rule."""
    if (found := find_contradiction(couple, document)) is not None:
        return found
    if (both := _both_sides(couple, document)) is None:
        return None
    left, right = both
    openings = [_opening(document(side.doc_id)) for side in both]
    series = conflict.series(*openings)
    if couple.pair.alike >= PARALLEL and (series or _agree(left.quote.text, right.quote.text)):
        return Relation(left, right, RelationType.parallel, write_reason(couple, RelationType.parallel, left, right))
    beside = product(_sentences_of(left, couple.ours, document), _sentences_of(right, couple.theirs, document))
    for one, other in beside if couple.question else ():
        if about := _disputed(one, other, couple, document, 1.0):
            return Relation(
                one,
                other,
                RelationType.contradiction,
                write_reason(couple, RelationType.contradiction, one, other, about),
            )
    if couple.pair.alike >= NEAR and (named := _shared_name(left.quote.text, right.quote.text)):
        reason = f"{couple.labels[0]} and {couple.labels[1]} both speak of {named}; {RELATION_TEXT[RelationType.complement]}."
        return Relation(left, right, RelationType.complement, reason)
    return None


def find_contradiction(couple: InsightPair, document: Documents) -> Relation | None:
    """The contradiction between two insights that the rules detect in the quoted words, if any."""
    if (both := _both_sides(couple, document)) is None:
        return None
    left, right = both
    about = _disputed(left, right, couple, document, couple.pair.alike)
    reason = write_reason(couple, RelationType.contradiction, left, right, about)
    return Relation(left, right, RelationType.contradiction, reason) if about else None


def _both_sides(couple: InsightPair, document: Documents) -> tuple[RelationSide, RelationSide] | None:
    left = _side_of(couple.left, couple.ours, document)
    right = _side_of(couple.right, couple.theirs, document)
    return (left, right) if left and right and left.doc_id != right.doc_id else None


def _side_of(insight: Insight, evidence: Sequence[Evidence], document: Documents) -> RelationSide | None:
    """An insight as a quotation of its document: itself, or the best one that it cites."""
    source = document(insight.doc_id)
    words = insight.claim.quote or (evidence[0].quote if evidence else None)
    if not evidence or words is None or source is None or not stands(words, source) or is_suspicious(words.text):
        return None
    return RelationSide(insight.id, insight.doc_id, evidence[0].key, words)


def _sentences_of(side: RelationSide, evidence: Sequence[Evidence], document: Documents) -> list[RelationSide]:
    """The sentences of the evidence of a side."""
    source = document(side.doc_id)
    found = [
        replace(side, key=each.key, quote=quote(each.passage, *span))
        for each in evidence
        for span in split_statements(each.passage.text)[:SENTENCES]
        if each.passage.doc_id == side.doc_id
    ]
    return [
        each
        for each in found
        if source is not None
        and stands(each.quote, source)
        and is_statement(each.quote.text)
        and not is_suspicious(each.quote.text)
    ]


def _shared_name(left: str, right: str) -> str:
    """A name, or a designation such as KX-40, that both contain."""
    theirs = {fold_case(name) for name in facts.names(right)}
    return next((name for name in facts.names(left) if fold_case(name) in theirs), "")


def _agree(left: str, right: str) -> bool:
    """Whether two similar sentences have the same figures and neither negates the other."""
    ours, theirs = conflict.numbers(left), conflict.numbers(right)
    return ours == theirs and not find_denial(left, right) and not find_reversal(left, right)


RELATION_TEXT = {
    RelationType.contradiction: "they cannot both be right",
    RelationType.extension: "one goes further than the other",
    RelationType.improvement: "one betters the other",
    RelationType.complement: "each says what the other does not",
    RelationType.parallel: "they say much the same",
}


def shared_words(left: str, right: str) -> list[str]:
    """The content words that both have, as the first spells them."""
    known = frozenset(content_terms(right))
    shared: dict[str, str] = {}
    for word in re.findall(r"[^\W\d_][\w-]*", left):
        stem = "".join(content_terms(word)[:1])
        if stem and stem in known:
            shared.setdefault(stem, word.lower() if word.istitle() else word)
    return list(shared.values())


def write_reason(
    couple: InsightPair, tie: RelationType, left: RelationSide, right: RelationSide, about: str = ""
) -> str:
    """A reason in plain words that names only words that both sides have, and what they disagree about."""
    spoken = ", ".join(shared_words(left.quote.text, right.quote.text)[:SHARED])
    ours, theirs = couple.labels
    first = f"{ours} and {theirs} both speak of {spoken}" if spoken else f"{ours} and {theirs} were held together"
    mine, parted, other = about.partition(" / ")
    if parted:
        return f"{first}; {ours} says {mine}, {theirs} says {other}."
    if about:
        return f"{first}; one of them denies what the other says."
    return f"{first}; {RELATION_TEXT[tie]}."
