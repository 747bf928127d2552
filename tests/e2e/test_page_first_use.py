"""The first quarter of an hour: `assay serve` on an empty workspace and without a model, a PDF, a question, and its page."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser_session import STARTING, Reader
from handbook import SENTENCE, handbook, sentence_box
from PIL import Image
from playwright.sync_api import Locator, expect

Reads = Callable[..., Reader]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, _plain_environment: None) -> Iterator[str]:
    """The process as a person starts it, over nothing."""
    folder = tmp_path_factory.mktemp("first") / "workspace"
    command = [sys.executable, "-m", "assay.cli.main", "serve", "--port", "0", "--workspace", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ})
    try:
        assert process.stdout is not None
        said: list[str] = []
        while not (said and (found := re.search(r"http://[\d.:]+/\?token=\S+", said[-1]))):
            said.append(process.stdout.readline())
            assert said[-1], said  # it has ended
        threading.Thread(target=process.stdout.read, daemon=True).start()  # a full pipe would stop it
        yield found[0]
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def ink(picture: Image.Image, box: tuple[float, float, float, float]) -> float:
    """How much of this part of a picture, in fractions, is dark."""
    width, height = picture.size
    part = picture.convert("L").crop(
        (int(box[0] * width), int(box[1] * height), int(box[2] * width), int(box[3] * height))
    )
    dark = sum(part.histogram()[:110])
    return dark / (part.width * part.height)


def shown(figure: Locator) -> tuple[tuple[float, float, float, float], Image.Image]:
    """Where the marked words are on a page, in fractions of its picture, and what a person sees there."""
    figure.locator("img").evaluate("image => image.decode()")  # before that it has neither its height nor its words
    places = figure.evaluate(
        """figure => {
          const page = figure.querySelector('img').getBoundingClientRect();
          const box = [...figure.querySelectorAll(':scope > span')].map(each => each.getBoundingClientRect());
          const across = x => (x - page.left) / page.width, down = y => (y - page.top) / page.height;
          return [
            across(Math.min(...box.map(b => b.left))), down(Math.min(...box.map(b => b.top))),
            across(Math.max(...box.map(b => b.right))), down(Math.max(...box.map(b => b.bottom))),
          ];
        }"""
    )
    return tuple(places), Image.open(io.BytesIO(figure.locator("img").screenshot()))


def test_from_an_empty_desk_to_the_words_on_their_page(address: str, tmp_path: Path, reads: Reads):
    reader = reads(address.partition("/?")[0])
    reader.page.goto(address)
    expect(reader.page).to_have_url(re.compile(r"^http://[\d.:]+/(#/)?$"))  # the token has moved into a cookie
    page = reader.goes()
    expect(page.get_by_role("heading", name="Start with your documents")).to_be_visible()
    expect(page.get_by_text("No model is set up: answers are quotations from your documents.")).to_be_visible()
    reader.accessible("first visit")
    reader.pictures("first-visit")
    page.get_by_role("button", name="Connect a model").click()
    page.get_by_label("Address").fill("https://models.example/v1")
    page.get_by_label("Model", exact=True).fill("big")
    page.get_by_label("Key").click()
    expect(page.get_by_text("To models.example would be sent")).to_be_visible()  # said before it can be agreed to
    page.get_by_role("button", name="Use this model").click()
    expect(page.get_by_text("Nothing is sent to models.example before you agree to it.")).to_be_visible()
    reader.foresees("status of 400")
    reader.accessible("connecting a model")
    reader.picture("empty")
    page.get_by_label("Or the path of a folder on this computer").fill(str(handbook(tmp_path / "handbook.pdf").parent))
    page.get_by_role("button", name="Add it").click()
    expect(page.get_by_text("Answers come from 1 document")).to_be_visible(timeout=STARTING)
    page.get_by_role("link", name="Documents", exact=True).first.click()
    expect(page.get_by_role("list", name="Documents").get_by_role("link", name="Sluice handbook")).to_be_visible()
    reader.picture("added")
    page.get_by_role("link", name="Ask", exact=True).first.click()
    turn = reader.asks("When is the Marrow sluice opened by hand?")
    expect(turn.locator(".answer")).to_contain_text(SENTENCE, timeout=STARTING)
    expect(turn).to_contain_text("without a model")
    turn.get_by_role("figure").first.locator("figcaption").get_by_role("button").click()
    figure = page.get_by_role("figure", name="Page 2 of 2")
    expect(figure.get_by_role("img", name="Page 2 of 2")).to_be_in_viewport(timeout=STARTING)
    expect(figure.locator(":scope > span").first).to_be_in_viewport()
    box, picture = shown(figure)
    left, top, right, bottom = sentence_box()  # the words that answer are part of it
    assert left - 0.015 <= box[0] < box[2] <= right + 0.015 and top - 0.015 <= box[1] < box[3] <= bottom + 0.015
    assert ink(picture, box) > 0.05, "there are no words under the mark"
    assert ink(picture, (0.1, box[3] + 0.03, 0.9, box[3] + 0.1)) == 0, "there are words where none were drawn"
    reader.picture("citation")


def test_a_folder_is_taken_in_with_its_paths_and_so_is_a_file_that_is_dropped(
    reads: Reads, address: str, tmp_path: Path
):
    folder = tmp_path / "winter"
    (folder / "pumps").mkdir(parents=True)
    (folder / "lamps.txt").write_text("The lamps at the quay burn colza oil, which thickens in the cold.")
    (folder / "pumps" / "oil.md").write_text("# Oil\n\nThe pumps take two litres of thin oil in spring.")
    reader = reads(address.partition("/?")[0])
    page = reader.page
    page.goto(f"{address}#/documents")
    with page.expect_file_chooser() as choosing:
        page.get_by_role("button", name="Add folder").first.click()
    choosing.value.set_files(folder)
    panel = page.get_by_role("region", name="Files being added")
    expect(panel).to_contain_text("winter/pumps/oil.md")
    expect(panel).to_contain_text("2 of 2 ready", timeout=STARTING)
    panel.get_by_role("button", name="Close").click()
    page.evaluate(
        """() => {
          const carried = new DataTransfer();
          carried.items.add(new File(["The weir at the quay was mended with oak in March."], "weir.txt"));
          for (const kind of ["dragover", "drop"])
            document.body.dispatchEvent(new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer: carried}));
        }"""
    )
    expect(panel).to_contain_text("weir.txt")
    expect(panel).to_contain_text("1 of 1 ready", timeout=STARTING)
    listed = page.get_by_role("list", name="Documents")
    for name in ("lamps.txt", "oil.md", "weir.txt"):
        expect(
            listed.get_by_role("listitem").filter(has_text=re.compile(name.partition(".")[0], re.I)).first
        ).to_be_visible()
