"""Spans of runs: by the conventions, from the record, to a collector on the loopback; and never with content."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from doubles import ChatServer, Script, enough, keeps, lookup, supported, writes
from notes import filled, opened
from post_server import PostServer, as_json, post_server

from assay.core.codec import dumps
from assay.core.events import Asked, Call, Decided, Failed, Mode, ModelReplied, ToolRan
from assay.core.run import Run
from assay.core.types import Usage
from assay.governance.spans import build_spans, to_otlp, traces_url

TALL = "The tower of the lighthouse at Carrow Point is 31 metres tall."
QUESTION = "How tall is the tower at Carrow Point?"


def collector(status: int = 200) -> AbstractContextManager[PostServer]:
    """Something that takes spans."""
    return post_server(lambda body, n: as_json({}, status))


def told(span: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


async def test_a_run_arrives_as_spans_and_nothing_that_was_asked_found_or_said_is_in_them(tmp_path: Path):
    script = Script(
        route=lookup(), weigh=keeps(TALL), judge=enough(), write=writes("It is 31 metres tall [{31 metres}]."),
        check=supported(),
    )  # fmt: skip
    await filled(tmp_path / "w", {"tower": f"{TALL} It leans a little."})
    with (
        collector() as spans,
        ChatServer(script.answer) as server,
        opened(tmp_path / "w", server, otel_endpoint=spans.url) as workspace,
    ):
        run = [run async for run, _ in workspace.ask(QUESTION, mode=Mode.quick)][-1]
    (path,), (body,) = spans.paths, spans.bodies
    assert path == "/v1/traces" and run.delivered
    (found,) = body["resourceSpans"]
    assert told(found["resource"])["service.name"] == "assay"
    made = found["scopeSpans"][0]["spans"]
    agent, *below = made
    assert agent["name"] == "invoke_agent assay" and "parentSpanId" not in agent
    assert told(agent)["gen_ai.operation.name"] == "invoke_agent" and told(agent)["assay.outcome"] == "answered"
    assert {span["parentSpanId"] for span in below} == {agent["spanId"]}
    assert {span["traceId"] for span in made} == {agent["traceId"]} and len({span["spanId"] for span in made}) == len(
        made
    )
    chats = [span for span in below if span["name"].startswith("chat ")]
    assert len(chats) == run.usage.calls and {told(span)["gen_ai.request.model"] for span in chats} == {"scripted"}
    assert sum(int(told(span)["gen_ai.usage.input_tokens"]) for span in chats) == run.usage.tokens_in
    tools = [span for span in below if span["name"].startswith("execute_tool ")]
    assert [told(span)["gen_ai.tool.name"] for span in tools] == ["search"] and len(tools) == len(run.results)
    assert all(int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) for span in made)
    words = dumps(body).lower()
    for content in ("tower", "carrow", "31 metres", "leans", "local"):
        assert content not in words, content


@pytest.mark.long
@pytest.mark.parametrize("away", ["http://127.0.0.1:1", "nonsense", "refuses"])
async def test_a_collector_that_is_away_or_refuses_disturbs_no_run(tmp_path: Path, away: str):
    await filled(tmp_path / "w", {"tower": TALL})
    with (
        collector(503) as refusing,
        opened(tmp_path / "w", otel_endpoint=refusing.url if away == "refuses" else away) as workspace,
    ):
        run = [run async for run, _ in workspace.ask(QUESTION, mode=Mode.quick)][-1]
    assert run.delivered


def test_a_tool_whose_name_a_model_made_up_is_not_named_and_an_error_is_told_without_its_words():
    events = (
        Asked("Secret?", "somebody", "2026-01-01"),
        ModelReplied("decide", "decide", "m", "r", "secret", finish="secret", usage=Usage(1, 5, 6, 0.0, 2.0)),
        Decided((Call("c1", "tell_secret", {"query": "secret"}),), "secret"),
        ToolRan("c1", (), error="There is no secret."),
        Failed("ModelError", "secret"),
    )
    times = [f"2026-01-01T00:00:0{n}.000Z" for n in range(5)]
    made = build_spans(Run("r1", events), times)
    assert [span.name for span in made] == ["invoke_agent assay", "chat m", "execute_tool other"]
    assert [span.error for span in made] == ["ModelError", "", "tool_error"]
    assert (made[1].ended - made[1].begun) / 1e9 == 2.0 and (made[2].ended - made[2].begun) / 1e9 == 1.0
    assert "secret" not in dumps(to_otlp(made, "1")).lower() and "somebody" not in dumps(to_otlp(made, "1"))


def test_what_is_carried_on_later_is_of_the_same_trace_and_told_once():
    events = (
        Asked("What?", "me", "2026-01-01"),
        ModelReplied("route", "route", "m", "r", ""),
        Failed("ModelError", "gone"),
        ModelReplied("write", "write", "m", "s", ""),
    )
    times = [f"2026-01-01T00:00:0{n}.000Z" for n in range(4)]
    first, later = build_spans(Run("r1", events[:3]), times, 1), build_spans(Run("r1", events), times, 3)
    assert {span.trace for span in (*first, *later)} == {first[0].trace}
    assert not {span.id for span in first} & {span.id for span in later}
    assert [len(first), len(later)] == [2, 2]


def test_the_path_of_the_protocol_is_put_behind_the_address_once():
    assert traces_url("http://c:4318") == traces_url("http://c:4318/") == traces_url("http://c:4318/v1/traces")
