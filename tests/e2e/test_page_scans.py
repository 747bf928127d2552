"""A scan is read with one click, and what is cited of it is marked on its page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser_session import PHONE, Desk, Reader, desk
from playwright.sync_api import expect

from assay.ingest.pdf import ocr

sys.path.append(str(Path(__file__).parents[1] / "ingest"))
pytest.importorskip("rapidocr", reason="the extra `ocr` is not installed here")
Reads = Callable[..., Reader]
READING = 90_000  # milliseconds for a page, also on a slow machine


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, _plain_environment: None) -> Iterator[Desk]:
    from test_scans import GERMAN, TEXT, document, file, page

    tmp_path = tmp_path_factory.mktemp("scans")
    with desk(tmp_path / "workspace", {"Quay": "The pumps at the quay take thin oil."}, None) as opened:
        (tmp_path / "survey.pdf").write_bytes(document(TEXT, page(GERMAN)))
        (tmp_path / "photographed.png").write_bytes(file(page(GERMAN)))
        opened.sends(tmp_path / "survey.pdf", tmp_path / "photographed.png")
        yield opened


def test_a_scan_is_read_with_one_click_and_its_words_are_marked(
    reads: Reads, served: Desk, monkeypatch: pytest.MonkeyPatch
):
    reader = reads(served)
    page = reader.goes("#/documents")
    row = page.locator(".document-row", has_text="survey.pdf")
    expect(row).to_contain_text("pictures without text")
    with monkeypatch.context() as without:
        without.setattr(ocr, "find_spec", lambda _: None)
        without.setattr(ocr, "find_tesseract", lambda: None)
        reader.foresees("409")
        row.get_by_role("button", name="with OCR").click()
        expect(row).to_contain_text("pip install 'assay[ocr]'")
    row.get_by_role("button", name="with OCR").click()
    expect(page.locator(".document-row", has_text="Read by OCR: 1 page")).to_be_visible(timeout=READING)

    document = served.document("survey.pdf")
    text = served.api(f"/api/documents/{document}/text")["text"]
    start = text.index("Größe beträgt")
    for size, colours in ((None, "light"), (None, "dark"), (PHONE, "light"), (PHONE, "dark")):
        if size:
            page.set_viewport_size(size)
        page.emulate_media(color_scheme=colours)
        page.goto(f"{served.url}/#/document/{document}?start={start}&end={start + 24}")
        page.reload()
        mark = page.locator('.leaf[data-page="2"] .leaf-words')
        expect(mark).to_have_count(1, timeout=READING)
        expect(page.locator('.leaf[data-page="2"].painted')).to_be_visible(timeout=READING)
        reader.fits()
        reader.accessible("a scan with a quotation marked")
        reader.picture(f"scan-{colours}-{'narrow' if size else 'wide'}")
