"""How long a hybrid search takes, beside the fastest thing that could be done: one matrix product and bm25s, in memory.

    .agents/bin/python bench/query.py [--sizes 1000,10000,100000] [--embed] [--out FILE]

Other libraries search the same texts and vectors, each in a process of its own, after ours.

Passages are invented (Zipfian words from a made-up vocabulary, random unit vectors) and the same on every machine. Ours
searches a folder that other processes may write to, and returns a list that makes a hit, with text, when it is asked for;
the limit returns row numbers. Every passage is a document of its own. `retrieve` is a whole search: both channels, fusion,
access and titles from the store, ten hits made; also for a question of 20,000 characters, which the others are asked up to
10,000 documents. The floor is Lance's word search by itself, row numbers and scores: no hybrid search that uses it can be
faster.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from peer import PYTHON, SEARCHERS, PeerFailed, run_peer
from result_file import add_out, write_result
from sqlalchemy import insert

from assay.core.access import Base, Scope
from assay.core.types import Passage, Row
from assay.index.filters import EVERYTHING, Eq, Filter, In
from assay.index.lance.lance_index import LanceIndex, best_by_words, open_index
from assay.index.lance.tables import Folder
from assay.index.retrieve import SearchContext, retrieve
from assay.store import schema
from assay.store.database import Store, open_store
from assay.store.documents import READY

DIM, WORDS, VOCABULARY = 384, 150, 30_000
LABELS = 10
LONG, LONG_FOR_OTHERS = 20_000, 10_000  # characters of a long question; documents up to which the others are asked it
PATIENCE = 60  # seconds after which a peer is asked no more, if it was asked five times


@dataclass(frozen=True)
class Corpus:
    """Invented passages, each a document, whose label is its number modulo ten."""

    texts: list[str]
    vectors: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class Timing:
    name: str
    size: int
    p50: float
    p95: float


def invent(size: int, seed: int = 7) -> Corpus:
    chance = np.random.default_rng(seed)
    texts = [" ".join(words) for words in _words(chance, size, WORDS)]
    vectors = chance.standard_normal((size, DIM), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Corpus(texts, vectors, np.arange(size) % LABELS)


def questions(count: int, seed: int = 8, words: int = 6) -> tuple[list[str], np.ndarray]:
    chance = np.random.default_rng(seed)
    vectors = chance.standard_normal((count, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return [" ".join(words) for words in _words(chance, count, words)], vectors


def long_questions(count: int) -> tuple[list[str], np.ndarray]:
    texts, vectors = questions(count, seed=9, words=LONG // 4)
    return [text[:LONG] for text in texts], vectors


def _words(chance: np.random.Generator, rows: int, each: int) -> Sequence[Sequence[str]]:
    syllables = ["ka", "lo", "mi", "ter", "ran", "sol", "vi", "du", "pen", "gra", "sti", "ne", "bo", "fu", "cha", "rel"]
    spelling = np.random.default_rng(1)
    vocabulary = np.array(
        ["".join(spelling.choice(syllables, size=spelling.integers(2, 6))) for _ in range(VOCABULARY)], object
    )
    share = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    drawn = np.searchsorted(share / share[-1], chance.random((rows, each)))
    return vocabulary[np.minimum(drawn, VOCABULARY - 1)]


async def fill(index: LanceIndex, corpus: Corpus, batch: int) -> float:
    began = time.perf_counter()
    for start in range(0, len(corpus.texts), batch):
        await index.upsert([_row(corpus, i) for i in range(start, min(start + batch, len(corpus.texts)))])
    return time.perf_counter() - began


def _row(corpus: Corpus, i: int) -> Row:
    doc, text = f"d{i:06d}", corpus.texts[i]
    fields = {"base": "bench", "doc": doc, "source": f"{doc}.txt", "title": doc, "label": f"l{corpus.labels[i]}"}
    passage = Passage(f"{doc}:000", doc, text, 0, len(text))
    return Row(passage, corpus.vectors[i], doc, {**fields, "date": "2024", "type": "text", "language": "en"})


@dataclass(frozen=True)
class Limit:
    """The least that a hybrid search in memory can cost: no text, no versions, no other process."""

    corpus: Corpus
    bm25: Any

    def hybrid(self, words: str, vector: np.ndarray, k: int, mask: np.ndarray | None) -> None:
        import bm25s

        scores = np.vecdot(self.corpus.vectors, vector)  # as fast as `@` on an idle machine, and faster on a busy one
        if mask is not None:
            scores[~mask] = -np.inf
        k = min(k, len(scores))
        best = np.argpartition(scores, len(scores) - k)[-k:]
        best[np.argsort(-scores[best])]
        tokens = bm25s.tokenize([words], show_progress=False, stopwords=None)
        weight = None if mask is None else mask.astype(np.float32)
        self.bm25.retrieve(tokens, k=k, show_progress=False, weight_mask=weight)


def limit(corpus: Corpus) -> Limit:
    import bm25s

    bm25 = bm25s.BM25()
    bm25.index(bm25s.tokenize(corpus.texts, show_progress=False, stopwords=None), show_progress=False)
    return Limit(corpus, bm25)


async def timed(size: int, rounds: int, contestants: dict[str, Callable[[int], Awaitable[object]]]) -> list[Timing]:
    """Every contestant takes its turn in every round, so that whatever else the machine does hits them all alike."""
    took: dict[str, list[float]] = {name: [] for name in contestants}
    for i in range(-3, rounds):
        for name, one in contestants.items():
            began = time.perf_counter()
            await one(i % rounds)
            if i >= 0:
                took[name].append((time.perf_counter() - began) * 1000)
    return [Timing(name, size, *(float(p) for p in np.percentile(each, (50, 95)))) for name, each in took.items()]


async def measure(size: int, rounds: int, k: int, batch: int, embed: bool) -> tuple[list[Timing], dict[str, float]]:
    corpus = invent(size)
    words, vectors = questions(rounds)
    with tempfile.TemporaryDirectory() as folder:
        index = await open_index(Folder(Path(folder)), "bench", DIM, create=True)
        facts = {"fill_s": await fill(index, corpus, batch)}
        began = time.perf_counter()
        await index.optimise()
        facts["optimise_s"] = time.perf_counter() - began
        began = time.perf_counter()
        await index.dense(vectors[0], k, EVERYTHING)
        facts["first_query_s"] = time.perf_counter() - began
        facts["disk_mb"] = _megabytes(Path(folder))
        facts["peak_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        facts["load"] = os.getloadavg()[0]  # of the machine, all its work together
        least = limit(corpus)

        async def ours(i: int, where: Filter) -> None:
            await asyncio.gather(index.lexical(words[i], k, where), index.dense(vectors[i], k, where))

        async def theirs(i: int, mask: np.ndarray | None) -> None:
            least.hybrid(words[i], vectors[i], k, mask)

        long, long_vectors = long_questions(rounds)
        known = dict(zip([*words, *long], [*vectors, *long_vectors], strict=True))
        search_context = SearchContext(stored(Path(folder), corpus), {"bench": index}, Known(known))
        scope = Scope("user:bench", (Base("bench", "bench", "user:bench"),), frozenset(f"l{i}" for i in range(LABELS)))
        few, one = In("label", ("l3", "l4")), Eq("doc", "d000003")
        fifth, third = np.isin(corpus.labels, (3, 4)), np.arange(size) == 3
        contestants = {
            "limit: numpy + bm25s": lambda i: theirs(i, None),
            "ours: hybrid": lambda i: ours(i, EVERYTHING),
            "floor: Lance's words alone": lambda i: best_by_words(index.table, words[i], k, EVERYTHING, folded=True),
            "ours: dense only": lambda i: index.dense(vectors[i], k, EVERYTHING),
            "ours: lexical only": lambda i: index.lexical(words[i], k, EVERYTHING),
            "limit: a fifth of the rows": lambda i: theirs(i, fifth),
            "ours: a fifth of the rows": lambda i: ours(i, few),
            "limit: one document": lambda i: theirs(i, third),
            "ours: one document": lambda i: ours(i, one),
            "ours: retrieve, ten of them": lambda i: retrieve(search_context, words[i], 10, scope),
            f"ours: retrieve, {LONG:,} characters": lambda i: retrieve(search_context, long[i], 10, scope),
        }
        if embed:
            contestants["ours: hybrid, with embedding"] = await _embedding(index, words, k)
        found = await timed(size, rounds, contestants)
        search_context.store.close()
    return found, facts


def beside(
    size: int, rounds: int, k: int, python: Path, versions: dict[str, str], missing: dict[str, str]
) -> list[Timing]:
    """The same searches by other libraries."""
    corpus, found = invent(size), []
    asked = {"": questions(rounds)}
    if size <= LONG_FOR_OTHERS:
        asked[f", {LONG:,} characters"] = long_questions(5)
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/vectors.npy", corpus.vectors)
        task = {"texts": corpus.texts, "vectors": f"{folder}/vectors.npy", "depth": k, "patience": PATIENCE}
        for kind, (words, vectors) in asked.items():
            np.save(f"{folder}/queries.npy", vectors)
            mine = {**task, "queries": words, "query_vectors": f"{folder}/queries.npy"}
            for name in SEARCHERS:
                try:
                    reply = run_peer("peer_search.py", name, mine, python, 300)
                except PeerFailed as failed:
                    missing[f"{name}, {size:,} documents{kind}"] = failed.reason
                    continue
                versions |= reply["versions"]
                took = np.percentile(reply["milliseconds"], (50, 95))
                found.append(Timing(name + kind, size, *(float(p) for p in took)))
    return found


@dataclass(frozen=True)
class Known:
    """An embedder that has seen every question before: what embedding costs is another line."""

    vectors: dict[str, np.ndarray]
    name: str = "known"
    dim: int = DIM
    window: int = 512

    def tokens(self, text: str) -> int:
        return len(text.split())

    async def passages(self, texts: Sequence[str]) -> np.ndarray:
        return await self.queries(texts)

    async def queries(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self.vectors[text] for text in texts])


def stored(folder: Path, corpus: Corpus) -> Store:
    """The documents of the corpus, as the store that a search asks for titles and permission."""
    store = open_store(folder / "state.sqlite", create=True)
    blank = {"status": "read", "why": "", "parser": "", "recipe": "", "bytes": 0, "kind": "text", "added": "2024"}
    lists = {"authors": [], "sections": [], "pages": [], "warnings": [], "meta": {}, "characters": 0, "passages": 0}
    rows = [
        {"id": f"d{doc:06d}", "base": "bench", "label": f"l{label}", "uri": f"{doc}", "digest": f"{doc}"}
        | {"state": READY, "title": f"d{doc:06d}", **blank, **lists}
        for doc, label in enumerate(corpus.labels.tolist())
    ]
    with store.write() as connection:
        connection.execute(insert(schema.bases).values(id="bench", name="bench", owner="user:bench", created="2024"))
        connection.execute(insert(schema.documents), rows)
    return store


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


async def _embedding(index: LanceIndex, words: list[str], k: int) -> Callable[[int], Awaitable[object]]:
    from assay.models.local.bundled import BundledEmbedder

    embedder = BundledEmbedder()

    async def one(i: int) -> None:
        vector = (await embedder.queries([words[i]]))[0]
        await asyncio.gather(index.lexical(words[i], k, EVERYTHING), index.dense(vector, k, EVERYTHING))

    return one


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--k", type=int, default=100, help="hits of each channel, as a search asks for them")
    parser.add_argument("--batch", type=int, default=2048, help="rows to an upsert")
    parser.add_argument("--embed", action="store_true", help="also with the bundled embedder")
    parser.add_argument("--peers", type=Path, default=PYTHON, help="the Python of the peers' environment")
    add_out(parser)
    asked = parser.parse_args()
    figures: dict[str, dict[str, dict[str, float]]] = {}
    versions: dict[str, str] = {}
    missing: dict[str, str] = {}
    print(f"{'':32} {'documents':>9} {'p50 ms':>8} {'p95 ms':>8}")
    for size in map(int, asked.sizes.split(",")):
        timings, facts = await measure(size, asked.rounds, asked.k, asked.batch, asked.embed)
        timings += await asyncio.to_thread(beside, size, asked.rounds, asked.k, asked.peers, versions, missing)
        for timing in timings:
            print(f"{timing.name:32} {size:9,} {timing.p50:8.1f} {timing.p95:8.1f}")
        print("  " + ", ".join(f"{name} {value:.1f}" for name, value in facts.items()), flush=True)
        figures[f"{size:,} documents"] = {each.name: {"p50 ms": each.p50, "p95 ms": each.p95} for each in timings}
        figures.setdefault("facts", {})[f"{size:,} documents"] = dict(facts)
        write_result(asked.out, figures, versions, missing)


if __name__ == "__main__":
    asyncio.run(main())
