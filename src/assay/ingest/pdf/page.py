"""Extracts the words of one page from the PDF engine, with positions and styles. Nothing is ordered here.

A word is a range of the engine's own characters, so every later offset can be mapped back to a box on the page.
One call per word edge rather than several per character: the calls are most of the cost of reading.
"""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pypdfium2.raw as raw

INVISIBLE_MODES = frozenset({3, 7})  # neither fill nor stroke
SHADE = 24  # of 255: text with less contrast is invisible
SMALLEST = 1.5  # points
SOFT_BREAK = "\ufffe"  # the engine's mark for a hyphen at the end of a line; in some files it is \x02
WORD = re.compile(rf"[^\s\x00{SOFT_BREAK}]+{SOFT_BREAK}?")
LAM_ALEF = re.compile("[اأإآ]ل")
MOST_OBJECTS = 1500  # on a page that is searched for shapes
BOLD_NAME = re.compile(r"bold|black|heavy|semibd|demi|cmbx|-bd|-medi(?!um)", re.IGNORECASE)


Box = tuple[float, float, float, float]  # x0, y0, x1, y1 in points from the top left of the page as shown


@dataclass(frozen=True, slots=True)
class PdfWord:
    """Characters `first` to `last` (exclusive) of a page; the box is in points from the top left of the page as shown."""

    text: str
    first: int
    last: int
    x0: float
    y0: float
    x1: float
    y1: float
    size: float
    bold: bool
    line: int  # the engine's own line: only a hint, since it runs across columns
    breaks: bool = False  # ends in a hyphen at the end of a line


@dataclass(frozen=True, slots=True)
class PageContent:
    """One page: its words in file order, the rotated ones, and the number of invisible ones."""

    width: float
    height: float
    words: tuple[PdfWord, ...]
    sideways: tuple[PdfWord, ...] = ()
    hidden: int = 0
    unmapped: int = 0  # glyphs without a mapping to characters
    picture: bool = False  # an image fills most of the page
    shapes: tuple[Box, ...] = ()  # pictures and frames, but no lines, and nothing as large as the page


@dataclass(slots=True)
class TextStyle:
    """The style of a text object; shared by its words, so that it is queried once."""

    size: float
    bold: bool
    faint: bool  # white or transparent: its contrast has to be checked
    inkless: bool  # drawn without ink, as the text layer of a scan is


def _plain(function: Any, result: Any, *arguments: Any) -> Any:
    """The same C function with addresses as integers, which is several times faster to call than with pointer objects."""
    return ctypes.CFUNCTYPE(result, *arguments)(ctypes.cast(function, ctypes.c_void_p).value or 0)


class PdfEngine:
    """The C functions that are called for every word."""

    def __init__(self) -> None:
        pointer, whole = ctypes.c_void_p, ctypes.c_int
        self.unicode = _plain(raw.FPDFText_GetUnicode, ctypes.c_uint, pointer, whole)
        self.object = _plain(raw.FPDFText_GetTextObject, pointer, pointer, whole)
        self.box = _plain(raw.FPDFText_GetLooseCharBox, whole, pointer, whole, pointer)
        self.tight = _plain(raw.FPDFText_GetCharBox, whole, pointer, whole, pointer, pointer, pointer, pointer)
        self.font_size = _plain(raw.FPDFText_GetFontSize, ctypes.c_double, pointer, whole)
        self.matrix = _plain(raw.FPDFText_GetMatrix, whole, pointer, whole, pointer)
        self.mode = _plain(raw.FPDFTextObj_GetTextRenderMode, whole, pointer)
        self.fill = _plain(raw.FPDFPageObj_GetFillColor, whole, pointer, pointer, pointer, pointer, pointer)
        self.font = _plain(raw.FPDFTextObj_GetFont, pointer, pointer)
        self.weight = _plain(raw.FPDFFont_GetWeight, whole, pointer)
        self.font_name = _plain(raw.FPDFFont_GetBaseFontName, ctypes.c_size_t, pointer, pointer, ctypes.c_size_t)
        self.page_object = _plain(raw.FPDFPage_GetObject, pointer, pointer, whole)
        self.kind = _plain(raw.FPDFPageObj_GetType, whole, pointer)
        self.bounds = _plain(raw.FPDFPageObj_GetBounds, whole, pointer, pointer, pointer, pointer, pointer)
        self.four = (ctypes.c_uint * 4)()
        self.six = (ctypes.c_float * 6)()
        self.name = ctypes.create_string_buffer(128)

    def looks(self, text_page: int, index: int, thing: int, bold_fonts: dict[int, bool]) -> TextStyle:
        at = ctypes.addressof(self.four)
        scale = 1.0
        if self.matrix(text_page, index, ctypes.addressof(self.six)):
            scale = (self.six[2] ** 2 + self.six[3] ** 2) ** 0.5
        self.four[:] = (0, 0, 0, 255)
        self.fill(thing, at, at + 4, at + 8, at + 12)
        red, green, blue, alpha = self.four
        font = self.font(thing) or 0
        if font not in bold_fonts:
            length = self.font_name(font, ctypes.addressof(self.name), len(self.name)) if font else 0
            name = self.name.raw[: max(0, min(length, len(self.name)) - 1)].decode("utf-8", "replace")
            # for embedded fonts the engine only guesses weights; the font's name is more reliable
            bold_fonts[font] = bool(BOLD_NAME.search(name)) or (not name and bool(font) and self.weight(font) >= 600)
        return TextStyle(
            size=self.font_size(text_page, index) * scale,
            bold=bold_fonts[font],
            faint=min(red, green, blue) >= 235 or alpha <= 20,
            inkless=self.mode(thing) in INVISIBLE_MODES,
        )


