"""What stands above the tables of a sheet: titles, units, the period, and header rows. Pure.

A title, a unit or a period apart from the first table, above it, holds for the whole sheet. What is above a later table is
its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from assay.core.tables import LINES
from assay.language.quantities import find_units, names_unit, only_declares
from assay.tables.build import LONGEST_NAME, YEAR_IN, header_units, is_name, is_title

_LONGEST_PERIOD = 40  # characters
_TITLES = 3  # lines of a caption


@dataclass(frozen=True, slots=True)
class Header:
    """The names of the columns, and what header rows say of the table as a whole. `line` is what says it, as it is shown."""

    names: tuple[str, ...]
    units: str = ""
    period: str = ""
    line: str = ""


def read_header(rows: Sequence[Sequence[str]]) -> Header:
    """The header in these rows of equal width. A row above the names with a unit and one period is about the whole table."""
    header, kept = Header(()), list(rows)
    for row in rows[:-1]:
        first, *others = list(filter(None, row)) or [""]
        if only_declares(first) and (not others or (len(others) == 1 and is_period(others[0]))):
            header = Header((), find_units([first]), "".join(others), " | ".join([first, *others]))
            kept.remove(row)
    names = [" ".join(dict.fromkeys(filter(None, cells))) for cells in zip(*_spread(kept), strict=True)]
    if names and only_declares(names[0]):
        header = replace(header, units=find_units(names[:1]), line=header.line or names[0])
        names[0] = ""
    return replace(header, names=tuple(names))


def _spread(rows: list[Sequence[str]]) -> list[Sequence[str]]:
    """Header rows in which a cell above columns of the same names is repeated above each: `2023` above `Sales | Costs`. It is
    written above the first of them, or the last."""
    for place, (above, below) in enumerate(pairwise(rows)):
        named = [column for column, name in enumerate(below) if name and column]
        over = [column for column, name in enumerate(above) if name and column]
        if len({below[column] for column in named}) == len(named) or not 1 < len(over) < len(named):
            continue
        ends = over[0] > named[0]
        nearest = {
            column: min((at for at in over if at >= column), default=None)
            if ends
            else max((at for at in over if at <= column), default=None)
            for column in named
        }
        filled = [above[at] if (at := nearest.get(column)) is not None else name for column, name in enumerate(above)]
        rows = [*rows[:place], filled, *rows[place + 1 :]]
    return rows


def is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows are only a header, with an empty row between it and its table."""
    *above, last = [[cell for cell in row if cell] for row in rows]
    names = len(last) > 2 and len(set(last)) > 1 and all(map(is_name, (*above, last)))
    return names and all(len(row) < len(last) for row in above)


def is_period(words: str) -> bool:
    """Whether a short text names a year, and may so be the period of a table."""
    return len(words) <= _LONGEST_PERIOD and YEAR_IN.search(words) is not None


@dataclass(frozen=True, slots=True)
class SheetHead:
    """The lines above the tables of a sheet so far: `first` above the first table, `lines` since the last one."""

    lines: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    tables: int = 0
    columns: tuple[str, ...] = ()  # of the last table, and the lines above it
    above: tuple[str, ...] = ()

    def with_lines(self, lines: Sequence[str]) -> SheetHead:
        """After lines that are no table."""
        kept = (*self.lines, *(line for line in lines if is_title(line) or only_declares(line)))
        return replace(self, lines=kept, first=self.first if self.tables else kept)

    def describe(self, header: Header, titles: Sequence[str], sheet: str) -> tuple[str, str, str]:
        """Caption, units and period of a table with this header and these lines directly above it."""
        above = self._above(header, titles)
        named = [[(name, at, at) for at, name in enumerate(header.names) if name]]
        units = header.units or header_units(named, range(max(1, len(header.names)))) or _units(above)
        if not units and not any(map(names_unit, header.names)):
            units = _units(self.first)
        period = header.period or _period(above)
        if not period and not any(map(YEAR_IN.search, header.names)):
            period = _period(self.first)
        titled = [line for line in above if not only_declares(line) and line != period]
        return LINES.join(dict.fromkeys(titled[-_TITLES:]))[:LONGEST_NAME] or sheet, units, period

    def after(self, header: Header, titles: Sequence[str]) -> SheetHead:
        """After a table."""
        return SheetHead((), self.first, self.tables + 1, header.names, self._above(header, titles))

    def title(self, titles: Sequence[str]) -> str:
        """The title of the sheet: its first line, unless that is only the caption of the first of several tables."""
        lines = self.first or (titles if self.tables == 1 else ())
        return next((line for line in lines[:1] if is_title(line) and not only_declares(line)), "")

    def _above(self, header: Header, titles: Sequence[str]) -> tuple[str, ...]:
        """The lines above a table; those of the last one, if this one has none and the same columns."""
        own = (*self.lines, *titles)
        return own if own or header.names != self.columns else self.above


def _units(lines: Sequence[str]) -> str:
    return find_units(reversed(lines))


def _period(lines: Sequence[str]) -> str:
    """The nearest line below the title that names a year."""
    return next((line for line in reversed(lines[1:]) if is_period(line) and not only_declares(line)), "")
