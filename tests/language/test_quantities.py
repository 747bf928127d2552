"""Numbers in text: whatever stands there is read, or left alone."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assay.language.quantities import figures, numbers

SIGNS = "0123456789,.'’ \u00a0\u202f-−–+eE%$€()²½"


@given(st.text(SIGNS, max_size=16))
@example("5.358.13")
@example("version 2.543.5, and 6.187.45$")
def test_no_row_of_digits_and_signs_stops_the_reading(text: str):
    for number in (*numbers(text), *figures(text)):
        assert all(each.is_finite() for each in number.readings)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,500", {Decimal(1500), Decimal("1.5")}),
        ("1.234.567", {Decimal(1234567)}),
        ("1.234,5", {Decimal("1234.5")}),
        ("5.358.13", {Decimal("5358.13")}),
        ("2,543,100.75", {Decimal("2543100.75")}),
    ],
)
def test_separators_are_read_as_people_write_them(text: str, values: set[Decimal]):
    assert set(numbers(text)[0].readings) == values
