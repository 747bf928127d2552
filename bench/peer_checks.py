"""How a peer checks claims, in the peers' environment. Started by claims.py; the judge that it asks is scripted.

llama-index: `FaithfulnessEvaluator`, which asks a model YES or NO about the passages and takes "yes" in the reply as passed.
haystack: `FaithfulnessEvaluator`, which has a model split an answer into statements and score each 0 or 1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

Case = dict[str, Any]  # claim, question, passages, and what the judge says: `yes`


def llama_index(cases: list[Case]) -> list[bool]:
    from llama_index.core.evaluation import FaithfulnessEvaluator
    from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
    from llama_index.core.llms.callbacks import llm_completion_callback

    class Judge(CustomLLM):
        says: str = ""

        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(context_window=1_000_000)

        @llm_completion_callback()
        def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
            return CompletionResponse(text=self.says)

        @llm_completion_callback()
        def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
            yield self.complete(prompt)

    passed: list[bool] = []
    for case in cases:
        evaluator = FaithfulnessEvaluator(llm=Judge(says="YES" if case["yes"] else "NO"))
        found = evaluator.evaluate(query=case["question"], response=case["claim"], contexts=case["passages"])
        passed.append(bool(found.passing))
    return passed


def haystack(cases: list[Case]) -> list[bool]:
    from haystack import component
    from haystack.components.evaluators import FaithfulnessEvaluator
    from haystack.dataclasses import ChatMessage

    @component
    class Judge:
        said = ""

        @component.output_types(replies=list[ChatMessage])
        def run(self, messages: list[ChatMessage], **_: Any) -> dict[str, Any]:
            return {"replies": [ChatMessage.from_assistant(self.said)]}

    judge = Judge()
    evaluator = FaithfulnessEvaluator(chat_generator=judge, progress_bar=False)
    passed: list[bool] = []
    for case in cases:
        judge.said = json.dumps({"statements": [case["claim"]], "statement_scores": [int(case["yes"])]})
        found = evaluator.run(
            questions=[case["question"]], contexts=[case["passages"]], predicted_answers=[case["claim"]]
        )
        passed.append(bool(found["individual_scores"][0] == 1))
    return passed


PEERS: dict[str, tuple[Callable[[list[Case]], list[bool]], str]] = {
    "llama-index": (llama_index, "llama-index-core"),
    "haystack": (haystack, "haystack-ai"),
}

if __name__ == "__main__":
    check, package = PEERS[sys.argv[1]]
    print(json.dumps({"passed": check(json.load(sys.stdin)["cases"]), "versions": {package: version(package)}}))
