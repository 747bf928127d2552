"""Title, authors, date and abstract: found where they stand, and never invented."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from reportlab.lib.pagesizes import A4
from reportlab.lib.units import cm
from reportlab.pdfgen.canvas import Canvas

from assay.core.types import Section
from assay.ingest.metadata.dates import find_date, find_document_date
from assay.ingest.metadata.file_fields import is_name
from assay.ingest.metadata.fill import fill_metadata, find_abstract
from assay.ingest.parsed import FileLimits, Parsed
from assay.ingest.pdf.reader import parse

WIDTH, _ = A4
BODY = (
    "Open questions about documents are answered from passages that a search finds and that are weighed one by one "
    "before any of them is used, so that a reader can check each of the sentences against the page it came from. "
) * 3


def document(*lines: tuple[str, str, float, bool], title: str = "", author: str = "") -> Parsed:
    """A first page: (words, font, size, centred), then running text."""
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4)
    canvas.setTitle(title)
    canvas.setAuthor(author)
    y = 27 * cm
    for words, font, size, centred in lines:
        canvas.setFont(font, size)
        for line in wrapped(canvas, words, font, size):
            canvas.drawCentredString(WIDTH / 2, y, line) if centred else canvas.drawString(2 * cm, y, line)
            y -= 1.25 * size
        y -= 0.8 * size
    canvas.save()
    return parse(out.getvalue(), "paper.pdf", FileLimits())


def wrapped(canvas: Canvas, words: str, font: str, size: float) -> Sequence[str]:
    lines: list[str] = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        if canvas.stringWidth(longer, font, size) > 16 * cm:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


TITLE = ("Weighing Evidence Before Writing: A Study of Grounded Answers", "Helvetica-Bold", 18.0, True)
ABSTRACT = ("Abstract", "Helvetica-Bold", 12.0, False)
TEXT = (BODY, "Helvetica", 10.0, False)
INTRODUCTION = ("1 Introduction", "Helvetica-Bold", 12.0, False)


def test_a_paper_is_described_from_its_first_page() -> None:
    parsed = document(
        TITLE,
        ("Jane Q. Doe1, Richard van der Roe2 and Mary-Ann O’Neil1", "Helvetica", 11.0, True),
        ("1University of Somewhere, 2Institute for Something", "Helvetica-Oblique", 9.0, True),
        ("jane@somewhere.edu", "Courier", 9.0, True),
        ("Published: 17 May 2024", "Helvetica", 9.0, True),
        ABSTRACT,
        TEXT,
        INTRODUCTION,
        TEXT,
        title="Microsoft Word - final_v3.doc",
        author="Windows User",
    )
    assert parsed.title == TITLE[0]
    assert parsed.authors == ("Jane Q. Doe", "Richard van der Roe", "Mary-Ann O’Neil")
    assert parsed.date == "2024-05-17"
    assert parsed.abstract is not None
    start, end = parsed.abstract
    assert parsed.text[start:end] == BODY.strip()
    assert [section.title for section in parsed.sections] == ["Abstract", "1 Introduction"]


@pytest.mark.parametrize(
    ("below", "authors"),
    [
        (["Jane Doe1, John Roe2 and Ann Lee1,2", "1University of Oslo 2NTNU"], ("Jane Doe", "John Roe", "Ann Lee")),
        (["JANE DOE AND JOHN ROE", "University of Oslo"], ("JANE DOE", "JOHN ROE")),
        (["Jane Doe, University of Oslo", "John Roe, University of Delft"], ("Jane Doe", "John Roe")),
        (["Jane Doe (University of Oslo) and John Roe (MIT)"], ("Jane Doe", "John Roe")),
        (["Jane Doe", "jane@example.org", "John Roe", "john@example.org"], ("Jane Doe", "John Roe")),
        (["Jane Doe, John Roe", "{jane,john}@example.org"], ("Jane Doe", "John Roe")),
        (["Jane Doe <jane@example.org>, John Roe <john@example.org>"], ("Jane Doe", "John Roe")),
        (["Doe J., Roe K. and Lee A.", "University of Oslo"], ("Doe J.", "Roe K.", "Lee A.")),
        (["Prof. Dr. Anna Maier, Dr. Karl Roth", "University of Graz"], ("Anna Maier", "Karl Roth")),
        (
            [
                "Of evidence in long papers and short ones, and of those who weigh it day by day",
                "Jane Doe",
                "University of Oslo",
            ],
            ("Jane Doe",),
        ),
    ],
)
def test_names_below_a_title_are_authors_however_they_are_set(below: list[str], authors: tuple[str, ...]) -> None:
    assert document(TITLE, *((line, "Helvetica", 11.0, True) for line in below), TEXT).authors == authors


def test_a_filing_agent_in_the_files_fields_is_no_author() -> None:
    for agent in (
        "EDGAR Online, a division of Donnelley Financial Solutions",
        "Filing Agent, a unit of Doe & Sons Company",
    ):
        assert document(TITLE, TEXT, author=agent).authors == ()
    assert document(TITLE, TEXT, author="Jane Doe, John Roe").authors == ("Jane Doe", "John Roe")


def test_a_title_over_two_lines_is_one_title() -> None:
    long = "A Rather Long Title That Does Not Fit on One Line of the Page It Stands on and So Takes Two Lines"
    parsed = document((long, "Helvetica-Bold", 18.0, True), TEXT)
    assert parsed.title == long


def test_a_letter_without_title_or_names_gets_none() -> None:
    parsed = document(TEXT, TEXT, title="untitled", author="admin")
    assert parsed.title == "" and parsed.authors == () and parsed.date is None and parsed.abstract is None


def test_rubbish_in_the_files_fields_is_not_believed() -> None:
    for rubbish in ("Microsoft Word - Document1", "untitled", "report_final.docx", "Dokument1"):
        assert document(TEXT, title=rubbish).title == ""


def test_a_declared_title_is_believed_if_the_page_shows_it() -> None:
    parsed = document(
        ("Journal of Evidence", "Helvetica-Bold", 24.0, True), ("On the weighing of claims", "Helvetica", 10.0, False), TEXT,
        title="On the weighing of claims",
    )  # fmt: skip
    assert parsed.title == "On the weighing of claims"


def test_the_heads_of_a_table_are_not_authors() -> None:
    parsed = document(
        ("INVENTORY REPORT OF THE YEAR", "Helvetica-Bold", 18.0, True),
        ("Product Code, Unit Price", "Helvetica", 11.0, False),
        TEXT,
    )
    assert parsed.authors == ()


def test_a_numbered_heading_is_not_the_title_of_an_excerpt() -> None:
    assert document(("3 Results", "Helvetica-Bold", 14.0, False), TEXT, TEXT).title == ""


# --- dates ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "iso"),
    [
        ("2024-05-17", "2024-05-17"),
        ("17 May 2024", "2024-05-17"),
        ("May 17th, 2024", "2024-05-17"),
        ("June 18–22, 2018", "2018-06-18"),
        ("Sept. 2020", "2020-09"),
        ("17.05.2024", "2024-05-17"),
        ("5. Mai 2021", "2021-05-05"),
        ("12 de mayo de 2021", "2021-05-12"),
        ("1er janvier 1999", "1999-01-01"),
        ("2020년 4월 2일", "2020-04-02"),
        ("2020年4月2日", "2020-04-02"),
        ("25/12/2021", "2021-12-25"),
        ("12/25/2021", "2021-12-25"),
        ("05/12/2021", "2021"),  # which of them is the month cannot be known
        ("31 February 2021", None),
        ("version 2.0.1", None),
        ("call 555-2021-44", None),
        ("in the year of our lord", None),
    ],
)
def test_a_date_is_as_precise_as_it_is_written(words: str, iso: str | None) -> None:
    assert find_date(words) == iso


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("Received 12 May 2021; Accepted 1 June 2021; Published online 3 July 2021", "2021-07-03"),
        ("arXiv:2004.04906v3 [cs.CL] 30 Sep 2020", "2020-09-30"),
        ("© 2019 The Authors", None),
        ("The treaty of 3 July 1990 is discussed in this text at length.", None),
        ("In a statement published 3 July 1990 the town said so.", None),
        ("The plan, approved 3 July 1990, is old.", None),
        ("Figures are good. In force from 3 July 1990.", "1990-07-03"),
        ("Due date: 3 July 1990\nDate of birth: 3 July 1950\nIncident date: 3 July 1980", None),
        ("Date: 2023-11-02", "2023-11-02"),
    ],
)
def test_the_documents_own_date_is_the_one_it_claims(text: str, iso: str | None) -> None:
    assert find_document_date(text) == iso


@pytest.mark.parametrize(
    ("line", "iso"),
    [
        ("Berlin, 4 March 2022", "2022-03-04"),
        ("Friday, 4 March 2022, 20:13", "2022-03-04"),
        ("By Jane Doe, 4 March 2022", "2022-03-04"),
        ("Garden Section, as of 4 March 2022.", "2022-03-04"),
        ("4 March 2022 - Records Office", "2022-03-04"),
        ("Drainage Board, Lower Town. Issue 3, 4 March 2022.", "2022-03-04"),
        ("Version 2.1 - 4 March 2022", "2022-03-04"),
        ("(Rev. March 2022)", "2022-03"),
        ("Second edition, March 2022", "2022-03"),
        ("1 to 4 March 2022", None),  # several days are those of an event
        ("1–4 March 2022", None),
        ("1 March 2021 – 4 March 2022", None),
        ("Valid until 4 March 2022", None),
        ("Deadline 4 March 2022", None),
        ("Founded: 4 March 1922", None),
        ("Opened\t4 March 1922", None),
        ("The old bridge fell down in the night, 4 March 1922", None),
        ("Data set 2020", None),
    ],
)
def test_a_date_that_stands_by_itself_above_the_text_is_the_documents(line: str, iso: str | None) -> None:
    assert find_document_date("x", f"A Report\n{line}\nText") == iso


@pytest.mark.parametrize("title", ["Minutes of the board meeting of 4 March 2022", "The flood of 4 March 2022"])
def test_a_date_in_a_title_may_be_that_of_an_event(title: str) -> None:
    assert find_document_date("x", "", title) is None


def test_what_stands_above_the_text_counts_before_what_stands_in_it() -> None:
    text = "The Mill\n4 March 2022\nSummary\nDate: 1 February 2022"
    assert find_document_date(text, "4 March 2022") == "2022-03-04"
    assert find_document_date(text, "Published: May 2022\n4 March 2022") == "2022-05"
    assert find_document_date("Accepted 1 June 2021", "Received 12 May 2021\nBerlin, 4 March 2022") == "2022-03-04"


def test_a_report_has_its_own_date_and_not_that_of_the_event_in_its_title() -> None:
    parsed = document(
        ("Report on the fire at the mill, and on what was done, 2 to 5 April 2021", "Helvetica-Bold", 18.0, False),
        ("Fire Brigade and Rescue Section, Lower Town", "Helvetica", 11.0, False),
        ("9 June 2021", "Helvetica", 11.0, False),
        ("Summary", "Helvetica-Bold", 13.0, False),
        ("In the night to 2 April 2021 the mill burned. " + BODY, "Helvetica", 10.0, False),
    )  # fmt: skip
    assert parsed.title.endswith("what was done, 2 to 5 April 2021")
    assert parsed.date == "2021-06-09"


def test_what_is_set_larger_below_the_first_sentences_is_not_the_title() -> None:
    opening = ("On the Keeping of Bees", "Helvetica-Bold", 10.0, False)
    heading = ("What the Ancients Knew of Them", "Helvetica-Bold", 13.0, False)
    assert document(opening, TEXT, heading, TEXT).title == "On the Keeping of Bees"
    assert document(TEXT, heading, TEXT).title == ""


def test_the_head_of_every_page_is_not_the_title() -> None:
    assert document(("Bee Keeping Services Page 1 of 8", "Helvetica-Bold", 10.0, False), TEXT).title == ""


# --- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["Jane Doe", "J. R. R. Tolkien", "Ludwig van Beethoven", "Jean-Luc Picard", "José Núñez", "Wen-tau Yih"]
)
def test_names_look_like_names(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize(
    "words",
    [
        "Doe",
        "University of Oxford",
        "the quick fox",
        "Annual Report",
        "jane doe",
        "Google Research",
        "Table Two",
        "A B",
        "Chapter One",
        "",
    ],
)
def test_other_words_do_not(words: str) -> None:
    assert not is_name(words)


# --- abstracts and plain texts --------------------------------------------------------------------------------------


def test_an_abstract_may_open_its_paragraph() -> None:
    text = f"Title\n\nAbstract. {BODY.strip()}\n\nKeywords: evidence\n\n1 Introduction\n\nMore."
    start, end = find_abstract(text) or (0, 0)
    assert text[start:end] == BODY.strip()


def test_an_abstract_ends_where_the_next_section_begins() -> None:
    text = f"Abstract\n\n{BODY}\n\nBackground\n\n{BODY}"
    at = text.index("Background")
    start, end = find_abstract(text, [Section("Background", 1, at, at + 10)]) or (0, 0)
    assert text[start:end] == BODY.strip()


def test_the_word_abstract_in_a_sentence_is_no_abstract() -> None:
    assert find_abstract("An abstract painting is a painting.\n\nAbstract art is art. " + BODY) is None


def test_the_first_lines_of_a_plain_text_may_say_what_it_is() -> None:
    text = "Title: On Evidence\nAuthor: Jane Doe and Richard Roe\nDate: 17 May 2024\n\nText follows here."
    found = fill_metadata(Parsed(text, "text"))
    assert (found.title, found.authors, found.date) == ("On Evidence", ("Jane Doe", "Richard Roe"), "2024-05-17")


def test_what_a_parser_found_is_not_overruled() -> None:
    parsed = Parsed("Title: Other\n\nText", "text", title="Mine", authors=("Me",), date="2020")
    found = fill_metadata(parsed)
    assert (found.title, found.authors, found.date) == ("Mine", ("Me",), "2020")


def test_a_plain_text_without_a_title_has_none() -> None:
    text = "This is a sentence that opens a text.\nAnd this is another one.\n\nAnd a third."
    assert fill_metadata(Parsed(text, "text")).title == ""
