"""Kinds of table, learned from the shelf: which table of a document is the principal one that has the rows a question asks for.

Tables whose row labels recur across documents are of one kind. The more documents have the labels of a table, the more it is
the one that every document of its kind has (a balance sheet, a bill of quantities), and not an extract of it. Pure.
docs/decisions/0022-finding-the-page.md has what it is worth.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from assay.language.glossary import AskedRow, Glossary, Terms, asked_rows, name_grams
from assay.language.table_labels import TableLabels

MOST_TABLES = 3  # of a document that a question is sent to
PART = 0.6  # the worth of a label that has more words than were asked for
MORE_WORDS = 2  # that such a label may have, and no more than were asked for
NEARLY = 0.85  # of the best: a second table that has the row is as good
ALONE = 0.1  # the weight of a label that no other document has: among such tables the longer one is the principal one
RECURRING = 2  # documents that have a label which a question may name without the glossary


@dataclass(frozen=True, slots=True)
class TableKinds:
    """In how many of the documents each row label is, and each word of captions."""

    documents: int = 0
    labels: Mapping[Terms, int] = field(default_factory=dict)
    captions: Mapping[str, int] = field(default_factory=dict)

    def prominence(self, table: TableLabels) -> float:
        """How much a table is one that other documents have, too."""
        labels = sum(max(0, self.labels.get(_terms(label), 0) - 1) + ALONE for label in table.labels)
        words = set(table.caption.split())
        shared = sum(max(0, self.captions.get(word, 0) - 1) for word in words)
        return labels * (1 + shared / max(1, len(words) * (self.documents - 1)))


def learn_kinds(shelf: Iterable[Sequence[TableLabels]]) -> TableKinds:
    """The kinds of the tables of documents."""
    documents, labels, captions = 0, Counter[Terms](), Counter[str]()
    for tables in shelf:
        documents += 1
        labels.update({_terms(label) for table in tables for label in table.labels})
        captions.update({word for table in tables for word in table.caption.split()})
    return TableKinds(documents, labels, captions)


def _terms(label: str) -> Terms:
    return frozenset(label.split())


@dataclass(frozen=True, slots=True)
class AskedTable:
    """A table that a question asks for, and the rows of it that it needs."""

    document: str
    start: int
    end: int
    rows: tuple[AskedRow, ...]


def asked_tables(
    question: str, kinds: TableKinds, shelf: Mapping[str, Sequence[TableLabels]], glossary: Glossary
) -> list[AskedTable]:
    """The principal tables of these documents that hold the rows which a question names or needs, most rows first."""
    asked = [*asked_rows(question, glossary), *_recurring_rows(question, kinds, glossary)]
    found: list[AskedTable] = []
    for document, tables in shelf.items() if asked else ():
        prominence = [kinds.prominence(table) for table in tables]
        rows: dict[int, list[AskedRow]] = defaultdict(list)
        for row in asked:
            for place in _principal(row, tables, prominence):
                rows[place].append(row)
        order = sorted(rows, key=lambda place: (-len(rows[place]), -prominence[place], place))
        found += [AskedTable(document, tables[at].start, tables[at].end, tuple(rows[at])) for at in order[:MOST_TABLES]]
    return found


def _recurring_rows(question: str, kinds: TableKinds, glossary: Glossary) -> list[AskedRow]:
    """Row labels of several documents that the question has word for word; the longest only."""
    kept: list[Terms] = []
    for gram in name_grams(question):
        known = gram in glossary.called or any(gram < longer for longer in kept)
        if len(gram) > 1 and not known and kinds.labels.get(gram, 0) >= RECURRING:
            kept.append(gram)
    return [AskedRow(" ".join(sorted(gram)), (gram,)) for gram in kept]


def _principal(row: AskedRow, tables: Sequence[TableLabels], prominence: Sequence[float]) -> list[int]:
    """The table that has the row and is most like those of other documents, and another that is nearly as much."""
    scores: dict[int, float] = {}
    for place, table in enumerate(tables):
        match = max((_match(row, _terms(label)) for label in (*table.labels, table.caption)), default=0.0)
        if match:
            scores[place] = prominence[place] * match
    best = max(scores.values(), default=0.0)
    return sorted((at for at in scores if scores[at] >= NEARLY * best), key=lambda at: (-scores[at], at))[:2]


def _match(row: AskedRow, label: Terms) -> float:
    if label in row.spellings:
        return 1.0
    longer = (each < label and len(label) - len(each) <= min(MORE_WORDS, len(each)) for each in row.spellings)
    return PART if any(longer) else 0.0
