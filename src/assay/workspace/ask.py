"""A question over a workspace: the run is begun, the kit is laid out, the loop carries it on, each event recorded first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from assay.agent.context import RunContext
from assay.agent.hops.scoring import HOPS
from assay.agent.limits import ROUNDS, Limits
from assay.agent.loop import carry_on
from assay.agent.tool import Tool, ToolContext
from assay.agent.toolbox import TOOLS, load_tools, tools_for
from assay.core.errors import Missing, UserError
from assay.core.events import (
    OTHER_WORDS,
    Asked,
    Checkpoint,
    Eagerness,
    Event,
    Failed,
    Mode,
    Narrowed,
    Resumed,
    Route,
    SearchFilters,
    Stakes,
    ToolRan,
    Withheld,
)
from assay.core.run import Run
from assay.core.settings import hider
from assay.core.types import Exchange
from assay.evidence.assess import Assessor
from assay.governance.tracing.export import traced
from assay.models.factory import has_model
from assay.models.llm import Role
from assay.models.meter import ConnectedModel
from assay.store import documents, threads
from assay.store.access import withheld
from assay.store.runs import budgets, records, reviews
from assay.workspace import forecast, model_roles
from assay.workspace.review import oversees

if TYPE_CHECKING:
    from assay.workspace.facade import Workspace

Steps = AsyncIterator[tuple[Run, Event]]


@dataclass(frozen=True, slots=True)
class AskOptions:
    """How a question is to be dealt with: what a person may choose for each."""

    mode: Mode = Mode.balanced
    where: SearchFilters = field(default_factory=SearchFilters)
    today: str | None = None
    eagerness: Eagerness | None = None  # None leaves it to the settings
    checkpoints: Sequence[Checkpoint] | None = None
    route: Route | None = None  # a plain look-up, or the loop, without asking a model which
    model: bool = True  # False goes by rule, whatever the settings say
    tools: Sequence[Tool] = ()  # read-only tools of one's own
    assess: Assessor | None = None  # one's own way to weigh evidence
    thread: str = ""  # the conversation that it is a turn of, and what came before in it
    history: tuple[Exchange, ...] = ()
    stakes: Stakes = Stakes.normal  # high: a person looks at the answer before it is delivered


async def ask(workspace: Workspace, question: str, how: AskOptions) -> Steps:
    if not question.strip():
        raise UserError("The question is empty. Ask something.")
    if how.route is Route.direct:
        raise UserError("Nobody can ask past the documents: the route is lookup or research.")
    scope = workspace.scope(how.where.bases)  # an unknown base is said before anything is written down
    roles = await roles_of(workspace) if how.model and has_model(workspace.settings) else {}
    who = workspace.principal.id
    asked = Asked(
        question.strip(),
        who,
        how.today or date.today().isoformat(),
        how.mode,
        how.where,
        how.eagerness or Eagerness(workspace.settings.eagerness),
        tuple(how.checkpoints if how.checkpoints is not None else checkpoints_in(workspace.settings.checkpoints)),
        how.route,
        model_roles.seats(roles),
        {base.name: base.description for base in scope.bases},
        thread=how.thread,
        history=how.history,
        stakes=how.stakes,
    )
    gated = how.stakes is Stakes.high or workspace.settings.review_always
    run = recorded(workspace, Run(records.begin(workspace.store, who, gated=gated), ()), asked)
    forecast.begun(workspace, run)
    yield run, asked
    async for step in carried_on(workspace, run, roles, how.tools, how.assess):
        yield step


def checkpoints_in(words: str) -> tuple[Checkpoint, ...]:
    """Checkpoints as a setting names them."""
    named = [word.strip().lower() for word in words.split(",") if word.strip()]
    if strange := [word for word in named if word not in set(Checkpoint)]:
        raise UserError(f"There is no checkpoint {strange[0]!r}. There is: {', '.join(Checkpoint)}.")
    return tuple(Checkpoint(word) for word in dict.fromkeys(named))


async def resume(workspace: Workspace, run: Run, choice: str = "", words: str = "") -> Steps:
    """Carry on a run that was stopped, has failed, or waits for a person; the latter needs a choice."""
    who = workspace.principal.id
    decision = decided(run, choice, words, who)
    if run.asked.thread:
        with suppress(Missing):  # of a thread that was forgotten since it is no turn
            threads.add(workspace.store, run.asked.thread, who, run.id)  # the process may have died before it was one
    budgets.lost(workspace.store, run.id)  # what was in flight when a process died may have been paid for
    if decision is not None:
        run = recorded(workspace, run, decision)
        yield run, decision
    if run.delivered:
        return
    roles: Mapping[Role, tuple[ConnectedModel, ...]] = {}
    if run.asked.has_model:
        from assay.workspace.rerun import as_begun

        asked = as_begun(workspace, run)  # with the model that it was begun with, where that is another one
        if not has_model(asked.settings):
            raise UserError(
                "This run has a language model, and the settings name none: set `llm_base_url` and `llm_model`."
            )
        roles = model_roles.as_recorded(await roles_of(asked), run)
    async for step in carried_on(workspace, run, roles):
        yield step


def decided(run: Run, choice: str, words: str, who: str) -> Resumed | None:
    """What a person's choice is as an event; none where nobody has to choose."""
    waiting = run.waiting
    if waiting is None:
        if choice:
            raise UserError(f"Run {run.id} does not wait for a choice.")
        return Resumed(by=who) if run.failed else None
    if not choice:
        raise UserError(f"Run {run.id} waits: {waiting.question} Choose with --choose: {' · '.join(waiting.options)}.")
    fitting = [option for option in waiting.options if option.casefold() == choice.strip().casefold()]
    if not fitting and choice.strip().isdigit() and 0 < int(choice) <= len(waiting.options):
        fitting = [waiting.options[int(choice) - 1]]
    if not fitting:
        raise UserError(f"{choice!r} is none of the choices: {' · '.join(waiting.options)}.")
    if fitting[0] == OTHER_WORDS and not words.strip():
        raise UserError("Which other words? Give them with --words.")
    return Resumed(fitting[0], words.strip(), who)


