"""By keyboard alone, from a first visit to the page behind a statement; and what a screen reader is told meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from browser_session import STARTING, Model, Reader, desk
from handbook import SENTENCE, handbook
from lighthouse import NOTES, QUESTION, researcher
from playwright.sync_api import Locator, Page, expect

from assay.workspace.facade import open_workspace

Reads = Callable[..., Reader]
ASKED = "When is the Marrow sluice opened by hand?"
SEEN = """() => {
  const style = getComputedStyle(document.activeElement);
  return (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1) || style.boxShadow !== "none";
}"""
HEARD = """() => {
  window.heard = [];
  for (const live of document.querySelectorAll("[aria-live], [role=status]"))
    new MutationObserver(() => live.textContent && window.heard.push(live.textContent))
      .observe(live, {childList: true, characterData: true, subtree: true});
}"""


def to_the_top(page: Page) -> None:
    """As a page that was just opened and has taken no focus."""
    page.evaluate("document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')")


def presses(page: Page, key: str, wanted: Locator, most: int) -> None:
    """This key, until the focus is there; a person sees where it is at each step."""
    for _ in range(most):
        page.keyboard.press(key)
        assert page.evaluate(SEEN), page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
        if wanted.evaluate("node => node === document.activeElement"):
            return
    raise AssertionError(f"{wanted} has no focus after {most} times {key}")


def skips_to_the_question(page: Page) -> None:
    to_the_top(page)
    presses(page, "Tab", page.get_by_role("link", name="Skip to the question"), 1)
    page.keyboard.press("Enter")
    expect(page.get_by_label("Your question")).to_be_focused()


def test_from_a_first_visit_to_an_opened_citation_without_a_mouse(tmp_path: Path, reads: Reads):
    open_workspace(tmp_path / "workspace", create=True).close()
    with desk(tmp_path / "workspace") as served:
        reader = reads(served)
        page = reader.goes()
        page.on("filechooser", lambda _: None)  # the browser tells of choosers only once somebody listens
        expect(page.get_by_role("heading", name="Start with your documents")).to_be_visible()
        skips_to_the_question(page)
        presses(page, "Shift+Tab", page.get_by_role("button", name="Add files"), 40)
        with page.expect_file_chooser() as choosing:
            page.keyboard.press("Enter")
        choosing.value.set_files(handbook(tmp_path / "handbook.pdf"))
        expect(page.get_by_text("Answers come from 1 document")).to_be_visible(timeout=STARTING)
        skips_to_the_question(page)
        page.keyboard.type(ASKED)
        page.keyboard.press("Enter")
        expect(page.locator(".answer")).to_contain_text(SENTENCE, timeout=STARTING)
        cite = page.locator(".answer").get_by_role("button", name=re.compile("page 2")).first
        presses(page, "Shift+Tab", cite, 60)
        page.keyboard.press("Enter")
        expect(page.get_by_role("figure", name="Page 2 of 2").locator(":scope > span").first).to_be_in_viewport(
            timeout=STARTING
        )
        page.keyboard.press("Escape")
        expect(cite).to_be_focused()


def test_every_link_of_the_frame_is_reached_and_does_what_it_says(tmp_path: Path, reads: Reads):
    open_workspace(tmp_path / "workspace", create=True).close()
    with desk(tmp_path / "workspace") as served:
        page = reads(served).goes("#/documents")
        expect(page.get_by_role("heading", name="Begin with your documents")).to_be_visible()
        to_the_top(page)
        presses(page, "Tab", page.get_by_role("link", name="Skip to the content"), 1)
        page.keyboard.press("Enter")
        expect(page.get_by_role("main")).to_be_focused()
        for name, tab in {"Activity": "Health", "Settings": "People"}.items():
            to_the_top(page)
            presses(page, "Tab", page.get_by_role("link", name=name).first, 10)
            page.keyboard.press("Enter")
            expect(page.get_by_role("main")).to_be_focused()
            presses(page, "Tab", page.get_by_role("navigation", name=name).get_by_role("link", name=tab), 6)
            page.keyboard.press("Enter")
            expect(page.get_by_role("heading", level=1, name=tab)).to_be_visible()
            expect(page.get_by_role("main")).to_be_focused()  # once the screen is whole


def test_a_screen_reader_hears_each_step_as_it_begins_and_once_that_the_answer_is_there(tmp_path: Path, reads: Reads):
    model = Model()
    model.plays(researcher())
    with desk(tmp_path / "workspace", NOTES, model) as served:
        reader = reads(served)
        page = reader.goes()
        expect(page.get_by_label("Your question")).to_be_focused()
        page.evaluate(HEARD)
        turn = reader.asks(QUESTION)
        expect(turn.locator(".answer")).to_be_visible(timeout=STARTING)
        page.wait_for_function("window.heard.includes('The answer is ready.')")
        heard = page.evaluate("window.heard")
        assert not [words for words, then in pairwise(heard) if words == then], heard
        assert heard.count("The answer is ready.") == 1 and "Planning" in heard, heard
        assert turn.get_by_role("status").count() == 0, "an answer that stands is read, not announced"
