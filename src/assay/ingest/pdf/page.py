"""Extracts the words of one page from the PDF engine, with positions and styles. Nothing is ordered here.

A word is a range of the engine's own characters, so every later offset can be mapped back to a box on the page.
One call per word edge rather than several per character: the calls are most of the cost of reading.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import pypdfium2.raw as raw

from assay.ingest.figures import names_figure
from assay.ingest.parsed import HiddenText
from assay.ingest.pdf.c_functions import Box, PageFrame, PdfFunctions, TextStyle, page_frame
from assay.ingest.pdf.unseen import SCAN, Survey, Surveyor, WordsOnPage, find_unseen
from assay.ingest.scan import SeenPage

SOFT_BREAK = "\ufffe"  # the engine's mark for a hyphen at the end of a line; in some files it is \x02
WORD = re.compile(rf"[^\s\x00{SOFT_BREAK}]+{SOFT_BREAK}?")
LAM_ALEF = re.compile("[اأإآ]ل")
MOST_OBJECTS = 1500  # on a page that is searched for shapes
WHOLE = 0.9  # of the width and the height of a page


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


@dataclass(frozen=True, slots=True)
class PageContent:
    """One page: its words in file order, the rotated ones, and those that no reader sees."""

    width: float
    height: float
    words: tuple[PdfWord, ...]
    sideways: tuple[PdfWord, ...] = ()
    hidden: tuple[HiddenText, ...] = ()
    unchecked: bool = False  # too many objects: hidden text may be among the words
    unmapped: int = 0  # glyphs without a mapping to characters
    picture: bool = False  # an image fills most of the page
    shapes: tuple[Box, ...] = ()  # pictures and frames, but no lines, and nothing as large as the page
    drawn: tuple[Box, ...] = ()  # everything but text, of a page that names a figure
    seen: SeenPage | None = None  # what OCR saw there, and its words stand for


def read_characters(engine: PdfFunctions, text_page: int, handle: Any, count: int) -> str:
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


def read_page(engine: PdfFunctions, page: Any, surveyor: Surveyor, number: int = 0) -> PageContent:
    """The words of a loaded page; `number` counts from 1."""
    handle = raw.FPDFText_LoadPage(page)
    frame = page_frame(page)
    if not handle:
        return PageContent(*frame.size, ())
    try:
        return _sheet(engine, page, handle, frame, surveyor, number)
    finally:
        raw.FPDFText_ClosePage(handle)


def _sheet(
    engine: PdfFunctions, page: Any, handle: Any, frame: PageFrame, surveyor: Surveyor, number: int
) -> PageContent:
    survey = surveyor.survey(page)
    text_page = ctypes.cast(handle, ctypes.c_void_p).value or 0
    count = max(0, raw.FPDFText_CountChars(handle))
    text = read_characters(engine, text_page, handle, count).replace("\x02", SOFT_BREAK) if count else ""
    if "ل" in text:
        text = _ligatures_in_order(engine, text_page, text)
    found = list(WORD.finditer(text))
    if not found:
        return PageContent(*frame.size, (), unmapped=text.count("\0"), picture=survey.pictured(frame) > 0.03)
    edges = np.zeros((2 * len(found), 4), dtype=np.float32)
    address, box, thing_of = edges.ctypes.data, engine.box, engine.object
    looks: dict[int, TextStyle] = {}
    bold_fonts: dict[int, bool] = {}
    worn: list[TextStyle] = []
    things: list[int] = []
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
        things.append(thing)
    edges = edges[:, [0, 3, 2, 1]]  # the engine's order is left, top, right, bottom
    first, last = frame.shown(edges[0::2]), frame.shown(edges[1::2])
    boxes = np.concatenate([np.minimum(first[:, :2], last[:, :2]), np.maximum(first[:, 2:], last[:, 2:])], axis=1)
    upright = boxes.copy()
    upright[:, [1, 3]] = first[:, [1, 3]]  # a raised footnote mark must not make its word tall
    width, height = frame.size

    def objects_of(index: int) -> set[int]:
        return set(map(thing_of, repeat(text_page), range(*found[index].span()))) - {None}

    def all_objects() -> set[int]:
        return set(map(thing_of, repeat(text_page), range(count))) - {None}

    on_page = WordsOnPage([match[0] for match in found], boxes, things, worn, objects_of, all_objects)
    unseen = find_unseen(page, frame, on_page, survey, surveyor)
    aside = _sideways(first, last, np.array([match.end() - match.start() for match in found]))
    rows = np.where(aside[:, None], boxes, upright).tolist()
    line, reached, words, turned, hidden = 0, 0, [], [], []
    for match, look, row, how, side in zip(found, worn, rows, unseen, aside.tolist(), strict=True):
        start, end = match.span()
        if text.find("\n", reached, start) >= 0:
            line += 1
        reached = end
        breaks = text[end - 1] == SOFT_BREAK
        spelled = text[start : end - 1] + "-" if breaks else text[start:end]
        if how:
            hidden.append(HiddenText(spelled, how, number))
        else:
            word = PdfWord(spelled, start, end, *row, size=look.size, bold=look.bold, line=line)
            (turned if side else words).append(word)
        line += breaks  # the engine omits the line break after a hyphen
    return PageContent(
        width,
        height,
        tuple(words),
        tuple(turned),
        hidden=tuple(hidden),
        unchecked=survey.cut_short,
        unmapped=text.count("\0"),
        picture=len(words) < 40 and survey.pictured(frame) > SCAN,
        shapes=_shapes(survey, frame),
        drawn=_drawn(survey, frame) if names_figure(text) else (),
    )


def _shapes(survey: Survey, frame: PageFrame) -> tuple[Box, ...]:
    """The pictures and frames of a page. A page of very many objects is text set letter by letter, and is not searched."""
    if survey.outside_forms > MOST_OBJECTS or not survey.outlines:
        return ()
    boxes = frame.shown(np.array(survey.outlines, dtype=np.float32))
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    solid = (width > 20) & (height > 20) & (width * height < 0.3 * frame.size[0] * frame.size[1])
    return tuple(map(tuple, boxes[solid].tolist()))


def _drawn(survey: Survey, frame: PageFrame) -> tuple[Box, ...]:
    """What is drawn on a page; of what fills it, what it is made of."""
    width, height = frame.size

    def shown(found: Sequence[Box]) -> np.ndarray:
        boxes = frame.shown(np.array(found, dtype=np.float32)) if found else np.zeros((0, 4), dtype=np.float32)
        on_page = (boxes[:, 0] < width) & (boxes[:, 2] > 0) & (boxes[:, 1] < height) & (boxes[:, 3] > 0)
        fills = (boxes[:, 2] - boxes[:, 0] > WHOLE * width) & (boxes[:, 3] - boxes[:, 1] > WHOLE * height)
        return boxes[on_page & ~fills]

    boxes = shown(survey.outlines)
    if len(boxes) < len(survey.outlines):
        boxes = np.concatenate([boxes, shown([paint.box for paint in survey.paints])])
    return tuple(map(tuple, np.unique(np.round(boxes), axis=0).tolist()))


def _ligatures_in_order(engine: PdfFunctions, text_page: int, text: str) -> str:
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
