"""The filter of a search's limits (sources, types, dates). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from assay.core.errors import UserError
from assay.core.events import SearchFilters
from assay.core.formats import FORMATS, format_of_type
from assay.index.filters import And, Contains, Eq, Filter, In, Or, Range


def parse_document_types(names: Sequence[str]) -> tuple[str, ...]:
    """Document types as people name them, in the index's names."""
    return tuple(map(_document_type, names))


def _document_type(name: str) -> str:
    found = format_of_type(name)
    if found is None:
        known = ", ".join(sorted(each.name for each in FORMATS))
        raise UserError(f"There is no type of document called {name.lower().lstrip('.')!r}. There is: {known}.")
    return found.name


def filter_for(where: SearchFilters) -> Filter:
    """All limits combined with AND; several sources or types are alternatives. Bases belong to the scope instead."""
    parts: list[Filter] = []
    if where.sources:
        parts.append(
            Or(tuple(part for name in where.sources for part in (Contains("source", name), Contains("title", name))))
        )
    if where.documents:
        parts.append(In("doc", where.documents))
    if where.types:
        parts.append(In("type", where.types))
    if dated := _dated(where):
        parts.append(Or((And(dated), Eq("date", ""))) if where.undated else And(dated))
    parts.extend(Eq(f"meta.{name}", value) for name, value in sorted(where.meta.items()))
    return And(tuple(parts))


def _dated(where: SearchFilters) -> tuple[Filter, ...]:
    """A date is as precise as its document: "2024" may be after March 2024, so it is kept."""
    since = (Or((Range("date", where.since), *_vague(where.since))),) if where.since else ()
    return since + ((Range("date", None, where.until),) if where.until else ())


def _vague(since: str) -> tuple[Filter, ...]:
    """Dates less precise than `since` that may still fall after it: the same year, or the same month without a day."""
    return tuple(Eq("date", since[:length]) for length in (4, 7) if length < len(since))
