"""Pages with random layouts: every sentence comes back whole and in its order."""

from __future__ import annotations

import io
import os
from collections.abc import Callable

import pytest
from random_pages import broken_sentences, draw_page
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from assay.ingest.parsed import FileLimits
from assay.ingest.pdf.reader import read

PAGES = 2_000 if os.environ.get("ASSAY_SOAK") else 100


def broken_pages(seeds: range) -> dict[int, list[str]]:
    """The pages of which a sentence did not come back, with what is on them."""
    broken: dict[int, list[str]] = {}
    for seed in seeds:
        page = draw_page(seed)
        written = read(page.data, FileLimits()).built
        if found := broken_sentences(page, written.text, written.seams):
            broken[seed] = [*page.features, *found[:2]]
    return broken


@pytest.mark.long
def test_every_sentence_of_a_random_page_comes_back_whole() -> None:
    assert not broken_pages(range(40))


@pytest.mark.long
def test_the_sentences_of_many_random_pages_come_back_whole() -> None:
    """One page in a hundred may fail: some layouts can be read in two ways."""
    broken = broken_pages(range(40, PAGES))
    assert len(broken) <= PAGES / 100, broken


def test_a_short_right_column_is_not_read_into_the_lines_of_the_left() -> None:
    def draw(canvas: Canvas) -> None:
        for row in range(40):
            canvas.drawString(60, 760 - 13 * row, f"line {row} of the long left column, which fills it.")
        canvas.drawString(330, 760, "the end of the paper stands alone.")

    text = read_text(draw)
    assert text.index("line 39") < text.index("the end of the paper") and "\t" not in text


def test_text_that_may_be_read_in_two_ways_is_parted_by_seams() -> None:
    def draw(canvas: Canvas) -> None:
        for row, words in enumerate(("the level of the river", "was taken every hour")):
            canvas.drawString(60, 760 - 13 * row, words)
            canvas.drawString(330, 760 - 13 * row, words.replace("river", "lake").replace("hour", "week"))

    reading = read(drawn(draw), FileLimits())
    assert reading.built.seams == (reading.built.text.index("the level of the lake"),)
    assert "uncertain (page 1)" in " ".join(reading.warnings)


def test_lines_printed_over_each_other_are_parted_by_seams() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(60, 760, "The first text stands here on the page.")
        canvas.drawString(62, 758, "Another text was printed over the first.")

    written = read(drawn(draw), FileLimits()).built
    assert any("Another" in written.text[seam:] or "first text" in written.text[seam:] for seam in written.seams)


def drawn(draw: Callable[[Canvas], None]) -> bytes:
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4)
    draw(canvas)
    canvas.save()
    return out.getvalue()


def read_text(draw: Callable[[Canvas], None]) -> str:
    return read(drawn(draw), FileLimits()).built.text
