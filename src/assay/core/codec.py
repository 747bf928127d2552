"""Dataclass ⇄ JSON conversion driven by type hints. Used between processes, in records and for `--json`.

Records omit document text: a `Passage` or `Quote` is written as document, span and digest, and its text is read back
from the document store. A document can therefore be erased while the record stays valid.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import numbers
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, cast

from assay.core.types import OMIT, Passage, Quote

T = TypeVar("T")
# (document, start, end) → (text, heading path, table context)
Texts = Callable[[str, int, int], tuple[str, str, str]]
Read = Callable[[Any, Texts | None], Any]

VERBATIM = (Passage, Quote)
PLAIN = frozenset({str, int, float, bool})


def digest(text: str | bytes) -> str:
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


START = "0" * 64  # the predecessor hash of the first link of a chain


def linked(n: int, hash: str, before: str) -> str:
    """The link hash of the nth record in the chain of all records."""
    return digest(dumps([n, hash, before]))


_CANONICAL = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def dumps(value: Any) -> str:
    """Canonical JSON: equal values have equal digests."""
    return _CANONICAL.encode(value)


def to_json(value: Any, *, words: bool = True) -> Any:
    """JSON-compatible data for a value. With `words=False`, document text is omitted."""
    kind = type(value)
    if value is None or kind in PLAIN or (isinstance(value, (str, int, float)) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Enum):
        return value.value
    if (fields := _fields(kind)) is not None:
        if not words and isinstance(value, VERBATIM):
            return _reference(value)
        return {
            name: item if type(item) in PLAIN else to_json(item, words=words)
            for name, omitted in fields
            if (item := getattr(value, name)) is not None and (not omitted or item)
        }
    if isinstance(value, Mapping):
        return {str(key): to_json(item, words=words) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item, words=words) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(to_json(item, words=words) for item in value)
    if isinstance(value, numbers.Integral):  # numpy integers are registered as these
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


@cache
def _fields(kind: type) -> tuple[tuple[str, bool], ...] | None:
    """The fields of a dataclass, and which are left out if empty; None for other types."""
    if not dataclasses.is_dataclass(kind):
        return None
    return tuple((field.name, OMIT in field.metadata) for field in dataclasses.fields(kind))


def _reference(value: Passage | Quote) -> dict[str, Any]:
    shown = {"doc_id": value.doc_id, "start": value.start, "end": value.end, "digest": digest(value.text)}
    if isinstance(value, Passage):
        shown |= {"id": value.id, "page": value.page}
    return shown


def from_json(kind: type[T], data: Any, *, texts: Texts | None = None) -> T:
    """The inverse of `to_json`. Raises `ValueError` if the data does not match the type."""
    return cast(T, _reader(kind)(data, texts))


@cache
def _reader(hint: Any) -> Read:
    """What reads data of this type. It is looked up once for each type, not for each value."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return lambda data, texts: data
    if origin is typing.Annotated:
        return _reader(inner[0])
    if origin in (Union, types.UnionType):
        return _union(inner)
    if origin is tuple:
        return _tuple(inner)
    if origin in (list, set, frozenset):
        item = _reader(inner[0])
        return lambda data, texts: origin(item(each, texts) for each in _expect(list, data))
    if origin is typing.get_origin(Mapping[str, str]) or origin is dict:
        value = _reader(inner[1])
        return lambda data, texts: {str(key): value(each, texts) for key, each in _expect(dict, data).items()}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return lambda data, texts: hint(data)
    if dataclasses.is_dataclass(hint):
        return lambda data, texts: _read_dataclass(cast(type, hint), _expect(dict, data), texts)
    if hint is float:
        return lambda data, texts: float(data) if type(data) is int else _expect(float, data)
    return lambda data, texts: data if type(data) is hint else _expect(hint, data)


def _union(options: tuple[Any, ...]) -> Read:
    readers = [_reader(option) for option in options if option is not type(None)]
    optional = len(readers) < len(options)

    def read(data: Any, texts: Texts | None) -> Any:
        if data is None and optional:
            return None
        problems: list[str] = []
        for reader in readers:
            try:
                return reader(data, texts)
            except (ValueError, TypeError) as problem:
                problems.append(str(problem))
        raise ValueError("; ".join(problems) or f"{data!r} fits no option")

    return read


def _tuple(items: tuple[Any, ...]) -> Read:
    if len(items) == 2 and items[1] is Ellipsis:
        item = _reader(items[0])
        return lambda data, texts: tuple([item(each, texts) for each in _expect(list, data)])
    readers = [_reader(each) for each in items]

    def read(data: Any, texts: Texts | None) -> tuple[Any, ...]:
        values = _expect(list, data)
        if len(readers) != len(values):
            raise ValueError(f"{len(readers)} values expected, {len(values)} given")
        return tuple([reader(each, texts) for reader, each in zip(readers, values, strict=True)])

    return read


def _read_dataclass(kind: type, data: dict[str, Any], texts: Texts | None) -> Any:
    if kind in VERBATIM and "text" not in data:
        data = _restored(kind, data, texts)
    readers = _field_readers(kind)
    if unknown := data.keys() - readers.keys():
        raise ValueError(f"{kind.__name__} has no field {sorted(unknown)[0]!r}")
    try:
        return kind(**{name: readers[name](value, texts) for name, value in data.items()})
    except TypeError as problem:
        raise ValueError(str(problem)) from problem


def _restored(kind: type, data: dict[str, Any], texts: Texts | None) -> dict[str, Any]:
    if texts is None:
        raise ValueError(f"this {kind.__name__} is a reference; its words are in the document")
    text, heading, context = texts(data["doc_id"], data["start"], data["end"])
    # An erased or changed document yields no text: no text is better than the wrong text.
    text = text if digest(text) == data["digest"] else ""
    rest = {name: value for name, value in data.items() if name != "digest"}
    return rest | {"text": text} | ({"heading": heading, "context": context} if kind is Passage else {})


@cache
def _field_readers(kind: type) -> dict[str, Read]:
    return {name: _reader(hint) for name, hint in typing.get_type_hints(kind).items()}


def _expect(kind: Any, data: Any) -> Any:
    if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
        raise ValueError(f"{getattr(kind, '__name__', kind)} expected, {type(data).__name__} given")
    return data
