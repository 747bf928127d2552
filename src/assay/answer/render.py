"""Renders an answer as terminal text, Markdown, HTML, JSON and BibTeX. Evidence keys become citation numbers here.
Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

from assay.answer.claim_details import ShownWorking, basis
from assay.answer.extracts import Stretch, quoted_in_place
from assay.core.codec import to_json
from assay.core.events import BUDGETS
from assay.core.printable import clean_text
from assay.core.types import (
    BETWEEN,
    Answer,
    Basis,
    Block,
    Claim,
    Document,
    Evidence,
    Examined,
    Outcome,
    Quote,
    Shape,
    file_name,
    omitted_when_empty,
)
from assay.ingest.metadata.file_fields import is_organisation
from assay.language.quotation import within
from assay.tables.parts import PartRow, TablePart, text_table

if TYPE_CHECKING:
    from jinja2 import Template


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation as shown to a person: number, document, page, quoted text."""

    number: int
    key: str
    document: str
    title: str
    authors: tuple[str, ...]
    date: str | None
    path: str
    page: int | None
    quote: Quote
    flagged: bool = False  # the passage reads like an instruction to a model
    table: TablePart | None = None  # the rows of a table that the quotation is from, with their header
    weighed: bool = True  # the quotation that was weighed as evidence, not words that a judge named
    under: tuple[str, ...] = omitted_when_empty(())  # headings and subject that the quotation does not say itself
    marks: tuple[Quote, ...] = omitted_when_empty(())  # the words in it that answer
    words: tuple[Stretch, ...] = omitted_when_empty(())  # the quotation below its headings, as it is shown

    @property
    def place(self) -> str:
        """`Title › Heading › Subject, page 3`"""
        page = f", page {self.page}" if self.page else ""
        return one_line(BETWEEN.join(filter(None, (self.title or file_name(self.path), *self.under)))) + page


# One line above extracts: the three cases, by one probability (`answer/extracts.py`).
EXTRACTS_TEXT = {
    Outcome.answered: "Found in your documents:",
    Outcome.partial: "Perhaps in your documents:",
    Outcome.abstained: "Not found in your documents. The nearest:",
}
NOTHING = "Not found in your documents."
NEAREST = "The nearest that was found:"
OUTCOME_TEXT = {
    Outcome.answered: "",
    Outcome.direct: "Not from your documents.",
    Outcome.partial: "This is part of an answer.",
    Outcome.abstained: "The documents do not answer this.",
}
STOP_TEXT = {
    "sufficient": "the evidence was enough",
    "rounds": "the limit on rounds of searching was reached",
    "searches": "every search that the mode allows was made",
    "nothing_new": "nothing new was found",
    "repeated": "the same search came up again",
    "time": "the time was used up",
    "calls": "the limit on requests to a model was reached",
    "tokens": "the limit on tokens was reached",
    "money": "the limit on cost was reached",
    "person": "somebody asked for the answer now",
    "unusable": "the model's replies could not be used",
    "exhausted": "everything that matches was looked at",
}
LIMIT_TEXT = {
    "rounds": "the limit on rounds of searching",
    "searches": "the limit on searches",
    "time": "the limit on time",
    "calls": "the limit on requests to a model",
    "tokens": "the limit on tokens",
    "money": "the limit on cost",
}
CONFLICT_TEXT = {True: "These differ", False: "The sources disagree"}  # of extracts, nobody has judged it
SEARCHED = "Searched for"
OPINION = "Opinion"
ROW = " | "


Cited = Mapping[tuple[str, Quote], Citation]  # by key and words: one passage may be quoted twice
Workings = Mapping[Claim, ShownWorking]
NO_WORKINGS: Workings = {}


def citations(
    answer: Answer, evidence: Sequence[Evidence], document: Callable[[str], Document | None]
) -> dict[tuple[str, Quote], Citation]:
    """A numbered citation for everything the answer cites, in order of appearance."""
    by_key = {each.key: each for each in evidence}
    stated = frozenset(answer.claims)
    found: dict[tuple[str, Quote], Citation] = {}
    for claim in (*answer.claims, *answer.near):
        for key, quote in quotes_of(claim, by_key):
            source = document(quote.doc_id)
            if source is None or (key, quote) in found:
                continue
            marks, words = claim.marks, quote
            if claim.derived and _from_table(claim):
                marks = tuple(each for each in claim.derived.operands if each.doc_id == source.id)
                words = _spanned(marks, source) if marks and not claim.carried_by else quote
            marks = marks if claim in stated else ()  # what is only near has no words that answer
            shown = quoted_in_place(source, words, marks)
            found[key, quote] = Citation(
                len(found) + 1,
                key,
                source.id,
                source.title,
                source.authors,
                source.date,
                source.uri,
                shown.page,
                quote,
                by_key[key].flagged,
                shown.table,
                quote == by_key[key].quote,
                shown.under,
                marks,
                shown.words,
            )
    return found


