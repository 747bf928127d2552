from __future__ import annotations

import pytest

from assay.core.events import SearchFilters
from assay.index.filters import matches
from assay.index.search_filter import filter_for


def fields(**changes: str) -> dict[str, str | int | float | bool]:
    return {"source": "/papers/a.pdf", "title": "On pumps", "type": "pdf", "date": "2024-05-17", **changes}


@pytest.mark.parametrize(
    ("where", "changes", "kept"),
    [
        (SearchFilters(), {}, True),
        (SearchFilters(sources=("PAPERS",)), {}, True),
        (SearchFilters(sources=("pumps",)), {}, True),
        (SearchFilters(sources=("b.pdf", "a.pdf")), {}, True),
        (SearchFilters(sources=("b.pdf",)), {}, False),
        (SearchFilters(types=("html",)), {}, False),
        (SearchFilters(since="2024-05-17"), {}, True),
        (SearchFilters(since="2024-05-18"), {}, False),
        (SearchFilters(since="2024-05-18"), {"date": "2024-05"}, True),
        (SearchFilters(since="2024-05-18"), {"date": "2024"}, True),
        (SearchFilters(since="2024-05-18"), {"date": "2023"}, False),
        (SearchFilters(since="2024-05-18"), {"date": ""}, False),
        (SearchFilters(until="2024-05-17"), {}, True),
        (SearchFilters(until="2024-05-16"), {}, False),
        (SearchFilters(until="2024-05-16"), {"date": "2024-05"}, True),
        (SearchFilters(until="2024-05-16"), {"date": ""}, False),
        (SearchFilters(until="2024-05-16", undated=True), {"date": ""}, True),
        (SearchFilters(since="2025-01-01", undated=True), {}, False),
        (SearchFilters(meta={"team": "red"}), {"meta.team": "red"}, True),
        (SearchFilters(meta={"team": "red"}), {"meta.team": "blue"}, False),
        (SearchFilters(meta={"team": "red"}), {}, False),
    ],
)
def test_every_limit_keeps_what_it_should(where: SearchFilters, changes: dict[str, str], kept: bool):
    assert matches(filter_for(where), fields(**changes)) is kept
