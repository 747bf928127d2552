"""What an endpoint can do: told from what it only accepts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from loopback import Loopback, Naps, chats, hangs, says

from assay.core.codec import from_json, to_json
from assay.core.errors import ModelError
from assay.models.capability import (
    Capability,
    calls_tools,
    describe_capability,
    follows_json_mode,
    follows_schema,
    probe,
    sees,
)
from assay.models.endpoint import ChatEndpoint
from assay.models.llm import Prompt, Reply, ToolCall

CALL = {"id": "c", "function": {"name": "look_up", "arguments": '{"word": "heron"}'}}


def kind_of(body: dict[str, Any]) -> str:
    form = body.get("response_format", {}).get("type", "")
    return "tools" if "tools" in body else {"json_schema": "schema", "json_object": "json"}.get(form, "plain")


ABLE = {
    "schema": chats('{"shade": "teal"}'),
    "json": chats('{"greeting": "hello, wide sea"}'),
    "tools": chats(None, tool_calls=[CALL]),
    "plain": chats("Yes."),
}


def endpoint(loopback: Loopback, **said: Any) -> ChatEndpoint:
    """An endpoint that can do everything, but for what is said."""
    answers = {**ABLE, "models": says({"data": [{"id": "m", "max_model_len": 32768}]}), **said}
    loopback.answer = lambda seen, n: answers["models" if seen.method == "GET" else kind_of(seen.json)]
    return ChatEndpoint(loopback.url, "m", sleep=Naps())


async def test_an_endpoint_that_can_do_everything_is_asked_three_times_and_for_its_window(loopback: Loopback):
    assert await probe(endpoint(loopback), 20) == Capability(tools=True, schema=True, json=True, window=32768)
    assert [kind_of(seen.json) for seen in loopback.seen if seen.method == "POST"] == ["schema", "json", "tools"]
    assert all(seen.json["max_tokens"] <= 60 for seen in loopback.seen if seen.method == "POST")


CANNOT: list[tuple[str, bytes]] = [
    ("schema", chats("Yes")),
    ("schema", chats('{"answer": "yes"}')),
    ("schema", chats('{"shade": "white"}')),
    ("schema", chats('```json\n{"shade": "teal"}\n```')),
    ("schema", says({"error": {"message": "response_format json_schema is not supported"}}, 400)),
    ("json", chats("Hello, wide sea!")),
    ("json", chats('```json\n{"greeting": "hello"}\n```')),
    ("json", chats('["hello"]')),
    ("json", says({"error": "'response_format.type' must be 'json_schema' or 'text'"}, 400)),
    ("tools", chats('{"name": "look_up", "arguments": {"word": "heron"}}')),
    ("tools", chats("A heron is a bird.")),
    ("tools", chats(None, tool_calls=[{"function": {"name": "look_up", "arguments": "heron"}}])),
    ("tools", chats(None, tool_calls=[{"function": {"name": "search", "arguments": '{"word": "heron"}'}}])),
    ("tools", says({"error": {"message": "tools param requires --jinja flag"}}, 500)),
    ("tools", says({"error": {"message": '"auto" tool choice requires --enable-auto-tool-choice'}}, 400)),
]


@pytest.mark.parametrize(("kind", "said"), CANNOT)
async def test_what_is_accepted_or_refused_but_not_obeyed_does_not_count(loopback: Loopback, kind: str, said: bytes):
    found = await probe(endpoint(loopback, **{kind: said}), 20)
    assert to_json(found) == {
        "tools": kind != "tools",
        "schema": kind != "schema",
        "json": kind != "json",
        "window": 32768,
        "note": found.note,
        "sure": True,
    }


async def test_a_refusal_is_told_from_an_endpoint_that_is_out_of_order(loopback: Loopback):
    found = await probe(endpoint(loopback, tools=says("no such thing", 400)), 20)
    assert "tool calls: The chat endpoint" in found.note
    with pytest.raises(ModelError, match="wants a key"):
        await probe(endpoint(loopback, **dict.fromkeys(ABLE, says("who are you", 401))), 20)


@pytest.mark.long
@pytest.mark.parametrize("said", [hangs, says("x", 503)])
async def test_an_endpoint_that_nobody_answers_at_is_an_error_within_the_time(loopback: Loopback, said: Any):
    asked = endpoint(loopback, **dict.fromkeys(ABLE, said))
    asked.sleep = asked._client.sleep = asyncio.sleep
    began = asyncio.get_running_loop().time()
    with pytest.raises(ModelError):
        await probe(asked, 1.2)
    assert asyncio.get_running_loop().time() - began < 1.9


async def test_one_ability_that_hangs_does_not_hide_the_others(loopback: Loopback):
    found = await probe(endpoint(loopback, tools=hangs), 1.5)
    assert (found.tools, found.schema, found.json, found.sure) == (False, True, True, False)
    assert "asked again the next time" in " ".join(describe_capability(found))


async def test_a_window_that_nobody_tells_is_assumed_and_said_to_be(loopback: Loopback):
    found = await probe(endpoint(loopback, models=says("no", 404)), 20)
    assert found.window == 8192
    assert "8192 tokens are assumed" in found.note
    assert describe_capability(found)[-1].startswith("Note: ")


async def test_a_model_that_thinks_first_gets_the_room_for_it(loopback: Loopback):
    thinking = says({"choices": [{"message": {"content": None, "reasoning": "hm"}, "finish_reason": "length"}]})
    asked = endpoint(loopback)
    quick = loopback.answer
    loopback.answer = lambda seen, n: (
        thinking if seen.method == "POST" and seen.json["max_tokens"] < 100 else quick(seen, n)
    )
    found = await probe(asked, 20)
    assert (found.tools, found.schema, found.json) == (True, True, True)


class Bare:
    """A model that cannot say how much it reads."""

    name = "bare"

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        return Reply("Yes.")


async def test_any_model_can_be_probed():
    found = await probe(Bare(), 5)
    assert (found.tools, found.schema, found.json, found.window) == (False, False, False, 8192)


@pytest.mark.parametrize(
    ("check", "reply", "kept"),
    [
        (follows_json_mode, Reply('{"greeting": "hel', finish="length"), True),
        (follows_json_mode, Reply('{"greeting": "hel', finish="stop"), False),
        (follows_json_mode, Reply("[" * 100_000), False),
        (follows_schema, Reply('{"shade": "teal", "more": 1}'), False),
        (follows_schema, Reply('{"shade": ["teal"]}'), False),
        (calls_tools, Reply("", (ToolCall("1", "look_up", "[]"),)), False),
        (calls_tools, Reply("", (ToolCall("1", "other", "{}"), ToolCall("2", "look_up", '{"word": "heron"}'))), True),
    ],
)
def test_only_a_reply_that_could_not_have_come_otherwise_counts(
    check: Callable[[Reply], bool], reply: Reply, kept: bool
):
    assert check(reply) is kept


def test_what_was_found_can_be_remembered():
    found = Capability(False, True, False, 4096, "n")
    assert from_json(Capability, to_json(found)) == found


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Capability(True, True, True, 100_000), ("Tool calls: yes", "JSON schema: yes", "100000 tokens")),
        (Capability(False, True, True, 8192), ("constrained by a schema", "JSON schema: yes", "8192")),
        (Capability(False, False, True, 8192), ("read out of what it writes", "JSON mode: yes", "8192")),
        (Capability(False, False, False, 8192), ("read out of what it writes", "JSON mode: no", "8192")),
    ],
)
def test_what_was_found_is_said_with_what_it_means(found: Capability, said: tuple[str, ...]):
    lines = describe_capability(found)
    assert len(lines) == 3
    assert all(words in line for words, line in zip(said, lines, strict=True))


@pytest.mark.parametrize(
    ("said", "sees_them"),
    [
        (chats("From top to bottom: green, red, yellow and blue."), True),
        (chats("Green\nRed\nYellow\nBlue"), True),
        (chats("Red, green, yellow, blue"), False),
        (chats("I cannot see pictures."), False),
        (chats("green"), False),
        (says({"error": {"message": "this model does not support image input"}}, 400), False),
    ],
)
async def test_only_a_model_that_names_the_stripes_sees_pictures(loopback: Loopback, said: bytes, sees_them: bool):
    def answer(seen: Any, n: int) -> bytes:
        return said if isinstance(seen.json["messages"][0]["content"], list) else chats("Yes.")

    loopback.answer = answer
    assert await sees(ChatEndpoint(loopback.url, "m", sleep=Naps()), 20) is sees_them
    parts = loopback.seen[0].json["messages"][0]["content"]
    assert [part["type"] for part in parts] == ["text", "text", "image_url", "text"]
    assert parts[2]["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
