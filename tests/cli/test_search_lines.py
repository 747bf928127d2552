"""`assay search` in a terminal: rows of a table in columns, where they fit."""

from __future__ import annotations

from assay.cli.ask import passage_lines
from assay.core.types import Document, Passage
from assay.ingest.formats import plain
from assay.ingest.parsed import FileLimits


def sheet() -> Document:
    read = plain.parse_delimited(
        b"River,Length,Remark\nAsh,1233,floods in spring\nBourne,85,\n", "rivers.csv", FileLimits()
    )
    return Document("d", "b", "rivers.csv", "", "Rivers", read.text, tables=read.tables)


def passage(document: Document) -> Passage:
    return Passage("p", "d", document.text, 0, len(document.text))


def test_rows_are_printed_in_columns_under_their_header():
    one = sheet()
    assert passage_lines(passage(one), one, 80) == [
        "River   Length  Remark",
        "Ash       1233  floods in spring",
        "Bourne      85",
    ]


def test_rows_that_are_too_wide_are_printed_as_they_are_written():
    one = sheet()
    assert passage_lines(passage(one), one, 20)[0] == "River: Ash; Length: 1233; Remark: floods in spring"


def test_words_without_a_table_are_one_line():
    assert passage_lines(Passage("p", "d", "The tower\nis tall.", 0, 18), None, 80) == ["The tower is tall."]
