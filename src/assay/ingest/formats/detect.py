"""Detects the format of a file and runs its parser, inside the sandbox. Returns a document with text, or refuses with a reason.

Formats are listed in `core/formats.py`, file types that cannot be read in `UNSUPPORTED`. The content takes precedence over
the name.
"""

from __future__ import annotations

import re
import zipfile
from dataclasses import replace
from functools import cache
from pathlib import PurePath
from pkgutil import resolve_name

from assay.core.formats import FORMATS, Format, format_named, format_of_suffix
from assay.ingest.formats.archive import LOCKED, open_archive
from assay.ingest.parsed import FileLimits, Parsed, Refused, Status
from assay.language.identify import identify_language

SNIFFED = 4_096  # bytes that are examined to tell text formats apart
OLD_EXCEL = "It is an old Excel file; open it and save it as XLSX."
PICTURE = "It is a picture of a kind that is not read; save it as PNG or JPEG, which OCR reads."
PICTURES = (b"\x89PNG\r\n", b"\xff\xd8\xff", b"II*\x00", b"MM\x00*")  # PNG, JPEG, TIFF
SOUND = "It is a sound recording; add a transcript of it as text."
FILM = "It is a film; add a transcript of it as text."
ARCHIVE = "It is an archive; unpack it and add the files inside."
PROGRAM = "It is a program or a library, not a document; leave it out."
DATA = "It is a data file; export what matters from it as CSV or text."

