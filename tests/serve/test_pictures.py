"""Pages of PDFs as pictures, and where words stand on them: what a reader of a citation sees."""

from __future__ import annotations

import asyncio
import struct
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image
from s3_server import content, new_bucket
from sending import listed, pdf, read
from serving import served, until
from team import team

from assay.ingest.parsed import FileLimits, Unreadable
from assay.ingest.pdf import reader as parser
from assay.ingest.sandbox.runner import PageImages
from assay.serve import page_images
from assay.serve.page_images import PageImageCache
from assay.store.access import grants
from assay.store.blobs import FolderBlobs

BOOK = [
    [f"Page {page}, line {line}: the keeper writes of storm {page * line}." for line in range(30)] for page in range(60)
]

for each in BOOK:
    each[9] = each[19] = "The lamp was lit."


@pytest.fixture
def document(client: httpx.Client) -> str:
    """A PDF of two pages."""
    read(client, [("two.pdf", pdf(["A first line.", "The harbour is deep."], ["Another page, with the lamp on it."]))])
    return listed(client, q="two.pdf")[0]["id"]


@pytest.mark.long
def test_pages_and_originals_come_from_a_bucket_too(folder: Path):
    blobs, data = new_bucket(), pdf(["A first line.", "The harbour is deep."])
    with served(folder, blobs=blobs) as at, at.client() as client:
        read(client, [("one.pdf", data)])
        (found,) = listed(client, q="one.pdf")
        about = client.get(f"/api/documents/{found['id']}").json()
        assert about["pictures"]
        until(lambda: content(blobs) == data)  # what was received is deleted a moment after it is read
        assert client.get(f"/api/documents/{found['id']}/original").content == data
        assert client.get(f"/api/documents/{found['id']}/pages/1").content.startswith(b"\x89PNG")
        assert client.get(f"/api/documents/{found['id']}/boxes?start=0&end=12").json()["boxes"]
        assert not list((folder / "originals").glob("*.part"))
        assert client.delete(f"/api/documents/{found['id']}").is_success
        assert content(blobs) == b""
        assert client.get(f"/api/documents/{found['id']}/original").status_code == 404


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("book") / "book"
    place.write_bytes(pdf(*BOOK, head="The log of Carrow Point"))
    return place


def size_of(picture: bytes) -> tuple[int, int]:
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", picture[16:24])


def dark(picture: bytes, tmp_path: Path) -> np.ndarray:
    """Where there is ink."""
    place = tmp_path / "page.png"
    place.write_bytes(picture)
    return np.asarray(Image.open(place).convert("L")) < 128


def test_a_page_is_a_picture_as_wide_as_it_is_asked_for(client: httpx.Client, document: str):
    reply = client.get(f"/api/documents/{document}/pages/1")
    assert reply.headers["content-type"] == "image/png"
    assert size_of(reply.content)[0] == 1100
    narrow = client.get(f"/api/documents/{document}/pages/2", params={"width": 200}).content
    assert abs(size_of(narrow)[1] / size_of(narrow)[0] - 2**0.5) < 0.02


@pytest.mark.long
def test_the_ink_of_the_words_lies_in_their_boxes(client: httpx.Client, document: str, tmp_path: Path):
    text = client.get(f"/api/documents/{document}/text").json()["text"]
    start = text.index("The harbour is deep.")
    span = {"start": start, "end": start + len("The harbour is deep.")}
    [box] = client.get(f"/api/documents/{document}/boxes", params=span).json()["boxes"]
    assert box["page"] == 1
    ink = dark(client.get(f"/api/documents/{document}/pages/1").content, tmp_path)
    height, width = ink.shape
    rows = slice(round(box["y0"] * height) - 2, round(box["y1"] * height) + 3)
    columns = slice(round(box["x0"] * width) - 2, round(box["x1"] * width) + 3)
    assert ink[rows, columns].any()
    ink[rows, columns] = False
    assert not ink[rows].any()  # the line is in the box, all of it
    assert ink.any()  # and the other line is not


