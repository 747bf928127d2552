"""The input of spine and narrative, computed once per stage: insights by document, names, relations, evidence. Pure
except for document lookups, which check that the evidence is still valid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from assay.agent.context import RunContext
from assay.answer.checking.judge import unchanged_evidence
from assay.answer.evidence_text import Sources
from assay.core.account import Insight, Relation
from assay.core.events import RoleModel
from assay.core.run import Run
from assay.core.types import Claim, Evidence
from assay.language.injection import is_suspicious
from assay.models.llm import Role
from assay.models.token_estimate import estimate_tokens, fit_to_tokens
from assay.prompts.fence import fence
from assay.synthesis import state, titles


@dataclass(frozen=True, slots=True)
class Material:
    labels: Mapping[str, str]  # document → D1, D2, …
    called: Mapping[str, str]  # document → its short title
    insights: Mapping[str, tuple[Insight, ...]]  # by document, the best first
    relations: tuple[Relation, ...]
    evidence: tuple[Evidence, ...]  # still valid
    known: Mapping[str, Evidence]  # the same, by key
    sources: Sources

    @property
    def documents(self) -> dict[str, str]:
        """Label → document."""
        return {label: doc for doc, label in self.labels.items()}

    def words(self, doc: str) -> str:
        """All insights of a document as one text."""
        return "\n".join(insight.claim.words for insight in self.insights.get(doc, ()))

    def of(self, keys: Sequence[str]) -> tuple[str, ...]:
        """The documents that these evidence keys belong to."""
        return tuple(dict.fromkeys(self.known[key].quote.doc_id for key in keys if key in self.known))


def gather_material(run: Run, context: RunContext) -> Material:
    """The material of a run, with the insights whose evidence is still valid. Insights on a document's own questions
    rank first."""
    evidence = unchanged_evidence(run.evidence, cache(context.document))
    known = {each.key: each for each in evidence}
    sources = context.sources(run)
    own = {question.id: frozenset(question.documents) for question in state.questions(run)}
    place = {question: number for number, question in enumerate(own)}
    insights: dict[str, list[Insight]] = {}
    for insight in state.insights(run).values():
        cites = insight.claim.cites
        if cites and all(key in known for key in cites) and is_repeatable(insight.claim):
            insights.setdefault(insight.doc_id, []).append(insight)

    def rank(insight: Insight) -> tuple[bool, float, int]:
        best = max(known[key].score for key in insight.claim.cites)
        return insight.doc_id not in own.get(insight.question, ()), -best, place.get(insight.question, 0)

    return Material(
        labels=state.labels(run),
        called=titles.document_titles(run, sources.titles),
        insights={doc: tuple(sorted(found, key=rank)) for doc, found in insights.items()},
        relations=state.relations(run),
        evidence=evidence,
        known=known,
        sources=sources,
    )


def is_repeatable(claim: Claim) -> bool:
    """Whether the words may be repeated: not if they are addressed to a model."""
    return not is_suspicious(claim.words)


def render_relations(of: Material, docs: Sequence[str], mark: str, room: int) -> str:
    """The relations of these documents, one line for each that fits; empty if there are none."""
    lines: list[str] = []
    left = room - 30
    for each in of.relations:
        ends = (each.left.doc_id, each.right.doc_id)
        if not set(ends) & set(docs):
            continue
        line = f"{' and '.join(of.labels.get(doc, '') for doc in ends)}: {each.type}: {' '.join(each.reason.split())}"
        line = fit_to_tokens(line, 50)
        if (cost := estimate_tokens(line) + 1) > left:
            break
        lines.append(line)
        left -= cost
    return fence(mark, "relations", "\n".join(lines)) + "\n\n" if lines else ""


def with_related(of: Material, docs: Sequence[str]) -> set[str]:
    """These documents and the related ones that a request about them may mention."""
    ends = [(each.left.doc_id, each.right.doc_id) for each in of.relations]
    return {*docs, *(doc for pair in ends if set(pair) & set(docs) for doc in pair)}


def window(run: Run) -> int:
    """The smallest context window of the writing models, as recorded at the start of the run."""
    role_models: list[RoleModel] = [role_model for role_model in run.asked.seats if role_model.role == Role.write.value]
    return min((role_model.window for role_model in role_models), default=0) or 8192
