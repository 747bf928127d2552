from __future__ import annotations

import pytest

from assay.core.errors import UserError
from assay.language.dates import DateRange, find_date_range, first_day, last_day, with_weekday

TODAY = "2026-11-15"  # a Sunday


@pytest.mark.parametrize(
    ("words", "since", "until"),
    [
        ("What changed this week?", "2026-11-09", TODAY),
        ("reports of the last 12 months", "2025-11-15", TODAY),
        ("over the past three years", "2023-11-15", TODAY),
        ("what was decided last month", "2026-10-01", "2026-10-31"),
        ("last quarter's figures", "2026-07-01", "2026-09-30"),
        ("last year", "2025-01-01", "2025-12-31"),
        ("this quarter", "2026-10-01", TODAY),
    ],
)
def test_relative_dates_count_from_the_day_of_asking(words: str, since: str, until: str):
    found = find_date_range(words, TODAY)
    assert found is not None and found[0] == DateRange(since, until)


@pytest.mark.parametrize(
    ("words", "since", "until", "named"),
    [
        ("in the reports issued since 1 April 2025", "2025-04-01", None, "since 1 April 2025"),
        ("letters sent after May 2024", "2024-06-01", None, "after May 2024"),
        ("papers published before 2020", None, "2019-12-31", "before 2020"),
        ("notes dated until 2024-02", None, "2024-02-29", "until 2024-02"),
    ],
)
def test_a_written_date_limits_what_is_published(words: str, since: str | None, until: str | None, named: str):
    assert find_date_range(words, TODAY) == (DateRange(since, until), named)


@pytest.mark.parametrize(
    "words",
    [
        "What happened after 2020?",
        "How long is the wire?",
        "the last chapter",
        "this is it",
        "in the last week of the trial",
        "How is it done today?",
    ],
)
def test_other_words_are_no_dates(words: str):
    assert find_date_range(words, TODAY) is None


def test_a_month_that_is_too_short_gives_its_last_day():
    found = find_date_range("in the last 1 month", "2026-03-31")
    assert found and found[0].since == "2026-02-28"


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        ("2024", "2024-01-01", "2024-12-31"),
        ("2024-02", "2024-02-01", "2024-02-29"),
        ("2024-02-03", "2024-02-03", "2024-02-03"),
        ("May 2023", "2023-05-01", "2023-05-31"),
        ("17 May 2023", "2023-05-17", "2023-05-17"),
        ("last 12 months", "2025-11-15", TODAY),
        ("today", TODAY, TODAY),
        ("yesterday", "2026-11-14", "2026-11-14"),
    ],
)
def test_written_dates_are_spans_of_days(words: str, first: str, last: str):
    assert (first_day(words, TODAY), last_day(words, TODAY)) == (first, last)


def test_a_day_is_given_with_its_weekday():
    assert with_weekday("2026-11-16") == "Monday, 2026-11-16" and with_weekday("") == ""


@pytest.mark.parametrize("words", ["soon", "2024-13", "31 February 2023", ""])
def test_what_is_no_date_is_said_to_be_none(words: str):
    with pytest.raises(UserError, match="not a date"):
        first_day(words, TODAY)
