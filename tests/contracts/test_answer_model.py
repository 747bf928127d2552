"""What every `AnswerModel` must do. A new one joins by adding itself to `MODELS`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from doubles import WordAnswers

from assay.models.llm import AnswerModel
from assay.models.local.bundled import BertAnswers

QUESTION = "How many litres does the kettle hold?"
ANSWERS = "The kettle in the pump house holds seven litres."
BESIDE = "The roses behind the house are watered twice a week."
TEXTS = [ANSWERS, BESIDE, "", "naïve café, straße, 水, and an emoji 🙂 at the end", "A long text about nothing. " * 400]

MODELS: tuple[Callable[[], AnswerModel], ...] = (BertAnswers, WordAnswers)


@pytest.fixture(scope="module", params=MODELS, ids=lambda make: make.__name__)
def model(request: pytest.FixtureRequest) -> AnswerModel:
    return request.param()


async def test_there_is_one_reading_for_each_text_in_order(model: AnswerModel):
    readings = await model.read(QUESTION, TEXTS)
    assert len(readings) == len(TEXTS)
    again = await model.read(QUESTION, TEXTS[::-1])
    assert [each.span for each in again[::-1]] == [each.span for each in readings]
    assert [each.answers for each in again[::-1]] == pytest.approx([each.answers for each in readings], abs=1e-3)


async def test_what_it_says_are_probabilities_and_places_in_the_text(model: AnswerModel):
    for text, found in zip(TEXTS, await model.read(QUESTION, TEXTS), strict=True):
        assert 0.0 <= found.answers <= 1.0 and 0.0 <= found.span_score <= 1.0
        start, end = found.span
        assert 0 <= start <= end <= len(text)
        assert bool(text[start:end].strip()) == bool(text.strip()), "words, wherever there are any"


async def test_a_text_that_answers_is_told_from_one_that_does_not(model: AnswerModel):
    first, second = await model.read(QUESTION, [ANSWERS, BESIDE])
    assert first.answers > second.answers


async def test_a_text_is_read_as_it_is_alone(model: AnswerModel):
    together = await model.read(QUESTION, TEXTS)
    for text, found in zip(TEXTS, together, strict=True):
        (alone,) = await model.read(QUESTION, [text])
        assert alone.span == found.span
        assert alone.answers == pytest.approx(found.answers, abs=1e-3)


async def test_no_texts_and_no_question_are_no_special_case(model: AnswerModel):
    assert await model.read(QUESTION, []) == []
    assert len(await model.read("", [ANSWERS])) == 1


def test_it_has_a_name_that_says_which_readings_it_gives(model: AnswerModel):
    assert model.name and model.name == model.name.strip()
    assert len({make().name for make in MODELS}) == len(MODELS)
