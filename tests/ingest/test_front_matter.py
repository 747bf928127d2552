"""What stands above the running text: titles of plain texts, who signs a document, and dates in the names of files."""

from __future__ import annotations

import pytest

from assay.core.types import Section
from assay.ingest.formats.detect import read
from assay.ingest.metadata import file_fields
from assay.ingest.metadata.dates import find_date_in_file_name
from assay.ingest.metadata.fill import fill_metadata
from assay.ingest.parsed import FileLimits, Parsed

PROSE = (
    "\n\n" + "The hedges were looked at in spring and again in autumn, and most of them were found in good order. " * 3
)


def plain(top: str, kind: str = "text", **said: object) -> Parsed:
    return fill_metadata(Parsed(top + PROSE, kind, **said))  # pyright: ignore[reportArgumentType]


# --- titles ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("top", "title"),
    [
        ("Hedges of the County", "Hedges of the County"),
        ("Hedges of the County\n====================", "Hedges of the County"),
        ("HEDGES OF THE COUNTY\nPart one\nLower Town, 3 May 2021", "HEDGES OF THE COUNTY"),
        ("HEDGE SOCIETY\nMinutes of the meeting of 3 May 2021", "HEDGE SOCIETY: Minutes of the meeting of 3 May 2021"),
        ("Clipper 4\nRelease notes for gardeners", "Clipper 4: Release notes for gardeners"),
        ("Report on hedges\nLower Town", "Report on hedges"),
        ("The hedges of Lower Town, and who cuts them.", "The hedges of Lower Town, and who cuts them"),
        ("Von den Hecken und ihrem Nutzen.", "Von den Hecken und ihrem Nutzen"),
    ],
)
def test_the_first_lines_of_a_plain_text_are_its_title(top: str, title: str) -> None:
    assert plain(top).title == title


@pytest.mark.parametrize(
    "top",
    [
        "CHAPTER I",
        "Dear Jane",
        "Copyright 2019 Jane Doe",
        "3 May 2021",
        "12:30 the gate was opened",
        "Roses are red\nViolets are blue\nSugar is sweet",
        "Jane Doe\n12 High Street\nLower Town",
        "GARDEN SHOP\n4567 High Street\nLower Town\n3 May 2021",
        "The hedges were looked at\nand found in good order",
        '{\n"name": "Jane"',
        "We went there. It was dark.",
        "We went there and looked at every hedge in the county, and then we went home and wrote all of it down.",
    ],
)
def test_other_first_lines_are_not(top: str) -> None:
    assert plain(top).title == ""


def test_an_address_over_a_letter_is_no_title() -> None:
    assert plain("HEDGE SOCIETY\nLower Town\n\nDear members,").title == ""


def test_a_heading_over_a_whole_document_is_its_title() -> None:
    first, second = Section("Hedges", 1, 0, 6), Section("In spring", 2, 8, 17)
    assert plain("Hedges\n\nIn spring", "docx", sections=(first, second)).title == "Hedges"
    beside = Section("In spring", 1, 8, 17)
    assert plain("Hedges\n\nIn spring", "docx", sections=(first, beside)).title == ""
    assert plain("Slide 1", "pptx", sections=(Section("Slide 1", 1, 0, 7),)).title == ""


# --- who signs it ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "authors"),
    [
        ("Legal and Records Office, Lower Town", ("Legal and Records Office", "Lower Town")),
        ("Dams and Ditches Section", ("Dams and Ditches Section",)),
        ("Process Laboratory and Control Room", ("Process Laboratory and Control Room",)),
        ("Health and Safety Executive", ("Health and Safety Executive",)),
        ("Research & Development Department", ("Research & Development Department",)),
        ("Ministry of Labour and Social Affairs", ("Ministry of Labour and Social Affairs",)),
        ("Smith & Sons", ("Smith & Sons",)),
        ("Jane Doe and Richard Roe", ("Jane Doe", "Richard Roe")),
        ("Jane Doe & Richard Roe", ("Jane Doe", "Richard Roe")),
        ("Jane Doe, Richard Roe and Records Office", ("Jane Doe", "Richard Roe", "Records Office")),
        ("Jane Doe, Richard Roe, and Mary Major", ("Jane Doe", "Richard Roe", "Mary Major")),
        ("Doe, Jane", ("Doe, Jane",)),
    ],
)
def test_an_and_inside_the_name_of_an_organisation_does_not_split_it(written: str, authors: tuple[str, ...]) -> None:
    assert file_fields.parse_authors(written) == authors


