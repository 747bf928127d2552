"""What each part of the ranking is worth: every trick off and on, set by set, with milliseconds a query.

    python bench/ranking.py --data SET [SET …] [--cache FOLDER] [--late] [--out FILE]

A SET is a folder in BEIR's layout (corpus.jsonl, queries.jsonl, qrels/*.tsv), or one that holds several. Documents are
split, embedded, indexed and searched as the product does it; a document's place is that of its best passage. Only `fuse`
(and the reranker, with --late) differ from line to line, so both channels are searched once.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from result_file import add_out, write_result

from assay.core.types import Document, Hit, Passage, Row
from assay.evaluate.metrics import all_found, mean, ndcg, recall
from assay.evaluate.runner import BeirDocument, load
from assay.index.filters import EVERYTHING
from assay.index.fusion import Ranking, fuse
from assay.index.lance.lance_index import LanceIndex, open_index
from assay.index.lance.tables import Folder
from assay.ingest.pipeline import passage_context
from assay.ingest.split import OVERLAP, SIZE, split_passages
from assay.models.local.bundled import BundledEmbedder
from assay.models.reranker import LateInteraction

POOL = 100
OFF = Ranking(feedback=0.0)
RANKINGS: dict[str, Ranking] = {
    "words only": Ranking(lexical=1.0, feedback=0.0),
    "meaning only": Ranking(lexical=0.0, feedback=0.0),
    "scores 0.15 / 0.85": replace(OFF, lexical=0.15),
    "scores 0.25 / 0.75": OFF,
    "scores 0.35 / 0.65": replace(OFF, lexical=0.35),
    "+ feedback, always": Ranking(cohesion=(-1.0, -0.9)),
    "+ feedback, when cohesive": Ranking(),
    "  feedback 0.4": Ranking(feedback=0.4),
    "  feedback 1.2": Ranking(feedback=1.2),
    "  3 hits": Ranking(feedback_hits=3),
    "  8 hits": Ranking(feedback_hits=8),
    "  cohesion 0.6–1.0": Ranking(cohesion=(0.6, 1.0)),
    "  cohesion 0.8–1.2": Ranking(cohesion=(0.8, 1.2)),
}


@dataclass(frozen=True, slots=True)
class Case:
    """One query, what both channels found for it, and what is relevant."""

    query: str
    vector: np.ndarray
    channels: Mapping[str, Sequence[Hit]]
    grades: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Score:
    ndcg10: float
    recall5: float
    recall100: float
    all5: float
    ms: float


def sets(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        yield from (
            [folder] if (folder / "corpus.jsonl").exists() else sorted(p.parent for p in folder.glob("*/corpus.jsonl"))
        )


def split(
    documents: Sequence[BeirDocument], embedder: BundledEmbedder, size: int = SIZE, overlap: int = OVERLAP
) -> list[tuple[Passage, str]]:
    """Every passage with its lead, split as documents are."""
    found: list[tuple[Passage, str]] = []
    for item in documents:
        document = Document(item.id, "bench", item.id, "", item.title, item.text)
        pieces = split_passages(document, embedder.tokens, size, overlap)
        found += [(piece, passage_context(document, piece)) for piece in pieces]
    return found


def embedded_text(piece: Passage, above: str) -> str:
    return f"{above}\n{piece.text}" if above else piece.text


def embedded(texts: Sequence[str], embedder: BundledEmbedder, cache: Path | None) -> np.ndarray:
    key = hashlib.sha256("\0".join([embedder.name, *texts]).encode()).hexdigest()[:24]
    kept = cache / f"{key}.npy" if cache else None
    if kept and kept.exists():
        return np.load(kept)
    vectors = embedder.embed(texts)
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.save(kept, vectors)
    return vectors


async def filled(folder: Path, pieces: Sequence[tuple[Passage, str]], vectors: np.ndarray) -> LanceIndex:
    index = await open_index(Folder(folder), "bench", vectors.shape[1], create=True)
    names = ("base", "source", "title", "date", "type", "language", "label")
    rows = [
        Row(piece, vector, above, {"doc": piece.doc_id, **dict.fromkeys(names, "bench")})
        for (piece, above), vector in zip(pieces, vectors, strict=True)
    ]
    for start in range(0, len(rows), 4096):
        await index.upsert(rows[start : start + 4096])
    await index.optimise()
    return index


async def searched(
    folder: Path,
    embedder: BundledEmbedder,
    limit: int,
    cache: Path | None,
    size: int = SIZE,
    overlap: int = OVERLAP,
) -> tuple[list[Case], float]:
    """Every query's channels, and the milliseconds that finding them took."""
    collection = load(folder)
    pieces = split(collection.documents, embedder, size, overlap)
    vectors = embedded([embedded_text(*each) for each in pieces], embedder, cache)
    asked = list(collection.queries.items())[: limit or None]
    queries = embedded([text for _, text in asked], embedder, cache)
    titles = {item.id: item.title for item in collection.documents}
    cases: list[Case] = []
    with tempfile.TemporaryDirectory() as temporary:
        index = await filled(Path(temporary), pieces, vectors)
        began = time.perf_counter()
        for (name, text), vector in zip(asked, queries, strict=True):
            channels = {
                "dense": await index.dense(vector, POOL, EVERYTHING),
                "lexical": await index.lexical(text, POOL, EVERYTHING),
            }
            cases.append(Case(text, vector, titled(channels, titles), collection.judgements[name]))
        spent = time.perf_counter() - began
    return cases, 1000 * spent / max(len(cases), 1)


