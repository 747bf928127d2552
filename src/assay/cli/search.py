"""`assay search`: the best passages for a query, verbatim."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.options import (
    Bases,
    Json,
    Meta,
    Since,
    Sources,
    Types,
    Undated,
    Until,
    Workspace,
    aside,
    console,
    plain,
    print_json,
    say_if_any,
    wait_for,
    where_of,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from assay.core.types import Document, Hit, Passage

INDENT = 4


def search(
    query: Annotated[str, typer.Argument(help="Words or a question.")],
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="How many passages.")] = 10,
    bases: Bases = None,
    sources: Sources = None,
    types: Types = None,
    since: Since = None,
    until: Until = None,
    undated: Undated = False,
    meta: Meta = None,
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Find passages by words and by meaning."""
    from assay.cli.acting import open_workspace
    from assay.core.errors import UserError

    if not query.strip():
        raise UserError("The query is empty. Give a few words to search for.")
    where = where_of(bases, sources, types, since, until, meta, undated=undated)
    with open_workspace(workspace) as opened:
        hits = wait_for(opened.search(whole(query), k, where))
        say_if_any(opened.documents.outdated(where.bases))
        left_out = opened.documents.left_out(where)
        if left_out and left_out.documents:
            aside().print(left_out.sentence, markup=False)
        if json:
            print_json([as_json(hit) for hit in hits])
            return
        show(hits, opened.documents.get)


def show(hits: Sequence[Hit], document: Callable[[str], Document | None]) -> None:
    out = console()
    if not hits:
        out.print("Nothing was found.")
    for hit in hits:
        page = f", page {hit.passage.page}" if hit.passage.page else ""
        heading = f" › {hit.passage.heading}" if hit.passage.heading else ""
        out.print(plain(f"{hit.rank:>2}  {hit.title}{heading}{page}"), style="bold", markup=False)
        out.print(plain(f"    {PurePath(str(hit.fields.get('source', ''))).name}"), style="dim", markup=False)
        if hit.passage.context:
            out.print(plain("    " + " · ".join(hit.passage.context.splitlines())), style="dim", markup=False)
        for line in passage_lines(hit.passage, document(hit.passage.doc_id), out.width - INDENT):
            out.print(plain(" " * INDENT + line), markup=False)


def passage_lines(passage: Passage, document: Document | None, width: int) -> list[str]:
    """A passage as lines: rows of a table under its header, in columns if they fit; all else on one line."""
    from assay.tables.parts import blocks_within, text_table

    if document is None or not document.tables:
        return [" ".join(passage.text.split())]
    lines: list[str] = []
    for block in blocks_within(document, passage.start, passage.end):
        aligned = text_table(block.table) if block.table else []
        if block.table and max(map(len, aligned)) > width:
            aligned = [" ".join(document.text[row.start : row.end].split()) for row in block.table.rows]
        lines += aligned or filter(None, [" ".join(block.text.split())])
    return lines


def as_json(hit: Hit) -> dict[str, Any]:
    passage = hit.passage
    return {
        "rank": hit.rank, "document": passage.doc_id, "title": hit.title, "path": hit.fields.get("source", ""),
        "heading": passage.heading, "page": passage.page, "start": passage.start, "end": passage.end, "text": passage.text,
        "context": passage.context,
    }  # fmt: skip
