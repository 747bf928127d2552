"""E-books: chapters in reading order, titles as sections, locked books refused."""

from __future__ import annotations

import io
import zipfile

import pytest

from assay.ingest.formats import epub
from assay.ingest.parsed import FileLimits, Parsed, Refused, Status

CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)
PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>
  <dc:title>Rivers</dc:title><dc:creator>Ada Obi</dc:creator><dc:creator>Ben Lund</dc:creator>
  <dc:date>2024-05-17</dc:date><dc:language>en-GB</dc:language></metadata>
  <manifest><item id="two" href="text/2.xhtml" media-type="application/xhtml+xml"/>
  <item id="one" href="text/1%20a.xhtml" media-type="application/xhtml+xml"/>
  <item id="nav" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>
  <item id="pic" href="a.png" media-type="image/png"/></manifest>
  <spine><itemref idref="nav"/><itemref idref="one"/><itemref idref="pic"/><itemref idref="two"/>
  <itemref idref="gone"/></spine></package>"""
NAV = (
    "<html><body><nav><ol><li><a href='text/1%20a.xhtml'>The source</a></li>"
    "<li><a href='text/2.xhtml#x'>Unused</a></li></ol></nav></body></html>"
)


def book(**members: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": CONTAINER,
            "OEBPS/book.opf": PACKAGE,
            "OEBPS/nav.xhtml": NAV,
            "OEBPS/text/1 a.xhtml": "<html><body><p>It springs.</p><p hidden='hidden'>SECRET</p></body></html>",
            "OEBPS/text/2.xhtml": "<html><body><h1>The mouth</h1><p>It ends.</p></body></html>",
            **members,
        }.items():
            archive.writestr(name, content)
    return file.getvalue()


def read(data: bytes) -> Parsed:
    parsed = epub.parse(data, "a.epub", FileLimits())
    assert [parsed.text[s.start : s.end] for s in parsed.sections] == [s.title for s in parsed.sections]
    return parsed


def test_chapters_come_in_reading_order_and_the_contents_name_what_has_no_heading():
    parsed = read(book())
    assert parsed.text == "The source\n\nIt springs.\n\nThe mouth\n\nIt ends."
    assert [section.title for section in parsed.sections] == ["The source", "The mouth"]


def test_the_book_says_who_wrote_it_and_when():
    parsed = read(book())
    assert (parsed.title, parsed.authors, parsed.date, parsed.language) == (
        "Rivers",
        ("Ada Obi", "Ben Lund"),
        "2024-05-17",
        "en",
    )


def lock(algorithm: str) -> str:
    return f"<encryption><EncryptedData><EncryptionMethod Algorithm='{algorithm}'/></EncryptedData></encryption>"


def test_a_locked_book_is_refused():
    for members in (
        {"META-INF/encryption.xml": lock("http://www.w3.org/2001/04/xmlenc#aes128-cbc")},
        {"META-INF/rights.xml": "<rights/>"},
    ):
        with pytest.raises(Refused) as refused:
            read(book(**members))
        assert refused.value.status == Status.encrypted


def test_scrambled_fonts_do_not_lock_a_book():
    assert read(book(**{"META-INF/encryption.xml": lock("http://www.idpf.org/2008/embedding")})).text


@pytest.mark.parametrize(
    "members", [{"OEBPS/book.opf": "<package"}, {"META-INF/container.xml": "<x/>", "OEBPS/book.opf": ""}]
)
def test_a_damaged_book_is_refused(members):
    with pytest.raises(Refused) as refused:
        read(book(**members))
    assert refused.value.status == Status.corrupt


def test_a_book_without_text_is_refused_as_empty():
    blank = "<html><body><img src='a.png'/></body></html>"
    with pytest.raises(Refused) as refused:
        read(book(**{"OEBPS/text/1 a.xhtml": blank, "OEBPS/text/2.xhtml": blank}))
    assert refused.value.status == Status.empty
