"""Whether an answer still holds after documents that it rests on were replaced: quotations, cells and calculations, by code.

Code says that a claim no longer holds only where it shows that: another figure in the cell, a figure or an operand that is
gone, a document that is gone. Words that were merely rewritten are told as changed. Pure.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from functools import cached_property

from assay.answer.checking.claim_rules import by_rule, unfounded_number
from assay.answer.checking.judge import Documents, sources_of
from assay.answer.citations import quotes_of
from assay.answer.render import shows_extracts
from assay.core.tables import table_rows
from assay.core.types import (
    Answer,
    Claim,
    ClaimedCell,
    Derivation,
    Document,
    Evidence,
    Passage,
    Quote,
    Table,
    TableRow,
    Verdict,
    file_name,
)
from assay.language.quotation import lines
from assay.tables.cells import FoundCell, cell_at, passage_tables
from assay.tables.derive import statement
from assay.tables.labels import passage_context

AROUND = 1_000  # characters on each side of a quotation among which its sentence is looked for
REGION = 8_000  # characters of the new text that are read in place of the old
MOST_ROWS = 20_000  # of the tables of a document, in which a cell is found again
CLOSE = 50  # sentences of which the most similar is shown
SHOWN = 300  # characters of a sentence
GONE = "it is no longer among your documents"
CATALOGUE = {Derivation.documents, Derivation.number, Derivation.date, Derivation.authors, Derivation.titled}


class AnswerStanding(StrEnum):
    """How an answer stands against the documents of now."""

    holds = "holds"
    changed = "source changed"
    contradicted = "contradicted"  # by a newer document, as a model says
    fallen = "no longer holds"


SEVERITY = tuple(AnswerStanding)


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of a source of one claim: what it said then, and what it says now; empty if nothing is there."""

    claim: int  # its index in the answer
    standing: AnswerStanding
    document: str  # the version that the claim cites
    then: str
    now: str = ""
    why: str = ""
    statement: str = ""  # the words of the claim
    title: str = ""  # of the document

    @property
    def line(self) -> str:
        """`“Net sales, 2022: 480” is now “Net sales, 2022: 475” (Annual report)`"""
        if self.standing is AnswerStanding.contradicted:
            return f"“{self.now}” ({self.title}) against “{self.then}”"
        now = f" is now “{self.now}”" if self.now else ""
        why = f": {self.why}" if self.why and not self.now else "" if self.now else " is not there now"
        return f"“{self.then}”{now}{why} ({self.title})"


@dataclass(frozen=True, slots=True)
class Recheck:
    """How a delivered answer stands against the documents of a day, as far as whoever looks may read them. It is `withheld`
    where one of them was erased or may not be read any more."""

    run: str
    question: str
    synthesis: bool
    standing: AnswerStanding
    on: str
    findings: tuple[Finding, ...] = ()
    withheld: str = ""

    @property
    def line(self) -> str:
        """The same in one line."""
        if self.withheld:
            return f"No longer holds for you. {self.withheld}"
        fallen = [each for each in self.findings if each.standing is AnswerStanding.fallen]
        if fallen:
            more = f", and {len(fallen) - 1} more" if len(fallen) > 1 else ""
            return f"No longer holds: {fallen[0].line}{more}."
        if against := [each for each in self.findings if each.standing is AnswerStanding.contradicted]:
            more = f", and {len(against) - 1} more" if len(against) > 1 else ""
            return f"A newer document says otherwise: {against[0].line}{more}."
        titles = list(dict.fromkeys(each.title for each in self.findings))
        if titles:
            several = f"{len(titles)} sources have" if len(titles) > 1 else "One source has"
            return f"{several} changed: {'; '.join(titles)}."
        return f"Checked against your documents of {self.on}."


