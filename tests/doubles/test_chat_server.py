"""The chat server as any client sees it: raw HTTP against it."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import httpx

from assay.models.llm import Reply, ToolCall
from doubles import ChatServer, ConnectionAction, HttpReply, ScriptedCalls, calls, role_of
from doubles.local_server import HttpExchange

ASKED = {"messages": [{"role": "system", "content": "Assay · judge\nIs it enough?"}]}
TOOL = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}


QUICK = {"timeout": 60, "verify": False, "trust_env": False}  # no certificates to load, no environment to read


def post(server: ChatServer, **more: Any) -> httpx.Response:
    return httpx.post(f"{server.url}/chat/completions", json=ASKED | more, **QUICK)


def message(response: httpx.Response) -> dict[str, Any]:
    return response.json()["choices"][0]["message"]


def test_a_text_is_said_as_it_is_and_a_dict_as_json():
    replies: list[Any] = ["Good morning.", {"enough": True}]
    with ChatServer(lambda request: replies.pop(0)) as server:
        assert message(post(server)) == {"role": "assistant", "content": "Good morning."}
        assert json.loads(message(post(server))["content"]) == {"enough": True}


def test_calls_are_native_where_tools_are_offered_and_one_json_object_where_not():
    with ChatServer(lambda request: calls("search", query="aspirin") + calls("search", query="fever")) as server:
        native = post(server, tools=[TOOL]).json()["choices"][0]
        plain = json.loads(message(post(server))["content"])
    assert native["finish_reason"] == "tool_calls"
    assert native["message"]["content"] is None
    assert [json.loads(call["function"]["arguments"]) for call in native["message"]["tool_calls"]] == [
        {"query": "aspirin"},
        {"query": "fever"},
    ]
    assert len({call["id"] for call in native["message"]["tool_calls"]}) == 2
    assert [call["tool"] for call in plain["calls"]] == ["search", "search"]
    assert plain["calls"][1]["arguments"] == {"query": "fever"}


def test_no_calls_at_all_are_prose_or_an_empty_list():
    with ChatServer(lambda request: ScriptedCalls((), "seen enough")) as server:
        assert message(post(server, tools=[TOOL])) == {"role": "assistant", "content": "seen enough"}
        assert json.loads(message(post(server))["content"]) == {"why": "seen enough", "calls": []}


def test_a_reply_may_say_how_it_finished_and_what_it_used():
    with ChatServer(lambda request: Reply("half a", finish="length")) as server:
        whole = post(server).json()
    assert whole["choices"][0]["finish_reason"] == "length"
    assert whole["usage"]["prompt_tokens"] > 0
    assert whole["usage"]["total_tokens"] == whole["usage"]["prompt_tokens"] + whole["usage"]["completion_tokens"]


def deltas(response: httpx.Response) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def test_a_streamed_reply_adds_up_to_the_whole_one():
    words = "Aspirin lowers fever in adults, and has done so for more than a hundred years."
    with ChatServer(lambda request: words) as server:
        response = post(server, stream=True, stream_options={"include_usage": True})
    assert response.headers["content-type"] == "text/event-stream"
    *pieces, end, bill = deltas(response)
    assert len(pieces) > 3
    assert "".join(piece["choices"][0]["delta"]["content"] for piece in pieces) == words
    assert end["choices"][0]["finish_reason"] == "stop"
    assert bill["choices"] == [] and bill["usage"]["completion_tokens"] > 0


def test_streamed_calls_come_in_pieces_that_belong_to_their_index():
    reply = Reply("", (ToolCall("a", "search", '{"query": "x"}'), ToolCall("b", "follow", "{}")), "tool_calls")
    with ChatServer(lambda request: reply) as server:
        events = deltas(post(server, stream=True))
    made: dict[int, str] = {}
    names: dict[int, str] = {}
    for event in events:
        for call in event["choices"][0]["delta"].get("tool_calls", ()):
            made[call["index"]] = made.get(call["index"], "") + call["function"]["arguments"]
            names.setdefault(call["index"], call["function"].get("name", ""))
    assert made == {0: '{"query": "x"}', 1: "{}"} and names == {0: "search", 1: "follow"}


def test_a_server_says_which_model_it_has_and_how_long_its_window_is():
    with ChatServer(str, model="tiny", window=4096) as server:
        [model] = httpx.get(f"{server.url}/models", **QUICK).json()["data"]
    assert (model["id"], model["max_model_len"]) == ("tiny", 4096)


def test_what_an_endpoint_lacks_is_refused():
    with ChatServer(lambda request: "{}", lacks=("tools", "schema", "models")) as server:
        assert post(server, tools=[TOOL]).status_code == 400
        assert post(server, response_format={"type": "json_schema", "json_schema": {}}).status_code == 400
        assert post(server, response_format={"type": "json_object"}).status_code == 200
        assert httpx.get(f"{server.url}/models", **QUICK).status_code == 404


def test_every_request_is_kept_with_its_headers_and_counted_by_role():
    with ChatServer(lambda request: "yes") as server:
        post(server)
        httpx.post(
            f"{server.url}/chat/completions", json={"messages": []}, headers={"Authorization": "Bearer k"}, **QUICK
        )
    assert server.requests[0] == ASKED and server.counts == {"judge": 1, "": 1}
    assert server.headers[1]["authorization"] == "Bearer k"


def test_an_answer_that_raises_is_kept_and_the_client_is_told():
    with ChatServer(lambda request: 1 // 0) as server:  # pyright: ignore
        response = post(server)
    assert response.status_code == 418 and "ZeroDivisionError" in response.text
    assert isinstance(server.problems[0], ZeroDivisionError)


def test_what_is_no_chat_request_is_refused_and_not_answered():
    with ChatServer(lambda request: "yes") as server:
        assert httpx.post(f"{server.url}/chat/completions", content=b"{not json", **QUICK).status_code == 400
        assert httpx.post(f"{server.url}/chat/completions", content=b"[]", **QUICK).status_code == 400
        assert httpx.post(f"{server.url}/completions", json={}, **QUICK).status_code == 404
    assert not server.requests


def test_any_response_can_be_sent_in_place_of_a_reply():
    async def curse(exchange: HttpExchange) -> None:
        await exchange.start("text/plain", 3)
        await exchange.write(b"ba")
        await exchange.write(b"h", last=True)

    odd = [HttpReply(503, {"error": "busy"}, headers={"Retry-After": "7"}), ConnectionAction(curse)]
    with ChatServer(lambda request: odd.pop(0)) as server, httpx.Client(**QUICK) as client:
        busy = client.post(f"{server.url}/chat/completions", json=ASKED)
        bah = client.post(f"{server.url}/chat/completions", json=ASKED)
    assert (busy.status_code, busy.headers["retry-after"], busy.json()) == (503, "7", {"error": "busy"})
    assert bah.text == "bah"


def test_a_connection_serves_many_requests():
    with ChatServer(lambda request: "yes") as server, httpx.Client(**QUICK) as client:
        for _ in range(20):
            assert client.post(f"{server.url}/chat/completions", json=ASKED).status_code == 200
        assert server.connections == 1


async def test_two_hundred_connections_are_served_at_once():
    gate = threading.Event()

    async def once_all_are_here(request: dict[str, Any]) -> str:
        while not gate.is_set():
            if server._concurrency == 200:
                gate.set()
            await asyncio.sleep(0.005)
        return "all here"

    raw = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s"
    body = json.dumps(ASKED).encode()

    async def one() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2][:-3]))
        writer.write(raw % (len(body), body))
        said = await reader.readuntil(b"all here")
        writer.close()
        return said

    async with ChatServer(once_all_are_here) as server:
        replies = await asyncio.wait_for(asyncio.gather(*(one() for _ in range(200))), 60)
    assert len(replies) == 200 and server.peak_concurrency == 200


def test_nothing_is_left_after_closing_whatever_is_under_way():
    before = set(threading.enumerate())

    async def never(request: dict[str, Any]) -> str:
        await asyncio.Event().wait()
        return "never"

    with ChatServer(never) as server, httpx.Client(timeout=0.1, verify=False, trust_env=False) as client:
        for _ in range(3):
            try:
                client.post(f"{server.url}/chat/completions", json=ASKED)
            except httpx.TimeoutException:
                continue
    assert set(threading.enumerate()) <= before  # those of other tests may end meanwhile
    server.close()  # closing twice is no mistake


def test_the_role_and_the_prompt_are_read_off_the_first_line():
    def role(first: Any) -> tuple[str, str]:
        return role_of({"messages": [{"role": "system", "content": first}]})

    assert role("Assay · judge · critique\nRead the draft.") == ("judge", "critique")
    assert role("Assay · weigh") == ("weigh", "")
    assert role([{"type": "text", "text": "Assay · plan\n…"}]) == ("plan", "")
    assert role("You are helpful.\nAssay · weigh") == ("", "")
    assert role("") == role_of({}) == ("", "")
