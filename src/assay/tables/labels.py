"""What is said of a table around its rows: the context of a passage (caption, units, period, header), row labels, and
kinds of table that are learned from them: which table of a document is the principal one with the rows that a
question asks for.

Tables whose row labels recur across documents are of one kind. The more documents have the labels of a table, the more
it is the one that every document of its kind has (a balance sheet, a bill of quantities), and not an extract of it.
Pure. docs/decisions/0022-finding-the-page.md has what it is worth.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from assay.core.tables import LINES, header_end, table_rows, tables_within
from assay.core.types import BETWEEN, Document, Table
from assay.language.glossary import AskedRow, Glossary, Terms, asked_rows, name_grams
from assay.language.quantities import BARE_MONEY
from assay.language.terms import content_terms

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


MOST_LABELS = 120  # of a table that are kept; a longer one is a list, whose labels are names
_ASIDE = re.compile(r"\([^()]*+\)|\d+")


@dataclass(frozen=True, slots=True)
class TableLabels:
    """A table with the stems of its caption and of each of its row labels, in one string each."""

    start: int
    end: int
    caption: str
    labels: tuple[str, ...]


def table_labels(document: Document) -> list[TableLabels]:
    """The labels of a document's tables, without the groups that they stand in, numbers and asides."""
    found: list[TableLabels] = []
    for table in document.tables:
        rows = table_rows(table, document.text)[:MOST_LABELS]
        labels = dict.fromkeys(_stems(row.label.rpartition(BETWEEN)[2]) for row in rows)
        found.append(TableLabels(table.start, table.end, _stems(table.caption), tuple(filter(None, labels))))
    return found


def _stems(text: str) -> str:
    return " ".join(content_terms(_ASIDE.sub(" ", text)))


DOUBTFUL = "The order of the text on this page is uncertain."
SHOWN_NAME = 160  # characters of a caption, or of a column name, where it stands for a table


def passage_context(document: Document, start: int, end: int, heading: str) -> str:
    """What `text[start:end]` and the heading above it do not say, in the words of the document. It is searched with the passage
    and shown beside it."""
    tables = [
        table for table in tables_within(document.tables, start, end) if table_rows(table, document.text, start, end)
    ]
    shown = " ".join(document.text[start:end].split())
    doubtful = any(start - 4 < seam < end + 4 for seam in document.seams)
    lines = [line for table in tables for line in _table_lines(document, table, start, end, shown, heading)]
    units = _declared_units(document, tables, start, end)
    stated = units in shown or units in heading or any(units in line for line in lines)
    return "\n".join(dict.fromkeys(filter(None, (*lines, "" if stated else units, DOUBTFUL if doubtful else ""))))


def _declared_units(document: Document, tables: Sequence[Table], start: int, end: int) -> str:
    """What the section declares, if the text beside the tables has amounts without a scale."""
    units = document.units_at(start)
    if not units:
        return ""
    edges = [start, *(edge for table in tables for edge in (table.start, table.end)), end]
    beside = zip(edges[::2], edges[1::2], strict=True)
    return units if any(BARE_MONEY.search(document.text, low, high) for low, high in beside if low < high) else ""


def _table_lines(document: Document, table: Table, start: int, end: int, shown: str, heading: str) -> list[str]:
    """Caption, units and period, the header, and the group of the first row, as far as they are not there."""
    rows = table_rows(table, document.text, start, end)
    caption, *further = (
        [words for words in part if words and words not in shown and words not in heading]
        for part in (table.caption.split(LINES), [table.units], [table.period])
    )
    further = [words for part in further for words in part if words not in table.caption]
    columns = [name for name in table.columns if name]
    has_header = start <= table.start < header_end(table)  # the header is in this part
    missing = not has_header and any(name not in shown for name in columns)
    group = rows[0].label.removesuffix(rows[0].cells[0].text).removesuffix(BETWEEN)
    return [
        LINES.join(filter(None, (short_name(LINES.join(caption)), *map(short_name, further)))),
        short_name(" | ".join(columns), 2 * SHOWN_NAME) if missing else "",
        short_name(group) if group.rpartition(BETWEEN)[2] not in shown else "",
    ]


def short_name(words: str, most: int = SHOWN_NAME) -> str:
    return words if len(words) <= most else words[: most - 1].rstrip() + "…"
