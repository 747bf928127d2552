"""A question: begin the run, build its context, let the loop continue it. Each event is recorded before it is yielded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from typing import Any, TypeVar

from assay.agent.context import ROUNDS, SET_ROUNDS, Limits, RunContext, no_crop
from assay.agent.loop import carry_on
from assay.agent.tool import Tool, ToolContext
from assay.agent.toolbox import TOOLS, load_tools, tools_for
from assay.answer.weigh import Assessor
from assay.core import events
from assay.core.access import Scope
from assay.core.errors import Missing, UserError
from assay.core.run import Run
from assay.core.settings import hider
from assay.core.types import Document, Figure
from assay.governance.reviewing import any_review, review_requirement
from assay.governance.spans import export_spans
from assay.index.hop_ranking import HOP_SETTINGS
from assay.index.search_filter import count_left_out
from assay.ingest.parsed import file_limits
from assay.models.factory import has_model
from assay.models.llm import Role
from assay.store import documents, threads
from assay.store.database import Store
from assay.store.runs import budgets, records, reviews, visibility
from assay.workspace.context import WorkspaceContext
from assay.workspace.services import forecast, models
from assay.workspace.types import AskOptions, Steps, check_length

T = TypeVar("T")
PICTURE_WIDTH = 1024  # pixels, and its height at most
# How far a run without a model follows names, if not as its mode says.
HOPS_BY_RULE = {events.Eagerness.sparing: events.Mode.quick, events.Eagerness.eager: events.Mode.thorough}


async def ask(context: WorkspaceContext, question: str, how: AskOptions) -> Steps:
    if not question.strip():
        raise UserError("The question is empty. Ask something.")
    check_length(question.strip())
    if how.route in (events.Route.direct, events.Route.rework):
        raise UserError("Nobody can ask past the documents: the route is lookup, research or one-shot.")
    context = models.Models(context).only_with(how.named if how.model else "")
    settings = context.settings
    scope = context.scope(how.where.bases)  # an unknown base is reported before anything is recorded
    run_id = records.new_id(context.store)
    roles = await models.Models(context).connect_writer(run_id) if how.model and has_model(settings) else {}
    if not roles and events.Checkpoint.reading in (how.checkpoints or ()):
        raise UserError("Only a model can tell the readings of a question: the checkpoint `reading` needs one.")
    who = context.principal.id
    asked = events.Asked(
        question.strip(),
        who,
        how.today or date.today().isoformat(),
        how.mode,
        how.where,
        how.eagerness or events.Eagerness(settings.eagerness),
        tuple(how.checkpoints if how.checkpoints is not None else parse_checkpoints(settings.checkpoints)),
        how.route,
        models.role_models(roles),
        {base.name: base.description for base in scope.bases},
        thread=how.thread,
        history=how.history,
        stakes=how.stakes,
        reviewed=settings.review_always,
        may_be_reviewed=how.stakes is events.Stakes.high or any_review(context.store, settings),
        left_out=count_left_out(how.where, lambda: context.traits(how.where.bases)),
        named=how.named if roles else "",
    )
    gated = how.stakes is events.Stakes.high or settings.review_always
    run = record(context, Run(records.begin(context.store, who, gated=gated, run=run_id), ()), asked)
    forecast.record_expected(context, run)
    yield run, asked
    async for step in continue_run(context, run, roles, how.tools, how.assess):
        yield step


def parse_checkpoints(setting: str) -> tuple[events.Checkpoint, ...]:
    """The checkpoints that a comma-separated setting names."""
    named = [word.strip().lower() for word in setting.split(",") if word.strip()]
    if unknown := [word for word in named if word not in set(events.Checkpoint)]:
        raise UserError(f"There is no checkpoint {unknown[0]!r}. There is: {', '.join(events.Checkpoint)}.")
    return tuple(events.Checkpoint(word) for word in dict.fromkeys(named))


async def resume(context: WorkspaceContext, run: Run, choice: str = "", words: str = "") -> Steps:
    """Continue a run that was interrupted, has failed, or waits for a choice."""
    who = context.principal.id
    resumed = resumption(run, choice, words, who)
    if run.asked.recheck:
        raise UserError(
            "This run asked whether newer documents contradict an answer: `assay recheck --model` asks again."
        )
    if run.asked.thread:
        with suppress(Missing):  # the thread was deleted since
            threads.add(context.store, run.asked.thread, who, run.id)  # the process may have died before doing so
    budgets.mark_lost(context.store, run.id)  # a request that was in flight when a process died may have been paid for
    if resumed is not None:
        run = record(context, run, resumed)
        yield run, resumed
    if run.delivered:
        return
    roles: models.Roles = {}
    if run.asked.has_model:
        if run.asked.branch:
            changed = models.with_model(context, run.asked.branch.model)
        else:
            changed = models.Models(context).only_with(run.asked.named)
        if not has_model(changed.settings):
            raise UserError(
                "This run has a language model, and the settings name none: set `llm_base_url` and `llm_model`."
            )
        connected = await models.Models(changed).connect(run.id, synthesis=run.asked.brief is not None)
        roles = models.with_recorded_capabilities(connected, run)
    async for step in continue_run(context, run, roles):
        yield step


def resumption(run: Run, choice: str, words: str, who: str) -> events.Resumed | None:
    """The event that resumes the run with this choice; None if the run just continues. Refuses what is no choice of the run."""
    waiting = run.waiting
    if waiting is None:
        if choice:
            raise UserError(f"Run {run.id} does not wait for a choice.")
        return events.Resumed(by=who) if run.failed else None
    if not choice:
        raise UserError(f"Run {run.id} waits: {waiting.question} Choose with --choose: {' · '.join(waiting.options)}.")
    fitting = [option for option in waiting.options if option.casefold() == choice.strip().casefold()]
    if not fitting and choice.strip().isdigit() and 0 < int(choice) <= len(waiting.options):
        fitting = [waiting.options[int(choice) - 1]]
    if not fitting:
        raise UserError(f"{choice!r} is none of the choices: {' · '.join(waiting.options)}.")
    if fitting[0] == events.OTHER_WORDS and not words.strip():
        raise UserError("Which other words? Give them with --words.")
    return events.Resumed(fitting[0], words.strip(), who)


async def continue_run(
    context: WorkspaceContext,
    run: Run,
    roles: models.Roles,
    tools: Sequence[Tool] = (),
    assess: Assessor | None = None,
) -> Steps:
    run_context = await run_context_for(context, run, roles, tools, assess)
    before = len(run.events)
    async for event in _loop(run)(run, run_context):
        run = context.run(run.id) if isinstance(event, events.Narrowed) else run.then(event)
        if run.delivered:
            forecast.record_actual(context, run, run_context.limits)
        yield run, event
    await export_spans(context.store, context.settings, run, before)


def _loop(run: Run) -> Callable[[Run, RunContext], AsyncIterator[events.Event]]:
    """The loop that continues this run: the agent's, or that of a synthesis."""
    if run.asked.brief is None:
        return carry_on
    from assay.synthesis import pipeline

    return pipeline.carry_on


