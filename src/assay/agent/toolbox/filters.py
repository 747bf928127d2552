"""Builds the filter from a model's tool arguments; it is combined with all filters already in force."""

from __future__ import annotations

from datetime import date

from assay.agent.tool_context import ToolContext
from assay.agent.toolbox.documents import shown
from assay.core.errors import ToolError
from assay.core.events import SearchFilters
from assay.index.filters import EVERYTHING, Eq, Filter, both
from assay.index.search_filter import count_left_out, filter_for
from assay.language import dates

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