def test_words_on_the_second_page_are_found_there(client: httpx.Client, document: str):
    text = client.get(f"/api/documents/{document}/text").json()["text"]
    start = text.index("lamp")
    found = client.get(f"/api/documents/{document}/boxes", params={"start": start, "end": start + 4}).json()["boxes"]
    assert [each["page"] for each in found] == [2]


def test_no_browser_and_no_proxy_keeps_a_page(client: httpx.Client, document: str):
    reply = client.get(f"/api/documents/{document}/pages/1", headers={"If-None-Match": "*"})
    assert reply.status_code == 200 and reply.headers["cache-control"] == "no-store" and "etag" not in reply.headers


def test_who_may_not_read_the_document_does_not_get_its_picture_from_memory(folder: Path):
    with team(folder) as tool_context, tool_context.as_("editor") as editor, tool_context.as_("reader") as reader:
        read(editor, [("two.pdf", pdf(["Words for the editor alone."]))])
        path = f"/api/documents/{listed(editor, q='two.pdf')[0]['id']}/pages/1"
        assert editor.get(path).status_code == 200
        assert reader.get(path).status_code == 404
        store = tool_context.at.server.workspace.store
        base = next(each for each in grants.every_base(store) if each.name == "default")
        grants.share(store, base, "user:reader")
        assert reader.get(path).status_code == 200
        grants.stop_sharing(store, base, "user:reader")
        assert reader.get(path).status_code == 404


def test_a_page_that_is_not_there_and_a_document_without_pages_are_missing(client: httpx.Client, document: str):
    assert client.get(f"/api/documents/{document}/pages/3").status_code == 404
    for wrong in ("0", "-1", "1e3", "x", str(2**70)):
        assert client.get(f"/api/documents/{document}/pages/{wrong}").status_code == 422
    for width in (199, 2401, -1):
        assert client.get(f"/api/documents/{document}/pages/1", params={"width": width}).status_code == 422
    note = listed(client, q="lamp.txt")[0]["id"]
    assert client.get(f"/api/documents/{note}/pages/1").status_code == 404
    assert client.get(f"/api/documents/{note}/boxes", params={"start": 0, "end": 5}).json()["boxes"] == []


async def test_the_last_page_of_a_book_comes_as_soon_as_the_first(book: Path):
    page_images = PageImages(FileLimits())
    try:
        await page_images.page_image(book, 1, 400)  # starts the process
        spent: dict[int, float] = {}
        for page in (1, 60):
            spent[page] = min([await _timed(page_images, book, page) for _ in range(5)])
        assert spent[60] < 10 * spent[1] + 1.0  # 60 times as long if every page before it were read
    finally:
        page_images.rest()


async def _timed(page_images: PageImages, book: Path, page: int) -> float:
    began = time.perf_counter()
    assert isinstance(await page_images.page_image(book, page, 400), bytes)
    return time.perf_counter() - began


async def test_a_span_of_a_book_stands_where_it_does_when_all_of_it_is_read(
    book: Path, monkeypatch: pytest.MonkeyPatch
):
    data = book.read_bytes()
    whole = parser.read(data, FileLimits())
    text, starts = whole.built.text, whole.built.pages
    assert "The log of Carrow Point" not in text  # what stands on every page belongs to none
    page_images = PageImages(FileLimits())
    try:
        for words in (
            "Page 0, line 5: the keeper writes of storm 0.",
            "Page 31, line 7: the keeper writes of storm 217.",
            "Page 59, line 20: the keeper writes of storm 1180.",
        ):
            start = text.index(words)
            wanted = parser.find_boxes(data, start, start + len(words), reading=whole)
            assert await page_images.boxes(book, start, start + len(words), words, starts) == wanted
        twice = [at for at in range(starts[31], starts[32]) if text.startswith("The lamp was lit.", at)]
        assert len(twice) == 2
        for start in twice:  # the same words on one page, and on those around it
            wanted = parser.find_boxes(data, start, start + 17, reading=whole)
            assert await page_images.boxes(book, start, start + 17, "The lamp was lit.", starts) == wanted
        across = (starts[20] - 30, starts[20] + 30)  # from one page to the next
        wanted = parser.find_boxes(data, *across, reading=whole)
        assert {box.page for box in wanted} == {20, 21}
        assert await page_images.boxes(book, *across, text[slice(*across)], starts) == wanted
    finally:
        page_images.rest()


