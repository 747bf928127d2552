from __future__ import annotations

import contextlib
import json
import time
from typing import Literal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from assay.models.replies import DEEPEST, LARGEST, UnreadableReply, extract_json, fit, read, strip_thoughts


class Weight(BaseModel):
    model_config = ConfigDict(extra="forbid")
    id: str
    score: int = Field(ge=0, le=10)
    kind: Literal["fact", "view"] = "fact"


class Weights(BaseModel):
    model_config = ConfigDict(extra="forbid")
    passages: tuple[Weight, ...]
    note: str | None = None


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {"b": [1, "}"]}}',
        '  \n{"a": {"b": [1, "}"]}}\n\n',
        '```json\n{"a": {"b": [1, "}"]}}\n```',
        '```\n{"a": {"b": [1, "}"]}}\n```\nI hope that helps.',
        'Here you are: {"a": {"b": [1, "}"]}} as wanted {sic}.',
        'The set {x, y} gives {"a": {"b": [1, "}"]}}',
        'An example is {"a": …}. Mine:\n```json\n{"a": {"b": [1, "}"]}}\n```',
        '<think>maybe {"a": 2}? no</think>{"a": {"b": [1, "}"]}}',
        'thoughts without a beginning {"a": 3}</think>\n{"a": {"b": [1, "}"]}}',
        '{"a": {"b": [1, "}"]}}{"a": 2}',
        'First {"broken": } then {"a": {"b": [1, "}"]}}',
        '[1] says {"a": {"b": [1, "}"]}}',
    ],
)
def test_the_first_object_is_found_whatever_stands_around_it(text):
    assert extract_json(text) == {"a": {"b": [1, "}"]}}


def test_a_list_is_not_taken_for_its_first_item():
    assert extract_json('[{"id": "a"}, {"id": "b"}]') == [{"id": "a"}, {"id": "b"}]
    with pytest.raises(UnreadableReply, match="the reply: should be"):
        read(Weights, '[{"id": "a"}]')


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "the reply is empty"),
        (" \n ", "the reply is empty"),
        ("I would rather not.", "there is no JSON object in the reply"),
        ('{"a": [1, 2,]}', "line 1, column 13: "),
        ('{\n  "a": 1,\n  "b": tru\n}', "line 3, column 8: expecting value, near `tru`"),
        ("{'a': 1}", "line 1, column 2: "),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": -Infinity}', "-Infinity is not JSON"),
        ('{"a": 1e999}', "too large"),
        ('{"a": ' + "9" * 5000 + "}", "too long"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', 'the key "c" occurs twice'),
        ('{"a": "\\ud83d"}', "half a character"),
        ('{"a": "x\ny"}', "line 1, column 9: invalid control character"),
        ("<think>hmm", "before the thoughts ended"),
        ('{"a":' * (DEEPEST + 1) + "1" + "}" * (DEEPEST + 1), "nested more than"),
        ("[" * 100_000, "nested more than"),
        ("x" * (LARGEST + 1), "1,000,001 characters"),
    ],
)
def test_what_cannot_be_read_is_said_exactly(text, error):
    with pytest.raises(UnreadableReply) as raised:
        extract_json(text)
    assert error in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        '{"passages": [{"id": "a"}, {"id": "b"',
        '```json\n{"passages": [{"id": "a"}, {"id": "b"}',
        'Sure: {"passages": [{"id": "a"}, {"id": "b',
        '[{"id": "a"}, {"id": "b"',
        '{"a": {"b": 1}, "c": "\\',
    ],
)
def test_a_reply_that_is_cut_off_is_not_mended_and_nothing_inside_it_is_taken(text):
    with pytest.raises(UnreadableReply, match="cut off"):
        extract_json(text)


def test_nesting_up_to_the_limit_is_read():
    deep = '{"a":' * DEEPEST + "1" + "}" * DEEPEST
    assert extract_json(deep) == json.loads(deep)


def test_thoughts_aloud_are_no_part_of_what_is_said():
    assert strip_thoughts("<thinking>a</thinking>b") == "b"
    assert strip_thoughts("b") == "b"
    assert strip_thoughts('{"a": "</think>"}') == '{"a": "</think>"}'


def test_a_value_is_validated_strictly():
    assert read(Weights, '{"passages": [{"id": "a", "score": 7}]}') == Weights(passages=(Weight(id="a", score=7),))
    with pytest.raises(UnreadableReply):
        read(Weights, '{"passages": [{"id": "a", "score": "7"}]}')


def test_each_thing_that_is_wrong_is_named_by_its_place():
    wrong = {"passages": [{"id": "a", "score": 11}, {"id": 1, "score": 2, "kind": "lie"}, {}], "extra": True}
    with pytest.raises(UnreadableReply) as raised:
        fit(Weights, wrong)
    assert str(raised.value).splitlines() == [
        "passages.0.score: should be less than or equal to 10 (given: 11)",
        "passages.1.id: should be a valid string (given: 1)",
        "passages.1.kind: should be 'fact' or 'view' (given: \"lie\")",
        "passages.2.id: is missing",
        "passages.2.score: is missing",
        "extra: is not one of the fields",
    ]


def test_a_long_list_of_errors_is_cut():
    with pytest.raises(UnreadableReply) as raised:
        fit(Weights, {"passages": [{}] * 50})
    assert str(raised.value).splitlines()[-1] == "… and 92 more"


@given(st.text() | st.text(alphabet='{}[]"\\:,`<>think/ \nab1.eENaf-'))
@settings(max_examples=400)
def test_nothing_but_its_own_error_is_ever_raised(text):
    try:
        value = extract_json(text)
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        read(Weights, text)
    except UnreadableReply as error:
        assert str(error)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=15,
)


@pytest.mark.long
@given(st.dictionaries(st.text(st.characters(codec="utf-8")), json_values, max_size=4), st.booleans())
@settings(max_examples=200)
def test_any_object_comes_back_as_it_was_written(value, ascii_only):
    written = json.dumps(value, ensure_ascii=ascii_only)
    assert extract_json(written) == value
    assume("</think>" not in written)  # in words around an object, that ends a model's thoughts
    for text in (f"```json\n{written}\n```", f"Well, {written} it is."):
        assert extract_json(text) == value


@pytest.mark.parametrize(
    "piece",
    ["{", "{a ", '{"', '{"a": ', "[[", '{"a":"\\', "```json\n{", '{"a":1,}', '"', "{}", "</think>", '{"{"', "\\"],
)
def test_a_megabyte_of_anything_is_read_in_no_time(piece):
    text = (piece * (LARGEST // len(piece)))[:LARGEST]
    begun = time.thread_time()
    with contextlib.suppress(UnreadableReply):
        extract_json(text)
    assert time.thread_time() - begun < 5
