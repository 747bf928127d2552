"""An answer for people and for programs: terminal, Markdown, HTML, JSON and BibTeX. Keys become numbers here. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from assay.codec import to_json
from assay.types import Answer, Claim, Document, Evidence, Outcome, Quote


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a claim's words stand, for a person: a number, a document, a page, the words."""

    number: int
    key: str
    document: str
    title: str
    authors: tuple[str, ...]
    date: str | None
    path: str
    page: int | None
    quote: Quote


SAID = {
    Outcome.answered: "",
    Outcome.direct: "Not from your documents.",
    Outcome.partial: "This is part of an answer.",
    Outcome.abstained: "The documents do not answer this.",
}
STOPS = {
    "sufficient": "the evidence was enough",
    "rounds": "the limit on rounds of searching was reached",
    "searches": "every search that the mode allows was made",
    "nothing_new": "nothing new was found",
    "repeated": "the same search came up again",
    "time": "the time was used up",
}


Cited = Mapping[tuple[str, int], Citation]  # by key and by where the words stand: one passage may be quoted twice


def citations(
    answer: Answer, evidence: Sequence[Evidence], document: Callable[[str], Document | None]
) -> dict[tuple[str, int], Citation]:
    """A numbered citation for everything the answer cites, in the order in which it appears."""
    by_key = {each.key: each for each in evidence}
    found: dict[tuple[str, int], Citation] = {}
    for claim in (*answer.claims, *answer.near):
        for key in claim.cites:
            source = document(by_key[key].passage.doc_id) if key in by_key else None
            if source is None:
                continue
            quote = claim.quote or by_key[key].quote
            found.setdefault(
                (key, quote.start),
                Citation(
                    len(found) + 1,
                    key,
                    source.id,
                    source.title,
                    source.authors,
                    source.date,
                    source.uri,
                    source.page_at(quote.start),
                    quote,
                ),
            )
    return found


def cited_by(claim: Claim, cited: Cited) -> list[Citation]:
    """A claim's own citations."""
    return [
        citation
        for (key, start), citation in cited.items()
        if key in claim.cites and (claim.quote is None or claim.quote.start == start)
    ]


def words_of(claim: Claim) -> str:
    """What a claim says; of a document that was removed, nothing is left to say."""
    return one_line(claim.words) or "(the document was removed)"


def one_line(words: str) -> str:
    return " ".join(words.split())


def marks(claim: Claim, cited: Cited) -> str:
    return "".join(f"[{each.number}]" for each in cited_by(claim, cited))


def place(citation: Citation) -> str:
    """`Title (2024), page 3 — file.pdf`"""
    date = f" ({citation.date})" if citation.date else ""
    page = f", page {citation.page}" if citation.page else ""
    return f"{citation.title}{date}{page} — {PurePath(citation.path).name}"


def remarks(answer: Answer, cited: Cited) -> list[str]:
    """What has to be said beside the claims: conflicts, gaps, what was searched, what could not be read."""
    said: list[str] = []
    for conflict in answer.conflicts:
        left, right = (_number(key, cited) for key in (conflict.left, conflict.right))
        said.append(f"The sources disagree: {left} and {right} ({conflict.about}).")
    if answer.since or answer.until:
        said.append(f"Nothing dated outside {answer.since or '…'} to {answer.until or '…'} was searched.")
    if answer.gaps:
        said.append(f"Nothing found speaks of: {', '.join(answer.gaps)}.")
    if answer.outcome in {Outcome.abstained, Outcome.partial}:
        tried = "; ".join(f"“{one_line(each.query)}” ({each.found} passages)" for each in answer.searched)
        said.append(f"Searched: {tried or 'nothing'}. Stopped because {STOPS.get(answer.stopped, answer.stopped)}.")
        if answer.unread:
            names = ", ".join(PurePath(uri).name for uri in answer.unread[:10])
            more = f" and {len(answer.unread) - 10} more" if len(answer.unread) > 10 else ""
            said.append(f"Could not be read, so not searched: {names}{more}.")
    return said


def _number(key: str, cited: Cited) -> str:
    return next((f"[{each.number}]" for (own, _), each in cited.items() if own == key), "")


