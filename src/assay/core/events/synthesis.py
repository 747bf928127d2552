"""What happened in a synthesis: the events that only such a run has. Part of the union in `events.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.core.account import Coverage, Insight, Pair, Portrait, Question, Relation, SpineSentence, Theme, Translation
from assay.core.events.maker import RULES, Fallbacks
from assay.core.types import Passage, Searched


@dataclass(frozen=True, slots=True)
class Found:
    """A passage as one call returned it: its place in that result, and its score there."""

    passage: Passage
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Described:
    """A document was looked at: title, authors, year, abstract."""

    portrait: Portrait
    fallback: Fallbacks = None


@dataclass(frozen=True, slots=True)
class Questioned:
    """Questions that one document gives rise to (`doc_id`), or all of them together; as they were put, before merging.
    `documents` are the latter: what is asked may be in their words."""

    questions: tuple[str, ...]
    doc_id: str = ""
    pass_: int = 1
    by: str = RULES
    documents: tuple[str, ...] = ()
    fallback: Fallbacks = None


@dataclass(frozen=True, slots=True)
class Merged:
    """The questions that are asked in this pass: near-duplicates are one, with all their origins."""

    questions: tuple[Question, ...]
    pass_: int = 1


@dataclass(frozen=True, slots=True)
class PassagesChosen:
    """What was found for one question: of `considered` passages these were chosen, by this reranker. `others` are what other
    rerankers would have chosen, by passage id; `searched` is what an agent tried."""

    question: str
    found: tuple[Found, ...]
    considered: int
    by: str
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    searched: tuple[Searched, ...] = ()


@dataclass(frozen=True, slots=True)
class Covered:
    """The ledger as it stood; `thin` are the documents that another pass asks about."""

    rows: tuple[Coverage, ...]
    thin: tuple[str, ...] = ()
    pass_: int = 1


@dataclass(frozen=True, slots=True)
class InsightsDrawn:
    """Insights of one question: one for each document that answers it. `missing` are those that the model left out even when
    asked again; the document's own words stand in for them."""

    question: str
    insights: tuple[Insight, ...]
    missing: tuple[str, ...] = ()
    by: str = RULES
    fallback: Fallbacks = None


@dataclass(frozen=True, slots=True)
class Paired:
    """Which insights are compared, how they were chosen, and how many pairs were not."""

    pairs: tuple[Pair, ...]
    how: str
    left: int = 0


@dataclass(frozen=True, slots=True)
class Related:
    """What came of one block of pairs. `dropped` says of each relation that was proposed and not kept, why."""

    block: int
    relations: tuple[Relation, ...]
    dropped: tuple[str, ...] = ()
    by: str = RULES
    fallback: Fallbacks = None


@dataclass(frozen=True, slots=True)
class SpineWritten:
    """The overall theme, the spine that names every document, and which documents are told together."""

    theme: str
    spine: tuple[SpineSentence, ...]
    themes: tuple[Theme, ...]
    by: str = RULES
    fallback: Fallbacks = None


@dataclass(frozen=True, slots=True)
class Translated:
    """The narrative for one audience. `documents` are those whose words it may hold."""

    translation: Translation
    documents: tuple[str, ...] = ()
    fallback: Fallbacks = None