def titled(channels: Mapping[str, Sequence[Hit]], titles: Mapping[str, str]) -> dict[str, list[Hit]]:
    return {name: [replace(hit, title=titles[hit.passage.doc_id]) for hit in hits] for name, hits in channels.items()}


def measured(cases: Sequence[Case], rank: Callable[[Case], list[Hit]]) -> Score:
    spent, rows = 0.0, []
    for case in cases:
        began = time.perf_counter()
        hits = rank(case)
        spent += time.perf_counter() - began
        found = list(dict.fromkeys(hit.passage.doc_id for hit in hits))
        rows.append(
            (
                ndcg(found, case.grades),
                recall(found, case.grades, 5),
                recall(found, case.grades, 100),
                all_found(found, case.grades, 5),
            )
        )
    ndcg10, recall5, recall100, all5 = (mean(column) for column in zip(*rows, strict=True))
    return Score(ndcg10, recall5, recall100, all5, 1000 * spent / len(cases))


def by(ranking: Ranking, late: LateInteraction | None = None) -> Callable[[Case], list[Hit]]:
    def rank(case: Case) -> list[Hit]:
        fused = fuse(case.channels, case.vector, ranking)
        return late.reranked(case.query, fused) if late else fused

    return rank


def by_ranks(case: Case) -> list[Hit]:
    """Reciprocal-rank fusion; a larger offset would flatten the first ranks."""
    scores: Counter[str] = Counter()
    for hits in case.channels.values():
        scores.update({hit.passage.id: 1 / (60 + rank) for rank, hit in enumerate(hits, 1)})
    return _ordered(case, scores)


def by_stretched_scores(case: Case) -> list[Hit]:
    """Min-max normalised scores: from 0 for the last hit of a channel to 1 for its first."""
    scores: Counter[str] = Counter()
    for name, share in (("lexical", 0.3), ("dense", 0.7)):
        own = {hit.passage.id: hit.scores[name] for hit in case.channels[name]}
        low, high = min(own.values(), default=0.0), max(own.values(), default=0.0)
        scores.update({id: share * ((score - low) / (high - low) if high > low else 1.0) for id, score in own.items()})
    return _ordered(case, scores)


def _ordered(case: Case, scores: Counter[str]) -> list[Hit]:
    hits = {hit.passage.id: hit for found in case.channels.values() for hit in found}
    return sorted(hits.values(), key=lambda hit: (-scores[hit.passage.id], hit.passage.id))


OTHER_WAYS = {"reciprocal ranks (60)": by_ranks, "min-max 0.3 / 0.7": by_stretched_scores}


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--cache", type=Path, help="where vectors are kept between runs")
    parser.add_argument("--queries", type=int, default=0, help="only the first so many of each set")
    parser.add_argument("--late", action="store_true", help="late interaction over the result, too (slow)")
    add_out(parser)
    options = parser.parse_args()
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for folder in sets(options.data):
        cases, search_ms = await searched(folder, BundledEmbedder(), options.queries, options.cache)
        ways = {name: by(ranking) for name, ranking in RANKINGS.items()} | OTHER_WAYS
        if options.late:
            late = LateInteraction(BundledEmbedder())
            late.reranked("warm up", cases[0].channels["dense"])
            ways["+ late interaction"] = by(Ranking(), late)
        print(f"\n{folder.name}: {len(cases)} queries, both channels in {search_ms:.1f} ms a query")
        print(f"{'':28} {'nDCG@10':>8} {'R@5':>7} {'R@100':>7} {'all@5':>7} {'ms':>7}")
        figures[folder.name] = {}
        for name, rank in ways.items():
            score = measured(cases, rank)
            figures[folder.name][name] = asdict(score)
            print(
                f"{name:28} {score.ndcg10:8.4f} {score.recall5:7.3f} {score.recall100:7.3f} {score.all5:7.3f} {score.ms:7.2f}",
                flush=True,
            )
    print("\nmean nDCG@10 over the sets")
    for name in next(iter(figures.values()), {}):
        print(f"{name:28} {mean([rows[name]['ndcg10'] for rows in figures.values()]):8.4f}")
    write_result(options.out, figures)


if __name__ == "__main__":
    asyncio.run(main())
