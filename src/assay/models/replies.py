"""The form of a model's reply: the JSON schema or the description that asks for it, the JSON in its text, and its tool calls.

JSON may be in a code fence, amid prose, after reasoning. It is found leniently, parsed strictly, never repaired: only text
that is too long is cut. Failures become one error that the model can act on.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from assay.core.events import ModelReplied
from assay.models.llm import ToolSpec

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

T = TypeVar("T", bound="BaseModel")

LARGEST = 1_000_000  # characters of a reply
DEEPEST = 50
DIGITS = 30
TRIES = 20  # braces that are tried as the start of an object
ERRORS = 8  # reported at once; the model can fix the rest on the next attempt

_TOKEN = re.compile(r'"(?:[^"\\]+|\\.)*"?|[{}\[\]]', re.DOTALL)
_FENCE = re.compile(r"```[a-zA-Z]*[ \t]*\r?\n\s*(?=[{\[])")
_THOUGHTS = re.compile(r"\s*<(think|thinking|reasoning)>", re.IGNORECASE)


class UnreadableReply(ValueError):
    """The model's text is not what was asked for; the message says exactly why."""


def read(kind: type[T], text: str) -> T:
    """The value of type `kind` in a text. Raises `UnreadableReply`."""
    return fit(kind, extract_json(text))


def fit(kind: type[T], value: Any) -> T:
    """The value as this type, validated strictly; `UnreadableReply` has one line per error."""
    from pydantic import ValidationError

    try:
        # Via JSON, where strict validation still accepts a list for a tuple and a string for an enum.
        schema = type_schema(kind)
        return kind.model_validate_json(json.dumps(_cut(value, schema, schema.get("$defs", {}))), strict=True)
    except ValidationError as error:
        raise UnreadableReply("\n".join(_lines(error))) from None


def extract_json(text: str) -> Any:
    """The first JSON object in a text, or the whole text if it is JSON."""
    if len(text) > LARGEST:
        raise UnreadableReply(f"the reply has {len(text):,} characters; {LARGEST:,} is the most that is read")
    begin = _after_thoughts(text)
    if not text[begin:].strip():
        raise UnreadableReply("the reply is empty")
    first: UnreadableReply | None = None
    for start in _starts(text, begin):
        try:
            return _parsed(text, start)
        except UnreadableReply as error:
            first = first or error
    raise first or UnreadableReply("there is no JSON object in the reply")


def strip_thoughts(text: str) -> str:
    """A reply without the reasoning before it."""
    return text[_after_thoughts(text) :]


def _after_thoughts(text: str) -> int:
    """Offset at which the reply begins after the model's reasoning."""
    opened = _THOUGHTS.match(text)
    if not opened and text.lstrip()[:1] in ("{", "["):
        return 0  # a tag inside an object is part of its text
    end = text.find(f"</{opened[1] if opened else 'think'}>")
    if opened and end < 0:
        raise UnreadableReply("the reply was cut off before the thoughts ended")
    return text.index(">", end) + 1 if end >= 0 else 0


def _starts(text: str, begin: int) -> Iterator[int]:
    """Offsets at which an object may begin: the whole text, code fences, then each brace. Braces inside a broken or truncated
    object are skipped.
    """
    whole = len(text) - len(text[begin:].lstrip())
    if text[whole] in "{[" and _opens(text, whole):
        yield whole
        if text[whole] == "[" or _end_of(text, whole) is None:
            return
    for fenced in list(_FENCE.finditer(text, begin))[:TRIES]:
        yield fenced.end()
    at = begin
    for _ in range(TRIES):
        start = text.find("{", at)
        if start < 0:
            return
        yield start
        end = _end_of(text, start)
        if end is None and _opens(text, start):
            return
        at = end if end is not None and _opens(text, start) else start + 1


def _opens(text: str, start: int) -> bool:
    """Whether a brace opens an object, rather than an aside in prose."""
    return bool(re.compile(r'\{\s*["}]|\[\s*[{\[\]"]').match(text, start))


