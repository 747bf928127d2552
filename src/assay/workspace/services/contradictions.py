"""Whether documents that came after an answer contradict it: one request to the judge, recorded as a run of its own. What is
kept is words of the newer documents, found there by code; nothing that the model says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from assay.answer.checking.judge import (
    TOGETHER,
    JudgeRequest,
    Rulings,
    build_prompt,
    carrying_words,
    schema,
    sources_of,
)
from assay.answer.weigh import evidence_key, quote
from assay.core.errors import ModelError, UserError
from assay.core.events import Answered, Asked, Checked, Drafted, Failed, Gathered, ModelReplied
from assay.core.run import Run
from assay.core.types import Answer, Block, Claim, Evidence, Outcome, Shape, Verdict
from assay.index.filters import In
from assay.index.retrieve import retrieve
from assay.language.injection import is_suspicious
from assay.models.ask import ask
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.prompts import fence_mark
from assay.store.runs import records
from assay.workspace.context import WorkspaceContext
from assay.workspace.services.ask import record
from assay.workspace.services.models import Roles, allowance, meter, role_models

PASSAGES = 8  # of newer documents that the judge is shown
QUERY = 1_000  # characters of the claims that are searched for
AS_RECORDED = 0  # a version of the decision code: replay takes the conclusions as they are


@dataclass(frozen=True, slots=True)
class Contradictions:
    """The run that recorded them, and of each of its claims the claim of the answer that it contradicts, by index."""

    run: str
    claims: tuple[int, ...]


async def find_contradictions(
    context: WorkspaceContext, origin: Run, newer: Sequence[str], roles: Roles
) -> Contradictions | None:
    """What of these documents contradicts the answer of a run; None if nothing in them is near, so that nobody was asked."""
    assert origin.answer is not None
    evidence = await _near(context, origin, newer)
    if not evidence:
        return None
    question = f"Do newer documents contradict the answer to “{origin.asked.question}”?"
    today, who = date.today().isoformat(), context.principal.id
    asked = Asked(question, who, today, seats=role_models(roles), recheck=origin.id, version=AS_RECORDED)
    run = record(context, Run(records.begin(context.store, who), ()), asked)
    run = record(context, run, Gathered(evidence))
    try:
        run, rulings, by = await _rulings(context, run, origin, roles)
    except ModelError as error:
        record(context, run, Failed(type(error).__name__, str(error)))
        raise
    found = [
        (each.claim - 1, Claim("", (words[0][0],), Verdict.supported, _WHY, words[0][1], by=by))
        for each in rulings.rulings
        if each.verdict == "contradicted" and 1 <= each.claim <= len(origin.answer.claims)
        if (words := carrying_words(each.words, evidence))
    ]
    claims = tuple(claim for _, claim in found)
    blocks = (Block(claims),) if claims else ()
    run = record(context, run, Drafted(blocks, Shape.list, by=by))
    for place, claim in enumerate(claims):
        run = record(context, run, Checked(place, claim, by))
    outcome = Outcome.answered if claims else Outcome.abstained
    run = record(context, run, Answered(Answer(question, blocks, outcome, Shape.list, usage=run.usage)))
    return Contradictions(run.id, tuple(place for place, _ in found))


_WHY = "found word for word in the document"


async def _near(context: WorkspaceContext, origin: Run, newer: Sequence[str]) -> tuple[Evidence, ...]:
    """The passages of newer documents nearest to the question and to what was answered; none that read like instructions."""
    assert origin.answer is not None
    scope = context.scope()
    search_context = await context.search_context(scope)
    stated = " ".join(" ".join(claim.words.split()) for claim in origin.answer.claims)[:QUERY]
    found = [
        hit.passage
        for query in (origin.asked.question, stated)
        for hit in await retrieve(search_context, query, PASSAGES // 2, scope, In("doc", tuple(newer)))
    ]
    passages = {each.id: each for each in found if not is_suspicious(each.text)}.values()
    return tuple(
        Evidence(evidence_key(each), each, quote(each, 0, len(each.text)), 0.0, origin.asked.question)
        for each in passages
    )


async def _rulings(context: WorkspaceContext, run: Run, origin: Run, roles: Roles) -> tuple[Run, Rulings, str]:
    """The judge's rulings on the claims of an answer by the passages alone. Raises a UserError where a limit is reached."""
    assert origin.answer is not None
    evidence, keys = run.evidence, tuple(each.key for each in run.evidence)
    claims = tuple(
        Claim(" ".join(claim.words.split()), keys, Verdict.partial) for claim in origin.answer.claims[:TOGETHER]
    )
    request, sources = JudgeRequest(claims), sources_of(evidence, context.document)
    # With one of the old documents goes what a model was told of its words.
    documents = {each.passage.doc_id for each in (*evidence, *origin.evidence)}
    now = run

    def keep(reply: ModelReplied) -> None:
        nonlocal now
        now = record(context, now, reply)

    clock = asyncio.get_running_loop().time
    end = clock() + (allowance(context.settings, synthesis=False)["seconds"] or context.settings.llm_timeout)
    reply = await ask(
        replace(meter(context, run, roles, lambda: end - clock(), 0.0), record=keep),
        Role.check,
        "check",
        Rulings,
        lambda room: build_prompt(request, evidence, sources, fence_mark(run.id), room),
        schema=schema(len(claims)),
        documents=sorted(documents),
        max_tokens=500 + 250 * len(claims),
    )
    if isinstance(reply, NoReply):
        record(context, now, Failed(reply.why.value, reply.detail))
        raise UserError(f"No more answers were asked about: {reply.detail}.")
    return now, *reply
