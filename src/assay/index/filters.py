"""Filters as values: a small tree that each engine compiles for itself. Never a string built from user input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class In:
    field: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contains:
    """The field's text contains this text, ignoring case."""

    field: str
    text: str


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class Not:
    part: Filter


Filter = In | Contains | And | Or | Not


def Eq(field: str, value: str) -> Filter:
    """The field has this value."""
    return In(field, (value,))


EVERYTHING = And()
NOTHING = Or()


def both(left: Filter, right: Filter) -> Filter:
    """`left` and `right`, without needless nesting."""
    parts = tuple(part for side in (left, right) for part in (side.parts if isinstance(side, And) else (side,)))
    return parts[0] if len(parts) == 1 else And(parts)


def matches(where: Filter, fields: Mapping[str, str]) -> bool:
    """Whether a row's fields satisfy a filter. This is the reference semantics for every engine."""
    match where:
        case In(name, values):
            return name in fields and fields[name] in values
        case Contains(name, text):
            return text.casefold() in fields.get(name, "").casefold()
        case And(parts):
            return all(matches(part, fields) for part in parts)
        case Or(parts):
            return any(matches(part, fields) for part in parts)
        case Not(part):
            return not matches(part, fields)
