"""Conversations: a thread belongs to a user and is a list of turns, each a run. Threads of other users are
invisible."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from sqlalchemy import Connection, and_, bindparam, delete, func, insert, or_, select, update

from assay.core.access import Principal
from assay.core.errors import Missing, UserError
from assay.core.events import Granted
from assay.core.printable import clean_text
from assay.store.access import offers
from assay.store.database import Store
from assay.store.dialect import insert_new
from assay.store.runs.records import note
from assay.store.schema import grants, runs, threads
from assay.store.schema import turns as turns_table

LONGEST_TITLE = 80
SHORTEST_NAME = 4  # the minimum length of an id prefix, which must be unique

# All access to threads goes through this: restricted to one user.
_TURNS = select(func.count()).where(turns_table.c.thread == threads.c.id).scalar_subquery()
_THREADS = select(threads, _TURNS.label("turns")).where(threads.c.who == bindparam("person"))


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation summary. `updated` is when its last turn began, `turns` their number."""

    id: str
    who: str
    title: str
    created: str
    updated: str
    turns: int = 0


def begin(store: Store, who: str, title: str) -> Thread:
    """Create a thread without turns; its title is the first question, on one line."""
    now = store.now()
    thread = Thread("t" + store.new_id(), who, one_line(title), now, now)
    row = {"id": thread.id, "who": who, "title": thread.title, "created": now, "updated": now}
    store.execute(insert(threads).values(row))
    return thread


def add(store: Store, thread: str, who: str, run: str) -> int:
    """Append the run as the next turn and return its number, from 1. Concurrent calls lose no turn and never reuse a
    number; a run that is already a turn of this thread keeps its number."""
    with store.write() as connection:
        found = _named(connection, thread, who)
        if connection.scalar(select(runs.c.id).where(runs.c.id == run, runs.c.who == who)) is None:
            raise Missing(f"There is no run called {run!r}. `assay runs` lists them.")
        of_thread = turns_table.c.thread == found.id
        taken = connection.scalar(select(turns_table.c.n).where(of_thread, turns_table.c.run == run))
        if taken is not None:
            return taken
        n = (connection.scalar(select(func.max(turns_table.c.n)).where(of_thread)) or 0) + 1
        connection.execute(insert(turns_table).values(thread=found.id, n=n, run=run))
        connection.execute(update(threads).where(threads.c.id == found.id).values(updated=store.now()))
        return n


def listing(store: Store, who: str, limit: int = 50) -> list[Thread]:
    """A user's threads, most recently used first."""
    newest = _THREADS.order_by(threads.c.updated.desc(), threads.c.created.desc(), threads.c.id).limit(limit)
    return [Thread(**row) for row in store.mappings(newest, {"person": who})]


def page(store: Store, who: str, after: str = "", limit: int = 50, words: str = "") -> tuple[list[Thread], str]:
    """The same after this cursor, only those whose titles contain all these words; and the next cursor, empty at the
    end. A thread used meanwhile moves to the top and is not listed twice."""
    updated, _, thread = after.partition(PLACE)
    older = or_(threads.c.updated < updated, and_(threads.c.updated == updated, threads.c.id > thread))
    newest = (_THREADS.where(older) if after else _THREADS).order_by(threads.c.updated.desc(), threads.c.id)
    sought = words.casefold().split()
    with store.read() as connection:
        rows = connection.execute(newest if sought else newest.limit(limit + 1), {"person": who}).mappings()
        # Compared in Python, since the database folds case for ASCII only.
        fitting = (row for row in rows if all(word in row["title"].casefold() for word in sought))
        found = [Thread(**row) for row in islice(fitting, limit + 1)]
    more = found[limit - 1] if len(found) > limit else None
    return found[:limit], f"{more.updated}{PLACE}{more.id}" if more else ""


PLACE = "~"  # separates time and id in a cursor


def named(store: Store, thread: str, who: str) -> Thread:
    """The user's thread with that id; a prefix suffices if it is unique among their threads."""
    with store.read() as connection:
        return _named(connection, thread, who)


