from __future__ import annotations

import pytest

from assay.core.errors import UserError
from assay.language.dates import dates, first_day, last_day, parse_period, with_weekday

TODAY = "2026-11-15"  # a Sunday


@pytest.mark.parametrize(
    ("words", "since", "until"),
    [
        ("this week", "2026-11-09", TODAY),
        ("the last 12 months", "2025-11-15", TODAY),
        ("over the past three years", "2023-11-15", TODAY),
        ("last month", "2026-10-01", "2026-10-31"),
        ("last quarter", "2026-07-01", "2026-09-30"),
        ("last year", "2025-01-01", "2025-12-31"),
        ("this quarter", "2026-10-01", TODAY),
    ],
)
def test_relative_dates_count_from_the_day_of_asking(words: str, since: str, until: str):
    assert (first_day(words, TODAY), last_day(words, TODAY)) == (since, until)


def test_a_month_that_is_too_short_gives_its_last_day():
    assert first_day("in the last 1 month", "2026-03-31") == "2026-02-28"


@pytest.mark.parametrize(
    ("period", "days"),
    [
        ("FY2018", ("2018-01-01", "2018-12-31")),
        ("FY2023 (year ended 2023-06-30)", ("2022-07-01", "2023-06-30")),
        ("Q2 FY2023 (quarter ended 2022-12-31)", ("2022-10-01", "2022-12-31")),
        ("FY2023 (period ended 2023-06)", ("2023-01-01", "2023-06-30")),
        ("Q2 2023", ("2023-04-01", "2023-06-30")),
        ("Q2 FY2023", ("2023-01-01", "2023-12-31")),
        ("2021", ("2021-01-01", "2021-12-31")),
        ("2021-05", ("2021-05-01", "2021-05-31")),
        ("the reign of Amenhotep", None),
        ("FY0000", None),
        ("", None),
    ],
)
def test_a_period_is_a_span_of_days(period: str, days: tuple[str, str] | None):
    assert parse_period(period) == days


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        ("2024", "2024-01-01", "2024-12-31"),
        ("2024-02", "2024-02-01", "2024-02-29"),
        ("2024-02-03", "2024-02-03", "2024-02-03"),
        ("May 2023", "2023-05-01", "2023-05-31"),
        ("17 May 2023", "2023-05-17", "2023-05-17"),
        ("17. Mai 2023", "2023-05-17", "2023-05-17"),
        ("last 12 months", "2025-11-15", TODAY),
        ("today", TODAY, TODAY),
        ("yesterday", "2026-11-14", "2026-11-14"),
    ],
)
def test_written_dates_are_spans_of_days(words: str, first: str, last: str):
    assert (first_day(words, TODAY), last_day(words, TODAY)) == (first, last)


def test_a_day_is_given_with_its_weekday():
    assert with_weekday("2026-11-16") == "Monday, 2026-11-16" and with_weekday("") == ""


@pytest.mark.parametrize(
    "words", ["soon", "2024-13", "31 February 2023", "03.07.2025", "", "the last week of the trial", "since last year"]
)
def test_what_is_no_date_is_said_to_be_none(words: str):
    with pytest.raises(UserError, match="not a date"):
        first_day(words, TODAY)


@pytest.mark.parametrize(
    "words",
    [
        "17. Juni 2025",
        "17 juin 2025",
        "17 de junio de 2025",
        "17 czerwca 2025 r.",
        "17 juni 2025",
        "17-06-2025",
        "17. 6. 2025",
        "2025年6月17日",
        "١٧ يونيو ٢٠٢٥",
    ],
)
def test_a_day_is_read_in_many_languages(words: str):
    assert dates(f"({words})") == [frozenset({(2025, 6, 17)})]


def test_a_day_that_may_be_two_has_both_meanings():
    assert dates("03.07.2025") == [frozenset({(2025, 7, 3), (2025, 3, 7)})]