def _from_table(claim: Claim) -> bool:
    return claim.derived is not None and basis(claim) is not Basis.catalogue


def _spanned(quotes: Sequence[Quote], document: Document) -> Quote:
    """The words from the first of these to the last."""
    start, end = min(each.start for each in quotes), max(each.end for each in quotes)
    return Quote(document.id, start, end, document.text[start:end])


def shows_extracts(answer: Answer) -> bool:
    """Whether the answer is words of documents, and what was computed from them: no model wrote it."""
    if answer.said or (answer.usage.calls and not answer.claims):
        return False
    headed = any(block.heading for block in answer.blocks)  # as in a synthesis
    return not headed and all(claim.quote or claim.derived for claim in answer.claims or answer.near)


def label(answer: Answer) -> str:
    """What kind of answer it is, in one line; empty for one that a model has written in full."""
    if not shows_extracts(answer):
        return OUTCOME_TEXT[answer.outcome]
    return EXTRACTS_TEXT[answer.outcome] if answer.claims or answer.near else NOTHING


@dataclass(frozen=True, slots=True)
class Extract:
    """What is shown of documents in one place: a quotation, or rows of one table that several quotations are from."""

    citations: tuple[Citation, ...]
    table: TablePart | None

    @property
    def first(self) -> Citation:
        return self.citations[0]


def extracts(answer: Answer, cited: Cited) -> list[Extract]:
    """The quotations of an answer that no model wrote, or those that came nearest; of a statement that was computed without
    them, the rows that it is from."""
    claims = (*(answer.claims if shows_extracts(answer) else ()), *answer.near)
    quotes = [claim for claim in claims if claim.quote]
    quoted = {claim.quote.doc_id for claim in quotes if claim.quote}
    shown = [
        each
        for claim in claims
        for each in cited_by(claim, cited)
        if claim.quote or (_from_table(claim) and each.table and each.document not in quoted)
    ]
    found: list[Extract] = []
    for each in dict.fromkeys(shown):
        last = found[-1] if found else None
        if last and (joined := _joined(last, each)):
            found[-1] = Extract((*last.citations, each), joined)
        else:
            found.append(Extract((each,), each.table))
    return found


def _joined(extract: Extract, citation: Citation) -> TablePart | None:
    """The rows of both as one table, if they are from one."""
    table, more = extract.table, citation.table
    if table is None or more is None or extract.first.document != citation.document:
        return None
    same = (table.caption, table.columns, table.total) == (more.caption, more.columns, more.total)
    rows = {row.start: row for row in (*table.rows, *more.rows)}
    return replace(table, rows=tuple(rows[at] for at in sorted(rows))) if same and not citation.marks else None


def quotes_of(claim: Claim, by_key: Mapping[str, Evidence]) -> list[tuple[str, Quote]]:
    """What a claim is shown with: its own quotation, the words that carry it, or else the quotations it cites."""
    keys = [key for key in claim.cites if key in by_key]
    if claim.quote is not None:
        return [(key, claim.quote) for key in keys]
    carried = [(key, quote) for quote in claim.carried_by for key in keys if within(quote, by_key[key].passage)]
    covered = {key for key, _ in carried}
    return carried + [(key, by_key[key].quote) for key in keys if key not in covered]


def cited_by(claim: Claim, cited: Cited) -> list[Citation]:
    """The citations of one claim."""
    if claim.quote is not None:
        return [each for (key, quote), each in cited.items() if key in claim.cites and quote == claim.quote]
    own = {at: each for at, each in cited.items() if at[0] in claim.cites}
    covered = {key for key, quote in own if quote in claim.carried_by}
    return [
        each for (key, quote), each in own.items() if quote in claim.carried_by or (key not in covered and each.weighed)
    ]


def claim_text(claim: Claim) -> str:
    """The text of a claim; a placeholder if its document was removed."""
    return one_line(claim.words) or "(the document was removed)"


