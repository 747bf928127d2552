"""Paged and counted document listings for any number of documents, and documents by the names that people give them. Reads take
a `Scope`."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Select, Text, and_, case, cast, func, or_, select

from assay.core.access import Base, Scope
from assay.core.codec import from_json
from assay.core.errors import UserError
from assay.core.formats import PAGED_FORMATS
from assay.core.types import Section
from assay.store.database import Store
from assay.store.dialect import among, json_length
from assay.store.documents import LINE, OFF, PENDING, READY, SEARCHABLE, UNREADABLE, Entry, entries_of, entry_of, within
from assay.store.schema import documents, texts

SHOWN = (READY, PENDING, UNREADABLE, OFF)
WORDS = 8  # maximum number of search words


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """One page of a listing; `next` is the cursor of the next page, empty at the end."""

    entries: tuple[Entry, ...]
    total: int
    next: str


@dataclass(frozen=True, slots=True)
class Counted:
    """The contents of a knowledge base, counted."""

    ready: int = 0  # searchable
    pending: int = 0
    unreadable: int = 0
    off: int = 0
    passages: int = 0


@dataclass(frozen=True, slots=True)
class Head:
    """A document with everything except its text."""

    entry: Entry
    abstract: str
    sections: tuple[Section, ...]
    pages: tuple[int, ...]
    meta: dict[str, str]


@dataclass(frozen=True, slots=True)
class Sums:
    """Totals of a knowledge base: its readable documents, and how many per language."""

    pages: int
    characters: int
    passages: int
    languages: dict[str, int]


def page(
    store: Store,
    scope: Scope,
    states: Sequence[str] = SHOWN,
    words: str = "",
    after: str = "",
    limit: int = 50,
    tag: str = "",
    only: Iterable[str] | None = None,
) -> DocumentPage:
    """Documents, newest first, of these ids if they are given; each of `words` must occur in the title, the location, the
    authors or the tags. With a `tag` only those that have it."""
    fits = _fits(scope, states, words, tag)
    fits = fits if only is None else and_(fits, among(documents.c.id, only))
    # For all documents only ids and times are read, from an index; full rows only for those on the page.
    query = select(documents.c.id, documents.c.added).where(fits, _below(after))
    query = query.order_by(documents.c.added.desc(), documents.c.id.desc()).limit(limit + 1)
    with store.read() as connection:
        total = connection.scalar(select(func.count()).select_from(documents).where(fits)) or 0
        rows = connection.execute(query).all()
        ids = [row.id for row in rows[:limit]]
        found = connection.execute(select(*LINE).where(documents.c.id.in_(ids))).mappings()
        by_id = {row["id"]: entry_of(row) for row in found}
    last = rows[limit - 1] if len(rows) > limit else None
    return DocumentPage(tuple(by_id[each] for each in ids), total, f"{last.added}.{last.id}" if last else "")


def every(
    store: Store, scope: Scope, states: Sequence[str] = SHOWN, words: str = "", tag: str = "", ids: Sequence[str] = ()
) -> list[Entry]:
    """All documents of such a listing; with `ids` only these."""
    query = select(*LINE).where(_fits(scope, states, words, tag))
    return entries_of(store, query.where(among(documents.c.id, ids)) if ids else query)


def tags(store: Store, scope: Scope) -> dict[str, int]:
    """How many documents have each tag, by name."""
    spelt = cast(documents.c.tags, Text)
    grouped = select(spelt, func.count()).where(within(scope), _stands(SHOWN), spelt != "[]").group_by(spelt)
    found: Counter[str] = Counter()
    for words, count in store.rows(grouped):
        for tag in json.loads(words):
            found[tag] += count
    return dict(sorted(found.items()))


def _fits(scope: Scope, states: Sequence[str], words: str, tag: str) -> ColumnElement[bool]:
    own = func.lower(cast(documents.c.tags, Text)).contains(json.dumps(tag).lower(), autoescape=True)
    return and_(within(scope), _stands(states), *_matches(words), *([own] if tag else []))


def _stands(states: Sequence[str]) -> ColumnElement[bool]:
    """The condition for documents that stand like this; see `Entry.standing`."""
    on = and_(documents.c.state.in_(states), documents.c.off.is_(False))
    off = and_(documents.c.state.in_((READY, PENDING)), documents.c.off.is_(True))
    return or_(on, off) if OFF in states else on


def _below(after: str) -> ColumnElement[bool]:
    """The condition for rows after this cursor, in newest-first order."""
    if not after:
        return documents.c.id != ""
    added, _, last = after.rpartition(".")
    return or_(documents.c.added < added, and_(documents.c.added == added, documents.c.id < last))


def _matches(words: str) -> Iterator[ColumnElement[bool]]:
    named = [func.lower(cast(column, Text)) for column in (documents.c.authors, documents.c.tags)]
    for word in words.split()[:WORDS]:
        spelt = {word, word.lower(), word.upper(), word.capitalize()}  # the database folds case for ASCII only
        places = (documents.c.title, documents.c.uri)
        yield or_(
            *(column.contains(each, autoescape=True) for column in places for each in spelt),
            *(names.contains(json.dumps(each)[1:-1].lower(), autoescape=True) for names in named for each in spelt),
        )


def counts(store: Store, scope: Scope) -> dict[str, Counted]:
    """The counts of each base, by id; empty bases are omitted."""
    grouped = (
        select(documents.c.base, documents.c.state, documents.c.off, func.count(), func.sum(documents.c.passages))
        .where(within(scope), documents.c.state.in_(SHOWN))
        .group_by(documents.c.base, documents.c.state, documents.c.off)
    )
    found: dict[str, dict[str, int]] = {}
    with store.read() as connection:
        for base, state, off, count, passages in connection.execute(grouped):
            stands = OFF if off else state
            of_base = found.setdefault(base, {})
            of_base[stands] = of_base.get(stands, 0) + count
            if stands == READY:
                of_base["passages"] = passages
    return {base: Counted(**each) for base, each in found.items()}


def outdated(
    store: Store, bases: Sequence[Base], parsers: Sequence[str], recipe: str | None
) -> dict[str, tuple[int, int]]:
    """Of each base, by id: how many documents were read by other parsers than these or have rows of another recipe (None: any
    will do), and how many there are."""
    other = documents.c.parser.not_in(parsers)
    if recipe is not None:
        other |= and_(documents.c.state == READY, documents.c.recipe != recipe)
    grouped = (
        select(documents.c.base, func.sum(case((other, 1), else_=0)), func.count())
        .where(documents.c.base.in_([base.id for base in bases]), documents.c.state.in_((READY, PENDING)))
        .group_by(documents.c.base)
    )
    return {base: (old, total) for base, old, total in store.rows(grouped)}


def entry(store: Store, document: str, scope: Scope) -> Entry | None:
    """A document or an unreadable file, including replaced ones."""
    return next(iter(entries_of(store, select(*LINE).where(documents.c.id == document, within(scope)))), None)


def head(store: Store, document: str, scope: Scope) -> Head | None:
    """A document's metadata without its text, except the abstract."""
    with store.read() as connection:
        row = connection.execute(select(documents).where(documents.c.id == document, within(scope))).mappings().first()
        if row is None:
            return None
        start, end = row["abstract"] or (0, 0)
        abstract = connection.scalar(_stretch(document, start, end)) if end > start else ""
    return Head(
        entry_of({column.name: row[column.name] for column in LINE}),
        abstract or "",
        tuple(from_json(Section, each) for each in row["sections"]),
        tuple(row["pages"]),
        dict(row["meta"]),
    )


