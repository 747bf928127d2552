"""Widens the results by rule before a model weighs them: names in them are followed, and tables that were cut are
completed. Searching is cheap and needs no model. See docs/decisions/0008-cost.md."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from assay.agent.context import RunContext
from assay.agent.hops import leads, scoring
from assay.agent.hops.scoring import Lead
from assay.agent.past_searches import build_calls, past_searches
from assay.agent.toolbox.read_table import is_table, nearest, read_table, table_around, tables_in
from assay.core.events import Call, Decided, Event, Gathered, Route
from assay.core.run import Run
from assay.core.types import Hit
from assay.models.llm import Role

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
    """Searches for names in the best passages, and reads of tables that were cut. A look-up follows no names. An empty
    set is recorded as a decision too."""
    done = await past_searches(run, context)
    following = leads.NextSearches(why="a look-up follows no names")
    if run.route is not Route.lookup:
        following = leads.next_searches(run.query, done, context.hops)
    best = [each.hit for each in scoring.rank_passages(run.query, done, context.hops)]
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
    name = scoring.name_key(lead.name)
    holders = [hit for hit in hits if scoring.passage_terms(hit).holds(name)]
    new = [hit for hit in holders if hit.passage.id not in known and hit.passage.doc_id != source]
    if any(scoring.passage_terms(hit).called == name for hit in new):
        return True
    plain = lead.name.isalpha() and lead.name[1:].islower()  # "Look", "Goods": too often no name at all
    return bool(new) and not plain and len(holders) <= RARE


async def _cut_tables(run: Run, context: RunContext, best: Sequence[Hit], calls: int) -> list[Call]:
    """Reads of the tables that the best passages are part of, where a part was not found."""
    known = {found.passage.id for found in run.found}
    read: list[Call] = []
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