def test_the_name_of_a_unit_without_a_date_may_be_a_heading() -> None:
    assert plain("Hedges\n\nGarden Team", "markdown", title="Hedges").authors == ()


def test_names_below_a_title_are_authors_after_by_or_when_there_are_many() -> None:
    assert plain("Hedges\n\nBy Jane Doe, 3 May 2021").authors == ("Jane Doe",)
    four = "Jane Doe, Richard Roe, Mary Major and John Stiles"
    assert len(plain(f"Hedges\n\n{four}").authors) == 4
    assert plain("Hedges\n\nProduct Code, Unit Price").authors == ()


def test_a_memorandum_is_by_the_one_it_is_from() -> None:
    found = plain("From: Jane Doe <jane@example.org>\nTo: All\nDate: 3 May 2021\nSubject: Hedges")
    assert (found.title, found.authors, found.date) == ("Hedges", ("Jane Doe",), "2021-05-03")
    assert plain("From: Jane Doe\nHedges").authors == ()


def test_what_a_document_says_counts_before_what_a_program_noted() -> None:
    top = "Hedges\n\nJane Doe, Richard Roe, Mary Major, John Stiles\n\n1 October 2012"
    found = plain(top, "docx", title="Hedges", authors=("Someone Else",), date="2023-05-15")
    assert (len(found.authors), found.date) == (4, "2012-10-01")
    silent = plain("Hedges", "docx", title="Hedges", authors=("Someone Else",), date="2023-05-15")
    assert (silent.authors, silent.date) == (("Someone Else",), "2023-05-15")


def test_a_date_over_a_paragraph_without_a_blank_line_counts() -> None:
    assert fill_metadata(Parsed("May 2021" + PROSE[1:], "html")).date == "2021-05"
    assert fill_metadata(Parsed("The treaty of\n3 July 1990" + PROSE[1:], "html")).date is None


# --- dates in the names of files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "iso"),
    [
        ("report-2025-02.md", "2025-02"),
        ("minutes-2025-06-17.txt", "2025-06-17"),
        ("2025_06_17 minutes.txt", "2025-06-17"),
        ("scan_20250617.pdf", "2025-06-17"),
        ("minutes-17-june-2025.txt", "2025-06-17"),
        ("handbook-2022.md", None),  # its subject as often as its date
        ("programme-2025-2028.pptx", None),
        ("annual-report-2010-11.pdf", None),  # November, or the year to 2011
        ("log-2025-01-01-to-2025-03-31.csv", None),
        ("order-2024-12-5678.md", None),
        ("guide-2023.07.pdf", None),
        ("2025-02-31.txt", None),
        ("data-set-2023.csv", None),
        ("archive-2020-05/notes.txt", None),
    ],
)
def test_a_file_is_named_by_a_day_or_a_month(name: str, iso: str | None) -> None:
    assert find_date_in_file_name(name) == iso


def test_the_name_of_a_file_is_the_last_resort() -> None:
    assert read(b"Hedges grow.", "hedges-2025-02.txt", FileLimits()).date == "2025-02"
    assert read(b"Date: 3 May 2021\n\nHedges grow.", "hedges-2025-02.txt", FileLimits()).date == "2021-05-03"
    assert read(b"name,day\nOak,2020-01-01\n", "trees-2025-02.csv", FileLimits()).date == "2025-02"


def test_a_message_has_its_subject_its_sender_and_its_day() -> None:
    heads = b"From: Garden Team <g@example.org>\nDate: Fri, 25 Apr 2025 16:18:30 +0200\nSubject: Hedges\n\n"
    found = read(heads + b"On 1 May 2020 we began.\n", "hedges-2019-01.eml", FileLimits())
    assert (found.title, found.authors, found.date) == ("Hedges", ("Garden Team",), "2025-04-25")