def one_line(words: str) -> str:
    """Text on one line, without invisible characters or terminal control characters."""
    return " ".join(clean_text(words).split())


def citation_marks(claim: Claim, cited: Cited) -> str:
    """The citation numbers of a claim, and its warnings."""
    numbers = "".join(f"[{each.number}]" for each in cited_by(claim, cited))
    return f"{numbers} {warnings(claim, cited)}".strip()


FLAGGED_PASSAGE = "(this passage reads like an instruction)"
FLAGGED_WARNING = "(rests only on what reads like an instruction)"
DISPUTED_WARNING = "(two judgements differ)"


def warnings(claim: Claim, cited: Cited) -> str:
    """What a reader has to know of a claim without opening it; mostly empty."""
    warnings = (FLAGGED_WARNING if rests_on_flagged(claim, cited) else "", DISPUTED_WARNING if claim.disputed else "")
    return " ".join(filter(None, warnings))


def rests_on_flagged(claim: Claim, cited: Cited) -> bool:
    """Whether everything a claim cites reads like an instruction to a model."""
    own = cited_by(claim, cited)
    return bool(own) and all(each.flagged for each in own)


def source_line(citation: Citation) -> str:
    """`Title (2024), page 3 — file.pdf`"""
    date = f" ({citation.date})" if citation.date else ""
    page = f", page {citation.page}" if citation.page else ""
    warned = f" {FLAGGED_PASSAGE}" if citation.flagged else ""
    return one_line(f"{citation.title}{date}{page} — {file_name(citation.path)}") + warned


def _examined(examined: Examined) -> str:
    """What was examined of a whole set, and what was not. Completeness is stated of documents that were read to their end."""
    line = f"{examined.passages} passages of {examined.documents} documents were looked at"
    if not (examined.whole or examined.partly):
        return f"{line}; {f'{examined.left} more that match were not' if examined.left else 'nothing that matches was left'}."
    if examined.left:
        line += f", {examined.left} more were not"
    if examined.whole:
        line += f". Read to the end: {_titles(examined.whole)}"
    if examined.partly:
        line += f". Not read to the end, so that more may stand there: {_titles(examined.partly)}"
    return f"{line}."


def _titles(titles: Sequence[str], most: int = 8) -> str:
    more = f" and {len(titles) - most} more" if len(titles) > most else ""
    return "; ".join(f"“{one_line(each)}”" for each in titles[:most]) + more


def remarks(answer: Answer, cited: Cited) -> list[str]:
    """Remarks beside the claims: conflicts, gaps, what was examined, what could not be read."""
    lines = [f"{CONFLICT_TEXT[shows_extracts(answer)]}: {each}." for each in _conflicts(answer, cited)]
    lines += [f"Missing: {'; '.join(map(one_line, answer.gaps))}."] if answer.gaps else []
    lines += notes(answer)
    if answer.outcome in {Outcome.abstained, Outcome.partial} and answer.unread:
        names = ", ".join(file_name(uri) for uri in answer.unread[:10])
        more = f" and {len(answer.unread) - 10} more" if len(answer.unread) > 10 else ""
        lines.append(f"Could not be read, so not searched: {names}{more}.")
    return lines


def notes(answer: Answer) -> list[str]:
    """Those remarks that no other part of an answer has: what limits it, and what was examined of a whole set."""
    lines: list[str] = []
    usual = {"rounds", "searches"} if shows_extracts(answer) else frozenset()  # rules would do no more
    if answer.outcome in {Outcome.abstained, Outcome.partial} and answer.stopped in BUDGETS - usual:
        lines.append(f"Incomplete evidence: {LIMIT_TEXT[answer.stopped]} ended the search.")
    if answer.readings:
        lines.append(f"The question may mean: {'; '.join(one_line(each) for each in answer.readings)}.")
    if answer.examined:
        lines.append(_examined(answer.examined))
    if answer.since or answer.until:
        lines.append(f"Nothing dated outside {answer.since or '…'} to {answer.until or '…'} was searched.")
    if answer.left_out and answer.left_out.documents:
        lines.append(answer.left_out.sentence)
    return lines + (_rechecked(answer) if answer.rechecked else [])


def searched(answer: Answer) -> list[str]:
    """What was searched for, and why the search ended: for those who want to know."""
    lines = [f"“{one_line(each.query)}”: {each.found} passages" for each in answer.searched]
    return [*lines, f"The search ended because {why_ended(answer)}."] if answer.stopped else lines


