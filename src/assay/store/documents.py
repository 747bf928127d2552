"""Documents: what was read, with which result, and the only copy of their text. Reads take a `Scope`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from typing import Any

from sqlalchemy import Column, ColumnElement, Select, and_, bindparam, case, delete, func, insert, or_, select, update
from sqlalchemy.engine import Connection, RowMapping
from sqlalchemy.types import JSON, Text

from assay.core.access import Base, Scope
from assay.core.codec import Texts, dumps, from_json, to_json
from assay.core.events import DocumentEdited, DocumentMarked
from assay.core.formats import format_named
from assay.core.identity import KIND, ORGANISATION, PERIOD, describe, identified_title
from assay.core.types import Document, Evidence, Figure, Section, Table, file_name, names_inside, page_at
from assay.store import fetched, place_lists
from assay.store.database import Store
from assay.store.dialect import Prepared, among, insert_new, one_of
from assay.store.runs import records
from assay.store.runs.visibility import READABLE, readable_values, within
from assay.store.schema import bases, documents, leftovers, tables, texts
from assay.tables.labels import TableLabels, passage_context, table_labels

BLOCK = 4096  # bytes that the smallest file takes on a disk
PENDING, READY, UNREADABLE, REPLACED = "pending", "ready", "unreadable", "replaced"
SCANNED = "scanned"  # the status of a file whose bytes are kept, though there is no text in it: OCR may read it
OFF = "off"  # what people are told of a document that is off, whatever its state


@dataclass(frozen=True, slots=True)
class Entry:
    """A document without its text, as in a listing."""

    id: str
    base: str
    label: str
    uri: str
    state: str
    status: str
    why: str
    digest: str
    parser: str
    recipe: str
    bytes: int
    title: str
    authors: tuple[str, ...]
    date: str | None
    kind: str
    language: str | None
    pages: int
    characters: int
    passages: int
    added: str
    warnings: tuple[str, ...]
    meta: Mapping[str, str] = field(default_factory=dict)
    off: bool = False  # switched off: kept, but not searched
    tags: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """Organisation, kind of document and period, as far as they are known."""
        return describe(self.meta)

    @property
    def identity(self) -> dict[str, str]:
        """Organisation, kind of document and period, without those that are unknown."""
        return {key: self.meta[key] for key in (ORGANISATION, KIND, PERIOD) if self.meta.get(key)}

    @property
    def standing(self) -> str:
        """Its state as people are told."""
        return OFF if self.off else self.state

    @property
    def name(self) -> str:
        """The display name: the file name."""
        return file_name(self.uri)


@dataclass(frozen=True, slots=True)
class Traits:
    """What filters know of a document."""

    id: str
    base: str
    uri: str
    title: str
    authors: Sequence[str]
    date: str | None
    kind: str
    meta: Mapping[str, str]
    tags: Sequence[str]


LINE = [column for column in documents.c if column.name not in {"sections", "abstract"}]


def entry_of(row: RowMapping | Mapping[str, Any]) -> Entry:
    values: dict[str, Any] = {str(name): value for name, value in row.items()}
    values |= {name: tuple(values[name]) for name in ("authors", "warnings", "tags")}
    paged = format_named(values["kind"]).paged or len(values["pages"]) > 1
    values |= {"pages": len(values["pages"]) if paged else 0, "meta": values["meta"] or {}, "off": bool(values["off"])}
    return Entry(**values)


SEARCHABLE = and_(documents.c.state == READY, documents.c.off.is_(False))


def listing(store: Store, scope: Scope, *states: str) -> list[Entry]:
    """Documents in these states, off or not, by location. Default: those that are searched."""
    wanted = documents.c.state.in_(states) if states else SEARCHABLE
    return entries_of(store, select(*LINE).where(within(scope), wanted).order_by(documents.c.uri))


# Built once: every step of a run looks documents up.
_NAMED = and_(one_of(documents.c.id, bindparam("wanted", type_=Text)), READABLE)
_WANTED = and_(_NAMED, SEARCHABLE)
_ENTRIES = Prepared(select(*LINE).where(_WANTED).order_by(documents.c.uri))
_TITLES = Prepared(select(documents.c.id, documents.c.title).where(_WANTED))
_IDENTITIES = Prepared(select(documents.c.id, documents.c.title, documents.c.uri, documents.c.meta).where(_WANTED))
_DATES = Prepared(select(documents.c.id, documents.c.date).where(_NAMED))
_STATE = Prepared(select(func.count(), func.max(documents.c.added)).where(READABLE, SEARCHABLE))
_OFF = Prepared(
    select(documents.c.id)
    .where(READABLE, documents.c.state == READY, documents.c.off.is_(True))
    .order_by(documents.c.id)
)


_TRAITS_OF = [documents.c[each.name] for each in fields(Traits)]
_TRAITS = Prepared(select(*_TRAITS_OF).where(READABLE, SEARCHABLE).order_by(documents.c.id))


def traits(store: Store, scope: Scope) -> list[Traits]:
    """What filters know of each searchable document that the user may read now."""
    with store.read() as connection:
        rows = _TRAITS.all(connection, **readable_values(scope))
    return [Traits(**_values(_TRAITS_OF, row)) for row in rows]


def _found(store: Store, statement: Prepared, ids: Iterable[str], scope: Scope) -> list[tuple[Any, ...]]:
    """What a statement says of those of these documents that the user may read now."""
    with store.read() as connection:
        return statement.all(connection, wanted=dumps(sorted(set(ids))), **readable_values(scope))


def entries(store: Store, ids: Iterable[str], scope: Scope) -> dict[str, Entry]:
    """The entries of those of these documents that the user may read now and that are searchable."""
    found = (entry_of(_values(LINE, row)) for row in _found(store, _ENTRIES, ids, scope))
    return {entry.id: entry for entry in found}


def titles(store: Store, ids: Iterable[str], scope: Scope) -> dict[str, str]:
    """Their titles."""
    return dict(_found(store, _TITLES, ids, scope))


def quoted_pages(store: Store, evidence: Sequence[Evidence], scope: Scope) -> dict[str, int]:
    """The page on which each quotation begins, by the key of its evidence; nothing for formats without pages. The passage
    may begin on an earlier page."""
    if not any(each.passage.page for each in evidence):
        return {}
    quoted = among(documents.c.id, {each.quote.doc_id for each in evidence})
    rows = store.rows(select(documents.c.id, documents.c.kind, documents.c.pages).where(quoted, within(scope)))
    found = {row.id: row for row in rows}
    pages = {
        each.key: page_at(row.pages, row.kind, each.quote.start)
        for each in evidence
        if (row := found.get(each.quote.doc_id)) is not None
    }
    return {key: page for key, page in pages.items() if page is not None}


def identified_titles(store: Store, ids: Iterable[str], scope: Scope) -> dict[str, str]:
    """The same, with file name, organisation, kind and period: for prompts and checks."""
    rows = _found(store, _IDENTITIES, ids, scope)
    return {id: identified_title(title, uri, _value(documents.c.meta, meta)) for id, title, uri, meta in rows}


def state_of(store: Store, scope: Scope) -> tuple[object, ...]:
    """A value that changes when searchable documents are added, replaced, removed or switched, or access to one changes."""
    with store.read() as connection:
        [(count, newest)] = _STATE.all(connection, **readable_values(scope))
        off = _OFF.all(connection, **readable_values(scope))
    return count, newest or "", tuple(off)


def identities(store: Store, scope: Scope) -> dict[str, tuple[str, Mapping[str, str]]]:
    """Location and additional metadata of each searchable document that the user may read now, by document."""
    query = select(documents.c.id, documents.c.uri, documents.c.meta).where(within(scope), SEARCHABLE)
    return {row.id: (row.uri, row.meta) for row in store.rows(query)}


def labels_of_tables(
    store: Store, scope: Scope, only: Sequence[str] | None = None, most: int = 1000
) -> dict[str, list[TableLabels]]:
    """What the tables of searchable documents that the user may read now are known by: of `only` these, or of up to `most`."""
    query = (
        select(tables.c.document, tables.c.labels)
        .join(documents, documents.c.id == tables.c.document)
        .where(within(scope), SEARCHABLE, tables.c.labels.is_not(None))
        .order_by(documents.c.id)
        .limit(most)
    )
    rows = store.rows(query if only is None else query.where(documents.c.id.in_(only)))
    return {
        document: [TableLabels(start, end, caption, tuple(labels)) for start, end, caption, labels in listed]
        for document, listed in rows
    }


def has_figures(store: Store, scope: Scope) -> bool:
    """Whether a searchable document that the user may read now has a figure that can be shown."""
    query = (
        select(documents.c.id)
        .join(tables, tables.c.document == documents.c.id)
        .where(within(scope), SEARCHABLE, tables.c.figures.is_not(None), documents.c.kind.in_(("pdf", "picture")))
        .limit(1)
    )
    return bool(store.rows(query))


def entries_of(store: Store, query: Select[Any]) -> list[Entry]:
    return [entry_of(row) for row in store.mappings(query)]


def dates(store: Store, ids: Iterable[str], scope: Scope) -> dict[str, str]:
    """The dates of those of these documents that the user may read now and that have one."""
    return {id: date for id, date in _found(store, _DATES, ids, scope) if date}


# Built once: every step that checks claims fetches the cited documents.
_WHOLE = "id base uri digest title authors date abstract sections pages kind language meta"
_WHOLE_COLUMNS = (
    *(documents.c[name] for name in _WHOLE.split()), texts.c.text, texts.c.scan, tables.c.body, tables.c.figures
)  # fmt: skip
_WHOLE_ONES = Prepared(
    select(*_WHOLE_COLUMNS)
    .join(texts, texts.c.document == documents.c.id)
    .outerjoin(tables, tables.c.document == documents.c.id)
    .where(_NAMED)
)


def get(store: Store, document: str, scope: Scope) -> Document | None:
    """A document with its text, including replaced versions, so that old citations still resolve."""
    return get_all(store, [document], scope).get(document)


def get_all(store: Store, ids: Iterable[str], scope: Scope) -> dict[str, Document]:
    """Those of these documents that the user may read now, with their texts."""
    rows = _found(store, _WHOLE_ONES, ids, scope)
    return {row[0]: _document(_values(_WHOLE_COLUMNS, row)) for row in rows}


def _values(columns: Sequence[Column[Any]], row: Sequence[Any]) -> dict[str, Any]:
    return {of.name: _value(of, each) for of, each in zip(columns, row, strict=True)}


def _value(column: ColumnElement[Any], value: Any) -> Any:
    """The value of a column as the driver gives it: some drivers leave JSON as text."""
    return json.loads(value) if isinstance(column.type, JSON) and isinstance(value, str) else value


def _document(row: Mapping[str, Any]) -> Document:
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in row.items() if name != "body"
    }
    values["sections"] = tuple(from_json(Section, each) for each in row["sections"])
    values["abstract"] = values["abstract"] or None
    tables = (Table(start, end, tuple(columns), *rest) for start, end, columns, *rest in row["body"] or ())
    values["figures"] = from_json(tuple[Figure, ...], row["figures"] or [])
    return Document(**values, tables=tuple(tables))  # the tables of older documents have no period


def texts_for(store: Store, scope: Scope) -> Texts:
    """How records get document text back: from the documents this user may read; empty for all others."""
    known: dict[str, Document | None] = {}

    def words(document: str, start: int, end: int) -> tuple[str, str, str]:
        if document not in known:
            known[document] = get(store, document, scope)
        found = known[document]
        if found is None:
            return "", "", ""
        heading = found.heading_at(start)
        return found.text[start:end], heading, passage_context(found, start, end, heading)

    return words


def versions(store: Store, base: Base, uris: Iterable[str]) -> list[Entry]:
    """All documents ever stored at these locations, including replaced ones."""
    return entries_of(store, select(*LINE).where(documents.c.base == base.id, among(documents.c.uri, uris)))


def all_of(store: Store, base: Base) -> list[Entry]:
    """All documents of a base in any state: for removal."""
    return entries_of(store, select(*LINE).where(documents.c.base == base.id))


def ids_of_owner(store: Store, owner: str) -> set[str]:
    """All documents in the bases of an owner, in any state."""
    own = select(bases.c.id).where(bases.c.owner == owner)
    return set(store.scalars(select(documents.c.id).where(documents.c.base.in_(own))))


def restricted_texts(store: Store, base: Base) -> Iterator[tuple[str, str, str, str]]:
    """Id, label, location and text of each document that not all readers of its base may read."""
    with store.read() as connection:
        everybody = set(place_lists.names_on(connection, base.id))
        labels = connection.scalars(select(documents.c.label).where(documents.c.base == base.id).distinct()).all()
        narrower = [each for each in labels if not everybody <= set(place_lists.names_on(connection, each))]
        here = (among(documents.c.label, narrower), documents.c.state.in_((READY, PENDING)))
        columns = documents.c.id, documents.c.label, documents.c.uri, texts.c.text
        found = select(*columns).join(texts, texts.c.document == documents.c.id).where(*here)
        yield from (tuple(row) for row in connection.execute(found) if narrower)


def digests_in_use(store: Store, digests: Iterable[str]) -> set[str]:
    """Those digests that some document still refers to."""
    return set(store.scalars(select(documents.c.digest).where(among(documents.c.digest, digests))))


def stored_originals(store: Store) -> list[tuple[str, str]]:
    """Location and digest of each document whose original is stored; of files that could not be read none is."""
    kept = (documents.c.state != UNREADABLE, documents.c.digest != "")
    rows = store.rows(select(documents.c.uri, documents.c.digest).where(*kept).order_by(documents.c.uri))
    return [(row.uri, row.digest) for row in rows]


# Writes, under the base's lock: from ingestion and from removal.


_HERE = and_(documents.c.base == bindparam("of"), documents.c.uri == bindparam("place"))
_ALIKE = and_(documents.c.base == bindparam("of"), documents.c.digest == bindparam("content"))
_NEWEST_FIRST = documents.c.added.desc(), documents.c.id.desc()
_AT = Prepared(select(*LINE).where(_HERE, documents.c.state != REPLACED).order_by(*_NEWEST_FIRST))
_TWINS = Prepared(select(*LINE).where(_ALIKE, or_(documents.c.state == READY, documents.c.state == PENDING)))
_SAME = Prepared(select(documents.c.id).where(_HERE, _ALIKE))
_STATES = Prepared(select(documents.c.id, documents.c.recipe, documents.c.state).where(_HERE))
_MARKS_OF = [documents.c.off, documents.c.tags]
_MARKS = Prepared(select(*_MARKS_OF).where(_HERE, documents.c.state != UNREADABLE).order_by(*_NEWEST_FIRST).limit(1))


def _prepared_entries(store: Store, statement: Prepared, **values: str) -> list[Entry]:
    with store.read() as connection:
        return [entry_of(_values(LINE, row)) for row in statement.all(connection, **values)]


def at(store: Store, base: Base, uri: str) -> Entry | None:
    """The newest document at this location, except replaced ones; a pending one takes precedence."""
    found = _prepared_entries(store, _AT, of=base.id, place=uri)
    return next((entry for entry in found if entry.state == PENDING), found[0] if found else None)


def pending(store: Store, base: Base) -> list[Entry]:
    own = select(*LINE).where(documents.c.base == base.id, documents.c.state == PENDING)
    return entries_of(store, own.order_by(documents.c.added))


def with_digest(store: Store, base: Base, digest: str) -> list[Entry]:
    """Documents of the base with the same content, ready or pending: duplicates, or a moved file."""
    return _prepared_entries(store, _TWINS, of=base.id, content=digest)


def put_pending(
    store: Store,
    document: Document,
    *,
    parser: str,
    size: int,
    warnings: Sequence[str],
    inherited: Sequence[tuple[str, str]] = (),
) -> str:
    """Store a parsed document. From here on it will become searchable even if this process dies. Returns its label.

    inherited: see `place_lists.label_on_arrival`
    """
    row = {name: getattr(document, name) for name in ("id", "base", "uri", "digest", "kind", "abstract", "pages")}
    row |= {"sections": to_json(document.sections), "characters": len(document.text), **_about(document, warnings)}
    row |= {"state": PENDING, "status": "read", "parser": parser, "bytes": size, "added": store.now()}
    with store.write() as connection:
        inside = names_inside(document.kind, (section.title for section in document.sections))
        row["label"] = place_lists.label_on_arrival(
            connection, store, document.base, document.uri, document.digest, inside, inherited
        )
        row |= _marks_at(connection, document.base, document.uri)
        _retire(connection, document.base, document.uri, PENDING)
        connection.execute(insert(documents), row)
        connection.execute(insert(texts), {"document": document.id, "text": document.text, "scan": document.scan})
        _put_tables(connection, document)
    return row["label"]


def _put_tables(connection: Connection, document: Document) -> None:
    if not document.tables and not document.figures:
        return
    body = [astuple(each) for each in document.tables]
    labels = [(each.start, each.end, each.caption, each.labels) for each in table_labels(document)]
    drawn = {"figures": to_json(document.figures)} if document.figures else {}
    connection.execute(insert(tables).values(document=document.id, body=body, labels=labels, **drawn))


def update_pending(store: Store, document: Document, *, parser: str, warnings: Sequence[str]) -> None:
    """Store what was found out about a document that was read again with the same text; pending, as `put_pending`."""
    about = {"state": PENDING, "parser": parser, **_about(document, warnings)}
    with store.write() as connection:
        connection.execute(update(documents).where(documents.c.id == document.id).values(about))
        connection.execute(update(texts).where(texts.c.document == document.id).values(scan=document.scan))
        connection.execute(delete(tables).where(tables.c.document == document.id))
        _put_tables(connection, document)


def _about(document: Document, warnings: Sequence[str]) -> dict[str, Any]:
    """What may be found out anew about the same text."""
    known = {"title": document.title, "date": document.date, "language": document.language}
    return known | {"authors": list(document.authors), "meta": dict(document.meta), "warnings": list(warnings)}


def note_parser(store: Store, document: str, parser: str) -> None:
    store.execute(update(documents).where(documents.c.id == document).values(parser=parser))


def corrected(store: Store, base: Base, uri: str, digest: str) -> tuple[str, str | None] | None:
    """Title and date as a person last corrected them for this content at this location, whichever version it was."""
    with store.read() as connection:
        ids = [id for (id,) in _SAME.all(connection, of=base.id, place=uri, content=digest)]
        edits = records.document_edits(connection, ids) if ids else []
    return (edits[-1].title, edits[-1].date or None) if edits else None


def _marks_at(connection: Connection, base: str, uri: str) -> dict[str, Any]:
    """Whether the newest version at a location is off, and its tags: the next one takes them over."""
    last = _MARKS.first(connection, of=base, place=uri)
    return _values(_MARKS_OF, last) if last else {}


def put_unreadable(store: Store, base: Base, uri: str, *, digest: str, size: int, status: str, why: str) -> None:
    """Record a file without text. The document previously read from it is kept: a broken file does not remove its
    history."""
    row = {"id": "d" + store.new_id(), "base": base.id, "uri": uri, "digest": digest, "bytes": size}
    row |= {"state": UNREADABLE, "status": status, "why": why, "added": store.now()}
    with store.write() as connection:
        row["label"] = place_lists.label_on_arrival(connection, store, base.id, uri, digest)
        here = (documents.c.base == base.id, documents.c.uri == uri, documents.c.state == UNREADABLE)
        connection.execute(delete(documents).where(*here))
        connection.execute(insert(documents).values(row))


def labels(store: Store, ids: Sequence[str]) -> dict[str, str]:
    """The current labels of these documents, for their rows in the index."""
    rows = store.rows(select(documents.c.id, documents.c.label).where(among(documents.c.id, ids)))
    return {row.id: row.label for row in rows}


def retire(store: Store, base: Base, uri: str) -> None:
    """Retire the document at this location: its content is gone although the location still exists."""
    with store.write() as connection:
        _retire(connection, base.id, uri, READY, PENDING)


def _retire(connection: Connection, base: str, uri: str, *states: str) -> None:
    """Keep a document that was searchable as replaced, for old citations; delete one that never was."""
    rows = [row for row in _STATES.all(connection, of=base, place=uri) if row[2] in states]
    if never := [id for id, recipe, _ in rows if not recipe]:
        drop(connection, never, base)
    _replace(connection, [id for id, recipe, _ in rows if recipe], base)


def _replace(connection: Connection, ids: Sequence[str], base: str) -> None:
    if ids:
        connection.execute(update(documents).where(among(documents.c.id, ids)).values(state=REPLACED))
        _leave(connection, ids, base)


def mark_ready(store: Store, base: Base, counts: Mapping[str, int], recipe: str) -> None:
    """Mark these documents as searchable, and their predecessors as replaced, in one transaction."""
    own, former = among(documents.c.id, counts), documents.alias()
    places = select(former.c.uri).where(among(former.c.id, counts))
    here = (documents.c.base == base.id, documents.c.uri.in_(places), ~own)
    now = {"state": READY, "passages": bindparam("held"), "recipe": recipe}
    with store.write() as connection:
        connection.execute(
            update(documents).where(documents.c.id == bindparam("of")).values(now),
            [{"of": document, "held": passages} for document, passages in counts.items()],
        )
        older = connection.scalars(select(documents.c.id).where(*here, documents.c.state == READY)).all()
        _replace(connection, older, base.id)
        connection.execute(delete(documents).where(*here, documents.c.state == UNREADABLE))


def bytes_owned(store: Store, owner: str) -> int:
    """How many bytes the original files take in the knowledge bases of a person or group; small ones take a block. Versions of
    a document that were read from the same file take its bytes once."""
    size = case((documents.c.bytes < BLOCK, BLOCK), else_=documents.c.bytes)
    kept = and_(bases.c.owner == owner, or_(documents.c.state != UNREADABLE, documents.c.status == SCANNED))
    files = select(func.max(size).label("size")).join(bases, bases.c.id == documents.c.base).where(kept)
    each = files.group_by(documents.c.base, documents.c.digest).subquery()
    query = select(func.coalesce(func.sum(each.c.size), 0))
    return int(store.scalar(query) or 0)


def mark_pending(store: Store, ids: Sequence[str]) -> None:
    """Mark documents that must be split and embedded again; until then they cannot be found."""
    store.execute(update(documents).where(documents.c.id.in_(ids)).values(state=PENDING))


def correct(store: Store, document: str, title: str, date: str | None, by: str) -> None:
    """Correct the title and the date of a document, on the record; pending, since its index rows still have the old ones."""
    with store.write() as connection:
        own = documents.c.id == document
        connection.execute(update(documents).where(own).values(title=title, date=date, state=PENDING))
        records.note(connection, store, DocumentEdited(document, by, title, date or ""))


def mark(store: Store, entries: Sequence[Entry], by: str) -> None:
    """Keep which of these documents are off and their tags, on the record. It holds at once: the index knows neither."""
    kept = or_(documents.c.state == READY, documents.c.state == PENDING)
    here = and_(documents.c.base == bindparam("of"), documents.c.uri == bindparam("at"), kept)
    rows = [{"of": each.base, "at": each.uri, "switched": each.off, "tagged": list(each.tags)} for each in entries]
    with store.write() as connection:
        connection.execute(
            update(documents).where(here).values(off=bindparam("switched"), tags=bindparam("tagged")), rows
        )
        for each in entries:
            records.note(connection, store, DocumentMarked(each.id, by, each.off, each.tags))


def move(store: Store, entry: Entry, uri: str) -> str:
    """Move a document and its older versions to another location; pending, since its index rows still name the old
    one. Returns its label there."""
    with store.write() as connection:
        label = place_lists.label_after_move(connection, store, entry.base, entry.uri, uri)
        places = documents.c.uri.in_((entry.uri, uri))
        connection.execute(update(documents).where(documents.c.base == entry.base, places).values(uri=uri, label=label))
        connection.execute(update(documents).where(documents.c.id == entry.id).values(state=PENDING))
    return label


def remove(store: Store, ids: Sequence[str], base: Base) -> None:
    """Delete documents and their text; the index is cleaned up later (see `leftover`)."""
    with store.write() as connection:
        drop(connection, ids, base.id)


def drop(connection: Connection, ids: Sequence[str], base: str) -> None:
    """Delete documents with their text; the index is cleaned up later (see `leftover`)."""
    own = among(documents.c.id, ids)
    rows = connection.execute(select(documents.c.digest, documents.c.label, documents.c.uri).where(own)).all()
    place_lists.keep_for_content(connection, base, [(row.digest, row.label) for row in rows if row.label != base])
    fetched.forget_erased(connection, base, [row.uri for row in rows])
    for table in (texts, tables):
        connection.execute(delete(table).where(among(table.c.document, ids)))
    connection.execute(delete(documents).where(own))
    _leave(connection, ids, base)


def _leave(connection: Connection, ids: Sequence[str], base: str) -> None:
    if ids:
        connection.execute(insert_new(leftovers), [{"document": each, "base": base} for each in ids])


def leftover(store: Store, base: Base) -> list[str]:
    """Documents that still have rows in the index though they can no longer be read."""
    return store.scalars(select(leftovers.c.document).where(leftovers.c.base == base.id))


def swept(store: Store, ids: Sequence[str]) -> None:
    store.execute(delete(leftovers).where(among(leftovers.c.document, ids)))
