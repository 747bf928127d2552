"""Renders an account as a self-contained HTML page, and as a Markdown file with the same content. Pure.

The page sends no request and runs only its own script. Text of documents and models is escaped in both formats.
"""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from typing import Any

from markupsafe import Markup

from assay.answer.render import OPINION, OUTCOME_TEXT, claim_text
from assay.core.synthesis import EXECUTIVE, EXPERT, PLAIN, Pipeline, Synthesis
from assay.synthesis.output import content
from assay.synthesis.output.chart import svg
from assay.synthesis.output.footnotes import FindDocument, Footnotes, abstract, footnotes, in_order
from assay.synthesis.output.templating import asset, html_environment, markdown_environment

AUDIENCES = {EXPERT: "Expert", PLAIN: "Plain language", EXECUTIVE: "Executive"}
TABLE_DOCUMENTS = 6  # up to this many documents, the comparison is a table in Markdown; a wider one is unreadable
OPEN_QUESTIONS, OPEN_RELATIONS = 12, 30  # up to this many entries, the lists on the page are expanded
MAP_LEAD = (
    "Each line is a relation that quotations of both documents bear out. Point at a line, or reach it with the tab key, "
    "to read both; follow it to the list below."
)


def html(account: Synthesis, document: FindDocument = lambda _: None) -> str:
    """The page. It is complete without its script. With the documents, a quotation has its own page and section."""
    values = _values(account, document)
    deep = account.brief.pipeline is Pipeline.synthesis
    template = html_environment().get_template("page.html")
    return template.render(
        values,
        policy=Markup(policy()),
        style=asset("page.css"),
        script=asset("page.js"),
        map=svg(account) if deep else "",
        relation_types=[each for each in content.TIES if any(found.type is each for found in account.relations)],
    )


def markdown(account: Synthesis, document: FindDocument = lambda _: None) -> str:
    """The whole account in one Markdown file; quotations are footnotes."""
    text = markdown_environment().get_template("account.md").render(_values(account, document))
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
        "counts": content.type_counts(account),
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
    values["comparison_labels"] = [notes.label(doc) for doc in values["comparison"].documents]
    return values | {"headings": _headings(notes, values, others), "relations_open": others <= OPEN_RELATIONS}


def _headings(notes: Footnotes, values: dict[str, Any], others: int) -> dict[str, str]:
    """The non-empty sections in order: id → heading."""
    account, found = notes.account, notes.account.diagnostics
    deep = values["is_deep"]
    return {
        id: heading
        for id, heading, present in (
            ("account", "The account", True),
            ("spine", "Theme and plan", account.theme or values["named_themes"]),
            ("left-out", "Left out", account.left_out),
            ("coverage", "Coverage", account.ledger),
            ("map", "Map of relations", deep),
            ("comparison", "Comparison", values["comparison"].rows),
            ("contradictions", f"Contradictions ({len(values['contradictions'])})", deep),
            ("relations", f"Other relations ({others})", deep),
            ("questions", f"Questions ({len(account.questions)})", account.questions),
            ("documents", f"Documents ({len(account.brief.documents)})", account.brief.documents),
            ("quotations", f"Quotations ({len(values['cited'])})", values["cited"]),
            (
                "diagnostics",
                "Diagnostics",
                any(values["counts"].values()) or found.reading or found.dropped or found.rerankers,
            ),
            ("method", "Method and cost", True),
        )
        if present
    }