def why_ended(answer: Answer) -> str:
    """Why the search ended; for a refusal the evidence was not enough, whatever the search was told."""
    if answer.outcome is Outcome.abstained and answer.stopped == "sufficient":
        return "what was found looked like an answer, and is none"
    return STOP_TEXT.get(answer.stopped, answer.stopped)


def _conflicts(answer: Answer, cited: Cited) -> list[str]:
    """`[1] and [3] (30 days / 90 days)`"""
    return [
        f"{_number(each.left, cited)} and {_number(each.right, cited)}{f' ({one_line(each.about)})' if each.about else ''}"
        for each in answer.conflicts
    ]


def _rechecked(answer: Answer) -> list[str]:
    """How many statements of the last answer hold when they are judged again, and which do not."""
    held = answer.rechecked - len(answer.fallen)
    said = [f"Judged again: {held} of {answer.rechecked} statements hold, on the words quoted under Sources."]
    return said + [f"Does not hold: “{one_line(each)}”." for each in answer.fallen]


def _number(key: str, cited: Cited) -> str:
    return next((f"[{each.number}]" for (own, _), each in cited.items() if own == key), "")


def layout(answer: Answer, block: Block) -> Literal["table", "opinion", "prose", "list"]:
    """The layout of a block, the same in every format."""
    if answer.shape is Shape.table and any(ROW in claim.text for claim in block.claims):
        return "table"
    if block.opinion:
        return "opinion"
    if answer.shape is Shape.prose and not any(claim.quote for claim in block.claims):
        return "prose"
    return "list"


def cells(words: str) -> list[str]:
    """The cells of a table row, separated by bars, in claims as in the heading that names the columns."""
    return [one_line(cell) for cell in words.split("|")]


def table(block: Block) -> tuple[list[str], list[list[str]]]:
    """The column names (empty if they do not fit) and the rows, padded to equal length; a quotation is a row with one
    cell."""
    rows = [[claim_text(claim)] if claim.quote else cells(claim_text(claim)) for claim in block.claims]
    width = max(len(row) for row in rows)
    named = cells(block.heading) if block.heading else []
    return named if len(named) == width else [], [row + [""] * (width - len(row)) for row in rows]


Signs = tuple[str, str]  # around words that are marked
STARS: Signs = ("*", "*")


def as_text(
    answer: Answer, cited: Cited, *, signs: Signs = STARS, width: int | None = None, verbose: bool = False
) -> str:
    """The answer for a terminal of this width. `verbose` adds what was searched."""
    lines = list(filter(None, [label(answer), answer.said.strip()]))
    in_place = extracts(answer, cited)
    if shows_extracts(answer):
        stated = [claim for claim in (*answer.claims, *answer.near) if not claim.quote]
        lines += [f"{claim_text(claim)} {citation_marks(claim, cited)}" for claim in stated]
    else:
        for block in answer.blocks:
            lines += _block_as_text(answer, block, cited)
        lines += ["", NEAREST] if answer.near else []
        lines += [f"• {claim_text(claim)} {citation_marks(claim, cited)}" for claim in answer.near if not claim.quote]
    for each in in_place:
        lines += ["", *_extract_as_text(each, signs, width)]
    said = remarks(answer, cited)
    lines += ["", *said] if said else []
    if verbose and (tried := searched(answer)):
        lines += ["", f"{SEARCHED}:", *(f"  {line}" for line in tried)]
    if cited:
        shown = {each for extract in in_place for each in extract.citations}
        lines += ["", "Sources"]
        if shows_extracts(answer):
            by_source: dict[str, str] = {}
            for each in cited.values():
                by_source[source_line(each)] = f"{by_source.get(source_line(each), '')}[{each.number}]"
            lines += [f"{numbers} {source}" for source, numbers in by_source.items()]
            cited = {}
        for each in cited.values():
            lines.append(f"[{each.number}] {source_line(each)}")
            if each not in shown:
                rows = _table_as_text(each.table, STARS) if each.table else [f"“{one_line(each.quote.text)}”"]
                lines += [f"    {line}" for line in rows]
    return clean_text("\n".join(lines))


