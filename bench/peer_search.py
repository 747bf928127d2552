"""How a peer searches, in the peers' environment. Started by quality.py, with texts and the vectors of Assay's embedder.

Each peer gets the same pieces and vectors, and searches as its documentation shows it: chroma, paper-qa (`Docs.retrieve_texts`)
and llama-index's `VectorStoreIndex` by vectors; haystack's in-memory store by both, joined by reciprocal ranks; txtai with
`hybrid`; llama-index also with its BM25 retriever in a `QueryFusionRetriever`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Task:
    texts: list[str]  # a piece is known by its place
    vectors: np.ndarray
    queries: list[str]
    query_vectors: np.ndarray
    depth: int


Rankings = list[list[int]]


def chroma(task: Task) -> Rankings:
    import chromadb

    collection = chromadb.EphemeralClient().create_collection("pieces", metadata={"hnsw:space": "cosine"})
    ids = [str(place) for place in range(len(task.texts))]
    for at in range(0, len(ids), 1000):
        part = slice(at, at + 1000)
        collection.add(ids=ids[part], documents=task.texts[part], embeddings=task.vectors[part])
    rankings: Rankings = []
    for vector in task.query_vectors:  # all at once are more variables than its database takes
        found = collection.query(query_embeddings=vector[None], n_results=min(task.depth, len(ids)))
        rankings.append([int(each) for each in found["ids"][0]])
    return rankings


def llama_index(task: Task) -> Rankings:
    retriever = _llama_index_vectors(task)
    return [[int(hit.node.node_id) for hit in retriever.retrieve(query)] for query in task.queries]


def llama_index_bm25(task: Task) -> Rankings:
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.core.schema import TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    nodes = [TextNode(text=text, id_=str(place)) for place, text in enumerate(task.texts)]
    words = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=min(task.depth, len(nodes)))
    both = QueryFusionRetriever(
        [_llama_index_vectors(task), words],
        llm=MockLLM(),
        num_queries=1,
        similarity_top_k=task.depth,
        mode="reciprocal_rerank",  # pyright: ignore[reportArgumentType]
        use_async=False,
    )
    return [[int(hit.node.node_id) for hit in both.retrieve(query)] for query in task.queries]


def _llama_index_vectors(task: Task) -> Any:
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.schema import TextNode

    class Known(MockEmbedding):
        def _get_query_embedding(self, query: str) -> list[float]:
            return task.query_vectors[task.queries.index(query)].tolist()

    rows = enumerate(zip(task.texts, task.vectors, strict=True))
    nodes = [TextNode(text=text, id_=str(place), embedding=vector.tolist()) for place, (text, vector) in rows]
    index = VectorStoreIndex(nodes, embed_model=Known(embed_dim=task.vectors.shape[1]))
    return index.as_retriever(similarity_top_k=task.depth)


def haystack(task: Task) -> Rankings:
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
    rankings: Rankings = []
    for query, vector in zip(task.queries, task.query_vectors, strict=True):
        found = [words.run(query)["documents"], meaning.run(vector.tolist())["documents"]]
        rankings.append([int(each.id) for each in join.run(found)["documents"]])
    return rankings


def txtai(task: Task) -> Rankings:
    from txtai import Embeddings

    known = dict(zip([*task.texts, *task.queries], np.concatenate([task.vectors, task.query_vectors]), strict=True))

    def transform(texts: list[str]) -> np.ndarray:
        return np.array([known[text] for text in texts], dtype=np.float32)

    embeddings = Embeddings(method="external", transform=transform, hybrid=True, content=False)
    embeddings.index([(place, text, None) for place, text in enumerate(task.texts)])
    return [[int(place) for place, _ in embeddings.search(query, task.depth)] for query in task.queries]


def paper_qa(task: Task) -> Rankings:
    from lmi import EmbeddingModel
    from paperqa import Docs, Settings
    from paperqa.types import Doc, Text

    class Known(EmbeddingModel):
        name: str = "known"
        ndim: int = task.vectors.shape[1]

        async def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [task.query_vectors[task.queries.index(text)].tolist() for text in texts]

    async def ranked() -> Rankings:
        docs, settings, model = Docs(), Settings(embedding="known"), Known()
        rows = enumerate(zip(task.texts, task.vectors, strict=True))
        for place, (text, vector) in rows:
            doc = Doc(docname=f"d{place}", dockey=str(place), citation=f"d{place}")
            own = Text(text=text, name=f"d{place}", doc=doc, embedding=vector.tolist())
            await docs.aadd_texts([own], doc, settings, model)
        found = [await docs.retrieve_texts(query, task.depth, settings, model) for query in task.queries]
        return [[int(each.doc.dockey) for each in ranking] for ranking in found]

    return asyncio.run(ranked())


PEERS: dict[str, tuple[Callable[[Task], Rankings], str]] = {
    "chroma": (chroma, "chromadb"),
    "haystack": (haystack, "haystack-ai"),
    "llama-index": (llama_index, "llama-index-core"),
    "llama-index with BM25": (llama_index_bm25, "llama-index-retrievers-bm25"),
    "paper-qa": (paper_qa, "paper-qa"),
    "txtai": (txtai, "txtai"),
}

if __name__ == "__main__":
    search, package = PEERS[sys.argv[1]]
    given = json.load(sys.stdin)
    task = Task(
        given["texts"], np.load(given["vectors"]), given["queries"], np.load(given["query_vectors"]), given["depth"]
    )
    print(json.dumps({"rankings": search(task), "versions": {package: version(package)}}))
