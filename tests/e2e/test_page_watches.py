"""The screen Documents: an administrator has a knowledge base follow a folder, and sees how it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser_session import STARTING, Desk, Reader, desk
from playwright.sync_api import expect

Reads = Callable[..., Reader]


@pytest.fixture
def minutes(tmp_path: Path) -> Path:
    folder = tmp_path / "minutes of the harbour board" / "a rather long name of a folder" / "2024"
    folder.mkdir(parents=True)
    (folder / "gate.txt").write_text("The gate of the harbour opens at six in the morning.\n")
    return folder


@pytest.fixture
def followed(tmp_path: Path, minutes: Path) -> Iterator[Desk]:
    texts = {"lamp.txt": "The lamp room is painted red."}
    with desk(tmp_path / "workspace", texts, sources_allowed=f"{minutes},/srv/reports", watch_grace=5.0) as opened:
        yield opened


def test_a_folder_is_chosen_followed_and_let_go(followed: Desk, minutes: Path, reads: Reads):
    reader = reads(followed)
    page = reader.goes("#/documents")
    section = page.get_by_role("region", name="Followed folders")
    section.get_by_role("button", name="Follow a folder").click()
    dialog = page.get_by_role("dialog", name="Follow a folder")
    dialog.get_by_label("Folder or address").select_option(str(minutes))
    reader.accessible("the dialog")
    dialog.get_by_role("button", name="Follow it").click()
    expect(dialog).to_be_hidden()
    expect(section.get_by_role("listitem")).to_contain_text(str(minutes))
    listed = page.get_by_role("list", name="Documents").get_by_role("listitem")
    expect(listed.filter(has_text="gate")).to_be_visible(timeout=STARTING)
    expect(section.get_by_role("status")).to_contain_text("default · 1 file · last change just now", timeout=STARTING)
    (minutes / "quay.txt").write_text("The quay is swept on Mondays.\n")
    expect(listed.filter(has_text="quay")).to_be_visible(timeout=STARTING)
    expect(section.get_by_role("status")).to_contain_text("2 files")
    reader.accessible("documents with a followed folder")
    reader.fits()
    reader.pictures("watches")
    for file in minutes.iterdir():
        file.unlink()
    expect(section).to_contain_text("the folder has no files", timeout=STARTING)
    reader.pictures("watches-wrong")
    section.get_by_role("button", name="Stop following").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop following").click()
    expect(section.get_by_role("listitem")).to_have_count(0)
    expect(listed.filter(has_text="quay")).to_be_visible()
