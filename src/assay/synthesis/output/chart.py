"""The relation map as a picture: documents on a circle, relations as curves between them, each with its quotations. Pure.

Type is told by colour and by dashes. The picture needs nothing else, in a page or as a file of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib import resources
from itertools import pairwise
from math import cos, hypot, pi, sin

from assay.core.account import Account, Relation, Tie
from assay.synthesis.output.circle import Circle, Named, Point, Spot, around, width
from assay.synthesis.output.footnotes import Footnotes, footnotes, shown
from assay.synthesis.output.rows import TIES

MARGIN = 16.0
ROW = 26.0  # of the legend
KEY = 13.0  # letters of the legend
BUNDLE = 150.0  # how far apart all curves between two documents may lie
BETWEEN = 36.0  # and each from the next
ALONE = "no relation found"


def svg(account: Account) -> str:
    """The map of an account as one picture. Every relation is an edge of its own, and every document is there."""
    notes = footnotes(account)
    circle = around(places(account, notes))
    left, top, right, bottom = circle.bounds()
    keyed, tall = _legend(account, circle, left, bottom + MARGIN, max(right - left, 560.0))
    right = max(right, left + 560.0)
    box = (
        f"{left - MARGIN:.1f} {top - MARGIN:.1f} {right - left + 2 * MARGIN:.1f} {bottom - top + tall + 3 * MARGIN:.1f}"
    )
    count = f"{len(account.brief.documents)} documents and {len(account.relations)} relations"
    size = "few" if circle.upright else "many"
    opening = f'class="relation-map {size}" viewBox="{box}" role="group" aria-label="Map of {count}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {opening}>',
            f"<style>{style()}</style>",
            *_arcs(account, circle),
            *_edges(account, notes, circle),
            *(_spot(spot, circle, notes) for spot in circle.spots),
            *keyed,
            "</svg>",
        ]
    )


@cache
def style() -> str:
    return (resources.files("assay.synthesis.output") / "chart.css").read_text(encoding="utf-8")


def places(account: Account, notes: Footnotes) -> tuple[Named, ...]:
    """Documents theme by theme, each theme led by its name; by label within. A document is there once, themed or not."""
    named: list[Named] = []
    left = dict.fromkeys(account.brief.documents)
    for theme in account.themes if len(account.themes) > 1 else ():
        own = [doc for doc in left if doc in theme.documents]
        if own:
            named.append(Named("", "", shown(theme.name)))
            named += [_named(doc, notes) for doc in own]
        left = {doc: None for doc in left if doc not in own}
    return (*named, *(_named(doc, notes) for doc in left))


def _named(doc: str, notes: Footnotes) -> Named:
    return Named(doc, notes.label(doc), notes.title(doc))


def _arcs(account: Account, circle: Circle) -> list[str]:
    """A stretch of the circle for each theme, from its name to its last document."""
    arcs: list[str] = []
    heads = [place for place, spot in enumerate(circle.spots) if not spot.named.doc_id]
    themed = {doc for theme in account.themes for doc in theme.documents}
    for head, until in pairwise([*heads, len(circle.spots)]):
        own = [spot for spot in circle.spots[head + 1 : until] if spot.named.doc_id in themed]
        if not own:
            continue
        begin, end = own[0].angle - 0.03, own[-1].angle + 0.03
        inner = circle.radius - circle.node - 7
        (ax, ay), (bx, by) = ((inner * cos(angle), inner * sin(angle)) for angle in (begin, end))
        far = 1 if end - begin > pi else 0
        arcs.append(f'<path class="arc" d="M{ax:.1f} {ay:.1f}A{inner:.1f} {inner:.1f} 0 {far} 1 {bx:.1f} {by:.1f}"/>')
    return arcs


def _edges(account: Account, notes: Footnotes, circle: Circle) -> list[str]:
    """Curves between documents, apart from each other where there are several; contradictions lie on top."""
    nodes = {spot.named.doc_id: spot.node for spot in circle.spots if spot.named.doc_id}
    drawable = [
        (number, each)
        for number, each in enumerate(account.relations, 1)
        if each.left.doc_id in nodes and each.right.doc_id in nodes
    ]
    between = Counter(_pair(each) for _, each in drawable)
    drawn: Counter[frozenset[str]] = Counter()
    edges: list[tuple[bool, str]] = []
    for number, relation in drawable:
        pair = _pair(relation)
        ends = sorted((relation.left.doc_id, relation.right.doc_id), key=list(nodes).index)
        path = _curve(nodes[ends[0]], nodes[ends[1]], drawn[pair], between[pair])
        drawn[pair] += 1
        edges.append((relation.type is Tie.contradiction, _edge(number, relation, path, notes)))
    return [edge for _, edge in sorted(edges, key=lambda each: each[0])]


def _pair(relation: Relation) -> frozenset[str]:
    return frozenset((relation.left.doc_id, relation.right.doc_id))


def _curve(start: Point, end: Point, place: int, several: int) -> str:
    """A curve that bends towards the middle; the `place`-th of several between the same two documents."""
    (ax, ay), (bx, by) = start, end
    length = hypot(bx - ax, by - ay) or 1.0
    step = min(BETWEEN, BUNDLE / max(1, several - 1))
    aside = (place - (several - 1) / 2) * step
    mx, my = (ax + bx) / 2 * 0.4, (ay + by) / 2 * 0.4
    cx, cy = mx - (by - ay) / length * aside, my + (bx - ax) / length * aside
    return f"M{ax:.1f} {ay:.1f}Q{cx:.1f} {cy:.1f} {bx:.1f} {by:.1f}"


def _edge(number: int, relation: Relation, path: str, notes: Footnotes) -> str:
    left, right = (notes.label(side.doc_id) for side in (relation.left, relation.right))
    said = "\n".join(
        [
            f"{relation.type.value}: {left} and {right}",
            *([shown(relation.reason)] if shown(relation.reason) else []),
            *(f"{notes.label(side.doc_id)}: “{shown(side.quote.text)}”" for side in (relation.left, relation.right)),
        ]
    )
    return (
        f'<a class="edge {relation.type.value}" href="#r{number}" data-ends="{left} {right}">'
        f'<title>{escape(said)}</title><path class="reach" d="{path}"/><path class="line" d="{path}"/></a>'
    )


def _spot(spot: Spot, circle: Circle, notes: Footnotes) -> str:
    x, y = spot.at
    turn = f' transform="rotate({spot.turn:.2f} {x:.1f} {y:.1f})"' if spot.turn else ""
    text = f'<text class="name" x="{x:.1f}" y="{y:.1f}" font-size="{spot.size:g}" text-anchor="{spot.anchor}"{turn}>'
    if not spot.named.doc_id:
        return f'<g class="theme">{text}{_lines(spot)}</text></g>'
    account = notes.account
    alone = not any(spot.named.doc_id in _pair(each) for each in account.relations)
    (nx, ny), label = spot.node, spot.named.label
    inside = (
        f'<text class="label" x="{nx:.1f}" y="{ny + 4.5:.1f}" font-size="13" text-anchor="middle">{label}</text>'
        if circle.upright
        else ""
    )
    return (
        f'<a class="node{" alone" if alone else ""}" href="#{label}" data-doc="{label}">'
        f"<title>{escape(f'{label}: {spot.named.name}')}{f' ({ALONE})' if alone else ''}</title>"
        f'<circle cx="{nx:.1f}" cy="{ny:.1f}" r="{circle.node:g}"/>{inside}{text}{_lines(spot)}</text></a>'
    )


def _lines(spot: Spot) -> str:
    label = spot.named.label
    if len(spot.lines) == 1:
        line = spot.lines[0]
        bold = bool(label) and line.startswith(f"{label} ")
        rest = line.removeprefix(label) if bold else line
        return (f'<tspan class="label">{label}</tspan>' if bold else "") + escape(rest)
    return "".join(
        f'<tspan x="{spot.at[0]:.1f}" dy="{17 if place else 0}">{escape(line)}</tspan>'
        for place, line in enumerate(spot.lines)
    )


def _legend(account: Account, circle: Circle, left: float, top: float, room: float) -> tuple[list[str], float]:
    """What each kind of line means and how many there are, set in rows; and how tall it all is."""
    counted = Counter(each.type for each in account.relations)
    related = {doc for each in account.relations for doc in _pair(each)}
    alone = sum(doc not in related for doc in account.brief.documents)
    entries: Sequence[tuple[str, str]] = [
        *((tie.value, f"{tie.value} ({counted[tie]})") for tie in TIES),
        *([("alone", f"{ALONE} ({alone})")] if alone else []),
    ]
    made: list[str] = []
    x, y = 0.0, 0.0
    for kind, words in entries:
        wide = 46.0 + width(words, KEY) + 18.0
        if x and x + wide > room:
            x, y = 0.0, y + ROW
        sign = (
            f'<g class="node alone"><circle cx="{left + x + 19:.1f}" cy="{top + y + 8:.1f}" r="6.5"/></g>'
            if kind == "alone"
            else f'<path class="line" d="M{left + x:.1f} {top + y + 8:.1f}h38"/>'
        )
        text = f'<text x="{left + x + 46:.1f}" y="{top + y + 12.5:.1f}" font-size="{KEY:g}">{escape(words)}</text>'
        made.append(f'<g class="key {kind}">{sign}{text}</g>')
        x += wide
    return made, y + ROW
