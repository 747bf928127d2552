"""Filter → SQL for PostgreSQL, and the two JSON columns that the SQL reads. Pure; `filters.matches` defines the semantics.

`fields` has every field as text that sorts: `s` and the text, or `n` and a number. `folded` has every field case-folded,
because SQL's lower() is not Python's casefold(). Values only ever reach the database as parameters.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assay.core.types import Scalar
from assay.index.encoding import sortable_bound, sortable_value, storable, storable_bound, storable_key
from assay.index.filters import And, Contains, Eq, Filter, In, Not, Or, Range

INDEXED = ("doc", "label")  # fields with an index

# PostgreSQL cannot store U+0000. Four characters are escaped by three of them, so that order and substrings stay.
_ESCAPES = {i: "\x01" + chr(2 + (i >> 1)) + chr(2 + (i & 1)) for i in range(4)}


@dataclass(frozen=True, slots=True)
class Condition:
    """An SQL condition in the style of psycopg, with its parameters."""

    sql: str
    parameters: Mapping[str, object]


@dataclass(slots=True)
class _Parameters:
    values: dict[str, object] = field(default_factory=dict)

    def add(self, value: object) -> str:
        name = f"f{len(self.values)}"
        self.values[name] = value
        return f"%({name})s"


def compile(where: Filter) -> Condition:
    """A condition that is true for exactly the rows that `filters.matches` accepts. It may be null for others: anything around
    a field would keep its index from being used."""
    parameters = _Parameters()
    return Condition(_compile(where, parameters), parameters.values)


def fields_json(fields: Mapping[str, Scalar]) -> str:
    return _json({_key(name): _value(value) for name, value in fields.items()})


def folded_json(fields: Mapping[str, Scalar]) -> str:
    return _json({_key(name): str(value).casefold().translate(_ESCAPES) for name, value in fields.items()})


def _compile(where: Filter, parameters: _Parameters) -> str:
    match where:
        case And(parts):
            return "(" + " AND ".join(_compile(part, parameters) for part in parts) + ")" if parts else "TRUE"
        case Or(parts):
            return "(" + " OR ".join(_compile(part, parameters) for part in parts) + ")" if parts else "FALSE"
        case Not(part):
            return f"({_compile(part, parameters)} IS NOT TRUE)"  # also where a field is missing
        case Eq(name, value):
            return _among(name, (value,), parameters)
        case In(name, values):
            return _among(name, values, parameters)
        case Range(name, low, high):
            return _between(name, low, high, parameters)
        case Contains(_, ""):
            return "TRUE"
        case Contains(_, text) if not storable(text):
            return "FALSE"
        case Contains(name, text):
            text = parameters.add(text.casefold().translate(_ESCAPES))
            return f"(coalesce(strpos(folded ->> {parameters.add(_key(name))}, {text}), 0) > 0)"


def _among(name: str, values: Sequence[Scalar], parameters: _Parameters) -> str:
    usable = [_value(value) for value in values if storable(value)]
    return f"({_column(name, parameters)} = ANY({parameters.add(usable)}::text[]))" if usable else "FALSE"


def _between(name: str, low: Scalar | None, high: Scalar | None, parameters: _Parameters) -> str:
    bounds = [bound for bound in (low, high) if bound is not None]
    column = f'{_column(name, parameters)} COLLATE "C"'
    tests = []
    if all(isinstance(bound, str) for bound in bounds):
        tests.append(_bounded(column, *_texts(low, high), parameters))  # type: ignore[arg-type]
    if not any(isinstance(bound, str) for bound in bounds):
        least = "n" if low is None else "n" + sortable_bound(low)
        most = "o" if high is None else "n" + sortable_bound(high)
        tests.append(_bounded(column, ">=", least, "<=", most, parameters))
    return "(" + " OR ".join(tests) + ")" if tests else "FALSE"


def _texts(low: str | None, high: str | None) -> tuple[str, str, str, str]:
    """The bounds of texts. `s` alone is the empty text, which is in no range."""
    least = "s" if not low else "s" + storable_bound(low).translate(_ESCAPES)
    most = "t" if high is None else "s" + storable_bound(high).translate(_ESCAPES)
    return (">=" if low else ">"), least, ("<=" if high is not None and storable(high) else "<"), most


def _bounded(column: str, above: str, low: str, below: str, high: str, parameters: _Parameters) -> str:
    return f"({column} {above} {parameters.add(low)} AND {column} {below} {parameters.add(high)})"


def _column(name: str, parameters: _Parameters) -> str:
    return f"(fields ->> '{name}')" if name in INDEXED else f"(fields ->> {parameters.add(_key(name))})"


def _key(name: str) -> str:
    return storable_key(name).translate(_ESCAPES)


def _value(value: Scalar) -> str:
    return "s" + value.translate(_ESCAPES) if isinstance(value, str) else "n" + sortable_value(value)


def _json(value: Mapping[str, str]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
