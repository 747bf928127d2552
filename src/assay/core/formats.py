"""The file formats that Assay reads. All format-dependent properties are in the entries here.

A new format needs one parser module in `ingest/formats/` and one entry in `FORMATS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath


class TitleSource(StrEnum):
    """Where the text provides a title if the file's metadata does not."""

    none = "none"
    first_line = "first line"
    first_heading = "first heading"


@dataclass(frozen=True, slots=True)
class Format:
    """One file format. `parser` is `module:function`, imported when the first such file is read."""

    name: str  # stored with every document as its kind
    parser: str
    suffixes: tuple[str, ...] = ()
    media_type: str = ""  # as a ZIP container declares it in its member `mimetype`
    signature: bytes = b""  # occurs in the first 1,024 bytes of every such file
    member: str = ""  # the path of a ZIP member that every such file has, or its beginning
    binary: bool = False  # only matching content can be this format
    plain: bool = False  # any text may have this suffix, so the content decides first
    paged: bool = False  # has pages, even if it is only one
    page_images: bool = False  # its pages can be drawn
    rows: bool = False  # all of its text is rows of tables
    has_title: bool = True
    title_source: TitleSource = TitleSource.none
    header_lines: bool = False  # may open with lines such as `Author: …`
    message_header: bool = False  # opens with sender, date and subject, up to an empty line
    authored_by_program: bool = False  # programs fill in author and date, so the text takes precedence
    described_by_layout: bool = False  # its parser finds the authors in the layout of the first page
    text_share: float = 1.0  # estimated fraction of a file's bytes that is text
    libraries: tuple[str, ...] = ()  # what the parser imports while it reads
    aliases: tuple[str, ...] = ()  # other names for it in a search by type, besides its name and suffixes
    nouns: tuple[str, ...] = ()  # what people call such documents; if they name two formats, the earlier entry counts
    program: str = ""  # the program that people name such files after


_ARCHIVE = ("encodings.cp437", "encodings.utf_16_le", "lxml.etree", "gzip")
_STYLES = ("tinycss2", "tinycss2.color4")
_PAGE = ("selectolax.lexbor", *_STYLES)
FORMATS = (
    Format(
        "pdf", "assay.ingest.pdf.reader:parse", (".pdf",), signature=b"%PDF-", binary=True,
        paged=True, page_images=True, described_by_layout=True, text_share=0.08, nouns=("pdf",),
    ),
    Format(  # read by OCR, as a PDF of pictures
        "picture", "assay.ingest.pdf.reader:parse", (".png", ".jpg", ".jpeg", ".tif", ".tiff"), binary=True,
        paged=True, page_images=True, text_share=0.01, nouns=("picture", "image", "scan", "photo"),
    ),
    Format(
        "email", "assay.ingest.formats.mail:parse", (".eml", ".mbox", ".mht", ".mhtml"),
        has_title=False, message_header=True, text_share=0.5, nouns=("e-mail", "email", "mail", "message"),
        libraries=("email.parser", *_PAGE),
    ),
    Format(
        "xlsx", "assay.ingest.formats.xlsx:parse", (".xlsx", ".xlsm"), member="xl/workbook.xml", binary=True,
        rows=True, has_title=False, text_share=0.6, nouns=("spreadsheet", "workbook"), program="excel",
        libraries=_ARCHIVE,
    ),
    Format(
        "csv", "assay.ingest.formats.plain:parse_delimited", (".csv", ".tsv"),
        rows=True, has_title=False, nouns=("spreadsheet",),
    ),
    Format(
        "pptx", "assay.ingest.formats.pptx:parse", (".pptx", ".pptm", ".ppsx"), member="ppt/presentation.xml",
        binary=True, paged=True, authored_by_program=True, text_share=0.03, nouns=("presentation", "slide deck"),
        program="powerpoint", libraries=_ARCHIVE,
    ),
    Format(
        "html", "assay.ingest.formats.html:parse", (".html", ".htm", ".xhtml"),
        title_source=TitleSource.first_heading, header_lines=True, text_share=0.3, nouns=("web page", "webpage"),
        libraries=(*_PAGE, "trafilatura"),
    ),
    Format(
        "epub", "assay.ingest.formats.epub:parse", (".epub",), media_type="application/epub+zip",
        member="META-INF/container.xml", binary=True, text_share=0.4, nouns=("e-book", "ebook"),
        libraries=(*_ARCHIVE, *_PAGE),
    ),
    Format(
        "docx", "assay.ingest.formats.docx:parse", (".docx", ".docm", ".dotx"), member="word/document", binary=True,
        title_source=TitleSource.first_heading, authored_by_program=True, text_share=0.15, program="word",
        libraries=(*_ARCHIVE, *_STYLES),
    ),
    Format(
        "markdown", "assay.ingest.formats.plain:parse", (".md", ".markdown", ".mkd", ".mdx", ".qmd", ".rmd"),
        plain=True, header_lines=True, libraries=_STYLES,
    ),
    Format("rst", "assay.ingest.formats.plain:parse", (".rst", ".rest"), plain=True, header_lines=True),
    Format("org", "assay.ingest.formats.plain:parse", (".org",), plain=True, header_lines=True),
    Format(
        "text", "assay.ingest.formats.plain:parse", plain=True,  # anything that decodes to characters
        title_source=TitleSource.first_line, header_lines=True, aliases=("txt",),
    ),
)  # fmt: skip
_BY_NAME = {each.name: each for each in FORMATS}
_BY_SUFFIX = {suffix: each for each in FORMATS for suffix in each.suffixes}
_BY_TYPE = {
    name: each
    for each in FORMATS
    for name in (each.name, *each.aliases, *(suffix.removeprefix(".") for suffix in each.suffixes))
}
_UNKNOWN = Format("", "")


def format_named(name: str) -> Format:
    """The format with this name; one without special properties if there is none."""
    return _BY_NAME.get(name, _UNKNOWN)


def format_of_suffix(file: str) -> Format | None:
    """The format that a file's name suggests."""
    return _BY_SUFFIX.get(PurePath(file).suffix.lower())


def format_of_type(name: str) -> Format | None:
    """The format that a person names in a search by type: by its name, an alias or a suffix."""
    return _BY_TYPE.get(name.lower().lstrip("."))


def formats_by_noun() -> dict[str, tuple[str, ...]]:
    """What people call documents, with the names of the formats that it may be."""
    nouns = dict.fromkeys(noun for each in FORMATS for noun in each.nouns)
    return {noun: tuple(each.name for each in FORMATS if noun in each.nouns) for noun in nouns}


def formats_by_label() -> dict[str, tuple[str, ...]]:
    """What may stand before "file" or "document", with the name of the format: "docx", "Word", "Markdown"."""
    return {label: (each.name,) for label, each in _BY_TYPE.items()} | {
        each.program: (each.name,) for each in FORMATS if each.program
    }


PAGED_FORMATS = tuple(sorted(each.name for each in FORMATS if each.paged))
