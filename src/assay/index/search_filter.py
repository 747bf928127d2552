"""The filter of a search's limits (sources, types, dates, metadata), and what they leave out. Pure."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from assay.core.errors import UserError
from assay.core.events import SearchFilters
from assay.core.formats import FORMATS, format_of_type
from assay.core.identity import KIND, ORGANISATION, PERIOD
from assay.core.types import UPLOAD, Document, LeftOut
from assay.index.filters import And, Contains, Filter, In, Or, matches
from assay.language.dates import parse_period, parse_written_date
from assay.language.terms import fold_case
from assay.store.documents import Entry, Traits

YEAR, CHOICES = "year", 500  # values of one kind that are told: the most frequent

Documents = Callable[[], Iterable[Traits]]  # those that the person may read and that are searched


def parse_document_types(names: Sequence[str]) -> tuple[str, ...]:
    """Document types as people name them, in the index's names."""
    return tuple(map(_document_type, names))


def _document_type(name: str) -> str:
    found = format_of_type(name)
    if found is None:
        known = ", ".join(sorted(each.name for each in FORMATS))
        raise UserError(f"There is no type of document called {name.lower().lstrip('.')!r}. There is: {known}.")
    return found.name


def filter_for(where: SearchFilters, documents: Documents) -> Filter:
    """All limits combined with AND; several sources or types are alternatives. Bases belong to the scope instead.

    Dates and metadata are looked up in the store, and become the ids of the documents that have them: a new tag holds at
    once, and a period counts as a date. `documents` is called only if they are needed."""
    parts = _indexed(where)
    if where.since or where.until or where.meta:
        parts = (*parts, In("doc", tuple(each.id for each in described_so(where, documents()))))
    return And(parts)


def described_so(where: SearchFilters, documents: Iterable[Traits]) -> list[Traits]:
    """Those that have the dates and metadata of these limits."""
    return [each for each in documents if _has_all(each, where.meta) and _is_in_time(each, where)]


def count_left_out(where: SearchFilters, documents: Documents) -> LeftOut | None:
    """How many documents the limits leave out; None if there are no limits."""
    if where == SearchFilters(bases=where.bases, undated=where.undated):
        return None
    indexed, found = And(_indexed(where)), list(documents())
    fitting = [each for each in found if matches(indexed, filter_fields(each)) and _has_all(each, where.meta)]
    late = [each for each in fitting if not _is_in_time(each, where)]
    return LeftOut(len(found) - len(fitting) + len(late), sum(_days(each) is None for each in late))


def _indexed(where: SearchFilters) -> tuple[Filter, ...]:
    """The limits that the index knows by itself."""
    parts: list[Filter] = []
    if where.sources:
        parts.append(
            Or(tuple(part for name in where.sources for part in (Contains("source", name), Contains("title", name))))
        )
    if where.documents:
        parts.append(In("doc", where.documents))
    if where.picked:
        parts.append(In("doc", where.picked))
    if where.types:
        parts.append(In("type", where.types))
    return tuple(parts)


def filter_fields(of: Traits | Entry | Document) -> dict[str, str]:
    """The fields of a document's rows that these filters use."""
    return {"base": of.base, "doc": of.id, "source": of.uri, "title": of.title, "type": of.kind}


def _is_in_time(of: Traits, where: SearchFilters) -> bool:
    """Whether a document may be of these days, as precisely as its date is known: "2024" may be after March 2024."""
    if not (where.since or where.until):
        return True
    days = _days(of)
    if days is None:
        return where.undated
    first, last = days
    return (where.since or "") <= last and first <= (where.until or "9999")


def _days(of: Traits) -> tuple[str, str] | None:
    """The days of a document's date, or else of the period that it covers; None if it is undated."""
    dated = parse_written_date(of.date) if of.date else None
    return dated or parse_period(of.meta.get(PERIOD, ""))


AUTHOR, TAG, FOLDER = "author", "tag", "folder"
CHOSEN_BY = (FOLDER, TAG, ORGANISATION, "kind", AUTHOR, YEAR)
ALSO_CALLED = {"authors": AUTHOR, "tags": TAG, "organization": ORGANISATION, "kind": KIND}


def _has_all(of: Traits, meta: Mapping[str, str]) -> bool:
    names = {ALSO_CALLED.get(_folded(name), _folded(name)): _folded(value) for name, value in meta.items()}
    return all(_has(of, name, value) for name, value in names.items())


def _has(of: Traits, name: str, value: str) -> bool:
    """Whether a document has this metadata, ignoring case and accents. A part of a name or a kind is enough; anything else
    has to be the same."""
    if name == AUTHOR:
        return any(value in _folded(author) for author in of.authors)
    if name == TAG:
        return any(value == _folded(tag) for tag in of.tags)
    if name == FOLDER and f"/{value.strip('/')}/" in f"/{_folded(_folder(of.uri))}/":
        return True  # otherwise as what it says of itself
    if name in {ORGANISATION, KIND}:
        return value in _folded(of.meta.get(name, ""))
    if name == PERIOD:
        return _parts(value) <= _parts(_folded(of.meta.get(name, "")))
    return any(_folded(key) == name and _folded(text) == value for key, text in of.meta.items())


def _folder(uri: str) -> str:
    return uri.removeprefix(UPLOAD).rpartition("/")[0].strip("/")


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that limits a search, and how many documents have it."""

    value: str
    documents: int


def choices(documents: Sequence[Traits]) -> dict[str, tuple[Choice, ...]]:
    """What documents can be chosen by: folders, tags, organisations, kinds, authors, years. Of files of this machine the folder
    below which all of them are is not told."""
    here = [_folder(each.uri) for each in documents if each.uri.startswith("/")]
    root = os.path.commonpath(here) if here else ""
    counted: dict[str, Counter[str]] = {name: Counter() for name in CHOSEN_BY}
    for each in documents:
        folder = _folder(each.uri)
        parts = (folder.removeprefix(root).strip("/") if each.uri.startswith("/") else folder).split("/")
        counted[FOLDER].update("/".join(parts[:end]) for end in range(1, len(parts) + 1) if parts[0])
        counted[TAG].update(each.tags)
        counted[AUTHOR].update(each.authors)
        counted[ORGANISATION].update(filter(None, [each.meta.get(ORGANISATION)]))
        counted["kind"].update(filter(None, [each.meta.get(KIND)]))
        first, last = _days(each) or ("1", "0")
        counted[YEAR].update(str(year) for year in range(int(first[:4]), min(int(last[:4]), int(first[:4]) + 50) + 1))
    return {
        name: tuple(
            Choice(*each) for each in sorted(found.most_common(CHOICES), reverse=name == YEAR, key=lambda one: one[0])
        )
        for name, found in counted.items()
    }


def _folded(text: str) -> str:
    return " ".join(fold_case(text).split())


def _parts(period: str) -> set[str]:
    """The words and numbers of a period: FY2023 has both."""
    return set(re.findall(r"[^\W\d_]+|\d+", period))
