"""Reads pages that are pictures by OCR, if the user asks for it. Nothing is ever downloaded.

RapidOCR reads them inside the sandbox (`ingest/pdf/recognise.py`), or the program `tesseract` beside it; the words and their
boxes then go the way of words that a PDF says itself.
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
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from assay.core.printable import clean_text
from assay.core.types import Document
from assay.ingest.parsed import FileLimits, PageBox, Parsed, Status, Unreadable
from assay.ingest.sandbox.restrictions import confined, readable_paths
from assay.ingest.sandbox.runner import Sandbox
from assay.ingest.scan import SeenPage, SeenWord, scanned_boxes

PROGRAM = "tesseract"
OCR_LANGUAGES = "ocr"  # metadata key: read through OCR, in these languages
SCALE = 300 / 72  # the resolution that tesseract was trained on
LEAST_CONFIDENCE = 20.0  # of 100: below it, the result is noise
PAGE_SECONDS = 60.0
MISSING = (
    "Its pages are pictures without text, and nothing is installed that reads them; run: pip install 'assay[ocr]' "
    "(for languages without Latin, Chinese or Japanese letters, the program tesseract)."
)
# One model, PP-OCRv6, has all their letters.
READ_BY_RAPIDOCR = frozenset(
    "afr bos cat ces chi_sim chi_tra cym dan deu eng est eus fin fra gle glg hrv hun ind isl ita jpn lat lav lit mlt msa nld "
    "nor oci pol por ron slk slv spa sqi srp_latn swa swe tgl tur".split()
)
TOO_SLOW = f"OCR took longer than {PAGE_SECONDS:.0f} seconds on a page; scan it at a lower resolution."
LANGUAGES = re.compile(r"[A-Za-z_]{2,30}(?:\+[A-Za-z_]{2,30})*")


def find_tesseract() -> str | None:
    """The path of tesseract, if it is installed."""
    return shutil.which(PROGRAM)


def find_engine(languages: str) -> str:
    """What reads scans in these languages: `rapidocr`, which the extra `ocr` brings, or the program tesseract for others and
    where the extra is missing; empty if there is nothing."""
    known = READ_BY_RAPIDOCR.issuperset(languages.split("+"))
    if known and find_spec("rapidocr") is not None:
        return "rapidocr"
    return PROGRAM if find_tesseract() else ""


@dataclass(frozen=True, slots=True)
class OcrReader:
    """Reads files in a sandbox, and pages that are pictures through OCR. `languages` uses tesseract's codes: `eng+deu`."""

    sandbox: Sandbox
    languages: str = "eng"

    async def read(self, data: Path | bytes, name: str) -> Parsed | Unreadable:
        parsed = await self.sandbox.read(data, name)
        unread = parsed.unread if isinstance(parsed, Parsed) else ()
        if isinstance(parsed, Unreadable):
            if parsed.status is not Status.scanned:
                return parsed
            unread = await self.sandbox.pictures(data)
        if isinstance(unread, Unreadable) or not unread:
            return unread if isinstance(unread, Unreadable) else parsed
        engine = find_engine(self.languages)
        if not engine:
            return parsed if isinstance(parsed, Parsed) else Unreadable(Status.scanned, MISSING)
        seen: list[SeenPage] = []
        failed: dict[int, Unreadable] = {}
        for page in unread:
            found = await self._see(engine, data, page)
            if isinstance(found, Unreadable):
                failed[page] = found
            else:
                seen.append(found)
        if not seen:
            return parsed if isinstance(parsed, Parsed) else next(iter(failed.values()))
        whole = await self.sandbox.read_seen(data, name, seen)
        if isinstance(whole, Unreadable):
            return parsed if isinstance(parsed, Parsed) else whole
        lost = [f"Page {page} was not read. {each.why}" for page, each in failed.items()]
        return replace(whole, meta={**whole.meta, OCR_LANGUAGES: self.languages}, warnings=(*lost, *whole.warnings))

    async def _see(self, engine: str, data: Path | bytes, page: int) -> SeenPage | Unreadable:
        if engine != PROGRAM:
            return await self.sandbox.recognise(data, page)
        picture = await self.sandbox.page_image(data, page, scale=SCALE)
        if isinstance(picture, Unreadable):
            return picture
        return await asyncio.to_thread(run_tesseract, picture, page, self.languages, self.sandbox.limits)


async def find_boxes(document: Document, data: bytes, start: int, end: int, limits: FileLimits) -> list[PageBox]:
    """The boxes of a span on the pages of a PDF, scanned or not; empty if they cannot be determined."""
    if found := scanned_boxes(document.scan, start, end):
        return found
    words = document.text[start:end]
    with Sandbox(limits=limits) as sandbox:
        boxes = await sandbox.boxes(data, start, end, words, document.pages, mixed=bool(document.scan))
    return boxes if isinstance(boxes, list) else []


def run_tesseract(picture: bytes, page: int, languages: str, limits: FileLimits) -> SeenPage | Unreadable:
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
    return parse_table(table.decode("utf-8", "replace"), page)


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


def parse_table(table: str, page: int) -> SeenPage:
    """The page from tesseract's TSV output."""
    width = height = 1.0
    lines: dict[tuple[str, ...], int] = {}
    found: list[SeenWord] = []
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
        if level == 5 and text and confidence >= LEAST_CONFIDENCE:
            line = lines.setdefault(tuple(cells[2:5]), len(lines))
            x0, y0, x1, y1 = left, top, left + wide, top + high
            shown = (x0 / width, y0 / height, x1 / width, y1 / height)
            points = (x0 / SCALE, y0 / SCALE, x1 / SCALE, y1 / SCALE)
            found.append(SeenWord(text, line, *points, shown, confidence / 100))
    return SeenPage(page, width / SCALE, height / SCALE, tuple(found))
