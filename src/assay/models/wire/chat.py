"""The chat protocol as plain data: builds the body for `/v1/chat/completions` and parses the reply. Pure.

Replies are untrusted: any part may be missing, of the wrong type, or far too long.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from assay.core.types import Usage
from assay.models.llm import Prompt, Reply, ToolCall
from assay.models.cost import estimate_tokens
from assay.models.cost import prompt_tokens
from assay.models.endpoint import Adaptation

MOST_CALLS = 64
MOST_TOKENS = 1_000_000_000  # larger counts are not believed
LONGEST_NAME = 200
THOUGHTS = (("<think>", "</think>"), ("<thinking>", "</thinking>"))


def request_body(prompt: Prompt, model: str, adaptations: frozenset[Adaptation] = frozenset()) -> dict[str, Any]:
    """The request body. `adaptations` is what this endpoint has refused before."""
    limit = "max_completion_tokens" if "max_completion_tokens" in adaptations else "max_tokens"
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": message.role, "content": message.text} for message in prompt.messages],
        limit: prompt.max_tokens,
        "stream": False,
    }
    if "no temperature" not in adaptations:
        body["temperature"] = prompt.temperature
    if prompt.form == "schema" and prompt.schema is not None:
        named = {"name": "reply", "schema": prompt.schema, "strict": is_closed(prompt.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    elif prompt.form != "text":
        body["response_format"] = {"type": "json_object"}
    if prompt.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.about, "parameters": tool.parameters},
            }
            for tool in prompt.tools
        ]
    return body


def is_closed(schema: object) -> bool:
    """Whether every object in a schema lists all its fields and requires them, which `strict` demands."""
    if isinstance(schema, Mapping):
        if schema.get("type") == "object" or "properties" in schema:
            fields = schema.get("properties", {})
            if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(fields):
                return False
        return all(is_closed(each) for each in schema.values())
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        return all(is_closed(each) for each in schema)
    return True


def read_reply(data: object, prompt: Prompt, model: str, seconds: float = 0.0) -> Reply:
    """A reply from an endpoint's JSON. ValueError says what is wrong with it."""
    if not isinstance(data, Mapping):
        raise ValueError("it is no JSON object")
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices:
        raise ValueError("there are no `choices`")
    choice = choices[0]
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(message, Mapping):
        raise ValueError("the first choice has no `message`")
    text = _text(message.get("content")) or _text(message.get("refusal"))
    calls = _calls(message)
    finish = choice.get("finish_reason")
    return Reply(
        text=without_thoughts(text),
        calls=calls,
        finish=clean(finish)[:LONGEST_NAME] if isinstance(finish, str) and finish else _finish(calls),
        usage=_usage(data.get("usage"), prompt, text, calls, seconds),
        model=clean(name)[:LONGEST_NAME] if isinstance(name := data.get("model"), str) and name else model,
    )


def without_thoughts(text: str) -> str:
    """The reply without the reasoning before it. The template may have opened the tag, so a closing tag alone counts too."""
    start = text.lstrip()
    for opens, closes in THOUGHTS:
        if start.startswith(opens):
            return start.partition(closes)[2].lstrip()  # never closed: there is no answer yet
        if closes in start and opens not in start.partition(closes)[0] and not start.startswith(("{", "[")):
            return start.partition(closes)[2].lstrip()
    return text


def usage_or_estimate(reported_in: object, reported_out: object, prompt: Prompt, text: str, seconds: float) -> Usage:
    """The reported usage; missing or implausible counts are estimated."""
    return Usage(
        calls=1,
        tokens_in=_count(reported_in) or prompt_tokens(prompt),
        tokens_out=_count(reported_out) or estimate_tokens(text),
        seconds=seconds,
    )


def as_arguments(value: object) -> str:
    """A call's arguments as JSON, in whichever form the endpoint sent them."""
    if isinstance(value, str):
        return clean(value)
    return "{}" if value is None else clean(_dumped(value))


def _usage(reported: object, prompt: Prompt, text: str, calls: tuple[ToolCall, ...], seconds: float) -> Usage:
    counts: Mapping[str, object] = reported if isinstance(reported, Mapping) else {}
    everything = text + "".join(f" {call.name} {call.arguments}" for call in calls)
    return usage_or_estimate(counts.get("prompt_tokens"), counts.get("completion_tokens"), prompt, everything, seconds)


def _count(value: object) -> int:
    """A token count; 0 if it is not one. No prompt has 0 tokens, so 0 means unknown too."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return 0
    return int(min(value, MOST_TOKENS))


def _calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    listed = message.get("tool_calls")
    if isinstance(listed, Mapping):
        listed = [listed]
    if not listed and isinstance(message.get("function_call"), Mapping):  # the older form, from before tools
        listed = [{"function": message["function_call"]}]
    if not isinstance(listed, list):
        return ()
    found = [each for each in listed if isinstance(each, Mapping) and isinstance(each.get("function"), Mapping)]
    return tuple(_call(place, each) for place, each in enumerate(found[:MOST_CALLS], 1))


def _call(place: int, call: Mapping[str, Any]) -> ToolCall:
    asked, own = call["function"], call.get("id")
    name = asked.get("name")
    return ToolCall(
        id=clean(own)[:LONGEST_NAME] if isinstance(own, str) and own else f"call_{place}",
        name=clean(name)[:LONGEST_NAME] if isinstance(name, str) else "",
        arguments=as_arguments(asked.get("arguments")),
    )


def _finish(calls: tuple[ToolCall, ...]) -> str:
    return "tool_calls" if calls else "stop"


def _text(content: object) -> str:
    """The text of a message: a string, a list of parts of which some are text, or a value in place of a string."""
    if content is None:
        return ""
    if isinstance(content, str):
        return clean(content)
    if isinstance(content, list):
        return "".join(_part(part) for part in content)
    return clean(_dumped(content))


def _part(part: object) -> str:
    if isinstance(part, str):
        return clean(part)
    if isinstance(part, Mapping) and part.get("type", "text") in ("text", "output_text"):
        return clean(text) if isinstance(text := part.get("text"), str) else ""
    return ""  # reasoning or an image


def _dumped(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return ""


def clean(words: str) -> str:
    """Removes lone surrogates: they are legal in JSON, but cannot be stored or shown."""
    return words.encode("utf-8", "replace").decode()