def read_characters(engine: PdfEngine, text_page: int, handle: Any, count: int) -> str:
    """One character per index of the engine; NUL for glyphs without a character."""
    buffer = (ctypes.c_ushort * (count + 1))()
    copied = raw.FPDFText_GetText(handle, 0, count, buffer)
    if copied == count + 1:
        text = bytes(buffer)[: 2 * count].decode("utf-16-le", "replace")
        if len(text) == count:
            return text
    codes = [engine.unicode(text_page, index) for index in range(count)]
    for index, code in enumerate(codes):
        if 0xD800 <= code < 0xE000:  # a surrogate pair: the second half is dropped
            low = codes[index + 1] if index + 1 < count else 0
            pair = 0xD800 <= code < 0xDC00 <= low < 0xE000
            codes[index] = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) if pair else 0
            if pair:
                codes[index + 1] = 0
    return "".join(chr(code) if code < 0x110000 else "\0" for code in codes)


@dataclass(frozen=True, slots=True)
class PageFrame:
    """Maps the file's coordinates to those of the page as shown: rotated, from the top left, in points."""

    left: float
    bottom: float
    right: float
    top: float
    turn: int  # quarter turns, clockwise

    @property
    def size(self) -> tuple[float, float]:
        wide, high = self.right - self.left, self.top - self.bottom
        return (high, wide) if self.turn % 2 else (wide, high)

    def shown(self, boxes: np.ndarray) -> np.ndarray:
        """`boxes` is n × (left, bottom, right, top); returns n × (x0, y0, x1, y1)."""
        x0, x1 = boxes[:, 0] - self.left, boxes[:, 2] - self.left
        y0, y1 = boxes[:, 1] - self.bottom, boxes[:, 3] - self.bottom
        wide, high = self.right - self.left, self.top - self.bottom
        corners = {
            0: (x0, high - y1, x1, high - y0),
            1: (y0, x0, y1, x1),
            2: (wide - x1, y0, wide - x0, y1),
            3: (high - y1, wide - x1, high - y0, wide - x0),
        }[self.turn % 4]
        return np.stack(corners, axis=1)


def page_frame(page: Any) -> PageFrame:
    bounds = raw.FS_RECTF()
    raw.FPDF_GetPageBoundingBox(page, bounds)
    return PageFrame(bounds.left, bounds.bottom, bounds.right, bounds.top, max(0, raw.FPDFPage_GetRotation(page)))


def read_page(engine: PdfEngine, page: Any) -> PageContent:
    """The words of a loaded page."""
    handle = raw.FPDFText_LoadPage(page)
    frame = page_frame(page)
    if not handle:
        return PageContent(*frame.size, ())
    try:
        return _sheet(engine, page, handle, frame)
    finally:
        raw.FPDFText_ClosePage(handle)


