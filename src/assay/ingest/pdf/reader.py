"""PDF → text in reading order, and spans of the text → boxes on pages. One engine does both.

Reading is deterministic: the same bytes give the same text, so boxes computed later match offsets stored earlier.
"""

from __future__ import annotations

import ctypes
import re
import struct
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pypdfium2 as pdfium
import pypdfium2.raw as raw

from assay.core.types import SEAMS
from assay.ingest import parsed
from assay.ingest.figures import names_figure
from assay.ingest.formats.archive import LOCKED
from assay.ingest.metadata.fill import read_front_page
from assay.ingest.parsed import FileLimits, HiddenText, PageBox, Parsed, Refused, Status
from assay.ingest.pdf.build_text import PdfText, build_text, fold_title
from assay.ingest.pdf.c_functions import Box, PdfFunctions, page_frame
from assay.ingest.pdf.figures import find_figures
from assay.ingest.pdf.ink import find_ink
from assay.ingest.pdf.layout import TextRun, order_lines, rotated_lines, rows_of, split_runs
from assay.ingest.pdf.page import PageContent, PdfWord, read_page
from assay.ingest.pdf.picture import is_picture, open_picture
from assay.ingest.pdf.unseen import Surveyor, has_layered_forms
from assay.ingest.scan import SeenPage, marked_tables, pack, remarks, slope_of, straightened

TOO_LONG = "Only {read:,} of its {all:,} pages were read: all would take more than {seconds:.0f} seconds; split it."
SCANNED = "Its pages are pictures without text; read it with OCR, or export it with its text."
PICTURE = "It is a picture; read it with OCR, or describe it in words."
NOTHING_SEEN = "OCR found no words on its pages; check that this is the right file."
UNCHECKED = "Not all of its text was checked for words that no reader sees{where}: too much is drawn there."
EDGE = 0.11  # of the page's height: the area of running heads and feet
PAGE_NUMBER = re.compile(
    r"[-–—|\s]*(?:(?:page|seite|p\.)\s*)?(?:\d{1,4}|[ivxl]{1,6})(?:\s*(?:of|/|von|de)\s*\d{1,4})?[-–—|\s]*",
    re.IGNORECASE,
)
FEW_WORDS = 12  # an image with fewer words beside it is an image of a page
MOST_PIXELS = 40_000_000  # of an image for OCR
SEEN_SIDE = 2000  # pixels of the longer side of a page that RapidOCR is shown
INK_SIDE = 840  # pixels of the longer side of a page on which drawings are looked for
SHOWN_PIXELS = 12_000_000  # of an image that is shown: a page of the maximum width, and four times as high
WHOLE_PAGE = (0.0, 0.0, 1.0, 1.0)
LARGEST_SCALE = 3.0  # pixels per point of a part of a page
ENOUGH = 12  # pages; in longer documents only those around a span are read
AROUND = 2  # pages before and after it
SLACK = 300  # characters by which the start of a page may differ: a running head and foot
MOST_ALIKE = 100


@dataclass(frozen=True, slots=True)
class PdfReading:
    """A parsed document: its text, and the position of every word."""

    built: PdfText
    sheets: tuple[PageContent, ...]
    meta: dict[str, str]
    warnings: tuple[str, ...] = ()

    @property
    def hidden(self) -> Iterator[HiddenText]:
        return (each for sheet in self.sheets for each in sheet.hidden)

    @property
    def pictures(self) -> tuple[int, ...]:
        """Pages, counted from 0, that are images of text."""
        return tuple(
            number
            for number, sheet in enumerate(self.sheets)
            if sheet.picture and len(sheet.words) + len(sheet.sideways) < FEW_WORDS
        )


def parse(data: bytes, name: str, limits: FileLimits, seen: Sequence[SeenPage] = ()) -> Parsed:
    """`seen` are pages that OCR read; they replace those in the file."""
    if not seen and is_picture(data):
        raise Refused(Status.scanned, PICTURE)
    reading = read(data, limits, seen=seen)
    built = reading.built
    if seen and not built.text.strip():
        raise Refused(Status.empty, NOTHING_SEEN)
    blank = not built.text.strip()
    if blank and not reading.pictures and not any(sheet.unmapped for sheet in reading.sheets):
        raise Refused(Status.empty, "Its pages are blank; check that this is the right file.")
    if blank or (not seen and len(reading.pictures) >= 0.9 * len(reading.sheets)):
        raise Refused(Status.scanned, SCANNED)
    at = built.words
    places = pack(zip(at.start, at.length, at.page, at.first, strict=True), seen)
    facts, body = read_front_page(built.text, built.sections, built.front, reading.meta)
    return Parsed(
        text=built.text,
        kind="picture" if is_picture(data) else "pdf",
        **facts,
        sections=tuple(section for section in built.sections if section.start >= body),
        pages=built.pages,
        meta={key: value for key, value in reading.meta.items() if key in {"doi", "running_head", SEAMS}}
        | parsed.hidden_meta(reading.hidden),
        warnings=(*remarks(seen), *reading.warnings),
        tables=marked_tables(built.tables, places),
        unread=tuple(number + 1 for number in reading.pictures),
        scan=places,
        figures=find_figures(built.text, built.lines, reading.sheets),
    )


