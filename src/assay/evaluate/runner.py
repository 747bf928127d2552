"""Evaluation of retrieval on labelled collections in the BEIR layout (corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv), through
the product's own ingestion, search and agent loop."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay.agent.context import ROUNDS, Limits, RunContext
from assay.agent.loop import play
from assay.agent.tool import ToolContext
from assay.core.codec import digest
from assay.core.errors import UserError
from assay.core.events import Asked, Mode
from assay.core.run import Run
from assay.evaluate.grading import Graded, compare, verdict
from assay.evaluate.metrics import all_found, mean, ndcg, recall, with_intervals
from assay.evaluate.plain_text import PlainTextReader, progress_lines
from assay.index.retrieve import SearchContext, retrieve
from assay.ingest.sources import SourceFile
from assay.workspace.facade import Workspace, open_workspace

BASE = "collection"
DEPTH = 100
DAY = "2000-01-01"  # fixed, so that results do not depend on the date

Report = Callable[[str], None]
Judgements = Mapping[str, Mapping[str, int]]  # query → document → grade


@dataclass(frozen=True, slots=True)
class BeirDocument:
    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class BeirCollection:
    """Documents, and the queries that have relevance judgements."""

    name: str
    documents: tuple[BeirDocument, ...]
    queries: Mapping[str, str]
    judgements: Judgements


def load(folder: Path, split: str = "") -> BeirCollection:
    """Load a collection from its folder. Queries without judgements are left out."""
    if not folder.is_dir():
        raise UserError(f"There is no folder {str(folder)!r}.")
    documents = tuple(
        BeirDocument(str(row["_id"]), str(row.get("title") or ""), str(row.get("text") or ""))
        for row in _read_jsonl(folder / "corpus.jsonl", "_id")
    )
    judgements = _read_judgements(_qrels_file(folder, split))
    queries = {str(row["_id"]): str(row["text"]) for row in _read_jsonl(folder / "queries.jsonl", "_id", "text")}
    judged = {
        query: queries[query] for query in queries if any(grade > 0 for grade in judgements.get(query, {}).values())
    }
    if not documents or not judged:
        raise UserError(f"{str(folder)!r} has no documents, or no queries with judgements.")
    return BeirCollection(folder.resolve().name, documents, judged, judgements)


def _qrels_file(folder: Path, split: str) -> Path:
    names = {file.stem: file for file in sorted((folder / "qrels").glob("*.tsv"))}
    selected = split or ("test" if "test" in names else next(iter(names), ""))
    if selected not in names:
        raise UserError(
            f"{str(folder / 'qrels')!r} has no split {selected!r}. There is: {', '.join(names) or 'nothing'}."
        )
    return names[selected]


def _read_jsonl(file: Path, *needed: str) -> Iterator[dict[str, Any]]:
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    try:
                        row = json.loads(line)
                    except json.JSONDecodeError as error:
                        raise UserError(f"{str(file)!r}, line {number}: not JSON ({error.msg}).") from error
                    missing = [name for name in needed if not isinstance(row, dict) or name not in row]
                    if missing:
                        raise UserError(f"{str(file)!r}, line {number}: it has no {missing[0]!r}.")
                    yield row
    except FileNotFoundError as error:
        raise UserError(f"{str(file)!r} is missing: this is not a collection in the BEIR layout.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{str(file)!r} is not UTF-8.") from error


def _read_judgements(file: Path) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        parts = line.split("\t")
        if len(parts) >= 3 and parts[-1].strip().lstrip("-").isdecimal():
            query, document, grade = parts[0].strip(), parts[-2].strip(), int(parts[-1])
            found.setdefault(query, {})[document] = grade
    return found


async def open_collection(
    collection: BeirCollection, cache: Path, report: Report = lambda _: None, **flags: Any
) -> Workspace:
    """Open a workspace that holds the collection. It is cached, so that a second evaluation embeds nothing."""
    name = digest("\x00".join(f"{each.id}\x01{each.title}\x01{each.text}" for each in collection.documents))[:16]
    opened = open_workspace(cache / f"{collection.name}-{name}", create=True, state="", **flags)
    files, say = [_source(each) for each in collection.documents], progress_lines(report, f"{collection.name}: ")
    await opened.documents.add_sources(files, BASE, say=say, reader=PlainTextReader())
    return opened


def _source(item: BeirDocument) -> SourceFile:
    text = item.text or item.title
    data = json.dumps({"id": item.id, "title": item.title, "text": text}, ensure_ascii=False).encode()
    return SourceFile(uri=f"{SCHEME}{item.id}", name=item.id, data=data)


SCHEME = "collection:"


def collection_ids(opened: Workspace) -> dict[str, str]:
    """Document id of the workspace → id in the collection."""
    return {entry.id: entry.uri.removeprefix(SCHEME) for entry in opened.documents.listing([BASE])}


async def rank_by_search(
    opened: Workspace, search_context: SearchContext, query: str, ids: dict[str, str]
) -> list[str]:
    """The ids of the collection in the order of one search."""
    hits = await retrieve(replace(search_context, per_document=1), query, DEPTH, opened.scope([BASE]))
    return [ids[hit.passage.doc_id] for hit in hits]


async def run_without_model(opened: Workspace, search_context: SearchContext, id: str, question: str) -> Run:
    """A whole run of the agent on a question, with rules instead of a model."""
    scope = opened.scope([BASE])
    return await play(
        Run(id, (Asked(question, opened.principal.id, DAY),)),
        RunContext(
            ToolContext(replace(search_context, vectors={}), lambda: scope),
            Run.then,
            opened.documents.get,
            limits=Limits(opened.settings.search_rounds or ROUNDS[Mode.balanced]),
        ),
    )


def rank_evidence(run: Run, ids: dict[str, str]) -> list[str]:
    """The ids of the collection in the order of a run's evidence."""
    return list(dict.fromkeys(ids[each.passage.doc_id] for each in run.evidence))


