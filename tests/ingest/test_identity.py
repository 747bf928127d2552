"""Identity: what is no title, and organisation, kind and period by rule."""

from __future__ import annotations

import pytest

from assay.core.identity import (
    KIND,
    ORGANISATION,
    PERIOD,
    file_words,
    identified_title,
    searched_identity,
    title_by_identity,
)
from assay.ingest.metadata.dates import find_date_in_file_name, find_document_date
from assay.ingest.metadata.fill import fill_metadata, find_title_line
from assay.ingest.parsed import Parsed

COVER = """UNITED STATES
SECURITIES AND EXCHANGE COMMISSION
Washington, D.C. 20549

FORM 10-K

ANNUAL REPORT PURSUANT TO SECTION 13 OR 15(d) OF THE SECURITIES EXCHANGE ACT OF 1934
For the fiscal year ended {end}

Commission file number 1-2345
____________________
HARROW TIDES, INC.
(Exact name of registrant as specified in its charter)

As of June 30, 2021, the aggregate market value of the shares was $5 billion.

{text}
"""


def identity(text: str, name: str, title: str = "", authors: tuple[str, ...] = ()) -> Parsed:
    return fill_metadata(Parsed(text=text, kind="pdf", title=title, authors=authors), name)


def test_the_cover_of_a_form_names_its_organisation_and_period_which_stand_for_a_title():
    found = identity(COVER.format(end="December 31, 2021", text=""), "HARROWTIDES_2021_10K.pdf", "UNITED STATES")
    assert found.title == "HARROW TIDES, INC. — annual report 2021"
    assert found.date is None
    assert found.meta == {
        ORGANISATION: "HARROW TIDES, INC.", KIND: "annual report", PERIOD: "FY2021 (year ended 2021-12-31)",
    }  # fmt: skip


def test_a_name_in_capitals_is_spelled_as_in_the_text():
    found = identity(
        COVER.format(end="May 31, 2021", text="Harrow Tides, Inc. makes clocks."), "HARROWTIDES_2021_10K.pdf"
    )
    assert found.title == "Harrow Tides, Inc. — annual report FY2021"


def test_no_title_is_made_if_a_part_of_the_identity_is_unknown():
    assert identity("INVOICE\nHarrow Tides plc\n\nTwo clocks.", "x.pdf").title == ""
    assert title_by_identity({ORGANISATION: "Harrow", KIND: "minutes"}) == ""
    assert title_by_identity({ORGANISATION: "Harrow", KIND: "minutes", PERIOD: "2024-06"}) == "Harrow — minutes 2024-06"


def test_a_title_made_from_the_identity_is_not_shown_twice():
    meta = {ORGANISATION: "Harrow", KIND: "annual report", PERIOD: "FY2021 (year ended 2021-12-31)"}
    shown = identified_title(title_by_identity(meta), "/a/harrow_10k.pdf", meta)
    assert shown == "Harrow — annual report 2021 (harrow_10k.pdf; FY2021 (year ended 2021-12-31))"


def test_a_year_is_called_what_the_document_calls_it():
    text = "In fiscal 2022 sales rose. " * 9 + "Fiscal 2023 will be harder. "
    found = identity(COVER.format(end="January 28, 2023", text=text), "report.pdf")
    assert found.meta[PERIOD] == "FY2022 (year ended 2023-01-28)"
    named = identity(COVER.format(end="January 28, 2023", text=text), "harrow_2023.pdf")
    assert named.meta[PERIOD] == "FY2023 (year ended 2023-01-28)"


def test_a_quarter_is_read_from_the_cover_and_the_file_name():
    text = "FORM 10-Q\nFor the Quarterly Period Ended December 31, 2022\nHarrow Tides plc\n"
    found = identity(text, "HARROW_2023Q2_10Q.pdf")
    assert found.meta == {
        ORGANISATION: "Harrow Tides plc", KIND: "quarterly report", PERIOD: "Q2 FY2023 (quarter ended 2022-12-31)",
    }  # fmt: skip


