"""Opens zip files and the XML inside them within the limits of a file.

Word, PowerPoint, Excel and EPUB files are zips of XML; their parsers read the members through this module.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote

from assay.ingest.metadata import file_fields
from assay.ingest.parsed import FileLimits, Refused, Status

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

LOCKED = "It is locked with a password; save a copy without one and add that."
_MEMBERS = 50_000
CHARACTERS = {"tab": " ", "ptab": " ", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}  # that are elements of their own
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


@contextmanager
def refuse_damaged(what: str) -> Iterator[None]:
    """Turns any exception that a broken file causes in a parser into a refusal of one sentence; MemoryError is passed on."""
    try:
        yield
    except (Refused, MemoryError):
        raise
    except Exception as error:
        raise Refused(
            Status.corrupt, f"It is damaged and cannot be read as {what}; open it in its own program and save it again."
        ) from error


@dataclass(frozen=True, slots=True)
class Archive:
    """The members of a zip by name, within limits."""

    zip: zipfile.ZipFile
    names: dict[str, str]  # normalised name (lower case, no leading slash) → stored name

    def __contains__(self, name: str) -> bool:
        return _key(name) in self.names

    def read(self, name: str) -> bytes:
        """A member's bytes; empty if it does not exist."""
        stored = self.names.get(_key(name))
        return self.zip.read(stored) if stored else b""

    def open(self, name: str) -> IO[bytes]:
        return self.zip.open(self.names[_key(name)])

    def xml(self, name: str) -> Element | None:
        """A member's root element; None if it does not exist."""
        data = self.read(name)
        return parse_xml(data) if data else None

    def side_xml(self, name: str) -> Element | None:
        """The same for an optional part: a broken one counts as missing."""
        try:
            return self.xml(name)
        except (Refused, SyntaxError, ValueError, zipfile.BadZipFile):
            return None

    def links(self, name: str) -> dict[str, tuple[str, str]]:
        """The relationships of an Office part: id → (last segment of the type, member)."""
        folder, base = posixpath.split(name)
        root = self.xml(f"{folder}/_rels/{base}.rels")
        found: dict[str, tuple[str, str]] = {}
        for link in children(root, "Relationship"):
            if link.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, link.get("Target", ""))).lstrip("/")
                found[link.get("Id", "")] = (link.get("Type", "").rpartition("/")[2], target)
        return found

    def linked(self, name: str, kind: str) -> str:
        """The member that a part is related to by this kind; empty if there is none."""
        return next((target for found, target in self.links(name).values() if found == kind), "")


def open_archive(data: bytes, limits: FileLimits) -> Archive:
    """Open a zip after checking its directory; nothing is unpacked yet."""
    try:
        opened = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, OverflowError, OSError, NotImplementedError, EOFError) as error:
        raise Refused(Status.corrupt, "It is damaged and cannot be unpacked; get a fresh copy.") from error
    members = opened.infolist()
    expanded = sum(member.file_size for member in members)
    if expanded > limits.expanded_bytes or len(members) > _MEMBERS:
        why = f"It unpacks to {expanded:,} bytes in {len(members):,} parts, more than the limit; split it."
        raise Refused(Status.too_large, why)
    if expanded > 10_000_000 and expanded > limits.expansion * len(data):
        why = f"It unpacks to {expanded // max(len(data), 1):,} times its size, as files made to do harm do; leave it out."
        raise Refused(Status.too_large, why)
    if any(member.flag_bits & 1 for member in members):
        raise Refused(Status.encrypted, LOCKED)
    return Archive(opened, {_key(member.filename): member.filename for member in members})


def _key(name: str) -> str:
    return unquote(name).replace("\\", "/").lstrip("/").lower()


def parse_xml(data: bytes) -> Element:
    """Parse untrusted XML: no entities, no network, limited tree size."""
    from lxml.etree import XMLParser, fromstring

    head = data[:65536]
    if b"<!ENTITY" in head or "<!ENTITY".encode("utf-16-le") in head or "<!ENTITY".encode("utf-16-be") in head:
        raise Refused(
            Status.corrupt, "It defines XML entities, which no such file needs; save it again in its own program."
        )
    parser = XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True)
    return fromstring(data, parser)


