"""Files on their way in: the state of each as it changes, a bar and a time that mean something, and a question meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_session import STARTING, Desk, Reader, desk
from playwright.sync_api import expect

from assay.serve import upload_worker

Reads = Callable[..., Reader]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path / "workspace", {}) as opened:
        yield opened


def test_a_file_can_be_asked_about_while_the_next_is_read(
    reads: Reads, served: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    let = threading.Event()
    read = upload_worker.Sandbox.read

    async def slow(self: Any, data: Any, name: str) -> Any:
        while name == "log.txt" and not let.is_set():  # noqa: ASYNC110  what lets it go on is in another thread
            await asyncio.sleep(0.01)
        return await read(self, data, name)

    monkeypatch.setattr(upload_worker.Sandbox, "read", slow)
    texts = {
        "gate.md": "# The gate at Ashmere\n\nThe gate at Ashmere is opened at dawn. It is shut at dusk.\n",
        "log.txt": "The lamp was lit at nine. " * 4000,
        "oil.txt": "The pumps take two litres of thin oil in spring.",
    }
    for name, words in texts.items():
        (tmp_path / name).write_text(words)
    try:
        reader = reads(served)
        page = reader.goes("#/documents")
        with page.expect_file_chooser() as choosing:
            page.get_by_role("button", name="Add files").first.click()
        choosing.value.set_files([tmp_path / name for name in texts])
        panel = page.get_by_role("region", name="Files being added")
        files = panel.get_by_role("listitem")
        expect(files.filter(has_text="gate.md")).to_contain_text("ready", timeout=STARTING)
        expect(files.filter(has_text="log.txt")).to_contain_text("reading")
        expect(files.filter(has_text="oil.txt")).to_contain_text("waiting")
        expect(panel).to_contain_text("1 of 3 ready")
        bar = float(panel.get_by_role("progressbar").get_attribute("value") or 0)
        assert 0.2 < bar < 0.5, bar  # by size: of the large file nothing is read
        reader.accessible("files on their way")
        reader.pictures("adding")
        page.get_by_role("link", name="Ask", exact=True).first.click()
        expect(page.get_by_text("Answers come from 1 document")).to_be_visible()
        expect(page.get_by_role("button", name="The gate at Ashmere")).to_be_visible()  # what could be asked
        turn = reader.asks("When is the gate at Ashmere opened?")
        expect(turn.locator(".answer")).to_contain_text("opened at dawn", timeout=STARTING)
    finally:
        let.set()
    page.get_by_role("link", name="Documents", exact=True).first.click()
    expect(panel).to_contain_text("3 of 3 ready", timeout=STARTING)


def test_the_time_that_is_left_does_not_grow(served: Desk, reads: Reads):
    reader = reads(served)
    page = reader.goes("#/documents")
    expect(page.get_by_role("heading", name="Begin with your documents")).to_be_visible()
    left = page.evaluate(
        """async () => {
          let now = 0;
          performance.now = () => now;
          window.XMLHttpRequest = class {  // nothing is sent
            upload = new EventTarget(); addEventListener() {} open() {} setRequestHeader() {} send() {} abort() {}
          };
          const { send, standing } = await import('/static/documents/uploads.js?fresh');
          send([0, 1, 2, 3].map(n => ({file: new File(['x'.repeat(50000)], `${n}.txt`), path: `${n}.txt`})), 'default', 0);
          const told = [], items = standing().items;
          for (const [at, ready] of [[4000, 1], [6000, 1], [7000, 2], [40000, 2], [41000, 3]]) {
            now = at;
            for (const item of items.slice(0, ready)) item.state = 'ready';
            told.push(standing().left);
          }
          return told;
        }"""
    )
    assert left[3] is None  # it was wrong
    told = [each for each in left if each is not None]
    assert len(told) == 4 and told == sorted(told, reverse=True) and told[-1] < told[0], left
