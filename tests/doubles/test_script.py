"""A script is followed to the letter, in process and over HTTP alike."""

from __future__ import annotations

import json

import httpx
import pytest

from assay.models.capability import probe
from assay.models.llm import LLM, Message, Prompt, ToolSpec
from assay.prompts import fence
from doubles import ChatServer, Script, UnexpectedRequest, calls, keys_in, no_calls, passages_in

SEARCH = ToolSpec("search", "finds things", {"type": "object", "properties": {"query": {"type": "string"}}})


def prompt(first: str, *, schema: dict | None = None, tools: tuple[ToolSpec, ...] = (), user: str = "") -> Prompt:
    form = "schema" if schema else "text"
    return Prompt((Message("system", first), Message("user", user)), form, schema, tools)


async def ask(model: LLM, first: str, **more) -> str:
    return (await model.complete(prompt(first, **more), 1)).text


async def test_a_list_is_used_up_in_order_and_a_single_reply_is_repeated():
    script = Script(plan=["one", "two"], judge={"enough": True})
    assert [await ask(script, "Assay · plan") for _ in range(2)] == ["one", "two"]
    assert [json.loads(await ask(script, "Assay · judge")) for _ in range(2)] == [{"enough": True}] * 2
    script.assert_used_up()


async def test_a_prompt_with_a_reply_of_its_own_gets_it_and_its_role_answers_otherwise():
    script = Script(judge="of the role", critique="of the prompt")
    assert await ask(script, "Assay · judge · critique") == "of the prompt"
    assert await ask(script, "Assay · judge · sufficiency") == "of the role"


async def test_an_unexpected_request_fails_at_once_and_again_at_the_end():
    script = Script(plan=["only once"])
    await ask(script, "Assay · plan")
    for first, words in [("Assay · plan", "more than the script has"), ("Assay · weigh", "no reply for weigh")]:
        with pytest.raises(UnexpectedRequest, match=words):
            await ask(script, first)
    with pytest.raises(AssertionError, match=r"for plan; .* for weigh"):
        script.assert_used_up()


async def test_an_endpoint_that_is_asked_what_it_can_do_can_do_it_all_and_the_script_is_not_touched():
    script = Script(plan=["one"])
    found = await probe(script, 5)
    assert (found.tools, found.schema, found.json) == (True, True, True)
    assert not script.problems and not script.used


async def test_a_reply_that_nobody_asked_for_fails():
    script = Script(plan=["one", "two"], judge="yes", weigh=lambda text, schema: "whenever it is needed")
    await ask(script, "Assay · plan")
    with pytest.raises(AssertionError, match="1 of the replies for plan not used; the reply for judge not used"):
        script.assert_used_up()


async def test_a_function_writes_its_reply_from_the_words_and_the_schema_of_the_request():
    script = Script(write=lambda text, schema: {"cites": keys_in(text), "title": (schema or {}).get("title")})
    shown = fence("m", "key: 1a2b3c4d, from 'A'", "Aspirin.") + fence("m", "key: 00ff00ff, from 'B'", "Fever.")
    reply = await ask(script, "Assay · write", schema={"title": "Draft", "type": "object"}, user=shown)
    assert json.loads(reply) == {"cites": ["1a2b3c4d", "00ff00ff"], "title": "Draft"}


async def test_calls_are_native_where_tools_are_offered():
    script = Script(decide=[calls("search", query="x"), calls("search", query="y"), no_calls("enough seen")])
    native = await script.complete(prompt("Assay · decide", tools=(SEARCH,)), 1)
    assert [(call.name, json.loads(call.arguments)) for call in native.calls] == [("search", {"query": "x"})]
    assert native.finish == "tool_calls"
    assert json.loads(await ask(script, "Assay · decide"))["calls"] == [{"tool": "search", "arguments": {"query": "y"}}]
    last = await script.complete(prompt("Assay · decide", tools=(SEARCH,)), 1)
    assert (last.text, last.calls) == ("enough seen", ())


async def test_tokens_are_counted_so_that_budgets_can_be_tested():
    usage = (await Script(plan="x" * 400).complete(prompt("Assay · plan", user="y" * 4000), 1)).usage
    assert usage.calls == 1 and 1000 <= usage.tokens_in <= 1010 and 100 <= usage.tokens_out <= 110


def test_over_http_a_script_says_the_same_and_an_unexpected_request_is_no_invitation_to_try_again():
    script = Script(plan=["one"])
    asked = {"messages": [{"role": "system", "content": "Assay · plan"}]}
    with ChatServer(script.answer) as server:
        said = httpx.post(f"{server.url}/chat/completions", json=asked)
        unexpected = httpx.post(f"{server.url}/chat/completions", json=asked)
    assert said.json()["choices"][0]["message"]["content"] == "one"
    assert unexpected.status_code == 418 and "one request more" in unexpected.text
    assert len(script.problems) == 1


def test_passages_are_read_out_of_their_fences_by_the_name_they_are_shown_under():
    shown = fence("a1b2", "P1, from 'Title' Heading", "Two\nlines.") + "\n" + fence("a1b2", "key: 1a2b3c4d", "One.")
    assert passages_in(f"Question: ?\n{shown}\nWell?") == {"P1": "Two\nlines.", "1a2b3c4d": "One."}