def open_document(data: bytes) -> pdfium.PdfDocument:
    """Open a file, with the empty user password of copy-protected files. A picture is a document of pictures."""
    if is_picture(data):
        return open_picture(data)
    try:
        document = pdfium.PdfDocument(data)
        pages = len(document)
    except pdfium.PdfiumError as problem:
        if getattr(problem, "err_code", None) in {raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY}:
            raise Refused(Status.encrypted, LOCKED) from problem
        raise Refused(
            Status.corrupt, "It is damaged and cannot be opened as a PDF; get a fresh copy or print it to PDF again."
        ) from problem
    if pages == 0:
        raise Refused(Status.corrupt, "It is a PDF without pages; get a fresh copy.")
    return document


def read(data: bytes, limits: FileLimits, only: range | None = None, seen: Sequence[SeenPage] = ()) -> PdfReading:
    """Parse the document. Raises `Refused` if there is nothing to read. Pages outside `only` are treated as blank; those that
    OCR has `seen` have its words."""
    with closing(open_document(data)) as document:
        limits.check(pages=len(document))
        sheets, broken, unread = _sheets(document, limits, only, has_layered_forms(data))
        outline, meta = _outline(document), _declared(document)
        for each in seen:
            sheets[each.page - 1] = _seen_sheet(each, document)
    pages = [split_runs(sheet.words) for sheet in sheets]
    marked = find_running_heads(sheets, pages)
    lines = [
        order_lines([run for run in runs if id(run) not in gone], sheet.shapes)
        for sheet, runs, gone in zip(sheets, pages, marked, strict=True)
    ]
    heads = {run.text for runs, gone in zip(pages, marked, strict=True) for run in runs if id(run) in gone}
    heads = {head for head in heads if sum(map(str.isalpha, head)) > 3}
    if heads:
        meta["running_head"] = "; ".join(sorted(heads))[:300]
    turned = [rotated_lines(sheet) for sheet in sheets]
    built = build_text(lines, turned, [sheet.height for sheet in sheets], outline)
    if built.seams:
        meta[SEAMS] = " ".join(map(str, built.seams))
    reading = PdfReading(built, tuple(sheets), meta)
    cut = [TOO_LONG.format(read=len(sheets) - unread, all=len(sheets), seconds=limits.seconds)] if unread else []
    return replace(reading, warnings=(*cut, *_warnings(reading, broken)))


def _sheets(
    document: pdfium.PdfDocument, limits: FileLimits, only: range | None, layered: bool = False
) -> tuple[list[PageContent], int, int]:
    """The pages, how many of them cannot be opened, and how many at the end there was no time for: both are blank."""
    engine = PdfFunctions()
    surveyor = Surveyor(engine, layered)
    sheets: list[PageContent] = []
    broken = characters = unread = 0
    for index in range(len(document)):
        unread += limits.late
        if limits.late or (only is not None and index not in only):
            sheets.append(PageContent(0.0, 0.0, ()))
            continue
        page = raw.FPDF_LoadPage(document.raw, index)
        if not page:
            broken += 1
            sheets.append(PageContent(0.0, 0.0, ()))
            continue
        try:
            sheets.append(read_page(engine, page, surveyor, index + 1))
        finally:
            raw.FPDF_ClosePage(page)
        characters += sum(len(word.text) + 1 for word in sheets[-1].words)
        limits.check(characters=characters)
    if broken == len(sheets):
        raise Refused(Status.corrupt, "None of its pages can be opened; get a fresh copy or print it to PDF again.")
    return sheets, broken, unread


