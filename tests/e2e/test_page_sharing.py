"""Around an answer: chosen sources, what a statement stands on, feedback, what could be asked next, a shared thread."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from browser_session import STARTING, Desk, Reader, desk, done
from playwright.sync_api import expect

from assay.evaluate.plain_text import WordEmbedder
from assay.serve.state import ServeOptions
from assay.store.access import grants, members
from assay.workspace.facade import Workspace, open_workspace

PASSWORD = "a lamp on the pier"
OIL = "The pumps take two litres of thin oil in spring."
PAPERS = {
    "pumps.md": f"# Pump handbook\n\n## Oil change\n\n{OIL} The oil of the pumps is changed again in the autumn.\n\n"
    "## Brass valves\n\nThe valves of the pumps are made of brass. The keeper turns the valves by hand every week.\n",
    "lamps.md": "# Lamp handbook\n\n## Oil\n\nThe lamps at the quay burn colza oil. Colza oil thickens in winter.\n",
}
Reads = Callable[..., Reader]


async def fill(opened: Workspace, papers: Path) -> None:
    opened.embedder = WordEmbedder()
    await opened.add([papers])


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory, _plain_environment: None) -> Iterator[Desk]:
    """The editor owns the handbooks; the reader may read them."""
    folder = tmp_path_factory.mktemp("sharing")
    (folder / "papers").mkdir()
    for name, words in PAPERS.items():
        (folder / "papers" / name).write_text(words)
    with open_workspace(folder / "workspace", create=True) as opened, patch.object(members, "COST", 2**10):
        for name in ("editor", "reader"):
            members.add(opened.store, name, password=PASSWORD)
        editor = opened.for_principal(members.known(opened.store, "editor").principal)
        done(fill(editor, folder / "papers"))
        grants.share(opened.store, grants.every_base(opened.store)[0], "user:reader")
    with desk(folder / "workspace", serving=ServeOptions(auth="keys")) as served:
        yield served


def sits(reads: Reads, team: Desk, name: str) -> Reader:
    reader = reads(team)
    signed = reader.context.request.post(f"{team.url}/api/session", data={"name": name, "password": PASSWORD})
    assert signed.ok, signed.text()
    return reader


def test_sources_are_chosen_an_answer_is_corrected_followed_up_and_shared(team: Desk, reads: Reads):
    editor = sits(reads, team, "editor")
    page = editor.goes()
    expect(page.get_by_role("list", name="To begin with").get_by_role("button").first).to_be_visible()
    page.get_by_role("button", name="All sources").click()
    page.get_by_label("Find documents to choose").fill("pump")
    page.get_by_role("list", name="Documents found").get_by_label(re.compile("Pump handbook")).check()
    editor.accessible("choosing sources")
    editor.pictures("sources")
    page.keyboard.press("Escape")
    expect(page.get_by_role("group", name="What is searched")).to_contain_text("Pump handbook")
    turn = editor.asks("How much oil is taken in spring?")
    expect(turn.locator(".answer")).to_contain_text(OIL, timeout=STARTING)  # the models are loaded first
    found = editor.context.request.get(f"{team.url}/api/runs/{editor.run_of(turn)}").json()["evidence"]
    assert {each["title"] for each in found} == {"Pump handbook"}
    turn.get_by_role("button", name="Not right?").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Something is missing").check()
    dialog.get_by_label("In your words, if you like").fill("Which oil?")
    editor.accessible("feedback")
    editor.pictures("feedback")
    dialog.get_by_role("button", name="Record it").click()
    expect(page.get_by_text("Recorded. Thank you.")).to_be_visible()
    # a question that could follow
    page.get_by_role("list", name="You could ask next").get_by_role("button", name=re.compile("valves", re.I)).click()
    expect(editor.turns).to_have_count(2)
    expect(editor.turns.nth(1).locator(".answer")).to_contain_text("brass")
    editor.pictures("follow-up")
    # shared
    row = page.locator(".thread").first
    row.hover()
    row.get_by_role("button", name=re.compile("^Share")).click()
    dialog.get_by_label("Name").fill("reader")
    dialog.get_by_role("button", name="Share").click()
    expect(dialog.get_by_role("list", name="Who may read it")).to_contain_text("reader")
    editor.pictures("sharing")
    reader = sits(reads, team, "reader")
    page = reader.goes()
    shared = page.locator(".shared-threads")
    expect(shared).to_contain_text("editor offers")
    expect(shared.locator("a")).to_have_count(0)  # nothing is opened before it is accepted
    shared.get_by_role("button", name="Accept").click()
    shared.locator("a").first.click()
    expect(page.get_by_text("editor shares this thread with you.")).to_be_visible()
    expect(page.get_by_role("article").first).to_contain_text(OIL)
    page.get_by_role("figure").first.locator("figcaption").get_by_role("button").click()
    expect(page.locator(".panel")).to_contain_text("Pump handbook")
    reader.accessible("a shared thread")
    reader.pictures("shared")