def as_text(answer: Answer, cited: Cited) -> str:
    lines: list[str] = [SAID[answer.outcome]] if SAID[answer.outcome] else []
    for block in answer.blocks:
        lines += [block.heading] if block.heading else []
        lines += [f"{'• ' if len(answer.claims) > 1 else ''}“{words_of(claim)}” {marks(claim, cited)}" if claim.quote
                  else f"{words_of(claim)} {marks(claim, cited)}" for claim in block.claims]  # fmt: skip
    if answer.near:
        lines += ["", "The nearest that was found:"]
        lines += [f"• “{words_of(claim)}” {marks(claim, cited)}" for claim in answer.near]
    said = remarks(answer, cited)
    if said:
        lines += ["", *said]
    if cited:
        lines += ["", "Sources", *(f"[{each.number}] {place(each)}" for each in cited.values())]
    return "\n".join(lines)


MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|!~])")


def _md(words: str) -> str:
    return MARKDOWN.sub(r"\\\1", one_line(words))


def as_markdown(answer: Answer, cited: Cited) -> str:
    def line(claim: Claim) -> str:
        notes = "".join(f"[^{each.number}]" for each in cited_by(claim, cited))
        return f"- {_md(words_of(claim))} {notes}".rstrip()

    lines = [f"# {_md(answer.question)}", ""]
    lines += [f"*{SAID[answer.outcome]}*", ""] if SAID[answer.outcome] else []
    lines += [line(claim) for claim in answer.claims]
    if answer.near:
        lines += ["", "The nearest that was found:", "", *(line(claim) for claim in answer.near)]
    for remark in remarks(answer, cited):
        lines += ["", _md(remark)]
    lines += ["", *(f"[^{each.number}]: {_md(place(each))}: “{_md(each.quote.text)}”" for each in cited.values())]
    return "\n".join(lines).rstrip() + "\n"


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>body{{font:1rem/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}}
blockquote{{margin:.3rem 0;border-left:3px solid;padding-left:.8rem}}</style></head>
<body><h1>{title}</h1>
{body}
</body></html>
"""


def as_html(answer: Answer, cited: Cited) -> str:
    """One page that needs nothing else. Whatever comes from a document is escaped."""

    def line(claim: Claim) -> str:
        links = "".join(f'<a href="#s{each.number}">[{each.number}]</a>' for each in cited_by(claim, cited))
        return f"<li>{html.escape(words_of(claim))} {links}</li>"

    body = [f"<p><em>{SAID[answer.outcome]}</em></p>"] if SAID[answer.outcome] else []
    if answer.claims:
        body += ["<ul>", *(line(claim) for claim in answer.claims), "</ul>"]
    if answer.near:
        body += ["<p>The nearest that was found:</p>", "<ul>", *(line(claim) for claim in answer.near), "</ul>"]
    body += [f"<p>{html.escape(remark)}</p>" for remark in remarks(answer, cited)]
    if cited:
        body += ["<h2>Sources</h2>", "<ol>"]
        body += [
            f'<li id="s{each.number}">{html.escape(place(each))}'
            f"<blockquote>{html.escape(each.quote.text)}</blockquote></li>"
            for each in cited.values()
        ]
        body.append("</ol>")
    return PAGE.format(title=html.escape(one_line(answer.question)), body="\n".join(body))


def as_json(answer: Answer, cited: Cited) -> dict[str, Any]:
    """The answer as data; each citation with its document, page, offsets and words."""
    return {
        **to_json(answer),
        "citations": [
            {**to_json(each), "start": each.quote.start, "end": each.quote.end, "quote": each.quote.text}
            for each in cited.values()
        ],
    }


def as_bibtex(cited: Cited) -> str:
    """One entry per cited document."""
    entries: dict[str, str] = {}
    for each in cited.values():
        if each.document in entries:
            continue
        fields = {
            "title": each.title,
            "author": " and ".join(each.authors),
            "year": (each.date or "")[:4],
            "date": each.date or "",
            "file": PurePath(each.path).name,
        }
        rows = ",\n".join(f"  {name} = {{{_tex(value)}}}" for name, value in fields.items() if value)
        entries[each.document] = f"@misc{{{each.document},\n{rows}\n}}"
    return "\n\n".join(entries.values()) + ("\n" if entries else "")


TEX = str.maketrans({sign: f"\\{sign}" for sign in "&%$#_"} | {"{": "", "}": "", "\\": "", "~": " ", "^": ""})


def _tex(value: str) -> str:
    return one_line(value).translate(TEX)
