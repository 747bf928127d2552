"""What paper-qa asks of a model for the questions of cost.py: the same embedder, and a model that knows the same labels."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from labelled import Case, Cost, Setting
from peer import PeerFailed, run_peer
from quality import cut

from assay.evaluate.runner import BASE
from assay.models.token_estimate import estimate_tokens
from assay.testing import ChatServer

NOTHING = {"summary": "", "relevance_score": 0}
BETWEEN = "\n\n---\n\n"  # the parts of its prompts


class KnowingReader:
    """Summarises and scores a text that is of a labelled document, dismisses any other, and answers with what it is shown.
    Counts requests and tokens by question."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.gold = {
            case.question: [" ".join(f"{title} {text}".split()) for title, text in case.gold.values()] for case in cases
        }
        self.requests: Counter[str] = Counter()
        self.tokens: dict[str, list[int]] = defaultdict(lambda: [0, 0])

    def answer(self, request: dict[str, Any]) -> Any:
        asked = "\n".join(str(message["content"]) for message in request["messages"])
        question = next(each for each in self.gold if f"Question: {each}" in asked)
        reply = self._summary(question, asked) if "relevance_score" in asked else "The context says so."
        self.requests[question] += 1
        self.tokens[question][0] += estimate_tokens(asked)
        self.tokens[question][1] += estimate_tokens(str(reply))
        return reply

    def _summary(self, question: str, asked: str) -> dict[str, Any]:
        words = " ".join(asked.partition(BETWEEN)[2].partition(BETWEEN)[0].split())
        ours = any(words in text for text in self.gold[question])
        return {"summary": ". ".join(words.split(". ")[:2]), "relevance_score": 10} if ours else NOTHING


async def paper_qa_costs(
    cases: Sequence[tuple[Setting, Case]], width: int, python: Path
) -> tuple[list[Cost], dict[str, str]]:
    """The cost of each case, and the version of paper-qa. Raises PeerFailed if it cannot be run."""
    costs: dict[tuple[str, str], Cost] = {}
    versions: dict[str, str] = {}
    for collection in dict.fromkeys(case.collection for _, case in cases):
        own = [(setting, case) for setting, case in cases if case.collection == collection]
        reader = KnowingReader([case for _, case in own])
        with ChatServer(reader.answer, window=32768) as server:
            reply = await _evidence(own[0][0], [case.question for _, case in own], width, server.url, python)
            if server.problems:
                raise PeerFailed(f"the model could not read its prompt: {server.problems[0]!r}")
        versions |= reply["versions"]
        for (_, case), found in zip(own, reply["evidence"], strict=True):
            got, (read, written) = len(case.gold.keys() & set(found)), reader.tokens[case.question]
            requests, whole = reader.requests[case.question], got == len(case.gold)
            costs[collection, case.id] = Cost(requests, read, written, requests - 1, got / len(case.gold), whole)
    return [costs[case.collection, case.id] for _, case in cases], versions


async def _evidence(setting: Setting, queries: Sequence[str], width: int, url: str, python: Path) -> dict[str, Any]:
    opened = setting.opened
    documents = [opened.document(entry.id) for entry in opened.sources([BASE])]
    pieces = cut({each.id: f"{each.title} {each.text}" for each in documents if each})
    with tempfile.TemporaryDirectory() as place:
        files = {name: str(Path(place) / f"{name}.npy") for name in ("vectors", "query_vectors")}
        np.save(files["vectors"], await opened.embedder.passages(pieces.texts))
        np.save(files["query_vectors"], await opened.embedder.queries(queries))
        task = {"url": url, "texts": list(pieces.texts), "owners": list(pieces.owners), "width": width, **files}
        return await asyncio.to_thread(
            run_peer, "peer_evidence.py", "paper-qa", {**task, "queries": list(queries)}, python
        )
