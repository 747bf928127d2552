"""Events that occur only in a synthesis. Part of the union in `core/events`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.core.account import Coverage, Insight, Pair, Portrait, Question, Relation, SpineSentence, Theme, Translation
from assay.core.events.maker import RULES, Fallbacks
from assay.core.types import Passage, Searched


@dataclass(frozen=True, slots=True)
class Found:
    """A passage as returned by one call: its rank in that result and its score."""

    passage: Passage
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Described:
    """The metadata of a document was determined: title, authors, year, abstract."""

    portrait: Portrait
    fallback: Fallbacks = None


@dataclass(frozen=True, slots=True)
class Questioned:
    """Questions generated from one document (`doc_id`) or from all documents together (`documents`), before merging.
    In the latter case the questions may contain words of those documents."""

    questions: tuple[str, ...]
    doc_id: str = ""
    pass_: int = 1
    by: str = RULES
    documents: tuple[str, ...] = ()
    fallback: Fallbacks = None


@dataclass(frozen=True, slots=True)
class Merged:
    """The questions of this pass: near-duplicates are merged and keep all their origins."""

    questions: tuple[Question, ...]
    pass_: int = 1


@dataclass(frozen=True, slots=True)
class PassagesChosen:
    """The retrieval result for one question: of `considered` passages this reranker chose these. `others` are the
    choices of other rerankers, by passage id; `searched` lists what an agent tried."""

    question: str
    found: tuple[Found, ...]
    considered: int
    by: str
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    searched: tuple[Searched, ...] = ()


@dataclass(frozen=True, slots=True)
class Covered:
    """The coverage ledger at this point; `thin` are the documents that another pass asks about."""

    rows: tuple[Coverage, ...]
    thin: tuple[str, ...] = ()
    pass_: int = 1


@dataclass(frozen=True, slots=True)
class InsightsDrawn:
    """Insights for one question: one for each document that answers it. `missing` are documents the model omitted
    even when asked again; the document's own words are used for them."""

    question: str
    insights: tuple[Insight, ...]
    missing: tuple[str, ...] = ()
    by: str = RULES
    fallback: Fallbacks = None


@dataclass(frozen=True, slots=True)
class Paired:
    """The pairs of insights to compare, how they were selected, and how many pairs were left out."""

    pairs: tuple[Pair, ...]
    how: str
    left: int = 0


@dataclass(frozen=True, slots=True)
class Related:
    """The relations found in one block of pairs. `dropped` gives the reason for each relation that was proposed but
    not kept."""

    block: int
    relations: tuple[Relation, ...]
    dropped: tuple[str, ...] = ()
    by: str = RULES
    fallback: Fallbacks = None


@dataclass(frozen=True, slots=True)
class SpineWritten:
    """The overall theme, the spine that names every document, and the grouping of documents into themes."""

    theme: str
    spine: tuple[SpineSentence, ...]
    themes: tuple[Theme, ...]
    by: str = RULES
    fallback: Fallbacks = None


@dataclass(frozen=True, slots=True)
class Translated:
    """The narrative for one audience. `documents` are those whose text it may contain."""

    translation: Translation
    documents: tuple[str, ...] = ()
    fallback: Fallbacks = None
