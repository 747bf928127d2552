"""Sharing as two people see it, each in a browser of their own: offered, declined, accepted, left and withdrawn."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from browser_session import STARTING, Desk, Reader, desk, done
from playwright.sync_api import Locator, Page, expect

from assay.evaluate.plain_text import WordEmbedder
from assay.serve.state import ServeOptions
from assay.store.access import members
from assay.workspace.facade import Workspace, open_workspace

PASSWORD = "a lamp on the pier"
OIL = "The pumps take two litres of thin oil in spring."
QUESTION = "How much oil do the pumps take in spring?"
Reads = Callable[..., Reader]


async def fill(opened: Workspace, papers: Path) -> None:
    opened.embedder = WordEmbedder()
    await opened.add([papers], "pumps")


@pytest.fixture
def team(tmp_path: Path, _plain_environment: None) -> Iterator[Desk]:
    """The editor owns a handbook, and shares nothing yet."""
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "pumps.md").write_text(f"# Pump handbook\n\n## Oil change\n\n{OIL}\n")
    with open_workspace(tmp_path / "workspace", create=True) as opened, patch.object(members, "COST", 2**10):
        for name in ("editor", "reader"):
            members.add(opened.store, name, password=PASSWORD)
        done(fill(opened.for_principal(members.known(opened.store, "editor").principal), tmp_path / "papers"))
    with desk(tmp_path / "workspace", serving=ServeOptions(auth="keys")) as served:
        yield served


def sits(reads: Reads, team: Desk, name: str) -> Reader:
    reader = reads(team)
    signed = reader.context.request.post(f"{team.url}/api/session", data={"name": name, "password": PASSWORD})
    assert signed.ok, signed.text()
    return reader


def looks_up(page: Page) -> Locator:
    """Somebody comes back to the window: what others share with them."""
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    return page.locator(".shared-threads")


def gives(page: Page, button: str, to: str, submit: str) -> Locator:
    """The owner offers it: the dialog that says to whom."""
    page.get_by_role("button", name=button).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill(to)
    dialog.get_by_role("button", name=submit, exact=True).click()
    return dialog


def test_a_knowledge_base_is_offered_declined_accepted_left_and_withdrawn(team: Desk, reads: Reads):
    editor, reader = sits(reads, team, "editor"), sits(reads, team, "reader")
    owns, page = editor.goes("#/documents/pumps"), reader.goes()
    expect(page.get_by_text("Your questions will be listed here.")).to_be_visible()
    expect(page.locator(".shared-threads")).to_be_empty()
    dialog = gives(owns, "Who may read it", "reader", "Give access")
    who = dialog.get_by_role("list", name="Who may read it")
    expect(who).to_contain_text("not accepted yet")
    editor.accessible("a base that is offered")
    editor.pictures("offering")
    # offered: said wherever the reader is, and nothing of it is there
    shared = looks_up(page)
    expect(shared).to_contain_text("editor shares “pumps”")
    reader.accessible("an offer")
    reader.pictures("offered")
    assert reader.context.request.get(f"{team.url}/api/bases").json() == []
    # declined: out of the way, and not out of reach
    shared.get_by_role("button", name="Decline “pumps”").click()
    fold = shared.get_by_text("Declined or left (1)")
    expect(fold).to_be_visible()
    expect(shared.get_by_text("editor shares “pumps”")).to_be_hidden()
    fold.click()
    reader.pictures("declined")
    shared.get_by_role("button", name="Accept “pumps”").click()
    expect(shared).to_be_empty()
    # accepted: the owner sees it, and the reader asks about it
    dialog.get_by_role("button", name="Close", exact=True).click()
    owns.get_by_role("button", name="Who may read it").click()
    expect(who).to_contain_text("reader")
    expect(who).not_to_contain_text("not accepted yet")
    turn = reader.asks(QUESTION)
    expect(turn.locator(".answer")).to_contain_text(OIL, timeout=STARTING)
    asked = page.url
    # left: its words are gone from the old answer too, until it is accepted again
    page.goto(f"{team.url}/#/documents/pumps")
    page.get_by_role("button", name=re.compile("^Leave it")).click()
    page.get_by_role("dialog").get_by_role("button", name="Leave it").click()
    offers = page.get_by_role("list", name="Offered knowledge bases")
    expect(offers).to_contain_text("You declined or left it.")
    expect(page.get_by_role("list", name="Knowledge bases", exact=True)).to_be_hidden()
    page.goto(asked)
    expect(page.get_by_role("article").first).to_contain_text("withheld")
    expect(page.get_by_role("article").first).not_to_contain_text(OIL)
    reader.pictures("left")
    page.goto(f"{team.url}/#/documents")
    offers.get_by_role("button", name="Accept").click()
    expect(page.get_by_role("list", name="Knowledge bases", exact=True)).to_contain_text("from editor")
    # withdrawn
    dialog.get_by_role("button", name="Take access from reader").click()
    expect(dialog).to_contain_text("Nobody else.")
    page.goto(asked)
    expect(page.get_by_role("article").first).not_to_contain_text(OIL)
    page.get_by_role("link", name="Documents").first.click()
    expect(page.get_by_role("heading", name="Begin with your documents")).to_be_visible()
    expect(looks_up(page)).to_be_empty()


def test_a_thread_is_offered_accepted_left_and_withdrawn_and_shows_what_its_reader_may_read(team: Desk, reads: Reads):
    editor, reader = sits(reads, team, "editor"), sits(reads, team, "reader")
    owns, page = editor.goes(), reader.goes()
    turn = editor.asks(QUESTION)
    expect(turn.locator(".answer")).to_contain_text(OIL, timeout=STARTING)
    owns.locator(".thread").first.hover()
    dialog = gives(owns, "Share “", "editor", "Share")
    editor.foresees("400")
    expect(dialog.get_by_role("alert")).to_contain_text("The thread is yours already.")
    dialog.get_by_label("Name").fill("reader")
    dialog.get_by_role("button", name="Share", exact=True).click()
    expect(dialog.get_by_role("alert")).to_be_hidden()
    who = dialog.get_by_role("list", name="Who may read it")
    expect(who).to_contain_text("not accepted yet")
    editor.accessible("a thread that is offered")
    shared = looks_up(page)
    expect(shared).to_contain_text("editor offers")
    expect(shared.locator("a")).to_have_count(0)
    shared.get_by_role("button", name=re.compile("^Accept")).click()
    # accepted, and its documents are not: the question alone
    shared.locator("a").first.click()
    expect(page.get_by_text("editor shares this thread with you.")).to_be_visible()
    expect(page.get_by_role("article")).to_contain_text(QUESTION)
    expect(page.get_by_role("article")).not_to_contain_text(OIL)
    expect(shared.locator("a[aria-current]")).to_have_count(1)
    reader.accessible("a shared thread without its documents")
    reader.pictures("shared-withheld")
    address = page.url
    dialog.get_by_role("button", name="Done").click()
    owns.goto(f"{team.url}/#/documents/pumps")
    given = gives(owns, "Who may read it", "reader", "Give access")
    expect(given.get_by_role("list", name="Who may read it")).to_contain_text("not accepted yet")
    looks_up(page).get_by_role("button", name="Accept “pumps”").click()
    expect(shared.locator(".offer")).to_have_count(0)
    page.reload()
    expect(page.get_by_role("article")).to_contain_text(OIL)
    # left while it is open, and taken back
    shared.get_by_role("button", name=re.compile("^Leave")).click()
    expect(page.get_by_label("Your question")).to_be_visible()
    shared.get_by_text("Declined or left (1)").click()
    shared.get_by_role("button", name=re.compile("^Accept")).click()
    shared.locator("a").first.click()
    expect(page.get_by_role("article")).to_contain_text(OIL)
    # withdrawn while it is open
    owns.get_by_role("dialog").get_by_role("button", name="Close", exact=True).click()
    owns.locator(".thread").first.hover()
    owns.get_by_role("button", name="Share “").click()
    expect(who).not_to_contain_text("not accepted yet")
    owns.get_by_role("button", name="Take access from reader").click()
    expect(who).to_contain_text("Nobody but you.")
    expect(looks_up(page)).to_be_empty()
    reader.foresees("404")
    page.goto(f"{team.url}/#/")
    page.goto(address)
    expect(page.get_by_role("heading", name="This thread is not shared with you")).to_be_visible()
    reader.accessible("a thread that was withdrawn")
    reader.pictures("withdrawn")
