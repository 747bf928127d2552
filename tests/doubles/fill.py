"""Builds a value for any JSON schema. A policy makes the choices that the schema leaves open. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Path = tuple[str, ...]  # the property names that lead to a value
Schema = Mapping[str, Any]

DEEPEST = 6  # depth at which a recursive schema is terminated
LONGEST = 4  # items in a list without a bound of its own
FURTHEST = 100  # largest absolute value of a number without a bound of its own


@dataclass(frozen=True, slots=True)
class FillPolicy:
    """The choices that a schema leaves open. Each gets the path of the value, so that a policy can decide by name."""

    pick: Callable[[Sequence[Any], Path], Any]  # one of the values of an enum, or of the schemas of an `anyOf`
    flag: Callable[[Path], bool]
    count: Callable[[int, int, Path], int]  # number of items in a list: minimum, maximum
    number: Callable[[float, float, Path], float]  # minimum, maximum; rounded where an integer is required
    words: Callable[[Path], str]
    wants: Callable[[Path], bool]  # whether to include an optional property


def fill(schema: Schema, policy: FillPolicy) -> Any:
    """A value that is valid under the schema, chosen by the policy."""
    return _value(schema, policy, (), schema.get("$defs", {}), 0)


def _value(schema: Schema, policy: FillPolicy, path: Path, named: Schema, depth: int) -> Any:
    schema = _resolved(schema, named)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return policy.pick(schema["enum"], path)
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return _value(_branch(options, policy, path, depth), policy, path, named, depth + 1)
    kinds = schema.get("type", _guessed(schema))
    kind = policy.pick(kinds, path) if isinstance(kinds, list) else kinds
    if kind == "object":
        return _object(schema, policy, path, named, depth)
    if kind == "array":
        return _array(schema, policy, path, named, depth)
    if kind in ("integer", "number"):
        return _number(schema, policy, path, whole=kind == "integer")
    if kind == "boolean":
        return policy.flag(path)
    return None if kind == "null" else _string(schema, policy, path)


def _resolved(schema: Schema, named: Schema) -> Schema:
    """The schema with its `$ref` and `allOf` expanded."""
    while "$ref" in schema:
        rest = {name: value for name, value in schema.items() if name != "$ref"}
        schema = {**named[schema["$ref"].rpartition("/")[2]], **rest}
    for part in schema.get("allOf", ()):
        schema = {**_resolved(part, named), **schema}
    return schema


def _branch(options: Sequence[Schema], policy: FillPolicy, path: Path, depth: int) -> Schema:
    simple = [option for option in options if "$ref" not in option and option.get("type") not in ("object", "array")]
    return policy.pick(simple if depth > DEEPEST and simple else options, path)


def _guessed(schema: Schema) -> str:
    return "object" if "properties" in schema else "array" if "items" in schema else "string"


def _object(schema: Schema, policy: FillPolicy, path: Path, named: Schema, depth: int) -> dict[str, Any]:
    needed = set(schema.get("required", ()))
    value = {
        name: _value(inner, policy, (*path, name), named, depth + 1)
        for name, inner in schema.get("properties", {}).items()
        if name in needed or (depth < DEEPEST and policy.wants((*path, name)))
    }
    open_to = schema.get("additionalProperties", not value)
    if open_to is False or value:
        return value
    inner = open_to if isinstance(open_to, Mapping) else {}
    names = ["_".join(policy.words(path).split()[:2]) for _ in range(policy.count(0, LONGEST, path))]
    return {name: _value(inner, policy, (*path, name), named, depth + 1) for name in names}


def _array(schema: Schema, policy: FillPolicy, path: Path, named: Schema, depth: int) -> list[Any]:
    first = [_value(inner, policy, path, named, depth + 1) for inner in schema.get("prefixItems", ())]
    low = int(schema.get("minItems", 0))
    high = int(schema.get("maxItems", max(low, LONGEST)))
    count = low if depth >= DEEPEST else policy.count(low, high, path)
    inner = schema.get("items", {})
    rest = [_value(inner, policy, path, named, depth + 1) for _ in range(count - len(first)) if inner is not False]
    items = first + rest
    if schema.get("uniqueItems"):
        items = [item for n, item in enumerate(items) if item not in items[:n]]
    return items


def _number(schema: Schema, policy: FillPolicy, path: Path, whole: bool) -> float:
    step = 1 if whole else 1e-6
    low = schema.get("minimum", schema["exclusiveMinimum"] + step if "exclusiveMinimum" in schema else None)
    high = schema.get("maximum", schema["exclusiveMaximum"] - step if "exclusiveMaximum" in schema else None)
    low = (-FURTHEST if high is None else min(-FURTHEST, high)) if low is None else low
    high = max(FURTHEST, low) if high is None else high
    number = policy.number(low, high, path)
    return int(number) if whole else number


def _string(schema: Schema, policy: FillPolicy, path: Path) -> str:
    words = policy.words(path)
    if "pattern" in schema and not re.search(schema["pattern"], words):
        words = "".join(_matching(schema["pattern"], policy, path))
    words = words.ljust(int(schema.get("minLength", 0)), "x")
    return words[: int(schema.get("maxLength", len(words)))]


_PART = re.compile(r"(?:\[(?P<set>[^\]]+)\]|(?P<digit>\\d)|\\?(?P<char>.))(?:\{(?P<least>\d+)[\d,]*\}|[+*?])?")


def _matching(pattern: str, policy: FillPolicy, path: Path) -> Iterator[str]:
    """Characters that match a simple pattern: a sequence of sets, digits and letters, each repeated as often as required."""
    for part in _PART.finditer(pattern.removeprefix("^").removesuffix("$")):
        choice = "0123456789" if part["digit"] else _members(part["set"]) if part["set"] else part["char"]
        yield from (policy.pick(choice, path) for _ in range(int(part["least"] or 1)))


def _members(inside: str) -> str:
    ranges = re.sub(r"(.)-(.)", lambda ends: "".join(map(chr, range(ord(ends[1]), ord(ends[2]) + 1))), inside)
    return ranges.replace("\\", "")
