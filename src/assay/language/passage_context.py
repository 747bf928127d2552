"""What a reader of a passage has to know that the passage does not say: caption, units, period and header of its tables, and
the units that its section declares. Pure.

It is searched with the passage and shown beside it, in the words of the document.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.core.tables import BETWEEN, LINES, header_end, table_rows, tables_within
from assay.core.types import Document, Table
from assay.language.units import BARE_MONEY

DOUBTFUL = "The order of the text on this page is uncertain."
SHOWN_NAME = 160  # characters of a caption, or of a column name, where it stands for a table


def passage_context(document: Document, start: int, end: int, heading: str) -> str:
    """What `text[start:end]` and the heading above it do not say."""
    tables = [
        table for table in tables_within(document.tables, start, end) if table_rows(table, document.text, start, end)
    ]
    shown = " ".join(document.text[start:end].split())
    doubtful = any(start - 4 < seam < end + 4 for seam in document.seams)
    lines = [line for table in tables for line in _table_lines(document, table, start, end, shown, heading)]
    units = _declared_units(document, tables, start, end)
    stated = units in shown or units in heading or any(units in line for line in lines)
    return "\n".join(dict.fromkeys(filter(None, (*lines, "" if stated else units, DOUBTFUL if doubtful else ""))))


def _declared_units(document: Document, tables: Sequence[Table], start: int, end: int) -> str:
    """What the section declares, if the text beside the tables has amounts without a scale."""
    units = document.units_at(start)
    if not units:
        return ""
    edges = [start, *(edge for table in tables for edge in (table.start, table.end)), end]
    beside = zip(edges[::2], edges[1::2], strict=True)
    return units if any(BARE_MONEY.search(document.text, low, high) for low, high in beside if low < high) else ""


def _table_lines(document: Document, table: Table, start: int, end: int, shown: str, heading: str) -> list[str]:
    """Caption, units and period, the header, and the group of the first row, as far as they are not there."""
    rows = table_rows(table, document.text, start, end)
    caption, *further = (
        [words for words in part if words and words not in shown and words not in heading]
        for part in (table.caption.split(LINES), [table.units], [table.period])
    )
    further = [words for part in further for words in part if words not in table.caption]
    columns = [name for name in table.columns if name]
    has_header = start <= table.start < header_end(table)  # the header is in this part
    missing = not has_header and any(name not in shown for name in columns)
    group = rows[0].label.removesuffix(rows[0].cells[0].text).removesuffix(BETWEEN)
    return [
        LINES.join(filter(None, (_short(LINES.join(caption)), *map(_short, further)))),
        _short(" | ".join(columns), 2 * SHOWN_NAME) if missing else "",
        _short(group) if group.rpartition(BETWEEN)[2] not in shown else "",
    ]


def _short(words: str, most: int = SHOWN_NAME) -> str:
    return words if len(words) <= most else words[: most - 1].rstrip() + "…"
