"""How the page sets what it shows again and again: words, a document's label, a citation, a quotation. Pure.

Whatever comes from a document or a model goes through `words`, and nothing else makes text of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from assay.answer.render import Citation
from assay.synthesis.output.footnotes import Footnotes, shown

INSTRUCTS = "this passage reads like an instruction to a model"


def words(said: str) -> str:
    """Words as text of a page or as the value of an attribute: nothing in them is markup, and nothing is hidden."""
    return escape(shown(said))


def section(name: str, heading: str, *parts: str, lead: str = "") -> str:
    """A section that can be linked to; empty where there is nothing to put into it."""
    body = [part for part in parts if part]
    if not body:
        return ""
    first = f'<p class="lead">{words(lead)}</p>' if lead else ""
    return f'<section id="{name}" aria-labelledby="{name}-h"><h2 id="{name}-h">{heading}</h2>\n{first}' + "\n".join(
        [*body, "</section>"]
    )


def label(notes: Footnotes, doc_id: str) -> str:
    """D3, leading to the document, with its title at hand."""
    name = notes.label(doc_id)
    if doc_id not in notes.labels:
        return name
    return f'<a class="doc" href="#{name}" title="{words(notes.title(doc_id))}">{name}</a>'


def labels(notes: Footnotes, documents: Iterable[str]) -> str:
    return " ".join(label(notes, doc) for doc in documents)


def links(citations: Iterable[Citation]) -> str:
    """Numbers that lead to the list of quotations."""
    return "".join(f'<a class="n" href="#c{each.number}">[{each.number}]</a>' for each in citations)


def opening(notes: Footnotes, citations: Iterable[Citation]) -> str:
    """Numbers that open where they stand and show the words, without leaving the sentence."""
    return "".join(
        f'<details class="cite"><summary aria-label="Citation {each.number}, from {notes.label(each.document)}">'
        f"[{each.number}]</summary>{quotation(notes, each)}</details>"
        for each in citations
    )


def quotation(notes: Footnotes, citation: Citation) -> str:
    """The words, and where they stand."""
    where = notes.where(citation)
    warned = f' · <strong class="warn">{INSTRUCTS}</strong>' if citation.flagged else ""
    return (
        f'<blockquote dir="auto"><q>{words(citation.quote.text)}</q><footer>{label(notes, citation.document)} '
        f"<bdi>{words(citation.title)}</bdi>{f' · {words(where)}' if where else ''}{warned}</footer></blockquote>"
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, kind: str = "", caption: str = "") -> str:
    """A table that scrolls by itself. Heads and cells are markup already; the first cell of a row is its head."""
    told = [f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>' for row in rows]
    above = "".join(f'<th scope="col">{head}</th>' for head in heads)
    return (
        f'<div class="scroll {kind}" tabindex="0" role="region" aria-label="{words(caption)}"><table>'
        f"<thead><tr>{above}</tr></thead><tbody>\n" + "\n".join(told) + "\n</tbody></table></div>"
    )


def listed(items: Iterable[str], *, kind: str = "") -> str:
    """A list of markup; nothing where there is nothing to list."""
    inside = "".join(f"<li>{item}</li>" for item in items)
    return f'<ul class="{kind}">{inside}</ul>' if inside else ""
