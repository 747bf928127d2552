from __future__ import annotations

import pytest

from assay.core.events import Where
from assay.index.filters import matches
from assay.index.search_filter import filter_for


def fields(**changes: str) -> dict[str, str | int | float | bool]:
    return {"source": "/papers/a.pdf", "title": "On pumps", "type": "pdf", "date": "2024-05-17", **changes}


@pytest.mark.parametrize(
    ("where", "changes", "kept"),
    [
        (Where(), {}, True),
        (Where(sources=("PAPERS",)), {}, True),
        (Where(sources=("pumps",)), {}, True),
        (Where(sources=("b.pdf", "a.pdf")), {}, True),
        (Where(sources=("b.pdf",)), {}, False),
        (Where(types=("html",)), {}, False),
        (Where(since="2024-05-17"), {}, True),
        (Where(since="2024-05-18"), {}, False),
        (Where(since="2024-05-18"), {"date": "2024-05"}, True),
        (Where(since="2024-05-18"), {"date": "2024"}, True),
        (Where(since="2024-05-18"), {"date": "2023"}, False),
        (Where(since="2024-05-18"), {"date": ""}, False),
        (Where(until="2024-05-17"), {}, True),
        (Where(until="2024-05-16"), {}, False),
        (Where(until="2024-05-16"), {"date": "2024-05"}, True),
        (Where(until="2024-05-16"), {"date": ""}, False),
        (Where(until="2024-05-16", undated=True), {"date": ""}, True),
        (Where(since="2025-01-01", undated=True), {}, False),
        (Where(meta={"team": "red"}), {"meta.team": "red"}, True),
        (Where(meta={"team": "red"}), {"meta.team": "blue"}, False),
        (Where(meta={"team": "red"}), {}, False),
    ],
)
def test_every_limit_keeps_what_it_should(where: Where, changes: dict[str, str], kept: bool):
    assert matches(filter_for(where), fields(**changes)) is kept
