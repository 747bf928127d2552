"""Renders an account as a self-contained HTML page with a map of relations, and as a Markdown file with the same content. Pure.

The page sends no request and runs only its own script. Text of documents and models is escaped in both formats.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from math import hypot
from typing import Any

from markupsafe import Markup

from assay.answer.render import OPINION, OUTCOME_TEXT, claim_text
from assay.core.synthesis import DISAGREE, EXECUTIVE, EXPERT, PLAIN, Pipeline, Relation, RelationType, Synthesis
from assay.core.types import file_name
from assay.synthesis import content
from assay.synthesis.circle import Circle, MapLabel, Point, place_on_circle
from assay.synthesis.content import (
    TIES,
    FindDocument,
    Footnotes,
    abstract,
    asset,
    footnotes,
    in_order,
    template,
)

AUDIENCES = {EXPERT: "Expert", PLAIN: "Plain language", EXECUTIVE: "Executive"}
TABLE_DOCUMENTS = 6  # up to this many documents, the comparison is a table in Markdown; a wider one is unreadable
OPEN_QUESTIONS, OPEN_RELATIONS = 12, 30  # up to this many entries, the lists on the page are expanded
MAP_LEAD = (
    "Each line is a relation that quotations of both documents bear out. Point at a line, or reach it with the tab key, "
    "to read both. The list has the same relations."
)


def html(account: Synthesis, document: FindDocument = lambda _: None) -> str:
    """The page. It is complete without its script. With the documents, a quotation has its own page and section."""
    values = _values(account, document)
    types = [each for each in TIES if any(found.type is each for found in account.relations)]
    return template("page.html").render(
        values,
        policy=Markup(policy()),
        style=asset("page.css"),
        script=asset("page.js"),
        map=svg(account) if values["is_related"] else "",
        alone=[doc for doc in account.brief.documents if not any(doc in _pair(each) for each in account.relations)],
        ALONE=ALONE,
        relation_types=types,
        shown_types=[each for each in types if each in content.SHOWN] or types,
    )


def markdown(account: Synthesis, document: FindDocument = lambda _: None) -> str:
    """The whole account in one Markdown file; quotations are footnotes."""
    text = template("account.md").render(_values(account, document))
    if content.is_digest(account):  # sentences of one section share a note
        cited = set(re.findall(r"\[\^\d+\](?!:)", text))
        text = re.sub(r"^(\[\^\d+\]):.*\n", lambda note: note[0] if note[1] in cited else "", text, flags=re.M)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def policy() -> str:
    """The Content-Security-Policy: only the page itself and its own script."""
    digest = b64encode(sha256(asset("page.js").encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _values(account: Synthesis, document: FindDocument) -> dict[str, Any]:
    """The values that both templates use."""
    notes = footnotes(account, cache(document))
    values = {
        "account": account,
        "notes": notes,
        "is_deep": account.brief.pipeline is Pipeline.synthesis,
        "title": content.title(account),
        "subtitle": content.subtitle(account),
        "outcome": OUTCOME_TEXT[account.narrative.outcome],
        "texts": content.texts(account),
        "remarks": content.narrative_remarks(notes),
        "named_themes": [each for each in account.themes if each.name],
        "coverage": content.coverage(account),
        "comparison": content.comparison(notes),
        "contradictions": content.contradictions(account),
        "other_relations": content.other_relations(account),
        "counts": {str(tie): account.diagnostics.types.get(tie, 0) for tie in TIES},
        "cited": in_order(notes.cited.values()),
        "method": content.method(account),
        "anchors": {each.id: f"q{place}" for place, each in enumerate(account.questions, 1)},
        "questions_open": len(account.questions) <= OPEN_QUESTIONS,
        "claim_text": claim_text,
        "abstract": abstract,
        "OPINION": OPINION,
        "AUDIENCES": AUDIENCES,
        "TABLE_DOCUMENTS": TABLE_DOCUMENTS,
        "MAP_LEAD": MAP_LEAD,
        **{name: getattr(content, name) for name in content.PRINTED},
    }
    others = sum(map(len, values["other_relations"].values()))
    digest = values["is_digest"] = content.is_digest(account)
    values["is_related"] = values["is_deep"] and not digest
    differing = bool(values["contradictions"]) if digest else values["is_deep"]
    values["blocks"] = [each for each in account.narrative.blocks if not (digest and each.heading == DISAGREE)]
    rows = [(notes.label(row.doc_id), notes.title(row.doc_id), row.reason) for row in account.ledger if row.reason]
    files = [("", file_name(uri), "the file could not be read") for uri in account.narrative.unread]
    values["unread"] = list(dict.fromkeys((*rows, *files))) if digest else []
    values["comparison_labels"] = [notes.label(doc) for doc in values["comparison"].documents]
    values["relations_open"] = others <= OPEN_RELATIONS
    return values | {"headings": _headings(account, values, others, differing)}


def _headings(account: Synthesis, values: dict[str, Any], others: int, differing: bool) -> dict[str, str]:
    """The non-empty sections in order: id → heading. A digest has what it quotes, what differs, and what was not read."""
    found, told = account.diagnostics, not values["is_digest"]
    differ = f"{'Contradictions' if told else DISAGREE} ({len(values['contradictions'])})"
    return {
        id: heading
        for id, heading, present in (
            ("contradictions", differ, differing and not told),
            ("account", "The account", True),
            ("spine", "Theme and plan", account.theme or values["named_themes"]),
            ("left-out", "Left out", account.left_out),
            ("coverage", "Coverage", told and account.ledger),
            ("map", "Map of relations", values["is_related"]),
            ("comparison", "Comparison", values["comparison"].rows),
            ("contradictions", differ, differing and told),
            ("unread", "Could not be read", values["unread"]),
            ("relations", f"Other relations ({others})", values["is_related"]),
            ("questions", f"Questions ({len(account.questions)})", account.questions),
            ("documents", f"Documents ({len(account.brief.documents)})", told and account.brief.documents),
            ("quotations", f"Quotations ({len(values['cited'])})", told and values["cited"]),
            (
                "diagnostics",
                "Diagnostics",
                told and (any(values["counts"].values()) or found.reading or found.dropped or found.rerankers),
            ),
            ("method", "Method and cost", True),
        )
        if present
    }


# --- map -------------------------------------------------------------------------------------------------------------
# The type of a relation is shown by colour and dashes; the switches beside it are the legend.

MARGIN = 16.0
BUNDLE = 150.0  # maximum spread of all curves between two documents
BETWEEN = 36.0  # maximum distance between two adjacent curves
ALONE = "no relation found"


@dataclass(frozen=True, slots=True)
class MapEdge:
    """A relation as a curve, with the same number as in the lists."""

    number: int
    relation: Relation
    path: str


def svg(account: Synthesis) -> Markup:
    """The map of an account as one SVG, with an edge for every relation and a node for every document."""
    notes = footnotes(account)
    circle = place_on_circle(map_labels(account, notes))
    left, top, right, bottom = circle.bounds()
    picture = template("chart.svg").render(
        account=account,
        notes=notes,
        circle=circle,
        box=(left - MARGIN, top - MARGIN, right - left + 2 * MARGIN, bottom - top + 2 * MARGIN),
        style=asset("chart.css"),
        edges=_edges(account, circle),
        related={doc for each in account.relations for doc in _pair(each)},
        ALONE=ALONE,
    )
    return Markup(picture)


def map_labels(account: Synthesis, notes: Footnotes) -> tuple[MapLabel, ...]:
    return tuple(MapLabel(doc, notes.label(doc), notes.title(doc)) for doc in account.brief.documents)


def _edges(account: Synthesis, circle: Circle) -> list[MapEdge]:
    """Curves between documents, spread out if there are several; contradictions are drawn on top."""
    nodes = {spot.named.doc_id: spot.node for spot in circle.spots if spot.named.doc_id}
    order = list(nodes)
    numbered = [(n, each) for n, each in enumerate(account.relations, 1) if _pair(each) <= nodes.keys()]
    between = Counter(_pair(each) for _, each in numbered)
    drawn: Counter[frozenset[str]] = Counter()
    edges: list[MapEdge] = []
    for number, relation in numbered:
        pair = _pair(relation)
        start, end = sorted((relation.left.doc_id, relation.right.doc_id), key=order.index)
        edges.append(MapEdge(number, relation, _curve(nodes[start], nodes[end], drawn[pair], between[pair])))
        drawn[pair] += 1
    return sorted(edges, key=lambda each: each.relation.type is RelationType.contradiction)


def _pair(relation: Relation) -> frozenset[str]:
    return frozenset((relation.left.doc_id, relation.right.doc_id))


def _curve(start: Point, end: Point, place: int, several: int) -> str:
    """A curve that bends towards the centre; the `place`-th of `several` between the same two documents."""
    (ax, ay), (bx, by) = start, end
    length = hypot(bx - ax, by - ay) or 1.0
    step = min(BETWEEN, BUNDLE / max(1, several - 1))
    aside = (place - (several - 1) / 2) * step
    mx, my = (ax + bx) / 2 * 0.4, (ay + by) / 2 * 0.4
    cx, cy = mx - (by - ay) / length * aside, my + (bx - ax) / length * aside
    return f"M{ax:.1f} {ay:.1f}Q{cx:.1f} {cy:.1f} {bx:.1f} {by:.1f}"
