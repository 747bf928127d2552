"""Whether the right documents and pages are found: Assay beside other libraries, with the same embedder.

    .venv/bin/python bench/quality.py --data SET… [--pages FOLDER] [--queries 40] [--documents 300] [--out FILE]

A SET is a folder in BEIR's layout; `--pages` names one with pdfs/ and questions.jsonl. The others get Assay's reading of the
documents, cut into pieces of 200 words, and the vectors of Assay's embedder, so they differ by search alone; Assay cuts into
passages of its own. A sample has the queries that the seed chooses, every document that is labelled for them, and others chosen
by chance: fewer documents make it easier for all. `--documents 0 --queries 0 --pdfs 0` takes everything.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from peer import PYTHON, SEARCHERS, PeerFailed, run_peer
from result_file import add_out, show, write_result

from assay.core.codec import digest
from assay.core.types import Document
from assay.evaluate import pages as page_set
from assay.evaluate.metrics import mean, ndcg, recall
from assay.evaluate.runner import BASE, SCHEME, BeirCollection, load, open_collection, rank_by_search
from assay.ingest.sources import find_sources
from assay.models.local.bundled import BundledEmbedder
from assay.workspace.facade import open_workspace

WORDS = 200  # of a piece
DEPTH = 100  # pieces that a peer is asked for


@dataclass(frozen=True, slots=True)
class Pieces:
    """Texts of one document or page each, named by `owners`."""

    owners: Sequence[Any]
    texts: Sequence[str]


class Peers:
    """The peers, with what could not be run and why."""

    def __init__(self, python: Path, cache: Path) -> None:
        self.python, self.cache = python, cache
        self.versions: dict[str, str] = {}
        self.missing: dict[str, str] = {}

    async def rank(self, pieces: Pieces, queries: Sequence[str]) -> dict[str, list[list[Any]]]:
        """For each peer, the owners of the pieces it finds, best first."""
        embedder = BundledEmbedder()
        found: dict[str, list[list[Any]]] = {}
        files = {
            "vectors": await self._vectors(pieces.texts, embedder.passages),
            "query_vectors": await self._vectors(queries, embedder.queries),
        }
        task = {"texts": list(pieces.texts), "queries": list(queries), "depth": DEPTH, **files}
        for name in SEARCHERS:
            try:
                reply = await asyncio.to_thread(run_peer, "peer_search.py", name, task, self.python)
            except PeerFailed as failed:
                self.missing[name] = failed.reason
                continue
            self.versions |= reply["versions"]
            found[name] = [[pieces.owners[each] for each in ranking] for ranking in reply["rankings"]]
        return found

    async def _vectors(self, texts: Sequence[str], embed: Callable[[Sequence[str]], Awaitable[np.ndarray]]) -> str:
        """The file with the vectors of these texts."""
        file = self.cache / f"{digest(chr(0).join((embed.__name__, *texts)))[:16]}.npy"
        if not file.exists():
            vectors = await embed(texts)
            self.cache.mkdir(parents=True, exist_ok=True)
            np.save(file, vectors)
        return str(file)


def cut(texts: Mapping[Any, str]) -> Pieces:
    """Pieces of `WORDS` words. A text that occurs twice is taken once: some peers know a piece by its text."""
    pieces: dict[str, Any] = {}
    for owner, text in texts.items():
        words = text.split()
        for at in range(0, len(words), WORDS):
            pieces.setdefault(" ".join(words[at : at + WORDS]), owner)
    return Pieces(list(pieces.values()), list(pieces))


def sample(collection: BeirCollection, queries: int, documents: int, seed: int) -> BeirCollection:
    chance = random.Random(seed)
    chosen = sorted(collection.queries)
    chosen = chance.sample(chosen, min(queries or len(chosen), len(chosen)))
    wanted = {doc for query in chosen for doc, grade in collection.judgements[query].items() if grade > 0}
    others = [each.id for each in collection.documents if each.id not in wanted]
    more = len(others) if not documents else max(0, min(len(others), documents - len(wanted)))
    kept = wanted | set(chance.sample(others, more))
    return replace(
        collection,
        documents=tuple(each for each in collection.documents if each.id in kept),
        queries={query: collection.queries[query] for query in chosen},
    )


async def measure_documents(collection: BeirCollection, peers: Peers, cache: Path) -> dict[str, dict[str, float]]:
    queries = list(collection.queries.items())
    with await open_collection(collection, cache) as opened:
        ids = {entry.id: entry.uri.removeprefix(SCHEME) for entry in opened.documents.listing([BASE])}
        context = await opened.context.search_context(opened.scope([BASE]))
        ours = [await rank_by_search(opened, context, words, ids) for _, words in queries]
    texts = {each.id: f"{each.title}\n\n{each.text}" for each in collection.documents}
    found = {**await peers.rank(cut(texts), [words for _, words in queries]), "Assay": ours}
    rows: dict[str, dict[str, float]] = {}
    for name, rankings in found.items():
        judged = [
            (list(dict.fromkeys(ranking)), collection.judgements[query])
            for ranking, (query, _) in zip(rankings, queries, strict=True)
        ]
        rows[name] = {
            "nDCG@10": mean([ndcg(*each, 10) for each in judged]),
            "R@5": mean([recall(*each, 5) for each in judged]),
        }
    return rows


async def measure_pages(folder: Path, names: Sequence[str], peers: Peers, cache: Path) -> dict[str, dict[str, float]]:
    """Share of questions with a gold page among those of the first ten pieces."""
    asked = questions_of(folder, names)
    words = [each.question for each in asked]
    with open_workspace(cache / f"pages-{len(names)}", create=True, state="") as opened:
        await opened.documents.add_sources(
            find_sources([folder / "pdfs" / f"{name}.pdf" for name in names]), page_set.BASE
        )
        ours = await page_set.rank_pages(opened, words)
        read = [opened.documents.get(entry.id) for entry in opened.documents.listing([page_set.BASE])]
    texts = {page: text for document in read if document for page, text in pages_of(document).items()}
    found = await peers.rank(cut(texts), words)
    shown = {
        **{name: [frozenset(ranking[:10]) for ranking in rankings] for name, rankings in found.items()},
        "Assay": [page_set.touched(ranking[:10]) for ranking in ours],
    }
    return {
        name: {"page@10": mean([float(bool(own & each.pages)) for own, each in zip(seen, asked, strict=True)])}
        for name, seen in shown.items()
    }


def questions_of(folder: Path, names: Sequence[str]) -> list[page_set.PageQuestion]:
    return [each for each in page_set.load(folder) if each.documents <= set(names)]


def pages_of(document: Document) -> dict[page_set.Page, str]:
    starts = [*document.pages, len(document.text)]
    name = Path(document.uri).stem
    return {(name, number): document.text[start:end] for number, (start, end) in enumerate(pairwise(starts), 1)}


def most_asked(folder: Path, count: int) -> list[str]:
    """The reports that most questions are about."""
    asked = Counter(name for each in page_set.load(folder) for name in each.documents)
    names = sorted(asked, key=lambda name: (-asked[name], name))
    return names[: count or None]


async def compared(given: argparse.Namespace) -> None:
    figures: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        cache = given.cache or Path(temporary)
        peers = Peers(given.peers, cache)
        for folder in given.data:
            chosen = sample(load(folder), given.queries, given.documents, given.seed)
            title = f"{chosen.name}: {len(chosen.queries)} queries over {len(chosen.documents)} documents"
            figures[title] = await measure_documents(chosen, peers, cache)
            show({title: figures[title]})
            write_result(given.out, figures, peers.versions, peers.missing)
        if given.pages:
            names = most_asked(given.pages, given.pdfs)
            title = f"{given.pages.name}: {len(questions_of(given.pages, names))} questions over {len(names)} reports"
            figures[title] = await measure_pages(given.pages, names, peers, cache)
            show({title: figures[title]})
            write_result(given.out, figures, peers.versions, peers.missing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="*", default=[])
    parser.add_argument("--pages", type=Path)
    parser.add_argument("--queries", type=int, default=40, help="of each set; 0 for all")
    parser.add_argument("--documents", type=int, default=300, help="of each set; 0 for all")
    parser.add_argument("--pdfs", type=int, default=3, help="reports of --pages, those with most questions; 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cache", type=Path, help="where collections and vectors are kept between runs")
    parser.add_argument("--peers", type=Path, default=PYTHON, help="the Python of the peers' environment")
    add_out(parser)
    asyncio.run(compared(parser.parse_args()))


if __name__ == "__main__":
    main()
