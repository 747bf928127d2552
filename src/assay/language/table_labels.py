"""What a table is known by: the words of its caption and of its row labels. Pure; the kinds of table are learned from them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.core.tables import BETWEEN, table_rows
from assay.core.types import Document
from assay.language.terms import content_terms

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
