"""Searching over HTTP: the best passages for a query, as they stand."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter

from assay.serve.schemas.document_schemas import Hits, Search
from assay.serve.schemas.run_schemas import Problem
from assay.serve.state import Here, Mine
from assay.serve.views.document_views import hit_shape
from assay.serve.views.request_options import where_of

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
    return Hits(query=wanted.query, hits=tuple(hit_shape(hit, names) for hit in hits))
