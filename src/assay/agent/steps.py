"""What each step does: it yields events and changes nothing else. Here every step follows rules, with no model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from assay import dates
from assay.agent import hops, rules
from assay.agent.hops import Hops, Lead, Ran
from assay.agent.limits import Limits
from assay.agent.tool import Desk
from assay.agent.toolbox import TOOLS
from assay.answer import compose, extract
from assay.errors import ToolError
from assay.events import (
    Answered,
    Call,
    Checked,
    Decided,
    Event,
    Gathered,
    Judged,
    Mode,
    Planned,
    Route,
    Routed,
    Stopped,
    StopReason,
    ToolRan,
)
from assay.evidence import weigh
from assay.index.retrieve import fetch, query_vectors
from assay.index.wheres import filter_for
from assay.run import Run
from assay.types import Document, Hit

HOPS: Mapping[Mode, Hops] = {
    Mode.quick: Hops(limit=6, rounds=(5,)),
    Mode.balanced: Hops(),
    Mode.thorough: Hops(limit=24, rounds=(7, 4, 4, 4, 4)),
}


class Step(Enum):
    ROUTE = auto()
    PLAN = auto()
    DECIDE = auto()
    CALL = auto()
    GATHER = auto()
    JUDGE = auto()
    STOP = auto()
    DRAFT = auto()
    CHECK = auto()
    DELIVER = auto()


@dataclass(frozen=True, slots=True)
class Kit:
    """What a run is carried on with. `record` puts an event on disk and gives back the longer run."""

    desk: Desk
    record: Callable[[Run, Event], Run]
    document: Callable[[str], Document | None]  # within the scope of the person asking
    unreadable: Callable[[], tuple[str, ...]] = tuple
    limits: Limits = field(default_factory=Limits)
    hops: Hops = field(default_factory=Hops)


async def route(run: Run, kit: Kit) -> AsyncIterator[Event]:
    """Everything is researched when there is no model to tell a greeting from a question. Named dates limit the search."""
    named = dates.span_of(run.question, run.asked.today)
    if named is None or run.asked.where.since or run.asked.where.until:
        yield Routed(Route.research, "no model: every question is researched by rule")
        return
    days, words = named
    why = f"no model: researched by rule; no documents dated outside {days.since} to {days.until}, since it says {words!r}"
    yield Routed(Route.research, why, days.since, days.until)


async def plan(run: Run, kit: Kit) -> AsyncIterator[Event]:
    """What the question asks for: something about each name in it, and then the question itself."""
    yield Planned(rules.steps(run.question))


async def decide(run: Run, kit: Kit) -> AsyncIterator[Event]:
    """First the question in its own words; then the most promising names; or say why nothing is worth trying."""
    done = await searches(run, kit)
    if run.calls and not done:
        yield Decided((), "nothing new")  # every call was refused: there is nothing to go on
        return
    following = rules.next_searches(run.question, done, kit.hops)
    why = "; ".join(lead.reason for lead in following.leads) if following.leads else following.stop
    yield Decided(_calls(run, following.leads), why)


def _calls(run: Run, leads: list[Lead] | tuple[Lead, ...]) -> tuple[Call, ...]:
    first = len(run.calls) + 1
    return tuple(_call(f"c{number}", lead) for number, lead in enumerate(leads, first))


def _call(number: str, lead: Lead) -> Call:
    if lead.source:
        return Call(number, "follow", {"passage": lead.source, "name": lead.name, "query": lead.query, "k": lead.k})
    return Call(number, "search", {"query": lead.query, "k": lead.k} | ({"name": lead.name} if lead.name else {}))


def _lead(call: Call) -> Lead:
    """A call as the rules know it: the reverse of `_call`."""
    of = call.arguments
    return Lead(str(of["query"]), "", int(of["k"]), str(of.get("name", "")), str(of.get("passage", "")))


async def call(run: Run, kit: Kit) -> AsyncIterator[Event]:
    """Make the calls that are waiting, side by side. What a tool refuses is a result too."""

    desk = replace(kit.desk, where=filter_for(run.where))

    async def made(one: Call) -> ToolRan:
        tool = TOOLS.get(one.tool)
        try:
            if tool is None:
                raise ToolError(f"There is no tool called {one.tool!r}. There are: {', '.join(sorted(TOOLS))}.")
            result = await tool(desk, one.arguments)
            return ToolRan(one.id, result.found, result.note)
        except ToolError as error:
            return ToolRan(one.id, (), error=str(error))

    for ran in await asyncio.gather(*(made(one) for one in run.calls_waiting)):
        yield ran


async def searches(run: Run, kit: Kit) -> list[Ran]:
    """The run's searches as the rules read them: each with the vectors of its words and of what it found."""
    done = [
        (call, run.results[call.id]) for call in run.calls if call.id in run.results and not run.results[call.id].error
    ]
    hits = await hits_of(run, kit)
    vectors = await query_vectors(kit.desk.shelf, [str(call.arguments["query"]) for call, _ in done])
    return [
        Ran(
            _lead(call),
            vector,
            tuple(
                replace(hits[found.passage.id], scores={"fused": found.score}, rank=found.rank)
                for found in result.found
                if found.passage.id in hits
            ),
        )
        for (call, result), vector in zip(done, vectors, strict=True)
    ]


