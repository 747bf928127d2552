"""Delivered answers that speak of a document that was replaced since, or that is gone: for checking them again. What was found
is remembered without words, so that an answer is looked at again only when one of its documents has changed again."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import and_, func, select

from assay.core.access import Scope
from assay.core.codec import Texts, dumps, from_json, to_json
from assay.core.events import Answered, Asked, Event, Gathered
from assay.core.events.upgrade import read_event, stored_kinds
from assay.core.run import Run
from assay.store.database import Store
from assay.store.dialect import among, insert_or_replace, parts
from assay.store.documents import READY, REPLACED, SEARCHABLE
from assay.store.runs.visibility import hidden_records, hidden_runs, within
from assay.store.schema import SAME_RECORD, documents, facts, mentions, payloads, records, runs

RECHECKED = "recheck "  # prefix of the fact how a run stood, and against which versions
BY_MODEL = "recheck by model "  # prefix of the fact what models found
TOGETHER = 200  # runs that are read at once
_NEEDED = stored_kinds(Asked, Gathered, Answered)


def speaking_of_replaced(store: Store, who: str, only: Collection[str] = ()) -> dict[str, list[str]]:
    """The delivered runs of a person that mention replaced documents, newest first, each with these documents."""
    query = (
        select(mentions.c.run, mentions.c.document)
        .distinct()
        .join(documents, documents.c.id == mentions.c.document)
        .join(runs, runs.c.id == mentions.c.run)
        .where(runs.c.who == who, runs.c.delivered.is_(True), documents.c.state == REPLACED)
        .order_by(runs.c.started.desc(), mentions.c.run, mentions.c.document)
        .add_columns(runs.c.started)
    )
    found: dict[str, list[str]] = {}
    for row in store.rows(query.where(among(mentions.c.run, only)) if only else query):
        found.setdefault(row.run, []).append(row.document)
    return found


def replaced_in(store: Store, run: str) -> list[str]:
    """The replaced documents that a run mentions."""
    query = select(mentions.c.document).distinct().join(documents, documents.c.id == mentions.c.document)
    return store.scalars(query.where(mentions.c.run == run, documents.c.state == REPLACED))


def current_versions(store: Store, ids: Collection[str], scope: Scope) -> dict[str, str]:
    """Of these documents, those that were replaced and that may be read: the version of now, or empty if there is none that
    may be read."""
    now = documents.alias("now")
    same = and_(now.c.base == documents.c.base, now.c.uri == documents.c.uri, now.c.state == READY)
    may = and_(same, now.c.label.in_(sorted(scope.labels)))
    query = select(documents.c.id, now.c.id.label("now")).outerjoin(now, may)
    rows = store.rows(query.where(among(documents.c.id, ids), documents.c.state == REPLACED, within(scope)))
    return {row.id: row.now or "" for row in rows}


def withheld(store: Store, who: str, scope: Scope) -> list[tuple[str, Asked]]:
    """The delivered runs of a person whose answer is erased or hidden in this scope, newest first, with what was asked."""
    readable = and_(documents.c.id == mentions.c.document, within(scope))
    closed = (
        select(mentions.c.run)
        .distinct()
        .join(runs, runs.c.id == mentions.c.run)
        .outerjoin(documents, readable)
        .where(runs.c.who == who, runs.c.delivered.is_(True), documents.c.id.is_(None))
    )
    with store.read_shown() as connection:
        found = list(connection.scalars(closed))
        hidden = {run for part in parts(found) for run in hidden_runs(connection, part, scope)}
        asked = (
            select(runs.c.id, payloads.c.body)
            .join(payloads, and_(payloads.c.run == runs.c.id, payloads.c.seq == 0))
            .where(among(runs.c.id, hidden))
            .order_by(runs.c.started.desc(), runs.c.id)
        )
        rows = connection.execute(asked).all()
    read = ((row.id, read_event(Asked.__name__, json.loads(row.body), texts=_no_words)) for row in rows)
    return [(run, event) for run, event in read if isinstance(event, Asked)]


def _no_words(document: str, start: int, end: int) -> tuple[str, str, str]:
    return "", "", ""


def answers(store: Store, run_ids: Sequence[str], texts: Texts, scope: Scope) -> Iterator[Run]:
    """These delivered runs, each with its question, its evidence and its answer alone; none whose answer is hidden."""
    for part in parts(run_ids, TOGETHER):
        needed = (
            select(records.c.run, records.c.seq, records.c.kind, payloads.c.body)
            .join(payloads, SAME_RECORD)
            .where(records.c.run.in_(part), records.c.kind.in_(_NEEDED))
            .order_by(records.c.run, records.c.seq)
        )
        narrowed = select(records.c.run).where(records.c.run.in_(part), records.c.kind == "Narrowed")
        with store.read_shown() as connection:
            rows = connection.execute(needed).all()
            hidden = hidden_runs(connection, part, scope)
            aside = {run: hidden_records(connection, run, scope) for run in connection.scalars(narrowed)}
        by_run: dict[str, list[Event]] = {}
        for row in rows:
            if row.run not in hidden and not (row.seq and row.run in aside and aside[row.run].covers(row.seq)):
                by_run.setdefault(row.run, []).append(read_event(row.kind, json.loads(row.body), texts=texts))
        found = {run: Run(run, tuple(events)) for run, events in by_run.items()}
        yield from (found[run] for run in part if run in found and _is_whole(found[run]))


def _is_whole(run: Run) -> bool:
    return isinstance(run.events[0], Asked) and run.answer is not None


def delivered(store: Store, who: str) -> list[tuple[str, str]]:
    """The delivered runs of a person, newest first, and when each was."""
    query = select(records.c.run, records.c.at).join(runs, runs.c.id == records.c.run)
    query = query.where(runs.c.who == who, runs.c.delivered.is_(True), records.c.kind.in_(stored_kinds(Answered)))
    return [(row.run, row.at) for row in store.rows(query.order_by(runs.c.started.desc(), runs.c.id))]


def added(store: Store, scope: Scope) -> list[tuple[str, str]]:
    """When each document that is searched was added."""
    query = select(documents.c.id, documents.c.added).where(within(scope), SEARCHABLE).order_by(documents.c.id)
    return [(row.id, row.added) for row in store.rows(query)]


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """When a model was last asked whether newer documents contradict an answer, and the runs that recorded contradictions, each
    with the claims of the answer that its own claims contradict, by index."""

    at: str = ""
    found: tuple[tuple[str, tuple[int, ...]], ...] = ()


def model_checks(store: Store, who: str, only: Collection[str] = ()) -> dict[str, ModelCheck]:
    """What models found, of the runs of a person."""
    own = runs.c.id == func.substr(facts.c.name, len(BY_MODEL) + 1)
    query = select(facts).join(runs, own).where(facts.c.name.startswith(BY_MODEL), runs.c.who == who)
    rows = store.rows(query.where(among(runs.c.id, only)) if only else query)
    return {row.name.removeprefix(BY_MODEL): from_json(ModelCheck, json.loads(row.value)) for row in rows}


def remember_model_check(store: Store, run: str, check: ModelCheck) -> None:
    store.execute(insert_or_replace(facts).values(name=BY_MODEL + run, value=dumps(to_json(check))))


def remembered(store: Store, run_ids: Collection[str]) -> dict[str, str]:
    """How runs stood when they were last looked at, and against which versions."""
    rows = store.rows(select(facts).where(among(facts.c.name, [RECHECKED + each for each in run_ids])))
    return {row.name.removeprefix(RECHECKED): row.value for row in rows}


def remember(store: Store, found: Mapping[str, str]) -> None:
    rows = [{"name": RECHECKED + run, "value": value} for run, value in found.items()]
    with store.write() as connection:
        for part in parts(rows):
            connection.execute(insert_or_replace(facts), part)
