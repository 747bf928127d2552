"""Where one can go: five links, the screens behind them, and what waits there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from browser_session import PHONE, Desk, Reader, desk, done
from notes import Plain
from playwright.sync_api import Locator, Page, expect

from assay.core.events import SearchFilters
from assay.ingest.sources import SourceFile
from assay.workspace.types import AskOptions

Reads = Callable[..., Reader]
NOTES = {
    "tower.txt": "The tower at Carrow Point is 31 metres tall.",
    "ferry.txt": "The ferry to Sandholm leaves at nine in the morning.",
}
TALL, FERRY = "How tall is the tower at Carrow Point?", "When does the ferry to Sandholm leave?"
SCREENS = {
    "#/runs": ("Activity", "Runs", "Runs"),
    "#/reviews": ("Activity", "Reviews", "Reviews"),
    "#/reports": ("Activity", "Reports", "Reports"),
    "#/reports/stale": ("Activity", "Reports", "Reports"),
    "#/evaluations": ("Activity", "Evaluations", "Evaluations"),
    "#/health": ("Activity", "Health", "Health"),
    "#/settings": ("Settings", "General", "Settings"),
    "#/model": ("Settings", "Model", "Model"),
    "#/people": ("Settings", "People", "People"),
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, _plain_environment: None) -> Iterator[Desk]:
    """A desk where an answer waits for a reviewer, a run for a choice, and an answer to be asked again."""
    with desk(tmp_path_factory.mktemp("navigation") / "workspace", NOTES) as opened:
        done(answered(opened, FERRY, "ferry.txt"))
        leaves = SourceFile(uri="notes/ferry.txt", name="ferry.txt", data=b"The ferry to Sandholm leaves at ten.")
        done(opened.workspace.documents.add_sources([leaves], reader=Plain()))
        opened.api("/api/ask", json={"question": TALL, "stakes": "high"})
        opened.api("/api/ask", json={"question": TALL, "checkpoints": ["sources"]})
        yield opened


async def answered(at: Desk, question: str, source: str) -> None:
    async for _ in at.workspace.chat(question, how=AskOptions(where=SearchFilters(sources=(source,)))):
        pass


def sidebar(page: Page) -> Locator:
    return page.get_by_role("complementary", name="Navigation and threads").get_by_role("navigation", name="Screens")


def test_five_links_and_a_number_that_leads_to_what_waits(served: Desk, reads: Reads):
    assert served.api("/api/waiting") == {"reviews": 1, "runs": 1, "answers": 1}
    reader = reads(served)
    page = reader.goes()
    expect(sidebar(page).get_by_role("link")).to_have_text(
        [re.compile(each) for each in ("^Ask$", "^Documents$", "^Synthesis$", "^Activity3", "^Settings$")]
    )
    sidebar(page).get_by_role("link", name="Activity 3 waiting for you").click()
    tabs = page.get_by_role("navigation", name="Activity")
    expect(tabs.get_by_role("link", name="Runs 1 waiting for you")).to_have_attribute("aria-current", "page")
    reader.pictures("activity")
    tabs.get_by_role("link", name="Reviews 1 waiting for you").click()
    expect(page.get_by_role("list", name="Waiting reviews").get_by_role("link", name=TALL)).to_be_visible()
    tabs.get_by_role("link", name="Reports 1 waiting for you").click()
    page.get_by_role("link", name="Stale answers 1 waiting for you").click()
    expect(page.get_by_role("main").get_by_role("link", name=FERRY)).to_be_visible()


def test_what_is_done_waits_no_more(served: Desk, reads: Reads):
    reader = reads(served)
    page = reader.goes("#/reviews")
    page.get_by_role("link", name=TALL).click()
    expect(page.get_by_role("navigation", name="Activity")).to_have_count(0)  # it leads back by itself
    page.get_by_role("button", name="Approve exactly this").click()
    expect(sidebar(page).get_by_role("link", name="Activity 2 waiting for you")).to_be_visible()


@pytest.mark.parametrize("shape", ["light", "dark", "phone light", "phone dark"])
def test_every_address_shows_its_screen_its_tab_and_no_serious_fault(served: Desk, shape: str, reads: Reads):
    phone = {"viewport": PHONE, "has_touch": True, "is_mobile": True} if "phone" in shape else {}
    reader = reads(served, color_scheme=shape.split()[-1], **phone)
    for address, (place, tab, title) in SCREENS.items():
        page = reader.goes(address)
        expect(page.get_by_role("heading", level=1, name=title)).to_be_visible()
        here = page.get_by_role("navigation", name=place).locator("[aria-current]")
        expect(here).to_contain_text(tab)
        if not phone:
            expect(sidebar(page).locator("[aria-current]")).to_contain_text(place)
        page.wait_for_load_state("networkidle")
        reader.fits()
        reader.accessible(f"{address}, {shape}")
        reader.picture(f"nav-{address[2:].replace('/', '-')}-{shape.replace(' ', '-')}")
