"""A figure that a model has read: what it says is marked so, and the figure stands beside it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from browser_session import Model, Reader, desk
from chart import CAPTION, chart_pdf
from playwright.sync_api import expect
from seeing import QUESTION, READ, Seeing


def test_a_figure_that_was_read_stands_beside_the_answer_and_opens_its_page(
    reads: Callable[..., Reader], tmp_path: Path, _plain_environment: None
):
    (tmp_path / "report.pdf").write_bytes(chart_pdf())
    model = Model()
    model.plays(Seeing().answer)
    with desk(tmp_path / "workspace", {"lamp.txt": "The lamp was lit."}, model, llm_size="large") as at:
        at.sends(tmp_path / "report.pdf")
        reader = reads(at)
        page = reader.goes()
        turn = reader.asks(QUESTION)
        expect(turn.locator(".claim").first).to_contain_text(READ)
        expect(turn.get_by_text("read from a figure by the model", exact=True)).to_be_visible()
        picture = turn.get_by_role("img", name=CAPTION)
        picture.scroll_into_view_if_needed()
        expect(picture).to_have_js_property("complete", True)
        assert picture.evaluate("each => each.naturalWidth") > 200
        reader.accessible("an answer with a figure")
        turn.get_by_role("button", name=re.compile("Figure 1, page 1")).click()
        expect(page.get_by_role("region", name="Pages of the document")).to_be_visible()
        reader.leaves()
