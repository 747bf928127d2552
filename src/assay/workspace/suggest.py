"""Questions that a person could ask next, drawn by rule from documents that they may read. No model is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from assay.answer.suggest import questions_of
from assay.core.run import Run
from assay.core.types import Document
from assay.store import document_list
from assay.store.documents import READY
from assay.workspace.context import WorkspaceContext

READ = 24  # documents that are looked into
SHOWN = 3


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A question, and the document that answers it."""

    question: str
    document: str
    title: str


def first_questions(context: WorkspaceContext) -> list[Suggestion]:
    """Questions to begin with, each from another document while there are others; the same for the same documents."""
    page = document_list.page(context.store, context.scope(), (READY,), limit=READ)
    entries = sorted(page.entries, key=lambda entry: (entry.name, entry.id))
    return _chosen(document for entry in entries if (document := context.document(entry.id)))


def follow_ups(context: WorkspaceContext, run: Run) -> list[Suggestion]:
    """Questions about the documents that an answer cites, on what it does not cite of them."""
    if run.answer is None:
        return []
    cited = {key for block in run.answer.blocks for claim in block.claims for key in claim.cites}
    spans: dict[str, list[tuple[int, int]]] = {}
    for each in run.evidence:
        if each.key in cited:
            spans.setdefault(each.passage.doc_id, []).append((each.quote.start, each.quote.end))
    return _chosen((found for each in spans if (found := context.document(each))), spans, asked=run.question)


def _chosen(
    documents: Iterable[Document], known: dict[str, list[tuple[int, int]]] | None = None, asked: str = ""
) -> list[Suggestion]:
    """The first question of each document, then the second, until there are enough."""
    streams = [_suggestions(each, (known or {}).get(each.id, [])) for each in documents]
    found: dict[str, Suggestion] = {}
    for row in zip_longest(*streams):
        for each in row:
            if each is not None and each.question.casefold() != asked.casefold():
                found.setdefault(each.question, each)
            if len(found) == SHOWN:
                return list(found.values())
    return list(found.values())


def _suggestions(document: Document, known: list[tuple[int, int]]) -> Iterator[Suggestion]:
    for each in questions_of(document, known):
        yield Suggestion(each.question, document.id, document.title or document.uri.rpartition("/")[2])
