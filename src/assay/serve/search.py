"""Searching over HTTP: the best passages for a query, as they stand."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter

from assay.serve.limiting import where_of
from assay.serve.shapes import Problem
from assay.serve.shapes_documents import Hits, HitShape, Search
from assay.serve.state import Here, Mine

router = APIRouter(
    prefix="/api",
    tags=["search"],
    responses={code: {"model": Problem} for code in (400, 401, 403, 404, 422, 429, 502, 503)},
)


@router.post("/search", response_model=Hits)
async def search(wanted: Search, mine: Mine, here: Here) -> Hits:
    """Find passages by words and by meaning."""
    where = where_of(wanted)
    hits = await here.engine.do(mine.search(wanted.query, wanted.k, where))
    names = {base.id: base.name for base in (await asyncio.to_thread(mine.scope)).bases}
    return Hits(
        query=wanted.query,
        hits=tuple(
            HitShape(
                rank=hit.rank,
                document=hit.passage.doc_id,
                title=hit.title,
                base=names.get(str(hit.fields.get("base", "")), ""),
                page=hit.passage.page,
                heading=hit.passage.heading,
                start=hit.passage.start,
                end=hit.passage.end,
                text=hit.passage.text,
            )
            for hit in hits
        ),
    )
