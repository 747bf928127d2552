"""What paper-qa gathers as evidence and answers from, in the peers' environment. Started by cost.py; its model is on loopback.

`Docs.aquery`, as it comes but for `evidence_k`: the nearest texts are summarised and scored one by one, and the best are given
to the writer.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from importlib.metadata import version
from typing import Any

import numpy as np

Task = dict[str, Any]  # url, texts, owners, vectors, queries, query_vectors, width


def evidence(task: Task) -> list[list[str]]:
    """For each query, the owners of the texts that were scored above nothing."""
    from lmi import EmbeddingModel
    from paperqa import Docs, Settings
    from paperqa.types import Doc, Text

    vectors, query_vectors = np.load(task["vectors"]), np.load(task["query_vectors"])

    class Known(EmbeddingModel):
        name: str = "known"
        ndim: int = vectors.shape[1]

        async def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [query_vectors[task["queries"].index(text)].tolist() for text in texts]

    # Its models go through litellm, which takes an OpenAI-compatible address from here.
    os.environ |= {"OPENAI_API_KEY": "k", "OPENAI_API_BASE": task["url"], "OPENAI_BASE_URL": task["url"]}
    settings = Settings(llm="openai/scripted", summary_llm="openai/scripted", embedding="known")
    settings.answer.evidence_k = task["width"]

    async def gathered() -> list[list[str]]:
        docs, model = Docs(), Known()
        for place, (text, vector) in enumerate(zip(task["texts"], vectors, strict=True)):
            doc = Doc(docname=f"d{place}", dockey=str(place), citation=f"d{place}")
            await docs.aadd_texts(
                [Text(text=text, name=f"d{place}", doc=doc, embedding=vector.tolist())], doc, settings, model
            )
        sessions = [await docs.aquery(query, settings, embedding_model=model) for query in task["queries"]]
        return [
            [task["owners"][int(str(each.text.doc.dockey))] for each in session.contexts if each.score > 0]
            for session in sessions
        ]

    return asyncio.run(gathered())


if __name__ == "__main__":
    found = evidence(json.load(sys.stdin))
    print(json.dumps({"evidence": found, "versions": {"paper-qa": version("paper-qa")}}))