@dataclass(frozen=True)
class Replacement:
    """A document as an answer read it, and as it is now."""

    then: Document
    now: Document

    def is_untouched(self, start: int, end: int) -> bool:
        """Whether the new text has the whole lines of a span. That is found faster than sentences are."""
        low, high = self.then.text.rfind("\n", 0, start) + 1, self.then.text.find("\n", end)
        whole = self.then.text[low : high if high >= 0 else None]
        return self.is_said(" ".join(whole.split()), start, end)

    def lines_at(self, start: int, end: int) -> list[str]:
        """The sentences and rows of the old text that a span touches."""
        low, high = max(0, start - AROUND), end + AROUND
        window = self.then.text[low:high]
        touched = [window[a:b] for a, b in lines(window) if a < end - low and start - low < b]
        return [" ".join(each.split()) for each in touched or [self.then.text[start:end]]]

    def is_said(self, line: str, start: int, end: int) -> bool:
        """Whether the new text has a line, wherever it stands; as often as the old one, or else in its old place."""
        words = f" {line} "
        return 0 < self._said[0].count(words) <= self._said[1].count(words) or words in _spaced(self.region(start, end))

    def region(self, start: int, end: int) -> str:
        """The new text between the lines before and after a span that both versions have."""
        return self.now.text[slice(*self.span(start, end))]

    def span(self, start: int, end: int) -> tuple[int, int]:
        before = bisect_right(self._anchors, start, key=lambda each: each[1]) - 1
        after = bisect_left(self._anchors, end, key=lambda each: each[0])
        low = self._anchors[before][3] if before >= 0 else 0
        high = self._anchors[after][2] if after < len(self._anchors) else len(self.now.text)
        return low, max(low, min(high, low + REGION))

    def nearest(self, line: str, start: int, end: int) -> str:
        """What the new text says most like a line, in its place; empty if nothing is like it."""
        text = self.region(start, end)
        told = [" ".join(text[a:b].split())[:SHOWN] for a, b in lines(text)][:CLOSE]
        return next(iter(get_close_matches(line[:SHOWN], told, n=1, cutoff=0.4)), "")

    def cell(self, then: FoundCell) -> FoundCell | None:
        """The cell of the same row and column, in a table with the same caption if there is one."""
        found = [
            FoundCell(self.now, table, row, column)
            for table, row in self._rows.get(then.row.label, ())
            for column, header in enumerate(table.columns)
            if column and header == then.header and row.cells[column].text
        ]
        alike = [each for each in found if each.table.caption == then.table.caption] or found
        same = [each for each in alike if _facts(each) == _facts(then)]
        return next(iter(same or alike), None)

    def passage(self, of: Passage) -> Passage:
        """What stands in the place of a passage now."""
        start, end = self.span(of.start, of.end)
        heading = self.now.heading_at(start)
        context = passage_context(self.now, start, end, heading)
        return Passage(of.id, self.now.id, self.now.text[start:end], start, end, heading, context=context)

    @cached_property
    def _said(self) -> tuple[str, str]:
        return _spaced(self.then.text), _spaced(self.now.text)

    @cached_property
    def _rows(self) -> Mapping[str, Sequence[tuple[Table, TableRow]]]:
        found: dict[str, list[tuple[Table, TableRow]]] = {}
        left = MOST_ROWS
        for table in self.now.tables:
            rows = table_rows(table, self.now.text)[:left]
            left -= len(rows)
            for row in rows:
                found.setdefault(row.label, []).append((table, row))
        return found

    @cached_property
    def _anchors(self) -> list[tuple[int, int, int, int]]:
        """Lines that stand once in each version, in the same order in both: start and end then, start and end now."""
        old, new = _unique_lines(self.then.text), _unique_lines(self.now.text)
        common = [(*span, *new[words]) for words, span in old.items() if words in new]
        tails: list[int] = []  # of the longest increasing runs so far: where they stand now
        last: list[int] = []
        before: list[int] = []
        for place, (_, _, start, _) in enumerate(common):
            at = bisect_left(tails, start)
            tails[at:], last[at:] = [start, *tails[at + 1 :]], [place, *last[at + 1 :]]
            before.append(last[at - 1] if at else -1)
        chain: list[tuple[int, int, int, int]] = []
        place = last[-1] if last else -1
        while place >= 0:
            chain.append(common[place])
            place = before[place]
        return chain[::-1]


def _spaced(text: str) -> str:
    return f" {' '.join(text.split())} "


def _unique_lines(text: str) -> dict[str, tuple[int, int]]:
    found = [(" ".join(match[0].split()), match.span()) for match in re.finditer(r"\S[^\n]*", text)]
    count = Counter(words for words, _ in found)
    return {words: span for words, span in found if count[words] == 1}


def _facts(cell: FoundCell) -> tuple[str, ...]:
    facts = cell.facts
    return facts.text, facts.units, facts.period


Replaced = Mapping[str, Replacement | None]  # by the id of the version that is cited; None: there is none now


def recheck(
    answer: Answer, evidence: Sequence[Evidence], replaced: Replaced, document: Documents
) -> tuple[Finding, ...]:
    """What no longer stands as the claims of an answer read it; empty if all holds. `document` gives the others."""
    by_key = {each.key: each for each in evidence}
    extracts = shows_extracts(answer)
    found: list[Finding] = []
    for place, claim in enumerate(answer.claims):
        for each in _of_claim(claim, by_key, replaced, document):
            source = document(each.document)
            title = (source.title or file_name(source.uri)) if source else ""
            # Of extracts the first is the likeliest answer; the others stand beside it.
            standing = AnswerStanding.changed if extracts and place else each.standing
            found.append(replace(each, claim=place, standing=standing, statement=_shown(claim.words), title=title))
    return tuple(found)


def contradicted(answer: Answer, place: int, by: Quote, title: str) -> Finding:
    """That words of a newer document contradict a claim, as a model says: both are shown."""
    claim = answer.claims[place]
    own = claim.quote or next(iter(claim.carried_by), None)
    then = _shown(own.text if own and own.text else claim.words)
    return Finding(
        place, AnswerStanding.contradicted, by.doc_id, then, _shown(by.text), statement=_shown(claim.words), title=title
    )


def standing_of(findings: Sequence[Finding]) -> AnswerStanding:
    return max((each.standing for each in findings), key=SEVERITY.index, default=AnswerStanding.holds)


