"""Pages that are pictures, read by the extra `ocr`: page by page, with the place of every word."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from chart import CAPTION, OF_TABLE, Line, draw_report, scanned
from chart import scanned_pdf as document
from PIL import Image
from reportlab.pdfgen.canvas import Canvas
from sqlalchemy import select

from assay.answer.claim_details import basis
from assay.core.types import Basis, Derivation, Document, Figure, Quote
from assay.ingest.parsed import FileLimits, Parsed, Status, Unreadable
from assay.ingest.pdf import ocr, picture
from assay.ingest.sandbox.process import ParserProcess
from assay.ingest.sandbox.runner import Sandbox, missing_guards
from assay.ingest.scan import scanned_boxes, sure_of
from assay.ingest.split import split_passages
from assay.store.schema import texts
from assay.tables.derive import derive
from assay.workspace.facade import open_workspace

pytest.importorskip("rapidocr", reason="the extra `ocr` is not installed here")
TEXT: list[Line] = [(70, 760, "This page holds its text."), (70, 730, "The sluice was built in 1931.")]
GERMAN: list[Line] = [(70, 700, "Prüfbericht über die Höhe des Flusses"), (70, 660, "Die Größe beträgt 4,2 Meter.")]
COLUMNS: list[Line] = [
    (50 + 270 * column, 740 - 22 * row, f"{side} {word} stands here now")
    for column, side in enumerate(("west", "east"))
    for row, word in enumerate(("one", "two", "three", "four", "five", "six"))
]
TABLE: list[Line] = [
    (x, 640 - 24 * row, cell)
    for row, cells in enumerate(
        [("", "2021", "2022"), ("Revenue", "1,204", "1,377"), ("Costs", "830", "912"), ("Profit", "374", "465")]
    )
    for x, cell in zip((70, 320, 430), cells, strict=True)
]


def page(lines: Sequence[Line], size: int = 15) -> np.ndarray:
    """A scan of a page with these words."""

    def draw(canvas: Canvas) -> None:
        canvas.setFont("Helvetica", size)
        for x, y, words in lines:
            canvas.drawString(x, y, words)

    return scanned(draw)


def photo() -> np.ndarray:
    """Hills under a sky: a picture without a word."""
    x, y = np.meshgrid(np.linspace(0, 6, 900), np.linspace(0, 1, 1200))
    return np.where(y > 0.5 + 0.1 * np.sin(x), 60 + 60 * y, 150 + 90 * y).astype(np.uint8)


def file(pixels: np.ndarray, form: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, form)
    return out.getvalue()


def stored(parsed: Parsed) -> Document:
    return Document("d1", "b1", "scan.pdf", "", "Scan", parsed.text, pages=parsed.pages, kind=parsed.kind,
                    tables=parsed.tables, scan=parsed.scan)  # fmt: skip


@pytest.fixture
def sandbox():
    with Sandbox(FileLimits(seconds=200)) as made:
        yield made


@pytest.mark.long
async def test_each_page_of_a_file_is_read_as_it_is_written(sandbox: Sandbox) -> None:
    """A page of text, a scan, one on its side, an empty one, a photo and one in columns: each gives the text that it has."""
    blank = np.full((1754, 1240), 255, np.uint8)
    data = document(TEXT, page(GERMAN), np.rot90(page(GERMAN, 17), -1).copy(), blank, photo(), page(COLUMNS))
    first = await sandbox.read(data, "mixed.pdf")
    assert first.unread == (2, 3, 4, 5, 6) if isinstance(first, Parsed) else first.status is Status.scanned
    parsed = await ocr.OcrReader(sandbox, "eng+deu").read(data, "mixed.pdf")
    assert isinstance(parsed, Parsed) and parsed.meta["ocr"] == "eng+deu" and not parsed.unread
    ends = (*parsed.pages[1:], len(parsed.text))
    pages = [parsed.text[start:end].strip() for start, end in zip(parsed.pages, ends, strict=True)]
    assert "The sluice was built in 1931." in pages[0] and not pages[3] and not pages[4]
    for upright in pages[1], pages[2]:
        assert "Prüfbericht über die Höhe des Flusses" in upright and "Größe beträgt 4,2 Meter." in upright
    assert pages[5].index("west six") < pages[5].index("east one"), pages[5]
    assert any("4 and 5" in each for each in parsed.warnings), parsed.warnings

    begin = parsed.text.index("Größe")
    (box,) = scanned_boxes(parsed.scan, begin, begin + 5)
    assert box.page == 2 and 0.15 < box.x0 < box.x1 < 0.35 and 0.18 < box.y0 < box.y1 < 0.25
    begin = parsed.text.index("Größe", begin + 1)
    (box,) = scanned_boxes(parsed.scan, begin, begin + 5)
    assert box.page == 3 and box.y1 - box.y0 > 0.03 and 0.72 < box.x0 < box.x1 < 0.85, box
    begin = parsed.text.index("sluice")
    (box,) = await ocr.find_boxes(stored(parsed), data, begin, begin + 6, FileLimits())
    assert box.page == 1 and scanned_boxes(parsed.scan, begin, begin + 6) == [] and sure_of(parsed.scan, 0, 9) is None


async def test_a_table_that_ocr_read_is_looked_up_and_not_proven(sandbox: Sandbox) -> None:
    parsed = await ocr.OcrReader(sandbox).read(file(page(TABLE), "JPEG"), "table.jpg")
    assert (
        isinstance(parsed, Parsed) and parsed.kind == "picture" and len(parsed.tables) == 1 and parsed.tables[0].scanned
    )
    found, at = stored(parsed), parsed.text.index("1,377")
    quote = Quote("d1", at, at + 5, "1,377")
    assert basis(derive(Derivation.cell, [quote], ["k1"], lambda _: found)) is Basis.scan


@pytest.mark.parametrize("turns", [0, pytest.param(1, marks=pytest.mark.long)])
async def test_a_captioned_table_and_a_drawing_of_a_scan_are_figures_with_their_boxes(
    sandbox: Sandbox, turns: int
) -> None:
    """Also of a page that lies on its side. A caption with nothing beside it is none."""
    data = document(np.rot90(scanned(draw_report), turns).copy())
    parsed = await ocr.OcrReader(sandbox).read(data, "report.pdf")
    assert isinstance(parsed, Parsed)
    table, drawing = parsed.figures
    assert (table.name, table.table, table.page) == ("Table 2", True, 1)
    assert (drawing.name, drawing.table, drawing.page) == ("Figure 1", False, 1)
    assert [parsed.text[each.start : each.end] for each in parsed.figures] == [OF_TABLE, CAPTION]
    for figure, (left, top, right, bottom) in (table, (72, 160, 471, 218)), (drawing, (150, 302, 450, 484)):
        wanted = left / 595, top / 842, right / 595, bottom / 842
        x0, y0, x1, y1 = wanted
        assert figure.box == pytest.approx((y0, 1 - x1, y1, 1 - x0) if turns else wanted, abs=0.02)
        (mention,) = figure.mentions
        assert parsed.text[slice(*mention)].startswith("Table 2 lists what Figure 1 draws")


async def test_a_table_of_a_scan_stays_in_the_passage_of_its_caption(sandbox: Sandbox) -> None:
    parsed = await ocr.OcrReader(sandbox).read(document(scanned(draw_report)), "report.pdf")
    assert isinstance(parsed, Parsed)
    found = replace(stored(parsed), figures=parsed.figures)

    def cut(figures: tuple[Figure, ...]) -> list[str]:
        return [each.text for each in split_passages(replace(found, figures=figures), lambda text: len(text.split()))]

    (whole,) = [passage for passage in cut(parsed.figures) if OF_TABLE in passage]
    assert "1,377" in whole and CAPTION not in whole and CAPTION in cut(parsed.figures)
    assert cut(parsed.figures[:1]) == cut(())


@pytest.mark.parametrize(
    ("data", "status", "why"),
    [
        (lambda: file(photo()), Status.empty, "no words"),
        (lambda: file(photo())[:4000], Status.corrupt, "damaged"),
        (lambda: _bomb(), Status.too_large, "pixels"),
    ],
)
async def test_a_picture_without_words_says_why(sandbox: Sandbox, data, status: Status, why: str) -> None:
    read = await ocr.OcrReader(sandbox).read(data(), "picture.png")
    assert isinstance(read, Unreadable) and read.status is status and why in read.why, read


def _bomb() -> bytes:
    """A PNG of a few bytes that claims 40,000 times 40,000 pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", 40_000, 40_000, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(9))) + chunk(b"IEND", b"")


