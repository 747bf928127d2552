"""Tools that search: `search` (one per knowledge base if wanted), `search_all`, `search_by_source`, `follow`; `recall`
for the rules."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from dataclasses import replace
from datetime import date
from functools import wraps
from typing import Annotated, Any

from assay.agent.tool import (
    LONG_QUERY,
    Brief,
    Count,
    Query,
    Result,
    Tool,
    ToolContext,
    Within,
    as_found,
    built_in,
    tool,
)
from assay.agent.toolbox.documents import document_named, shown, some
from assay.agent.toolbox.reading import is_table, table_around
from assay.core.errors import ToolError
from assay.core.events import SearchFilters
from assay.core.types import Hit
from assay.index.filters import EVERYTHING, Eq, Filter, both, matches
from assay.index.retrieve import fetch, query_vectors
from assay.index.search_filter import count_left_out, filter_for
from assay.language import dates
from assay.language.terms import content_terms


@built_in(hides_note=True)
async def search(
    context: ToolContext,
    query: Query,
    k: Count = 8,
    since: Brief = "",
    until: Brief = "",
    type: Brief = "",
    base: Brief = "",
    meta: Brief = "",
    undated: bool = False,
) -> Result:
    """Search all documents.

    since: 2024-05-17, 2024, "last 12 months"
    type: pdf, csv, email
    meta: author=Ann Lee; organisation, period, kind, tag
    """
    where, left_out = build_filter(context, since, until, type, base, meta, undated=undated)
    hits = await context.retrieve(query, k, where)
    note = describe_hits(hits) or nothing(limited=where != EVERYTHING, undated=left_out)
    return Result(as_found(hits), note, undated=left_out)


def search_in(name: str, base: str, description: str) -> Tool:
    """A search tool restricted to one knowledge base, with the base's description in its docstring."""

    @wraps(search.body)
    async def body(context: ToolContext, **given: Any) -> Result:
        return await search.body(context, base=base, **given)

    whole = inspect.signature(search.body)
    own = [each for each in whole.parameters.values() if each.name != "base"]
    body.__signature__ = whole.replace(parameters=own)  # pyright: ignore[reportAttributeAccessIssue]
    lines = search.about.partition("\n\n")[2].splitlines()
    arguments = "\n".join(line for line in lines if not line.startswith("base:"))
    about = f"Search the knowledge base {shown(base)!r} by words and by meaning. {shown(description, 300)}".strip()
    return Tool(name, f"{about}\n\n{arguments}", body)


def describe_hits(hits: list[Hit]) -> str:
    """The number of passages and documents found; empty if there are none."""
    documents = len({hit.passage.doc_id for hit in hits})
    return f"{some(len(hits), 'passage')} of {some(documents, 'document')}, best first" if hits else ""


def nothing(*, limited: bool = False, undated: int = 0) -> str:
    """Suggestions for when nothing was found."""
    if undated:
        return f"nothing was found; since and until leave out {some(undated, 'undated document')}, so try without them"
    return (
        "nothing was found within these limits; try without them" if limited else "nothing was found; try other words"
    )


LISTED = 20  # names listed in an error


def build_filter(
    context: ToolContext, since: str, until: str, type: str, base: str, meta: str = "", *, undated: bool = False
) -> tuple[Filter, int]:
    """A filter, and the number of documents that it leaves out for lack of a date; empty arguments add no condition. Dates
    may be relative to the day of asking: "last 12 months", "this week". `undated` admits documents without a date. `meta`
    is a name and a value: "author=Ann Lee"."""
    today = context.today or date.today().isoformat()
    first = dates.first_day(since, today) if since.strip() else None
    last = dates.last_day(until, today) if until.strip() else None
    if first and last and first > last:
        raise ToolError(f"'since' ({first}) is after 'until' ({last}).")
    types = (_kind(context, type),) if type.strip() else ()
    where = SearchFilters(since=first, until=last, types=types, undated=undated, meta=_meta(meta))
    within = _base(context, base) if base.strip() else ""
    listed = context.traits() if first or last or where.meta else []
    here = [each for each in listed if within in ("", each.base)]
    left_out = count_left_out(where, lambda: here)
    filtered = both(filter_for(where, lambda: here), Eq("base", within) if within else EVERYTHING)
    return filtered, left_out.undated if left_out else 0


def _meta(given: str) -> dict[str, str]:
    name, equals, value = (part.strip() for part in given.partition("="))
    if given.strip() and not (name and equals and value):
        raise ToolError(f"'meta' is a name and a value, as in author=Ann Lee; not {shown(given)!r}.")
    return {name: value} if name else {}


def _kind(context: ToolContext, type: str) -> str:
    kinds = sorted({entry.kind for entry in context.sources()})
    wanted = type.strip().lstrip(".").casefold()
    if wanted not in kinds:
        some = ", ".join(kinds[:LISTED]) or "none"
        raise ToolError(f"There are no documents of type {shown(type)!r}. There are: {some}.")
    return wanted


