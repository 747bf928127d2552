"""Splits model output into claims of one sentence each, with their citations. Pure.

Keys that match no evidence are removed and reported. Headings and gaps that state facts of their own are dropped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel

from assay.core.printable import clean_text
from assay.core.types import Claim, Conflict, Evidence
from assay.language import facts
from assay.language.injection import is_suspicious
from assay.language.sentences import Span, split_sentences
from assay.language.terms import content_terms, missing_terms
from assay.models.cost import estimate_tokens, fit_to_tokens, shorten_path
from assay.prompts import context_label, fence
from assay.tables.cells import TablesOf

GROUP = re.compile(r"(?<!\s)\s*+([\[(【⟦])([^\[\]()【】⟦⟧]{1,200})[\])】⟧]")
KEY = re.compile(r"[0-9a-f]{8}", re.I)
LABEL = re.compile(
    r"^(?:keys?|cites?|cited|citations?|sources?|refs?|see|evidence|quoted)\b\s*:?\s*|[\"'`#*“”]+|\.$", re.I
)
REFERENCE = re.compile(r"\d{1,3}(?:\s*[-–]\s*\d{1,3})?")
LONGEST = 600  # characters of a claim; longer text is not a sentence
ROW = " | "


@dataclass(frozen=True, slots=True)
class ExtractedCitations:
    """Text without its citations; `cites` are pairs of offset and key."""

    words: str
    cites: tuple[tuple[int, str], ...] = ()
    stray: tuple[str, ...] = ()


def extract_citations(words: str, known: Collection[str]) -> ExtractedCitations:
    """The words without citations. Anything that looks like a citation but is not one of this run's ("[3]", an invented
    key) is removed too: left in the text, it would pass for one of our citation numbers."""
    text, at = "", 0
    cites: list[tuple[int, str]] = []
    stray: list[str] = []
    for match in GROUP.finditer(words):
        keys = _keys(match[2], known, square=match[1] != "(")
        if keys is None:
            continue
        text += words[at : match.start()]
        at = match.end()
        cites += [(len(text), key) for key in keys if key in known]
        stray += [key for key in keys if key not in known]
    return _without_bare(ExtractedCitations(text + words[at:], tuple(cites), tuple(stray)), known)


def _keys(inside: str, known: Collection[str], *, square: bool) -> list[str] | None:
    """The keys of a bracketed group; None if the brackets contain words. "(20240517)" may be a date: in round brackets
    a key of digits must be known."""
    apart = re.split(r"[,;|&]|(?<!\s)\s++and\s+", LABEL.sub("", inside.strip()))
    parts = [LABEL.sub("", part.strip()).strip() for part in apart]
    parts = [piece for part in parts for piece in part.split() if piece]
    if not parts:
        return None
    keys = [part.lower() if KEY.fullmatch(part) else part for part in parts]
    if square and all(KEY.fullmatch(key) or REFERENCE.fullmatch(key) for key in keys):
        return keys
    return keys if all(key in known or (KEY.fullmatch(key) and not key.isdigit()) for key in keys) else None


def _without_bare(found: ExtractedCitations, known: Collection[str]) -> ExtractedCitations:
    """A known key in the text without brackets is a citation too."""
    words, cites = found.words, list(found.cites)
    for match in reversed(list(re.finditer(r"(?<!\s)\s*+\b[0-9a-f]{8}\b", words, re.I))):
        key = match[0].strip().lower()
        if key in known:
            gone = match.end() - match.start()
            words = words[: match.start()] + words[match.end() :]
            cites = [(at - gone if at >= match.end() else at, cite) for at, cite in cites] + [(match.start(), key)]
    return ExtractedCitations(words, tuple(sorted(cites)), found.stray)


def split_claims(
    words: str, cites: Iterable[str], known: Collection[str], *, whole: bool = False
) -> tuple[tuple[Claim, ...], tuple[str, ...]]:
    """The sentences of one written claim, each with the keys inside it or, failing that, those of the whole claim; and
    the keys that were removed. A table row stays whole, and so does what a capable model calls one claim. A sentence
    without content ("Yes.") cannot be checked and is left out."""
    found = extract_citations(clean_text(words), known)
    given = [cite.strip().lower().strip("[]() ") for cite in cites]
    own = tuple(dict.fromkeys(cite for cite in given if cite in known))
    stray = (*found.stray, *(cite for cite in given if cite not in known))
    whole = ROW in found.words or (whole and len(found.words) <= LONGEST)
    spans = [(0, len(found.words))] if whole else split_sentences(found.words)
    claims: list[Claim] = []
    following = [*(start for start, _ in spans[1:]), math.inf]
    for place, ((start, end), after) in enumerate(zip(spans, following, strict=False)):
        sentence = _tidy(found.words[start:end])
        # A citation belongs to the sentence that it is in or directly after.
        inline = [key for at, key in found.cites if (start < at or place == 0) and at <= after]
        if content_terms(sentence) and len(sentence) <= LONGEST:
            claims.append(Claim(sentence, tuple(dict.fromkeys(inline)) or own))
    return tuple(claims), tuple(dict.fromkeys(stray))


def _tidy(words: str) -> str:
    words = re.sub(r"^\s*(?:[-*•‣▪]|\d{1,2}[.)])\s+", "", " ".join(words.split()))
    return re.sub(r"(?<!\s)\s++([.,;:!?])", r"\1", words).strip()


# --- what carries no fact -------------------------------------------------------------------------------------------

HEADING_WORDS = 8
COLUMN_WORDS = 2  # of a column whose words are nowhere
LONGEST_GAP = 200  # characters
GAPS = 6
STATES = re.compile(
    r"\b(?:is|are|was|were|be|been|do|does|did|has|have|had|can|cannot|could|will|would|shall|should|must|not|never|none"
    r"|nor|no(?!\.))\b|n['’]t\b",
    re.I,
)  # a topic has no such word
PLAIN = frozenset(
    content_terms(
        "amount answer background breakdown change comparison conclusion conflict context cost data date detail "
        "difference document effect evidence exact example figure finding information item key limit method metric name "
        "number opinion other overview period point question rate reason result risk rule share side similarity source "
        "step summary total trend value view year"
    )
)


def read_heading(
    words: str, question: str, evidence: Sequence[Evidence], own: Sequence[Claim]
) -> tuple[str, tuple[Claim, ...]]:
    """The heading. One that may state something is also the first claim of its block, on what the others cite: it is
    delivered as a heading if that claim holds."""
    tidy = _tidy_heading(words, evidence)
    if not tidy or accept_heading(words, question, evidence):
        return tidy, ()
    if ROW in tidy:
        return "", ()
    return tidy, (Claim(tidy, tuple(dict.fromkeys(key for claim in own for key in claim.cites))),)


def accept_heading(words: str, question: str, evidence: Sequence[Evidence]) -> str:
    """The heading if it states nothing of its own: short, without a verb, in words of the question or plain ones such as
    "Summary". A table's columns may also have words of the evidence or one or two others, but no other fact. Empty
    otherwise."""
    tidy = _tidy_heading(words, evidence)
    cells = tidy.split("|")
    if not tidy or is_suspicious(tidy) or any(len(cell.split()) > HEADING_WORDS for cell in cells):
        return ""
    if STATES.search(tidy) and not tidy.endswith("?"):
        return ""
    usual = PLAIN | set(content_terms(question))
    if len(cells) == 1:
        return tidy if set(content_terms(tidy)) <= usual else ""
    known = known_words(question, evidence)
    usual |= set(content_terms(known))
    for cell in map(str.strip, cells):
        strange = len(cell.split()) > COLUMN_WORDS and not set(content_terms(cell)) <= usual
        if strange or facts.missing_facts(cell, known, facts.lowercase_stems(cell.lower())):
            return ""
    return tidy


def _tidy_heading(words: str, evidence: Sequence[Evidence]) -> str:
    text = extract_citations(clean_text(words), {each.key for each in evidence}).words
    return _tidy(text).strip("#*: ").strip()


def known_words(question: str, evidence: Sequence[Evidence]) -> str:
    return f"{question}\n" + "\n".join(f"{each.passage.above}\n{each.passage.text}" for each in evidence)


def accept_gap(words: str, known: str, keys: Collection[str] = ()) -> str:
    """What a model says is missing, if it is one clause in words of `known` and plain ones, and no instruction; empty
    otherwise. It must not be a way to state something unchecked."""
    clause = _tidy(extract_citations(clean_text(words), keys).words).rstrip(". ")
    if len(clause) > LONGEST_GAP or len(split_sentences(clause)) > 1 or is_suspicious(clause):
        return ""
    strange = missing_terms(frozenset(content_terms(clause)), PLAIN | frozenset(content_terms(known)))
    return "" if strange or facts.missing_facts(clause, known, facts.lowercase_stems(known)) else clause


class Disputed(BaseModel, extra="forbid"):
    """A conflict as a model names it."""

    left: str
    right: str
    about: str = ""


def read_conflict(each: Disputed, question: str, evidence: Sequence[Evidence]) -> Conflict | None:
    """A conflict between two different pieces of evidence; it is described only in words they contain."""
    sides = [one for key in (each.left, each.right) for one in evidence if one.key == key.strip().lower()]
    if len(sides) != 2 or sides[0].key == sides[1].key:
        return None
    known = known_words(question, sides)
    return Conflict(sides[0].key, sides[1].key, accept_gap(each.about, known))


FLAGGED = "reads like an instruction, and is not one"


@dataclass(frozen=True, slots=True)
class Sources:
    """Metadata of documents, by document id, and the tables of their passages; `scanned` are those that OCR read in part."""

    titles: Mapping[str, str] = field(default_factory=dict)
    dates: Mapping[str, str] = field(default_factory=dict)
    tables: TablesOf = lambda _: None
    scanned: frozenset[str] = frozenset()


def quotations(evidence: Sequence[Evidence], sources: Sources, mark: str, room: int, *, cells: bool = False) -> str:
    """The evidence that fits, fenced: first every quotation, then as much of the surrounding passages as fits, the best
    first. With `cells`, rows and columns of tables have ids."""
    shown: dict[str, str] = {}
    left = room
    for each in evidence:
        fenced = _fenced(each, sources, mark, _quoted_span(each), cells=cells)
        if (cost := _cost(fenced)) <= left:
            shown[each.key] = fenced
            left -= cost
    if evidence and not shown and (cut := _cut(evidence[0], sources, mark, room)):
        shown[evidence[0].key] = cut
        left = 0
    for each in evidence:
        if each.key in shown and left > 0:
            have = _cost(shown[each.key])
            between_marks = "\n".join(shown[each.key].split("\n")[1:-1])
            span = widen_quotation(each, left + estimate_tokens(between_marks))
            wider = _fenced(each, sources, mark, span, cells=cells)
            if have < (cost := _cost(wider)) <= have + left:
                shown[each.key] = wider
                left -= cost - have
    return "\n".join(shown.values())


def _quoted_span(evidence: Evidence) -> Span:
    return evidence.quote.start - evidence.passage.start, evidence.quote.end - evidence.passage.start


def _fenced(evidence: Evidence, sources: Sources, mark: str, span: Span, *, cells: bool = False) -> str:
    """A span of the passage under its label."""
    passage = evidence.passage
    words = passage.text[slice(*span)]
    tables = sources.tables(passage) if cells else None
    if tables:
        words = tables.mark(words, passage.start + span[0])
    return fence(mark, _label(evidence, sources, tables.label if tables else ""), words)


def _label(evidence: Evidence, sources: Sources, columns: str = "") -> str:
    doc = evidence.passage.doc_id
    label = (
        f"key {evidence.key}",
        fit_to_tokens(sources.titles.get(doc, ""), 60),
        sources.dates.get(doc, ""),
        shorten_path(evidence.passage.heading, 40),
        context_label(evidence.passage).strip(),
        columns,
        FLAGGED if evidence.flagged else "",
    )
    return " · ".join(part for part in label if part)


def _cost(fenced: str) -> int:
    return estimate_tokens(fenced) + 1


def _cut(evidence: Evidence, sources: Sources, mark: str, room: int) -> str:
    """The beginning of a quotation that is too long by itself."""
    frame = _cost(_fenced(evidence, sources, mark, (0, 0)))
    if room - frame < 8:
        return ""
    return fence(mark, _label(evidence, sources), fit_to_tokens(evidence.quote.text, room - frame - 2))


def widen_quotation(evidence: Evidence, room: int) -> Span:
    """The span of the quotation with as many whole surrounding sentences of its passage as fit into `room` tokens."""
    passage = evidence.passage.text
    if estimate_tokens(passage) <= room:
        return 0, len(passage)
    start, end = _quoted_span(evidence)
    spans = split_sentences(passage)
    grown = True
    while grown:
        grown = False
        for side in ("after", "before"):
            if side == "after":
                wider = (start, min((last for _, last in spans if last > end), default=end))
            else:
                wider = (max((first for first, _ in spans if first < start), default=start), end)
            if wider != (start, end) and estimate_tokens(passage[slice(*wider)]) <= room:
                (start, end), grown = wider, True
    return start, end