def turns(store: Store, thread: str, who: str) -> list[str]:
    """The runs of a thread, in order."""
    with store.read() as connection:
        found = _named(connection, thread, who)
        in_order = select(turns_table.c.run).where(turns_table.c.thread == found.id).order_by(turns_table.c.n)
        return list(connection.scalars(in_order))


def rename(store: Store, thread: str, who: str, title: str) -> None:
    """Change the title; this does not affect the order of threads."""
    title = one_line(title)
    if not title:
        raise UserError("The title of a thread cannot be empty.")
    with store.write() as connection:
        found = _named(connection, thread, who)
        connection.execute(update(threads).where(threads.c.id == found.id).values(title=title))


def forget(store: Store, thread: str, who: str) -> None:
    """Delete the thread; its runs and their records stay."""
    with store.write() as connection:
        found = _named(connection, thread, who)
        connection.execute(delete(turns_table).where(turns_table.c.thread == found.id))
        connection.execute(delete(grants).where(grants.c.label == found.id))
        offers.forget_base(connection, found.id)
        connection.execute(delete(threads).where(threads.c.id == found.id))


# Sharing: a grant on the thread's own label. What a reader sees of it is decided by what they may read of its documents.


def set_shared(store: Store, thread: str, who: str, name: str, may: bool) -> None:
    """Let a user (`user:…`) or a group (`group:…`) read a thread of this user's, or no longer."""
    with store.write() as connection:
        found = _named(connection, thread, who)
        own = (grants.c.label == found.id) & (grants.c.name == name)
        change = insert_new(grants).values(label=found.id, name=name) if may else delete(grants).where(own)
        if connection.execute(change).rowcount:
            note(connection, store, Granted(found.id, name, may, who))
        if may:
            offers.accept_if_operators(connection, found.id, [name], who)


def readers(store: Store, thread: str, who: str) -> list[str]:
    """Who else may read a thread of this user's."""
    with store.read() as connection:
        found = _named(connection, thread, who)
        return list(connection.scalars(select(grants.c.name).where(grants.c.label == found.id).order_by(grants.c.name)))


def shared_with(store: Store, principal: Principal) -> tuple[list[Thread], list[tuple[Thread, bool]]]:
    """Threads of others that this user has accepted, most recently used first; and those that are only offered, with whether
    they were declined."""
    granted = select(grants.c.label).where(grants.c.name.in_(sorted(principal.names)))
    shared = select(threads, _TURNS.label("turns")).where(threads.c.id.in_(granted), threads.c.who != principal.id)
    with store.read() as connection:
        rows = connection.execute(shared.order_by(threads.c.updated.desc(), threads.c.id)).mappings().all()
        said = offers.answers(connection, principal)
    found = [Thread(**row) for row in rows]
    return [each for each in found if said.get(each.id)], [
        (each, each.id in said) for each in found if not said.get(each.id)
    ]


def answer_offer(store: Store, principal: Principal, thread: str, accepted: bool) -> None:
    """Accept a thread that somebody shares; or decline it, or leave it."""
    mine, offered = shared_with(store, principal)
    if thread not in {each.id for each in (*mine, *(each for each, _ in offered))}:
        raise Missing(f"There is no thread called {thread!r} that is shared with you.")
    with store.write() as connection:
        offers.record(connection, thread, f"user:{principal.id}", accepted)


def one_line(words: str) -> str:
    """A text as a title: one line, no invisible characters, and shortened for lists."""
    plain = " ".join(clean_text(words).split())
    return plain if len(plain) <= LONGEST_TITLE else plain[: LONGEST_TITLE - 1].rstrip() + "…"


def _named(connection: Connection, thread: str, who: str) -> Thread:
    # Compared exactly, not with LIKE, which ignores case and treats % as a wildcard.
    begins = func.substr(threads.c.id, 1, len(thread)) == thread
    fits = begins if len(thread) >= SHORTEST_NAME else threads.c.id == thread
    found = [Thread(**row) for row in connection.execute(_THREADS.where(fits), {"person": who}).mappings()]
    exact = [each for each in found if each.id == thread] or found
    if not exact:
        raise Missing(f"There is no thread called {thread!r}. `assay chat --list` shows them.")
    if len(exact) > 1:
        raise UserError(f"Several threads begin with {thread!r}. Give more of the id; `assay chat --list` shows them.")
    return exact[0]
