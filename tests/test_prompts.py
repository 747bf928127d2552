from __future__ import annotations

import pytest

from assay.prompts import fill, render


def test_every_place_is_filled_with_its_value():
    assert fill("Ask {{ who }} about {{what}}.", {"who": "us", "what": "pumps"}) == "Ask us about pumps."


def test_a_value_that_is_missing_is_an_error():
    with pytest.raises(ValueError, match="no value for what"):
        fill("About {{what}}.", {})


def test_a_value_that_nothing_takes_is_an_error():
    with pytest.raises(ValueError, match="nothing takes colour"):
        fill("Plain.", {"colour": "red"})


def test_what_a_value_says_is_never_taken_for_a_place():
    assert fill("{{a}} {{b}}", {"a": "{{b}}", "b": "secret"}) == "{{b}} secret"


@pytest.mark.parametrize("name", ["nowhere", "../settings", "", "a/b"])
def test_a_prompt_that_is_not_there_is_said_to_be_missing(name: str):
    with pytest.raises(LookupError):
        render(name)
