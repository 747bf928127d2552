"""Reads scanned PDFs with a local OCR program, if the user asks for it. Nothing is ever downloaded.

Pages are rendered inside the sandbox and read by `tesseract`, if it is installed; its word boxes become text and positions.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from assay.core.printable import clean_text
from assay.core.types import Document
from assay.ingest.parsed import FileLimits, PageBox, Parsed, Status, Unreadable
from assay.ingest.sandbox.restrictions import confined, readable_paths
from assay.ingest.sandbox.runner import Sandbox

PROGRAM = "tesseract"
OCR_LANGUAGES = "ocr"  # metadata key: read through OCR, in these languages
SCALE = 300 / 72  # the resolution that tesseract was trained on
LEAST_CONFIDENCE = 20.0  # of 100: below it, the result is noise
PAGE_SECONDS = 60.0
MISSING = (
    "Its pages are pictures without text, and no OCR program is installed; install tesseract "
    "(Debian and Ubuntu: apt install tesseract-ocr; macOS: brew install tesseract; Windows: the UB Mannheim installer)."
)
TOO_SLOW = f"OCR took longer than {PAGE_SECONDS:.0f} seconds on a page; scan it at a lower resolution."
LANGUAGES = re.compile(r"[A-Za-z_]{2,30}(?:\+[A-Za-z_]{2,30})*")


@dataclass(frozen=True, slots=True)
class OcrWord:
    """A word on an image; edges are fractions of it, from the top left."""

    text: str
    line: tuple[int, int, int]  # block, paragraph, line
    x0: float
    y0: float
    x1: float
    y1: float
    confidence: float


def find_tesseract() -> str | None:
    """The path of tesseract, if it is installed."""
    return shutil.which(PROGRAM)


@dataclass(frozen=True, slots=True)
class OcrReader:
    """Reads files in a sandbox, and scans through OCR. `languages` uses tesseract's syntax: `eng+deu`."""

    sandbox: Sandbox
    languages: str = "eng"

    async def read(self, data: Path | bytes, name: str) -> Parsed | Unreadable:
        parsed = await self.sandbox.read(data, name)
        if not isinstance(parsed, Unreadable) or parsed.status is not Status.scanned:
            return parsed
        if find_tesseract() is None:
            return Unreadable(Status.scanned, MISSING)
        count = await self.sandbox.page_count(data)
        if isinstance(count, Unreadable):
            return count
        pages: list[list[OcrWord]] = []
        for page in range(1, count + 1):
            seen = await recognise_page(self.sandbox, data, page, self.languages)
            if isinstance(seen, Unreadable):
                return seen
            pages.append(seen)
        text = build_document(pages, self.sandbox.limits)
        return replace(text, meta={**text.meta, OCR_LANGUAGES: self.languages}) if isinstance(text, Parsed) else text


async def recognise_page(
    sandbox: Sandbox, source: Path | bytes, page: int, languages: str = "eng"
) -> list[OcrWord] | Unreadable:
    picture = await sandbox.page_image(source, page, scale=SCALE)
    if isinstance(picture, Unreadable):
        return picture
    return await asyncio.to_thread(run_tesseract, picture, languages, sandbox.limits)


async def ocr_boxes(
    sandbox: Sandbox, source: Path | bytes, pages: Sequence[int], start: int, end: int, languages: str = "eng"
) -> list[PageBox] | Unreadable:
    """The boxes of a span of a scan's text; `pages` are the document's page offsets. Repeats OCR on the pages of the span."""
    found: list[PageBox] = []
    for number, begin in enumerate(pages, 1):
        stop = pages[number] if number < len(pages) else end
        if begin >= end or stop <= start:
            continue
        seen = await recognise_page(sandbox, source, number, languages)
        if isinstance(seen, Unreadable):
            return seen
        for word, at, length in _spread(seen)[1]:
            if begin + at < end and begin + at + length > start:
                found.append(PageBox(number, word.x0, word.y0, word.x1, word.y1))
    return found


async def find_boxes(document: Document, data: bytes, start: int, end: int, limits: FileLimits) -> list[PageBox]:
    """The boxes of a span on the pages of a PDF, scanned or not; empty if they cannot be determined."""
    with Sandbox(limits=limits) as sandbox:
        if OCR_LANGUAGES in document.meta:
            found = await ocr_boxes(sandbox, data, document.pages, start, end, document.meta[OCR_LANGUAGES])
        else:
            found = await sandbox.boxes(data, start, end)
    return found if isinstance(found, list) else []