def _warnings(reading: PdfReading, broken: int) -> list[str]:
    total, warnings = len(reading.sheets), []
    pictures = len(reading.pictures)
    if pictures:
        warnings.append(f"{pictures} of {total} pages {parsed.UNREAD}")
    if hidden := parsed.describe_hidden(reading.hidden):
        warnings.append(hidden)
    if unchecked := [number for number, sheet in enumerate(reading.sheets, 1) if sheet.unchecked]:
        warnings.append(UNCHECKED.format(where=parsed.listed_pages(unchecked)))
    if reading.built.seams:
        where = sorted({bisect_right(reading.built.pages, seam) for seam in reading.built.seams})
        listed = ", ".join(map(str, where[:8])) + (" and others" if len(where) > 8 else "")
        warnings.append(f"The order of the text is uncertain (page {listed}); nothing is quoted across such a place.")
    if broken:
        warnings.append(f"{broken} of {total} pages are damaged and were not read.")
    unmapped = sum(sheet.unmapped for sheet in reading.sheets)
    if unmapped > 0.02 * len(reading.built.text):
        warnings.append(f"{unmapped} characters have no letters in the file and were left out; OCR may read them.")
    return warnings


def _outline(document: pdfium.PdfDocument) -> dict[tuple[int, str], int]:
    found: dict[tuple[int, str], int] = {}
    try:
        for count, item in enumerate(document.get_toc(max_depth=6)):
            destination = item.get_dest()
            page = destination.get_index() if destination else None
            if page is not None and (title := fold_title(item.get_title())):
                found.setdefault((page, title), item.level + 1)
            if count > 5_000:
                break
    except pdfium.PdfiumError:
        return found  # a broken table of contents is ignored
    return found


def _declared(document: pdfium.PdfDocument) -> dict[str, str]:
    try:
        fields = document.get_metadata_dict(skip_empty=True)
    except pdfium.PdfiumError:
        return {}
    return {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower(): str(value) for key, value in fields.items()}


