"""Data types of a synthesis, in pipeline order: Brief → Portrait → Question → Insight → Relation → Synthesis.

All are frozen values without I/O or decisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from assay.core.types import Answer, Claim, Evidence, Quote, Usage, omitted_when_empty


class Pipeline(StrEnum):
    summary = "summary"  # what the documents say: a quick factual digest
    synthesis = "synthesis"  # how they work and how they relate: a deep comparison


class Approach(StrEnum):
    search = "search"  # one diverse search for each question
    agent = "agent"  # a short run of the agent for each question


DISAGREE = (
    "Where they disagree"  # heading of the quotations that contradict each other, in a text without a capable model
)
EXPERT, PLAIN, EXECUTIVE = "expert", "plain", "executive"  # predefined audiences; other values are free text


@dataclass(frozen=True, slots=True)
class Brief:
    """The request for a synthesis: which documents, how deep, for which audience. A run with a brief is a synthesis."""

    pipeline: Pipeline
    documents: tuple[str, ...]  # ids; their positions determine the labels D1, D2, …
    focus: str = ""  # what the reader wants to know; empty for everything
    questions: int = 3  # per document
    audiences: tuple[str, ...] = (EXPERT,)
    approach: Approach = Approach.search
    pool: int = 100  # passages retrieved by a search, selected for diversity
    top: int = 3  # passages of those that are weighed
    reranker: str = "late"  # the reranker that selects them: none, late, set (as in the settings) or llm
    compare: tuple[str, ...] = ()  # rerankers that also run, for comparison only


@dataclass(frozen=True, slots=True)
class Portrait:
    """A document's own metadata. If it has no abstract, one is `made` from its sentences."""

    doc_id: str
    title: str
    authors: tuple[str, ...] = ()
    year: str = ""
    abstract: tuple[Quote, ...] = ()
    made: bool = False
    by: str = "rules"  # what determined title, authors and year
    empty: str = ""  # why the document has no readable text, if so
    name: str = omitted_when_empty("")  # what a sentence calls it: "the incident report"


class QuestionKind(StrEnum):
    theme = "theme"  # context, background, objective, method, findings
    workings = "workings"  # design, steps, mechanisms, interactions, reasons for choices
    comparative = "comparative"  # from all abstracts together
    follow_up = "follow_up"  # for a document with thin coverage


@dataclass(frozen=True, slots=True)
class Question:
    """One question of the synthesis. `documents` are its origins: several if near-duplicates were merged."""

    id: str  # q1, q2, …
    text: str
    kind: QuestionKind
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Insight:
    """What one document says: a quotation of it, and the question that it answers, if any. `note` is what a model wrote
    about it for its own use: nobody has checked it, and it is never shown as a statement."""

    id: str  # D2-1; of a comparison q1-D2
    question: str
    doc_id: str
    claim: Claim
    note: str = omitted_when_empty("")


class RelationType(StrEnum):
    """How one insight relates to another."""

    extension = "extension"
    contradiction = "contradiction"
    complement = "complement"
    improvement = "improvement"
    parallel = "parallel"


class PairReason(StrEnum):
    """Why two insights are compared."""

    same = "they answer the same question"
    near = "they are near in meaning"
    last = "no document is left uncompared"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two insights of different documents to compare, and why they were selected."""

    left: str
    right: str
    why: PairReason
    alike: float = 0.0  # semantic similarity of their texts, at most 1


@dataclass(frozen=True, slots=True)
class RelationSide:
    """One end of a relation: the insight, its document, and a quotation from that document that supports the
    relation."""

    insight: str
    doc_id: str
    key: str  # the evidence that contains the quotation
    quote: Quote


@dataclass(frozen=True, slots=True)
class Relation:
    """How two documents relate in one respect. Both quotations were verified in their documents."""

    left: RelationSide
    right: RelationSide
    type: RelationType
    reason: str
    by: str = "rules"
    about: str = omitted_when_empty("")  # both values of a contradiction that rules found: "30 days / 90 days"


@dataclass(frozen=True, slots=True)
class Theme:
    """A paragraph of the plan: what it is about, the insights that it tells, and the documents they are from."""

    name: str
    documents: tuple[str, ...]
    insights: tuple[str, ...] = omitted_when_empty(())


@dataclass(frozen=True, slots=True)
class SpineSentence:
    """A sentence of the spine and the documents it names. One that only lists words that they share states nothing."""

    claim: Claim
    documents: tuple[str, ...]
    lists: bool = False


@dataclass(frozen=True, slots=True)
class Readability:
    """Readability metrics: words per sentence, Flesch reading ease (100 easy, 0 hard), Flesch-Kincaid grade."""

    words: int
    sentence: float
    ease: float
    grade: float


@dataclass(frozen=True, slots=True)
class TranslatedSentence:
    """A sentence for an audience: the claims it expresses, by index in the narrative, and their citations."""

    text: str
    claims: tuple[int, ...]
    cites: tuple[str, ...]
    kept: bool = False  # the original claim text was kept because the rewritten sentence failed its check
    why: str = ""


@dataclass(frozen=True, slots=True)
class TranslatedParagraph:
    """A paragraph of a translation. An analogy states no fact and is labelled as an analogy."""

    sentences: tuple[TranslatedSentence, ...]
    analogy: str = ""


@dataclass(frozen=True, slots=True)
class Translation:
    """The narrative for one audience, with the same underlying claims and citations."""

    audience: str
    paragraphs: tuple[TranslatedParagraph, ...]
    before: Readability
    after: Readability
    left_out: tuple[int, ...] = ()  # claims omitted for an executive audience
    by: str = "rules"


@dataclass(frozen=True, slots=True)
class Coverage:
    """One row of the coverage ledger: how much of a document is used in the account. `reason` explains no or low
    coverage."""

    doc_id: str
    questions: int
    evidence: int
    insights: int
    claims: int
    relations: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RerankerComparison:
    """Comparison of rerankers over all questions: how many passages each shares with the one in use."""

    reranker: str
    chosen: int
    shared: int


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """Diagnostics of the result: relation types with an explanation, and the reranker comparison."""

    types: Mapping[str, int] = field(default_factory=dict)
    reading: str = ""
    dropped: tuple[str, ...] = ()  # relations that were proposed but not kept, with the reason
    rerankers: tuple[RerankerComparison, ...] = ()


@dataclass(frozen=True, slots=True)
class Synthesis:
    """The complete result of a synthesis, for rendering and export. Computed from the run's events."""

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
    pairing: str  # how pairs of insights were selected
    theme: str
    spine: tuple[SpineSentence, ...]
    themes: tuple[Theme, ...]
    narrative: Answer
    readability: Readability
    translations: tuple[Translation, ...]
    ledger: tuple[Coverage, ...]
    diagnostics: Diagnostics
    notes: tuple[str, ...]  # messages about what was truncated or fell back to rules
    usage: Usage = field(default_factory=Usage)
    left_out: tuple[str, ...] = omitted_when_empty(())  # what was not read, or is not told in the text, and why

    @property
    def labels(self) -> dict[str, str]:
        """Document → its label: D1, D2, …"""
        return {doc: f"D{place}" for place, doc in enumerate(self.brief.documents, 1)}