async def roles_of(workspace: Workspace) -> Mapping[Role, tuple[ConnectedModel, ...]]:
    workspace.models_agreed()
    return await model_roles.seated(workspace)


async def carried_on(
    workspace: Workspace,
    run: Run,
    roles: Mapping[Role, tuple[ConnectedModel, ...]],
    tools: Sequence[Tool] = (),
    assess: Assessor | None = None,
) -> Steps:
    context = await run_context_for(workspace, run, roles, tools, assess)
    before = len(run.events)
    async for event in loop_of(run)(run, context):
        run = workspace.run(run.id) if isinstance(event, Narrowed) else run.then(event)
        if run.delivered:
            forecast.ended(workspace, run, context.limits)  # what was set aside for a draft that needed less is free
        yield run, event
    await traced(workspace.store, workspace.settings, run, before)


def loop_of(run: Run) -> Callable[[Run, RunContext], AsyncIterator[Event]]:
    """The loop that carries a run on: the agent's, or that of a synthesis."""
    if run.asked.brief is None:
        return carry_on
    from assay.synthesis import pipeline

    return pipeline.carry_on


def recorded(workspace: Workspace, run: Run, event: Event) -> Run:
    match event:  # what tools and errors say may repeat a key; replies come without them already
        case ToolRan(note=note, error=error):
            hide = hider(workspace.settings)
            event = replace(event, note=hide(note), error=hide(error))
        case Failed(detail=detail):
            event = replace(event, detail=hider(workspace.settings)(detail))
        case _:
            pass
    records.append(workspace.store, run.id, len(run.events), event)
    return run.then(event)


async def run_context_for(
    workspace: Workspace,
    run: Run,
    roles: Mapping[Role, tuple[ConnectedModel, ...]] | None = None,
    tools: Sequence[Tool] = (),
    assess: Assessor | None = None,
    search_context: Any = None,
) -> RunContext:
    """What a run needs. The scope is made anew whenever it is asked for: access taken away is gone at the next call. `shelf`
    takes the place of the one that looks into the index."""
    asked, settings = run.asked, workspace.settings
    bases = asked.where.bases
    scope = workspace.scope(bases)
    tool_context = ToolContext(search_context or await workspace.search_context(scope), lambda: workspace.scope(bases))
    allowed = model_roles.allowance(settings, run)
    left = _clock(workspace, run, allowed.seconds)
    limits = Limits(
        rounds=settings.search_rounds or ROUNDS[asked.mode],
        calls=allowed.calls,
        tokens=allowed.tokens,
        money=allowed.money,
        seconds=allowed.seconds,
        seconds_left=left,
        room=min((seat.window for seat in asked.seats if seat.role == Role.decide), default=8192),
    )
    kept_back = limits.kept_back * limits.seconds
    return RunContext(
        tool_context=tool_context,
        record=lambda run, event: recorded(workspace, run, event),
        document=lambda document: documents.get(workspace.store, document, workspace.scope(bases)),
        unreadable=lambda: tuple(each.uri for each in workspace.sources(bases) if each.state != documents.READY),
        limits=limits,
        hops=HOPS[asked.mode],
        meter=model_roles.meter(workspace, run, roles, left, kept_back) if roles else None,
        # A short run inside a synthesis is in no record of its own.
        current=lambda now: current(workspace, now) if bool(now.asked.brief) == bool(asked.brief) else now,
        oversees=oversees(workspace),
        cleared=lambda seal: reviews.cleared(workspace.store, run.id, seal),
        four_eyes=settings.review_four_eyes,
        tools=_tools(workspace, tool_context, tools) if roles else TOOLS,
        cutoff=settings.evidence_cutoff,
        general=settings.llm_general,
        assess=assess,
    )


def current(workspace: Workspace, run: Run) -> Run:
    """The run as its person may see it now: the same one, unless it speaks of a document that they may not read any more."""
    hidden = any(isinstance(event, Withheld) for event in run.events)  # before it was carried on again
    if not (run.asked.history or run.asked.brief or run.found or hidden):
        return run
    closed = withheld.closed_since(workspace.store, run.id, workspace.scope())
    return run if closed is None else workspace.run(run.id)


def _tools(workspace: Workspace, tool_context: ToolContext, own: Sequence[Tool]) -> Mapping[str, Tool]:
    settings = workspace.settings
    named = [name.strip() for name in settings.tools.split(",") if name.strip()]
    return tools_for(named, tool_context.bases, settings.search_per_base, (*load_tools(settings.own_tools), *own))


def _clock(workspace: Workspace, run: Run, seconds: float) -> Callable[[], float]:
    """Seconds left of those that the run may take: active ones, in this process and in those before."""
    before = records.active_seconds(workspace.store, run.id)
    clock = asyncio.get_running_loop().time
    begun = clock()
    return lambda: seconds - before - (clock() - begun)
