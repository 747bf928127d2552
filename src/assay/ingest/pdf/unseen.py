"""Finds the words of a page that no reader sees, by what is drawn.

The objects of the page tell which words could be hidden: under a box, cut off, transparent, in a layer, in the colour of what
is below them. Only then is the page drawn, with these words and without them: a word that changes nothing is hidden.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import pypdfium2.raw as raw

from assay.ingest.pdf.c_functions import Box, PageFrame, PdfFunctions, TextStyle

OUTSIDE, SMALL, NO_INK = "outside the page", "too small to read", "without ink"
COVERED, CUT_OFF, LAYER = "covered", "cut off", "in a hidden layer"
TRANSPARENT, SAME_COLOUR = "transparent", "in the colour of the background"

SHADE = 16  # of 255: a word that changes the page by less is invisible
CLOSE = 48  # of 255: colours this alike are compared with what is drawn
SMALLEST = 1.5  # points
THIN = 1.0  # points; rules and underlines hide nothing
THICK = 3.0  # points; a line of this width may hide a word
SEEN = 0.2  # of the width and the height of a word
SCAN = 0.4  # of a page: pictures that cover more may be a scan
MOST_OBJECTS = 200_000  # of a page; more are not looked at
MOST_NESTED = 12
MOST_LAYERS = 4  # of words that lie on one another
PAIRS = 4_000_000  # of words and paints, compared at a time

Matrix = tuple[float, float, float, float, float, float]
Colour = tuple[int, int, int]
IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
WHITE: Colour = (255, 255, 255)
WITHOUT_INK = frozenset({raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP})
# Only content streams, which may be compressed, name a layer without this key in plain bytes; `#` spells letters of a name.
_LAYERED = re.compile(rb"/OC[\s<%]|/O#|/#4")


def has_layered_forms(data: bytes) -> bool:
    """Whether a form or a picture of the file may belong to a layer: the engine does not say which."""
    return _LAYERED.search(data) is not None


class Paint(NamedTuple):
    """Something drawn that is not text. `colour` is None if it is not one colour over its whole box."""

    box: Box  # left, bottom, right, top as in the file
    order: int
    colour: Colour | None = None
    picture: bool = False


# What a text object is cut to (None: not a rectangle), and how else it may be hidden.
TextState = tuple[tuple[Box | None, ...], str]


@dataclass(frozen=True, slots=True)
class _Around:
    """What an object inherits from the forms around it."""

    matrix: Matrix = IDENTITY
    clips: tuple[Box | None, ...] = ()
    doubt: str = ""
    depth: int = 0


_OUTSIDE_FORMS = _Around()


@dataclass(slots=True)
class Survey:
    """What is drawn on a page, in order."""

    texts: dict[int, int] = field(default_factory=dict)  # text object → when it is drawn
    forms: dict[int, _Around] = field(default_factory=dict)  # text object in a form → what it inherits
    paints: list[Paint] = field(default_factory=list)
    outlines: list[Box] = field(default_factory=list)  # of everything but text, outside forms
    annotated: bool = False
    objects: int = 0
    outside_forms: int = 0  # of these objects

    @property
    def cut_short(self) -> bool:
        return self.objects >= MOST_OBJECTS

    def add_texts(self, things: list[int], around: _Around) -> None:
        self.texts.update(zip(things, range(self.objects + 1, self.objects + 1 + len(things)), strict=True))
        self.objects += len(things)
        if around.depth:
            self.forms.update(dict.fromkeys(things, around))

    def pictured(self, frame: PageFrame) -> float:
        """The share of the page that pictures cover."""
        width, height = frame.size
        areas = ((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in (paint.box for paint in self.paints if paint.picture))
        return sum(areas) / max(width * height, 1.0)


class Surveyor:
    """Reads the objects of pages of one document."""

    def __init__(self, engine: PdfFunctions, layered: bool) -> None:
        self.engine, self.layered = engine, layered
        self.marks: dict[int, bool] = {}  # a mark of content → whether it names a layer; objects share them
        self.edges, self.four, self.name = engine.six, engine.four, engine.name

    def survey(self, page: Any) -> Survey:
        found = Survey()
        self.marks.clear()
        found.outside_forms = max(0, raw.FPDFPage_CountObjects(page))
        self._objects(
            self.engine.page_object, ctypes.cast(page, ctypes.c_void_p), found.outside_forms, _OUTSIDE_FORMS, found
        )
        self._annotations(page, found)
        return found

    def states(self, texts: Iterable[int], survey: Survey) -> dict[int, TextState]:
        """Of the objects that begin a word and may be hidden: a page may have thousands of one letter."""
        engine, things = self.engine, list(texts)
        clipped = map(engine.clip_count, map(engine.clip_path, things))
        asked = zip(things, clipped, map(engine.mark_count, things), map(engine.transparent, things), strict=True)
        found: dict[int, TextState] = {}
        for thing, clips, marks, transparent in asked:
            if clips > 0 or marks > 0 or transparent or thing in survey.forms:
                around = survey.forms.get(thing, _OUTSIDE_FORMS)
                cut_to = self._clips(thing, around) if clips > 0 else around.clips
                layer = LAYER if marks > 0 and self._in_layer(thing, marks) else ""
                doubt = around.doubt or layer or (TRANSPARENT if transparent else "")
                if cut_to or doubt:
                    found[thing] = (cut_to, doubt)
        return found

    def _objects(self, get: Any, holder: Any, count: int, around: _Around, found: Survey) -> None:
        """Text objects are taken in one go: most objects are text, and calls are most of the cost."""
        count = min(count, MOST_OBJECTS - found.objects)
        things = list(map(get, repeat(holder, count), range(count)))
        kinds = list(map(self.engine.kind, things))
        at = 0
        for index in (index for index, kind in enumerate(kinds) if kind != raw.FPDF_PAGEOBJ_TEXT):
            found.add_texts(things[at:index], around)
            at = index + 1
            found.objects += 1
            box = self._box(things[index], around.matrix)
            if box is None:
                continue
            if not around.depth:
                found.outlines.append(box)
            if kinds[index] == raw.FPDF_PAGEOBJ_FORM and around.depth < MOST_NESTED:
                self._form(things[index], around, found)
            elif min(box[2] - box[0], box[3] - box[1]) >= THIN:
                self._paint(things[index], kinds[index], box, around, found)
        found.add_texts(things[at:], around)

    def _form(self, form: int, around: _Around, found: Survey) -> None:
        matrix = around.matrix
        if self.engine.object_matrix(form, ctypes.addressof(self.edges)):
            matrix = _product(tuple(self.edges), around.matrix)
        doubt = self._doubt(form, around) or (LAYER if self.layered else "")
        inner = _Around(matrix, self._clips(form, around), doubt, around.depth + 1)
        self._objects(self.engine.form_object, form, max(0, self.engine.form_count(form)), inner, found)

    def _paint(self, thing: int, kind: int, box: Box, around: _Around, found: Survey) -> None:
        if kind != raw.FPDF_PAGEOBJ_PATH:
            found.paints.append(Paint(box, found.objects, picture=kind == raw.FPDF_PAGEOBJ_IMAGE))
            return
        at = ctypes.addressof(self.four)
        if not self.engine.draw_mode(thing, at, at + 4):
            return
        filled, stroked = self.four[0], self.four[1]
        if not filled:
            if stroked and self._stroke(thing, around.matrix) >= THICK:
                found.paints.append(Paint(box, found.objects))
            return
        clips = self._clips(thing, around)
        plain = self.engine.segments(thing) <= 5 and None not in clips and not self._doubt(thing, around)
        for clip in clips if plain else ():
            box = _common(box, clip)
        one_colour = plain and self.engine.fill(thing, at, at + 4, at + 8, at + 12)
        found.paints.append(Paint(box, found.objects, tuple(self.four[:3]) if one_colour else None))  # type: ignore[arg-type]

    def _stroke(self, path: int, matrix: Matrix) -> float:
        at = ctypes.addressof(self.edges)
        width = self.edges[0] if self.engine.stroke_width(path, at) else 0.0
        own = _product(tuple(self.edges), matrix) if self.engine.object_matrix(path, at) else matrix
        return width * max(np.hypot(own[0], own[1]), np.hypot(own[2], own[3]))

    def _box(self, thing: int, matrix: Matrix) -> Box | None:
        at = ctypes.addressof(self.edges)
        if not self.engine.bounds(thing, at, at + 4, at + 8, at + 12):
            return None
        box = tuple(self.edges[:4])
        return box if matrix is IDENTITY else _moved(box, matrix)  # type: ignore[return-value]

    def _doubt(self, thing: int, around: _Around) -> str:
        """How an object may be hidden by its own state, or by that of a form around it."""
        if around.doubt:
            return around.doubt
        if self._in_layer(thing, self.engine.mark_count(thing)):
            return LAYER
        return TRANSPARENT if self.engine.transparent(thing) else ""

    def _in_layer(self, thing: int, marks: int) -> bool:
        for index in range(marks):
            mark = self.engine.mark(thing, index)
            if mark not in self.marks:
                length = ctypes.c_ulong()
                self.engine.mark_name(mark, ctypes.addressof(self.name), 8, ctypes.addressof(length))
                self.marks[mark] = self.name.raw[: length.value] == "OC\0".encode("utf-16-le")
            if self.marks[mark]:
                return True
        return False

    def _clips(self, thing: int, around: _Around) -> tuple[Box | None, ...]:
        """What the object is cut to. The engine has dropped every rectangle that the object lies in."""
        engine = self.engine
        path = engine.clip_path(thing)
        count = engine.clip_count(path) if path else 0
        if count <= 0:
            return around.clips
        return (*around.clips, *(self._clip(path, index, around.matrix) for index in range(min(count, 50))))

    def _clip(self, path: int, index: int, matrix: Matrix) -> Box | None:
        engine, at = self.engine, ctypes.addressof(self.edges)
        count = engine.clip_segments(path, index)
        if not 4 <= count <= 5:
            return None
        points: list[tuple[float, float]] = []
        for number in range(count):
            if engine.point(engine.clip_segment(path, index, number), at, at + 4):
                points.append((self.edges[0], self.edges[1]))
        across, along = {x for x, _ in points}, {y for _, y in points}
        if len(across) > 2 or len(along) > 2 or not points:
            return None
        return _moved((min(across), min(along), max(across), max(along)), matrix)

    def _annotations(self, page: Any, found: Survey) -> None:
        """Comments and stamps lie on everything else."""
        bounds = raw.FS_RECTF()
        for index in range(min(raw.FPDFPage_GetAnnotCount(page), 2_000)):
            note = raw.FPDFPage_GetAnnot(page, index)
            if note:
                if raw.FPDFAnnot_GetSubtype(note) not in WITHOUT_INK and raw.FPDFAnnot_GetRect(note, bounds):
                    x0, x1 = sorted((bounds.left, bounds.right))
                    y0, y1 = sorted((bounds.bottom, bounds.top))
                    found.annotated = True
                    found.paints.append(Paint((x0, y0, x1, y1), MOST_OBJECTS + 1))
                raw.FPDFPage_CloseAnnot(note)


def _product(inner: Any, outer: Matrix) -> Matrix:
    a, b, c, d, e, f = inner
    g, h, i, j, k, m = outer
    return (a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + m)


def _common(box: Box, other: Box | None) -> Box:
    if other is None:
        return box
    return max(box[0], other[0]), max(box[1], other[1]), min(box[2], other[2]), min(box[3], other[3])


def _moved(box: Any, matrix: Matrix) -> Box:
    a, b, c, d, e, f = matrix
    corners = [(x, y) for x in (box[0], box[2]) for y in (box[1], box[3])]
    across = [a * x + c * y + e for x, y in corners]
    along = [b * x + d * y + f for x, y in corners]
    return min(across), min(along), max(across), max(along)


@dataclass(frozen=True, slots=True)
class WordsOnPage:
    """The words of a page, as parallel columns. Boxes are those of the page as shown."""

    texts: list[str]
    boxes: np.ndarray
    things: list[int]  # the text object of the first letter of each
    looks: list[TextStyle]
    objects_of: Callable[[int], set[int]]  # all text objects of a word
    all_objects: Callable[[], set[int]]  # the engine leaves out text that is written a second time over the first


def find_unseen(page: Any, frame: PageFrame, words: WordsOnPage, survey: Survey, surveyor: Surveyor) -> list[str]:
    """For each word how it is hidden; empty if a reader sees it.

    Words without ink, or under a picture, are the text of a scanned page if they are most of the page: they stay.
    """
    boxes, (width, height) = words.boxes, frame.size
    middle_x, middle_y = (boxes[:, 0] + boxes[:, 2]) / 2, (boxes[:, 1] + boxes[:, 3]) / 2
    outside = (middle_x < -2) | (middle_x > width + 2) | (middle_y < -2) | (middle_y > height + 2)
    small = (boxes[:, 3] - boxes[:, 1]) < SMALLEST
    small[small] = [words.looks[index].size < SMALLEST for index in np.flatnonzero(small)]
    hidden = np.where(outside, OUTSIDE, np.where(small, SMALL, "")).astype(object)
    doubts, pictured = _doubts(frame, words, survey, surveyor)
    layer = pictured | (doubts == NO_INK)
    if layer.any() and survey.pictured(frame) > SCAN and 2 * layer.sum() >= len(boxes):
        doubts[layer] = ""
    doubtful = np.flatnonzero((doubts != "") & (hidden == "")).tolist()
    if doubtful:
        for index in _confirm(page, frame, words, doubts, doubtful, survey):
            hidden[index] = doubts[index]
    return hidden.tolist()


def _doubts(frame: PageFrame, words: WordsOnPage, survey: Survey, surveyor: Surveyor) -> tuple[np.ndarray, np.ndarray]:
    """For each word how it could be hidden, and whether a picture is drawn over it."""
    boxes, looks = words.boxes, words.looks
    states = surveyor.states(set(words.things), survey)
    doubts = np.array([NO_INK if look.inkless else "" for look in looks], object)
    for index, thing in enumerate(words.things) if states else ():
        if thing in states and not doubts[index]:
            clips, doubt = states[thing]
            doubts[index] = doubt or (CUT_OFF if clips and _is_cut(frame, boxes[index], clips) else "")
    orders = np.array([survey.texts.get(thing, MOST_OBJECTS) for thing in words.things])
    grounds, covered, pictured = _paints_around(frame, boxes, orders, survey.paints)
    inks = _inks(looks)
    unclear = (np.abs(inks - grounds).max(axis=1) <= CLOSE) | (grounds[:, 0] < 0) | (inks[:, 0] < 0)
    flat = np.minimum(boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]) < THIN
    for mask, how in ((covered, COVERED), (unclear, SAME_COLOUR), (flat, SMALL)):
        doubts[(doubts == "") & mask] = how
    return doubts, pictured


def _inks(looks: list[TextStyle]) -> np.ndarray:
    """The colour of each word; a page has few."""
    numbers: dict[Colour, int] = {}
    which = [numbers.setdefault(look.colour, len(numbers)) for look in looks]
    return np.array(list(numbers), dtype=np.int16)[which]


def _paints_around(
    frame: PageFrame, boxes: np.ndarray, orders: np.ndarray, paints: list[Paint]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each word the colour below it (negative: unknown), whether something is drawn over it, and whether a picture is."""
    grounds = np.full((len(boxes), 3), 255, dtype=np.int16)
    covered, pictured = np.zeros(len(boxes), dtype=bool), np.zeros(len(boxes), dtype=bool)
    if not paints:
        return grounds, covered, pictured
    shown = frame.shown(np.array([paint.box for paint in paints], dtype=np.float32))
    when = np.array([paint.order for paint in paints])
    colours = np.array([paint.colour or (-1, -1, -1) for paint in paints], dtype=np.int16)
    pictures = np.array([paint.picture for paint in paints])
    step = max(1, PAIRS // len(paints))
    for first in range(0, len(boxes), step):
        rows = slice(first, first + step)
        x0, y0, x1, y1 = (boxes[rows, side, None] for side in range(4))
        across = np.minimum(x1, shown[:, 2]) - np.maximum(x0, shown[:, 0])
        along = np.minimum(y1, shown[:, 3]) - np.maximum(y0, shown[:, 1])
        later = orders[rows, None] < when
        over = later & (across > np.minimum(1.0, 0.5 * (x1 - x0))) & (along > np.minimum(1.5, 0.5 * (y1 - y0)))
        covered[rows] = over.any(axis=1)
        pictured[rows] = (over & pictures).any(axis=1)
        below = ~later & (across > 0.5 * (x1 - x0)) & (along > 0.5 * (y1 - y0))
        last = np.where(below, np.arange(len(paints)), -1).max(axis=1)
        grounds[rows] = np.where(last[:, None] >= 0, colours[last], 255)
    return grounds, covered, pictured


def _is_cut(frame: PageFrame, box: np.ndarray, clips: tuple[Box | None, ...]) -> bool:
    if None in clips:
        return True
    x0, y0, x1, y1 = frame.shown(np.array(clips, dtype=np.float32)).T
    slack = 0.25 * min(box[2] - box[0], box[3] - box[1])
    starts_late = x0.max() > box[0] + slack or y0.max() > box[1] + slack
    return bool(starts_late or x1.min() < box[2] - slack or y1.min() < box[3] - slack)


@dataclass(frozen=True, slots=True)
class _Drawing:
    """A region of a page, drawn at `scale` pixels per point."""

    page: Any
    left: int
    top: int
    width: int
    height: int
    scale: float
    whole: tuple[int, int]  # pixels of the page
    flags: int

    def pixels(self) -> np.ndarray:
        bitmap = raw.FPDFBitmap_CreateEx(self.width, self.height, raw.FPDFBitmap_BGRx, None, 0)
        try:
            raw.FPDFBitmap_FillRect(bitmap, 0, 0, self.width, self.height, 0xFFFFFFFF)
            raw.FPDF_RenderPageBitmap(bitmap, self.page, -self.left, -self.top, *self.whole, 0, self.flags)
            stride = raw.FPDFBitmap_GetStride(bitmap)
            address = ctypes.cast(raw.FPDFBitmap_GetBuffer(bitmap), ctypes.c_void_p).value or 0
            buffer = np.frombuffer((ctypes.c_ubyte * (stride * self.height)).from_address(address), dtype=np.uint8)
            return buffer.reshape(self.height, stride // 4, 4)[:, : self.width, :3].astype(np.int16)
        finally:
            raw.FPDFBitmap_Destroy(bitmap)

    def part(self, pixels: np.ndarray, box: np.ndarray) -> np.ndarray:
        """The pixels of a word, without the edges, which its neighbours touch."""
        x0, y0, x1, y1 = box * self.scale - (self.left, self.top, self.left, self.top)
        x0, x1 = (x0 + 1, x1 - 1) if x1 - x0 > 4 else (x0, x1)
        return pixels[max(0, int(y0)) : max(0, int(y1) + 1), max(0, int(x0)) : max(0, int(x1) + 1)]


def _drawing(page: Any, frame: PageFrame, boxes: np.ndarray, annotated: bool) -> _Drawing:
    width, height = frame.size
    scale = min(1.5, 1400 / max(width, height, 1.0))
    wide, high = max(1, int(width * scale)), max(1, int(height * scale))
    left, top = np.clip(boxes[:, :2].min(axis=0) * scale - 2, 0, (wide - 1, high - 1)).astype(int).tolist()
    right, bottom = (
        np.clip(boxes[:, 2:].max(axis=0) * scale + 2, (left + 1, top + 1), (wide, high)).astype(int).tolist()
    )
    flags = raw.FPDF_ANNOT if annotated else 0
    return _Drawing(page, left, top, right - left, bottom - top, scale, (wide, high), flags)


def _confirm(
    page: Any, frame: PageFrame, words: WordsOnPage, doubts: np.ndarray, doubtful: list[int], survey: Survey
) -> Iterator[int]:
    """The words among `doubtful` that are not drawn. One without ink counts as drawn where a picture shows something."""
    boxes, texts = words.boxes, words.texts
    drawing = _drawing(page, frame, boxes[doubtful], survey.annotated)
    _switch(survey.texts, False)
    try:
        bare = drawing.pixels()
        yield from (i for i in doubtful if doubts[i] == NO_INK and _is_flat(drawing.part(bare, boxes[i])))
        objects = {i: words.objects_of(i) for i in doubtful if doubts[i] != NO_INK}
        copies = survey.texts.keys() - words.all_objects()
        for layer in _layers(boxes, objects):
            things = copies.union(*(objects[i] for i in layer))
            _switch(things, True)
            changed = np.abs(drawing.pixels() - bare).max(axis=2) >= SHADE
            _switch(things, False)
            yield from (i for i in layer if not _is_seen(drawing.part(changed, boxes[i]), texts[i]))
    finally:
        _switch(survey.texts, True)


def _switch(things: Iterable[int], on: bool) -> None:
    for thing in things:
        raw.FPDFPageObj_SetIsActive(ctypes.cast(thing, raw.FPDF_PAGEOBJECT), on)


def _layers(boxes: np.ndarray, objects: dict[int, set[int]]) -> list[list[int]]:
    """The words so parted that in each part none lies on another; words that share a text object stay together."""
    layers: list[list[int]] = []
    cores: list[np.ndarray] = []
    layer_of: dict[int, int] = {}
    inset = 0.3 * (boxes[:, 2:] - boxes[:, :2])
    inner = np.concatenate([boxes[:, :2] + inset, boxes[:, 2:] - inset], axis=1)
    for index, things in objects.items():
        core = inner[index : index + 1]
        at = next((layer_of[thing] for thing in things if thing in layer_of), None)
        if at is None:
            at = next((at for at, others in enumerate(cores) if not _overlap(core, others)), len(layers))
        at = min(at, MOST_LAYERS - 1)
        if at == len(layers):
            layers.append([])
            cores.append(core[:0])
        layers[at].append(index)
        cores[at] = np.concatenate([cores[at], core])
        layer_of |= dict.fromkeys(things, at)
    return layers


def _overlap(some: np.ndarray, others: np.ndarray) -> bool:
    low, high = np.maximum(some[:, :2], others[:, :2]), np.minimum(some[:, 2:], others[:, 2:])
    return bool((low < high).all(axis=1).any())


def _is_flat(pixels: np.ndarray) -> bool:
    return not pixels.size or int(np.ptp(pixels.reshape(-1, 3), axis=0).max()) < SHADE


def _is_seen(changed: np.ndarray, text: str) -> bool:
    """Whether enough of a word is drawn to read it; a dash or a point is small."""
    least = SEEN if any(map(str.isalnum, text)) else 0.0
    return bool(changed.any() and changed.any(axis=0).mean() >= least and changed.any(axis=1).mean() >= least)
