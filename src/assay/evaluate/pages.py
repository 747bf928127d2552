"""How well a search finds the page that answers a question: PDF files, and questions with their gold pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.core.errors import UserError
from assay.core.types import Document, Passage
from assay.evaluate.metrics import with_intervals
from assay.evaluate.plain_text import progress_lines
from assay.index.retrieve import retrieve
from assay.ingest.sources import find_sources
from assay.workspace.facade import Workspace, open_workspace

BASE = "pages"
DEPTH = 10

Report = Callable[[str], None]
Page = tuple[str, int]  # the name of a file without its suffix, and a page counted from 1


@dataclass(frozen=True, slots=True)
class PageQuestion:
    question: str
    documents: frozenset[str]
    pages: frozenset[Page]


def load(folder: Path) -> list[PageQuestion]:
    """The questions of a folder; `evidence_page_num` in the file counts from 0."""
    path = folder / "questions.jsonl"
    if not path.is_file() or not (folder / "pdfs").is_dir():
        raise UserError(f"{str(folder)!r} needs a file questions.jsonl and a folder pdfs.")
    lines = path.read_text(encoding="utf-8").splitlines()
    return [_question(json.loads(line)) for line in lines if line.strip()]


def _question(item: Mapping[str, Any]) -> PageQuestion:
    evidence = [(each.get("doc_name", item["doc_name"]), each["evidence_page_num"] + 1) for each in item["evidence"]]
    return PageQuestion(item["question"], frozenset(name for name, _ in evidence), frozenset(evidence))


async def measure(
    folder: Path, workspace: Path, limit: int = 0, report: Report = lambda _: None, **flags: Any
) -> dict[str, Any]:
    """Share of questions with a gold page, and with all, among those of the first passages; and with a gold document first."""
    questions = load(folder)[: limit or None]
    with open_workspace(workspace, create=True, state="", **flags) as opened:
        await add(opened, folder / "pdfs", report)
        rankings = await rank_pages(opened, [each.question for each in questions])
    return with_intervals([hits(each, ranking) for each, ranking in zip(questions, rankings, strict=True)])


def hits(question: PageQuestion, ranking: Sequence[frozenset[Page]]) -> dict[str, float]:
    found = {f"page@{k}": float(bool(question.pages & touched(ranking[:k]))) for k in (1, 5, 10)}
    found["all_pages@10"] = float(question.pages <= touched(ranking[:10]))
    first = {name for name, _ in touched(ranking[:1])}
    return {**found, "document@1": float(bool(first & question.documents))}


async def rank_pages(opened: Workspace, questions: Sequence[str]) -> list[list[frozenset[Page]]]:
    """For each question, the pages that each of the first passages touches, in the order of one search."""
    scope = opened.scope([BASE])
    search_context = await opened.context.search_context(scope)
    known: dict[str, Document | None] = {}
    rankings: list[list[frozenset[Page]]] = []
    for question in questions:
        hits = await retrieve(search_context, question, DEPTH, scope)
        for id in {hit.passage.doc_id for hit in hits} - known.keys():
            known[id] = opened.documents.get(id)
        rankings.append([pages_of(hit.passage, known[hit.passage.doc_id]) for hit in hits])
    return rankings


def pages_of(passage: Passage, document: Document | None) -> frozenset[Page]:
    """Every page that a passage touches; page 0 stands for a document without pages."""
    if document is None:
        return frozenset()
    first, last = document.page_at(passage.start) or 0, document.page_at(max(passage.start, passage.end - 1)) or 0
    return frozenset((Path(document.uri).stem, page) for page in range(first, last + 1))


def touched(ranking: Sequence[frozenset[Page]]) -> frozenset[Page]:
    return frozenset().union(*ranking)


async def add(opened: Workspace, folder: Path, report: Report = lambda _: None) -> None:
    await opened.documents.add_sources(find_sources([folder]), BASE, say=progress_lines(report))
