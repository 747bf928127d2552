"""Runs the tool calls that were decided on, in parallel; then follows names in the results and completes tables that
were cut, by rule, before a model weighs them. See docs/decisions/0008-cost.md."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from assay.agent.context import RunContext, mark, run_before
from assay.agent.steps.read_evidence import build_calls, past_searches
from assay.agent.toolbox import RULE_TOOLS
from assay.agent.toolbox.reading import is_table, nearest, read_table, table_around, tables_in
from assay.core.errors import ToolError
from assay.core.events import RULES, Call, Decided, Event, Gathered, Route, ToolRan
from assay.core.run import Run
from assay.core.types import Hit
from assay.index import hop_ranking
from assay.index.hop_ranking import Lead
from assay.index.search_filter import filter_for
from assay.language.identify import identify_language
from assay.models.llm import Role
from assay.models.meter import NoReply

T = TypeVar("T", bound=BaseModel)


async def call(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Run the pending calls in parallel. A tool's refusal is a result too."""

    async def consult(
        name: str, kind: type[T], build_prompt: Callable[[int], Mapping[str, str]], documents: Sequence[str]
    ) -> T | None:
        reply = await context.ask(Role.judge, name, kind, build_prompt, documents=sorted(documents), max_tokens=500)
        return None if isinstance(reply, NoReply) else reply[0]

    # Parallel calls do not see each other's results, also when only some are run again after a restart.
    before = run_before(run, lambda event: not isinstance(event, Decided))
    tool_context = replace(
        context.tool_context,
        where=filter_for(run.where, context.tool_context.traits),
        found=before.found,
        evidence=before.evidence,
        weighed=before.weighed,
        today=run.asked.today,
        mark=mark(run),
        consult=consult if run.asked.has_model else None,
    )

    # Calls decided by rule may use any tool; calls by a model only those it was offered.
    ours = {call.id for event in run.events if isinstance(event, Decided) and event.by == RULES for call in event.calls}

    async def made(one: Call) -> ToolRan:
        tool = context.tools.get(one.tool) or (RULE_TOOLS.get(one.tool) if one.id in ours else None)
        try:
            if tool is None:
                raise ToolError(f"There is no tool called {one.tool!r}. There are: {', '.join(sorted(context.tools))}.")
            result = await tool(tool_context, one.arguments)
            return ToolRan(
                one.id,
                result.found,
                result.note,
                documents=result.documents,
                left=result.left,
                whole=result.whole,
                undated=result.undated,
            )
        except ToolError as error:
            return ToolRan(one.id, (), error=str(error))

    for ran in await asyncio.gather(*(made(one) for one in run.calls_waiting)):
        yield ran


BEST = 12  # passages that are likely to be weighed anyway
RARE = 6  # passages that contain a name worth following, at most
AT_ONCE = 6  # calls at most
TABLES = 2  # of the best passages, those whose tables are completed


def hop_due(run: Run) -> bool:
    """Whether the results are still to be widened: once after each decision that found something."""
    if run.every or run.stopped is not None or run.route is Route.one_shot:
        return False
    for event in reversed(run.events):
        if isinstance(event, Decided):
            return bool(event.calls) and event.is_round
        if isinstance(event, Gathered):
            return False
    return False


async def hop(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Searches for names in the best passages, and reads of tables that were cut. A look-up follows no names, nor does a
    question in German, where every noun has a capital. An empty set is recorded as a decision too."""
    done = await past_searches(run, context)
    following = hop_ranking.NextSearches(why="no names are followed")
    if run.route is not Route.lookup and identify_language(run.query) != "de":
        following = hop_ranking.next_searches(run.query, done, context.hops)
    best = [each.hit for each in hop_ranking.rank_passages(run.query, done, context.hops)]
    found = following.leads
    if not context.small(Role.decide):
        found = [lead for lead in found if await leads_somewhere_new(lead, best, context)]
    found = found[:AT_ONCE]
    calls = build_calls(run, found)
    why = "; ".join(lead.reason for lead in found) or following.why or "no name leads anywhere new"
    tables = await _cut_tables(run, context, best, len(run.calls) + len(calls))
    if tables := tables[: max(0, AT_ONCE - len(calls))]:
        calls, why = (*calls, *tables), f"{why}; the rest of a table" if calls else "the rest of a table"
    yield Decided(calls, why, hops=True)


async def leads_somewhere_new(lead: Lead, best: Sequence[Hit], context: RunContext) -> bool:
    """Whether a name leads to a passage of another document that is not among the best so far: a document of that name,
    or a passage that contains it where few do. A name that many passages contain, or a single plain word, leads nowhere."""
    if not lead.source:
        return True  # a name of the question
    source = next((hit.passage.doc_id for hit in best if hit.passage.id == lead.source), "")
    known = {hit.passage.id for hit in best[:BEST]}
    hits = await context.tool_context.retrieve(lead.query, lead.k)
    name = hop_ranking.name_key(lead.name)
    holders = [hit for hit in hits if hop_ranking.passage_terms(hit).holds(name)]
    new = [hit for hit in holders if hit.passage.id not in known and hit.passage.doc_id != source]
    if any(hop_ranking.passage_terms(hit).called == name for hit in new):
        return True
    plain = lead.name.isalpha() and lead.name[1:].islower()  # "Look", "Goods": too often no name at all
    return bool(new) and not plain and len(holders) <= RARE


async def _cut_tables(run: Run, context: RunContext, best: Sequence[Hit], calls: int) -> list[Call]:
    """Reads of the tables that the best passages are part of, where a part was not found."""
    known = {found.passage.id for found in run.found}
    read: list[Call] = []
    context.read_together(hit.passage.doc_id for hit in best[: 2 * TABLES])
    for hit in best[: 2 * TABLES]:
        passage, document = hit.passage, context.document(hit.passage.doc_id)
        tables = document.tables if document else ()
        if not is_table(hit) and not tables_in(passage, tables):
            continue
        table = table_around(passage, await context.tool_context.passages(passage.doc_id), tables)
        rest = [other for other in nearest(passage, table) if other.passage.id not in known]
        if rest and len(read) < TABLES:
            known |= {other.passage.id for other in rest}
            read.append(Call(f"c{calls + len(read) + 1}", read_table.name, {"passage": passage.id}))
    return read
