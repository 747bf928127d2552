"""Events that occur only in a synthesis, and who produced an event: a model, named by prompt and model (`weigh@gpt`),
or rules, and why rules replaced a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from assay.core.synthesis import (
    Coverage,
    Insight,
    Pair,
    Portrait,
    Question,
    Relation,
    SpineSentence,
    Theme,
    Translation,
)
from assay.core.types import Passage, Searched, omitted_when_empty

RULES = "rules"


class Fallback(StrEnum):
    """Why no model reply was available, so that rules were used."""

    money = "money"
    tokens = "tokens"
    calls = "calls"
    time = "time"
    unusable = "unusable"  # the replies could not be used


Fallbacks = tuple[Fallback, ...] | None  # the type of the field `fallback` of events


@dataclass(frozen=True, slots=True)
class Maker:
    """The producer of something. `by` is `rules` or model labels; `fallback` says why rules produced all or part of
    it instead of a model."""

    by: str = RULES
    fallback: Fallbacks = None

    @property
    def label(self) -> str:
        """For display: `weigh@gpt; rules: money`."""
        own = () if self.fallback and self.by == RULES else (self.by,)
        return "; ".join((*own, *(f"{RULES}: {why}" for why in self.fallback or ())))


BY_RULES = Maker()


def stand_in(why: Fallback) -> Maker:
    """Rules as a fallback for a model."""
    return Maker(RULES, (why,))


def combine_makers(makers: Iterable[Maker]) -> Maker:
    """The combined maker of several parts: each once, models before rules."""
    makers = list(makers)
    labels = dict.fromkeys(each.by for each in makers if each.by != RULES or not each.fallback)
    fallback = tuple(dict.fromkeys(why for each in makers for why in each.fallback or ()))
    return Maker("; ".join(sorted(labels, key=lambda each: each == RULES)) or RULES, fallback or None)


def fallbacks(event: object) -> tuple[Fallback, ...]:
    """Why rules produced an event, or a part of it, instead of a model."""
    return getattr(event, "fallback", None) or ()


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
    choices of other rerankers, by passage id; `searched` lists what an agent tried. With `document` set there is no
    question: these are the passages of that document that are read."""

    question: str
    found: tuple[Found, ...]
    considered: int
    by: str
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    searched: tuple[Searched, ...] = ()
    document: str = omitted_when_empty("")


@dataclass(frozen=True, slots=True)
class Covered:
    """The coverage ledger at this point; `thin` are the documents that another pass asks about."""

    rows: tuple[Coverage, ...]
    thin: tuple[str, ...] = ()
    pass_: int = 1


@dataclass(frozen=True, slots=True)
class InsightsDrawn:
    """The insights of a reading of one document (`doc_id`), or of several documents on one question. `missing` is
    recorded only by older versions."""

    question: str
    insights: tuple[Insight, ...]
    missing: tuple[str, ...] = ()
    by: str = RULES
    fallback: Fallbacks = None
    doc_id: str = omitted_when_empty("")


@dataclass(frozen=True, slots=True)
class Paired:
    """What was compared, in words. `pairs` and `left`, the pairs that were left out, are recorded only by older
    versions."""

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
    """The overall theme and the plan of the text: its paragraphs. `spine` is recorded only by older versions; today the
    first paragraph of the text is the spine."""

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


_Reading = Described | Questioned | Merged | PassagesChosen | Covered
SynthesisEvent = _Reading | InsightsDrawn | Paired | Related | SpineWritten | Translated