def _extract_as_text(extract: Extract, signs: Signs, width: int | None) -> list[str]:
    numbers = "".join(f"[{each.number}]" for each in extract.citations)
    warned = f" {FLAGGED_PASSAGE}" if extract.first.flagged else ""
    room = (width or 0) - INDENT
    if extract.table:
        lines = _table_as_text(extract.table, signs)
        if room > NARROW and max(map(len, lines)) > room:
            lines = _records_as_text(extract.table, signs)
    else:
        words = (f"{signs[0]}{each.text}{signs[1]}" if each.marked else each.text for each in extract.first.words)
        lines = "".join(words).split("\n")
    wrapped = (row for line in lines for row in (_wrapped(line, room) if room > NARROW else [line]))
    return [f"{numbers} {extract.first.place}{warned}", *(" " * INDENT + row if row else "" for row in wrapped)]


INDENT, NARROW = 4, 16  # columns


def _wrapped(line: str, width: int) -> list[str]:
    indent = " " * min(len(line) - len(line.lstrip()), width // 2)
    return textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) or [""]


def _table_as_text(part: TablePart, signs: Signs) -> list[str]:
    """Rows in columns, with caption, units and period above them."""
    return [*_above(part), *text_table(replace(part, rows=tuple(_marked(row, signs) for row in part.rows)))]


def _records_as_text(part: TablePart, signs: Signs) -> list[str]:
    """Rows too wide for the terminal: a line for each cell, below its row's label."""
    lines = _above(part)
    for row in part.rows:
        cells = zip(part.columns, _marked(row, signs).cells, strict=True)
        filled = [f"{name}: {cell}" if name else cell for name, cell in cells if cell]
        lines += [*filled[:1], *(f"  {each}" for each in filled[1:])]
    return lines


def _above(part: TablePart) -> list[str]:
    return list(filter(None, [one_line(" — ".join(filter(None, (part.caption, part.units, part.period))))]))


def _marked(row: PartRow, signs: Signs) -> PartRow:
    cells = (
        f"{signs[0]}{one_line(cell)}{signs[1]}" if cell and place in row.cited else one_line(cell)
        for place, cell in enumerate(row.cells)
    )
    return replace(row, cells=tuple(cells))


def _block_as_text(answer: Answer, block: Block, cited: Cited) -> list[str]:
    if (form := layout(answer, block)) == "table":
        names, rows = table(block)
        widths = [max(map(len, column)) for column in zip(*([names] if names else []), *rows, strict=True)]
        padded = [ROW.join(map(str.ljust, row, widths)) for row in rows]
        heading = [ROW.join(map(str.ljust, names, widths)).rstrip()] if names else []
        return heading + [
            f"{row} {citation_marks(claim, cited)}" for row, claim in zip(padded, block.claims, strict=True)
        ]
    lines: list[str] = []
    lines += [f"{_quoted(claim)} {citation_marks(claim, cited)}" for claim in block.claims]
    heading = [block.heading] if block.heading else []
    if form == "opinion":
        return [*heading, f"{OPINION}: {' '.join(lines)}"]
    if form == "prose":
        return [*heading, " ".join(lines)]
    listed = len(answer.claims) > 1
    return [*heading, *(f"{'• ' if listed else ''}{line}" for line in lines)]


def _quoted(claim: Claim) -> str:
    return f"“{claim_text(claim)}”" if claim.quote else claim_text(claim)


