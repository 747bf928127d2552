"""What a synthesis is made of, in the order in which it grows: Brief → Portrait → Question → Insight → Relation → Account.

Everything here is a frozen value. Nothing here reads, writes or decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from assay.core.types import Answer, Claim, Evidence, Quote, Usage


class Pipeline(StrEnum):
    summary = "summary"  # what the documents say: a quick factual digest
    synthesis = "synthesis"  # how they work and how they relate: a deep comparison


class Approach(StrEnum):
    search = "search"  # one diverse search for each question
    agent = "agent"  # a short run of the agent for each question


EXPERT, PLAIN, EXECUTIVE = "expert", "plain", "executive"  # audiences that have a name; any other is a description


@dataclass(frozen=True, slots=True)
class Brief:
    """What was asked for: which documents, how deep, for whom. A run that has one is a synthesis."""

    pipeline: Pipeline
    documents: tuple[str, ...]  # ids; their places give them their labels D1, D2, …
    focus: str = ""  # what the reader wants to know; empty for all of it
    questions: int = 3  # per document
    audiences: tuple[str, ...] = (EXPERT,)
    approach: Approach = Approach.search
    pool: int = 100  # passages that a search brings, as different as they can be
    top: int = 3  # passages of those that are weighed
    reranker: str = "late"  # what chooses them: none, late, set (as the settings say) or llm
    compare: tuple[str, ...] = ()  # rerankers that are asked as well, to see what they would have chosen


@dataclass(frozen=True, slots=True)
class Portrait:
    """A document by what it says of itself. An abstract that it does not have is `made` of its own sentences."""

    doc_id: str
    title: str
    authors: tuple[str, ...] = ()
    year: str = ""
    abstract: tuple[Quote, ...] = ()
    made: bool = False
    by: str = "rules"  # who found title, authors and year
    empty: str = ""  # why nothing can be read in it, where that is so


class QuestionKind(StrEnum):
    theme = "theme"  # context, background, objective, method, findings
    workings = "workings"  # design, steps, mechanisms, interactions, reasons for choices
    comparative = "comparative"  # from all abstracts together
    follow_up = "follow_up"  # for a document that was thinly covered


@dataclass(frozen=True, slots=True)
class Question:
    """One question that the synthesis asks. `documents` are those it came from: several, where near-duplicates were merged."""

    id: str  # q1, q2, …
    text: str
    kind: QuestionKind
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Insight:
    """What one document says to one question: a single claim, checked against the evidence it cites."""

    id: str  # q1-D2
    question: str
    doc_id: str
    claim: Claim


class RelationType(StrEnum):
    """How one insight stands to another."""

    extension = "extension"
    contradiction = "contradiction"
    complement = "complement"
    improvement = "improvement"
    parallel = "parallel"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two insights of different documents that are worth comparing, and why they were chosen."""

    left: str
    right: str
    why: str
    alike: float = 0.0  # how near their words are in meaning, at most 1


@dataclass(frozen=True, slots=True)
class RelationSide:
    """One end of a relation: the insight, its document, and words of that document that bear the relation out."""

    insight: str
    doc_id: str
    key: str  # the evidence that the words stand in
    quote: Quote


@dataclass(frozen=True, slots=True)
class Relation:
    """How two documents stand to each other in one respect. Both quotations were found in their documents."""

    left: RelationSide
    right: RelationSide
    type: RelationType
    reason: str
    by: str = "rules"


@dataclass(frozen=True, slots=True)
class Theme:
    """Documents that are told together. With few documents there is one theme, and it needs no name."""

    name: str
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpineSentence:
    """A sentence of the spine, and the documents that it names."""

    claim: Claim
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Readability:
    """How hard a text is to read: words a sentence, Flesch reading ease (100 easy, 0 hard), Flesch-Kincaid grade."""

    words: int
    sentence: float
    ease: float
    grade: float


@dataclass(frozen=True, slots=True)
class TranslatedSentence:
    """A sentence for an audience: the claims that it tells, by their places in the narrative, and what they cite."""

    text: str
    claims: tuple[int, ...]
    cites: tuple[str, ...]
    kept: bool = False  # the claim's own words stand, since what was written instead did not hold
    why: str = ""


@dataclass(frozen=True, slots=True)
class TranslatedParagraph:
    """A paragraph of a translation. An analogy carries no fact, and is labelled as one."""

    sentences: tuple[TranslatedSentence, ...]
    analogy: str = ""


@dataclass(frozen=True, slots=True)
class Translation:
    """The narrative for one audience: the same claims and citations underneath."""

    audience: str
    paragraphs: tuple[TranslatedParagraph, ...]
    before: Readability
    after: Readability
    left_out: tuple[int, ...] = ()  # claims that an executive reader is spared
    by: str = "rules"


@dataclass(frozen=True, slots=True)
class Coverage:
    """A row of the ledger: what of a document has gone into the account. `reason` says why nothing, or little, has."""

    doc_id: str
    questions: int
    evidence: int
    insights: int
    claims: int
    relations: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RerankerComparison:
    """How the rerankers that were compared chose, over all questions: how many passages each shares with the one in use."""

    reranker: str
    chosen: int
    shared: int


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """What the shape of the result says about the work: relation types with a reading in plain words, rerankers compared."""

    types: Mapping[str, int] = field(default_factory=dict)
    reading: str = ""
    dropped: tuple[str, ...] = ()  # relations that were proposed and not printed, and why
    rerankers: tuple[RerankerComparison, ...] = ()


@dataclass(frozen=True, slots=True)
class Account:
    """All that a synthesis has come to, as a page, a file or a program wants it. Computed from the run's events."""

    run: str
    brief: Brief
    question: str
    made_on: str
    models: tuple[str, ...]
    documents: tuple[Portrait, ...]  # in the order of their labels
    questions: tuple[Question, ...]
    answers: Mapping[str, tuple[str, ...]]  # question → keys of evidence
    evidence: tuple[Evidence, ...]
    insights: tuple[Insight, ...]
    relations: tuple[Relation, ...]
    pairing: str  # how pairs of insights were chosen
    theme: str
    spine: tuple[SpineSentence, ...]
    themes: tuple[Theme, ...]
    narrative: Answer
    readability: Readability
    translations: tuple[Translation, ...]
    ledger: tuple[Coverage, ...]
    diagnostics: Diagnostics
    notes: tuple[str, ...]  # what was cut short or fell back to rules, in words
    usage: Usage = field(default_factory=Usage)

    @property
    def labels(self) -> dict[str, str]:
        """Document → its label: D1, D2, …"""
        return {doc: f"D{place}" for place, doc in enumerate(self.brief.documents, 1)}
