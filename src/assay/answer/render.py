"""Renders an answer as terminal text, Markdown, HTML, JSON and BibTeX, all from one layout of blocks, extracts, remarks and
sources. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from assay.answer.citations import (
    Cited,
    Extract,
    Source,
    cited_by,
    from_table,
    join_extracts,
    rests_on_flagged,
    sources,
)
from assay.answer.claim_details import NO_DETAILS, Details, basis, cell_lines
from assay.answer.claims import ROW
from assay.answer.extracts import Stretch
from assay.core.codec import to_json
from assay.core.events import BUDGETS
from assay.core.printable import clean_text, one_line
from assay.core.types import Answer, Block, Claim, Examined, Outcome, Shape, file_name
from assay.ingest.metadata.file_fields import is_organisation
from assay.tables.parts import PartRow, TablePart, is_figure, text_table

if TYPE_CHECKING:
    from jinja2 import Template


# One line above extracts: the three cases, by one probability (`answer/extracts.py`).
EXTRACTS_TEXT = {
    Outcome.answered: "Found in your documents:",
    Outcome.partial: "Perhaps in your documents:",
    Outcome.abstained: "Not found in your documents. The nearest:",
}
NOTHING = "Not found in your documents."
NEAREST = "The nearest that was found"
OUTCOME_TEXT = {
    Outcome.answered: "",
    Outcome.direct: "Not from your documents.",
    Outcome.partial: "This is part of an answer.",
    Outcome.abstained: "The documents do not answer this.",
}
LIMIT_TEXT = {
    "rounds": "the limit on rounds of searching",
    "searches": "the limit on searches",
    "time": "the limit on time",
    "calls": "the limit on requests to a model",
    "tokens": "the limit on tokens",
    "money": "the limit on cost",
}
STOP_TEXT = {each: f"{limit} was reached" for each, limit in LIMIT_TEXT.items()} | {
    "sufficient": "the evidence was enough",
    "searches": "every search that the mode allows was made",
    "nothing_new": "nothing new was found",
    "repeated": "the same search came up again",
    "time": "the time was used up",
    "person": "somebody asked for the answer now",
    "unusable": "the model's replies could not be used",
    "exhausted": "everything that matches was looked at",
}
CONFLICT_TEXT = {True: "These differ", False: "The sources disagree"}  # of extracts, nobody has judged it
SEARCHED = "Searched for"
OPINION = "Opinion"
WORKING = "Working"


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
        if claim.quote or (from_table(claim) and each.table and each.document not in quoted)
    ]
    return join_extracts(dict.fromkeys(shown))


def claim_text(claim: Claim) -> str:
    """The text of a claim; a placeholder if its document was removed."""
    return one_line(claim.words) or "(the document was removed)"


FLAGGED_PASSAGE = "(this passage reads like an instruction)"
FLAGGED_WARNING = "(rests only on what reads like an instruction)"
DISPUTED_WARNING = "(two judgements differ)"


def warnings(claim: Claim, cited: Cited) -> str:
    """What a reader has to know of a claim without opening it; mostly empty."""
    warnings = (
        f"(read from {claim.figure.place} by {'a reviewer' if claim.edited else 'the model'})" if claim.figure else "",
        FLAGGED_WARNING if rests_on_flagged(claim, cited) else "",
        DISPUTED_WARNING if claim.disputed else "",
    )
    return " ".join(filter(None, warnings))


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
    lines += [f"{each}." for each in answer.unseen]
    if answer.rechecked:
        held = answer.rechecked - len(answer.fallen)
        lines.append(f"Judged again: {held} of {answer.rechecked} statements hold, on the words quoted under Sources.")
        lines += [f"Does not hold: “{one_line(each)}”." for each in answer.fallen]
    return lines


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


def _number(key: str, cited: Cited) -> str:
    return next((f"[{each.number}]" for (own, _), each in cited.items() if own == key), "")


class Form(StrEnum):
    """How the claims of a block are read."""

    prose = "prose"
    list = "list"
    table = "table"


@dataclass(frozen=True, slots=True)
class ShownClaim:
    """A claim as it is read, with the facts of the cells that its figures are from. A sentence is a row of one cell."""

    claim: Claim
    text: str
    row: tuple[str, ...]
    numbers: tuple[int, ...]
    warnings: str
    facts: tuple[str, ...]

    @property
    def marks(self) -> str:
        """`[1][3]`, and what a reader has to know of it."""
        return f"{_bracketed(self.numbers)} {self.warnings}".strip()


@dataclass(frozen=True, slots=True)
class ShownBlock:
    """Claims that are read together, under a heading or the names of their columns."""

    form: Form
    heading: str
    columns: tuple[str, ...]
    opinion: bool
    claims: tuple[ShownClaim, ...]

    @property
    def facts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line for each in self.claims for line in each.facts))


def _bracketed(numbers: Sequence[int]) -> str:
    return "".join(f"[{number}]" for number in numbers)


def form_of(answer: Answer, block: Block) -> tuple[Form, tuple[str, ...]]:
    """How a block is read, the same in every format, and the names of its columns, if they fit. Rows are a table wherever
    they stand, beside prose too."""
    rows = [row for claim in block.claims if len(row := row_of(claim)) > 1]
    width = max(map(len, rows), default=0)
    named = _cells(block.heading)
    fits = len(named) == width > 1
    if rows and (fits or len(rows) > 1) and 2 * len(rows) >= len(block.claims):
        return Form.table, named if fits else ()
    items = answer.claims if answer.shape is Shape.list else block.claims
    listed = answer.shape is Shape.list or any(claim.quote for claim in block.claims)
    return Form.list if listed and len(items) > 1 else Form.prose, ()


def row_of(claim: Claim) -> tuple[str, ...]:
    """The cells of a row of a table; one cell for a sentence."""
    text = claim_text(claim)
    return _cells(text) if ROW in text and claim.quote is None else (text,)


def _cells(words: str) -> tuple[str, ...]:
    return tuple(one_line(cell) for cell in words.split("|"))


def shown_claim(claim: Claim, cited: Cited) -> ShownClaim:
    text = f"“{claim_text(claim)}”" if claim.quote else claim_text(claim)
    numbers = tuple(each.number for each in cited_by(claim, cited))
    return ShownClaim(claim, text, row_of(claim), numbers, warnings(claim, cited), cell_lines(claim))


def shown_blocks(answer: Answer, cited: Cited) -> list[ShownBlock]:
    """What is stated, in blocks. The quotations of an answer that no model wrote, and those that came nearest, are extracts."""
    if shows_extracts(answer):
        computed = tuple(claim for claim in (*answer.claims, *answer.near) if not claim.quote)
        blocks = [(Block(computed), Form.list if len(computed) > 1 else Form.prose, ())] if computed else []
    else:
        blocks = [(block, *form_of(answer, block)) for block in answer.blocks]
        near = tuple(claim for claim in answer.near if not claim.quote)
        blocks += [(Block(near, NEAREST), Form.list, ())] if answer.near else []
    return [
        ShownBlock(
            form,
            "" if columns else block.heading,
            columns,
            block.opinion,
            tuple(shown_claim(claim, cited) for claim in block.claims),
        )
        for block, form, columns in blocks
    ]


def left_to_show(answer: Answer, cited: Cited) -> list[tuple[Source, list[Extract]]]:
    """The sources, each with what is cited of it, as far as that is not shown in place above."""
    shown = {each for extract in extracts(answer, cited) for each in extract.citations}
    shown |= set(cited.values()) if shows_extracts(answer) else set()
    return [
        (source, [each for each in source.extracts if not shown.issuperset(each.citations)])
        for source in sources(cited)
    ]


Signs = tuple[str, str]  # around words that are marked
STARS: Signs = ("*", "*")


def as_text(
    answer: Answer,
    cited: Cited,
    details: Details = NO_DETAILS,
    *,
    signs: Signs = STARS,
    width: int | None = None,
    verbose: bool = False,
    standing: str = "",
) -> str:
    """The answer for a terminal of this width. `details` are what each claim rests on; `verbose` adds what was searched;
    `standing` says how it stands against the documents of now."""
    room = (width or 0) - INDENT
    head = list(filter(None, [label(answer), answer.said.strip()]))
    blocks = shown_blocks(answer, cited)
    parts = [_block_as_text(block, width or 0) for block in blocks]
    if parts and not blocks[0].heading:
        parts[0], head = [*head, *parts[0]], []
    in_place = (_extract_as_text(each, signs, room) for each in extracts(answer, cited))
    parts = [head, *parts, *in_place, [*remarks(answer, cited), *filter(None, [standing])]]
    if verbose and (tried := searched(answer)):
        parts.append([f"{SEARCHED}:", *(f"  {line}" for line in tried)])
    if details:
        parts.append([WORKING, *(line for block in blocks for line in _details_as_text(block, details, room))])
    if listed := left_to_show(answer, cited):
        parts.append(["Sources", *(line for source, left in listed for line in _source_as_text(source, left, room))])
    return clean_text("\n\n".join("\n".join(part) for part in parts if part))


def _block_as_text(block: ShownBlock, width: int) -> list[str]:
    """The facts of cells stand below the paragraph, the table or the item that they are of."""
    lines = [f"{each.text} {each.marks}".rstrip() for each in block.claims]
    facts = _indented(block.facts, width - INDENT)
    if block.form is Form.table:
        beside = [line for line, each in zip(lines, block.claims, strict=True) if len(each.row) == 1]
        lines = [*_table_as_text(_rows(block), STARS, width), *beside, *facts]
    elif block.form is Form.list:
        items = zip(lines, block.claims, strict=True)
        lines = [part for line, each in items for part in (f"• {line}", *_indented(each.facts, width - INDENT))]
    else:
        lines = [" ".join(lines), *facts]
    if block.opinion:
        lines = [f"{OPINION}: {lines[0]}", *lines[1:]] if block.form is Form.prose else [f"{OPINION}:", *lines]
    return [block.heading, *lines] if block.heading else lines


def _rows(block: ShownBlock) -> TablePart:
    """The rows of a block, each with its citations at the end; columns of figures end below one another."""
    width = max(len(each.row) for each in block.claims)
    rows = [(*each.row, *[""] * (width - len(each.row)), each.marks) for each in block.claims if len(each.row) > 1]
    filled = [list(filter(None, column)) for column in zip(*rows, strict=True)]
    numeric = tuple(place for place, column in enumerate(filled[:-1]) if column and all(map(is_figure, column)))
    columns = (*block.columns, "") if block.columns else ("",) * (width + 1)
    return TablePart("", "", "", columns, tuple(PartRow(0, 0, row) for row in rows), numeric)


def _details_as_text(block: ShownBlock, details: Details, room: int) -> list[str]:
    return [
        line
        for each in block.claims
        if (own := details.get(each.claim))
        for line in (f"{each.text} {each.marks}".rstrip(), *_indented(own, room))
    ]


def _extract_as_text(extract: Extract, signs: Signs, room: int) -> list[str]:
    warned = f" {FLAGGED_PASSAGE}" if extract.flagged else ""
    if extract.table:
        lines = [*_above(extract.table), *_table_as_text(extract.table, signs, room)]
    else:
        words = (f"{signs[0]}{each.text}{signs[1]}" if each.marked else each.text for each in extract.first.words)
        lines = "".join(words).split("\n")
    return [f"{_bracketed(extract.numbers())} {extract.first.place}{warned}", *_indented(lines, room)]


def _source_as_text(source: Source, left: Sequence[Extract], room: int) -> list[str]:
    alone = not left or len(source.numbers) == 1
    lines = [line for each in left for line in _cited_as_text(each, source, room, numbered=not alone)]
    return [f"{_bracketed(source.numbers)} {source.line}" if alone else source.line, *_indented(lines, room)]


def _cited_as_text(extract: Extract, source: Source, room: int, *, numbered: bool) -> list[str]:
    page, warned = source.page_of(extract), FLAGGED_PASSAGE if extract.flagged else ""
    if extract.table is None:
        words = f"“{one_line(extract.first.quote.text)}”"
        number = _bracketed(extract.numbers()) if numbered else ""
        return [" ".join(filter(None, (number, f"{page}:" if page else "", words, warned)))]
    above = " — ".join(filter(None, (page, *_above(extract.table), warned)))
    part = _numbered(extract) if numbered else extract.table
    return [*filter(None, [above]), *_table_as_text(part, STARS, room)]


def _numbered(extract: Extract) -> TablePart:
    """The rows with the numbers that they are cited by, and what is marked in them."""
    assert extract.table is not None
    rows = [(_bracketed(extract.numbers(row)), _marked(row, STARS)) for row in extract.table.rows]
    numbered = (
        replace(row, cells=(f"{numbers} {row.cells[0]}".strip(), *row.cells[1:]), cited=()) for numbers, row in rows
    )
    return replace(extract.table, rows=tuple(numbered))


def _indented(lines: Sequence[str], room: int) -> list[str]:
    wrapped = (row for line in lines for row in (_wrapped(line, room) if room > NARROW else [line]))
    return [" " * INDENT + row if row else "" for row in wrapped]


INDENT, NARROW = 4, 16  # columns


def _wrapped(line: str, width: int) -> list[str]:
    indent = " " * min(len(line) - len(line.lstrip()), width // 2)
    return textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) or [""]


def _table_as_text(part: TablePart, signs: Signs, room: int) -> list[str]:
    """Rows in columns; if these are too wide, a line for each cell below its row's label."""
    part = replace(part, rows=tuple(_marked(row, signs) for row in part.rows))
    lines = text_table(part)
    if room <= NARROW or max(map(len, lines), default=0) <= room:
        return lines
    lines = []
    for row in part.rows:
        filled = [
            f"{name}: {cell}" if name else cell for name, cell in zip(part.columns, row.cells, strict=True) if cell
        ]
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