def _sheet(engine: PdfEngine, page: Any, handle: Any, frame: PageFrame) -> PageContent:
    text_page = ctypes.cast(handle, ctypes.c_void_p).value or 0
    count = max(0, raw.FPDFText_CountChars(handle))
    text = read_characters(engine, text_page, handle, count).replace("\x02", SOFT_BREAK) if count else ""
    if "ل" in text:
        text = _ligatures_in_order(engine, text_page, text)
    found = list(WORD.finditer(text))
    if not found:
        return PageContent(*frame.size, (), unmapped=text.count("\0"), picture=has_image(page, frame, 0.03))
    edges = np.zeros((2 * len(found), 4), dtype=np.float32)
    address, box, thing_of = edges.ctypes.data, engine.box, engine.object
    looks: dict[int, TextStyle] = {}
    bold_fonts: dict[int, bool] = {}
    worn: list[TextStyle] = []
    for match in found:
        start, end = match.span()
        box(text_page, start, address)
        box(text_page, end - 1, address + 16)
        address += 32
        thing = thing_of(text_page, start) or 0
        look = looks.get(thing)
        if look is None:
            look = looks[thing] = engine.looks(text_page, start, thing, bold_fonts)
        worn.append(look)
    edges = edges[:, [0, 3, 2, 1]]  # the engine's order is left, top, right, bottom
    first, last = frame.shown(edges[0::2]), frame.shown(edges[1::2])
    boxes = np.concatenate([np.minimum(first[:, :2], last[:, :2]), np.maximum(first[:, 2:], last[:, 2:])], axis=1)
    upright = boxes.copy()
    upright[:, [1, 3]] = first[:, [1, 3]]  # a raised footnote mark must not make its word tall
    width, height = frame.size
    hidden = _out_of_sight(page, frame, boxes, worn)
    aside = _sideways(first, last, np.array([match.end() - match.start() for match in found]))
    rows = np.where(aside[:, None], boxes, upright).tolist()
    line, reached, words, turned = 0, 0, [], []
    for match, look, row, unseen, side in zip(found, worn, rows, hidden.tolist(), aside.tolist(), strict=True):
        start, end = match.span()
        if text.find("\n", reached, start) >= 0:
            line += 1
        reached = end
        breaks = text[end - 1] == SOFT_BREAK
        if not unseen:
            spelled = text[start : end - 1] + "-" if breaks else text[start:end]
            word = PdfWord(spelled, start, end, *row, size=look.size, bold=look.bold, line=line, breaks=breaks)
            (turned if side else words).append(word)
        line += breaks  # the engine omits the line break after a hyphen
    return PageContent(
        width,
        height,
        tuple(words),
        tuple(turned),
        hidden=int(hidden.sum()),
        unmapped=text.count("\0"),
        picture=len(words) < 40 and has_image(page, frame),
        shapes=_shapes(engine, page, frame),
    )


def _shapes(engine: PdfEngine, page: Any, frame: PageFrame) -> tuple[Box, ...]:
    """The pictures and frames of a page. A page of very many objects is text set letter by letter, and is not searched."""
    count = raw.FPDFPage_CountObjects(page)
    if count > MOST_OBJECTS:
        return ()
    address = ctypes.cast(page, ctypes.c_void_p).value or 0
    edges = (ctypes.c_float * 4)()
    at = ctypes.addressof(edges)
    found: list[tuple[float, ...]] = []
    for index in range(count):
        thing = engine.page_object(address, index)
        if engine.kind(thing) != raw.FPDF_PAGEOBJ_TEXT and engine.bounds(thing, at, at + 4, at + 8, at + 12):
            found.append(tuple(edges))
    if not found:
        return ()
    boxes = frame.shown(np.array(found, dtype=np.float32))
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    solid = (width > 20) & (height > 20) & (width * height < 0.3 * frame.size[0] * frame.size[1])
    return tuple(map(tuple, boxes[solid].tolist()))


def _ligatures_in_order(engine: PdfEngine, text_page: int, text: str) -> str:
    """Lam-alef is one glyph for two letters; the engine reverses Arabic letter by letter and so reverses the ligature too."""
    boxes = (ctypes.c_float * 8)()
    at = ctypes.addressof(boxes)
    chars = list(text)
    for match in LAM_ALEF.finditer(text):
        here = match.start()
        if engine.box(text_page, here, at) and engine.box(text_page, here + 1, at + 16) and boxes[:4] == boxes[4:]:
            chars[here : here + 2] = chars[here + 1], chars[here]
    return "".join(chars)


