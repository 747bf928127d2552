"""Layout of the map: documents on a circle, with names that do not overlap. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, count
from math import ceil, cos, degrees, hypot, pi, radians, sin

FEW = 14  # up to this many nodes, names are upright and wrapped; above, they are rotated outwards
LARGE, SMALL = 14.0, 12.0  # font sizes of upright and of rotated names
LEADING = 17.0
WIDE, LONG = 185.0, 250.0  # line widths of an upright and of a rotated name
LINES = 3
NODE, DOT = 17.0, 6.5  # node radius among few and among many
APART = 17.0  # distance between two rotated names
GAP = 8.0  # distance from a node to its name
NARROW = frozenset("ijlftrI.,:;'’|!()[] -·")
BROAD = frozenset("mwMW@%&…—")
TOP = -pi / 2

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class MapLabel:
    """A document to place: its label and its title."""

    doc_id: str
    label: str
    name: str


@dataclass(frozen=True, slots=True)
class MapNode:
    """A node on the circle, and its name in lines that begin at `at`, rotated by `turn` degrees."""

    named: MapLabel
    node: Point
    at: Point
    anchor: str  # start, middle or end
    turn: float
    size: float
    lines: tuple[str, ...]

    @property
    def label_in_line(self) -> bool:
        """Whether the single line of the name begins with the label."""
        return self.lines[0].startswith(f"{self.named.label} ")

    def corners(self) -> tuple[Point, ...]:
        """The corners of the bounding box of the name."""
        wide = max(width(line, self.size) for line in self.lines)
        left = {"start": 0.0, "middle": -wide / 2, "end": -wide}[self.anchor]
        top, bottom = -self.size * 0.85, (len(self.lines) - 1) * LEADING + self.size * 0.3
        c, s = cos(radians(self.turn)), sin(radians(self.turn))
        box = ((left, top), (left + wide, top), (left + wide, bottom), (left, bottom))
        return tuple((self.at[0] + x * c - y * s, self.at[1] + x * s + y * c) for x, y in box)


@dataclass(frozen=True, slots=True)
class Circle:
    """All nodes, and their size."""

    spots: tuple[MapNode, ...]
    node: float

    @property
    def upright(self) -> bool:
        return self.node == NODE

    def bounds(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom of everything that is drawn."""
        points = [corner for spot in self.spots for corner in spot.corners()]
        points += [(x + dx, y + dx) for x, y in (spot.node for spot in self.spots) for dx in (-self.node, self.node)]
        xs, ys = [x for x, _ in points] or [0.0], [y for _, y in points] or [0.0]
        return min(xs), min(ys), max(xs), max(ys)


def place_on_circle(places: Sequence[MapLabel]) -> Circle:
    """Place the labels in the given order, clockwise from the top. Names do not overlap, however many there are."""
    if len(places) > FEW:
        return _turned(places)
    circles = (_upright(places, radius) for radius in count(130.0 + 8.0 * len(places), 10.0))
    return next(circle for circle in circles if not overlapping(circle.spots))


def overlapping(spots: Sequence[MapNode]) -> list[tuple[MapNode, MapNode]]:
    """Pairs of names that overlap."""
    boxes = [(spot, spot.corners()) for spot in spots]
    return [(a, b) for (a, first), (b, second) in combinations(boxes, 2) if overlap(first, second)]


def overlap(first: Sequence[Point], second: Sequence[Point]) -> bool:
    """Whether two rectangles, possibly rotated, overlap: no side of either separates them."""
    for box in (first, second):
        for (ax, ay), (bx, by) in ((box[0], box[1]), (box[1], box[2])):
            length = hypot(bx - ax, by - ay) or 1.0
            ux, uy = (bx - ax) / length, (by - ay) / length
            one, two = ([x * ux + y * uy for x, y in points] for points in (first, second))
            if max(one) <= min(two) or max(two) <= min(one):
                return False
    return True


def width(words: str, size: float) -> float:
    """Approximate width of words. Rather too wide than too narrow, since the font is not known."""
    return size * sum(_advance(sign) for sign in words)


def _advance(sign: str) -> float:
    if unicodedata.east_asian_width(sign) in "WF":
        return 1.05
    if unicodedata.combining(sign):
        return 0.0
    if sign in NARROW:
        return 0.42
    if sign in BROAD:
        return 1.0
    return 0.74 if sign.isupper() else 0.64


def cut(words: str, size: float, room: float) -> str:
    """Cut words to the width, with an ellipsis if any were cut."""
    if width(words, size) <= room:
        return words
    while words and width(words + "…", size) > room:
        words = words[:-1]
    whole = words.rpartition(" ")[0]  # prefer cutting at a word boundary, unless that loses too much
    return (whole if len(whole) > 0.6 * len(words) else words).rstrip(" ,;:.-–—") + "…"


def wrap(words: str, size: float, room: float, lines: int) -> tuple[str, ...]:
    """Wrap words into at most `lines` lines."""
    made: list[str] = []
    rest = words.split()
    while rest and len(made) < lines - 1:
        line = rest.pop(0)
        while rest and width(f"{line} {rest[0]}", size) <= room:
            line += f" {rest.pop(0)}"
        made.append(cut(line, size, room))
    return (*made, cut(" ".join(rest), size, room)) if rest else tuple(made) or ("",)


def _angles(places: int) -> list[float]:
    first = pi if places == 2 else TOP
    return [first + 2 * pi * place / max(1, places) for place in range(places)]


def _upright(places: Sequence[MapLabel], radius: float) -> Circle:
    """Names beside their nodes; above the topmost node and below the lowest."""
    spots: list[MapNode] = []
    for named, angle in zip(places, _angles(len(places)), strict=True):
        x, y = radius * cos(angle), radius * sin(angle)
        lines = wrap(named.name, LARGE, WIDE, LINES)
        tall = (len(lines) - 1) * LEADING
        away = NODE + GAP
        beside = y - tall / 2 + LARGE * 0.33 + sin(angle) * tall * 0.3
        if abs(cos(angle)) < 0.2:
            anchor, at = "middle", (x, y - away - tall - 3.0 if sin(angle) < 0 else y + away + LARGE * 0.85)
        elif cos(angle) > 0:
            anchor, at = "start", (x + away, beside)
        else:
            anchor, at = "end", (x - away, beside)
        spots.append(MapNode(named, (x, y), at, anchor, 0.0, LARGE, lines))
    return Circle(tuple(spots), NODE)


def _turned(places: Sequence[MapLabel]) -> Circle:
    """Names rotated outwards like spokes; flipped on the left side, so that none is upside down."""
    radius = max(280.0, ceil(len(places) * APART / (2 * pi)))
    spots: list[MapNode] = []
    for named, angle in zip(places, _angles(len(places)), strict=True):
        begins = radius + DOT + GAP
        left = cos(angle) < -1e-9
        turn = degrees(angle) + (180.0 if left else 0.0)
        shift = SMALL * 0.35  # text is placed by its baseline; the spoke goes through its middle
        sx, sy = -sin(radians(turn)) * shift, cos(radians(turn)) * shift
        at = (begins * cos(angle) + sx, begins * sin(angle) + sy)
        words = cut(f"{named.label} {named.name}".strip(), SMALL, LONG)
        node = (radius * cos(angle), radius * sin(angle))
        spots.append(MapNode(named, node, at, "end" if left else "start", turn, SMALL, (words,)))
    return Circle(tuple(spots), DOT)
