"""Parts of tables: which rows and columns they have, which cells a quotation covers, and quotations as small tables."""

from __future__ import annotations

from test_table_rows import TEXT, balance_sheet, document

from assay.core.tables import RowSpan, pack_rows
from assay.core.types import Table
from assay.tables.parts import MOST_CELLS, MOST_COLUMNS, MOST_ROWS, TablePart, quoted_part, table_part, text_table


def grid(rows: int, columns: int) -> tuple[str, Table]:
    """A table of cells `row.column`, without a header in the text."""
    text, spans = "", []
    for row in range(rows):
        start, cells = len(text), []
        for column in range(columns):
            words = f"{row}.{column}"
            cells.append((column, len(text), len(text) + len(words)))
            text += words + "\t"
        spans.append(RowSpan(start, len(text), tuple(cells)))
        text += "\n"
    names = tuple(f"c{column}" for column in range(columns))
    return text, Table(0, len(text), names, layout=pack_rows(spans, 0))


def place(words: str) -> tuple[int, int]:
    start = TEXT.index(words)
    return start, start + len(words)


def cited(quote: tuple[int, int]) -> list[tuple[str, ...]]:
    part = table_part(balance_sheet(), TEXT, quote)
    return [tuple(row.cells[at] for at in row.cited) for row in part.rows]


def test_rows_keep_their_groups_as_levels_and_their_offsets():
    part = table_part(balance_sheet(), TEXT)
    assert [(row.level, row.cells[0]) for row in part.rows] == [
        (0, "Assets:"),
        (1, "Cash and equivalents"),
        (0, "Total assets"),
    ]
    assert TEXT[part.rows[2].start : part.rows[2].end] == "Total assets\t40\t38"
    assert (part.first, part.total, part.width, part.numeric) == (0, 3, 3, (1, 2))


def test_a_quotation_marks_the_cells_that_it_covers_and_no_others():
    assert cited(place("40")) == [(), (), ("40",)]
    assert cited(place("$ 10")) == [(), ("$10",), ()]
    assert cited(place("10\nequivalents\nTotal")) == [(), ("$10",), ("Total assets",)]
    assert cited(place("equivalents")) == [(), ("Cash and equivalents",), ()]  # the second line of a label
    assert cited(place("Before the table.")) == [(), (), ()]


def test_a_quotation_of_text_and_cells_marks_the_cells_too():
    start = TEXT.index("Balance")
    assert cited((start, TEXT.index("Cash and") + 4)) == [("Assets:",), ("Cash and equivalents",), ()]


def test_a_quotation_of_the_header_marks_its_names():
    assert table_part(balance_sheet(), TEXT, place("2022\t")).cited == (1,)
    assert table_part(balance_sheet(), TEXT, place("40")).cited == ()


def test_a_cell_that_is_merged_with_the_row_above_is_marked_once():
    text = "Coast | Ash | 1\nBourne | 2"
    rows = [
        RowSpan(0, 15, ((0, 0, 5), (1, 8, 11), (2, 14, 15))),
        RowSpan(16, 26, ((0, 0, 5), (1, 16, 22), (2, 25, 26))),
    ]
    part = table_part(Table(0, 26, ("", "River", "km"), layout=pack_rows(rows, 0)), text, (0, 26))
    assert [row.cited for row in part.rows] == [(0, 1, 2), (1, 2)]


def test_a_long_table_comes_in_parts_and_the_cited_row_is_in_the_first():
    text, table = grid(5000, 4)
    at = text.index("\n3210.0\t") + 1
    part = table_part(table, text, (at, at + 6), at=at)
    assert len(part.rows) == MOST_ROWS and part.total == 5000
    assert [row.cells[0] for row in part.rows if row.cited] == ["3210.0"]
    after = table_part(table, text, first=part.first + MOST_ROWS)
    assert after.rows[0].start == part.rows[-1].end + 1
    assert table_part(table, text, at=len(text)).rows[-1].cells[0] == "4999.0"
    assert table_part(table, text, first=6000).rows == ()


def test_a_wide_table_comes_with_its_labels_and_the_columns_that_are_cited():
    text, table = grid(60, 3000)
    part = table_part(table, text)
    assert (part.columns[0], part.columns[-1], part.width) == ("c0", f"c{MOST_COLUMNS - 1}", 3000)
    assert sum(len(row.cells) for row in part.rows) <= MOST_CELLS
    at = text.index("\t7.2500\t") + 1
    part = table_part(table, text, (at, at + 6), at=at)
    (row,) = [row for row in part.rows if row.cited]
    assert [row.cells[place] for place in row.cited] == ["7.2500"] and row.cells[0] == "7.0"
    assert part.columns[1] == f"c{part.column}"
    last = table_part(table, text, column=2990)
    assert last.columns == ("c0", *(f"c{n}" for n in range(last.column, 3000))) and len(last.columns) == MOST_COLUMNS


def test_no_words_between_or_above_the_rows_are_lost():
    text = "River | km | left out\nAsh | 5\nnot to scale\nBourne | 7"
    ash, bourne = text.index("Ash"), text.index("Bourne")
    rows = [
        RowSpan(ash, ash + 7, ((0, ash, ash + 3), (1, ash + 6, ash + 7))),
        RowSpan(bourne, bourne + 10, ((0, bourne, bourne + 6), (1, bourne + 9, bourne + 10))),
    ]
    part = table_part(Table(0, len(text), ("River", "km"), layout=pack_rows(rows, 0)), text)
    assert [row.cells for row in part.rows] == [
        ("River | km | left out",),
        ("Ash", "5"),
        ("not to scale",),
        ("Bourne", "7"),
    ]


def test_dates_and_words_are_no_numbers_and_one_word_among_numbers_is_no_harm():
    cells = [["٣٤", "2024-05-17", "a", "1"], *([["12 %", "17.05.2024", "b", "2"]] * 8), ["(3)", "1-2", "c", "n/a"]]
    text, spans = "", []
    for row in cells:
        start, own = len(text), []
        for column, words in enumerate(row):
            own.append((column, len(text), len(text) + len(words)))
            text += words + "\t"
        spans.append(RowSpan(start, len(text), tuple(own)))
    table = Table(0, len(text), ("w", "x", "y", "z"), layout=pack_rows(spans, 0))
    assert table_part(table, text).numeric == (0, 3)


def quoted(words: str) -> TablePart | None:
    return quoted_part(document(), *place(words))


def test_a_quotation_of_a_row_is_a_small_table():
    part = quoted("$ 12")
    assert part is not None
    assert part.columns == ("", "2022", "2021")
    assert [row.cells for row in part.rows] == [("Assets › Cash and equivalents", "$12", "$10")]
    assert part.rows[0].cited == (1,)
    assert (part.caption, part.units) == ("Balance sheet", "in millions")
    assert quoted("Before the table.") is None
    assert quoted_part(document(), 0, TEXT.index("$ 12") + 4) is None  # prose and table


def test_a_quotation_of_a_whole_row_marks_nothing_in_it():
    part = quoted("Total assets\t40\t38")
    assert part is not None and part.rows[0].cited == ()


def test_marks_in_a_quotation_of_whole_rows_mark_their_cells():
    part = quoted_part(document(), *place("Total assets\t40\t38"), [place("40"), place("38")])
    assert part is not None and part.rows[0].cited == (1, 2)


def test_columns_of_text_are_below_one_another():
    part = quoted("Total assets\t40")
    assert part is not None
    assert text_table(part) == ["              2022  2021", "Total assets    40    38"]
