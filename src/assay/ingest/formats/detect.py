"""Detects the format of a file and runs its parser, inside the sandbox. Returns a document with text, or refuses with a reason.

Formats are listed in `core/formats.py`, file types that cannot be read in `UNSUPPORTED`. The content takes precedence over
the name.
"""

from __future__ import annotations

import importlib
import io
import re
import zipfile
from dataclasses import replace

from assay.core.formats import FORMATS, Format, format_named, format_of_suffix
from assay.ingest.parsed import FileLimits, Parsed, Refused, Status
from assay.language.identify import identify_language

SNIFFED = 4_096  # bytes that are examined to tell text formats apart


OLD_WORD = "It is an old Word file; open it and save it as DOCX."
OLD_EXCEL = "It is an old Excel file; open it and save it as XLSX."
OLD_SLIDES = "It is an old PowerPoint file; open it and save it as PPTX."
OUTLOOK = "It is an Outlook message; save it as EML, or print it to PDF."
OPEN_DOCUMENT = "It is an OpenDocument file; save it as DOCX, PPTX, XLSX or PDF."
PICTURE = "It is a picture; put it into a PDF and read that with OCR, or describe it in words."
SOUND = "It is a sound recording; add a transcript of it as text."
RECORDING = "It is a film or a sound recording; add a transcript of it as text."
FILM = "It is a film; add a transcript of it as text."
ARCHIVE = "It is an archive; unpack it and add the files inside."
PROGRAM = "It is a program or a library, not a document; leave it out."
DATA = "It is a data file; export what matters from it as CSV or text."
LOCKED = "It is locked with a password; save a copy without one and add that."

