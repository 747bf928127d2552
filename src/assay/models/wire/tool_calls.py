"""What a model wants to do next, read out of its reply: native calls, one JSON object, or what local servers leave in the
text of calls that they did not understand. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from assay.core.events import ModelReplied
from assay.models.wire.json_extract import Unreadable, spoken, value_in

_BLOCK = re.compile(r"<(tool_call|function_call)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_CALL_LIKE = re.compile(r'<(?:tool|function)_call|"(?:calls|tool_calls|tool|function|arguments|parameters)"\s*:')


class Wish(NamedTuple):
    """A call as the model wants it; nothing in it has been checked."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Choice:
    """What to call next, and why. No calls means that nothing is left worth trying."""

    why: str
    calls: tuple[Wish, ...] = ()


def choice_of(consulted: ModelReplied, native: bool) -> Choice:
    """The choice in a reply; `Unreadable` says exactly what is wrong with it.

    native: the model was given tools, so that plain words mean that it calls none
    """
    if consulted.calls:
        return Choice(
            _words(consulted.text),
            tuple(
                _wish({"tool": call.tool, "arguments": call.arguments}, f"calls.{place}")
                for place, call in enumerate(consulted.calls)
            ),
        )
    text = spoken(consulted.text).strip()
    if native and not text:
        raise Unreadable("the reply is empty: call a tool, or say why nothing is worth trying any more")
    if native and text[0] != "{" and not _CALL_LIKE.search(text):
        return Choice(text)
    if blocks := list(_BLOCK.finditer(text)):
        wishes = [wish for block in blocks for wish in _wishes(value_in(block[2]))]
        return Choice(text[: blocks[0].start()].strip(), tuple(wishes))
    value = value_in(text)
    why = value.get("why", "") if isinstance(value, dict) else ""
    if not isinstance(why, str):
        raise Unreadable(f"why: should be a string (given: {_short(why)})")
    return Choice(why.strip(), tuple(_wishes(value)))


def written(consulted: ModelReplied) -> str:
    """A reply as one text, its native calls too."""
    calls = [{"tool": call.tool, "arguments": call.arguments} for call in consulted.calls]
    return "\n".join(part for part in (consulted.text, json.dumps(calls, ensure_ascii=False) if calls else "") if part)


def _words(text: str) -> str:
    try:
        return spoken(text).strip()
    except Unreadable:
        return ""  # thoughts beside calls that are whole


def _wishes(value: Any) -> Iterator[Wish]:
    if isinstance(value, dict) and not any(name in value for name in ("calls", "tool_calls")):
        if not any(name in value for name in ("tool", "name", "function")):
            raise Unreadable(f'calls: is missing (given: {_short(value)}); write {{"why": …, "calls": […]}}')
        value = [value]
    calls = value.get("calls", value.get("tool_calls")) if isinstance(value, dict) else value
    if not isinstance(calls, list):
        raise Unreadable(f"calls: should be a list (given: {_short(calls)})")
    for place, call in enumerate(calls):
        yield _wish(call, f"calls.{place}")


def _wish(call: Any, where: str) -> Wish:
    if isinstance(call, dict) and isinstance(call.get("function"), dict):
        call = call["function"]
    if not isinstance(call, dict):
        raise Unreadable(f"{where}: should be an object (given: {_short(call)})")
    tool = next((call[name] for name in ("tool", "name", "function") if name in call), None)
    if not isinstance(tool, str) or not tool:
        raise Unreadable(f"{where}.tool: should be the name of a tool (given: {_short(tool)})")
    arguments = next((call[name] for name in ("arguments", "parameters", "args") if name in call), {})
    if isinstance(arguments, str):
        try:
            arguments = value_in(arguments) if arguments.strip() else {}
        except Unreadable as error:
            raise Unreadable(f"{where}.arguments of {tool}: {error}") from None
    if not isinstance(arguments, dict):
        raise Unreadable(f"{where}.arguments of {tool}: should be an object (given: {_short(arguments)})")
    return Wish(tool, arguments)


def _short(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 60 else shown[:60] + "…"