def _base(context: ToolContext, name: str) -> str:
    """The id of a knowledge base. Raises the same error whether it does not exist or this person may not read it."""
    bases = {base.name.casefold(): base for base in context.scope().bases}
    found = bases.get(name.strip().casefold())
    if found is None:
        some = ", ".join(sorted(base.name for base in bases.values())[:LISTED]) or "none"
        raise ToolError(f"There is no knowledge base called {shown(name)!r}. There are: {some}.")
    return found.id


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
    """Find every match, for "all" and "how many". Arguments as in search."""
    where, left_out = build_filter(context, since, until, type, base, meta, undated=undated)
    matching, dry = await _exhausted(context, query, where)
    rows = await _rows_beside(context, matching)
    everything = [*matching, *rows]
    given = everything if len(everything) <= context.most else _best_of_each_first(everything)[: context.most]
    left = len(everything) - len(given)
    if not given:
        return Result((), nothing(limited=where != EVERYTHING, undated=left_out), undated=left_out)
    documents = len({hit.passage.doc_id for hit in everything})
    note = f"{'' if dry else 'at least '}{some(len(matching), 'passage')} of {some(documents, 'document')} match"
    if rows:
        note += f", with {len(rows)} more from the tables they stand in"
    note += f"; {len(given)} returned, {left} left" if left else "; all returned"
    return Result(as_found(given), note, left=left, whole=await _whole(context, given), undated=left_out)


def _best_of_each_first(hits: list[Hit]) -> list[Hit]:
    """The best passage of every document, then the second best: a cut leaves no document out."""
    places: Counter[str] = Counter()
    ranked: list[tuple[int, Hit]] = []
    for hit in hits:
        ranked.append((places[hit.passage.doc_id], hit))
        places[hit.passage.doc_id] += 1
    return [hit for _, hit in sorted(ranked, key=lambda pair: pair[0])]


async def _whole(context: ToolContext, given: list[Hit]) -> tuple[str, ...]:
    """The documents of which every passage was returned."""
    returned = {hit.passage.id for hit in given}
    documents = dict.fromkeys(hit.passage.doc_id for hit in given)
    passages = await asyncio.gather(*(context.passages(each) for each in documents))
    pairs = zip(documents, passages, strict=True)
    return tuple(each for each, own in pairs if all(hit.passage.id in returned for hit in own))


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


@built_in(hides_note=True, reads_one=True)
async def search_by_source(context: ToolContext, query: Query, source: str, k: Count = 8) -> Result:
    """Search one document, by name or title."""
    entry = document_named(context, source)
    hits = await context.retrieve(query, k, Eq("doc", entry.id), deep=True)
    if not hits:
        return Result((), f"nothing was found in {shown(entry.title)}; try other words or get_document", (entry.id,))
    return Result(as_found(hits), f"{some(len(hits), 'passage')} of {shown(entry.title)}, best first", (entry.id,))


@built_in(hides_note=True)
async def follow(
    context: ToolContext, passage: str, name: str, query: Annotated[str, Within(0, LONG_QUERY)] = "", k: Count = 8
) -> Result:
    """Find what else is said of a name in a passage.

    passage: its key
    """
    context.passage(passage)  # raises unless this run has found the passage
    hits = await context.retrieve(query.strip() or name, k)
    about = shown(name)
    return Result(as_found(hits), f"{describe_hits(hits)}, about {about}" if hits else f"nothing more about {about}")


KEPT = 8  # passages returned
MOST = 60  # passages considered
Passages = Annotated[tuple[str, ...], Within(1, MOST)]
NEAR = 0.3  # minimum cosine similarity; below it a passage is off topic


@tool
async def recall(context: ToolContext, query: Query, passages: Passages, every: bool = False) -> Result:
    """Passages that earlier turns cited and that bear on this question too.

    query: the question
    passages: their ids
    every: all that can still be read, whether or not they bear on the question
    """
    hits = await fetch(context.search_context, list(passages), context.scope())
    if every:
        context.seen.update({hit.passage.id: hit for hit in hits})
        return Result(as_found(hits), f"{len(hits)} passages of the last answer")
    (vector,) = await query_vectors(context.search_context, [query])
    near = [
        (float(hit.vector @ vector), hit)
        for hit in hits
        if context.where == EVERYTHING or matches(context.where, hit.fields)
    ]
    best = sorted(near, key=lambda pair: (-pair[0], pair[1].passage.id))[:KEPT]
    found = [replace(hit, scores={**hit.scores, "fused": score}) for score, hit in best if score >= NEAR]
    context.seen.update({hit.passage.id: hit for hit in found})
    return Result(
        as_found(found), f"{len(found)} passages of earlier turns" if found else "nothing earlier bears on it"
    )
