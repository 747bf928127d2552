"""Rows of cells → self-contained lines: each row repeats its column names, because a passage contains few rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from assay.ingest.formats.text_builder import TextBuilder
from assay.language.clean import tidy_whitespace

_NUMBER = re.compile(r"[-+(]?[$€£¥]?\s*\d[\d.,' ]*\s*%?\)?|\d{4}-\d\d-\d\d.*")
_YEAR = re.compile(r"(?:19|20)\d\d")


def write_rows(rows: Iterable[Sequence[str]], out: TextBuilder, *, always_named: bool = False) -> None:
    """Write consecutive tables: an empty row ends a table. `always_named`: tables of two columns have names too."""
    block: list[list[str]] = []
    named: list[str] | None = None
    for row in rows:
        cells = [tidy_whitespace(cell).replace("\n", " ") for cell in row]
        if any(cells):
            block.append(cells)
        # A table may be as long as the file: after this many rows its header is known.
        if len(block) >= 1000:
            named = _write(block, named, out, always_named)
            block = []
        elif not any(cells):
            carried = block[-1] if block and named is None and _only_names(block) else None
            _write(block, named, out, always_named)
            block, named = [], carried
    _write(block, named, out, always_named)


def _only_names(block: list[list[str]]) -> bool:
    """Whether a block is only a header, separated from its table by an empty row."""
    return len(set(filter(None, block[-1]))) > 2 and all(_names([cell for cell in row if cell]) for row in block)


def _write(block: list[list[str]], named: list[str] | None, out: TextBuilder, always_named: bool) -> list[str]:
    """Write one block of a table and return its column names; empty if it has none."""
    above, names, rows = ([], named, block) if named is not None and not _renamed(block) else _head(block, always_named)
    for place, line in enumerate([_joined(row) for row in above] + [_row(row, names) for row in rows]):
        out.block(line, "\n" if place or named else "\n\n")
    return names


def _renamed(block: list[list[str]]) -> bool:
    """Whether a block that inherited names across an empty row has names of its own."""
    return bool(block) and len(block) < 1000 and _names([cell for cell in block[0] if cell])


def _head(block: list[list[str]], always_named: bool) -> tuple[list[list[str]], list[str], list[list[str]]]:
    """The lines above the table, its column names, its rows."""
    for place, row in enumerate(block[:10]):
        filled = [cell for cell in row if cell]
        if len(set(filled)) < 2:
            continue  # a title, a note, or one merged cell
        below = block[place + 1 :]
        if not below or not _names(filled):
            break
        if len(set(filled)) < len(filled):  # names that span columns: the row below tells them apart
            if not _names([cell for cell in below[0] if cell]) or len(below) < 2:
                break
            pairs = _padded(row, below[0])
            return block[:place], [" ".join(dict.fromkeys(filter(None, pair))) for pair in pairs], below[1:]
        if len(filled) == 2 and not always_named and not _named_pair(below):
            break
        return block[:place], row, below
    return [], [], block


def _names(cells: list[str]) -> bool:
    """Whether cells look like column names: words or years, not sentences."""
    return bool(cells) and all(
        len(cell) < 100 and (not _NUMBER.fullmatch(cell) or _YEAR.fullmatch(cell)) for cell in cells
    )


def _named_pair(below: list[list[str]]) -> bool:
    """Two columns have names if there are numbers below the second; otherwise they may be a form: `Name | Jane`."""
    seconds = [filled[1] for row in below if len(filled := [cell for cell in row if cell]) > 1]
    return bool(seconds) and sum(bool(_NUMBER.fullmatch(cell)) for cell in seconds) > 0.8 * len(seconds)


def _padded(one: list[str], other: list[str]) -> list[tuple[str, str]]:
    width = max(len(one), len(other))
    return list(zip(one + [""] * (width - len(one)), other + [""] * (width - len(other)), strict=True))


def _row(cells: list[str], named: list[str]) -> str:
    if not named or len(set(filter(None, cells))) < 2:
        return _joined(cells)
    shown: list[str] = []
    before = ""
    for name, cell in _padded(named, cells):
        if cell and (name or cell != before):  # an unnamed repetition is one cell merged across columns
            shown.append(f"{name.rstrip(': ')}: {cell}" if name else cell)
        before = cell
    return "; ".join(shown)


def _joined(cells: list[str]) -> str:
    """Cells side by side; a cell merged across the row appears once."""
    filled = [cell for cell in cells if cell]
    return filled[0] if len(set(filled)) == 1 else " | ".join(cells).strip(" |")
