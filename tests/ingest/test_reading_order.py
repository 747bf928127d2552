"""Pages with random layouts: every sentence comes back whole and in its order."""

from __future__ import annotations

import os

import pytest
from random_pages import broken_sentences, draw_page

from assay.ingest.parsed import FileLimits
from assay.ingest.pdf.reader import read

PAGES = 2_000 if os.environ.get("ASSAY_SOAK") else 200


def check(seeds: range) -> None:
    broken: dict[int, list[str]] = {}
    for seed in seeds:
        page = draw_page(seed)
        written = read(page.data, FileLimits()).written
        if found := broken_sentences(page, written.text, written.seams):
            broken[seed] = [*page.features, *found[:2]]
    assert not broken


def test_every_sentence_of_a_random_page_comes_back_whole() -> None:
    check(range(40))


@pytest.mark.long
def test_every_sentence_of_many_random_pages_comes_back_whole() -> None:
    check(range(40, PAGES))