async def test_a_picture_is_a_scan_that_waits_for_ocr(sandbox: Sandbox) -> None:
    read = await sandbox.read(file(page(TABLE)), "table.png")
    assert isinstance(read, Unreadable) and read.status is Status.scanned and "OCR" in read.why
    assert picture.is_picture(file(page(TABLE), "TIFF"))


async def test_a_reindex_reads_what_waited_for_ocr_and_a_removal_takes_all_of_it(tmp_path: Path) -> None:
    """The scan is kept while it waits; what OCR made of it is stored once, and goes with the document."""
    scanned = tmp_path / "scan.png"
    scanned.write_bytes(file(page(GERMAN)))
    with open_workspace(tmp_path / "workspace", create=True) as workspace:
        waiting = await workspace.add([scanned])
        assert waiting.files[0].status == Status.scanned and list((tmp_path / "workspace" / "originals").iterdir())
    scanned.unlink()
    with open_workspace(tmp_path / "workspace", ocr=True) as workspace:
        (read,) = (await workspace.documents.reindex()).files
        assert read.status == Status.read and "sure on average" in read.why, read
        (entry,) = workspace.documents.listing()
        found = workspace.documents.get(entry.id)
        assert found is not None and sure_of(found.scan, 0, len(found.text))
        start = found.text.index("beträgt")
        (box,) = await workspace.documents.boxes(entry.id, start, start + 7)
        assert box.page == 1 and box.y0 < 0.25
        await workspace.documents.remove([entry.id])
        assert workspace.store.scalars(select(texts.c.scan)) == []
    originals = [each for each in (tmp_path / "workspace" / "originals").rglob("*") if each.is_file()]
    assert all(each.stat().st_size < 1000 for each in originals), originals  # its owner's mark


