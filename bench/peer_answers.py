"""How a peer answers with citations, in the peers' environment. Started by cite.py; its model is at an address on loopback.

paper-qa: `Docs.aquery` over all texts, as the reader sees it: `session.answer`, from which it removes citation keys that no
context has. llama-index: `CitationQueryEngine` over all nodes: the response.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

Task = dict[str, Any]  # url, documents {name: text}, questions


def llama_index(task: Task) -> list[str]:
    from llama_index.core import Document, MockEmbedding, VectorStoreIndex
    from llama_index.core.query_engine import CitationQueryEngine
    from llama_index.llms.openai_like import OpenAILike

    model = OpenAILike(model="scripted", api_base=task["url"], api_key="k", is_chat_model=True, context_window=32768)
    documents = [Document(text=text, doc_id=name) for name, text in task["documents"].items()]
    index = VectorStoreIndex.from_documents(documents, embed_model=MockEmbedding(embed_dim=8))
    engine = CitationQueryEngine.from_args(index, llm=model, similarity_top_k=len(documents))
    return [str(engine.query(question)) for question in task["questions"]]


def paper_qa(task: Task) -> list[str]:
    from lmi import EmbeddingModel
    from paperqa import Docs, Settings
    from paperqa.types import Doc, Text

    class Same(EmbeddingModel):
        name: str = "same"
        ndim: int = 8

        async def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[8**-0.5] * 8 for _ in texts]

    # Its models go through litellm, which takes an OpenAI-compatible address from here.
    os.environ |= {"OPENAI_API_KEY": "k", "OPENAI_API_BASE": task["url"], "OPENAI_BASE_URL": task["url"]}
    settings = Settings(llm="openai/scripted", summary_llm="openai/scripted", embedding="same")
    settings.answer.evidence_retrieval = False  # every text, none left out by a search
    settings.answer.answer_max_sources = len(task["documents"])

    async def answers() -> list[str]:
        docs, model = Docs(), Same()
        for name, text in task["documents"].items():
            doc = Doc(docname=name, dockey=name, citation=f"{name}, 2024")
            await docs.aadd_texts([Text(text=text, name=name, doc=doc)], doc, settings, model)
        return [(await docs.aquery(each, settings, embedding_model=model)).answer for each in task["questions"]]

    return asyncio.run(answers())


PEERS: dict[str, tuple[Callable[[Task], list[str]], str]] = {
    "paper-qa": (paper_qa, "paper-qa"),
    "llama-index": (llama_index, "llama-index-core"),
}

if __name__ == "__main__":
    answer, package = PEERS[sys.argv[1]]
    print(json.dumps({"answers": answer(json.load(sys.stdin)), "versions": {package: version(package)}}))
