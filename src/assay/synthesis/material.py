"""What a text is written from, computed once per stage: points, names of documents, relations, evidence. Pure except for
document lookups, which check that the evidence is still valid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from assay.agent.context import RunContext
from assay.answer.checking.judge import unchanged_evidence
from assay.answer.claims import Sources
from assay.core.events import RULES
from assay.core.run import Run
from assay.core.synthesis import Insight, Relation, RelationType
from assay.core.types import Evidence
from assay.language.injection import is_command
from assay.models.cost import estimate_tokens, fit_to_tokens
from assay.synthesis import state

NOTE, QUOTED = 90, 90  # tokens of a note and of the words it is about


@dataclass(frozen=True, slots=True)
class Material:
    labels: Mapping[str, str]  # document → D1, D2, …
    names: Mapping[str, str]  # document → "the incident report (D3)"
    points: Mapping[str, Insight]  # by id, by document
    numbers: Mapping[str, int]  # id of a point → its number in prompts
    relations: tuple[Relation, ...]
    evidence: tuple[Evidence, ...]  # still valid
    known: Mapping[str, Evidence]  # the same, by key
    sources: Sources

    def documents(self, keys: Sequence[str]) -> tuple[str, ...]:
        """The documents that these evidence keys belong to."""
        return tuple(dict.fromkeys(self.known[key].quote.doc_id for key in keys if key in self.known))

    def line(self, id: str) -> str:
        """A point in a prompt: number, document, key, what was noted, and the words it is about."""
        point = self.points[id]
        words = fit_to_tokens(" ".join(point.claim.words.split()), QUOTED)
        said = f"{fit_to_tokens(point.note, NOTE)} — “{words}”" if point.note else f"“{words}”"
        return f"{self.numbers[id]} ({self.names[point.doc_id]}, key {point.claim.cites[0]}): {said}"

    def cost(self, id: str) -> int:
        """Tokens of a point in a prompt."""
        return estimate_tokens(self.line(id)) + 1

    def of_document(self, doc: str) -> tuple[str, ...]:
        """The points of a document."""
        return tuple(id for id, point in self.points.items() if point.doc_id == doc)

    def documents_of(self, ids: Iterable[str]) -> tuple[str, ...]:
        """The documents of these points."""
        return tuple(dict.fromkeys(self.points[id].doc_id for id in ids))

    @property
    def contradictions(self) -> tuple[Relation, ...]:
        """The contradictions that rules have found."""
        return tuple(each for each in self.relations if each.type is RelationType.contradiction and each.by == RULES)


def gather_material(run: Run, context: RunContext) -> Material:
    """The material of a run: the points whose evidence is still valid."""
    evidence = unchanged_evidence(run.evidence, cache(context.document))
    known = {each.key: each for each in evidence}
    points = {
        each.id: each
        for each in state.points(run)
        if each.claim.cites and all(key in known for key in each.claim.cites) and not is_command(each.claim.words)
    }
    return Material(
        labels=state.labels(run),
        names=document_names(run),
        points=points,
        numbers={id: number for number, id in enumerate(points, 1)},
        relations=tuple(each for each in state.relations(run) if {each.left.key, each.right.key} <= known.keys()),
        evidence=evidence,
        known=known,
        sources=labelled_sources(run, context),
    )


def document_names(run: Run) -> dict[str, str]:
    """What prompts call the documents: name and label, or the label alone."""
    portraits = state.portraits(run)
    return {
        doc: f"{portraits[doc].name} ({label})" if doc in portraits and portraits[doc].name else label
        for doc, label in state.labels(run).items()
    }


def labelled_sources(run: Run, context: RunContext) -> Sources:
    """Titles and dates of the documents. A title begins with the names that sentences use, so that whoever judges a
    sentence knows which document it speaks of."""
    sources, names = context.sources(run), document_names(run)
    titles = {doc: f"{names[doc]} · {title}" if doc in names else title for doc, title in sources.titles.items()}
    return Sources(titles, sources.dates)
