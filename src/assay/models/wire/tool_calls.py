"""Parses tool calls from a model's reply: native calls, one JSON object, or the raw call syntax that local servers leave in the
text. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from assay.core.events import ModelReplied
from assay.models.replies import UnreadableReply
from assay.models.replies import extract_json
from assay.models.replies import strip_thoughts

_BLOCK = re.compile(r"<(tool_call|function_call)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_CALL_LIKE = re.compile(r'<(?:tool|function)_call|"(?:calls|tool_calls|tool|function|arguments|parameters)"\s*:')


class RequestedCall(NamedTuple):
    """A call as the model wrote it; nothing in it has been checked."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """The calls to make, and the reason. No calls means that nothing is left worth trying."""

    why: str
    calls: tuple[RequestedCall, ...] = ()


def parse_choice(consulted: ModelReplied, native: bool) -> ToolChoice:
    """The choice in a reply; `UnreadableReply` says exactly what is wrong with it.

    native: the model was given tools, so plain text means that it calls none
    """
    if consulted.calls:
        return ToolChoice(
            _words(consulted.text),
            tuple(
                _requested_call({"tool": call.tool, "arguments": call.arguments}, f"calls.{place}")
                for place, call in enumerate(consulted.calls)
            ),
        )
    text = strip_thoughts(consulted.text).strip()
    if native and not text:
        raise UnreadableReply("the reply is empty: call a tool, or say why nothing is worth trying any more")
    if native and text[0] != "{" and not _CALL_LIKE.search(text):
        return ToolChoice(text)
    if blocks := list(_BLOCK.finditer(text)):
        calls = [requested for block in blocks for requested in _requested_calls(extract_json(block[2]))]
        return ToolChoice(text[: blocks[0].start()].strip(), tuple(calls))
    value = extract_json(text)
    why = value.get("why", "") if isinstance(value, dict) else ""
    if not isinstance(why, str):
        raise UnreadableReply(f"why: should be a string (given: {_short(why)})")
    return ToolChoice(why.strip(), tuple(_requested_calls(value)))


def reply_text(consulted: ModelReplied) -> str:
    """A reply as one text, including its native calls."""
    calls = [{"tool": call.tool, "arguments": call.arguments} for call in consulted.calls]
    return "\n".join(part for part in (consulted.text, json.dumps(calls, ensure_ascii=False) if calls else "") if part)


def _words(text: str) -> str:
    try:
        return strip_thoughts(text).strip()
    except UnreadableReply:
        return ""  # reasoning beside complete calls


def _requested_calls(value: Any) -> Iterator[RequestedCall]:
    if isinstance(value, dict) and not any(name in value for name in ("calls", "tool_calls")):
        if not any(name in value for name in ("tool", "name", "function")):
            raise UnreadableReply(f'calls: is missing (given: {_short(value)}); write {{"why": …, "calls": […]}}')
        value = [value]
    calls = value.get("calls", value.get("tool_calls")) if isinstance(value, dict) else value
    if not isinstance(calls, list):
        raise UnreadableReply(f"calls: should be a list (given: {_short(calls)})")
    for place, call in enumerate(calls):
        yield _requested_call(call, f"calls.{place}")


def _requested_call(call: Any, where: str) -> RequestedCall:
    if isinstance(call, dict) and isinstance(call.get("function"), dict):
        call = call["function"]
    if not isinstance(call, dict):
        raise UnreadableReply(f"{where}: should be an object (given: {_short(call)})")
    tool = next((call[name] for name in ("tool", "name", "function") if name in call), None)
    if not isinstance(tool, str) or not tool:
        raise UnreadableReply(f"{where}.tool: should be the name of a tool (given: {_short(tool)})")
    arguments = next((call[name] for name in ("arguments", "parameters", "args") if name in call), {})
    if isinstance(arguments, str):
        try:
            arguments = extract_json(arguments) if arguments.strip() else {}
        except UnreadableReply as error:
            raise UnreadableReply(f"{where}.arguments of {tool}: {error}") from None
    if not isinstance(arguments, dict):
        raise UnreadableReply(f"{where}.arguments of {tool}: should be an object (given: {_short(arguments)})")
    return RequestedCall(tool, arguments)


def _short(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 60 else shown[:60] + "…"