def local_name(element: Element) -> str:
    """An element's name without its namespace, in which alone transitional and strict Office files differ."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: Element | None, name: str) -> str:
    """An attribute's value, in any namespace; empty if there is none."""
    if element is None:
        return ""
    if (plain := element.get(name)) is not None:
        return plain
    return next((value for key, value in element.items() if key.rpartition("}")[2] == name), "")


def child(element: Element | None, *path: str) -> Element | None:
    """The first element at a path of local names."""
    return element.find("/".join(f"{{*}}{name}" for name in path)) if element is not None else None


def value(element: Element | None, *path: str) -> str:
    """The attribute `val` of the element at a path of local names; empty if there is none."""
    return attribute(child(element, *path), "val")


def children(element: Element | None, *names: str) -> Iterable[Element]:
    """The elements directly inside, with one of these local names if any are given."""
    return () if element is None else element.iterchildren(*(f"{{*}}{name}" for name in names))


def inside(element: Element | None, *names: str) -> Iterable[Element]:
    """An element and all elements inside that have one of these local names."""
    return () if element is None else element.iter(*(f"{{*}}{name}" for name in names))


def joined_text(element: Element | None, *names: str, by: str = " ") -> str:
    """The text of all elements inside with these local names, `t` if none are given."""
    return by.join(part.text or "" for part in inside(element, *(names or ("t",))))


def office_properties(archive: Archive) -> dict[str, Any]:
    """Title, authors, date and language that an Office file declares, as far as they are plausible."""
    root = archive.side_xml(archive.linked("", "core-properties") or "docProps/core.xml")
    fields = {local_name(field): field.text or "" for field in children(root)}
    created, modified = (file_fields.parse_date(fields.get(name, "")) for name in ("created", "modified"))
    # One that was modified in a later year was probably created from another document.
    copied = created and modified and modified[:4] > created[:4]
    return {
        "title": file_fields.plausible_title(fields.get("title", "")),
        "authors": file_fields.parse_authors(fields.get("creator", "")),
        "date": modified if copied else created or modified,
        "language": fields.get("language", "").split("-")[0].lower() or None,
    }


SAME_COLOUR = "in the colour of the background"
CLOSE = 12  # of 255: colours that a reader cannot tell apart


def same_colour(ink: str, ground: str | None) -> bool:
    """Whether a reader cannot tell text from its background. Colours are six hexadecimal digits; others are not known."""
    if ground is None or not re.fullmatch(r"[0-9A-Fa-f]{6}", ink):
        return False
    parts = zip(bytes.fromhex(ink), bytes.fromhex(ground), strict=True)
    return max(abs(one - other) for one, other in parts) <= CLOSE


def whole(number: str, unsaid: int = 0) -> int:
    """A number that a file gives; `unsaid` if it is none."""
    return int(number) if re.fullmatch(r"\s*-?[0-9]{1,18}\s*", number) else unsaid


def formula(element: Element | None) -> str:
    """The formula under an element; parts without a linear form are written one after the other."""
    if element is None:
        return ""
    name = local_name(element)
    if name == "t":
        return element.text or ""
    if name.endswith("Pr"):
        return ""
    part = defaultdict(str, {local_name(found): formula(found) for found in children(element, *_PARTS)})
    below = f"_{_grouped(part['sub'])}" if part["sub"] else ""
    above = f"^{_grouped(part['sup'])}" if part["sup"] else ""
    if name == "d":
        opening = value(element, "dPr", "begChr") if child(element, "dPr", "begChr") is not None else "("
        closing = {"(": ")", "[": "]", "{": "}", "|": "|"}.get(opening, "")
        return opening + ", ".join(map(formula, children(element, "e"))) + closing
    if name == "mr":
        return ", ".join(formula(found) for found in element) + "; "
    sign = value(element, "naryPr", "chr") if child(element, "naryPr", "chr") is not None else "∫"
    forms = {
        "f": f"{_grouped(part['num'])}/{_grouped(part['den'])}",
        "rad": f"{part['deg']}√({part['e']})",
        "nary": f"{sign}{below}{above} {part['e']}",
        "func": f"{part['fName']} {part['e']}",
        **dict.fromkeys(("sSup", "sSub", "sSubSup", "sPre"), part["e"] + below + above),
    }
    return forms[name] if name in forms else "".join(formula(found) for found in element)


_PARTS = ("num", "den", "e", "sub", "sup", "deg", "fName")


def _grouped(text: str) -> str:
    return text if len(text) <= 1 or text.isalnum() else f"({text})"
