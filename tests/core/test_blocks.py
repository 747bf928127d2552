"""Blocks of a text: options, labelled values, items and releases with what they stand under, by layout alone."""

from __future__ import annotations

from itertools import pairwise
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.blocks import BlockKind, TextBlock, block_at, find_blocks, subjects
from assay.core.types import Section
from assay.ingest.formats import html
from assay.ingest.formats.detect import read
from assay.ingest.parsed import FileLimits


def told(text: str, sections: tuple[Section, ...] = ()) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Of each block: its kind, its label, how it begins, and what it stands under."""
    return [
        (
            block.kind.value,
            text[slice(*block.label)] if block.label else "",
            text[block.start : block.end].split("\n")[0],
            tuple(text[slice(*span)] for span in block.under),
        )
        for block in find_blocks(text, sections)
    ]


def under(text: str) -> dict[str, tuple[str, ...]]:
    return {line: above for _, _, line, above in told(text)}


MANUAL = dedent(
    """
    NAME
           gate - lift and lower gates

    OPTIONS
           -a, --all
                  Lift all gates, those under repair excepted, unless
                  --force is given too.

                  It takes a minute.

           --log=FILE
                  Write to FILE.
    """
)


def test_an_option_is_one_block_with_its_description():
    found = told(MANUAL)
    assert ("option", "-a, --all", "-a, --all", ("OPTIONS",)) in found
    assert ("paragraph", "", "It takes a minute.", ("OPTIONS", "-a, --all")) in found
    assert ("option", "--log=FILE", "--log=FILE", ("OPTIONS",)) in found
    assert not [kind for kind, label, *_ in found if label.startswith("--force")]


def test_options_beside_their_descriptions_are_level_with_each_other():
    text = dedent(
        """
        Usage: gate [OPTION]... NUMBER

        Main options:
          -a, --all           lift all gates
              --slow          take an hour for it,
                              -a or not
          -q                  say nothing
        """
    )
    assert told(text)[2:] == [
        ("option", "-a, --all", "-a, --all           lift all gates", ("Main options:",)),
        ("option", "--slow", "--slow          take an hour for it,", ("Main options:",)),
        ("option", "-q", "-q                  say nothing", ("Main options:",)),
    ]


def test_a_term_of_a_web_page_is_a_block_with_its_description():
    page = (
        "<body><p>The gates:</p><dl><dt>North</dt><dd>Opens at noon.</dd><dt>South</dt><dd>Stays shut.</dd></dl></body>"
    )
    parsed = html.parse(page.encode(), "page.html", FileLimits())
    assert told(parsed.text)[1:] == [("option", "North", "North", ()), ("option", "South", "South", ())]


DEBIAN = """gate (2.1-1) unstable; urgency=medium

  * New upstream release.
  * Lift gates slowly:
    - at night
    - in winter

 -- Ada Lund <ada@example.org>  Mon, 02 Jan 2023 13:06:21 +0100

gate (2.0-4) unstable; urgency=low

  * Fix the build.
