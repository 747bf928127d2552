"""Translates request options into search filters and run options. Pure except for today's date."""

from __future__ import annotations

from datetime import date

from assay.core.errors import UserError
from assay.core.events import SearchFilters
from assay.index.search_filter import parse_document_types
from assay.language.dates import first_day, last_day
from assay.serve.run_schemas import AskRequest
from assay.serve.run_schemas import SearchLimits
from assay.workspace.types import AskOptions


def search_filters(limited: SearchLimits) -> SearchFilters:
    """The search filters. A year or month stands for its first or last day."""
    today = date.today().isoformat()
    first = first_day(limited.since, today) if limited.since else None
    last = last_day(limited.until, today) if limited.until else None
    if first and last and first > last:
        raise UserError(f"`since` ({first}) is later than `until` ({last}): no document can be dated so.")
    return SearchFilters(
        bases=limited.bases,
        sources=limited.sources,
        types=parse_document_types(limited.types),
        since=first,
        until=last,
        undated=limited.undated,
        meta=limited.meta,
    )


def ask_options(request: AskRequest) -> AskOptions:
    return AskOptions(
        mode=request.mode,
        where=search_filters(request),
        eagerness=request.eagerness,
        checkpoints=request.checkpoints,
        route=request.route,
        model=request.model,
        stakes=request.stakes,
    )