def record(context: WorkspaceContext, run: Run, event: events.Event, store: Store | None = None) -> Run:
    """Append an event to the run, in the store first. Secrets in tool output and errors are masked; replies of models are
    masked where they arrive."""
    match event:
        case events.ToolRan(note=note, error=error):
            hide = hider(context.settings)
            event = replace(event, note=hide(note), error=hide(error))
        case events.Failed(detail=detail):
            event = replace(event, detail=hider(context.settings)(detail))
        case _:
            pass
    records.append(store or context.store, run.id, len(run.events), event)
    return run.then(event)


async def run_context_for(
    context: WorkspaceContext,
    run: Run,
    roles: models.Roles | None = None,
    tools: Sequence[Tool] = (),
    assess: Assessor | None = None,
    search_context: Any = None,
) -> RunContext:
    """What a run needs. The scope is read anew in each step, so that revoked access ends at once. `search_context` replaces
    the one that uses the index."""
    asked, settings, deferred = run.asked, context.settings, context.store.deferred()
    bases = asked.where.bases
    search_context = search_context or await context.search_context(context.scope(bases))
    reads = _StepReads()

    def scope() -> Scope:
        return reads.get("scope", context.scope)

    def read(ids: Iterable[str]) -> Mapping[str, Document | None]:
        return reads.get_all(ids, lambda new: documents.get_all(context.store, new, scope().narrowed(bases)))

    def current(now: Run) -> Run:
        reads.clear()
        # A short run inside a synthesis has no record of its own.
        return _current(context, now, scope) if bool(now.asked.brief) == bool(asked.brief) else now

    tool_context = ToolContext(search_context, lambda: scope().narrowed(bases))
    allowed = models.allowance(settings, synthesis=asked.brief is not None)
    seconds_left = _clock(context, run, allowed["seconds"])
    limits = Limits(
        rounds=min(settings.search_rounds or ROUNDS[asked.mode], ROUNDS[asked.mode]),
        set_rounds=min(settings.search_rounds or SET_ROUNDS[asked.mode], SET_ROUNDS[asked.mode]),
        **allowed,
        seconds_left=seconds_left,
        room=min((role_model.window for role_model in asked.seats if role_model.role == Role.decide), default=8192),
    )
    reserve = limits.kept_back * limits.seconds
    return RunContext(
        tool_context=tool_context,
        record=lambda run, event: record(context, run, event, deferred),
        flushed=deferred.flushed,
        document=lambda id: read([id])[id],
        read_together=read,
        unreadable=lambda: tuple(each.uri for each in context.sources(bases) if each.state != documents.READY),
        limits=limits,
        hops=HOP_SETTINGS[asked.mode if asked.has_model else HOPS_BY_RULE.get(asked.eagerness, asked.mode)],
        meter=models.meter(context, run, roles, seconds_left, reserve) if roles else None,
        current=current,
        oversees=review_requirement(context.store, settings),
        cleared=lambda seal: reviews.is_approved(context.store, run.id, seal),
        four_eyes=settings.review_four_eyes,
        marks_disagreement=settings.judges_differ == "mark",
        tools=_tools(context, tool_context, tools) if roles else TOOLS,
        cutoff=settings.evidence_cutoff,
        glossary=context.glossary,
        reranks=settings.reranker == "llm",
        general=settings.llm_general,
        assess=assess,
        crop=no_crop if settings.llm_pictures == "no" else lambda found, figure: _crop(context, found, figure),
    )