# The message, the offset of the magic bytes, and these bytes; the first that match count.
UNSUPPORTED: tuple[tuple[str, int, tuple[bytes, ...]], ...] = (
    (PICTURE, 0, (b"GIF8", b"8BPS")),
    (PICTURE, 8, (b"WEBP",)),
    (PICTURE, 4, (b"ftypheic", b"ftypavif")),
    (SOUND, 0, (b"ID3", b"\xff\xfb", b"\xff\xf3", b"fLaC", b"OggS")),
    (SOUND, 8, (b"WAVE",)),
    (SOUND, 4, (b"ftypM4A",)),
    ("It is a film or a sound recording; add a transcript of it as text.", 4, (b"ftyp",)),
    (FILM, 8, (b"AVI ",)),
    (FILM, 0, (b"\x1aE\xdf\xa3",)),
    (ARCHIVE, 0, (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!", b"\x28\xb5\x2f\xfd")),
    (ARCHIVE, 257, (b"ustar",)),
    (PROGRAM, 0, (b"\x7fELF", b"MZ\x90", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\x00asm")),
    (DATA, 0, (b"SQLite format 3", b"PAR1", b"ARROW1", b"\x89HDF", b"\x93NUMPY", b"bplist")),
    ("It is a Rich Text file; open it and save it as DOCX.", 0, (b"{\\rtf",)),
    ("It is a PostScript file; convert it to PDF.", 0, (b"%!PS",)),
    ("It is an e-book of another kind; convert it to EPUB.", 0, (b"ITOLITLS",)),
    ("It is a Kindle book; convert it to EPUB.", 60, (b"BOOKMOBI",)),
)
# OLE containers: the name of a stream identifies the file type. Names are stored in UTF-16.
CONTAINERS = (
    ("__properties_version1.0", "It is an Outlook message; save it as EML, or print it to PDF."),
    ("WordDocument", "It is an old Word file; open it and save it as DOCX."),
    ("PowerPoint Document", "It is an old PowerPoint file; open it and save it as PPTX."),
    ("Workbook", OLD_EXCEL),
    ("Book", OLD_EXCEL),
)
HEADER = re.compile(
    r"^(from|to|cc|subject|date|message-id|received|mime-version|return-path|reply-to|delivered-to|content-type"
    r"|x-[\w-]+|dkim-signature|list-[\w-]+|sender|importance|thread-[\w-]+|in-reply-to|references):\s",
    re.IGNORECASE,
)
MARKED_UP = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
XML = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:\?xml|!doctype\s+(?!html))\b", re.IGNORECASE)


@cache
def rehearse() -> None:
    """Read a sample: a process that is forked then has what is loaded and compiled at the first file."""
    sample = (
        b"On Pumps\n\nBy A. Moss, 3 May 2024\n\nOne pump ran for 5 days. It gave 20 m3 per hour, as Table 1 shows.\n"
    )
    read(sample, "sample.txt", FileLimits().timed())


def read(data: bytes, name: str, limits: FileLimits) -> Parsed:
    """The document in these bytes. Raises `Refused`; never returns a document without text."""
    if len(data) > limits.bytes:
        raise Refused(Status.too_large, limits.describe_excess(len(data)))
    parsed: Parsed = resolve_name(detect_format(data, name, limits).parser)(data, name, limits)
    return complete(parsed, limits, name)


def complete(parsed: Parsed, limits: FileLimits, name: str = "") -> Parsed:
    """Checks and metadata for every format: text within limits, title, authors, date, declared units and language."""
    from assay.ingest.declared_units import with_declared_units
    from assay.ingest.figures import with_mentions
    from assay.ingest.metadata.fill import fill_metadata

    if not parsed.text.strip():
        raise Refused(Status.empty, "There is no text in it; check that this is the right file.")
    limits.check(characters=len(parsed.text), pages=len(parsed.pages))
    filled = with_mentions(with_declared_units(fill_metadata(parsed, name)))
    return replace(filled, language=parsed.language or identify_language(parsed.text))


def detect_format(data: bytes, name: str, limits: FileLimits) -> Format:
    """The format of these bytes. Raises `Refused` with the reason if they cannot be read."""
    if not data.strip(b"\x00 \t\r\n\xff\xfe\xef\xbb\xbf"):
        raise Refused(Status.empty, "The file is empty; check that it was saved.")
    for each in FORMATS:
        if each.signature and each.signature in data[:1024]:
            return each
    if data.startswith(PICTURES):
        return format_named("picture")
    if data.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        raise _refuse_ole(data)
    if data[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return _detect_zipped(data, limits)
    for why, offset, marks in UNSUPPORTED:
        if data.startswith(marks, offset):
            raise Refused(Status.unsupported, why)
    named = format_of_suffix(name)
    if named is not None and named.binary:
        suffix = PurePath(name).suffix.removeprefix(".").upper()
        raise Refused(
            Status.corrupt,
            f"Its name says {suffix} but its content does not; get a fresh copy, or give it the right ending.",
        )
    return _detect_text(data[:SNIFFED], named)


def _detect_text(start: bytes, named: Format | None) -> Format:
    if MARKED_UP.match(start.removeprefix(b"\xef\xbb\xbf")):
        return format_named("html")
    if named is None or named.plain:
        if _is_mail(start):
            return format_named("email")
        if XML.match(start):
            why = "It is XML of a kind Assay does not know; convert it to HTML, PDF or text."
            raise Refused(Status.unsupported, why)
    return named or format_named("text")


def _is_mail(start: bytes) -> bool:
    """Several header fields at the top, at least one of which only mail programs write."""
    if start.startswith(b"From ") and re.match(rb"From \S+@\S+ ", start):
        return True
    lines = start.decode("latin-1").splitlines()
    fields: set[str] = set()
    for line in lines:
        if not line.strip():
            break
        if match := HEADER.match(line):
            fields.add(match[1].lower())
        elif not line[:1].isspace() and not re.match(r"[\w-]+:", line):
            return False
    return len(fields) >= 3 and bool(fields & {"mime-version", "message-id", "received", "return-path", "content-type"})


def _refuse_ole(data: bytes) -> Refused:
    def has(stream: str) -> bool:
        return stream.encode("utf-16-le") + b"\x00\x00" in data

    if has("EncryptedPackage"):
        return Refused(Status.encrypted, LOCKED)
    unknown = "It is an old Office file of an unknown kind; save it as DOCX, PPTX, XLSX or PDF."
    return Refused(Status.unsupported, next((why for stream, why in CONTAINERS if has(stream)), unknown))


def _detect_zipped(data: bytes, limits: FileLimits) -> Format:
    archive = open_archive(data, limits)
    names = {name.lstrip("/").replace("\\", "/") for name in archive.names.values()}
    try:
        declared = archive.read("mimetype")[:200].decode("latin-1").strip()
    except (zipfile.BadZipFile, KeyError, OSError, NotImplementedError, RuntimeError):
        declared = ""
    if declared.startswith("application/vnd.oasis.opendocument"):
        raise Refused(Status.unsupported, "It is an OpenDocument file; save it as DOCX, PPTX, XLSX or PDF.")
    for each in FORMATS:
        by_member = each.member and any(member.startswith(each.member) for member in names)
        if by_member or (each.media_type and each.media_type == declared):
            return each
    if "[Content_Types].xml" in names:
        why = "It is an Office file with parts missing; open it, let it be repaired, and save it."
        raise Refused(Status.corrupt, why)
    raise Refused(Status.unsupported, ARCHIVE)
