"""The record of a run as spans, by OpenTelemetry's conventions for generative AI, sent to the configured collector. They
contain figures and the names of models and tools only, never what was asked, found or answered."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from assay import __version__
from assay.agent.toolbox import RULE_TOOLS
from assay.core.codec import digest
from assay.core.events import Asked, Decided, Event, Failed, ModelReplied, ToolRan
from assay.core.run import Run
from assay.core.types import Usage
from assay.store.runs import figures

if TYPE_CHECKING:
    from assay.core.run import Run
    from assay.core.settings import Settings
    from assay.store.database import Store

INTERNAL, CLIENT = 1, 3  # kinds of spans, as numbered by the protocol
AGENT, OTHER = "assay", "other"
Value = str | int | float | bool | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """`begun` and `ended` are in nanoseconds. `error` is the kind of an error, never its message."""

    trace: str
    id: str
    parent: str
    name: str
    kind: int
    begun: int
    ended: int
    attributes: Mapping[str, Value] = field(default_factory=dict)
    error: str = ""


def build_spans(run: Run, times: Sequence[str], since: int = 0) -> tuple[Span, ...]:
    """The spans of a run from record `since` on: one for the agent, and below it one for each model request and each
    tool call. A resumed run gets another agent span in the same trace. `times` are those of the records."""
    trace = digest(f"trace {run.id}")[:32]
    root = _id(run.id, f"agent {since}")
    done = tuple(_steps(run, [_nanos(at) for at in times], since, trace, root))
    return (_agent(run, times, since, trace, root), *done)


def _agent(run: Run, times: Sequence[str], since: int, trace: str, root: str) -> Span:
    asked, own = run.asked, run.events[since:]
    usage = sum((event.usage for event in own if isinstance(event, ModelReplied)), Usage())
    failed = own[-1] if own and isinstance(own[-1], Failed) else None
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": AGENT,
        "gen_ai.agent.name": AGENT,
        "gen_ai.agent.id": run.id,
        "gen_ai.usage.input_tokens": usage.tokens_in,
        "gen_ai.usage.output_tokens": usage.tokens_out,
        "assay.mode": asked.mode.value,
        "assay.route": run.route.value if run.route else "",
        "assay.rounds": run.rounds,
        "assay.outcome": run.answer.outcome.value if run.answer else "held" if run.held else "",
        "assay.stopped": run.stopped.reason.value if run.stopped else "",
    }
    if asked.thread:
        attributes["gen_ai.conversation.id"] = asked.thread
    if asked.seats:
        attributes["gen_ai.request.model"] = asked.seats[0].model
    begun, ended = _nanos(times[max(since - 1, 0)] if since else times[0]), _nanos(times[len(run.events) - 1])
    return Span(
        trace, root, "", f"invoke_agent {AGENT}", INTERNAL, begun, ended, attributes, failed.error if failed else ""
    )


def _steps(run: Run, times: Sequence[int], since: int, trace: str, root: str) -> Iterator[Span]:
    # A model may write any tool name, including text of a document, so only known tools are named.
    tools = {
        call.id: call.tool if call.tool in RULE_TOOLS else OTHER
        for event in run.events
        if isinstance(event, Decided)
        for call in event.calls
    }
    for place in range(max(since, 1), len(run.events)):
        event, at = run.events[place], times[place]
        own = _id(run.id, str(place))
        if isinstance(event, ModelReplied):
            yield _chat(event, at, trace, own, root)
        elif isinstance(event, ToolRan):
            begun = times[_decided(run.events, place)]
            yield _called(event, tools.get(event.call, OTHER), begun, at, trace, own, root)


def _chat(event: ModelReplied, at: int, trace: str, own: str, root: str) -> Span:
    provider, _, model = event.model.rpartition(":")
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider or "openai",  # the protocol in use
        "gen_ai.request.model": model,
        "gen_ai.usage.input_tokens": event.usage.tokens_in,
        "gen_ai.usage.output_tokens": event.usage.tokens_out,
        "gen_ai.response.finish_reasons": (event.finish if event.finish in FINISHED else "other",),
        "assay.role": event.role,
        "assay.prompt": event.prompt,
    }
    return Span(trace, own, root, f"chat {model}", CLIENT, at - int(event.usage.seconds * 1e9), at, attributes)


FINISHED = frozenset({"stop", "length", "tool_calls", "content_filter"})  # an endpoint may return anything else


def _called(event: ToolRan, tool: str, begun: int, at: int, trace: str, own: str, root: str) -> Span:
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": event.call,
        "assay.found": len(event.found),
    }
    error = "tool_error" if event.error else ""
    return Span(trace, own, root, f"execute_tool {tool}", INTERNAL, min(begun, at), at, attributes, error)


def _decided(events: Sequence[Event], place: int) -> int:
    """The record at which a call began: the decision to make it."""
    return next((at for at in range(place - 1, 0, -1) if isinstance(events[at], Decided | Asked)), 0)


def _id(run: str, of: str) -> str:
    return digest(f"span {run} {of}")[:16]


def _nanos(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1000) * 1_000_000


def to_otlp(made: Sequence[Span], version: str) -> dict[str, object]:
    """The spans as OTLP in JSON, which every collector accepts beside protobuf."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes({"service.name": AGENT, "service.version": version})},
                "scopeSpans": [
                    {"scope": {"name": AGENT, "version": version}, "spans": [_plain(each) for each in made]}
                ],
            }
        ]
    }


def _plain(span: Span) -> dict[str, object]:
    attributes = {name: value for name, value in span.attributes.items() if value != ""}
    return {
        "traceId": span.trace,
        "spanId": span.id,
        **({"parentSpanId": span.parent} if span.parent else {}),
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.begun),
        "endTimeUnixNano": str(span.ended),
        "attributes": _attributes({**attributes, **({"error.type": span.error} if span.error else {})}),
        "status": {"code": 2} if span.error else {},
    }


def _attributes(attributes: Mapping[str, Value]) -> list[dict[str, object]]:
    return [{"key": name, "value": _value(value)} for name, value in attributes.items()]


def _value(value: Value) -> dict[str, object]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case tuple():
            return {"arrayValue": {"values": [{"stringValue": each} for each in value]}}
        case _:
            return {"stringValue": value}


log = logging.getLogger("assay.tracing")

PATH = "/v1/traces"
PATIENCE = 3.0  # timeout in seconds


def traces_url(endpoint: str) -> str:
    """The configured address with the path that the protocol defines."""
    return endpoint if endpoint.rstrip("/").endswith(PATH) else f"{endpoint.rstrip('/')}{PATH}"


async def export_spans(store: Store, settings: Settings, run: Run, since: int) -> bool:
    """Send the spans of a run from record `since` on. Returns whether they arrived."""
    if not settings.otel_endpoint or len(run.events) <= since:
        return False
    try:
        import ssl

        import httpx

        times = figures.record_times(store, run.id)
        body = to_otlp(build_spans(run, times, since), __version__)
        trusted = ssl.create_default_context(cafile=settings.ca_bundle or None)
        async with httpx.AsyncClient(timeout=PATIENCE, verify=trusted, proxy=settings.proxy or None) as client:
            reply = await client.post(traces_url(settings.otel_endpoint), json=body)
        if reply.status_code >= 300:
            log.warning("the collector did not take the spans of run %s: %s", run.id, reply.status_code)
        return reply.status_code < 300
    except Exception as error:  # an unreachable or misconfigured collector must not affect the run
        log.warning("the spans of run %s did not arrive: %s", run.id, type(error).__name__)
        return False
