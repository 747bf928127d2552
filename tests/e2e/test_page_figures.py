"""A figure that a model has read: what it says is marked so, and the figure stands beside it, also where it is reviewed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser_session import PHONE, Desk, Model, Reader, desk
from chart import CAPTION, chart_pdf
from doubles import synthesis_model
from playwright.sync_api import Locator, Page, expect
from seeing import QUESTION, READ, Seeing

LOOKS = pytest.mark.parametrize(
    ("colours", "wide"), [("light", True), ("light", False), ("dark", True), ("dark", False)]
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, _plain_environment: None) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("figures")
    (folder / "report.pdf").write_bytes(chart_pdf())
    model = Model()
    model.plays(Seeing().answer)
    with desk(folder / "workspace", {"lamp.txt": "The lamp was lit."}, model, llm_size="large") as at:
        at.sends(folder / "report.pdf")
        yield at


def drawn(beside: Page | Locator) -> Locator:
    """The figure of the report, when all of it is there."""
    picture = beside.get_by_role("img", name=CAPTION)
    picture.scroll_into_view_if_needed()
    expect(picture).to_have_js_property("complete", True)
    assert picture.evaluate("each => each.naturalWidth") > 200
    return picture


@LOOKS
def test_a_figure_that_was_read_stands_beside_the_answer_and_opens_its_page(
    reads: Callable[..., Reader], served: Desk, colours: str, wide: bool
):
    reader = reads(served, color_scheme=colours, **({} if wide else {"viewport": PHONE}))
    page = reader.goes()
    turn = reader.asks(QUESTION)
    expect(turn.locator(".claim").first).to_contain_text(READ)
    expect(turn.get_by_text("read from a figure by the model", exact=True)).to_be_visible()
    expect(turn.get_by_text("follows from the words shown")).to_have_count(0)  # no words were: a picture was
    picture = drawn(turn)
    dimmed = picture.evaluate("each => getComputedStyle(each.closest('button')).filter")
    assert (dimmed != "none") == (colours == "dark")
    reader.fits()
    reader.accessible("an answer with a figure")
    reader.picture(f"figure-{colours}-{'wide' if wide else 'narrow'}")
    turn.get_by_role("button", name=re.compile("Figure 1, page 1")).click()
    expect(page.get_by_role("region", name="Pages of the document")).to_be_visible()
    reader.leaves()


def test_a_reviewer_sees_the_figure_and_what_they_say_of_it_is_marked_as_theirs(
    reads: Callable[..., Reader], served: Desk
):
    run = served.api("/api/ask", json={"question": QUESTION, "stakes": "high"})["id"]
    reader = reads(served)
    page = reader.goes(f"#/review/{run}")
    statement = page.locator(".statement", has_text=READ)
    expect(statement.get_by_text("read from a figure by the model", exact=True)).to_be_visible()
    drawn(page)
    statement.get_by_role("button", name="Edit statement 1").click()
    statement.get_by_role("textbox").fill("The third bar is the highest.")
    page.get_by_role("button", name="Check my edits").click()
    edited = page.locator(".statement", has_text="The third bar is the highest.")
    expect(edited.get_by_text("read from a figure by a reviewer", exact=True)).to_be_visible()
    drawn(page)
    reader.accessible("a draft with a figure")
    reader.picture("figure-review")
    reader.leaves()


def test_a_synthesis_shows_the_figure_that_it_is_about_in_each_of_its_versions(
    reads: Callable[..., Reader], tmp_path: Path, _plain_environment: None
):
    (tmp_path / "report.pdf").write_bytes(chart_pdf())
    model = Model()
    model.plays(synthesis_model())
    note = "The lamp of the lighthouse at Carrow Point is lit. Most visitors of the lighthouse come in July."
    with desk(tmp_path / "workspace", {"lamp.txt": note}, model) as at:
        at.sends(tmp_path / "report.pdf")
        wanted = {"documents": [at.document("report"), at.document("lamp")], "questions": 1, "audiences": ["plain"]}
        run = at.api("/api/synthesis", json=wanted)["run"]
        reader = reads(at)
        page = reader.goes(f"#/synthesis/{run}")
        account = page.get_by_role("region", name="The account")
        drawn(account)
        account.get_by_role("radio", name="Plain language").check()
        drawn(account)
        reader.accessible("an account with a figure")
        reader.leaves()
