"""paper-qa's agent as one of the agents of loop.py, in an environment of its own.

It is given the texts, so it does not search for papers: the model has it gather evidence so many times, answer, and end.
Gathering summarises the nearest texts, one a request; the vectors are such that each time finds the next eight.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import numpy as np


async def agent(
    url: str, question: str, texts: Sequence[str], together: int, searches: int, folder: Path
) -> Callable[[], Awaitable[str]]:
    # Its models go through litellm, which takes an OpenAI-compatible address from here.
    os.environ |= {"OPENAI_API_KEY": "k", "OPENAI_API_BASE": url, "OPENAI_BASE_URL": url, "PQA_HOME": str(folder)}
    from lmi import EmbeddingModel
    from paperqa import Docs, Settings
    from paperqa.agents.env import PaperQAEnvironment
    from paperqa.agents.main import run_agent
    from paperqa.types import Doc, Text

    class Known(EmbeddingModel):
        name: str = "known"
        ndim: int = searches

        async def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [unit(int(text.rpartition(" ")[2]) if text.startswith("valves ") else 0) for text in texts]

    class Filled(PaperQAEnvironment):
        async def _reset_docs(self) -> None:
            """Keep the texts: they were not found by its own search."""

    def unit(place: int) -> list[float]:
        return np.eye(searches)[place % searches].tolist()

    settings = Settings(llm="openai/scripted", summary_llm="openai/scripted", embedding="known")
    settings.agent.agent_llm = "openai/scripted"
    settings.agent.tool_names = {"gather_evidence", "gen_answer", "complete"}
    settings.answer.evidence_k = together
    model = Known()

    async def run() -> str:
        docs = Docs()
        for place, text in enumerate(texts):
            doc = Doc(docname=f"d{place}", dockey=str(place), citation=f"d{place}")
            own = Text(text=text, name=f"d{place}", doc=doc, embedding=unit(place // together))
            await docs.aadd_texts([own], doc, settings, model)
        response = await run_agent(docs, question, settings, env_class=Filled, embedding_model=model)
        assert response.status == "success", response.status
        return response.session.answer

    return run