async def test_a_huge_page_is_drawn_smaller(tmp_path: Path):
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(tmp_path / "tall"), pagesize=(100, 14_000))
    canvas.drawString(10, 13_900, "tall")
    canvas.save()
    page_images = PageImages(FileLimits())
    try:
        picture = await page_images.page_image(tmp_path / "tall", 1, 2400)
        assert isinstance(picture, bytes)
        width, height = size_of(picture)
        assert width * height <= 12_100_000
    finally:
        page_images.rest()


async def test_what_cannot_be_drawn_is_told_and_the_next_page_comes(book: Path, tmp_path: Path):
    (tmp_path / "bad").write_bytes(b"%PDF-1.4 and nothing else")
    page_images = PageImages(FileLimits())
    try:
        assert isinstance(await page_images.page_image(tmp_path / "bad", 1, 400), Unreadable)
        assert isinstance(await page_images.page_image(tmp_path / "gone", 1, 400), Unreadable)
        assert isinstance(await page_images.page_image(book, 1, 400), bytes)
    finally:
        page_images.rest()


async def test_who_waits_for_a_page_gets_it_though_everything_is_let_go_meanwhile(book: Path):
    page_images = PageImages(FileLimits())
    waiting = [asyncio.ensure_future(page_images.page_image(book, page, 1100)) for page in range(1, 7)]
    await asyncio.sleep(0.05)
    await asyncio.to_thread(page_images.rest)
    assert all(isinstance(each, bytes) for each in await asyncio.gather(*waiting))
    assert isinstance(await page_images.page_image(book, 1, 400), bytes)
    page_images.rest()


class Slow:
    """Draws slowly, and counts."""

    def __init__(self) -> None:
        self.drawn = 0

    async def page_image(self, original: Path, page: int, width: int, owner: str, box: object) -> bytes:
        self.drawn += 1
        await asyncio.sleep(0.01)
        return bytes(10)

    def rest(self) -> None:
        pass


class AnyOriginal(FolderBlobs):
    def as_file(self, digest: str) -> AbstractContextManager[Path]:
        return nullcontext(Path())


ANY = AnyOriginal(Path())


async def test_many_who_ask_for_the_same_page_wait_for_one_picture(monkeypatch: pytest.MonkeyPatch):
    kept, slow = PageImageCache(FileLimits()), Slow()
    monkeypatch.setattr(kept, "_page_images", slow)
    await asyncio.gather(*(kept.picture("base", "digest", ANY, 1, 400) for _ in range(20)))
    await kept.picture("base", "digest", ANY, 1, 400)
    assert slow.drawn == 1
    await kept.picture("base", "another", ANY, 1, 400)
    assert slow.drawn == 2
    await kept.close()


async def test_a_page_that_somebody_else_saw_is_drawn_again(monkeypatch: pytest.MonkeyPatch):
    kept, slow = PageImageCache(FileLimits()), Slow()
    monkeypatch.setattr(kept, "_page_images", slow)
    for base in ("one", "other", "one"):
        await kept.picture(base, "digest", ANY, 1, 400)
    assert slow.drawn == 2
    await kept.close()


async def test_only_so_many_pictures_are_kept(monkeypatch: pytest.MonkeyPatch):
    kept, slow = PageImageCache(FileLimits()), Slow()
    monkeypatch.setattr(kept, "_page_images", slow)
    monkeypatch.setattr(page_images, "MAX_IMAGE_BYTES", 35)
    for page in (1, 2, 3, 1, 4, 1):
        await kept.picture("base", "digest", ANY, page, 400)
    assert slow.drawn == 4  # page 1 was asked for lately, and stayed; page 2 had to go
    await kept.picture("base", "digest", ANY, 2, 400)
    assert slow.drawn == 5
    await kept.close()
