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
from scripted import ChatServer

from assay.evaluate.runner import BASE
from assay.models.cost import estimate_tokens
from assay.workspace.facade import Workspace

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

    def cost(self, case: Case, found: Sequence[str]) -> Cost:
        """What the question took, and how much of what answers it is among what was found."""
        got, (read, written) = len(case.gold.keys() & set(found)), self.tokens[case.question]
        requests, whole = self.requests[case.question], got == len(case.gold)
        return Cost(requests, read, written, requests - 1, got / len(case.gold), whole)

    def _summary(self, question: str, asked: str) -> dict[str, Any]:
        words = " ".join(asked.partition(BETWEEN)[2].partition(BETWEEN)[0].split())
        ours = any(words in text for text in self.gold[question])
        return {"summary": ". ".join(words.split(". ")[:2]), "relevance_score": 10} if ours else NOTHING


async def paper_qa_costs(
    cases: Sequence[tuple[Setting, Case]], widths: Sequence[int], python: Path
) -> tuple[dict[int, list[Cost]], dict[str, str]]:
    """The cost of each case at each width, and the version of paper-qa. Raises PeerFailed if it cannot be run."""
    costs: dict[tuple[int, str, str], Cost] = {}
    versions: dict[str, str] = {}
    for collection in dict.fromkeys(case.collection for _, case in cases):
        opened = next(setting.opened for setting, case in cases if case.collection == collection)
        own = [case for _, case in cases if case.collection == collection]
        with tempfile.TemporaryDirectory() as place:
            task = await _task(opened, [case.question for case in own], Path(place))
            for width in widths:
                reader = KnowingReader(own)
                with ChatServer(reader.answer, window=32768) as server:
                    given = {**task, "url": server.url, "width": width}
                    reply = await asyncio.to_thread(run_peer, "peer_evidence.py", "paper-qa", given, python)
                    if server.problems:
                        raise PeerFailed(f"the model could not read its prompt: {server.problems[0]!r}")
                versions |= reply["versions"]
                for case, found in zip(own, reply["evidence"], strict=True):
                    costs[width, collection, case.id] = reader.cost(case, found)
    return {width: [costs[width, case.collection, case.id] for _, case in cases] for width in widths}, versions


async def _task(opened: Workspace, queries: Sequence[str], place: Path) -> dict[str, Any]:
    documents = [opened.documents.get(entry.id) for entry in opened.documents.listing([BASE])]
    pieces = cut({each.id: f"{each.title} {each.text}" for each in documents if each})
    files = {name: str(place / f"{name}.npy") for name in ("vectors", "query_vectors")}
    np.save(files["vectors"], await opened.embedder.passages(pieces.texts))
    np.save(files["query_vectors"], await opened.embedder.queries(queries))
    return {"texts": list(pieces.texts), "owners": list(pieces.owners), "queries": list(queries), **files}
