"""The C functions of the PDF engine that are called for every word and object, and the coordinates of a page."""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pypdfium2.raw as raw

INVISIBLE_MODES = frozenset({3, 7})  # neither fill nor stroke
BOLD_NAME = re.compile(r"bold|black|heavy|semibd|demi|cmbx|-bd|-medi(?!um)", re.IGNORECASE)

Box = tuple[float, float, float, float]  # x0, y0, x1, y1 in points from the top left of the page as shown


@dataclass(slots=True)
class TextStyle:
    """The style of a text object; shared by its words, so that it is queried once."""

    size: float
    bold: bool
    colour: tuple[int, int, int]  # negative if it is not one colour, or only the outline is drawn
    inkless: bool  # drawn without ink, as the text layer of a scan is


def _plain(function: Any, result: Any, *arguments: Any) -> Any:
    """The same C function with addresses as integers, which is several times faster to call than with pointer objects. The
    calls are too short to let other threads run meanwhile."""
    return ctypes.PYFUNCTYPE(result, *arguments)(ctypes.cast(function, ctypes.c_void_p).value or 0)


class PdfFunctions:
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
        self.page_object = _plain(raw.FPDFPage_GetObject, pointer)  # called as it is: a pointer and a whole number
        self.kind = _plain(raw.FPDFPageObj_GetType, whole, pointer)
        self.bounds = _plain(raw.FPDFPageObj_GetBounds, whole, pointer, pointer, pointer, pointer, pointer)
        self.object_matrix = _plain(raw.FPDFPageObj_GetMatrix, whole, pointer, pointer)
        self.transparent = _plain(raw.FPDFPageObj_HasTransparency, whole, pointer)
        self.mark_count = _plain(raw.FPDFPageObj_CountMarks, whole, pointer)
        self.mark = _plain(raw.FPDFPageObj_GetMark, pointer, pointer, ctypes.c_ulong)
        self.mark_name = _plain(raw.FPDFPageObjMark_GetName, whole, pointer, pointer, ctypes.c_ulong, pointer)
        self.form_count = _plain(raw.FPDFFormObj_CountObjects, whole, pointer)
        self.form_object = _plain(raw.FPDFFormObj_GetObject, pointer, pointer, ctypes.c_ulong)
        self.draw_mode = _plain(raw.FPDFPath_GetDrawMode, whole, pointer, pointer, pointer)
        self.segments = _plain(raw.FPDFPath_CountSegments, whole, pointer)
        self.stroke_width = _plain(raw.FPDFPageObj_GetStrokeWidth, whole, pointer, pointer)
        self.clip_path = _plain(raw.FPDFPageObj_GetClipPath, pointer, pointer)
        self.clip_count = _plain(raw.FPDFClipPath_CountPaths, whole, pointer)
        self.clip_segments = _plain(raw.FPDFClipPath_CountPathSegments, whole, pointer, whole)
        self.clip_segment = _plain(raw.FPDFClipPath_GetPathSegment, pointer, pointer, whole, whole)
        self.point = _plain(raw.FPDFPathSegment_GetPoint, whole, pointer, pointer, pointer)
        self.four = (ctypes.c_uint * 4)()
        self.six = (ctypes.c_float * 6)()
        self.name = ctypes.create_string_buffer(128)

    def looks(self, text_page: int, index: int, thing: int, bold_fonts: dict[int, bool]) -> TextStyle:
        at = ctypes.addressof(self.four)
        scale = 1.0
        if self.matrix(text_page, index, ctypes.addressof(self.six)):
            scale = (self.six[2] ** 2 + self.six[3] ** 2) ** 0.5
        mode = self.mode(thing)
        plain = mode == 0 and self.fill(thing, at, at + 4, at + 8, at + 12)
        font = self.font(thing) or 0
        if font not in bold_fonts:
            length = self.font_name(font, ctypes.addressof(self.name), len(self.name)) if font else 0
            name = self.name.raw[: max(0, min(length, len(self.name)) - 1)].decode("utf-8", "replace")
            # for embedded fonts the engine only guesses weights; the font's name is more reliable
            bold_fonts[font] = bool(BOLD_NAME.search(name)) or (not name and bool(font) and self.weight(font) >= 600)
        return TextStyle(
            size=self.font_size(text_page, index) * scale,
            bold=bold_fonts[font],
            colour=(self.four[0], self.four[1], self.four[2]) if plain else (-1, -1, -1),
            inkless=mode in INVISIBLE_MODES,
        )


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
