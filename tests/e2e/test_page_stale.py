"""Answers that go stale, on the page: what was said then and is said now, the list of them, and asking again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from browser_session import Desk, Reader, desk, done
from notes import Plain
from playwright.sync_api import expect

from assay.core.events import SearchFilters
from assay.core.run import Run
from assay.ingest.sources import SourceFile
from assay.workspace.types import AskOptions

TOWER, HIGHER = (f"The tower at Carrow Point is {metres} metres tall." for metres in (31, 34))
NOTES = {"tower.txt": TOWER, "ferry.txt": "The ferry to Sandholm leaves at nine in the morning."}
TALL, FERRY = "How tall is the tower at Carrow Point?", "When does the ferry to Sandholm leave?"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, _plain_environment: None) -> Iterator[Desk]:
    with desk(tmp_path_factory.mktemp("stale") / "workspace", NOTES) as opened:
        yield opened


async def asked(at: Desk, question: str, source: str) -> Run:
    how = AskOptions(where=SearchFilters(sources=(source,)))
    return [run async for run, _ in at.workspace.chat(question, how=how)][-1]


def test_a_stale_answer_shows_then_and_now_is_listed_and_is_asked_again(reads: Callable[..., Reader], served: Desk):
    tall, ferry = done(asked(served, TALL, "tower.txt")), done(asked(served, FERRY, "ferry.txt"))
    reader = reads(served)
    page = reader.goes(f"#/thread/{tall.asked.thread}")
    expect(page.get_by_text("Checked against your documents of")).to_be_visible()

    files = [SourceFile(uri="notes/tower.txt", name="tower.txt", data=HIGHER.encode())]
    done(served.workspace.documents.add_sources(files, reader=Plain()))
    done(served.workspace.documents.remove(["ferry.txt"]))
    page.reload()
    stale = page.get_by_role("region", name="Checked again")
    expect(stale).to_contain_text("No longer holds")
    expect(stale).to_contain_text(TOWER)
    expect(stale).to_contain_text(HIGHER)
    reader.pictures("stale-answer")
    reader.accessible("a stale answer")

    reader.goes(f"#/run/{tall.id}")
    expect(stale).to_contain_text(HIGHER)

    reader.goes("#/reports/stale")
    listed = page.locator(".stale > li")
    expect(listed).to_have_count(2)
    expect(listed.filter(has_text=TALL)).to_contain_text(HIGHER)
    gone = listed.filter(has_text=FERRY)
    expect(gone).to_contain_text("erased, or that you may not read any more")
    assert "nine" not in gone.inner_text() and ferry.id in (gone.get_by_role("link").get_attribute("href") or "")
    reader.pictures("stale-list")
    reader.accessible("the list of stale answers")
    reader.fits()

    listed.filter(has_text=TALL).get_by_role("button", name="Ask again and compare").click()
    expect(page.get_by_role("heading", name="Statements")).to_be_visible()
    expect(page.locator("main")).to_contain_text("34 metres")
    expect(page.locator("main")).to_contain_text(f"tower.txt: “{TOWER}”")
    reader.pictures("stale-compared")
