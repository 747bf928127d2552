"""What a synthesis will take is told before it starts, and grows with the documents, not with their square."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.core.synthesis import Approach, Brief, Pipeline
from assay.core.types import Usage
from assay.workspace.forecast import LOCAL, REMOTE, Speed, lasting, pace
from assay.workspace.synthesis_forecast import SynthesisForecast, forecast, in_words, is_large

LENGTH = 20_000


def brief(documents: int = 10, pipeline: Pipeline = Pipeline.synthesis) -> Brief:
    return Brief(pipeline, tuple(f"d{n}" for n in range(documents)))


def of(
    wanted: Brief, *, small: bool = False, has_model: bool = True, speed: Speed = REMOTE, dear: float = 1.0
) -> SynthesisForecast:
    return forecast(
        wanted,
        lengths=[LENGTH] * len(wanted.documents),
        small=small,
        has_model=has_model,
        price=lambda tokens_in, tokens_out: dear * (tokens_in + 4 * tokens_out) / 1e6,
        speed=speed,
    )


@pytest.mark.parametrize("pipeline", Pipeline)
@pytest.mark.parametrize("small", [False, True])
def test_calls_and_tokens_grow_in_step_with_the_documents(pipeline: Pipeline, small: bool):
    ten, eighty = of(brief(10, pipeline), small=small), of(brief(80, pipeline), small=small)
    assert 5 < eighty.calls / ten.calls < 9 and 6.5 < eighty.tokens_in / ten.tokens_in < 9


def test_a_synthesis_takes_more_than_a_summary_and_says_for_what():
    summary, synthesis = of(brief(pipeline=Pipeline.summary)), of(brief())
    assert synthesis.calls > summary.calls and synthesis.questions == summary.questions
    more = {part.stage for part in synthesis.parts} - {part.stage for part in summary.parts}
    assert more == {"relate"}


def test_three_documents_of_two_pages_take_a_handful_of_requests():
    short = forecast(
        brief(3), lengths=[4000] * 3, small=False, has_model=True, price=lambda *_: None, speed=REMOTE, window=128_000
    )
    assert short.calls <= 11 and short.searches == 0


def test_the_whole_is_the_sum_of_its_parts():
    found = of(replace(brief(), audiences=("expert", "plain")))
    for name in ("calls", "tokens_in", "tokens_out"):
        assert getattr(found, name) == sum(getattr(part, name) for part in found.parts)
    assert found.money == pytest.approx((found.tokens_in + 4 * found.tokens_out) / 1e6)


@pytest.mark.parametrize(
    "more",
    [
        {"audiences": ("expert", "plain", "executive")},
        {"approach": Approach.agent},
    ],
)
def test_whatever_is_asked_for_beside_costs_more(more: dict[str, object]):
    plain, wanted = of(brief()), of(replace(brief(), **more))  # pyright: ignore[reportArgumentType]
    assert wanted.tokens_in > plain.tokens_in and wanted.seconds > plain.seconds


def test_a_small_model_only_writes_once_for_each_document():
    found = of(brief(), small=True)
    assert [(part.stage, part.calls) for part in found.parts] == [("narrate", 10)]


def test_without_a_model_nothing_is_asked_and_nothing_is_paid():
    found = of(brief(), has_model=False)
    assert (found.calls, found.tokens_in, found.tokens_out, found.money, found.parts) == (0, 0, 0, 0.0, ())
    assert found.searches == found.questions == 0 and found.seconds > 0
    assert "no model" in in_words(found) and "$" not in in_words(found)


def test_time_counts_what_is_read_and_written_and_how_many_are_asked_at_once():
    slow, fast = of(brief(), speed=LOCAL), of(brief(), speed=replace(LOCAL, at_once=4))
    assert slow.seconds > fast.seconds > of(brief(), has_model=False).seconds


def test_of_one_document_nothing_is_compared():
    found = of(brief(1, Pipeline.summary))
    assert "relate" not in {part.stage for part in found.parts} and found.questions == 3


@pytest.mark.parametrize(
    ("change", "large"),
    [
        ({}, False),
        ({"calls": 151}, True),
        ({"seconds": 601.0}, True),
        ({"money": 0.51}, True),
        ({"money": None}, False),
        ({"calls": 0, "seconds": 9_000.0}, False),
    ],
)
def test_what_is_large_is_asked_about(change: dict[str, object], large: bool):
    small = SynthesisForecast(10, 30, 30, 100, 100_000, 10_000, 0.1, 60.0)
    assert is_large(replace(small, **change)) is large  # pyright: ignore[reportArgumentType]


def test_in_words_every_figure_is_rounded():
    found = SynthesisForecast(10, 34, 34, 123, 123_456, 10_000, 0.1234, 185.0)
    assert in_words(found) == "10 documents, 34 searches, 120 requests, 130,000 tokens, $0.12, 3 min."
    assert "price not known" in in_words(replace(found, money=None))
    assert "no charge" in in_words(replace(found, money=0.0))
    assert "less than $0.01" in in_words(replace(found, money=0.004))
    assert [lasting(each) for each in (0.2, 60, 600, 9_000)] == ["1 s", "60 s", "10 min", "2.5 h"]


def test_a_model_that_was_asked_before_is_forecast_at_its_own_pace():
    guess = Speed(100.0, 10.0, 4)
    assert pace(Usage(2, 1000, 100, 0.0, 5.0), guess) == guess, "two calls tell nothing yet"
    assert pace(Usage(20, 1000, 100, 0.0, 10.0), guess) == Speed(200.0, 20.0, 4)
    assert pace(Usage(20, 1000, 100, 0.0, 40.0), guess) == Speed(50.0, 5.0, 4)
