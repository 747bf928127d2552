"""How a peer searches, in the peers' environment, with texts and the vectors of Assay's embedder.

Each peer gets the same pieces and vectors, and searches as its documentation shows it: chroma, paper-qa (`Docs.retrieve_texts`)
and llama-index's `VectorStoreIndex` by vectors; haystack's in-memory store by both, joined by reciprocal ranks; txtai with
`hybrid`; llama-index also with its BM25 retriever in a `QueryFusionRetriever`; haiku.rag with chunks that have their vectors
(`import_documents`), by both, joined by reciprocal ranks.

Printed: what each query finds, how long each took, how long it took until the first could be asked, what that took in memory
beyond the imports and the task itself, and what is kept on disk.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

SECONDS = 1800  # of searching, after which a peer is asked no more


@dataclass(frozen=True)
class Task:
    texts: list[str]  # a piece is known by its place
    vectors: np.ndarray
    queries: list[str]
    query_vectors: np.ndarray
    depth: int

    @property
    def known(self) -> dict[str, np.ndarray]:
        return dict(zip(self.queries, self.query_vectors, strict=True))


@dataclass(frozen=True)
class Built:
    """An index: `search` takes the number of a query, `keep` writes the index to a folder."""

    search: Callable[[int], list[int]]
    keep: Callable[[Path], object]


def chroma(task: Task, folder: Path) -> Built:
    import chromadb

    collection = chromadb.PersistentClient(folder / "own").create_collection(
        "pieces", metadata={"hnsw:space": "cosine"}
    )
    ids = [str(place) for place in range(len(task.texts))]
    for at in range(0, len(ids), 1000):
        part = slice(at, at + 1000)
        collection.add(ids=ids[part], documents=task.texts[part], embeddings=task.vectors[part])

    def search(number: int) -> list[int]:
        found = collection.query(query_embeddings=task.query_vectors[number][None], n_results=min(task.depth, len(ids)))
        return [int(each) for each in found["ids"][0]]

    return Built(search, lambda _: None)  # it has written all of it already


def llama_index(task: Task, folder: Path) -> Built:
    index = _llama_index_vectors(task)
    retriever = index.as_retriever(similarity_top_k=task.depth)
    return Built(
        lambda number: [int(hit.node.node_id) for hit in retriever.retrieve(task.queries[number])],
        lambda place: index.storage_context.persist(str(place)),
    )


def llama_index_bm25(task: Task, folder: Path) -> Built:
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.core.schema import TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    nodes = [TextNode(text=text, id_=str(place)) for place, text in enumerate(task.texts)]
    words = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=min(task.depth, len(nodes)))
    index = _llama_index_vectors(task)
    both = QueryFusionRetriever(
        [index.as_retriever(similarity_top_k=task.depth), words],
        llm=MockLLM(),
        num_queries=1,
        similarity_top_k=task.depth,
        mode="reciprocal_rerank",  # pyright: ignore[reportArgumentType]
        use_async=False,
    )

    def keep(place: Path) -> None:
        index.storage_context.persist(str(place))
        words.persist(str(place / "words"))

    return Built(lambda number: [int(hit.node.node_id) for hit in both.retrieve(task.queries[number])], keep)


def _llama_index_vectors(task: Task) -> Any:
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.schema import TextNode

    known = task.known

    class Known(MockEmbedding):
        def _get_query_embedding(self, query: str) -> list[float]:
            return known[query].tolist()

    rows = enumerate(zip(task.texts, task.vectors, strict=True))
    nodes = [TextNode(text=text, id_=str(place), embedding=vector.tolist()) for place, (text, vector) in rows]
    return VectorStoreIndex(nodes, embed_model=Known(embed_dim=task.vectors.shape[1]))


def haystack(task: Task, folder: Path) -> Built:
    from haystack import Document
    from haystack.components.joiners import DocumentJoiner
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    rows = enumerate(zip(task.texts, task.vectors, strict=True))
    store.write_documents([Document(id=str(n), content=text, embedding=own.tolist()) for n, (text, own) in rows])
    words = InMemoryBM25Retriever(store, top_k=task.depth)
    meaning = InMemoryEmbeddingRetriever(store, top_k=task.depth)
    join = DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=task.depth)

    def search(number: int) -> list[int]:
        vector = task.query_vectors[number].tolist()
        found = [words.run(task.queries[number])["documents"], meaning.run(vector)["documents"]]
        return [int(each.id) for each in join.run(found)["documents"]]

    return Built(search, lambda place: store.save_to_disk(str(place / "store.json")))


def txtai(task: Task, folder: Path) -> Built:
    from txtai import Embeddings

    known = dict(zip(task.texts, task.vectors, strict=True)) | task.known

    def transform(texts: list[str]) -> np.ndarray:
        return np.array([known[text] for text in texts], dtype=np.float32)

    embeddings = Embeddings(method="external", transform=transform, hybrid=True, content=False)
    embeddings.index([(place, text, None) for place, text in enumerate(task.texts)])

    def keep(place: Path) -> None:
        embeddings.config.pop("transform", None)  # a function cannot be saved
        embeddings.save(str(place / "index"))

    return Built(lambda number: [int(place) for place, _ in embeddings.search(task.queries[number], task.depth)], keep)


def paper_qa(task: Task, folder: Path) -> Built:
    from lmi import EmbeddingModel
    from paperqa import Docs, Settings
    from paperqa.types import Doc, Text

    known = task.known

    class Known(EmbeddingModel):
        name: str = "known"
        ndim: int = task.vectors.shape[1]

        async def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [known[text].tolist() for text in texts]

    docs, settings, model, loop = Docs(), Settings(embedding="known"), Known(), asyncio.new_event_loop()

    async def fill() -> None:
        for place, (text, vector) in enumerate(zip(task.texts, task.vectors, strict=True)):
            doc = Doc(docname=f"d{place}", dockey=str(place), citation=f"d{place}")
            own = Text(text=text, name=f"d{place}", doc=doc, embedding=vector.tolist())
            await docs.aadd_texts([own], doc, settings, model)

    def search(number: int) -> list[int]:
        found = loop.run_until_complete(docs.retrieve_texts(task.queries[number], task.depth, settings, model))
        return [int(each.doc.dockey) for each in found]

    loop.run_until_complete(fill())
    return Built(search, lambda place: (place / "docs.pkl").write_bytes(pickle.dumps(docs)))


def haiku_rag(task: Task, folder: Path) -> Built:
    from docling_core.types.doc.document import DoclingDocument
    from haiku.rag.client import HaikuRAG
    from haiku.rag.client.documents import DocumentImport
    from haiku.rag.config import AppConfig
    from haiku.rag.store.models.chunk import Chunk

    known, loop, config = task.known, asyncio.new_event_loop(), AppConfig()
    model = config.embeddings.model
    model.provider, model.name, model.vector_dim = "openai", "known", task.vectors.shape[1]
    model.base_url, model.api_key = "http://127.0.0.1:9/v1", "none"  # never asked: vectors come with the chunks

    async def embed(text: str) -> list[float]:
        return known[text].tolist()

    async def fill() -> HaikuRAG:
        async with HaikuRAG(folder / "own.lancedb", config=config, create=True) as client:
            for at in range(0, len(task.texts), 1000):  # as a long document, cut already
                rows = enumerate(zip(task.texts[at : at + 1000], task.vectors[at : at + 1000], strict=True), at)
                chunks = [  # it numbers the chunks of each document anew
                    Chunk(content=text, metadata={"place": place}, embedding=own.tolist())
                    for place, (text, own) in rows
                ]
                await client.import_documents([DocumentImport(DoclingDocument(name=f"d{at}"), chunks)])
        reader = HaikuRAG(folder / "own.lancedb", config=config, read_only=True)  # what it does aside has ended
        await reader.__aenter__()
        reader.store.embedder.embed_query = embed
        return reader

    client = loop.run_until_complete(fill())

    def search(number: int) -> list[int]:
        found = loop.run_until_complete(client.search(task.queries[number], task.depth))
        return [each.chunk_meta["place"] for each in found]

    return Built(search, lambda _: None)  # it has written all of it already


PEERS: dict[str, tuple[Callable[[Task, Path], Built], str, str]] = {
    "chroma": (chroma, "chromadb", "chromadb"),
    "haiku.rag": (haiku_rag, "haiku.rag-slim", "haiku.rag.client.documents docling_core.types.doc.document"),
    "haystack": (haystack, "haystack-ai", "haystack.document_stores.in_memory"),
    "llama-index": (llama_index, "llama-index-core", "llama_index.core"),
    "llama-index with BM25": (llama_index_bm25, "llama-index-retrievers-bm25", "llama_index.retrievers.bm25"),
    "paper-qa": (paper_qa, "paper-qa", "paperqa"),
    "txtai": (txtai, "txtai", "txtai"),
}


def peak_megabytes() -> float:
    """Of this process alone: what getrusage says includes the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def megabytes() -> float:
    """In memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def main() -> None:
    build, package, module = PEERS[sys.argv[1]]
    given = json.load(sys.stdin)
    vectors, query_vectors = np.load(given["vectors"]), np.load(given["query_vectors"])
    task = Task(given["texts"], vectors, given["queries"], query_vectors, given["depth"])
    for each in module.split():
        __import__(each)
    before = megabytes()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        began = time.perf_counter()
        built = build(task, folder)
        rankings = [built.search(0)]  # the first search may build what it needs
        seconds = time.perf_counter() - began
        peak = peak_megabytes() - before
        taken: list[float] = []
        for number in range(len(task.queries)):
            if number >= 5 and sum(taken) > 1000 * given.get("patience", SECONDS):
                break
            began = time.perf_counter()
            rankings.append(built.search(number))
            taken.append((time.perf_counter() - began) * 1000)
        kept = 0.0
        if given.get("keep"):
            built.keep(folder)
            kept = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    figures = {"seconds": seconds, "peak_mb": peak, "disk_mb": kept, "milliseconds": taken}
    print(json.dumps({"rankings": rankings[1:], "versions": {package: version(package)}, **figures}))


if __name__ == "__main__":
    main()
