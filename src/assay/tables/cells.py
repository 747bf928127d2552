"""The tables of a passage with short ids for rows and columns, as a prompt shows them, and what a cell of them is.
Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby

from assay.core.identity import ORGANISATION
from assay.core.tables import table_rows, tables_within
from assay.core.types import CellFacts, Document, Passage, Quote, Table, TableCell, TableRow
from assay.language.quantities import names_unit
from assay.tables.build import YEAR_IN
from assay.tables.labels import short_name
from assay.tables.parts import written_to

MOST_COLUMNS = 30  # that are listed
LONGEST_ROW = 5_000  # cells; ids for such a row tell nobody anything
ID = re.compile(r"\[?\s*(r\d{1,4})\s*[,:; ]?\s*(c\d{1,4})\s*\]?", re.I)
ROW_MARK = re.compile(r"\[r\d{1,4}\]\s?")


@dataclass(frozen=True, slots=True)
class FoundCell:
    """A cell of a table in a document."""

    document: Document
    table: Table
    row: TableRow
    column: int

    @property
    def text(self) -> str:
        return self.row.cells[self.column].text

    @property
    def header(self) -> str:
        return self.table.columns[self.column]

    @property
    def facts(self) -> CellFacts:
        named = names_unit(self.header) or names_unit(self.row.label) or "%" in self.text
        return CellFacts(
            self.row.label,
            self.header,
            self.text,
            "" if named else self.table.units,
            "" if YEAR_IN.search(self.header) else self.table.period,
            self.document.meta.get(ORGANISATION, ""),
        )

    @property
    def quote(self) -> Quote:
        """Where it is written, with the signs around it."""
        text, cell = self.document.text, self.row.cells[self.column]
        starts = sorted(each.start for each in self.row.cells if each.text)
        end = written_to(cell, text, starts, self.row.end)
        end = cell.start + len(text[cell.start : end].rstrip())
        return Quote(self.document.id, cell.start, end, text[cell.start : end])


def cell_at(document: Document, offset: int) -> FoundCell | None:
    """The cell that is written from this offset on."""
    for table in tables_within(document.tables, offset, offset + 1):
        for row in table_rows(table, document.text, offset, offset + 1):
            for column, cell in enumerate(row.cells):
                if column and cell.text and cell.start == offset:
                    return FoundCell(document, table, row, column)
    return None


@dataclass(frozen=True, slots=True)
class PassageTables:
    """The tables that a passage touches: the rows that have figures (r1, r2, …) and the columns (c1, c2, …) of all of them,
    each with its table."""

    document: Document
    rows: Mapping[str, tuple[Table, TableRow]]
    columns: Mapping[str, tuple[Table, int]]

    def find(self, cell: str) -> FoundCell | None:
        """The cell with an id like `r3c2`; None if there is none, or nothing in it."""
        match = ID.fullmatch(cell.strip())
        table, row = self.rows.get(match[1].lower(), (None, None)) if match else (None, None)
        of, column = self.columns.get(match[2].lower(), (None, 0)) if match else (None, 0)
        if table is None or row is None or of is not table or not row.cells[column].text:
            return None
        return FoundCell(self.document, table, row, column)

    def mark(self, words: str, start: int) -> str:
        """Text of the document from `start` on, with its id before each row."""
        for id, (_, row) in reversed([*self.rows.items()]):
            if 0 <= (at := row.start - start) < len(words):
                words = f"{words[:at]}[{id}] {words[at:]}"
        return words

    @property
    def label(self) -> str:
        """`columns c1 2022, c2 2021 (Dollars in millions)`; of several tables, each with the rows that they belong to."""
        if not self.rows:
            return ""
        parts: list[str] = []
        for _, own in groupby(list(self.columns.items())[:MOST_COLUMNS], lambda each: id(each[1][0])):
            listed = list(own)
            table = listed[0][1][0]
            names = ", ".join(f"{key} {short_name(table.columns[at]) or '(no name)'}" for key, (_, at) in listed)
            rows = [key for key, (of, _) in self.rows.items() if of is table]
            where = f" of {rows[0]} to {rows[-1]}" if len(rows) < len(self.rows) else ""
            parts.append(f"columns{where} {names}{f' ({table.units})' if table.units else ''}")
        return "; ".join(parts)


TablesOf = Callable[[Passage], PassageTables | None]


def passage_tables(document: Document, passage: Passage) -> PassageTables:
    rows: dict[str, tuple[Table, TableRow]] = {}
    columns: dict[str, tuple[Table, int]] = {}
    for table in tables_within(document.tables, passage.start, passage.end):
        if len(table.columns) > LONGEST_ROW:
            continue
        shown = table_rows(table, document.text, passage.start, passage.end)
        own = [row for row in shown if passage.start <= row.start and any(map(_has_digit, row.cells[1:]))]
        used = [at for at in range(1, len(table.columns)) if any(_has_digit(row.cells[at]) for row in own)]
        rows |= {f"r{number}": (table, row) for number, row in enumerate(own, len(rows) + 1)}
        columns |= {f"c{number}": (table, at) for number, at in enumerate(used, len(columns) + 1)}
    return PassageTables(document, rows, columns)


def _has_digit(cell: TableCell) -> bool:
    return any(map(str.isdigit, cell.text))
