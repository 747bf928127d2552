"""Markdown tables in a text that stays as it was typed: rows of cells between bars, below a header and a line of dashes."""

from __future__ import annotations

import re

from assay.core.types import Table
from assay.tables.build import GridCell, GridRow, build_table, caption_above

_RULE = re.compile(r"^[ \t]*+\|?(?:[ \t]*+:?-{1,200}:?[ \t]*+\|)+(?:[ \t]*+:?-{1,200}:?[ \t]*+)?$")


def find_pipe_tables(text: str) -> list[Table]:
    """The Markdown tables of a text."""
    lines: list[tuple[str, int]] = []
    at = 0
    for line in text.split("\n"):
        lines.append((line, at))
        at += len(line) + 1
    tables: list[Table] = []
    index = 1
    while index < len(lines):
        if "|" not in lines[index][0] or not _RULE.match(lines[index][0]) or "|" not in lines[index - 1][0]:
            index += 1
            continue
        below = index + 1
        while below < len(lines) and "|" in lines[below][0]:
            below += 1
        above = [line for line, _ in lines[max(0, index - 4) : index - 1] if line.strip()][-2:]
        caption = caption_above([line.strip(" #*_") for line in above])
        table = build_table(
            [_row(*lines[index - 1])], [_row(*each) for each in lines[index + 1 : below]], caption=caption, above=above
        )
        tables += [table] if table is not None else []
        index = below
    return tables


def _row(line: str, at: int) -> GridRow:
    bare = line.strip()
    begin = at + line.index(bare) + bare.startswith("|")
    end = at + line.index(bare) + len(bare) - (bare.endswith("|") and len(bare) > 1)
    cells: list[GridCell] = []
    column, start = 0, begin
    for place in [*(m.start() for m in re.finditer(r"(?<!\\)\|", line)), None]:
        stop = end if place is None else at + place
        if stop < begin or stop < start:
            continue
        words = line[start - at : min(stop, end) - at]
        text = words.strip()
        if text:
            low = start + words.index(text)
            cells.append(GridCell(text, column, low, low + len(text)))
        column += 1
        start = stop + 1
        if start > end:
            break
    return GridRow(tuple(cells), at, at + len(line))
