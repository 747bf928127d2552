"""Reports on as many mills as wanted, as a synthesis has drawn insights from them: for tests of spine and narrative."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from assay.agent.context import RunContext
from assay.agent.steps.check import check
from assay.agent.tool import ToolContext
from assay.core.account import Brief, Insight, Pipeline, Portrait, Question, QuestionKind, Relation
from assay.core.events import (
    Asked,
    Described,
    Event,
    Found,
    Gathered,
    InsightsDrawn,
    Merged,
    ModelReplied,
    Paired,
    PassagesChosen,
    Related,
    RoleModel,
)
from assay.core.run import Run
from assay.core.types import Claim, Document, Evidence, Passage, Quote, Verdict
from assay.language.injection import is_suspicious
from assay.models.llm import Prompt, Reply, Role
from assay.models.meter import ConnectedModel, FreeLedger, Meter
from assay.models.token_estimate import prompt_tokens
from assay.synthesis import state
from assay.synthesis.stages import narrative, spine
from assay.testing import WordEmbedder, drops, passages_in, supported

PLACES = ["Ashby", "Birk", "Corley", "Dunholt", "Elmet", "Farrow", "Garth", "Holme", "Ingley", "Jarrow"]
PARTS = [
    "wheel turns buckets",
    "dam holds pond",
    "roof carries slates",
    "cellar stores barley",
    "boat brings timber",
    "bell calls carters",
]
QUESTIONS = ("When was it repaired?", "Who works there?", "How does it work?")


def document(number: int) -> Document:
    """A report: three sentences, of which each answers one question."""
    name = f"{PLACES[number % 10]} {'North South East West Upper Lower'.split()[number // 10 % 6]}"
    part, does, what = PARTS[number // 10 % 6].split()
    words = (
        f"The {part} of {name} mill was repaired in {1800 + number}. "
        f"The {part} is tended by {number + 2} workers at {name}. "
        f"The {part} {does} the {what} of {name} mill."
    )
    return Document(f"d{number:03}", "base", f"notes/{number}", str(number), f"Report on {name} mill", words)


def evidence(source: Document, words: str, score: float = 8.0) -> Evidence:
    at = source.text.index(words)
    passage = Passage(f"p-{source.id}-{at}", source.id, source.text, 0, len(source.text))
    quote = Quote(source.id, at, at + len(words), words)
    return Evidence(state.evidence_key(quote), passage, quote, score, "", flagged=is_suspicious(words))


def sentences(source: Document) -> list[str]:
    return re.findall(r"[^.]+\.", source.text.strip().replace(". ", ".")) or [source.text]


class Killed(BaseException):
    """The end of the process."""


@dataclass
class Model:
    """A model that answers by a function of what it is shown; it keeps every prompt, and may stop answering."""

    says: Callable[[str, str], Mapping[str, Any]]  # (name of the prompt, what is shown) → the reply
    name: str = "model"
    prompts: list[tuple[str, Prompt]] = field(default_factory=list)
    until: int = 10_000

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        if len(self.prompts) >= self.until:
            raise Killed
        name = prompt.messages[0].text.split("\n")[0].split(" · ")[-1]
        self.prompts.append((name, prompt))
        return Reply(json.dumps(self.says(name, "\n".join(message.text for message in prompt.messages[1:]))))

    def shown(self, name: str) -> list[str]:
        return [prompt.messages[1].text for own, prompt in self.prompts if own == name]

    def largest(self) -> int:
        """Tokens of the largest request together with its reply."""
        return max(prompt_tokens(prompt) + prompt.max_tokens for _, prompt in self.prompts)


def drawn(
    documents: Sequence[Document],
    pipeline: Pipeline = Pipeline.synthesis,
    *,
    model: bool = True,
    small: bool = False,
    window: int = 8192,
    relations: Sequence[Relation] = (),
    mention: int = 2,
) -> Run:
    """A run that has its evidence, and, for a synthesis, its insights: `mention` of each document, in its own words."""
    role_models = (
        tuple(RoleModel(role.value, "model", not small, True, True, window, small) for role in Role) if model else ()
    )
    ids = tuple(each.id for each in documents)
    asked = Asked("What do they say?", "me", "2026-01-01", seats=role_models, brief=Brief(pipeline, ids))
    run = Run("r1", (asked, *(Described(Portrait(each.id, each.title)) for each in documents)))
    questions = tuple(Question(f"q{n}", QUESTIONS[n - 1], QuestionKind.workings, ids) for n in range(1, mention + 1))
    run = run.then(Merged(questions))
    own = {q.id: [evidence(each, sentences(each)[n]) for each in documents] for n, q in enumerate(questions)}
    for question, found in own.items():
        run = run.then(
            PassagesChosen(question, tuple(Found(each.passage, n, 1.0) for n, each in enumerate(found, 1)), 9, "x")
        )
        run = run.then(Gathered(tuple(found), question=question))
    if pipeline is Pipeline.summary:
        return run
    for question, found in own.items():
        told = [
            Insight(f"{question}-{each.quote.doc_id}", question, each.quote.doc_id,
                    Claim("", (each.key,), Verdict.supported, quote=each.quote))
            for each in found
        ]  # fmt: skip
        run = run.then(InsightsDrawn(question, tuple(told)))
    return run.then(Paired((), "all")).then(Related(0, tuple(relations)))


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
    known = run.consulted
    return replace(
        made, meter=Meter(models, lambda event: known.update({event.request: event}), known.get, FreeLedger())
    )


def recorded(context: RunContext) -> dict[str, ModelReplied]:
    """The replies that a kit has recorded, by request."""
    assert context.meter is not None
    return context.meter.recorded_reply.__self__  # type: ignore[attr-defined]


async def carried(run: Run, context: RunContext, *stages: Callable[[Run, RunContext], AsyncIterator[Event]]) -> Run:
    for stage in stages:
        async for event in stage(run, context):
            run = run.then(event)
    return run


async def told(run: Run, context: RunContext) -> Run:
    """From the insights to the answer: spine, narrative, check, revision, delivery."""
    if state.brief(run).pipeline is Pipeline.synthesis:
        run = await carried(run, context, spine.write_spine)
    run = await carried(run, context, narrative.narrate, check)
    if run.unsupported:
        run = await carried(run, context, narrative.revise, check)
    return await carried(run, context, narrative.deliver)


# --- a model that means well ----------------------------------------------------------------------------------------


def good(name: str, shown: str) -> dict[str, Any]:
    if name == "themes":
        groups = {key: words for key, words in passages_in(shown).items() if key.startswith("T")}
        return {"names": [{"theme": key, "name": words.split()[1]} for key, words in groups.items()]}
    if name == "spine":
        return {"theme": "The mill repaired", "sentences": [stated(label, words) for label, words in lines(shown)]}
    if name == "narrate":
        return {"blocks": [{"claims": claims(shown)}]}
    if name == "check":
        return judged(shown)
    if name == "revise":
        return drops()(shown, None)  # type: ignore[return-value]
    raise AssertionError(name)


INVENTED = re.compile(r"Bolton|Peru|Lisbon|kind")


def judged(shown: str) -> dict[str, Any]:
    """A judge who knows what was made up."""
    told = dict(re.findall(r"^Claim (\d+) \([^)]*\): (.*)$", shown, re.M))
    reply: Any = supported("so it says")(shown, None)
    for ruling in reply["rulings"]:
        if INVENTED.search(told[str(ruling["claim"])]):
            ruling |= {"verdict": "unsupported", "why": "it does not say so"}
    return reply


def lines(shown: str) -> list[tuple[str, str]]:
    """Each document that the spine is asked for, and the first line that is shown of it."""
    return [(key, words.split("\n")[0]) for key, words in passages_in(shown).items() if re.fullmatch(r"D\d+", key)]


def stated(label: str, line: str) -> dict[str, Any]:
    match = re.match(r"key (\w{8}): (.*)", line)
    assert match
    return {"text": f"{label} reports that {match[2][0].lower()}{match[2][1:]}", "cites": [match[1]]}


def claims(shown: str) -> list[dict[str, Any]]:
    parts = passages_in(shown).items()
    return [{"text": words, "cites": [key]} for key, words in parts if re.fullmatch(r"[0-9a-f]{8}", key)]
