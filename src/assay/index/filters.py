"""Filters as values: a small tree that each engine compiles for itself. Never a string built from user input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from assay.core.types import Scalar


@dataclass(frozen=True, slots=True)
class Eq:
    field: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class In:
    field: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """`low <= field <= high`; either end may be open. A row without the field, or with a value of another type, is never
    in the range.
    """

    field: str
    low: Scalar | None = None
    high: Scalar | None = None


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


Filter = Eq | In | Range | Contains | And | Or | Not

EVERYTHING = And()
NOTHING = Or()


def both(left: Filter, right: Filter) -> Filter:
    """`left` and `right`, without needless nesting."""
    parts = tuple(part for side in (left, right) for part in (side.parts if isinstance(side, And) else (side,)))
    return parts[0] if len(parts) == 1 else And(parts)


def matches(where: Filter, fields: Mapping[str, Scalar]) -> bool:
    """Whether a row's fields satisfy a filter. This is the reference semantics for every engine."""
    match where:
        case Eq(name, value):
            return name in fields and fields[name] == value
        case In(name, values):
            return name in fields and fields[name] in values
        case Range(name, low, high):
            value = fields.get(name)
            return value is not None and value != "" and _at_least(value, low) and _at_least(high, value)
        case Contains(name, text):
            return text.casefold() in str(fields.get(name, "")).casefold()
        case And(parts):
            return all(matches(part, fields) for part in parts)
        case Or(parts):
            return any(matches(part, fields) for part in parts)
        case Not(part):
            return not matches(part, fields)


def _at_least(value: Scalar | None, bound: Scalar | None) -> bool:
    """`value >= bound`. An open end is always satisfied; text and numbers do not compare."""
    if value is None or bound is None:
        return True
    if isinstance(value, str) != isinstance(bound, str):
        return False
    return value >= bound  # type: ignore[operator]
