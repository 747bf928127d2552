"""E-books (EPUB): the chapters in reading order, each heading a section; the table of contents supplies missing titles."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import unquote

from lxml.etree import _Element as Element
from selectolax.lexbor import LexborHTMLParser

from assay.core.printable import tidy_whitespace
from assay.core.types import Section
from assay.ingest.formats.archive import (
    Archive,
    attribute,
    child,
    inside,
    joined_text,
    open_archive,
    parse_xml,
    refuse_damaged,
)
from assay.ingest.formats.html import decode_page, write_visible
from assay.ingest.formats.text import TextBuilder
from assay.ingest.metadata import file_fields
from assay.ingest.parsed import FileLimits, Parsed, Refused, Status

# Obfuscated fonts do not mean that the book is encrypted.
_FONTS_ONLY = frozenset({"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"})
_PAGES = ("html", "xhtml", "htm", "xml")


def parse(data: bytes, name: str, limits: FileLimits) -> Parsed:
    out = TextBuilder("epub", limits)
    with refuse_damaged("EPUB"):
        archive = open_archive(data, limits)
        _refuse_locked(archive)
        package = _package(archive)
        root = archive.xml(package)
        if root is None:
            raise Refused(Status.corrupt, "It holds no book; fetch it again from where it came from.")
        names = ("title", "creator", "date", "language")
        fields = {name: [part.text for part in inside(root, name) if part.text] for name in names}
        _write_chapters(archive, package, root, out)
    return out.parsed(
        title=file_fields.plausible_title(next(iter(fields["title"]), "")),
        authors=file_fields.parse_authors(*fields["creator"]),
        date=next(filter(None, map(file_fields.parse_date, fields["date"])), None),
        language=next(iter(fields["language"]), "").split("-")[0].lower() or None,
        empty="Its chapters hold no text; if its pages are pictures, convert it to PDF and read that with OCR.",
    )


def _refuse_locked(archive: Archive) -> None:
    locks = archive.xml("META-INF/encryption.xml")
    methods = {attribute(part, "Algorithm") for part in inside(locks, "EncryptionMethod")}
    if methods - _FONTS_ONLY or "META-INF/rights.xml" in archive or "META-INF/license.lcpl" in archive:
        raise Refused(Status.encrypted, "The book is locked by its seller; get a copy without copy protection.")


def _package(archive: Archive) -> str:
    for part in inside(archive.xml("META-INF/container.xml"), "rootfile"):
        if attribute(part, "full-path") in archive:
            return attribute(part, "full-path")
    return next((stored for stored in archive.names.values() if stored.lower().endswith(".opf")), "")


def _write_chapters(archive: Archive, package: str, root: Element, out: TextBuilder) -> None:
    items = {attribute(part, "id"): part for part in inside(root, "item")}
    folder = posixpath.dirname(package)
    contents = _contents(archive, folder, items)
    missing = 0
    for part in inside(root, "itemref"):
        item = items.get(attribute(part, "idref"))
        if item is None or "nav" in attribute(item, "properties").split() or not _is_page(item):
            continue
        member = _member(folder, attribute(item, "href"))
        page = archive.read(member)
        missing += not page
        chapter = TextBuilder(out.kind, out.limits)
        if page:
            write_visible(decode_page(page), chapter)
        if not chapter.length:
            continue
        title = file_fields.plausible_title(contents.get(member, ""))
        text = chapter.parsed()
        if title and not text.sections and not text.text.startswith(title):
            out.heading(title, 1)
        elif title and not text.sections:  # the chapter opens with its title, which is not marked up as a heading
            text = replace(text, sections=(Section(title, 1, 0, len(title)),))
        out.embed(text, 0)
    if missing:
        out.warn(f"{missing} chapters are missing from the file.")


def _is_page(item: Element) -> bool:
    return "html" in attribute(item, "media-type") or attribute(item, "href").rpartition(".")[2].lower() in _PAGES


def _member(folder: str, href: str) -> str:
    return posixpath.normpath(posixpath.join(folder, unquote(href.partition("#")[0])))


def _contents(archive: Archive, folder: str, items: dict[str, Element]) -> dict[str, str]:
    """Member → its title in the table of contents (EPUB 2 or 3)."""
    members = {_member(folder, attribute(item, "href")): item for item in items.values()}
    there = {member: item for member, item in members.items() if member in archive}
    for member, item in there.items():
        if "nav" in attribute(item, "properties").split():
            links = LexborHTMLParser(decode_page(archive.read(member))).css("nav a[href]")
            return _titles(member, ((link.attributes.get("href") or "", link.text()) for link in links))
    for member, item in there.items():
        if attribute(item, "media-type") == "application/x-dtbncx+xml":
            points = inside(parse_xml(archive.read(member)), "navPoint")
            named = ((attribute(child(point, "content"), "src"), child(point, "navLabel")) for point in points)
            return _titles(member, ((source, joined_text(label, "text")) for source, label in named))
    return {}


def _titles(contents: str, entries: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The first title for each member that a table of contents leads to."""
    found: dict[str, str] = {}
    for href, words in entries:
        found.setdefault(_member(posixpath.dirname(contents), href), tidy_whitespace(words).replace("\n", " "))
    return found