# Markdown syntax, and whatever a viewer would autolink: an address in a document stays plain text.
MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|!~]|(?<=\w):(?=//)|(?<=\bwww)\.|(?<=\bmailto):|(?<=\w)@(?=\w))", re.I)


def as_markdown(answer: Answer, cited: Cited, workings: Workings = NO_WORKINGS) -> str:
    """A Markdown file with the quotations and workings as footnotes. All text from documents and models is escaped."""
    return _from_template("answer.md", answer, cited, workings).rstrip() + "\n"


def as_html(answer: Answer, cited: Cited, workings: Workings = NO_WORKINGS) -> str:
    """A self-contained HTML page. All text from documents and models is escaped."""
    from markupsafe import Markup  # late import: keeps command-line startup fast

    return _from_template("answer.html", answer, cited, workings, style=Markup(stylesheet()))


@cache
def stylesheet() -> str:
    """The style sheet embedded in the HTML page."""
    return (resources.files("assay.answer") / "templates" / "answer.css").read_text(encoding="utf-8").strip()


def _from_template(name: str, answer: Answer, cited: Cited, workings: Workings, **values: Any) -> str:
    in_place = extracts(answer, cited)
    text = _templates(name).render(
        answer=answer,
        sources=list(cited.values()),
        shown={each for extract in in_place for each in extract.citations}
        | (set(cited.values()) if shows_extracts(answer) else set()),
        quoted=_quoted_markdown,
        FLAGGED=FLAGGED_PASSAGE,
        label=label(answer),
        in_place=shows_extracts(answer),
        extracts=in_place,
        NEAREST=NEAREST,
        remarks=remarks(answer, cited),
        searched=searched(answer),
        SEARCHED=SEARCHED,
        layout=lambda block: layout(answer, block),
        citations=lambda claim: cited_by(claim, cited),
        workings={claim: (number, shown) for number, (claim, shown) in enumerate(workings.items(), 1)},
        warnings=lambda claim: warnings(claim, cited),
        claim_text=claim_text,
        one_line=one_line,
        source_line=source_line,
        table=table,
        OPINION=OPINION,
        **values,
    )
    return clean_text(text)


@cache
def _templates(name: str) -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def escape_markdown(value: Any) -> Any:
        if isinstance(value, str) and not isinstance(value, Markup):
            return Markup(MARKDOWN.sub(r"\\\1", one_line(value)))
        return value

    return Environment(
        loader=PackageLoader("assay.answer"),
        autoescape=True,
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        finalize=escape_markdown if name.endswith(".md") else None,
    ).get_template(name)


_WORDS_OF_LINE = re.compile(r"\S(?:[^\n]*\S)?")
_RULED = re.compile(r"^([-=+])|^(\d{1,9})(?=[.)] )")  # what makes a line a heading, a rule or an item of a list


def _quoted_markdown(words: Sequence[Stretch]) -> Any:
    """A quotation with its own lines. Blanks at the beginning of a line do not make it code."""
    from markupsafe import Markup

    escaped = ((MARKDOWN.sub(r"\\\1", clean_text(each.text)), each.marked) for each in words)
    text = "".join(_WORDS_OF_LINE.sub(r"**\g<0>**", text) if marked else text for text, marked in escaped)
    return Markup("  \n".join(f"> {_quoted_line(line)}".rstrip() for line in text.split("\n")))


def _quoted_line(line: str) -> str:
    words = line.lstrip()
    ruled = _RULED.sub(lambda sign: f"\\{sign[1]}" if sign[1] else f"{sign[2]}\\", words)
    return "\u00a0" * len(line[: len(line) - len(words)].expandtabs(4)) + ruled


def as_json(answer: Answer, cited: Cited) -> dict[str, Any]:
    """The answer as data: each claim with its basis, each citation with its document, page, offsets and quoted text."""
    plain = to_json(answer)
    shown = [(claim, block.opinion) for block in answer.blocks for claim in block.claims]
    shown += [(claim, False) for claim in answer.near]
    plain_claims = [claim for block in plain["blocks"] for claim in block["claims"]] + plain["near"]
    for (claim, opinion), own in zip(shown, plain_claims, strict=True):
        own["basis"] = basis(claim, opinion=opinion)
        own["rests_on_flagged"] = rests_on_flagged(claim, cited)
    return {
        **plain,
        "citations": [
            {
                **to_json(replace(each, words=())),
                "start": each.quote.start,
                "end": each.quote.end,
                "quote": each.quote.text,
            }
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
            "year": (each.date or "")[:4],
            "date": each.date or "",
            "file": file_name(each.path),
        }
        fields = {name: _tex(value) for name, value in fields.items()} | {"author": _bibtex_authors(each.authors)}
        rows = ",\n".join(f"  {name} = {{{fields[name]}}}" for name in BIBTEX_FIELDS if fields[name])
        entries[each.document] = f"@misc{{{each.document},\n{rows}\n}}"
    return "\n\n".join(entries.values()) + ("\n" if entries else "")


def _bibtex_authors(authors: Sequence[str]) -> str:
    """Names as BibTeX takes them. It splits at "and" and takes the last word for a surname; the name of an organisation stands
    in braces, which keep it whole."""
    names = [_tex(each) for each in authors]
    whole = [is_organisation(each) or bool(AND_INSIDE.search(each)) for each in authors]
    return " and ".join(f"{{{name}}}" if kept else name for name, kept in zip(names, whole, strict=True))


AND_INSIDE = re.compile(r"\band\b", re.IGNORECASE)
BIBTEX_FIELDS = ("title", "author", "year", "date", "file")
TEX = str.maketrans({sign: f"\\{sign}" for sign in "&%$#_"} | {"{": "", "}": "", "\\": "", "~": " ", "^": ""})


def _tex(value: str) -> str:
    return one_line(value).translate(TEX)
