"""Filter → SQL for Lance, and the encoding of the fields that the SQL reads. Pure; `filters.matches` defines the semantics.

The well-known fields have their own columns. Any other field is in `exact`, a string of `key value` pairs; `folded` has every
field case-folded, because SQL's lower() is not Python's casefold(). Unicode noncharacters delimit both, and noncharacters
inside keys and values are escaped by three others, so that no key or value can cross a delimiter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.core.errors import UserError
from assay.index.encoding import join_conditions, storable, storable_key
from assay.index.filters import And, Contains, Filter, In, Not, Or

COLUMNS = ("base", "doc", "source", "title", "date", "type", "language", "label")
MAX_DEPTH = 16  # Lance's parser fails between 20 and 40 levels

_END, _MID = "\ufdd0", "\ufdd1"
_ESCAPES = {0xFDD0 + i: "\ufdd2" + chr(0xFDE0 + (i >> 4)) + chr(0xFDE0 + (i & 15)) for i in range(32)}


def compile(where: Filter) -> str:
    """SQL that is true for exactly the rows that `filters.matches` accepts. For others it is false or null, which is equivalent
    because NOT is only applied to leaves.
    """
    return _compile(where, wanted=True, depth=0)


def exact(fields: Mapping[str, str]) -> str:
    """The fields that have no column of their own: `⟨key|value⟨key|value⟨`."""
    return _pairs({name: _value(value) for name, value in fields.items() if name not in COLUMNS})


def folded(fields: Mapping[str, str]) -> str:
    """Every field as case-folded text, which `Contains` searches."""
    return _pairs({name: value.casefold().translate(_ESCAPES) for name, value in fields.items()})


def literal(text: str) -> str:
    """A SQL string literal. A doubled quote is the only escape: Lance takes backslashes literally."""
    return "'" + text.replace("'", "''") + "'"


def _compile(where: Filter, *, wanted: bool, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise UserError(f"This filter is nested more than {MAX_DEPTH} levels deep; write it flatter.")
    match where:
        case And(parts) | Or(parts):
            # De Morgan, so that NOT is only applied to leaves: the parser's nesting limit is low.
            every = isinstance(where, And) == wanted
            compiled = [_compile(part, wanted=wanted, depth=depth + 1) for part in parts]
            return join_conditions("AND" if every else "OR", compiled) if compiled else "TRUE" if every else "FALSE"
        case Not(part):
            return _compile(part, wanted=not wanted, depth=depth + 1)
        case _:
            leaf = _leaf(where)
            return leaf if wanted else f"(NOT coalesce({leaf}, FALSE))"


def _leaf(where: In | Contains) -> str:
    match where:
        case In(name, values):
            return _among(name, values)
        case Contains(_, ""):
            return "TRUE"
        case Contains(_, text) if not storable(text):
            return "FALSE"
        case Contains(name, text):
            start, sought = literal(_END + _key(name) + _MID), literal(text.casefold().translate(_ESCAPES))
            return f"contains(split_part(split_part(folded, {start}, 2), {literal(_END)}, 1), {sought})"


def _among(name: str, values: Sequence[str]) -> str:
    usable = sorted({value for value in values if storable(value)})
    if name in COLUMNS:
        return f"f_{name} IN ({', '.join(map(literal, usable))})" if usable else "FALSE"
    tests = [f"contains(exact, {literal(_END + _key(name) + _MID + _value(value) + _END)})" for value in usable]
    return join_conditions("OR", tests) if tests else "FALSE"


def _pairs(values: Mapping[str, str]) -> str:
    pairs = [_key(name) + _MID + value for name, value in sorted(values.items())]
    return _END + _END.join(pairs) + _END if pairs else ""


def _key(name: str) -> str:
    return storable_key(name).translate(_ESCAPES)


def _value(value: str) -> str:
    return "s" + value.translate(_ESCAPES)
