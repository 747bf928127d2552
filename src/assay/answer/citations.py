"""The citations of an answer: their numbers, what is shown of documents in one place, and each source once with everything
that is cited of it. Evidence keys become numbers here. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from assay.answer.claim_details import basis
from assay.answer.extracts import Stretch, quoted_in_place
from assay.core.printable import one_line
from assay.core.types import (
    BETWEEN,
    Answer,
    Basis,
    Claim,
    Document,
    Evidence,
    Quote,
    file_name,
    omitted_when_empty,
)
from assay.language.quotation import within
from assay.tables.parts import PartRow, TablePart


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


Cited = Mapping[tuple[str, Quote], Citation]  # by key and words: one passage may be quoted twice


def of_answer(
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
            if claim.derived and from_table(claim):
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


def from_table(claim: Claim) -> bool:
    """Whether rules computed a claim from a table."""
    return claim.derived is not None and basis(claim) is not Basis.catalogue


def _spanned(quotes: Sequence[Quote], document: Document) -> Quote:
    """The words from the first of these to the last."""
    start, end = min(each.start for each in quotes), max(each.end for each in quotes)
    return Quote(document.id, start, end, document.text[start:end])


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


def rests_on_flagged(claim: Claim, cited: Cited) -> bool:
    """Whether everything a claim cites reads like an instruction to a model."""
    own = cited_by(claim, cited)
    return bool(own) and all(each.flagged for each in own)


@dataclass(frozen=True, slots=True)
class Extract:
    """What is shown of documents in one place: a quotation, or rows of one table that several quotations are from."""

    citations: tuple[Citation, ...]
    table: TablePart | None

    @property
    def first(self) -> Citation:
        return self.citations[0]

    @property
    def flagged(self) -> bool:
        return any(each.flagged for each in self.citations)

    def numbers(self, row: PartRow | None = None) -> tuple[int, ...]:
        """The numbers of its citations, or of those that a row is cited by."""
        rows = ((each.number, each.table.rows if each.table else ()) for each in self.citations)
        return tuple(number for number, own in rows if not row or any(each.start == row.start for each in own))


def join_extracts(shown: Iterable[Citation]) -> list[Extract]:
    """Citations in their order; those of one table, or of the same words, are one extract."""
    found: list[Extract] = []
    for each in shown:
        place = next((at for at, had in enumerate(found) if _same_place(had.first, each)), None)
        if place is None:
            found.append(Extract((each,), each.table))
        else:
            had = found[place]
            found[place] = Extract((*had.citations, each), _both(had.table, each.table))
    return found


def _same_place(one: Citation, other: Citation) -> bool:
    if one.table is None or other.table is None:
        return one.quote == other.quote
    return (one.document, one.page, _about(one.table)) == (other.document, other.page, _about(other.table))


def _about(table: TablePart) -> tuple[object, ...]:
    return table.caption, table.units, table.period, table.columns, table.total


def _both(table: TablePart | None, more: TablePart | None) -> TablePart | None:
    """The rows of both as one table, each with what is marked in either."""
    if table is None or more is None:
        return table
    rows = {row.start: row for row in table.rows}
    for row in more.rows:
        had = rows.get(row.start, row)
        rows[row.start] = replace(row, cited=tuple(sorted({*had.cited, *row.cited})))
    return replace(table, rows=tuple(rows[at] for at in sorted(rows)))


@dataclass(frozen=True, slots=True)
class Source:
    """A document that is cited, with everything that is cited of it."""

    extracts: tuple[Extract, ...]

    @property
    def first(self) -> Citation:
        return self.extracts[0].first

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(sorted(number for each in self.extracts for number in each.numbers()))

    @property
    def pages(self) -> tuple[int, ...]:
        return tuple(sorted({each.first.page for each in self.extracts if each.first.page}))

    @property
    def line(self) -> str:
        """`Title (2024), pages 3, 5 — file.pdf`"""
        date = f" ({self.first.date})" if self.first.date else ""
        pages = f", page{'s' * (len(self.pages) > 1)} {', '.join(map(str, self.pages))}" if self.pages else ""
        return one_line(f"{self.first.title}{date}{pages} — {file_name(self.first.path)}")

    def page_of(self, extract: Extract) -> str:
        """`page 3`, if others of this source are on other pages."""
        return f"page {extract.first.page}" if len(self.pages) > 1 and extract.first.page else ""


def sources(cited: Cited) -> list[Source]:
    """Each cited document once, in order of its first number."""
    by_document: dict[str, list[Citation]] = {}
    for each in cited.values():
        by_document.setdefault(each.document, []).append(each)
    return [Source(tuple(join_extracts(own))) for own in by_document.values()]
