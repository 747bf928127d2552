"""The chat protocol: what is sent, and what is made of replies that are not as they should be."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import Loopback, Naps, chats, drips, hangs, says

from assay.core.errors import ModelError, TooLong
from assay.models import endpoint
from assay.models.cost import estimate_tokens, fit_to_tokens, prompt_tokens
from assay.models.endpoint import (
    ChatEndpoint,
    adaptation_for,
    entry_of,
    is_permanent,
    is_too_long,
    parse_refusal,
    read_reply,
    request_body,
    stated_window,
    window_of,
    without_thoughts,
)
from assay.models.llm import Message, Prompt, Reply, ToolSpec

KEY = "sk-very-secret-1234"
PROMPT = Prompt((Message("system", "Be brief."), Message("user", "Who are you?")), max_tokens=50, temperature=0.2)
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
TOOL = ToolSpec("search", "Searches.", MappingProxyType({"type": "object", "properties": {}}))


def model(loopback: Loopback, **more: Any) -> ChatEndpoint:
    return ChatEndpoint(loopback.url, "m", **{"api_key": KEY, "sleep": Naps(), **more})


# ── what is sent ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_prompt_goes_out_and_a_reply_comes_back(loopback: Loopback):
    reply = await model(loopback).complete(PROMPT, 5)
    assert (reply.text, reply.finish, reply.model, reply.calls) == ("Hello.", "stop", "m-1", ())
    assert (reply.usage.calls, reply.usage.tokens_in, reply.usage.tokens_out) == (1, 7, 3)
    assert reply.usage.seconds > 0
    (seen,) = loopback.seen
    assert (seen.method, seen.path, seen.headers["authorization"]) == ("POST", "/v1/chat/completions", f"Bearer {KEY}")
    assert seen.json == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who are you?"}],
        "max_tokens": 50,
        "temperature": 0.2,
        "stream": False,
    }


@pytest.mark.parametrize(
    ("form", "schema", "sent"),
    [
        ("text", None, None),
        ("json", None, {"type": "json_object"}),
        ("schema", None, {"type": "json_object"}),
        (
            "schema",
            SCHEMA,
            {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True}},
        ),
    ],
)
def test_the_form_of_a_reply_is_asked_for_as_the_protocol_has_it(form: Any, schema: Any, sent: object):
    assert request_body(Prompt(PROMPT.messages, form, schema), "m").get("response_format") == sent


@pytest.mark.parametrize(
    "loose",
    [
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {**SCHEMA, "required": []},
        {**SCHEMA, "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {}}}}},
    ],
)
def test_strictness_is_only_asked_for_where_the_schema_allows_it(loose: dict[str, Any]):
    sent = request_body(Prompt(PROMPT.messages, "schema", loose), "m")["response_format"]["json_schema"]
    assert sent["strict"] is False


async def test_tools_are_told_of_and_calls_come_back(loopback: Loopback):
    called = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"query": "x"}'}}
    loopback.answer = lambda seen, n: chats(None, tool_calls=[called])
    reply = await model(loopback).complete(Prompt(PROMPT.messages, tools=(TOOL,)), 5)
    assert [(call.id, call.name, call.arguments) for call in reply.calls] == [("c1", "search", '{"query": "x"}')]
    assert loopback.seen[0].json["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "search",
                "description": "Searches.",
                "parameters": {"type": "object", "properties": {}},
            },
        }
    ]


NO_MAX = {
    "error": {
        "message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
        "instead.",
        "param": "max_tokens",
        "code": "unsupported_parameter",
    }
}
NO_HEAT = {
    "error": {
        "message": "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is "
        "supported.",
        "param": "temperature",
        "code": "unsupported_value",
    }
}


async def test_a_parameter_that_is_refused_is_left_out_from_then_on(loopback: Loopback):
    def particular(body: dict[str, Any]) -> bytes:
        if "max_tokens" in body:
            return says(NO_MAX, 400)
        return says(NO_HEAT, 400) if "temperature" in body else chats()

    loopback.answer = lambda seen, n: particular(seen.json)
    asked = model(loopback)
    await asyncio.gather(*(asked.complete(PROMPT, 5) for _ in range(4)))  # several learn at once
    before = len(loopback.seen)
    assert (await asked.complete(PROMPT, 5)).text == "Hello."
    assert len(loopback.seen) == before + 1
    assert loopback.seen[-1].json["max_completion_tokens"] == 50


async def test_a_parameter_that_is_refused_even_when_left_out_is_an_error(loopback: Loopback):
    loopback.answer = lambda seen, n: says(NO_HEAT, 400)
    with pytest.raises(ModelError, match="status 400"):
        await model(loopback).complete(PROMPT, 5)
    assert len(loopback.seen) == 2


# ── replies that are odd and can be read ────────────────────────────────────────────────────────────────────────────


def read(message: object, **more: object) -> Reply:
    return read_reply({"choices": [{"message": message}], **more}, PROMPT, "m")


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": None}, ""),
        ({}, ""),
        ({"content": [{"type": "text", "text": "a"}, {"type": "image"}, "b", 7, {"text": "c"}, {"text": 1}]}, "abc"),
        ({"content": [{"type": "thinking", "text": "hm"}, {"type": "text", "text": "so"}]}, "so"),
        ({"content": {"a": 1}}, '{"a": 1}'),
        ({"content": 7}, "7"),
        ({"content": "so", "reasoning_content": "hm"}, "so"),
        ({"content": None, "refusal": "I will not."}, "I will not."),
        ({"content": "caf\ud83d"}, "caf?"),
    ],
)
def test_what_was_written_is_found_wherever_it_stands(message: object, text: str):
    assert read(message).text == text


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("<think>hm</think>\nYes.", "Yes."),
        ("\n<thinking>a <b> c</thinking> Yes.", "Yes."),
        ("hm, well</think>Yes.", "Yes."),
        ("<think>never ends", ""),
        ('{"a": "</think>"}', '{"a": "</think>"}'),
        ("It says <think> and </think> in the text.", "It says <think> and </think> in the text."),
        ("Yes.", "Yes."),
        ("", ""),
    ],
)
def test_thinking_aloud_is_no_part_of_a_reply(said: str, left: str):
    assert without_thoughts(said) == left


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('{"a": ', '{"a": '),
        ({"a": 1}, '{"a": 1}'),
        ([1, 2], "[1, 2]"),
        (7, "7"),
        (None, "{}"),
        ("NaN", "NaN"),
        ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
    ],
)
def test_arguments_of_any_kind_reach_whoever_checks_them(arguments: object, kept: str):
    (call,) = read({"tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}).calls
    assert (call.id, call.name, call.arguments) == ("call_1", "f", kept)


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ([{"function": {"name": "f"}}] * 200, ["f"] * 64),
        ({"function": {"name": "f"}}, ["f"]),
        ([None, 7, {}, {"function": "f"}, {"function": {"name": 7}}], [""]),
        ("f", []),
        ([], []),
    ],
)
def test_calls_are_kept_within_reason(listed: object, names: list[str]):
    assert [call.name for call in read({"tool_calls": listed}).calls] == names


def test_a_call_as_it_was_written_before_there_were_tools_is_a_call():
    reply = read({"content": None, "function_call": {"name": "f", "arguments": "{}"}})
    assert [call.name for call in reply.calls] == ["f"]
    assert reply.finish == "tool_calls"


@pytest.mark.parametrize(
    ("told", "tokens_in", "tokens_out"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 2.0}, 5, 2),
        ({"prompt_tokens": 10**30, "completion_tokens": 1e300}, 10**9, 10**9),
        ({"prompt_tokens": -5, "completion_tokens": -1}, None, None),
        ({"prompt_tokens": 0, "completion_tokens": 0}, None, None),
        ({"prompt_tokens": "5", "completion_tokens": True}, None, None),
        ({"prompt_tokens": float("nan"), "completion_tokens": float("inf")}, None, None),
        ([], None, None),
        (None, None, None),
    ],
)
def test_what_was_spent_is_as_told_and_else_estimated(told: object, tokens_in: int | None, tokens_out: int | None):
    usage = read({"content": "One two three."}, usage=told).usage
    assert usage.tokens_in == (tokens_in or prompt_tokens(PROMPT))
    assert usage.tokens_out == (tokens_out or estimate_tokens("One two three."))


def test_a_reply_that_was_cut_off_says_so():
    cut = {"choices": [{"message": {"content": "Once upon"}, "finish_reason": "length"}]}
    assert read_reply(cut, PROMPT, "m").finish == "length"
    assert read({"content": ""}).finish == "stop"


@pytest.mark.long
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    "choices message content tool_calls function name arguments usage prompt_tokens model".split()
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_whatever_comes_back_is_a_reply_or_an_error_in_words(data: object):
    try:
        reply = read_reply(data, PROMPT, "m")
    except ValueError:
        return
    assert reply.usage.tokens_in > 0
    json.dumps([reply.text, reply.model, reply.finish]).encode()


# ── replies that are none ───────────────────────────────────────────────────────────────────────────────────────────

NONE: dict[str, bytes] = {
    "a web page": says("<html>Sign in</html>", Content_Type="text/html"),
    "nothing": says(""),
    "half a reply": says(chats().partition(b"\r\n\r\n")[2][:-5]),
    "no choices": says({"choices": []}),
    "a null message": says({"choices": [{"message": None}]}),
    "choices of another kind": says({"choices": "none"}),
    "a list": says([1]),
    "depths": says("[" * 100_000),
    "an error with status 200": says({"error": {"message": f"bad key {KEY}"}}),
    "bytes that are no text": says(b"\xff\xfe\x00"),
}


@pytest.mark.parametrize("kind", NONE)
async def test_a_reply_that_is_none_is_asked_for_again_and_then_an_error(loopback: Loopback, kind: str):
    loopback.answer = lambda seen, n: NONE[kind]
    with pytest.raises(ModelError, match="did not answer as /v1/chat/completions does") as raised:
        await model(loopback).complete(PROMPT, 30)
    assert KEY not in str(raised.value)
    assert len(loopback.seen) == 3
    loopback.answer = lambda seen, n: NONE[kind] if n == 4 else chats()
    assert (await model(loopback).complete(PROMPT, 30)).text == "Hello."


async def test_five_megabytes_are_too_much(loopback: Loopback):
    loopback.answer = lambda seen, n: chats("x" * 5_000_000)
    with pytest.raises(ModelError, match="more than 5 megabytes"):
        await model(loopback).complete(PROMPT, 30)


@pytest.mark.parametrize(("status", "setting"), [(401, "llm_api_key"), (403, "llm_api_key"), (404, "llm_model")])
async def test_a_refusal_names_the_setting_and_is_not_repeated(loopback: Loopback, status: int, setting: str):
    loopback.answer = lambda seen, n: says({"error": {"message": f"Incorrect API key provided: {KEY}"}}, status)
    asked = model(loopback)
    with pytest.raises(ModelError, match=f"`{setting}`") as raised:
        await asked.complete(PROMPT, 30)
    assert len(loopback.seen) == 1
    assert KEY not in f"{raised.value!r} {asked!r}"


async def test_an_address_at_which_nobody_opens_is_given_up_on_before_the_time_is_over():
    naps = Naps()
    with pytest.raises(ModelError, match=r"could not be reached; gave up after 5 tries"):
        await ChatEndpoint("http://127.0.0.1:9", "m", sleep=naps).complete(PROMPT, 120)
    assert sum(naps.taken) == 7.5


@pytest.mark.fake_clock
@pytest.mark.parametrize("said", [hangs, drips, says("x", 503), says("x", 429, Retry_After="0")])
async def test_it_ends_within_its_seconds(loopback: Loopback, said: Any):
    loopback.answer = lambda seen, n: said
    began = asyncio.get_running_loop().time()
    with pytest.raises(ModelError):
        await model(loopback, sleep=asyncio.sleep).complete(PROMPT, 0.6)
    assert asyncio.get_running_loop().time() - began < 1.1


# ── prompts that are too long ───────────────────────────────────────────────────────────────────────────────────────

TOO_LONG: list[tuple[int, object, int | None]] = [
    # OpenAI
    (400, {"error": {"message": "This model's maximum context length is 8192 tokens. However, your messages resulted in "
                     "9001 tokens.", "code": "context_length_exceeded"}}, 8192),
    (400, {"error": {"message": "Your input exceeds the context window of this model.",
                     "code": "context_length_exceeded"}}, None),
    (400, {"error": {"message": "Input tokens exceed the configured limit of 272,000 tokens. Your messages resulted in "
                     "300000 tokens."}}, 272_000),
    # vLLM
    (400, {"object": "error", "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 "
           "tokens (4000 in the messages, 1000 in the completion).", "code": 400}, 4096),
    (400, {"error": {"message": "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context "
                     "length is 8192 tokens and your request has 20 input tokens"}}, 8192),
    (400, {"error": {"message": "The decoder prompt (length 9000) is longer than the maximum model length of 8192."}}, 8192),
    # llama.cpp, now and before
    (400, {"error": {"code": 400, "message": "request (9000 tokens) exceeds the available context size (8192 tokens), try "
                     "increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 8192}}, 8192),
    (500, {"error": {"code": 500, "message": "the request exceeds the available context size. try increasing the context "
                     "size or enable context shift"}}, None),
    # Ollama
    (400, {"error": "the input length exceeds the context length"}, None),
    (400, {"error": "prompt too long; exceeded max context length by 4 tokens"}, None),
    # Anthropic
    (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > "
                                      "200000 maximum"}}, 200_000),
    (400, {"error": {"message": "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease "
                     "input length or `max_tokens` and try again"}}, 200_000),
    # text-generation-inference
    (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` "
           "tokens and 100 `max_new_tokens`", "error_type": "validation"}, 4096),
    (422, {"error": "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000"}, 4095),
    # Mistral, SGLang, Google, LM Studio
    (400, {"message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"}, 32768),
    (400, {"message": "The input (9000 tokens) is longer than the model's context length (8192 tokens)."}, 8192),
    (400, [{"error": {"message": "The input token count (1100000) exceeds the maximum number of tokens allowed "
                      "(1048576)."}}], 1_048_576),
    (400, {"error": "However, the model is loaded with context length of only 4096 tokens"}, 4096),
    (413, "Request entity too large", None),
]  # fmt: skip


@pytest.mark.parametrize(("status", "said", "window"), TOO_LONG)
async def test_a_prompt_that_is_too_long_is_told_from_other_refusals(
    loopback: Loopback, status: int, said: object, window: int | None
):
    loopback.answer = lambda seen, n: says(said, status)
    with pytest.raises(TooLong) as raised:
        await model(loopback).complete(PROMPT, 5)
    assert raised.value.window == window
    assert len(loopback.seen) == 1


@pytest.mark.parametrize(
    "words",
    [
        "The model `m` does not exist",
        "Invalid schema for response_format 'reply'",
        "max_tokens is too large: 50000. This model supports at most 16384 completion tokens",
        "rate limit reached: 30000 tokens per minute",
    ],
)
def test_other_refusals_are_not_taken_for_length(words: str):
    said = parse_refusal(json.dumps({"error": {"message": words}}))
    assert not is_too_long(said)
    assert stated_window(said) is None


def test_a_window_beyond_belief_is_not_believed():
    said = parse_refusal(json.dumps({"error": {"message": f"maximum context length is {'9' * 14} tokens"}}))
    assert stated_window(said) is None


def test_what_is_said_of_parameters_is_only_learnt_from_their_refusal():
    for words in (
        "temperature must be between 0 and 2",
        "The document speaks of an unknown place",
        "<html>",
        "max_completion_tokens of 9000 is not supported: this model's maximum context length is 8192 tokens",
    ):
        assert adaptation_for(parse_refusal(words)) is None


@pytest.mark.parametrize(
    ("status", "error", "hopeless"),
    [
        (429, {"code": "insufficient_quota", "message": "You exceeded your current quota"}, True),
        (429, {"code": "rate_limit_exceeded", "message": "slow down"}, False),
        (500, {"message": "tools param requires --jinja flag"}, True),
        (500, {"message": "internal error"}, False),
        (503, {"message": "loading model"}, False),
    ],
)
def test_asking_again_is_left_where_it_cannot_help(status: int, error: dict[str, str], hopeless: bool):
    assert is_permanent(status, parse_refusal(json.dumps({"error": error}))) is hopeless


# ── the window ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("entry", "window"),
    [
        ({"max_model_len": 4096}, 4096),
        ({"context_length": 131072, "top_provider": {"context_length": 65536}}, 131072),
        ({"context_window": 200_000}, 200_000),
        ({"meta": {"n_ctx": 8192, "n_ctx_train": 32768}}, 8192),
        ({"top_provider": {"context_length": 65536}}, 65536),
        ({"max_model_len": "4096", "context_length": -1, "context_window": True}, None),
        ({"max_model_len": 10**12}, None),
        ({"meta": None}, None),
        ({}, None),
    ],
)
def test_a_window_is_found_under_the_names_that_servers_give_it(entry: dict[str, Any], window: int | None):
    assert window_of(entry) == window


def test_the_entry_is_that_of_the_model_and_the_only_one_stands_for_any():
    listed = {"data": [{"id": "a", "n": 1}, {"id": "b", "n": 2}, None]}
    assert entry_of(listed, "b") == {"id": "b", "n": 2}
    assert entry_of(listed, "c") is None
    assert entry_of({"data": [{"id": "a"}]}, "c") == {"id": "a"}
    assert entry_of({"data": "x"}, "c") is None


async def test_a_wrong_key_or_name_is_told_at_once(loopback: Loopback):
    loopback.answer = lambda seen, n: says({"data": [{"id": "small"}, {"id": "m:latest"}, {"id": 7}, None]})
    assert await model(loopback).listed() == ("small", "m:latest")
    await model(loopback).check()
    with pytest.raises(ModelError, match=r"has no model 'large'; there are small, m:latest"):
        await replace(model(loopback), model="large").check()
    for page in ({"data": [{"id": "the only one"}]}, {"data": "x"}, [], "x"):
        loopback.answer = lambda seen, n, page=page: says(page)
        await model(loopback).check()
    loopback.answer = lambda seen, n: says({}, 401)
    with pytest.raises(ModelError, match="refuses the key"):
        await model(loopback).check()
    assert {seen.path for seen in loopback.seen} == {"/v1/models"}


async def test_an_address_at_which_nobody_opens_is_tried_once_for_its_models():
    naps = Naps()
    with pytest.raises(ModelError, match="could not be reached: is it running there"):
        await ChatEndpoint("http://127.0.0.1:9", "m", sleep=naps).check()
    assert not naps.taken


async def test_servers_are_looked_for_on_this_machine_alone(loopback: Loopback, monkeypatch: pytest.MonkeyPatch):
    loopback.answer = lambda seen, n: says({"data": [{"id": "llama"}]})
    monkeypatch.setattr(endpoint, "LOCAL_SERVERS", {"Ollama": urlsplit(loopback.url).port, "vLLM": 9})
    (found,) = await endpoint.servers_here()
    assert (found.program, found.models) == ("Ollama", ("llama",)) and found.address.startswith("http://127.0.0.1:")


async def test_the_server_is_asked_for_the_window(loopback: Loopback):
    pages = {
        "/v1/models": {"data": [{"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx_train": 32768}}]},
        "/props": {"default_generation_settings": {"n_ctx": 2048}},
    }
    loopback.answer = lambda seen, n: says(pages[seen.path])
    assert await model(loopback).window(5) == 2048
    pages["/props"] = {}
    assert await model(loopback).window(5) == 32768
    pages |= {
        "/v1/models": {"data": [{"id": "m", "owned_by": "library"}]},
        "/api/ps": {"models": [{"name": "m", "context_length": 4096}]},
    }
    assert await model(loopback).window(5) == 4096


@pytest.mark.parametrize("said", [says("no", 404), says("<html>"), says([]), hangs])
async def test_a_server_that_does_not_say_has_no_window(loopback: Loopback, said: Any):
    loopback.answer = lambda seen, n: said
    assert await model(loopback).window(0.3) is None


# ── how many tokens ─────────────────────────────────────────────────────────────────────────────────────────────────

COUNTED = [  # by a real tokenizer with a vocabulary of 152,000
    ("Die Donaudampfschifffahrtsgesellschaft veröffentlichte am Dienstag überraschend günstige Geschäftszahlen.", 31),
    ("公司公布了去年的财务业绩，结果好于预期，股价因此上涨。研究人员发现了一种新的方法。", 23),
    ("THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG AND RUNS AWAY", 19),
    (" ".join(str(place * 7919) for place in range(40)), 261),
    ("It was the best of times, it was the worst of times, it was the age of wisdom.", 21),
]


@pytest.mark.parametrize(("text", "tokens"), COUNTED)
def test_an_estimate_is_rather_over_than_under(text: str, tokens: int):
    assert tokens * 0.95 <= estimate_tokens(text) <= tokens * 3


@given(st.text(max_size=200), st.text(max_size=200))
def test_an_estimate_grows_with_the_text(text: str, more: str):
    assert estimate_tokens("") == 0
    assert estimate_tokens(text + " " + more) >= estimate_tokens(text) - 1
    assert estimate_tokens(text) <= len(text.encode("utf-8", "replace")) + 2 * len(text) + 1


@given(st.text(alphabet="ab C9,\n é漢", max_size=300), st.integers(0, 150))
def test_a_text_is_cut_where_it_no_longer_fits(text: str, room: int):
    kept = fit_to_tokens(text, room)
    assert estimate_tokens(kept) <= room
    if kept != text:
        assert estimate_tokens(text) > room
        assert text.startswith(kept.removesuffix("…"))


def test_tools_and_schema_count_as_part_of_a_prompt():
    bare = prompt_tokens(PROMPT)
    assert prompt_tokens(Prompt(PROMPT.messages, tools=(TOOL,))) > bare
    assert prompt_tokens(Prompt(PROMPT.messages, "schema", SCHEMA)) > bare


# ── while it is written ─────────────────────────────────────────────────────────────────────────────────────────────


def streams(*pieces: str, done: bool = True, **end: Any) -> bytes:
    """A reply as server-sent events."""
    data: list[Any] = [{"model": "m-1", "choices": [{"delta": {"content": piece}}]} for piece in pieces]
    data += (
        [{"choices": [{"delta": {}, "finish_reason": "stop"}]}, {"choices": []} | end] if done else [end] if end else []
    )
    lines = [f"data: {json.dumps(each)}\n\n" for each in data] + (["data: [DONE]\n\n"] if done else [])
    return says(": a comment\r\n\r\n" + "".join(lines), content_type="text/event-stream; charset=utf-8")


async def test_a_reply_is_heard_while_it_is_written_and_is_the_same_as_without(loopback: Loopback):
    loopback.answer = lambda seen, number: streams(
        "Hel", "lo ", "Ω.", usage={"prompt_tokens": 7, "completion_tokens": 3}
    )
    heard: list[str] = []
    reply = await model(loopback).stream(PROMPT, 5, heard.append)
    assert heard[-1] == reply.text == "Hello Ω." and all("Hello Ω.".startswith(each) for each in heard)
    assert (reply.finish, reply.model, reply.usage.tokens_in, reply.usage.tokens_out) == ("stop", "m-1", 7, 3)
    assert loopback.seen[0].json["stream"] is True
    assert loopback.seen[0].json["stream_options"] == {"include_usage": True}


async def test_what_a_stream_took_is_estimated_where_it_does_not_say(loopback: Loopback):
    loopback.answer = lambda seen, number: streams("Hello.")
    reply = await model(loopback).stream(PROMPT, 5, lambda _: None)
    assert reply.usage.tokens_in == prompt_tokens(PROMPT) and reply.usage.tokens_out == estimate_tokens("Hello.")


async def test_thoughts_before_a_streamed_reply_are_not_heard(loopback: Loopback):
    loopback.answer = lambda seen, number: streams("<think>Well", ", well.</think>\n", "Hello.")
    heard: list[str] = []
    reply = await model(loopback).stream(PROMPT, 5, heard.append)
    assert reply.text == "Hello." and set(heard) <= {"", "Hello."}


async def test_an_endpoint_that_ignores_the_wish_to_stream_replies_whole(loopback: Loopback):
    heard: list[str] = []
    assert (await model(loopback).stream(PROMPT, 5, heard.append)).text == "Hello." and heard == []


@pytest.mark.parametrize(
    "broken", [streams("Hel", done=False), streams("Hel", done=False, error={"message": "out of memory"})]
)
async def test_a_stream_that_breaks_off_is_asked_for_again_and_heard_anew(loopback: Loopback, broken: bytes):
    loopback.answer = lambda seen, number: broken if number == 1 else streams("Hi", "!")
    heard: list[str] = []
    assert (await model(loopback).stream(PROMPT, 5, heard.append)).text == "Hi!"
    assert heard[0].startswith("Hel") and heard[-1] == "Hi!"


async def test_a_stream_that_always_breaks_off_is_an_error(loopback: Loopback):
    loopback.answer = lambda seen, number: streams("Hel", done=False)
    with pytest.raises(ModelError, match="it broke off"):
        await model(loopback).stream(PROMPT, 60, lambda _: None)


async def test_what_an_endpoint_refuses_of_streaming_is_left_out_from_then_on(loopback: Loopback):
    def answer(seen: Any, number: int) -> bytes:
        for name in ("stream_options", "stream"):
            if seen.json.get(name):
                return says({"error": {"message": f"Unsupported parameter: {name}", "param": name}}, 400)
        return chats()

    loopback.answer = answer
    llm = model(loopback)
    for _ in range(2):
        assert (await llm.stream(PROMPT, 5, lambda _: None)).text == "Hello."
    assert [seen.json["stream"] for seen in loopback.seen] == [True, True, False, False]