"""


def test_a_change_stands_under_its_release():
    found = under(DEBIAN)
    assert found["* New upstream release."] == ("gate (2.1-1) unstable; urgency=medium",)
    assert found["- in winter"] == ("gate (2.1-1) unstable; urgency=medium", "Lift gates slowly:")
    assert found["* Fix the build."] == ("gate (2.0-4) unstable; urgency=low",)


def test_changes_of_a_release_go_on_after_text_between_them():
    text = dedent(
        """
        version 1.34 - Ada Lund, 2021-02-13

        * Gates may be lifted twice

        See the page of the gates

        * Gates may be painted

        version 1.33 - Bo Vik, 2020-01-07

        * Gates may be named
        """
    )
    found = under(text)
    assert found["* Gates may be painted"] == ("version 1.34 - Ada Lund, 2021-02-13",)
    assert found["See the page of the gates"] == ("version 1.34 - Ada Lund, 2021-02-13", "Gates may be lifted twice")
    assert found["* Gates may be named"] == ("version 1.33 - Bo Vik, 2020-01-07",)


def test_news_in_an_outline_stand_under_release_and_part():
    text = (
        "* Changes in release 9.1\n\n** Bug fixes\n\n  gate is fast.\n\n  gate is quiet.\n\n* Changes in release 9.0\n"
    )
    assert under(text)["gate is quiet."] == ("Changes in release 9.1", "Bug fixes")
    assert under(text)["* Changes in release 9.0"] == ()


def test_an_entry_of_a_change_log_stands_under_its_date():
    text = "2021-02-08  Ada Lund  <ada@example.org>\n\n\t* src/gate.c (lift): Wait.\n\t* src/main.c: Say so.\n"
    assert under(text)["* src/main.c: Say so."] == ("2021-02-08  Ada Lund  <ada@example.org>",)


@pytest.mark.parametrize("intro", ["Wir brauchen dafür:", "必要なもの：", "Il nous faut"])
def test_an_item_stands_under_the_line_that_introduces_its_list(intro: str):
    text = f"{intro}\n\n- Seile\n- 縄\n  - court\n- Öl\n\nThat was all of it.\n\n- Nothing more"
    found = under(text)
    assert found["- Öl"] == (intro,)
    assert found["- court"] == (intro, "縄")
    assert found["That was all of it."] == () and found["- Nothing more"] == ()


def test_of_a_long_introduction_only_the_last_sentence_counts():
    text = f"{'The gates were old and nobody had asked for new ones. ' * 4}In the end they bought:\n\n- two gates"
    assert under(text)["- two gates"] == ("In the end they bought:",)


def test_labelled_values_are_blocks_with_the_line_above_them():
    text = "North gate\nHeight: 4 m\nBuilt: 1921\nPaint: green, and in winter\n  grey\n\nSouth gate\nHeight: 5 m\nBuilt: 1930"
    assert told(text) == [
        ("heading", "", "North gate", ()),
        ("key_value", "Height", "Height: 4 m", ("North gate",)),
        ("key_value", "Built", "Built: 1921", ("North gate",)),
        ("key_value", "Paint", "Paint: green, and in winter", ("North gate",)),
        ("heading", "", "South gate", ()),
        ("key_value", "Height", "Height: 5 m", ("South gate",)),
        ("key_value", "Built", "Built: 1930", ("South gate",)),
    ]


def test_a_sentence_with_a_colon_is_no_labelled_value():
    text = "The reason is simple: the gate was open all night long.\nNobody had thought of it before the river rose."
    assert [kind for kind, *_ in told(text)] == ["paragraph"]


def test_a_wrapped_line_that_opens_with_an_option_is_no_option():
    text = "The gates are lifted when the operator asks for it by means of\n--lift, or at the end of the day."
    assert [kind for kind, *_ in told(text)] == ["paragraph"]


def test_paragraphs_with_an_indented_first_line_are_no_terms():
    text = "   It was dark, and the wind blew\nover the river.\n   Nobody slept in the village\nuntil the morning came."
    assert [(kind, line[:7]) for kind, _, line, _ in told(text)] == [("paragraph", "It was "), ("paragraph", "Nobody ")]


def test_an_underlined_line_is_a_heading():
    text = "Gates\n=====\n\nThere are two.\n\nBridges\n=======\n\nThere is one."
    assert under(text)["There are two."] == ("Gates",) and under(text)["There is one."] == ("Bridges",)


def test_a_heading_ends_what_stood_above_it():
    text = "We need:\n\nRopes\n\n- strong ones"
    heading = Section("Ropes", 1, 10, 15)
    assert told(text, (heading,)) == [
        ("paragraph", "", "We need:", ()),
        ("heading", "", "Ropes", ()),
        ("item", "", "- strong ones", ()),
    ]


def test_rows_of_a_table_are_blocks():
    parsed = read(
        b"| Gate | Height |\n|---|---|\n| North | 4 |\n| South | 5 |\n\nThat is all.\n", "gates.md", FileLimits()
    )
    kinds = [block.kind for block in find_blocks(parsed.text, parsed.sections, parsed.tables)]
    assert kinds == [BlockKind.row] * 3 + [BlockKind.paragraph]


def test_subjects_are_told_only_of_what_is_written_above():
    blocks = find_blocks(MANUAL)
    option = next(block for block in blocks if block.label and MANUAL[slice(*block.label)] == "-a, --all")
    assert subjects(MANUAL, option, option.start) == ["OPTIONS"]
    assert subjects(MANUAL, option, option.start + 20) == ["OPTIONS", "-a, --all"]
    assert block_at(blocks, option.start - 3) == option and block_at(blocks, len(MANUAL)) is None


LAYOUT = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "\n",
                "\n\n",
                "  ",
                "\t",
                "- ",
                "* ",
                "** ",
                "1. ",
                "--all",
                ": ",
                "：",
                "Gates",
                "the gate.",
                "=====",
                "{",
                "\xa0",
            ]
        ),
        st.text(alphabet="ab :.-*\n\t漢é", max_size=12),
    ),
    max_size=60,
).map("".join)


@given(LAYOUT, st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)), max_size=4))
def test_blocks_are_in_order_apart_and_cover_all_words(text: str, headings: list[tuple[int, int]]):
    spans = sorted((min(start, len(text)), min(start + length, len(text))) for start, length in headings)
    sections = tuple(Section(text[start:end], 1, start, end) for start, end in spans)
    blocks: list[TextBlock] = find_blocks(text, sections)
    assert all(one.end <= other.start for one, other in pairwise(blocks))
    assert all(
        block.start < block.end and text[block.start : block.end].strip() == text[block.start : block.end]
        for block in blocks
    )
    edges = [0, *(edge for block in blocks for edge in (block.start, block.end)), len(text)]
    assert not any(text[start:end].strip() for start, end in zip(edges[::2], edges[1::2], strict=True))
    assert all(span[1] <= block.start for block in blocks for span in block.under)
    assert all(block.start <= block.label[0] < block.label[1] <= block.end for block in blocks if block.label)
