"""Units and scales in many languages: what declares them, and what they say of figures."""

from __future__ import annotations

import pytest

from assay.language.quantities import BARE_MONEY, declares_amounts, find_units, is_unit, only_declares, stated_scales


@pytest.mark.parametrize(
    ("line", "units", "scales"),
    [
        ("Turnover by region, thousand euros", "thousand euros", [3]),
        ("Turnover (thousand euros)", "thousand euros", [3]),
        ("Revenue (kCHF)", "kCHF", [3]),
        ("Umsatz in Mio. EUR", "in Mio. EUR", [6]),
        ("in TEUR", "in TEUR", [3]),
        ("Beträge in Tausend Euro", "Beträge in Tausend Euro", [3]),
        ("en milliers d’euros", "en milliers d’euros", [3]),
        ("(en miles de euros)", "en miles de euros", [3]),
        ("In millions of CHF", "In millions of CHF", [6]),
        ("in EUR", "in EUR", []),
        ("Balance sheet (£'000)", "£'000", [3]),
        ("(Millions, except per-share amounts)", "Millions, except per-share amounts", [6]),
        ("($ in billions)", "$ in billions", [9]),
        ("Industrial business (5% of sales)", "", []),
        ("It is 5 miles away", "", []),
        ("In millions of households, people were without power for days.", "", [6]),
    ],
)
def test_a_declaration_is_found_in_its_own_words(line: str, units: str, scales: list[int]):
    assert find_units([line]) == units
    assert stated_scales(line) == scales


def test_a_line_of_units_says_nothing_else():
    assert only_declares("(Dollars in millions)")
    assert only_declares("In millions of CHF")
    assert not only_declares("Balance sheet (in millions)")


def test_units_of_shares_are_not_those_of_amounts():
    assert all(
        map(declares_amounts, ("Dollars in millions", "amounts in thousands", "In millions", "kCHF", "Mio. EUR"))
    )
    assert not any(map(declares_amounts, ("shares in thousands", "Square feet in thousands", "in mg/L", "in %")))


def test_a_cell_may_be_a_unit_and_nothing_else():
    assert all(map(is_unit, ("mg/L", "[m³/s]", "kCHF", "°C", "%", "(in mm)")))
    assert not any(map(is_unit, ("5", "$12", "3 kg", "Rhine", "mg of lead", "", "A")))


@pytest.mark.parametrize(
    ("words", "bare"),
    [
        ("a charge of $200 in 2022", True),
        ("a charge of $200 million", False),
        ("$2.1 billion", False),
        ("EUR 12.5 Mio.", False),
        ("it paid 300 euros", True),
        ("300 Millionen Euro", False),
        ("200 people", False),
    ],
)
def test_an_amount_without_a_scale_is_told_from_one_with_it(words: str, bare: bool):
    assert (BARE_MONEY.search(words) is not None) == bare
