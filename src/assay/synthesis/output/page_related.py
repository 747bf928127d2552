"""The middle of the page: the map, contradictions side by side, and every other relation. Pure."""

from __future__ import annotations

from assay.core.account import Pipeline, Relation, Side
from assay.synthesis.output.chart import svg
from assay.synthesis.output.footnotes import Footnotes
from assay.synthesis.output.rows import (
    NO_CONTRADICTIONS,
    NO_OTHERS,
    NO_RELATIONS,
    TIES,
    contradictions,
    other_relations,
)
from assay.synthesis.output.typeset import label, links, section, words

HOW_TO_READ = (
    "Each line is a relation that quotations of both documents bear out. Point at a line, or reach it with the tab key, "
    "to read both; follow it to the list below."
)
OPEN = 30  # relations up to which the lists stand open


def picture(notes: Footnotes) -> str:
    """The map, with a switch for each type of relation that there is; the numbers on the lines lead to the list."""
    account = notes.account
    if account.brief.pipeline is Pipeline.summary:
        return ""
    there = [tie for tie in TIES if any(each.type is tie for each in account.relations)]
    switches = "".join(
        f'<label class="switch"><input type="checkbox" id="show-{tie}" checked> {tie}</label>' for tie in there
    )
    hidden = "".join(
        f"#map:has(#show-{tie}:not(:checked)) .edge.{tie}{{display:none}}" for tie in there
    )  # no program is needed to hide a type of line
    many = " many" if len(account.brief.documents) > 20 else ""
    return section(
        "map",
        "Map of relations",
        f'<style>{hidden}</style><div class="switches" role="group" aria-label="Lines to show">{switches}</div>'
        if there
        else "",
        '<a class="skip" href="#after-map">Skip the map</a>'
        f'<div class="chart{many}" tabindex="0" role="region" aria-label="Map">{svg(account)}</div>'
        '<div id="pointed" role="tooltip" hidden></div><span id="after-map"></span>',
        lead=HOW_TO_READ if there else NO_RELATIONS,
    )


def opposed(notes: Footnotes) -> str:
    """Contradictions, both sides beside each other."""
    if notes.account.brief.pipeline is Pipeline.summary:
        return ""
    found = contradictions(notes.account)
    return section(
        "contradictions",
        f"Contradictions ({len(found)})",
        *(_relation(notes, number, each) for number, each in found),
        "" if found else f"<p>{NO_CONTRADICTIONS}</p>",
    )


def others(notes: Footnotes) -> str:
    """All other relations, type by type."""
    if notes.account.brief.pipeline is Pipeline.summary:
        return ""
    found = other_relations(notes.account)
    opened = " open" if sum(map(len, found.values())) <= OPEN else ""
    return section(
        "relations",
        f"Other relations ({sum(map(len, found.values()))})",
        *(
            f'<details class="group"{opened}><summary><h3>{tie.value.capitalize()} ({len(own)})</h3></summary>'
            + "\n".join(_relation(notes, number, each) for number, each in own)
            + "</details>"
            for tie, own in found.items()
        ),
        "" if found else f"<p>{NO_OTHERS}</p>",
    )


def _relation(notes: Footnotes, number: int, relation: Relation) -> str:
    left, right = (label(notes, side.doc_id) for side in (relation.left, relation.right))
    asked = dict.fromkeys(about for side in (relation.left, relation.right) if (about := notes.about(side.insight)))
    about = f'<p class="about">{" / ".join(words(each) for each in asked)}</p>' if asked else ""
    reason = f"<p>{words(relation.reason)}</p>" if relation.reason else ""
    return (
        f'<article class="relation {relation.type}" id="r{number}"><p class="tie"><b>{relation.type}</b> '
        f"{left} and {right} <small>told by {words(relation.by)}</small></p>{about}{reason}"
        f'<div class="sides">{_side(notes, relation.left)}{_side(notes, relation.right)}</div></article>'
    )


def _side(notes: Footnotes, side: Side) -> str:
    where = " · ".join(filter(None, (notes.where(each) for each in notes.of_side(side))))
    return (
        f'<blockquote dir="auto"><q>{words(side.quote.text)}</q><footer>{label(notes, side.doc_id)} '
        f"<bdi>{words(notes.title(side.doc_id))}</bdi>{f' · {words(where)}' if where else ''} "
        f"{links(notes.of_side(side))}</footer></blockquote>"
    )
