"""A document as text and tables in turn: nothing is missing, and what is looked for is in the first stretch."""

from __future__ import annotations

from test_table_parts import grid
from test_table_rows import TEXT, document

from assay.core.types import Document, Table
from assay.tables.parts import AT_ONCE, Block, blocks_after, blocks_around, blocks_before, blocks_within


def library(*rows: int) -> Document:
    """Long tables with a paragraph before, between and after them."""
    text, tables = "The first words.\n\n", []
    for each in rows:
        own, table = grid(each, 8)
        tables.append(Table(len(text), len(text) + len(own), table.columns, layout=table.layout))
        text += own + "\n\nWords after a table.\n\n"
    return Document("d", "b", "u", "", "t", text, tables=tuple(tables))


def kinds(blocks: list[Block]) -> list[int]:
    return [block.number for block in blocks]


def test_text_and_tables_come_in_turn_and_every_character_belongs_to_one_of_them():
    blocks = blocks_after(document(), 0)
    assert kinds(blocks) == [0, 1, 0]
    assert blocks[0].text.startswith("Before the table.") and blocks[2].text.strip() == "After it."
    assert [block.start for block in blocks] == [0, *(block.end for block in blocks[:-1])]
    assert blocks[-1].end == len(TEXT)


def test_stretches_follow_one_another_forwards_and_backwards():
    many = library(*[400] * 12)
    forwards, at = [], 0
    while at < len(many.text):
        stretch = blocks_after(many, at)
        forwards.append(kinds(stretch))
        at = stretch[-1].end
    assert len(forwards) > 2
    assert [number for part in forwards for number in part if number] == list(range(1, 13))
    backwards, at = [], len(many.text)
    while at > 0:
        stretch = blocks_before(many, at)
        backwards = [*kinds(stretch), *backwards]
        at = stretch[0].start
    assert [number for number in backwards if number] == list(range(1, 13))


def test_the_table_of_a_quotation_is_in_the_first_stretch_however_much_is_before_it():
    many = library(*[3000] * 9)
    at = many.tables[7].start + len(many.text[many.tables[7].start : many.tables[7].end]) // 2
    stretch = blocks_around(many, at, (at, at + 5))
    (found,) = [block for block in stretch if block.number == 8]
    assert found.table is not None and any(row.cited for row in found.table.rows)
    assert stretch[0].start < found.start


def test_a_stretch_of_long_text_ends_between_paragraphs():
    text = "\n\n".join(f"Paragraph {n}. " + "word " * 200 for n in range(300))
    book = Document("d", "b", "u", "", "t", text)
    (block,) = blocks_after(book, 0)
    assert len(block.text) <= AT_ONCE and block.text.endswith("\n\n")
    (before,) = blocks_before(book, block.end, None, 5000)
    assert before.text.startswith("Paragraph") and before.end == block.end
    around = blocks_around(book, text.index("Paragraph 150") + 30)
    assert around[1].text.startswith("Paragraph 150")


def test_a_passage_has_only_its_own_rows():
    start, end = TEXT.index("Total"), len(TEXT)
    table, text = blocks_within(document(), start, end)
    assert table.table is not None and [row.cells for row in table.table.rows] == [("Total assets", "40", "38")]
    assert text.text.strip() == "After it."


def test_a_document_without_words_has_no_blocks():
    assert blocks_around(Document("d", "b", "u", "", "t", ""), 0) == []