async def hits_of(run: Run, kit: Kit) -> Mapping[str, Hit]:
    """Every passage of the run with its vector: remembered, or (after a restart) fetched again."""
    missing = {found.passage.id for found in run.found} - kit.desk.seen.keys()
    if missing:
        for hit in await fetch(kit.desk.shelf, sorted(missing), kit.desk.scope()):
            kit.desk.seen[hit.passage.id] = hit
    return kit.desk.seen


async def titles_of(run: Run, kit: Kit) -> dict[str, str]:
    """The titles of the documents that were found, by document."""
    return {hit.passage.doc_id: hit.title for hit in (await hits_of(run, kit)).values()}


async def gather(run: Run, kit: Kit) -> AsyncIterator[Event]:
    """Weigh what has come back: quote what bears on the question, pass over the rest."""
    ranked = hops.order(run.question, await searches(run, kit), kit.hops)
    evidence = weigh.by_rule(run.question, [(each.hit, each.score) for each in ranked], run.evidence)
    kept = {each.passage.id for each in evidence} | {each.passage.id for each in run.evidence}
    dropped = tuple(found.passage.id for found in run.unweighed if found.passage.id not in kept)
    yield Gathered(evidence, dropped)


async def judge(run: Run, kit: Kit) -> AsyncIterator[Event]:
    """Which words of the question does the evidence not speak of yet?"""
    missing = extract.missing(run.question, run.evidence, titles=await titles_of(run, kit))
    yield Judged(False, missing, "every word of the question occurs in the evidence" if not missing else "")


async def stop(run: Run, kit: Kit) -> AsyncIterator[Event]:
    reason = {"covered": StopReason.sufficient, "limit": StopReason.searches}.get(
        run.nothing_left, StopReason.nothing_new
    )
    yield kit.limits.reached(run) or Stopped(reason, run.nothing_left)


async def draft(run: Run, kit: Kit) -> AsyncIterator[Event]:
    """The sentences that answer, as they stand; or none, and the ones that came nearest."""
    done = await searches(run, kit)
    ranked = hops.order(run.question, done, kit.hops) if done else []
    ties = [(each.hit.passage.id, each.link.source, each.link.name) for each in ranked if each.link]
    found = extract.candidates(run.evidence, ties, await titles_of(run, kit))
    vectors = await kit.desk.shelf.embedder.queries([run.question, *(each.said for each in found)])
    yield extract.draft(run.question, found, vectors)


async def check(run: Run, kit: Kit) -> AsyncIterator[Event]:
    """Each claim against the document it quotes: by string, in the one place where the document's words live."""
    for place, claim in run.unchecked:
        yield Checked(place, compose.checked(claim, run.evidence, kit.document))


async def deliver(run: Run, kit: Kit) -> AsyncIterator[Event]:
    yield Answered(compose.answer(run, kit.document, await titles_of(run, kit), kit.unreadable()))


STEPS: Mapping[Step, Callable[[Run, Kit], AsyncIterator[Event]]] = {
    Step.ROUTE: route,
    Step.PLAN: plan,
    Step.DECIDE: decide,
    Step.CALL: call,
    Step.GATHER: gather,
    Step.JUDGE: judge,
    Step.STOP: stop,
    Step.DRAFT: draft,
    Step.CHECK: check,
    Step.DELIVER: deliver,
}
