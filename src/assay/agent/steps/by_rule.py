"""Steps without a model: searches by name and by what is still open, quotations as evidence, quotations as the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace

from assay.agent import hops, prompt_window, rules
from assay.agent.context import RunContext
from assay.agent.hops import Lead, Ran
from assay.agent.steps.recall import TOOL
from assay.answer.extractive import extract
from assay.core.events import Call, Decided, Drafted, Event, Gathered, Judged, StopReason
from assay.core.run import Run
from assay.core.types import Hit
from assay.evidence import weigh
from assay.index.retrieve import fetch, query_vectors


async def decide(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """First the question in its own words; then the most promising names; or say why nothing is worth trying."""
    again = prompt_window.wish(run)
    if again and again not in {str(call.arguments.get("query")) for call in run.calls}:
        yield Decided(calls_for(run, [Lead(again, "", context.hops.width)]), "what the search was opened again for")
        return
    done = await searches(run, context, recalled=False)
    if run.rounds and not done:
        yield Decided(
            (), "nothing new", stop=StopReason.nothing_new
        )  # every call was refused: there is nothing to go on
        return
    following = rules.next_searches(run.question, done, context.hops)
    why = "; ".join(lead.reason for lead in following.leads) if following.leads else following.why
    yield Decided(calls_for(run, following.leads), why, stop=following.stop)


def calls_for(run: Run, leads: Sequence[Lead]) -> tuple[Call, ...]:
    first = len(run.calls) + 1
    return tuple(_call(f"c{number}", lead) for number, lead in enumerate(leads, first))


def _call(number: str, lead: Lead) -> Call:
    if lead.source:
        return Call(number, "follow", {"passage": lead.source, "name": lead.name, "query": lead.query, "k": lead.k})
    return Call(number, "search", {"query": lead.query, "k": lead.k})


def _lead(call: Call, by_name: bool) -> Lead:
    """A call as the rules know it, the reverse of `_call`: a search that the rules made after the first is for a name."""
    of = call.arguments
    query, source = str(of["query"]), str(of.get("passage", ""))
    name = str(of.get("name", "")) if source else query if by_name else ""
    return Lead(query, "", int(str(of.get("k", 8))), name, source)


def _by_name(run: Run) -> frozenset[str]:
    """The calls that the rules made to follow names: all but the first."""
    first = next(
        (call.id for event in run.events if isinstance(event, Decided) and event.is_round for call in event.calls), ""
    )
    return frozenset(
        call.id
        for event in run.events
        if isinstance(event, Decided) and not event.recalls and (event.hops or not run.asked.has_model)
        for call in event.calls
        if call.id != first
    )


async def searches(run: Run, context: RunContext, *, recalled: bool = True) -> list[Ran]:
    """The run's searches as the rules read them: each with the vectors of its words and of what it found; with or without
    what was brought up from earlier turns."""
    done = [
        (call, run.results[call.id])
        for call in run.calls
        if call.id in run.results and not run.results[call.id].error and "query" in call.arguments
        if recalled or call.tool != TOOL
    ]
    named = _by_name(run)
    hits = await hits_of(run, context)
    vectors = await query_vectors(
        context.tool_context.search_context, [str(call.arguments["query"]) for call, _ in done]
    )
    return [
        Ran(
            _lead(call, call.id in named),
            vector,
            tuple(
                replace(hits[found.passage.id], scores={"fused": found.score}, rank=found.rank)
                for found in result.found
                if found.passage.id in hits
            ),
        )
        for (call, result), vector in zip(done, vectors, strict=True)
    ]


async def hits_of(run: Run, context: RunContext) -> Mapping[str, Hit]:
    """Every passage of the run with its vector: remembered, or (after a restart) fetched again."""
    missing = {found.passage.id for found in run.found} - context.tool_context.seen.keys()
    if missing:
        for hit in await fetch(context.tool_context.search_context, sorted(missing), context.tool_context.scope()):
            context.tool_context.seen[hit.passage.id] = hit
    return context.tool_context.seen


async def gather(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Weigh what has come back: quote what bears on the question, pass over the rest."""
    ranked = hops.order(run.question, await searches(run, context), context.hops)
    evidence = weigh.by_rule(run.question, [(each.hit, each.score) for each in ranked], run.evidence)
    kept = {each.passage.id for each in evidence} | {each.passage.id for each in run.evidence}
    dropped = tuple(found.passage.id for found in run.unweighed if found.passage.id not in kept)
    yield Gathered(evidence, dropped)


async def judge(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Which words of the question does the evidence not speak of yet?"""
    missing = extract.missing(run.question, run.evidence, titles=context.titles(run))
    yield Judged(False, missing, "every word of the question occurs in the evidence" if not missing else "")


async def draft(run: Run, context: RunContext) -> AsyncIterator[Drafted]:
    """The sentences that answer, as they stand; or none, and the ones that came nearest."""
    done = await searches(run, context)
    ranked = hops.order(run.question, done, context.hops) if done else []
    ties = [(each.hit.passage.id, each.link.source, each.link.name) for each in ranked if each.link]
    evidence = weigh.rescore(run.evidence, {each.hit.passage.id: each.score for each in ranked})
    found = extract.candidates(evidence if run.asked.has_model else run.evidence, ties, context.titles(run))
    vectors = await context.tool_context.search_context.embedder.queries([run.question, *(each.said for each in found)])
    yield extract.draft(run.question, found, vectors)