def _end_of(text: str, start: int) -> int | None:
    """The offset at which the bracket opened at `start` is closed; None if it is not."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if token[0] in "{[":
            depth += 1
        elif token[0] in "}]":
            depth -= 1
        if depth > DEEPEST:
            raise UnreadableReply(f"{_place(text, token.start())}: nested more than {DEEPEST} levels deep")
        if depth == 0:
            return token.end()
    return None


def _parsed(text: str, start: int) -> Any:
    if _end_of(text, start) is None:
        raise UnreadableReply(f"the JSON that begins at {_place(text, start)} is cut off: it is never closed")
    decoder = json.JSONDecoder(
        object_pairs_hook=_once_each, parse_constant=_no_number, parse_float=_finite, parse_int=_short
    )
    try:
        value, _ = decoder.raw_decode(text, start)
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate such as `\ud83d` cannot be encoded
    except UnreadableReply:
        raise
    except json.JSONDecodeError as error:
        near = text[error.pos : error.pos + 30].split("\n")[0]
        what = error.msg[0].lower() + error.msg[1:]
        shown = f", near `{near}`" if near.strip() else ""
        raise UnreadableReply(f"{_place(text, error.pos)}: {what}{shown}") from None
    except UnicodeEncodeError:
        raise UnreadableReply("the JSON holds half a character (a lone surrogate)") from None
    return value


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    if len(held) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise UnreadableReply(f"the key {json.dumps(twice[:60])} occurs twice in one object")
    return held


def _no_number(word: str) -> Any:
    raise UnreadableReply(f"{word} is not JSON: write a number or null")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise UnreadableReply(f"the number {digits[:40]} is too large")
    return number


def _short(digits: str) -> int:
    if len(digits) > DIGITS:
        raise UnreadableReply(f"the number {digits[:40]}… is too long")
    return int(digits)


def _place(text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    return f"line {line}, column {at - text.rfind(chr(10), 0, at)}"


def _lines(error: ValidationError) -> Iterator[str]:
    found = error.errors(include_url=False)
    for each in found[:ERRORS]:
        where = ".".join(str(part) for part in each["loc"]) or "the reply"
        yield f"{where}: {_what(each['type'], each['msg'], each['input'])}"
    if len(found) > ERRORS:
        yield f"… and {len(found) - ERRORS} more"


def _what(kind: str, words: str, given: Any) -> str:
    if kind in ("missing", "extra_forbidden"):
        return "is missing" if kind == "missing" else "is not one of the fields"
    return f"{words.removeprefix('Input ').removeprefix('Value error, ')} (given: {_excerpt(given)})"


# A maximal length is not sent: servers that make a grammar of a schema unroll it, or refuse it. Longer text is cut when the
# reply is parsed.
_NOT_CONSTRAINING = frozenset({"title", "default", "$defs", "examples", "maxLength"})


@cache
def type_schema(kind: type[BaseModel]) -> dict[str, Any]:
    return kind.model_json_schema()


@cache
def schema_of(kind: type[BaseModel]) -> dict[str, Any]:
    return standalone_schema(type_schema(kind))


def standalone_schema(schema: Mapping[str, Any], *, complete: bool = True) -> dict[str, Any]:
    """A self-contained schema: references inlined, non-constraining keywords removed, additional fields forbidden.

    complete: every field is required, as strict endpoints demand; the model then has to write defaults too
    """
    return _tidied(schema, schema.get("$defs", {}), complete, ())


def _tidied(schema: Any, named: Mapping[str, Any], complete: bool, inside: tuple[str, ...]) -> Any:
    if isinstance(schema, (list, tuple)):
        return [_tidied(each, named, complete, inside) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    if isinstance(reference := schema.get("$ref"), str):
        name = reference.rpartition("/")[2]
        if name in inside or name not in named:
            return {}  # a recursive type: anything is allowed here, and checked when the reply is parsed
        return _tidied(named[name], named, complete, (*inside, name))
    made: dict[str, Any] = {}
    for word, value in schema.items():
        if word == "properties":
            made[word] = {name: _tidied(each, named, complete, inside) for name, each in value.items()}
        elif word in ("enum", "const", "required"):
            made[word] = list(value) if isinstance(value, (list, tuple)) else value
        elif word not in _NOT_CONSTRAINING:
            made[word] = _tidied(value, named, complete, inside)
    if "properties" in made:
        made["additionalProperties"] = False
        if complete:
            made["required"] = list(made["properties"])
    return made


def _cut(value: Any, schema: Mapping[str, Any], named: Mapping[str, Any]) -> Any:
    """The value with every text cut to the maximal length that a type's JSON schema allows."""
    if isinstance(reference := schema.get("$ref"), str):
        schema = named.get(reference.rpartition("/")[2], {})
    if isinstance(value, str):
        return value[: schema.get("maxLength")]
    if isinstance(value, list):
        return [_cut(each, schema.get("items", {}), named) for each in value]
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        return {name: _cut(each, properties.get(name, {}), named) for name, each in value.items()}
    return value