@pytest.mark.skipif(bool(missing_guards()), reason="this system lacks guards")
def test_a_process_that_may_start_threads_may_start_nothing_else(sandbox: Sandbox) -> None:
    child = ParserProcess(sandbox._setting)
    try:
        assert child.start_file(threads=True) and not child.missing
        nowhere = {
            "secret": "/etc/passwd",
            "writable": "/tmp/x",
            "folder": "/tmp",
            "parent": 1,
            "address": 0,
            "port": 9,
        }
        answer = child.ask("probe", nowhere, lambda: b"", 30, threads=True)
        assert not isinstance(answer, Unreadable)
        refused = answer[0]["found"]
        assert all(
            refused[name] for name in ("start a process", "start a program", "connect to a port", "make a socket pair")
        )
    finally:
        child.end()


LETTERS = {
    "afr": "êëïôû", "bos": "čćđšž", "cat": "àçèéíïòóúü", "ces": "áčďéěíňóřšťúůýž", "cym": "âêîôûŵŷ", "dan": "æøå",
    "deu": "äöüß", "est": "äõöüšž", "eus": "ñ", "fin": "äöå", "fra": "àâæçéèêëîïôœùûüÿ", "gle": "áéíóú", "glg": "áéíñóú",
    "hrv": "čćđšž", "hun": "áéíóöőúüű", "isl": "áæðéíóöúýþ", "ita": "àèéìòù", "lav": "āčēģīķļņšūž", "lit": "ąčęėįšųūž",
    "mlt": "ċġħż", "nld": "éëïó", "nor": "æøå", "oci": "àáçèéíïòóú", "pol": "ąćęłńóśźż", "por": "áâãàçéêíóôõú",
    "ron": "ăâîșț", "slk": "áäčďéíĺľňóôŕšťúýž", "slv": "čšž", "spa": "áéíñóúü¿", "sqi": "çë", "srp_latn": "čćđšž",
    "swe": "åäö", "tgl": "ñ", "tur": "çğıöşüİ", "jpn": "あアん漢", "chi_sim": "汉语", "chi_tra": "漢語",
    "eng": "", "hin": "अआ",
}  # fmt: skip


def test_a_language_is_given_to_rapidocr_only_if_its_model_has_the_letters():
    import rapidocr

    (model,) = (Path(rapidocr.__file__).parent / "models").glob("*rec*.onnx")
    _, _, table = model.read_bytes().partition(b"character")  # the letters are a property of the model
    known = set(table.decode("utf-8", "ignore"))
    lacking = {language for language, letters in LETTERS.items() if not known.issuperset(letters)}
    assert lacking == {"hin"}
    assert not lacking & ocr.READ_BY_RAPIDOCR
    assert ocr.READ_BY_RAPIDOCR - LETTERS.keys() == {"ind", "lat", "msa", "swa"}  # need none beyond a to z
