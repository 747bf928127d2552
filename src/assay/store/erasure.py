"""Permanent erasure in the store: documents with every payload that may contain their text, and a person's data.
Each is one transaction: a crash inside it erases nothing, and afterwards marks record the remaining work."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from sqlalchemy import Connection, delete, func, or_, select, update

from assay.core.access import Base, Principal
from assay.core.codec import dumps
from assay.core.events import WORKSPACE, Answered, AwaitingReview, Erased
from assay.core.events.upgrade import stored_kinds
from assay.core.types import UPLOAD
from assay.store import documents
from assay.store.access import offers, rights
from assay.store.database import Store
from assay.store.dialect import among, insert_or_replace, parts
from assay.store.documents import Entry
from assay.store.runs import records, visibility
from assay.store.runs.reviews import ReviewState, supersede
from assay.store.runs.seals import Sign
from assay.store.runs.visibility import ERASED
from assay.store.schema import (
    SAME_RECORD,
    backups,
    facts,
    forecasts,
    grants,
    job_files,
    jobs,
    keys,
    members,
    mentions,
    payloads,
    reviews,
    runs,
    sessions,
    spending,
    threads,
    turns,
    underway,
)
from assay.store.schema import records as recorded

ORIGINAL, UNFINISHED = "erase ", "erasing"  # fact names: originals still to be deleted; pending work
NOBODY = "erased:"  # prefix of a pseudonym that replaces a name, followed by a unique suffix
# Records of the workspace that name people
NAMING = ("Granted", "AccountChanged", "SettingChanged", "FeedbackGiven", "DocumentEdited", "DocumentMarked")


@dataclass(frozen=True, slots=True)
class Backup:
    """A copy of the workspace elsewhere, with the contents at the time it was made."""

    path: str
    at: str


def erase_documents(
    connection: Connection, store: Store, base: Base, entries: Sequence[Entry], why: str, by: str, sign: Sign
) -> int:
    """Erase documents, their text, and in every run that mentions one, all payloads from the first mention on.
    Returns the number of payloads. The index and the stored originals are deleted later; marks for that are written
    here."""
    ids = [entry.id for entry in entries]
    places_by_run = records_mentioning(connection, ids)
    for run, places in _answers_naming(connection, base, {entry.uri for entry in entries}).items():
        places_by_run[run] = tuple(sorted({*places_by_run.get(run, ()), *places}))
    count = erase_payloads(connection, store, places_by_run, ids, why, by, sign)
    _forget_reports(connection, base, {entry.uri for entry in entries})
    open_ = select(runs.c.id).where(runs.c.id.in_(list(places_by_run)), runs.c.delivered.is_(False))
    marks = [ERASED + each for each in (*ids, *connection.scalars(open_))]
    marks += [ORIGINAL + entry.digest for entry in entries if entry.digest]
    _mark(connection, [*marks, UNFINISHED])
    documents.drop(connection, ids, base.id)
    return count


def records_mentioning(connection: Connection, ids: Collection[str]) -> dict[str, tuple[int, ...]]:
    """For each run that mentions one of these documents, the records from the first mention on that may depend on
    it."""
    mentioned = select(mentions.c.run, mentions.c.seq).where(among(mentions.c.document, ids)).order_by(mentions.c.run)
    found = groupby(connection.execute(mentioned).all(), key=lambda row: row.run)
    closed = ((run, [row.seq for row in rows]) for run, rows in found)
    return {run: places for run, seqs in closed if (places := _after(connection, run, seqs))}


def _after(connection: Connection, run: str, closed: Iterable[int]) -> tuple[int, ...]:
    spans = visibility.spans_from(sorted(set(closed)), visibility.narrowings(connection, run))
    here = select(payloads.c.seq).where(payloads.c.run == run).order_by(payloads.c.seq)
    kept = set(connection.scalars(select(recorded.c.seq).where(recorded.c.run == run, recorded.c.kind == "Narrowed")))
    return tuple(
        seq
        for seq in connection.scalars(here)
        if seq not in kept and any(first <= seq and (last is None or seq < last) for first, last in spans)
    )


def _answers_naming(connection: Connection, base: Base, uris: Collection[str]) -> dict[str, tuple[int, ...]]:
    """Answers to readers of the base that list one of these files as unreadable."""
    readers = set(connection.scalars(select(grants.c.name).where(grants.c.label == base.id)))
    people = [Principal(row.name, frozenset(row.groups)) for row in connection.execute(select(members))]
    names = {each.id for each in people if readers & each.names}
    names |= {each.removeprefix("user:") for each in readers if each.startswith("user:")}
    mentions_source = or_(*(payloads.c.body.contains(dumps(uri), autoescape=True) for uri in sorted(uris)))
    rows = connection.execute(
        select(payloads.c.run, payloads.c.seq)
        .join(recorded, SAME_RECORD)
        .join(runs, runs.c.id == payloads.c.run)
        .where(
            recorded.c.kind.in_(stored_kinds(Answered, AwaitingReview)), runs.c.who.in_(sorted(names)), mentions_source
        )
        .order_by(payloads.c.run, payloads.c.seq)
    )
    return {run: tuple(row.seq for row in each) for run, each in groupby(rows, key=lambda row: row.run)}


def payloads_of(connection: Connection, run_ids: Collection[str]) -> dict[str, tuple[int, ...]]:
    """The records of these runs that have their payload, by run."""
    kept = select(payloads.c.run, payloads.c.seq).where(among(payloads.c.run, run_ids)).order_by("run", "seq")
    rows = groupby(connection.execute(kept), key=lambda row: row.run)
    return {run: tuple(row.seq for row in each) for run, each in rows}


def erase_payloads(
    connection: Connection,
    store: Store,
    places_by_run: Mapping[str, Sequence[int]],
    gone: Sequence[str],
    why: str,
    by: str,
    sign: Sign,
) -> int:
    """Delete the payloads of these records and record exactly that in the same transaction, with feedback on these runs and
    corrections of these documents. Returns their number."""
    if notes := notes_about(connection, places_by_run, gone):
        places_by_run = {**places_by_run, WORKSPACE: tuple(sorted({*places_by_run.get(WORKSPACE, ()), *notes}))}
    for run, places in places_by_run.items():
        for part in parts(places):
            connection.execute(delete(payloads).where(payloads.c.run == run, payloads.c.seq.in_(part)))
    if gone or places_by_run:
        erased_places = {run: tuple(places) for run, places in places_by_run.items()}
        records.note_erased(connection, store, Erased(why, by, tuple(gone), erased_places), sign)
    _forget_reviews(connection, places_by_run)
    return sum(map(len, places_by_run.values()))


def notes_about(connection: Connection, runs: Collection[str], documents: Collection[str]) -> tuple[int, ...]:
    """Records of the workspace whose words are about one of these runs or documents: feedback, and corrections."""
    rows = connection.execute(
        select(payloads.c.seq, payloads.c.body)
        .join(recorded, SAME_RECORD)
        .where(payloads.c.run == WORKSPACE, recorded.c.kind.in_(("FeedbackGiven", "DocumentEdited", "DocumentMarked")))
        .order_by(payloads.c.seq)
    )
    about = ((row.seq, json.loads(row.body)) for row in rows)
    return tuple(seq for seq, body in about if body.get("run") in runs or body.get("what") in documents)


def _forget_reviews(connection: Connection, places_by_run: Mapping[str, Sequence[int]]) -> None:
    """Delete review comments, which may quote the answer; an erased answer no longer waits for review."""
    own_reviews = among(reviews.c.run, places_by_run)
    connection.execute(update(reviews).where(own_reviews).values(note="", reasons=[]))
    last = select(recorded.c.run, func.max(recorded.c.seq).label("seq")).group_by(recorded.c.run)
    own = (among(recorded.c.run, places_by_run), recorded.c.kind.in_(stored_kinds(AwaitingReview)))
    supersede(
        connection, [row.run for row in connection.execute(last.where(*own)) if row.seq in places_by_run[row.run]]
    )
    over = reviews.c.state.in_((ReviewState.superseded, ReviewState.delivered, ReviewState.rejected))
    connection.execute(update(reviews).where(own_reviews, over).values(seal=""))  # a digest of what the answer said


def _forget_reports(connection: Connection, base: Base, uris: Collection[str]) -> None:
    """Upload reports contain document titles: the reports stay, without their content."""
    names = [uri.removeprefix(UPLOAD) for uri in uris if uri.startswith(UPLOAD)]
    rows = connection.execute(
        select(job_files.c.job, job_files.c.n, jobs.c.who, jobs.c.groups)
        .join(jobs, jobs.c.id == job_files.c.job)
        .where(among(job_files.c.name, names), jobs.c.base == base.name)
    ).all()
    for row in rows:
        if Principal(row.who, frozenset(row.groups)).owns(base):
            one = (job_files.c.job == row.job) & (job_files.c.n == row.n)
            connection.execute(update(job_files).where(one).values(name="erased", report={}))


def erase_person(connection: Connection, store: Store, name: str, why: str, by: str, sign: Sign) -> int:
    """Erase a person's questions and answers, conversations, keys, sessions and jobs. Spending and the existence of
    runs are kept under a pseudonym. What they own is not touched here."""
    own = list(connection.scalars(select(runs.c.id).where(runs.c.who == name)))
    recorded_rights = rights.recorded(connection)
    places_by_run = payloads_of(connection, own)
    if access_notes := _access_notes(connection, name):
        places_by_run[WORKSPACE] = access_notes
    count = erase_payloads(connection, store, places_by_run, (), why, by, sign)
    supersede(connection, own)
    nobody = NOBODY + store.new_id()
    _mark(connection, [*(ERASED + run for run in own), UNFINISHED])
    connection.execute(delete(turns).where(turns.c.thread.in_(select(threads.c.id).where(threads.c.who == name))))
    connection.execute(delete(turns).where(among(turns.c.run, own)))
    own_threads = select(threads.c.id).where(threads.c.who == name)
    connection.execute(delete(grants).where(grants.c.label.in_(own_threads)))
    for table in (threads, keys, sessions, underway):
        connection.execute(delete(table).where(table.c.who == name))
    connection.execute(delete(jobs).where(jobs.c.who == name))
    for table in (runs, spending, reviews, forecasts):
        connection.execute(update(table).where(table.c.who == name).values(who=nobody))
    connection.execute(update(reviews).where(reviews.c.by == name).values(by=nobody, note=""))
    connection.execute(delete(grants).where(grants.c.name == f"user:{name}"))
    offers.forget_person(connection, name)
    connection.execute(delete(members).where(members.c.name == name))
    others = {each: given for each, given in recorded_rights.given.items() if each[1] != f"user:{name}"}
    people = {each: member for each, member in recorded_rights.members.items() if each != name}
    left = rights.Rights(others, people, places=recorded_rights.places)
    rights.note_again(connection, store, left, nobody)  # what this person gave to others
    return count


def _access_notes(connection: Connection, name: str) -> tuple[int, ...]:
    """Records of access granted to a person or by them, of changes to their account, and of settings that name them or that
    they changed."""
    mentions_person = or_(
        payloads.c.body.contains(f'"detail":{dumps(name)}', autoescape=True),
        payloads.c.body.contains(f'"name":{dumps(f"user:{name}")}', autoescape=True),
        payloads.c.body.contains(f'"by":{dumps(name)}', autoescape=True),
        *(payloads.c.body.contains(f"user:{name}{end}", autoescape=True) for end in (",", " ", '"')),  # as a reviewer
    )
    rows = (
        select(payloads.c.seq)
        .join(recorded, SAME_RECORD)
        .where(payloads.c.run == WORKSPACE, recorded.c.kind.in_(NAMING), mentions_person)
    )
    return tuple(sorted(connection.scalars(rows)))


# Work that remains outside the store


def is_unfinished(store: Store) -> bool:
    """Whether something was erased but may still be present in files."""
    return store.scalar(select(facts.c.name).where(facts.c.name == UNFINISHED)) is not None


def originals_to_delete(store: Store) -> set[str]:
    """Digests of originals marked for deletion; only those that no document refers to are deleted."""
    found = store.scalars(select(facts.c.name).where(facts.c.name.startswith(ORIGINAL)))
    return {name.removeprefix(ORIGINAL) for name in found}


def mark_originals_deleted(store: Store, digests: Collection[str]) -> None:
    store.execute(delete(facts).where(among(facts.c.name, [ORIGINAL + each for each in digests])))


def mark_finished(store: Store) -> None:
    store.execute(delete(facts).where(facts.c.name == UNFINISHED))


def list_backups(store: Store) -> tuple[Backup, ...]:
    """Copies of the workspace made with `assay backup`, newest first."""
    return tuple(Backup(row.path, row.at) for row in store.rows(select(backups).order_by(backups.c.at.desc())))


def add_backup(store: Store, path: str) -> None:
    """Note that a copy of the workspace exists elsewhere."""
    store.execute(insert_or_replace(backups).values(path=path, at=store.now()))


def forget_backup(store: Store, path: str) -> None:
    store.execute(delete(backups).where(backups.c.path == path))


def _mark(connection: Connection, names: Sequence[str]) -> None:
    rows = [{"name": name, "value": ""} for name in names]
    connection.execute(insert_or_replace(facts), rows)
