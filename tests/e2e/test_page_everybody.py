"""The page for everybody: on a phone, in the dark, by keyboard alone, with a screen reader, and behind a sign-in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_session import LAPTOP, PHONE, Desk, Model, Reader, desk, until
from doubles import synthesis_model
from handbook import SENTENCE, handbook
from lighthouse import NOTES as LIGHT
from lighthouse import PAPERS, QUESTION, disagreement, finder, researcher
from playwright.sync_api import Page, expect

from assay.serve.state import ServeOptions
from assay.store.access import members
from assay.workspace.facade import open_workspace

Reads = Callable[..., Reader]
ASKED = "When is the Marrow sluice opened by hand?"


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture(scope="module")
def served(model: Model, tmp_path_factory: pytest.TempPathFactory, _plain_environment: None) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("everybody")
    with desk(folder / "workspace", LIGHT, model) as opened:
        (folder / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing")
        opened.sends(handbook(folder / "handbook.pdf"), folder / "broken.pdf")
        opened.api("/api/bases", json={"name": "papers"})
        for title, words in PAPERS.items():
            (folder / f"{title}.txt").write_text(words)
        opened.sends(*(folder / f"{title}.txt" for title in PAPERS), base="papers")
        yield opened


@pytest.fixture(scope="module")
def prepared(served: Desk, model: Model) -> dict[str, str]:
    """An answer with a citation on a page, one in which sources disagree, one that waits, and a synthesis."""
    model.plays(sluice())
    runs = {"answered": served.api("/api/ask", json={"question": ASKED, "talk": True})}
    model.plays(disagreement())
    runs["disagreed"] = served.api("/api/ask", json={"question": "When was the light first lit?", "talk": True})
    model.plays(sluice())
    runs["waiting"] = served.api("/api/ask", json={"question": ASKED, "talk": True, "checkpoints": ["sources"]})
    model.plays(synthesis_model())
    told = served.api("/api/synthesis", json={"bases": ["papers"], "questions": 1})["run"]
    until(lambda: served.run(told)["state"] != "running", 60)
    return {name: run["thread"] for name, run in runs.items()} | {"run": runs["answered"]["id"], "synthesis": told}


def sluice() -> Any:
    return finder(SENTENCE, f"{SENTENCE[:-1]} [{{by hand}}].")


def screens(reader: Reader, served: Desk, prepared: dict[str, str]) -> Iterator[str]:
    """Every screen and state, once it has settled: its name."""
    page = reader.goes()
    expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
    page.get_by_role("button", name=re.compile("^Options")).click()
    yield "new question"
    reader.goes(f"#/thread/{prepared['answered']}")
    expect(page.locator(".answer")).to_contain_text(SENTENCE)
    page.get_by_text(re.compile("^What was searched")).click()
    page.get_by_text("How this was found").click()
    expect(page.get_by_role("heading", name=re.compile("^Searches"))).to_be_visible()
    yield "answered"
    opens_citation(reader)
    expect(page.get_by_role("figure", name="Page 2 of 2").locator(":scope > span").first).to_be_in_viewport()
    yield "citation"
    page.keyboard.press("Escape")
    page.get_by_role("button", name=re.compile("^Evidence")).click()
    expect(page.get_by_role("complementary", name="Evidence")).to_contain_text(SENTENCE)
    yield "evidence"
    page.keyboard.press("Escape")
    reader.goes(f"#/thread/{prepared['disagreed']}")
    expect(page.get_by_role("heading", name="The sources disagree")).to_be_visible()
    yield "disagreement"
    reader.goes(f"#/thread/{prepared['waiting']}")
    expect(page.get_by_role("button", name="Answer now")).to_be_visible()
    expect(page.get_by_role("button", name="Sluice handbook · page 2", exact=True)).to_be_visible()
    yield "checkpoint"
    reader.goes("#/documents")
    expect(page.get_by_role("list", name="Documents").get_by_role("link").first).to_be_visible()
    yield "documents"
    reader.goes("#/documents/default")
    page.get_by_text(re.compile("could not be read: what to do")).click()
    yield "readiness"
    reader.goes(f"#/document/{served.document('Tower')}?start=0&end=30")
    expect(page.locator("mark")).to_be_visible()
    yield "document"
    reader.goes("#/runs")
    expect(page.get_by_role("list", name="Runs").get_by_role("link", name=ASKED).first).to_be_visible()
    yield "runs"
    reader.goes(f"#/run/{prepared['run']}")
    page.locator("summary").filter(has_text="Draft").first.click()
    yield "trace"
    reader.goes("#/synthesis")
    expect(page.get_by_role("heading", name="What it will take")).to_be_visible()
    page.get_by_text("Picked documents").click()
    expect(page.get_by_role("region", name="Documents to pick from")).to_contain_text("Tower")
    yield "synthesis"
    reader.goes(f"#/synthesis/{prepared['synthesis']}")
    expect(page.get_by_role("region", name="The account")).to_be_visible()
    yield "account"


def opens_citation(reader: Reader) -> None:
    cite = reader.page.locator(".answer").get_by_role("button", name=re.compile("^Source 1")).first
    if reader.page.viewport_size == PHONE:
        cite.tap()  # the quotation first, since a finger does not hover
        expect(reader.page.get_by_role("group", name="Quotation")).to_contain_text(SENTENCE)
        reader.page.get_by_role("button", name="Open the page").tap()
    else:
        cite.click()


def paper_is(page: Page, dark: bool) -> None:
    """What is behind the words is dark, or light, as the browser has worked it out."""
    page.wait_for_function(
        """dark => {
          const surface = document.createElement("canvas").getContext("2d");
          surface.fillStyle = getComputedStyle(document.documentElement).backgroundColor;
          surface.fillRect(0, 0, 1, 1);
          const colour = [...surface.getImageData(0, 0, 1, 1).data].slice(0, 3);
          return dark ? Math.max(...colour) < 60 : Math.min(...colour) > 200;
        }""",
        arg=dark,
    )


def test_in_the_light_on_a_laptop_no_screen_has_a_serious_fault(served: Desk, prepared: dict[str, str], reads: Reads):
    reader = reads(served, color_scheme="light")
    for name in screens(reader, served, prepared):
        reader.fits()
        reader.accessible(name)
        reader.picture(f"light-{name.replace(' ', '-')}")
    paper_is(reader.page, dark=False)


def test_in_the_dark_on_a_phone_nothing_sticks_out_and_no_screen_has_a_serious_fault(
    reads: Reads, served: Desk, prepared: dict[str, str]
):
    reader = reads(served, color_scheme="dark", viewport=PHONE, has_touch=True, is_mobile=True, device_scale_factor=2)
    for name in screens(reader, served, prepared):
        reader.fits()
        reader.accessible(f"{name}, dark")
        reader.picture(f"dark-{name.replace(' ', '-')}")
    paper_is(reader.page, dark=True)


def test_a_question_is_asked_on_a_phone_and_a_run_at_work_has_no_serious_fault(
    reads: Reads, served: Desk, model: Model
):
    model.plays(researcher(), hold="write")
    reader = reads(served, viewport=PHONE, has_touch=True, is_mobile=True)
    page = reader.goes()
    turn = reader.asks(QUESTION)
    expect(turn.get_by_role("heading", name="Evidence: 4 pieces")).to_be_visible()
    reader.fits()
    reader.accessible("asking")
    reader.picture("phone-asking")
    model.let()
    expect(turn.locator(".answer")).to_be_visible()
    page.get_by_role("button", name="Threads").tap()
    expect(page.get_by_role("region", name="Threads").get_by_role("link").first).to_be_in_viewport()
    reader.accessible("threads on a phone")
    page.keyboard.press("Escape")
    expect(page.get_by_role("region", name="Threads").get_by_role("link").first).not_to_be_in_viewport()


def test_colours_are_chosen_and_remembered(served: Desk, reads: Reads):
    reader = reads(served, color_scheme="light")
    page = reader.goes()
    switch = page.get_by_role("button", name=re.compile("^Colours:"))
    expect(switch).to_be_visible()
    paper_is(page, dark=False)
    switch.click()
    switch.click()
    expect(switch).to_have_accessible_name(re.compile("^Colours: dark"))
    paper_is(page, dark=True)
    page.reload()
    expect(switch).to_have_accessible_name(re.compile("^Colours: dark"))
    paper_is(page, dark=True)


def focus_is_seen(page: Page) -> bool:
    """Whether a person sees where the focus is: a line around it, or something that differs."""
    return page.evaluate(
        """() => {
          const style = getComputedStyle(document.activeElement);
          return (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1) || style.boxShadow !== "none";
        }"""
    )


def test_without_a_mouse_from_the_start_to_the_words_on_their_page_and_back(served: Desk, model: Model, reads: Reads):
    model.plays(sluice())
    reader = reads(served)
    page = reader.goes()
    expect(page.get_by_label("Your question")).to_be_focused()
    page.keyboard.type(ASKED)
    page.keyboard.press("Enter")
    expect(page.locator(".answer")).to_contain_text(SENTENCE)
    cite = page.locator(".answer").get_by_role("button", name=re.compile("^Source 1"))
    for _ in range(40):
        page.keyboard.press("Shift+Tab")
        assert focus_is_seen(page), page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
        if cite.evaluate("node => node === document.activeElement"):
            break
    expect(cite).to_be_focused()
    expect(page.get_by_role("group", name="Quotation")).to_contain_text(SENTENCE)
    page.keyboard.press("Enter")
    panel = page.get_by_role("complementary", name="Sluice handbook")
    expect(panel.get_by_role("figure", name="Page 2 of 2").locator(":scope > span").first).to_be_in_viewport()
    assert panel.evaluate("node => node.contains(document.activeElement)")
    page.keyboard.press("Tab")
    assert panel.evaluate("node => node.contains(document.activeElement)") and focus_is_seen(page)
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(cite).to_be_focused()
    assert focus_is_seen(page)
    page.keyboard.press("/")
    expect(page.get_by_label("Your question")).to_be_focused()
    for _ in range(60):  # and back to the very beginning
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.matches('.skip')"):
            break
    expect(page.get_by_role("link", name="Skip to the question")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Your question")).to_be_focused()


def test_people_sign_in_to_an_empty_desk_and_out_again(tmp_path: Path, reads: Reads):
    with open_workspace(tmp_path / "workspace", create=True) as opened:
        members.add(opened.store, "reader", password="a long enough password")
    with desk(tmp_path / "workspace", serving=ServeOptions(auth="keys")) as team:
        reader = reads(team, viewport=LAPTOP)
        reader.foresees("401")
        page = reader.goes("#/documents")
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        expect(page.get_by_label("Name")).to_be_focused()
        reader.accessible("sign-in")
        reader.picture("sign-in")
        page.keyboard.type("reader")
        page.get_by_label("Password").fill("not the right password")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("That name and password do not go together.")
        expect(page.get_by_label("Password")).to_be_focused()
        page.get_by_label("Password").fill("a long enough password")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Begin with your documents")).to_be_visible()
        expect(page.get_by_role("complementary", name="Navigation and threads")).to_contain_text("reader")
        for place, told in {
            "#/documents": "Begin with your documents",
            "#/": "Start with your documents",
            "#/runs": "No runs yet",
            "#/synthesis": "There are no documents yet",
        }.items():
            reader.goes(place)
            expect(page.get_by_role("heading", name=told)).to_be_visible()
            reader.accessible(f"empty {place}")
        page.get_by_role("button", name="Sign out").click()
        page.get_by_role("dialog").get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
