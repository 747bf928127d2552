"""No pattern takes more than its share of time on words that were made for it: twice the words, about twice the time."""

from __future__ import annotations

import os
import re

import patterns
import pytest
from patterns import Used, hard, seconds

SOAK = bool(os.environ.get("ASSAY_SOAK"))
SHORT, LONG = 300, 2_400  # characters; eight times as many should take eight times as long
LONGER, LONGEST = 50_000, 100_000
WORTH = 0.00006  # seconds below which nothing is told by a clock


def superlinear(used: Used, *, wide: bool) -> str:
    """What makes a pattern slow, if anything does."""
    for first, again in hard(used.pattern, wide):
        short = seconds(used, first, again, SHORT)
        if short < WORTH:
            continue
        long = min(seconds(used, first, again, LONG) for _ in range(2))
        if long <= 3.5 * (LONG / SHORT) * short:
            continue
        # A clock may be disturbed: what is slow indeed is so each time.
        if long < 0.5:
            short, long = (min(seconds(used, first, again, n) for _ in range(9)) for n in (SHORT, LONG))
        if long > 3.5 * (LONG / SHORT) * short:
            return f"{used.where} takes {long:.3f} s for {first!r} and {LONG} times {again!r}"
    return ""


@pytest.fixture(scope="module")
def everything() -> list[Used]:
    return patterns.all_used()


def test_every_pattern_is_looked_at(everything: list[Used]):
    assert len(everything) > 300
    assert {"assay.language.sentences._END", "assay.ingest.metadata.dates.LABELLED"} <= {
        used.where for used in everything
    }


@pytest.mark.long
def test_no_pattern_is_slow_on_words_that_are_made_for_it(everything: list[Used]):
    slow = [told for used in everything if (told := superlinear(used, wide=SOAK))]
    assert not slow, "\n".join(slow)


@pytest.mark.skipif(not SOAK, reason="takes minutes")
def test_100_000_characters_take_about_twice_as_long_as_half_of_them(everything: list[Used]):
    for used in everything:
        for first, again in hard(used.pattern, False):
            half = seconds(used, first, again, LONGER)
            if half > 0.02:
                assert seconds(used, first, again, LONGEST) < 3 * half, f"{used.where} {first!r} {again!r}"


@pytest.mark.parametrize(
    "slow", [r"(a+)+$", r"\s+$", r"\d+(?:,\d+)*x", r"(?:a|aa)+$", r"\[[^\]]*\]", r"\w+\s*=\s*\w+;"]
)
@pytest.mark.long
def test_a_pattern_that_is_slow_is_found(slow: str, monkeypatch: pytest.MonkeyPatch):
    """Kept short for the one that would take for ever."""
    if slow.endswith("+$") and "(" in slow:
        monkeypatch.setattr(f"{__name__}.SHORT", 14)
        monkeypatch.setattr(f"{__name__}.LONG", 20)
    assert superlinear(Used("here", re.compile(slow), True), wide=False)
