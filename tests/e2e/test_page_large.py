"""Ten thousand documents, five hundred threads, a book of four hundred pages: no screen asks for, or draws, all of them."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator

import pytest
from browser_session import STARTING, Desk, Reader, desk
from handbook import tome
from lighthouse import PAPERS
from PIL import Image
from playwright.sync_api import expect
from sqlalchemy import insert, select

from assay.core.access import LOCAL
from assay.store.database import Store
from assay.store.schema import documents, threads

MANY, TALKS, PAGES = 10_000, 500, 400
NODES = 9_000  # of a page that somebody has begun to scroll through; all documents would be ten times as many
Reads = Callable[..., Reader]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, _plain_environment: None) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("large")
    with desk(folder / "workspace", PAPERS) as opened:
        crowd(opened.workspace.store)
        opened.sends(tome(folder / "log.pdf", PAGES))
        yield opened


def crowd(store: Store) -> None:
    """Copies of a document that was really read, without their words, and threads without turns."""
    with store.write() as connection:
        row = dict(connection.execute(select(documents).limit(1)).mappings().one())
        reports = [
            row
            | {
                "id": f"d{n:016x}",
                "uri": f"reports/report-{n}.txt",
                "title": f"Report {n} on the quay",
                "digest": f"{n:064x}",
                "added": f"2026-01-{1 + n // 500:02}T00:00:{n % 60:02}.000Z",
            }
            for n in range(MANY)
        ]
        connection.execute(insert(documents), reports)
        talks = [
            {
                "id": f"t{n:016x}",
                "who": LOCAL.id,
                "title": f"What does report {n:04} say?",
                "created": when,
                "updated": when,
            }
            for n in range(TALKS)
            for when in [f"2026-02-{1 + n // 50:02}T10:{n % 60:02}:00.000Z"]
        ]
        connection.execute(insert(threads), talks)


def test_ten_thousand_documents_are_tagged_and_switched_off_at_once_and_it_is_undone(served: Desk, reads: Reads):
    reader = reads(served)
    page = reader.goes("#/documents")
    rows = page.get_by_role("list", name="Documents").get_by_role("listitem")
    page.get_by_label("Search documents").fill("on the quay")
    expect(page.get_by_text(f"{MANY:,} found")).to_be_visible()
    rows.first.get_by_role("checkbox").check()
    page.get_by_role("button", name=f"Select all {MANY:,} that match").click()
    expect(page.get_by_text(f"All {MANY:,} documents that match selected")).to_be_visible()
    expect(rows.nth(3).get_by_role("checkbox")).to_be_checked()
    reader.accessible("documents that are selected")
    reader.pictures("selected")
    page.get_by_role("button", name="Tags…").click()
    page.get_by_label("Tags, with commas between them").fill("harbour")
    reader.picture("tags")
    page.get_by_role("button", name="Add them").click()
    expect(page.get_by_text(f"{MANY:,} documents tagged harbour.")).to_be_visible(timeout=STARTING)
    page.get_by_label("Search documents").fill("")
    with page.expect_response(lambda reply: "tag=harbour" in reply.url, timeout=STARTING):
        page.get_by_label("With the tag").select_option("harbour")
    expect(page.get_by_text(f"{MANY:,} found")).to_be_visible()
    reader.pictures("tagged")
    rows.nth(0).get_by_role("checkbox").check()
    rows.nth(1).get_by_role("checkbox").check()
    page.get_by_role("button", name="Switch off").click()
    expect(page.get_by_text("2 documents switched off.")).to_be_visible()
    expect(rows.nth(1)).to_contain_text("off")
    reader.accessible("documents that are switched off")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("As it was again.")).to_be_visible()
    expect(rows.nth(1)).to_contain_text("ready")
    rows.nth(0).get_by_role("checkbox").check()
    page.get_by_role("button", name=f"Select all {MANY:,} that match").click()
    page.get_by_role("button", name="Tags…").click()
    page.get_by_label("Tags, with commas between them").fill("harbour")
    page.get_by_role("button", name="Remove them").click()
    expect(page.get_by_text(f"{MANY:,} documents without harbour now.")).to_be_visible(timeout=STARTING)
    expect(page.get_by_label("With the tag")).to_be_hidden()
    assert served.api("/api/document-tags") == {"tags": []}


def asked(reader: Reader, path: str) -> int:
    return sum(each.startswith(path) for each in reader.asked)


def nodes(reader: Reader) -> int:
    return reader.page.evaluate("document.querySelectorAll('*').length")


def test_ten_thousand_documents_are_counted_paged_and_found(served: Desk, reads: Reads):
    reader = reads(served)
    page = reader.goes("#/documents")
    total = MANY + len(PAPERS) + 1
    expect(page.get_by_role("status").filter(has_text=f"{total:,} documents")).to_be_visible()
    rows = page.get_by_role("list", name="Documents").get_by_role("listitem")
    expect(rows.first).to_be_visible()
    page.wait_for_load_state("networkidle")  # it has asked for all that it asks for by itself
    first = rows.count()
    assert 20 <= first <= 300 and asked(reader, "/api/documents") <= 3 and nodes(reader) < NODES
    rows.last.scroll_into_view_if_needed()
    expect(rows.nth(first)).to_be_attached()  # the next ones have come
    assert rows.count() <= 700 and asked(reader, "/api/documents") <= 8 and nodes(reader) < 2 * NODES
    names = rows.locator("a").all_inner_texts()
    assert len(names) == len(set(names))
    reader.picture("large-documents")
    page.get_by_label("Search documents").fill("report-17.txt")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Report 17 on the quay")
    assert nodes(reader) < NODES
    reader.goes("#/documents/default")
    expect(page.get_by_role("region", name="Readiness")).to_contain_text(f"{total:,}")
    assert asked(reader, "/api/documents") <= 12


def test_five_hundred_threads_come_as_one_scrolls_and_any_of_them_is_found(served: Desk, reads: Reads):
    reader = reads(served)
    page = reader.goes()
    links = page.get_by_role("region", name="Threads").get_by_role("link")
    expect(links.first).to_be_visible()
    expect(page.get_by_text("Answers come from 10,004 documents")).to_be_visible()
    page.wait_for_load_state("networkidle")
    first = links.count()
    assert 10 <= first <= 200 and asked(reader, "/api/threads") <= 5 and nodes(reader) < NODES
    links.last.scroll_into_view_if_needed()
    expect(links.nth(first)).to_be_attached()
    names = links.all_inner_texts()
    assert len(names) == len(set(names))
    page.get_by_label("Find a thread").fill("0003 report")
    expect(links).to_have_text(["What does report 0003 say?"])
    reader.goes("#/synthesis")
    page.get_by_text("Picked documents").click()
    expect(page.get_by_role("region", name="Documents to pick from").get_by_role("listitem").first).to_be_visible()
    assert asked(reader, "/api/documents") <= 4 and nodes(reader) < NODES


def test_the_last_page_of_a_long_document_is_reached_and_seen(served: Desk, reads: Reads):
    reader = reads(served)
    page = reader.goes(f"#/document/{served.document('log.pdf')}")
    first = page.get_by_role("img", name=f"Page 1 of {PAGES}")
    expect(first).to_be_in_viewport()
    page.wait_for_load_state("networkidle")
    assert asked(reader, "/api/documents") < 20
    field = page.get_by_label(f"Page, of {PAGES}")
    field.fill(str(PAGES))
    field.press("Enter")
    last = page.get_by_role("img", name=f"Page {PAGES} of {PAGES}")
    expect(last).to_be_in_viewport()
    expect(last).to_have_js_property("complete", True)
    assert last.evaluate("picture => picture.naturalWidth") > 400
    pictures = sum(bool(re.search(r"/pages/\d+", each)) for each in reader.asked)
    assert pictures < 40, f"{pictures} pictures were fetched to look at two pages"
    assert page.locator("figure img").count() < 30 and nodes(reader) < NODES
    seen = Image.open(io.BytesIO(last.screenshot())).convert("L")
    assert sum(seen.histogram()[:110]) > 100, "the page is blank"
    reader.picture("large-pdf")
    page.get_by_role("radio", name="Text").check()
    text = page.get_by_role("region", name="Text of the document")
    expect(text).to_contain_text("Entry 1.0: the heron was seen at the quay.")
    assert nodes(reader) < NODES
