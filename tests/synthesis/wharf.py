"""Three documents about a wharf, as a synthesis has weighed them: for tests of insights and relations."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from assay.agent.context import RunContext
from assay.agent.tool import ToolContext
from assay.core.account import Brief, Pipeline, Question, QuestionKind
from assay.core.events import Asked, Event, Gathered, Merged, ModelReplied, RoleModel
from assay.core.run import Run
from assay.core.types import Document, Evidence, Passage, Quote
from assay.language.injection import is_suspicious
from assay.models.llm import Prompt, Reply, Role
from assay.models.meter import ConnectedModel, FreeLedger, Meter
from assay.synthesis import state
from assay.testing import WordEmbedder, supported
from assay.testing.protocol import passages_in
from assay.testing.script import ReplyWriter

A = "The crane log of the wharf is kept for 30 days. The crane lifts containers with a hook of steel."
B = "The crane log of the wharf is kept for 90 days. The crane lifts containers with two hooks and a beam."
C = "The quay is swept every morning. The wharf lights are lit by hand at dusk."
LOGS, LIFTS, LIGHTS = "How long is the crane log kept?", "How are containers lifted?", "How are the lights lit?"


def document(id: str, words: str) -> Document:
    return Document(id, "base", f"notes/{id}", id, f"title of {id}", words)


def evidence(source: Document, words: str, score: float = 8.0) -> Evidence:
    """A quotation of a document that is one passage."""
    at = source.text.index(words)
    passage = Passage(f"p-{source.id}", source.id, source.text, 0, len(source.text))
    quote = Quote(source.id, at, at + len(words), words)
    return Evidence(state.evidence_key(quote), passage, quote, score, "", flagged=is_suspicious(source.text))


@dataclass
class Model:
    """A model that answers by a function of what it is shown, judges by another, and keeps every request."""

    says: Callable[[str, str], Mapping[str, Any]]  # (name of the prompt, what is shown) → the reply
    name: str = "model"
    shown: list[str] = field(default_factory=list)
    judges: ReplyWriter = field(default_factory=supported)
    judged: list[str] = field(default_factory=list)

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        task, matter = prompt.messages[0].text, "\n".join(message.text for message in prompt.messages[1:])
        name = task.split("\n")[0].split(" · ")[-1]
        if name == "check":
            self.judged.append(matter)
            return Reply(json.dumps(self.judges(matter, None)))
        self.shown.append(matter)
        return Reply(json.dumps(self.says(name, matter)))


def asked(
    documents: Sequence[Document],
    answers: Mapping[str, Sequence[tuple[str, str]]],
    *,
    model: bool = True,
    small: bool = False,
) -> Run:
    """A run that has weighed its evidence: for each question, the documents that answer it and the words they do it with."""
    by_id = {each.id: each for each in documents}
    role_models = (
        tuple(RoleModel(role.value, "model", not small, True, True, small=small) for role in Role) if model else ()
    )
    brief = Brief(Pipeline.synthesis, tuple(by_id))
    questions = tuple(Question(f"q{n}", words, QuestionKind.workings, ()) for n, words in enumerate(answers, 1))
    run = Run("r1", (Asked("What?", "me", "2026-01-01", seats=role_models, brief=brief), Merged(questions)))
    for question in questions:
        own = tuple(evidence(by_id[doc], words) for doc, words in answers[question.text])
        run = run.then(Gathered(own, question=question.id))
    return run


def context(documents: Sequence[Document], run: Run, model: Model | None = None) -> RunContext:
    by_id = {each.id: each for each in documents}
    search_context: Any = SimpleNamespace(embedder=WordEmbedder())
    nobody: Any = None
    made = RunContext(
        ToolContext(search_context, nobody),
        Run.then,
        by_id.get,
        titled=lambda ids: {doc: by_id[doc].title for doc in ids},
    )
    if model is None:
        return made
    models = {Role(role_model.role): (ConnectedModel(model, role_model),) for role_model in run.asked.seats}
    recorded: list[ModelReplied] = []
    known = run.consulted

    def record(event: ModelReplied) -> None:
        recorded.append(event)
        known[event.request] = event

    return replace(made, meter=Meter(models, record, known.get, FreeLedger()))


async def carried(run: Run, stage: Callable[[Run, RunContext], AsyncIterator[Event]], context: RunContext) -> Run:
    async for event in stage(run, context):
        run = run.then(event)
    return run


def key_of(shown: str, words: str) -> str:
    """The key of the evidence in a request that has these words."""
    return next(key for key, said in passages_in(shown).items() if words in said)
