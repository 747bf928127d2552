"""The form of a reply: a JSON schema for endpoints that accept one, and a description for those that do not. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from assay.models.llm import ToolSpec
from assay.models.replies import object_schema

if TYPE_CHECKING:
    from pydantic import BaseModel

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


def cut_to_lengths(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value with every text cut to the maximal length that a type's JSON schema allows."""
    return _cut(value, schema, schema.get("$defs", {}))


def _cut(value: Any, schema: Mapping[str, Any], named: Mapping[str, Any]) -> Any:
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
    return "Reply with one JSON object and nothing else. It must fit this JSON schema:\n" + _spelt(schema)


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
    return (
        "These tools can be called:\n"
        + "\n".join(f"- {tool.name}({_arguments(tool.parameters)}): {_indented(tool.about)}" for tool in tools)
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


def _indented(words: str) -> str:
    return "\n  ".join(words.strip().splitlines())


def _spelt(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