async def measure_retrieval(
    collection: BeirCollection, cache: Path, limit: int = 0, report: Report = lambda _: None, **flags: Any
) -> dict[str, Any]:
    """Ranking quality of one search per query, with the current settings."""
    with await open_collection(collection, cache, report, **flags) as opened:
        ids = collection_ids(opened)
        search_context = await opened.context.search_context(opened.scope([BASE]))
        queries = list(collection.queries.items())[: limit or None]
        rankings: dict[str, list[str]] = {}
        began = time.perf_counter()
        for query, words in queries:
            rankings[query] = await rank_by_search(opened, search_context, words, ids)
        seconds = time.perf_counter() - began
    scores = _scores(rankings, collection, "ndcg@10 r@5 r@100 all@5")
    return {**scores, "queries": len(queries), "seconds": round(seconds, 3)}


async def measure_multihop(
    collection: BeirCollection, cache: Path, limit: int = 0, report: Report = lambda _: None, **flags: Any
) -> dict[str, Any]:
    """Recall of the evidence of a whole run, next to that of one search, and whether the loop is worth its time. A question
    counts as right if everything that it needs is among the first ten."""
    once: dict[str, list[str]] = {}
    whole: dict[str, list[str]] = {}
    seconds: dict[str, tuple[float, float]] = {}  # of one search, and of the whole run
    searches: list[float] = []
    with await open_collection(collection, cache, report, **flags) as opened:
        ids = collection_ids(opened)
        search_context = await opened.context.search_context(opened.scope([BASE]))
        queries = list(collection.queries.items())[: limit or None]
        began = time.perf_counter()
        for number, (query, words) in enumerate(queries, 1):
            started = time.perf_counter()
            once[query] = await rank_by_search(opened, search_context, words, ids)
            searched = time.perf_counter()
            run = await run_without_model(opened, search_context, query, words)
            whole[query] = rank_evidence(run, ids)
            seconds[query] = searched - started, time.perf_counter() - searched
            searches.append(len(run.results))
            if number % 20 == 0:
                report(f"{collection.name}: {number} of {len(queries)} questions")
        took = time.perf_counter() - began
    sides = [
        [_graded(collection, query, ranking, seconds[query][side]) for query, ranking in rankings.items()]
        for side, rankings in enumerate((once, whole))
    ]
    return {
        "one_search": _scores(once, collection, "r@5 r@10 all@5 all@10"),
        "run": _scores(whole, collection, "r@5 r@10 all@5 all@10"),
        "searches": round(mean(searches), 2),
        "verdict": verdict(compare(*sides), "one search", "the loop"),
        "n": len(queries),
        "queries": len(queries),
        "seconds": round(took, 3),
    }


def _graded(collection: BeirCollection, query: str, ranking: list[str], seconds: float) -> Graded:
    metrics = {"right": all_found(ranking, collection.judgements[query], 10), "seconds": seconds}
    return Graded(query, collection.queries[query], (), "", "", "", "", metrics)


METRICS = {"ndcg": ndcg, "r": recall, "all": all_found}


def _scores(rankings: dict[str, list[str]], collection: BeirCollection, names: str) -> dict[str, Any]:
    """The metrics of these names, each at its depth, with intervals."""
    depths = [(name, METRICS[metric], int(k)) for name in names.split() for metric, _, k in [name.partition("@")]]
    return with_intervals(
        [
            {name: metric(ranking, collection.judgements[query], k) for name, metric, k in depths}
            for query, ranking in rankings.items()
        ]
    )