def run_tesseract(picture: bytes, languages: str, limits: FileLimits) -> list[OcrWord] | Unreadable:
    """Run tesseract on one image, with limits on memory and time."""
    path = find_tesseract()
    if path is None:
        return Unreadable(Status.scanned, MISSING)
    if not LANGUAGES.fullmatch(languages):
        return Unreadable(
            Status.unsupported, "The OCR language is not one tesseract knows; use its codes, such as eng+deu."
        )
    kept = {key: os.environ[key] for key in ("TESSDATA_PREFIX", "SYSTEMROOT", "LD_LIBRARY_PATH") if key in os.environ}
    process = subprocess.Popen(
        confined([path, "stdin", "stdout", "-l", languages, "tsv"], _readable(path)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8", "OMP_THREAD_LIMIT": "1", **kept},
        start_new_session=True,
    )
    _limit(process.pid, limits)  # before it has received a byte of the image
    try:
        table, complaint = process.communicate(picture, timeout=PAGE_SECONDS)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
        process.communicate()
        return Unreadable(Status.too_slow, TOO_SLOW)
    if process.returncode:
        if b"traineddata" in complaint or b"language" in complaint.lower():
            why = f"tesseract has no data for the language {languages!r}; install it, or name one that is installed."
            return Unreadable(Status.unsupported, why)
        return Unreadable(Status.crashed, "The OCR program broke down on a page; scan it again.")
    return parse_table(table.decode("utf-8", "replace"))


def _readable(path: str) -> list[str]:
    """What the program may read: libraries and language data. It may be a script, for which Python is wanted."""
    own = Path(path).resolve().parent.parent
    data = os.environ.get("TESSDATA_PREFIX")
    python = str(Path(sys.executable).resolve())
    shared = [str(own / "lib"), str(own / "share"), "/usr/share/tesseract-ocr", "/usr/share/tessdata"]
    return [*readable_paths([python, "/bin", "/usr/bin"]), *shared, *([data] if data else [])]


def _limit(pid: int, limits: FileLimits) -> None:
    if sys.platform.startswith("linux"):
        import resource

        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_AS, (limits.memory, limits.memory))
            resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
            seconds = int(PAGE_SECONDS) + 1
            resource.prlimit(pid, resource.RLIMIT_CPU, (seconds, seconds))


def parse_table(table: str) -> list[OcrWord]:
    """The words of tesseract's TSV output."""
    width = height = 0.0
    found: list[OcrWord] = []
    for row in table.splitlines()[1:]:
        cells = row.split("\t")
        if len(cells) < 11:
            continue
        try:
            level, left, top, wide, high = (int(cells[index]) for index in (0, 6, 7, 8, 9))
            confidence = float(cells[10])
        except ValueError:
            continue
        if level == 1:
            width, height = float(max(wide, 1)), float(max(high, 1))
        text = clean_text(cells[11]).strip() if len(cells) > 11 else ""
        if level == 5 and text and confidence >= LEAST_CONFIDENCE and width and height:
            line = (int(cells[2]), int(cells[3]), int(cells[4]))
            edges = (left / width, top / height, (left + wide) / width, (top + high) / height)
            found.append(OcrWord(text, line, *edges, confidence))
    return found


def _spread(seen: Sequence[OcrWord]) -> tuple[str, list[tuple[OcrWord, int, int]]]:
    """The text of a page, and the offset and length of each word in it."""
    parts: list[str] = []
    places: list[tuple[OcrWord, int, int]] = []
    at = 0
    for index, word in enumerate(seen):
        after = seen[index + 1] if index + 1 < len(seen) else None
        text, gap = word.text, ""
        if after is not None:
            gap = " " if after.line[:2] == word.line[:2] else "\n\n"
            broken = (
                after.line != word.line and gap == " " and text[-1] in "-‐" and text[:-1] and after.text[:1].islower()
            )
            if broken:
                text, gap = text[:-1], ""
        places.append((word, at, len(text)))
        parts += [text, gap]
        at += len(text) + len(gap)
    return "".join(parts), places


def build_document(pages: Sequence[Sequence[OcrWord]], limits: FileLimits) -> Parsed | Unreadable:
    """The document from the OCR words, with a note on the confidence."""
    from assay.ingest.metadata.fill import fill_metadata
    from assay.language.identify import identify_language

    offsets: list[int] = []
    parts: list[str] = []
    length = 0
    for seen in pages:
        text = _spread(seen)[0]
        gap = "\n\n" if length and text else ""
        offsets.append(length + len(gap))
        parts += [gap, text]
        length += len(gap) + len(text)
    whole = "".join(parts)
    if not whole.strip():
        return Unreadable(Status.empty, "OCR found no words on its pages; check that this is the right file.")
    if length > limits.characters:
        return Unreadable(Status.too_large, f"It holds more than {limits.characters:,} characters; split it.")
    sure = [word.confidence for seen in pages for word in seen]
    warning = f"Read by OCR, {sum(sure) / len(sure):.0f}% sure on average; quotations may be misspelled."
    parsed = Parsed(
        whole,
        "pdf",
        pages=tuple(min(at, length) for at in offsets),
        language=identify_language(whole),
        warnings=(warning,),
    )
    return fill_metadata(parsed)
