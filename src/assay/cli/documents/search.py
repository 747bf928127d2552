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
    Until,
    Workspace,
    console,
    plain,
    print_json,
    wait_for,
    where_of,
    whole,
)
from assay.cli.view.dialogue import say_if_any

if TYPE_CHECKING:
    from assay.core.types import Hit


def search(
    query: Annotated[str, typer.Argument(help="Words or a question.")],
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="How many passages.")] = 10,
    bases: Bases = None,
    sources: Sources = None,
    types: Types = None,
    since: Since = None,
    until: Until = None,
    meta: Meta = None,
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Find passages by words and by meaning."""
    from assay.cli.acting import open_workspace
    from assay.core.errors import UserError

    if not query.strip():
        raise UserError("The query is empty. Give a few words to search for.")
    where = where_of(bases, sources, types, since, until, meta)
    with open_workspace(workspace) as opened:
        hits = wait_for(opened.search(whole(query), k, where))
        say_if_any(opened.outdated(where.bases))
    if json:
        print_json([as_json(hit) for hit in hits])
        return
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
        out.print(plain("    " + " ".join(hit.passage.text.split())), markup=False)


def as_json(hit: Hit) -> dict[str, Any]:
    passage = hit.passage
    return {
        "rank": hit.rank, "document": passage.doc_id, "title": hit.title, "path": hit.fields.get("source", ""),
        "heading": passage.heading, "page": passage.page, "start": passage.start, "end": passage.end, "text": passage.text,
        "context": passage.context,
    }  # fmt: skip