def find_running_heads(sheets: Sequence[PageContent], pages: Sequence[list[TextRun]]) -> list[set[int]]:
    """For each page, which runs (by `id`) are running heads, feet or page numbers."""
    seen: Counter[tuple[str, int]] = Counter()
    edges: list[list[list[TextRun]]] = []
    known: set[str] = set()
    distinct = 0
    for sheet, runs in zip(sheets, pages, strict=True):
        whole = " ".join(run.text for run in runs)
        fresh = bool(whole) and whole not in known  # a page that occurs twice repeats all of its text
        known.add(whole)
        distinct += fresh
        edges.append(_edge_rows(runs, sheet.height))
        if fresh:
            seen.update({_mark(row) for row in edges[-1]})
    often = 2 if distinct == 2 else max(3, distinct // 5)
    heads = [[row for row in rows if distinct > 1 and _count(seen, _mark(row)) >= often] for rows in edges]
    emptied = sum(bool(runs) and sum(map(len, gone)) == len(runs) for runs, gone in zip(pages, heads, strict=True))
    if emptied * 2 > distinct:  # pages of one line each: that line is content
        heads = [[] for _ in pages]
    marked: list[set[int]] = []
    for sheet, runs, rows, gone in zip(sheets, pages, edges, heads, strict=True):
        numbers = [row for row in rows if len(row) == 1 and PAGE_NUMBER.fullmatch(row[0].text)]
        gone = [*gone, *numbers, *_page_number(runs, sheet.height)]
        marked.append({id(run) for row in gone for run in row})
    return marked


def _edge_rows(runs: list[TextRun], height: float) -> list[list[TextRun]]:
    """The outermost two lines at the top and at the bottom, if they are in the area of heads and feet."""
    top = rows_of([run for run in runs if run.y1 <= EDGE * height])
    bottom = rows_of([run for run in runs if run.y0 >= (1 - EDGE) * height])
    return top[:2] + bottom[-2:]


def _page_number(runs: list[TextRun], height: float) -> list[list[TextRun]]:
    """A bare number below everything else, in case wide margins put it higher than other feet."""
    lowest = max(runs, key=lambda run: run.y0, default=None)
    if lowest is None or lowest.y0 < 0.82 * height or not lowest.text.isdigit() or len(lowest.text) > 4:
        return []
    alone = all(other is lowest or other.y1 < lowest.y0 - 0.8 * (lowest.y1 - lowest.y0) for other in runs)
    return [[lowest]] if alone and len(runs) > 3 else []


def _mark(row: list[TextRun]) -> tuple[str, int]:
    words = " ".join(run.text for run in row)
    return re.sub(r"\d+", "#", words.casefold()), round(row[0].y0 / 8)


def _count(seen: Counter[tuple[str, int]], mark: tuple[str, int]) -> int:
    words, place = mark
    return seen[mark] + max(seen[(words, place - 1)], seen[(words, place + 1)])


def find_boxes(data: bytes, start: int, end: int, reading: PdfReading | None = None) -> list[PageBox]:
    """The boxes of `text[start:end]`: one per line or column it touches. Pass a `reading` to avoid parsing again."""
    by_page: dict[int, list[tuple[int, int]]] = {}
    for page, first, last in (reading or read(data, FileLimits())).built.words.within(start, end):
        by_page.setdefault(page, []).append((first, last))
    functions, found = PdfFunctions(), []
    with closing(open_document(data)) as document:
        for number, stretches in by_page.items():
            page = raw.FPDF_LoadPage(document.raw, number)
            handle = raw.FPDFText_LoadPage(page)
            try:
                frame = page_frame(page)
                rows = frame.shown(_edges(functions, handle, stretches))
                found.extend(_joined(number + 1, rows, frame.size))
            finally:
                raw.FPDFText_ClosePage(handle)
                raw.FPDF_ClosePage(page)
    return found


def _edges(engine: PdfFunctions, handle: Any, stretches: list[tuple[int, int]]) -> np.ndarray:
    """One box around the ink of each range of characters."""
    text_page = ctypes.cast(handle, ctypes.c_void_p).value
    four = (ctypes.c_double * 4)()
    at = ctypes.addressof(four)
    edges: list[tuple[float, float, float, float]] = []
    for first, last in stretches:
        inked: list[tuple[float, float, float, float]] = []
        for index in range(first, last):
            if engine.tight(text_page, index, at, at + 8, at + 16, at + 24):  # left, right, bottom, top
                inked.append((four[0], four[2], four[1], four[3]))
        if inked:
            lows, highs = np.min(inked, axis=0), np.max(inked, axis=0)
            edges.append((lows[0], lows[1], highs[2], highs[3]))
    return np.array(edges, dtype=np.float64).reshape(-1, 4)


def _joined(page: int, rows: np.ndarray, size: tuple[float, float]) -> list[PageBox]:
    """Merges neighbouring boxes on a line."""
    joined: list[list[float]] = []
    for x0, y0, x1, y1 in rows.tolist():
        if joined:
            last = joined[-1]
            height = max(last[3] - last[1], y1 - y0, 1.0)
            level = (
                min(last[3], y1) - max(last[1], y0) > -0.2 * height and abs((y0 + y1) - (last[1] + last[3])) < height
            )
            if level and -height < x0 - last[2] < 1.5 * height:
                joined[-1] = [min(last[0], x0), min(last[1], y0), max(last[2], x1), max(last[3], y1)]
                continue
        joined.append([x0, y0, x1, y1])
    width, height = max(size[0], 1.0), max(size[1], 1.0)
    return [PageBox(page, x0 / width, y0 / height, x1 / width, y1 / height) for x0, y0, x1, y1 in joined]


@dataclass(slots=True)
class OpenPdf:
    """The file of the last request, parsed once for many page images and citations. The same file is the same object, since its
    process keeps the bytes."""

    data: bytes = b""
    document: pdfium.PdfDocument | None = None
    reading: PdfReading | None = None
    limits: FileLimits = field(default_factory=FileLimits)

    def opened(self, data: bytes) -> pdfium.PdfDocument:
        if self.document is None or self.data is not data:
            if self.document is not None:
                self.document.close()
            self.data, self.document, self.reading = b"", None, None
            self.document, self.data = open_document(data), data
        return self.document

    def pictures(self, data: bytes) -> list[int]:
        """The pages, counted from 1, that are pictures of text."""
        self.opened(data)
        self.reading = self.reading or read(self.data, self.limits)
        return [number + 1 for number in self.reading.pictures]

    def recognise(self, data: bytes, page: int) -> SeenPage:
        """What OCR sees on a page, counted from 1."""
        from assay.ingest.pdf.recognise import recognise

        with closing(self.opened(data)[page - 1]) as shown:
            width, height = (max(size, 1.0) for size in shown.get_size())
            scale = SEEN_SIDE / max(width, height)
            pixels = shown.render(scale=cast(Any, scale), rev_byteorder=True, prefer_bgrx=False).to_numpy()
            return recognise(pixels[:, :, :3], page, width, height)

    def page_image(
        self, data: bytes, page: int, scale: float = 0.0, width: int = 0, box: Sequence[float] = WHOLE_PAGE
    ) -> bytes:
        """A page, counted from 1, or a part of it, as a PNG: of this width or with `scale` pixels per point, fewer if it would
        have too many. `width` is also the most that a part is high."""
        document = self.opened(data)
        if not 1 <= page <= len(document):
            raise Refused(Status.unreadable, f"It has {len(document)} pages; there is no page {page}.")
        with closing(document[page - 1]) as shown:
            wide, high = shown.get_size()
            x0, y0, x1, y1 = box
            across, down = max((x1 - x0) * wide, 1.0), max((y1 - y0) * high, 1.0)
            most = SHOWN_PIXELS if width else MOST_PIXELS
            scale = min(width / across if width else scale, (most / (across * down)) ** 0.5)
            if box != WHOLE_PAGE:
                scale = min(scale, width / down, LARGEST_SCALE)
            cut = (x0 * wide, (1 - y1) * high, (1 - x1) * wide, y0 * high)
            pixels = shown.render(scale=cast(Any, scale), crop=cut, rev_byteorder=True, prefer_bgrx=False).to_numpy()
            return encode_png(np.ascontiguousarray(pixels[:, :, :3]))

    def boxes(
        self, data: bytes, start: int, end: int, words: str = "", pages: Sequence[int] = (), mixed: bool = False
    ) -> list[PageBox]:
        """The boxes of a span of the text. To avoid parsing a whole book, only the pages around the span are read first;
        the result is used if the same words are at the same position there. `mixed`: OCR read other pages, so that offsets
        hold within a page only.
        """
        self.opened(data)
        if mixed or (self.reading is None and words and len(pages) > ENOUGH):
            first, last = bisect_right(pages, start) - 1, bisect_right(pages, end - 1) - 1
            around = read(self.data, self.limits, only=range(first - AROUND, last + AROUND + 1))
            at = _place(around.built.text, words, around.built.pages[first], start - pages[first])
            if at is not None:
                found = find_boxes(self.data, at, at + len(words), around)
                if found and all(first < box.page <= last + 1 for box in found):
                    return found
        if mixed:
            return []
        if self.reading is None:
            self.reading = read(self.data, self.limits)
        return find_boxes(self.data, start, end, self.reading)


def _place(text: str, words: str, page: int, offset: int) -> int | None:
    """Where `words` occur exactly `offset` characters into the page, or their only occurrence, if within `SLACK` of
    that; else None. The rest of the page may differ slightly, for example by a line at its head.
    """
    at, found = text.find(words, page), list[int]()
    while at != -1 and len(found) < MOST_ALIKE:
        found.append(at)
        at = text.find(words, at + 1)
    near = sorted((abs(each - page - offset), each) for each in found)
    if not near or near[0][0] > SLACK or (len(near) > 1 and near[0][0] == near[1][0]):
        return None
    return near[0][1] if near[0][0] == 0 or len(near) == 1 else None


def encode_png(pixels: np.ndarray) -> bytes:
    """A PNG file of RGB rows."""
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 3 * width), dtype=np.uint8)  # each row starts with its filter type: none
    rows[:, 1:] = pixels.reshape(height, 3 * width)

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    packed = zlib.compress(rows.tobytes(), 6)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def _seen_sheet(seen: SeenPage, document: pdfium.PdfDocument) -> PageContent:
    """The page as if its words were written in the file, and as if what is beside them were drawn there."""
    words = tuple(
        PdfWord(each.text, at, at + 1, each.x0, each.y0, each.x1, each.y1, each.y1 - each.y0, False, each.line)
        for at, each in enumerate(straightened(seen.words))
    )
    names = names_figure(" ".join(each.text for each in words))
    drawn = _drawn_beside(seen, document) if names else ()
    return PageContent(seen.width, seen.height, words, drawn=drawn, seen=seen)


def _drawn_beside(seen: SeenPage, document: pdfium.PdfDocument) -> tuple[Box, ...]:
    """The boxes of what is drawn on a page that OCR read, as if the page was laid straight."""
    with closing(document[seen.page - 1]) as page:
        scale = INK_SIDE / max(*page.get_size(), 1.0)
        grey = page.render(scale=cast(Any, scale), grayscale=True).to_numpy()
    upright = np.rot90(grey.reshape(grey.shape[:2]), seen.turns)
    words = [(each.x0 * scale, each.y0 * scale, each.x1 * scale, each.y1 * scale) for each in seen.words]
    slope = slope_of(seen.words)
    boxes = [tuple(edge / scale for edge in box) for box in find_ink(upright, words)]
    off = [slope * (box[0] + box[2]) / 2 for box in boxes]
    return tuple((x0, y0 - by, x1, y1 - by) for (x0, y0, x1, y1), by in zip(boxes, off, strict=True))