def schema_instructions(schema: Mapping[str, Any]) -> str:
    spelt = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return f"Reply with one JSON object and nothing else. It must fit this JSON schema:\n{spelt}"


def choice_schema(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """The schema of a tool choice: the reason, and the calls, each with the arguments of its tool."""
    calls = [
        object_schema(
            tool={"type": "string", "enum": [tool.name]}, arguments=standalone_schema(tool.parameters, complete=False)
        )
        for tool in tools
    ]
    return object_schema(why={"type": "string"}, calls={"type": "array", "items": {"anyOf": calls}})


def choice_instructions(tools: Sequence[ToolSpec]) -> str:
    abouts = ["\n  ".join(tool.about.strip().splitlines()) for tool in tools]
    listed = (
        f"- {tool.name}({_arguments(tool.parameters)}): {about}" for tool, about in zip(tools, abouts, strict=True)
    )
    return (
        "These tools can be called:\n"
        + "\n".join(listed)
        + "\n\nReply with one JSON object and nothing else. It has two fields: why, a sentence that says what you are after, "
        'and calls, a list of {"tool": the name of a tool, "arguments": an object with its arguments}. '
        "Where nothing is worth trying any more, calls is an empty list."
    )


def _arguments(parameters: Mapping[str, Any]) -> str:
    """Arguments as in a signature: `query: string, k: integer = 8`."""
    needed = parameters.get("required", ())
    return ", ".join(
        f"{name}: {_kind(each)}" + ("" if name in needed else f" = {json.dumps(each.get('default'))}")
        for name, each in parameters.get("properties", {}).items()
    )


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(json.dumps(each, ensure_ascii=False) for each in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_kind(each) for each in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


def object_schema(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """An object with exactly these fields."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def list_schema(items: Mapping[str, Any], least: int, most: int) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


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
        raise UnreadableReply(f"why: should be a string (given: {_excerpt(why)})")
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
            raise UnreadableReply(f'calls: is missing (given: {_excerpt(value)}); write {{"why": …, "calls": […]}}')
        value = [value]
    calls = value.get("calls", value.get("tool_calls")) if isinstance(value, dict) else value
    if not isinstance(calls, list):
        raise UnreadableReply(f"calls: should be a list (given: {_excerpt(calls)})")
    for place, call in enumerate(calls):
        yield _requested_call(call, f"calls.{place}")


def _requested_call(call: Any, where: str) -> RequestedCall:
    if isinstance(call, dict) and isinstance(call.get("function"), dict):
        call = call["function"]
    if not isinstance(call, dict):
        raise UnreadableReply(f"{where}: should be an object (given: {_excerpt(call)})")
    tool = next((call[name] for name in ("tool", "name", "function") if name in call), None)
    if not isinstance(tool, str) or not tool:
        raise UnreadableReply(f"{where}.tool: should be the name of a tool (given: {_excerpt(tool)})")
    arguments = next((call[name] for name in ("arguments", "parameters", "args") if name in call), {})
    if isinstance(arguments, str):
        try:
            arguments = extract_json(arguments) if arguments.strip() else {}
        except UnreadableReply as error:
            raise UnreadableReply(f"{where}.arguments of {tool}: {error}") from None
    if not isinstance(arguments, dict):
        raise UnreadableReply(f"{where}.arguments of {tool}: should be an object (given: {_excerpt(arguments)})")
    return RequestedCall(tool, arguments)


def _excerpt(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return shown if len(shown) <= 60 else shown[:60] + "…"