def _of_claim(claim: Claim, by_key: Mapping[str, Evidence], replaced: Replaced, document: Documents) -> list[Finding]:
    quotes = quotes_of(claim, by_key)
    operands = claim.derived.operands if claim.derived else ()
    rests_on = (*operands, *(quote for _, quote in quotes))
    if gone := [each for each in rests_on if replaced.get(each.doc_id, each) is None]:
        return [Finding(0, AnswerStanding.fallen, gone[0].doc_id, _shown(gone[0].text), why=GONE)]
    if claim.derived:
        return list(_of_derived(claim, replaced, document))
    cells = list(_cells(claim, by_key, replaced))
    if found := [finding for _, cell, change in cells if (finding := _of_cell(cell, change))]:
        return found
    by_cell = {each.cite for each, _, _ in cells}
    words = dict.fromkeys(quote for key, quote in quotes if key not in by_cell)
    changed = [finding for quote in words if (finding := _of_quote(quote, replaced))]
    return _proved_again(claim, changed, by_key, replaced, document) if changed else []


def _of_quote(quote: Quote, replaced: Replaced) -> Finding | None:
    change = replaced.get(quote.doc_id)
    if change is None or change.is_untouched(quote.start, quote.end):
        return None
    for line in change.lines_at(quote.start, quote.end):
        if not change.is_said(line, quote.start, quote.end):
            now = change.nearest(line, quote.start, quote.end)
            return Finding(0, AnswerStanding.changed, quote.doc_id, _shown(line), now)
    return None


def _cells(
    claim: Claim, by_key: Mapping[str, Evidence], replaced: Replaced
) -> Iterator[tuple[ClaimedCell, FoundCell, Replacement]]:
    """The cells of a claim in documents that were replaced."""
    for each in claim.cells:
        passage = by_key[each.cite].passage if each.cite in by_key else None
        change = replaced.get(passage.doc_id) if passage else None
        if passage and change and (cell := passage_tables(change.then, passage).find(each.cell)):
            yield each, cell, change


def _of_cell(cell: FoundCell, change: Replacement) -> Finding | None:
    now = change.cell(cell)
    if now and _facts(now) == _facts(cell):
        return None
    line = cell.facts.line
    if now is None:
        return Finding(
            0, AnswerStanding.changed, cell.document.id, line, why="its row and column are not found there now"
        )
    return Finding(0, AnswerStanding.fallen, cell.document.id, line, now.facts.line)


def _of_derived(claim: Claim, replaced: Replaced, document: Documents) -> Iterator[Finding]:
    """A statement of rules is computed again from the cells that stand in place of its own, or from the catalogue."""
    derived = claim.derived
    assert derived is not None
    operands: list[Quote] = []
    documents: dict[str, Document] = {}
    for quote in derived.operands:
        change = replaced.get(quote.doc_id)
        cell = cell_at(change.then, quote.start) if change else None
        now = change.cell(cell) if change and cell else None
        if change is None:
            operands.append(quote)
        elif now:
            operands.append(now.quote)
            documents[now.document.id] = now.document
        elif derived.rule in CATALOGUE:
            operands.append(replace(quote, doc_id=change.now.id))
            documents[change.now.id] = change.now
        elif finding := _of_quote(quote, replaced):
            yield finding
            return
        else:
            operands.append(quote)
            documents[quote.doc_id] = change.then
    if documents and len(operands) == len(derived.operands):
        again = statement(replace(derived, operands=tuple(operands)), lambda id: documents.get(id) or document(id))
        if again != claim.text:
            first = next(each.doc_id for each in derived.operands if replaced.get(each.doc_id))
            yield Finding(0, AnswerStanding.fallen, first, _shown(claim.text), _shown(again))


def _proved_again(
    claim: Claim, changed: list[Finding], by_key: Mapping[str, Evidence], replaced: Replaced, document: Documents
) -> list[Finding]:
    """What code makes of a claim whose words were changed: proved by the new ones it holds, refuted by them it does not."""
    cited = [_moved(by_key[key], replaced) for key in claim.cites if key in by_key]
    if claim.quote is not None:
        figure = unfounded_number(claim.quote.text, [each.passage.text for each in cited])
        why = f"“{figure}” is not there now" if figure else ""
        return [_fallen(each, why) for each in changed] if why else changed
    now = {change.now.id: change.now for change in replaced.values() if change}
    ruled = by_rule(replace(claim, cells=()), cited, sources_of(cited, lambda id: now.get(id) or document(id)))
    if ruled.verdict is Verdict.unsupported:
        return [_fallen(each, ruled.why) for each in changed]
    return [] if ruled.verdict is Verdict.supported else changed


def _fallen(finding: Finding, why: str) -> Finding:
    return replace(finding, standing=AnswerStanding.fallen, why=why)


def _moved(evidence: Evidence, replaced: Replaced) -> Evidence:
    change = replaced.get(evidence.passage.doc_id)
    return replace(evidence, passage=change.passage(evidence.passage)) if change else evidence


def _shown(words: str) -> str:
    plain = " ".join(words.split())
    return plain if len(plain) <= SHOWN else f"{plain[:SHOWN]}…"
