"""Filter → a Milvus expression, and the columns that it reads. Pure; `filters.matches` defines the semantics.

An expression contains only digests and hex digits, so no value can be mistaken for syntax. It may let more rows pass than
the filter: texts are cut, and old servers cannot search in them. `exact` says whether it does not; otherwise the caller
checks rows with `matches`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from assay.core.types import Scalar
from assay.index.encoding import sortable_value, storable, storable_bound, storable_key
from assay.index.filters import And, Contains, Eq, Filter, In, Not, Or, Range

SEARCHED = ("source", "title")  # fields that `Contains` finds in a column
SORTED = ("date",)  # fields whose text ranges have a column
SORTED_BYTES = 32
SEARCHED_BYTES = 2000
ALL, NONE = 'pk != ""', 'pk == ""'


@dataclass(frozen=True, slots=True)
class Expression:
    """exact: whether it is true for exactly the rows that the filter accepts, or for more"""

    text: str
    exact: bool


def compile(where: Filter, *, infix: bool) -> Expression:
    """infix: whether the server takes `like` with a text in the middle"""
    return _compile(where, wanted=True, infix=infix)


def facets(fields: Mapping[str, Scalar]) -> list[str]:
    """A digest of each field with its value."""
    return sorted({_facet(name, value) for name, value in fields.items()})


def columns(fields: Mapping[str, Scalar]) -> dict[str, str]:
    """The columns of texts that are compared or searched, in hex: bytes of UTF-8 sort as the characters do."""
    texts = {name: str(fields.get(name, "")) for name in (*SORTED, *SEARCHED)}
    return {
        **{f"s_{name}": _hex(texts[name], SORTED_BYTES) for name in SORTED},
        **{f"c_{name}": _hex(texts[name].casefold(), SEARCHED_BYTES) for name in SEARCHED},
    }


def _compile(where: Filter, *, wanted: bool, infix: bool) -> Expression:
    match where:
        case And(parts) | Or(parts):
            every = isinstance(where, And) == wanted
            compiled = [_compile(part, wanted=wanted, infix=infix) for part in parts]
            if not compiled:
                return Expression(ALL if every else NONE, True)
            text = _join("and" if every else "or", [each.text for each in compiled])
            return Expression(text, all(each.exact for each in compiled))
        case Not(part):
            return _compile(part, wanted=not wanted, infix=infix)
        case Eq(name, value):
            return _among(name, (value,), wanted)
        case In(name, values):
            return _among(name, values, wanted)
        case Range(name, low, high):
            return Expression(_between(name, low, high) if wanted and name in SORTED else ALL, False)
        case Contains(name, text):
            needle = text.casefold()
            if not (wanted and infix and name in SEARCHED and needle and storable(needle)):
                return Expression(ALL, False)
            # A longer text than the column holds is not searched here: its column ends in `~`.
            column = f"c_{name}"
            return Expression(f'({column} like "%{_hex(needle, SEARCHED_BYTES // 2)}%" or {column} like "%~")', False)


def _among(name: str, values: tuple[Scalar, ...], wanted: bool) -> Expression:
    digests = sorted({_facet(name, value) for value in values if storable(value)})
    if not digests:
        return Expression(NONE if wanted else ALL, True)
    listed = ", ".join(f'"{digest}"' for digest in digests)
    test = f"array_contains_any(facets, [{listed}])"
    return Expression(test if wanted else f"(not {test})", True)


def _between(name: str, low: Scalar | None, high: Scalar | None) -> str:
    if not all(isinstance(bound, str) for bound in (low, high) if bound is not None):
        return ALL  # numbers: checked by the caller
    column = f"s_{name}"
    tests = [
        f'{column} {sign} "{_hex(storable_bound(str(bound)), SORTED_BYTES)}"'
        for sign, bound in ((">=", low), ("<=", high))
        if bound is not None
    ]
    return _join("and", tests) if tests else ALL


def _facet(name: str, value: Scalar) -> str:
    text = "s" + value if isinstance(value, str) else "n" + sortable_value(value)
    return hashlib.sha256(f"{len(name)} {storable_key(name)} {text}".encode()).hexdigest()[:32]


def _hex(text: str, most: int) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return data[:most].hex() + ("~" if most == SEARCHED_BYTES and len(data) > most else "")


def _join(word: str, parts: list[str]) -> str:
    """Joined as a balanced tree: a chain of a thousand parts would be a thousand levels for the parser."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return f"({_join(word, parts[:middle])} {word} {_join(word, parts[middle:])})"
