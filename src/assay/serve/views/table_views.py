"""Response views of documents as text and tables. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from assay.core.types import Document
from assay.serve.document_schemas import BlocksResponse
from assay.serve.document_schemas import ReadingBlock
from assay.serve.run_schemas import TableRowView
from assay.serve.run_schemas import TableView
from assay.tables.parts import Block, PartRow, TablePart


def table_view(part: TablePart | None) -> TableView | None:
    if part is None:
        return None
    return TableView(
        caption=part.caption,
        units=part.units,
        period=part.period,
        columns=part.columns,
        numeric=part.numeric,
        cited=part.cited,
        rows=tuple(map(_row, part.rows)),
        first=part.first,
        total=part.total,
        column=part.column,
        width=part.width,
    )


def _row(row: PartRow) -> TableRowView:
    return TableRowView(start=row.start, end=row.end, level=row.level, cells=row.cells, cited=row.cited)


def blocks_view(document: Document, blocks: Sequence[Block], at: int) -> BlocksResponse:
    """`at` is where the blocks would be if there are none."""
    return BlocksResponse(
        document=document.id,
        start=blocks[0].start if blocks else at,
        end=blocks[-1].end if blocks else at,
        characters=len(document.text),
        blocks=tuple(
            ReadingBlock(
                start=each.start, end=each.end, text=each.text, number=each.number, table=table_view(each.table)
            )
            for each in blocks
        ),
    )
