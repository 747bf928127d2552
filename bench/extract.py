"""What the answers without a model are worth: which sentences are chosen, and when none is.

    python bench/extract.py --data SET [SET …] [--samples FOLDER] [--cache FOLDER] [--json figures.json]

A SET is a folder in BEIR's layout whose queries may carry `metadata.answer` and `metadata.supporting_facts`. Each
question is researched by rule, as the product does it, three times: over its own documents, without the documents that
hold its answer, and over the documents of the next set. Only the first can be answered. Evidence and sentence vectors are
kept in the cache, so that another way of choosing is measured in seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import pickle
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from assay import text
from assay.agent import hops
from assay.agent.loop import carry_on
from assay.agent.steps import Kit, searches
from assay.agent.tool import Desk
from assay.answer import extract
from assay.evaluate.beir import load
from assay.evaluate.runner import BASE, DAY, prepared
from assay.events import Asked, Stopped
from assay.index.filters import Filter, In, Not, both
from assay.index.protocol import Index
from assay.run import Run
from assay.types import Evidence, Hit
from assay.workspace import Workspace, open_workspace


@dataclass(frozen=True, slots=True)
class Case:
    """A question with everything that was found for it, as it stands just before an answer is drafted."""

    id: str
    question: str
    kind: str
    answerable: bool
    answer: str
    gold: tuple[str, ...]  # sentences
    evidence: tuple[Evidence, ...]
    ties: tuple[tuple[str, str, str], ...]
    titles: Mapping[str, str]
    nearest: float  # cosine of the best passage


class Without:
    """An index in which some documents are not there."""

    def __init__(self, index: Index, documents: Sequence[str]) -> None:
        self.index, self.rest = index, Not(In("doc", tuple(documents)))

    async def dense(self, vector: np.ndarray, k: int, where: Filter) -> list[Hit]:
        return await self.index.dense(vector, k, both(where, self.rest))

    async def lexical(self, query: str, k: int, where: Filter) -> list[Hit]:
        return await self.index.lexical(query, k, both(where, self.rest))

    async def fetch(self, ids: Sequence[str], where: Filter) -> list[Hit]:
        return await self.index.fetch(ids, both(where, self.rest))


async def researched(opened: Workspace, question: str, without: Sequence[str] = ()) -> dict[str, Any]:
    """The run up to the point where it stops searching."""
    scope = opened.scope()
    shelf = await opened.shelf(scope)
    if without:
        shelf = replace(shelf, indexes={name: Without(index, without) for name, index in shelf.indexes.items()})
    kit = Kit(Desk(replace(shelf, vectors={}), lambda: scope), Run.then, opened.document)
    run = Run("r", (Asked(question, opened.principal.id, DAY),))
    async for event in carry_on(run, kit):
        run = run.then(event)
        if isinstance(event, Stopped):
            break
    done = await searches(run, kit)
    ranked = hops.order(question, done, kit.hops) if done else []
    return {
        "evidence": run.evidence[:12],
        "ties": tuple((each.hit.passage.id, each.link.source, each.link.name) for each in ranked if each.link),
        "titles": {each.hit.passage.doc_id: each.hit.title for each in ranked},
        "nearest": max((float(done[0].vector @ hit.vector) for hit in done[0].hits), default=0.0) if done else 0.0,
    }


def gold_of(row: Mapping[str, Any], texts: Mapping[str, str]) -> tuple[str, ...]:
    """The supporting sentences. Their numbers are those of another splitter: near enough on encyclopaedia text."""
    found = []
    for title, number in row.get("metadata", {}).get("supporting_facts", []):
        body = texts.get(title, "")
        spans = text.sentences(body)
        if number < len(spans):
            found.append(body[slice(*spans[number])])
    return tuple(found)


async def researched_set(folder: Path, over: Path, cache: Path, remove: bool, limit: int) -> list[Case]:
    """The questions of one set over the documents of the same or another one, from the cache where they are there."""
    kind = "without gold" if remove else "own" if folder == over else "foreign"
    kept = cache / f"cases-{folder.name}-{over.name}-{kind.replace(' ', '-')}-{limit}.pickle"
    if kept.exists():
        return pickle.loads(kept.read_bytes())  # noqa: S301 (written by this very program)
    own, other = load(folder), load(over)
    rows = {row["_id"]: row for row in map(json.loads, (folder / "queries.jsonl").read_text().splitlines())}
    texts = {item.title: item.text for item in own.documents}
    cases: list[Case] = []
    with await prepared(other, cache) as opened:
        ids = {entry.uri.removeprefix("collection:"): entry.id for entry in opened.sources([BASE])}
        for number, (query, words) in enumerate(list(own.queries.items())[: limit or None]):
            gold = [ids[document] for document, grade in own.judgements[query].items() if grade > 0] if remove else []
            found = await researched(opened, words, gold)
            answer = rows[query].get("metadata", {}).get("answer", "")
            cases.append(
                Case(query, words, kind, kind == "own", answer, gold_of(rows[query], texts), **found)
            )
            if number % 20 == 0:
                print(f"  {folder.name} over {over.name} ({kind}): {number}", flush=True)
    kept.write_bytes(pickle.dumps(cases))
    return cases


async def researched_samples(folder: Path, cache: Path) -> list[Case]:
    kept = cache / "cases-samples.pickle"
    if kept.exists():
        return pickle.loads(kept.read_bytes())  # noqa: S301
    cases: list[Case] = []
    place = Path(tempfile.mkdtemp(dir=cache))
    with open_workspace(place, create=True) as opened:
        await opened.add([folder / "corpus"])
        for row in map(json.loads, (folder / "questions.jsonl").read_text().splitlines()):
            found = await researched(opened, row["question"])
            cases.append(
                Case(row["id"], row["question"], row["kind"], row["kind"] != "unanswerable", row["answer"],
                     tuple(row["evidence"]), **found)
            )  # fmt: skip
        for number, question in enumerate(NOWHERE):
            found = await researched(opened, question)
            cases.append(Case(f"n{number}", question, "nowhere", False, "", (), **found))
    shutil.rmtree(place)
    kept.write_bytes(pickle.dumps(cases))
    return cases


NOWHERE = (
    "What is the capital of Mongolia?",
    "What is the boiling point of tungsten?",
    "Who wrote the novel Moby-Dick?",
    "How many moons does Jupiter have?",
    "What is the best recipe for sourdough bread?",
    "When did the Berlin Wall fall?",
    "Who won the football world cup in 1998?",
    "How do I renew my passport?",
)