# (magic bytes, their offset, the message)
UNSUPPORTED: tuple[tuple[bytes, int, str], ...] = (
    (b"\x89PNG\r\n", 0, PICTURE),
    (b"\xff\xd8\xff", 0, PICTURE),
    (b"GIF8", 0, PICTURE),
    (b"WEBP", 8, PICTURE),
    (b"II*\x00", 0, PICTURE),
    (b"MM\x00*", 0, PICTURE),
    (b"8BPS", 0, PICTURE),
    (b"ftypheic", 4, PICTURE),
    (b"ftypavif", 4, PICTURE),
    (b"ID3", 0, SOUND),
    (b"\xff\xfb", 0, SOUND),
    (b"\xff\xf3", 0, SOUND),
    (b"fLaC", 0, SOUND),
    (b"OggS", 0, SOUND),
    (b"WAVE", 8, SOUND),
    (b"ftypM4A", 4, SOUND),
    (b"ftyp", 4, RECORDING),
    (b"AVI ", 8, FILM),
    (b"\x1aE\xdf\xa3", 0, FILM),
    (b"\x1f\x8b", 0, ARCHIVE),
    (b"BZh", 0, ARCHIVE),
    (b"\xfd7zXZ", 0, ARCHIVE),
    (b"7z\xbc\xaf", 0, ARCHIVE),
    (b"Rar!", 0, ARCHIVE),
    (b"\x28\xb5\x2f\xfd", 0, ARCHIVE),
    (b"ustar", 257, ARCHIVE),
    (b"\x7fELF", 0, PROGRAM),
    (b"MZ\x90", 0, PROGRAM),
    (b"\xcf\xfa\xed\xfe", 0, PROGRAM),
    (b"\xca\xfe\xba\xbe", 0, PROGRAM),
    (b"\x00asm", 0, PROGRAM),
    (b"SQLite format 3", 0, DATA),
    (b"PAR1", 0, DATA),
    (b"ARROW1", 0, DATA),
    (b"\x89HDF", 0, DATA),
    (b"\x93NUMPY", 0, DATA),
    (b"{\\rtf", 0, "It is a Rich Text file; open it and save it as DOCX."),
    (b"%!PS", 0, "It is a PostScript file; convert it to PDF."),
    (b"ITOLITLS", 0, "It is an e-book of another kind; convert it to EPUB."),
    (b"BOOKMOBI", 60, "It is a Kindle book; convert it to EPUB."),
    (b"bplist", 0, DATA),
)
# OLE containers: the name of a stream identifies the file type. Names are stored in UTF-16.
CONTAINERS: tuple[tuple[str, Status, str], ...] = (
    ("EncryptedPackage", Status.encrypted, LOCKED),
    ("__properties_version1.0", Status.unsupported, OUTLOOK),
    ("WordDocument", Status.unsupported, OLD_WORD),
    ("PowerPoint Document", Status.unsupported, OLD_SLIDES),
    ("Workbook", Status.unsupported, OLD_EXCEL),
    ("Book", Status.unsupported, OLD_EXCEL),
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


def read(data: bytes, name: str, limits: FileLimits) -> Parsed:
    """The document in these bytes. Raises `Refused`; never returns a document without text."""
    if len(data) > limits.bytes:
        raise Refused(Status.too_large, limits.describe_excess(len(data)))
    module, _, function = detect_format(data, name, limits).parser.partition(":")
    parsed: Parsed = getattr(importlib.import_module(module), function)(data, name, limits)
    return complete(parsed, limits, name)


def complete(parsed: Parsed, limits: FileLimits, name: str = "") -> Parsed:
    """Checks and metadata for every format: text within limits, title, authors, date, declared units and language."""
    from assay.ingest.declared_units import with_declared_units
    from assay.ingest.metadata.fill import fill_metadata

    if not parsed.text.strip():
        raise Refused(Status.empty, "There is no text in it; check that this is the right file.")
    if len(parsed.text) > limits.characters:
        why = f"It holds more than {limits.characters:,} characters; split it or raise the limit on characters."
        raise Refused(Status.too_large, why)
    if len(parsed.pages) > limits.pages:
        why = f"It has more than {limits.pages:,} pages; split it or raise the limit on pages."
        raise Refused(Status.too_large, why)
    filled = with_declared_units(fill_metadata(parsed, name))
    return replace(filled, language=parsed.language or identify_language(parsed.text))


def detect_format(data: bytes, name: str, limits: FileLimits) -> Format:
    """The format of these bytes. Raises `Refused` with the reason if they cannot be read."""
    if not data.strip(b"\x00 \t\r\n\xff\xfe\xef\xbb\xbf"):
        raise Refused(Status.empty, "The file is empty; check that it was saved.")
    for each in FORMATS:
        if each.signature and each.signature in data[:1024]:
            return each
    if data.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        raise _refuse_ole(data)
    if data[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return _detect_zipped(data, limits)
    for mark, offset, why in UNSUPPORTED:
        if data[offset : offset + len(mark)] == mark:
            raise Refused(Status.unsupported, why)
    named = format_of_suffix(name)
    if named is not None and named.binary:
        raise Refused(
            Status.corrupt,
            f"Its name says {named.name.upper()} but its content does not; get a fresh copy, or give it the right ending.",
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
    for stream, status, why in CONTAINERS:
        if stream.encode("utf-16-le") + b"\x00\x00" in data:
            return Refused(status, why)
    return Refused(
        Status.unsupported, "It is an old Office file of an unknown kind; save it as DOCX, PPTX, XLSX or PDF."
    )


def _detect_zipped(data: bytes, limits: FileLimits) -> Format:
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError, EOFError) as problem:
        raise Refused(Status.corrupt, "It is damaged and cannot be unpacked; get a fresh copy.") from problem
    expanded = sum(member.file_size for member in members)
    if expanded > limits.expanded_bytes or len(members) > 100_000:
        why = f"It unpacks to {expanded:,} bytes in {len(members):,} parts, more than the limit; split it."
        raise Refused(Status.too_large, why)
    if expanded > 10_000_000 and expanded > limits.expansion * len(data):
        why = f"It unpacks to {expanded // max(len(data), 1):,} times its size, as files made to do harm do; leave it out."
        raise Refused(Status.too_large, why)
    names = {member.filename.lstrip("/").replace("\\", "/") for member in members}
    if any(member.flag_bits & 1 for member in members):
        raise Refused(Status.encrypted, LOCKED)
    declared = ""
    if "mimetype" in names:
        try:
            with archive.open("mimetype") as file:
                declared = file.read(200).decode("latin-1").strip()
        except (zipfile.BadZipFile, KeyError, OSError, NotImplementedError, RuntimeError):
            declared = ""
    if declared.startswith("application/vnd.oasis.opendocument"):
        raise Refused(Status.unsupported, OPEN_DOCUMENT)
    for each in FORMATS:
        by_member = each.member and any(member.startswith(each.member) for member in names)
        if by_member or (each.media_type and each.media_type == declared):
            return each
    if "[Content_Types].xml" in names:
        raise Refused(
            Status.corrupt, "It is an Office file with parts missing; open it, let it be repaired, and save it."
        )
    raise Refused(Status.unsupported, ARCHIVE)
