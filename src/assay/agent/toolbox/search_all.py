"""`search_all`: every match, for questions about a whole set, with a count of what was left out."""

from __future__ import annotations

from dataclasses import replace

from assay.agent.tool import Brief, Query, Result, as_found, built_in
from assay.agent.tool_context import ToolContext
from assay.agent.toolbox.filters import build_filter
from assay.agent.toolbox.read_table import is_table, table_around
from assay.agent.toolbox.search import nothing, some
from assay.core.types import Hit
from assay.index.filters import EVERYTHING, Filter
from assay.language.terms import content_terms

FIRST, DEEPEST = 100, 6400  # passages requested per channel: initially, and at most
# Fraction of the best score. A passage below it matches only if it contains all query words. At 0.5, all evidence for
# the sample's set questions is found; at 0.6, three of nine wordings lose some.
HOPELESS = 0.5


@built_in(hides_note=True)
async def search_all(
    context: ToolContext,
    query: Query,
    since: Brief = "",
    until: Brief = "",
    type: Brief = "",
    base: Brief = "",
    meta: Brief = "",
    undated: bool = False,
) -> Result:
    """Find everything that matches, not just the best. Use for "which all", "every" and "how many"; tables come whole.

    query: the few keywords that all of them have in common
    since: only documents from this day on: 2024, 2024-05-17 or "last 12 months"
    until: only documents up to this day
    type: only documents of this type: pdf, csv, email
    base: only this knowledge base
    meta: only documents with this author, organisation, period, kind or tag: author=Ann Lee
    undated: with since or until, also documents without a date
    """
    where, left_out = build_filter(context, since, until, type, base, meta, undated=undated)
    matching, dry = await _exhausted(context, query, where)
    rows = await _rows_beside(context, matching)
    everything = [*matching, *rows]
    given = everything[: context.most]
    left = len(everything) - len(given)
    if not given:
        return Result((), nothing(limited=where != EVERYTHING, undated=left_out), undated=left_out)
    documents = len({hit.passage.doc_id for hit in everything})
    note = f"{'' if dry else 'at least '}{some(len(matching), 'passage')} of {some(documents, 'document')} match"
    if rows:
        note += f", with {len(rows)} more from the tables they stand in"
    note += f"; {len(given)} returned, {left} left" if left else "; all returned"
    return Result(as_found(given), note, left=left, undated=left_out)


async def _exhausted(context: ToolContext, query: str, where: Filter) -> tuple[list[Hit], bool]:
    """All matches, best first. Search depth grows until a full half of the results no longer match."""
    wanted = frozenset(content_terms(query))
    depth = FIRST
    while True:
        hits = await context.retrieve(query, depth, where, deep=True)
        best = hits[0].scores["fused"] if hits else 0.0
        matching = [_matches(hit, wanted, best) for hit in hits]
        dry = len(hits) < depth or not any(matching[depth // 2 :])
        if dry or depth >= DEEPEST:
            return [hit for hit, fits in zip(hits, matching, strict=True) if fits], dry
        depth *= 4


def _matches(hit: Hit, wanted: frozenset[str], best: float) -> bool:
    if hit.scores["fused"] >= HOPELESS * max(best, 0.0):
        return True
    if not wanted or "lexical" not in hit.scores:  # a passage with all query words is always a lexical hit
        return False
    words = f"{hit.title} {hit.passage.above} {hit.passage.text}"
    if words.isascii() and not all(stem[:3] in words.casefold() for stem in wanted):  # ten times as fast as stemming
        return False
    return wanted <= set(content_terms(words))


async def _rows_beside(context: ToolContext, matching: list[Hit]) -> list[Hit]:
    """The other passages of the tables that matches are in, each with the score of its match: half a table cannot
    answer a question about the whole table."""
    known = {hit.passage.id for hit in matching}
    beside: list[Hit] = []
    whole: dict[str, list[Hit]] = {}
    for hit in matching:
        if not is_table(hit) or len(beside) > context.most:
            continue
        if hit.passage.doc_id not in whole:
            whole[hit.passage.doc_id] = await context.passages(hit.passage.doc_id)
        for other in table_around(hit.passage, whole[hit.passage.doc_id]):
            if other.passage.id not in known:
                known.add(other.passage.id)
                beside.append(replace(other, scores=hit.scores))
    return beside
