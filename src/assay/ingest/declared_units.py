"""Units that a document declares for a section and what follows in it: in the heading, or in the first line below. Pure.

A declaration directly above a table is of tables only. PDF headings often have one level; there a declaration above several
headings, or in a numbered one, holds until the next heading of a series that it is in: from "Item 8" to "Item 9".
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from assay.core.tables import tables_within
from assay.core.types import Section, Table
from assay.ingest.parsed import Parsed
from assay.language.quantities import declares_amounts, find_units, names_unit, only_declares
from assay.tables.build import CAPTION

_SERIES = re.compile(r"\W*([^\W\d_]{2,20})\s{0,3}(?:\d|[IVX]{1,5}\b|[A-Z]\b)|\W*(\d{1,3}(?:\.\d{1,3}){0,4})[.)\s]")
_LINE = re.compile(r"\s*([^\n]{1,160})")
_PAGE_NUMBER = re.compile(r"\W*\d{0,4}\W*")
_SIGNED = re.compile(r"(?:US\$|[$€£¥])\s?\(?\d")
_NUMBER = re.compile(r"(?<![\d.,])\d[\d.,]*+(?!\s?%)")
_MOST_SERIES = 200  # of numbered headings
_ABOVE_TABLE = 100  # characters between a declaration and the table that it is of
# "Tabular amounts in millions" are not those of the text.
_TABULAR = re.compile(r"\b(?:tabular|tables?)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Scope:
    """A declaration, and what ends it: the next heading of its level, or of one of these series if it has any."""

    units: str
    level: int
    series: frozenset[str] | None
    tables_only: bool

    def ends_at(self, section: Section) -> bool:
        if section.level != self.level or self.series is None:
            return section.level <= self.level
        return series_of(section.title) in self.series


def with_declared_units(parsed: Parsed) -> Parsed:
    """A document whose sections and tables have the units that are declared for them above."""
    inside = [table for table in parsed.tables if table.end > table.start]
    headings = [section for section in parsed.sections if not tables_within(inside, section.start, section.start + 1)]
    scopes = list(_scopes(parsed, headings))
    if not any(scopes):
        return parsed
    starts = [section.start for section in headings]

    def units_at(offset: int, *, of_table: bool) -> str:
        at = bisect_right(starts, offset) - 1
        here = scopes[at] if at >= 0 else ()
        return next((scope.units for scope in reversed(here) if of_table or not scope.tables_only), "")

    signed = any(_SIGNED.search(parsed.text, table.start, table.end) for table in parsed.tables)
    shown = _SIGNED if signed else _NUMBER  # where tables have signs of currencies, one without has no amounts

    def units_of(table: Table) -> str:
        lacks = not table.units and not any(map(names_unit, table.columns))
        amounts = lacks and shown.search(parsed.text, table.start, table.end)
        return units_at(table.start, of_table=True) if amounts else table.units

    return replace(
        parsed,
        sections=tuple(replace(each, units=units_at(each.start, of_table=False)) for each in parsed.sections),
        tables=tuple(replace(each, units=units_of(each)) for each in parsed.tables),
    )


def _scopes(parsed: Parsed, headings: Sequence[Section]) -> Iterator[tuple[_Scope, ...]]:
    """For each heading the declarations that hold below it, outermost first."""
    open_scopes: tuple[_Scope, ...] = ()
    seen: set[str] = set()
    for place, section in enumerate(headings):
        open_scopes = tuple(scope for scope in open_scopes if not scope.ends_at(section))
        following = headings[place + 1] if place + 1 < len(headings) else None
        if len(seen) < _MOST_SERIES:
            seen.add(series_of(section.title))
        if scope := _declared(parsed, section, following, seen):
            open_scopes = (*(each for each in open_scopes if each.series is None or not scope.series), scope)
        yield open_scopes


def _declared(parsed: Parsed, section: Section, following: Section | None, seen: set[str]) -> _Scope | None:
    """The declaration of a section, if it has one."""
    units, end = find_units([section.title]), section.end
    line = _LINE.match(parsed.text, section.end)
    if not units and line and only_declares(line[1]):
        units, end = find_units([line[1]]), line.end()
    if not units or not declares_amounts(units):
        return None
    below = parsed.tables[(at := bisect_right(parsed.tables, end - 1, key=lambda table: table.start)) : at + 1]
    tabled = any(len(parsed.text[end : table.start].strip()) < _ABOVE_TABLE for table in below)
    own = series_of(section.title)
    series = None
    if following is not None and following.level <= section.level and not tabled and not CAPTION.match(section.title):
        heads = _PAGE_NUMBER.fullmatch(parsed.text, end, following.start) is not None
        inner = "" if own else series_of(following.title)
        series = frozenset(seen - {"", inner}) if heads or own else None
    return _Scope(units, section.level, series, tabled or bool(_TABULAR.search(units)))


def series_of(title: str) -> str:
    """What numbered headings of one kind have in common: "item" for "Item 7A. Risks", "#.#" for "3.1 Sales"; else empty."""
    match = _SERIES.match(title)
    if match is None:
        return ""
    return match[1].casefold() if match[1] else re.sub(r"\d+", "#", match[2])