# Markdown syntax, and whatever a viewer would autolink: an address in a document stays plain text.
MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|!~]|(?<=\w):(?=//)|(?<=\bwww)\.|(?<=\bmailto):|(?<=\w)@(?=\w))", re.I)


def as_markdown(answer: Answer, cited: Cited, details: Details = NO_DETAILS, *, standing: str = "") -> str:
    """A Markdown file with its workings and sources below it. All text from documents and models is escaped."""
    return _from_template("answer.md", answer, cited, details, standing).rstrip() + "\n"


def as_html(answer: Answer, cited: Cited, details: Details = NO_DETAILS, *, standing: str = "") -> str:
    """A self-contained HTML page. All text from documents and models is escaped."""
    from markupsafe import Markup  # late import: keeps command-line startup fast

    return _from_template("answer.html", answer, cited, details, standing, style=Markup(stylesheet()))


@cache
def stylesheet() -> str:
    """The style sheet embedded in the HTML page."""
    return (resources.files("assay.answer") / "templates" / "answer.css").read_text(encoding="utf-8").strip()


def _from_template(name: str, answer: Answer, cited: Cited, details: Details, standing: str, **values: Any) -> str:
    from markupsafe import Markup

    text = _templates(name).render(
        answer=answer,
        label=label(answer),
        blocks=shown_blocks(answer, cited),
        extracts=extracts(answer, cited),
        remarks=[*remarks(answer, cited), *filter(None, [standing])],
        searched=searched(answer),
        details=details,
        sources=left_to_show(answer, cited),
        bracketed=lambda numbers: Markup(_bracketed(numbers)),
        quoted=_quoted_markdown,
        claim_text=claim_text,
        one_line=one_line,
        FLAGGED=FLAGGED_PASSAGE,
        SEARCHED=SEARCHED,
        OPINION=OPINION,
        WORKING=WORKING,
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
    for block, own in zip(answer.blocks, plain["blocks"], strict=True):
        own["form"], own["columns"] = form_of(answer, block)
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