def test_a_headline_names_the_organisation():
    found = identity("The quarter was good.", "news.pdf", "Harrow Tides reports second quarter 2023 results")
    assert found.meta == {ORGANISATION: "Harrow Tides", KIND: "press release", PERIOD: "Q2 2023"}


@pytest.mark.parametrize(
    ("title", "name", "period"),
    [
        ("Operations report, March 2025", "ops.md", "2025-03"),
        ("Minutes", "minutes-harbour-2024-06.pdf", "2024-06"),
        ("Minutes of the board", "board-minutes-2025-06-17.txt", "2025-06"),
        ("Events of 3 May 2022", "events.md", ""),
        ("Rules", "rules_2025.docx", "2025"),
    ],
)
def test_a_month_or_a_year_is_read_from_title_or_file_name(title: str, name: str, period: str):
    assert identity("Text.", name, title).meta.get(PERIOD, "") == period


def test_the_name_of_an_organisation_is_a_title_only_of_a_text_about_it():
    text = "Harrow Tides plc\n\nHarrow Tides was founded in 1920 and makes clocks for harbours and piers."
    assert identity(text, "article.pdf", "Harrow Tides plc").title == "Harrow Tides plc"
    assert identity("INVOICE\n" + text, "x.pdf", "Harrow Tides plc").title == ""


@pytest.mark.parametrize("name", ["PFIZER_2021_10K.pdf", "ACME_2018_10-K.pdf", "ACME_2020_8K.pdf", "ACME_2022_10Q.pdf"])
def test_the_name_of_a_form_is_no_month(name: str):
    assert find_date_in_file_name(name) is None
    assert find_date_in_file_name("minutes_2021_10.pdf") == "2021-10"


def test_a_statement_as_of_a_day_does_not_date_the_document():
    assert find_document_date("As of June 30, 2022, the market value was high.") is None
    assert find_document_date("As of June 30, 2022") == "2022-06-30"


@pytest.mark.parametrize("line", ["2023 Annual Report", "3M Company"])
def test_a_first_line_that_begins_with_a_digit_may_be_a_title(line: str):
    assert find_title_line(f"{line}\n\n{'The year was a good one for the company. ' * 5}") == line
    assert find_title_line(f"1. Introduction\n\n{'The year was a good one for the company. ' * 5}") == ""


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("/a/AMCOR_2023Q2_10Q.pdf", ["AMCOR", "2023", "Q2", "10Q"]),
        ("KraftHeinz2019.pdf", ["Kraft", "Heinz", "2019"]),
        ("lease agreement Acme (2021).docx", ["lease", "agreement", "Acme", "2021"]),
        ("collection:4983", []),
        ("d17", []),
        ("3f2a9c1b77.pdf", []),
    ],
)
def test_words_of_a_file_name(uri: str, words: list[str]):
    assert file_words(uri) == words


def test_what_is_searched_of_an_identity_repeats_nothing_of_the_title():
    meta = {ORGANISATION: "Harrow Tides plc", PERIOD: "FY2021 (year ended 2021-12-31)"}
    assert searched_identity("Tides of 2021", "HARROW_2021.pdf", meta) == "Harrow plc FY2021 year ended 2021-12-31"


def test_a_title_is_shown_with_the_file_name_where_they_differ():
    assert identified_title("Annual report", "/a/harrow_2021.pdf", {}) == "Annual report (harrow_2021.pdf)"
    assert identified_title("harrow 2021", "/a/harrow_2021.pdf", {}) == "harrow 2021"
    assert identified_title("Article", "collection:4983", {}) == "Article"
    meta = {ORGANISATION: "Harrow Tides plc", PERIOD: "FY2021"}
    assert identified_title("harrow", "harrow.pdf", meta) == "harrow (Harrow Tides plc, FY2021)"