def _sideways(first: np.ndarray, last: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Which words run up or down the page: their last letter is above or below their first."""
    across = np.abs(last[:, 0] - first[:, 0])
    along = np.abs(last[:, 1] - first[:, 1])
    return (lengths >= 2) & (along > across + 0.6 * (first[:, 3] - first[:, 1]) * 0.5) & (along > 2 * across)


def _out_of_sight(page: Any, frame: PageFrame, boxes: np.ndarray, worn: list[TextStyle]) -> np.ndarray:
    """Which words are invisible: off the page, too small, or without contrast to the background.

    Words without ink are the text layer of a scanned page: they are kept wherever something is drawn.
    """
    width, height = frame.size
    middle_x, middle_y = (boxes[:, 0] + boxes[:, 2]) / 2, (boxes[:, 1] + boxes[:, 3]) / 2
    hidden = (middle_x < -2) | (middle_x > width + 2) | (middle_y < -2) | (middle_y > height + 2)
    hidden |= np.array([look.size < SMALLEST for look in worn]) & ((boxes[:, 3] - boxes[:, 1]) < SMALLEST)
    inkless = np.array([look.inkless for look in worn])
    if inkless.any() and has_image(page, frame):
        inkless[:] = False
    doubtful = (np.array([look.faint for look in worn]) | inkless) & ~hidden
    if doubtful.any():
        shades, scale = render_grey(page, frame)
        for index in np.flatnonzero(doubtful):
            x0, y0, x1, y1 = (boxes[index] * scale).astype(int)
            seen = shades[max(0, y0) : y1 + 1, max(0, x0) : x1 + 1]
            hidden[index] = not seen.size or int(seen.max()) - int(seen.min()) < SHADE
    return hidden


def render_grey(page: Any, frame: PageFrame) -> tuple[np.ndarray, float]:
    """The page as a small greyscale image, and its pixels per point."""
    width, height = frame.size
    scale = min(1.5, 1400 / max(width, height, 1.0))
    wide, high = max(1, int(width * scale)), max(1, int(height * scale))
    bitmap = raw.FPDFBitmap_CreateEx(wide, high, raw.FPDFBitmap_Gray, None, 0)
    try:
        raw.FPDFBitmap_FillRect(bitmap, 0, 0, wide, high, 0xFFFFFFFF)
        raw.FPDF_RenderPageBitmap(bitmap, page, 0, 0, wide, high, 0, 0)
        stride = raw.FPDFBitmap_GetStride(bitmap)
        address = ctypes.cast(raw.FPDFBitmap_GetBuffer(bitmap), ctypes.c_void_p).value or 0
        pixels = np.frombuffer((ctypes.c_ubyte * (stride * high)).from_address(address), dtype=np.uint8)
        return pixels.reshape(high, stride)[:, :wide].copy(), scale
    finally:
        raw.FPDFBitmap_Destroy(bitmap)


def has_image(page: Any, frame: PageFrame, share: float = 0.4) -> bool:
    """Whether images cover much of the page, so that its content may not be in its text."""
    width, height = frame.size
    covered = 0.0
    for index in range(min(raw.FPDFPage_CountObjects(page), 2000)):
        thing = raw.FPDFPage_GetObject(page, index)
        if not _is_picture(thing):
            continue
        edges = [ctypes.c_float() for _ in range(4)]
        if raw.FPDFPageObj_GetBounds(thing, *edges):
            left, bottom, right, top = (edge.value for edge in edges)
            covered += max(0.0, right - left) * max(0.0, top - bottom)
    return covered > share * width * height


def _is_picture(thing: Any) -> bool:
    kind = raw.FPDFPageObj_GetType(thing)
    if kind != raw.FPDF_PAGEOBJ_FORM:
        return kind == raw.FPDF_PAGEOBJ_IMAGE
    inside = (raw.FPDFFormObj_GetObject(thing, index) for index in range(min(raw.FPDFFormObj_CountObjects(thing), 50)))
    return any(raw.FPDFPageObj_GetType(inner) == raw.FPDF_PAGEOBJ_IMAGE for inner in inside)