def _stretch(document: str, start: int, end: int) -> Select[Any]:
    return select(func.substr(texts.c.text, start + 1, end - start)).where(texts.c.document == document)


def stretch(store: Store, document: str, scope: Scope, start: int, end: int) -> tuple[str, int] | None:
    """The text between two offsets, and the length of the whole text; None if there is no readable text."""
    length = (
        select(func.length(texts.c.text))
        .join(documents, documents.c.id == texts.c.document)
        .where(documents.c.id == document, within(scope))
    )
    with store.read() as connection:
        whole = connection.scalar(length)
        if whole is None:
            return None
        start = min(start, whole)
        return connection.scalar(_stretch(document, start, max(start, min(end, whole)))) or "", whole


def sums(store: Store, base: Base, scope: Scope) -> Sums:
    """Totals over the readable documents of a base, computed by the database."""
    many = json_length(documents.c.pages)
    paged = case((documents.c.kind.in_(PAGED_FORMATS) | (many > 1), many), else_=0)
    columns = (func.sum(paged), func.sum(documents.c.characters), func.sum(documents.c.passages), func.count())
    ready = and_(within(scope), documents.c.base == base.id, SEARCHABLE)
    grouped = select(documents.c.language, *columns).where(ready).group_by(documents.c.language)
    rows = store.rows(grouped)
    languages = {row[0]: row[4] for row in sorted(rows, key=lambda row: (-row[4], row[0] or "")) if row[0]}
    return Sums(sum(row[1] for row in rows), sum(row[2] for row in rows), sum(row[3] for row in rows), languages)


def named(name: str, entries: Sequence[Entry]) -> list[Entry]:
    """The documents that match this name; a name may match several, and a folder name matches everything below it."""
    if not name.strip():
        raise UserError("A document's name cannot be empty. `assay sources` lists them.")
    wanted = os.path.realpath(name if not name.startswith("~/") else Path.home() / name[2:])
    for fits in (
        lambda entry: entry.id == name or entry.uri in {name, wanted},
        lambda entry: Path(entry.uri).is_relative_to(wanted),
        lambda entry: entry.name == name,
        lambda entry: entry.title.casefold() == name.casefold(),
    ):
        found = [entry for entry in entries if fits(entry)]
        if found:
            return found
    raise UserError(f"There is no document called {name!r}. `assay sources` lists them.")