async def _crop(context: WorkspaceContext, document: Document, figure: Figure) -> bytes | None:
    """A figure cut out of the stored original; None if that is not there or cannot be drawn."""
    from assay.ingest.sandbox.runner import Sandbox

    try:
        with context.blobs.as_file(document.digest) as path, Sandbox(file_limits(context.settings)) as sandbox:
            made = await sandbox.page_image(path, figure.page, width=PICTURE_WIDTH, box=figure.box)
    except Missing:
        return None
    return made if isinstance(made, bytes) else None


class _StepReads:
    """What a step reads of the store, once each. It is read again in the next step, and after anything was awaited."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}
        self.clear = self._known.clear

    def get(self, name: str, read: Callable[[], T]) -> T:
        return self.get_all([name], lambda _: {name: read()})[name]

    def get_all(self, names: Iterable[str], read: Callable[[Sequence[str]], dict[str, T]]) -> dict[str, Any]:
        if not self._known:
            asyncio.get_running_loop().call_soon(self.clear)
        if new := [name for name in names if name not in self._known]:
            self._known |= dict.fromkeys(new) | read(new)
        return self._known


def _current(context: WorkspaceContext, run: Run, scope: Callable[[], Scope]) -> Run:
    """The run as its person may see it now: unchanged, unless it mentions a document that they may no longer read."""
    if len(run.events) == 1 and not (run.asked.history or run.asked.brief):
        return run
    closed = visibility.hidden_since(context.store, run.id, scope())
    return run if closed is None else context.run(run.id)


def _tools(context: WorkspaceContext, tool_context: ToolContext, own: Sequence[Tool]) -> Mapping[str, Tool]:
    settings = context.settings
    named = [name.strip() for name in settings.tools.split(",") if name.strip()]
    return tools_for(named, tool_context.bases, settings.search_per_base, (*load_tools(settings.own_tools), *own))


def _clock(context: WorkspaceContext, run: Run, seconds: float) -> Callable[[], float]:
    """The seconds that are left of those the run may be active, in this process and earlier ones."""
    before = records.active_seconds(context.store, run.id)
    clock = asyncio.get_running_loop().time
    started = clock()
    return lambda: seconds - before - (clock() - started)
