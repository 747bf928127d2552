"""An attacker who has the source, the key in the workspace, and can write the whole state: everything but the second place."""

from __future__ import annotations

import gc
import random
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool

from assay.core.codec import START, digest, linked
from assay.core.events import (
    WORKSPACE,
    Answered,
    Asked,
    AwaitingReview,
    Decision,
    Erased,
    Granted,
    Judged,
    Reviewed,
    Route,
    Routed,
    Stopped,
    StopReason,
)
from assay.core.types import Answer, Outcome
from assay.governance.audit.witness import Signer
from assay.store.database import Store
from assay.store.runs import records
from assay.store.runs.records import link
from assay.store.runs.seals import Seal


def fill(store: Store, runs: int, chance: random.Random) -> None:
    """Runs side by side, as several people have them: delivered, reviewed, unfinished; with notes on the whole workspace."""
    waiting = [(records.begin(store, "somebody"), _events(each, chance)) for each in range(runs)]
    done: dict[str, int] = {}
    while waiting:
        at = chance.randrange(len(waiting))
        run, events = waiting[at]
        records.append(store, run, done.get(run, 0), events.pop(0))
        done[run] = done.get(run, 0) + 1
        if not events:
            waiting.pop(at)
    with store.write() as connection:
        records.note(connection, store, Granted("base", "user:somebody", True, "local"))
        run = sorted(done)[0]
        connection.exec_driver_sql("DELETE FROM payloads WHERE run = ? AND seq > 0", (run,))
        gone = tuple(range(1, done[run]))
        records.note(connection, store, Erased("a document was erased", "local", ("d1",), {run: gone}))


def _events(number: int, chance: random.Random) -> list:
    answer = Answer(f"What is {number}?", (), Outcome.abstained)
    events: list = [
        Asked(f"What is {number}?", "somebody", "2026-01-01"),
        Routed(Route.research, f"because of {number}"),
    ]
    events += [Judged(False, (f"{number}.{each}",), chance.choice("abcdef")) for each in range(chance.randrange(1, 6))]
    events += [Stopped(StopReason.rounds, str(number))]
    if number % 4 == 0:
        held = AwaitingReview(answer, digest(f"seal {number}"), ("always",))
        return [*events, held, Reviewed(Decision.approve, held.seal, "reviewer-1"), Answered(answer, held.seal)]
    return events if number % 4 == 1 else [*events, Answered(answer)]


class State:
    """A copy of a workspace's state in memory: the attacker may do to it what they like, and begin anew."""

    def __init__(self, file: Path) -> None:
        self.pristine = sqlite3.connect(":memory:")
        with sqlite3.connect(file) as kept:
            kept.backup(self.pristine)
        engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
        self.store = Store(engine)
        with engine.connect() as connection:
            self.raw: sqlite3.Connection = connection.connection.driver_connection  # pyright: ignore
        self.order = self.pristine.execute("SELECT run, seq FROM records ORDER BY n").fetchall()

    def anew(self) -> None:
        self.raw.rollback()
        try:
            self.pristine.backup(self.raw)
        except sqlite3.OperationalError:  # a read that was given up half-way ends when it is collected
            gc.collect()
            self.pristine.backup(self.raw)

    def rows(self, query: str, *values: object) -> list[tuple]:
        return self.raw.execute(query, values).fetchall()

    def do(self, statement: str, *values: object) -> None:
        self.raw.execute(statement, values)
        self.raw.commit()


def rechain(state: State, signer: Signer) -> None:
    """Every digest, every link and every signature made anew, so that the state agrees with itself in all of them."""
    raw = state.raw
    for (run,) in state.rows("SELECT DISTINCT run FROM records"):
        rows = state.rows(
            "SELECT r.rowid, r.at, r.kind, r.digest, p.body, p.rowid FROM records r LEFT JOIN payloads p "
            "ON p.run = r.run AND p.seq = r.seq WHERE r.run = ? ORDER BY r.seq", run
        )  # fmt: skip
        raw.execute("UPDATE records SET seq = -1 - seq WHERE run = ?", (run,))
        raw.execute("UPDATE payloads SET seq = -1 - seq WHERE run = ?", (run,))
        prev = START
        for seq, (row, at, kind, covered, body, payload) in enumerate(rows):
            covered = digest(body) if isinstance(body, str) else covered
            hash = link(run, seq, at, kind, covered, prev)
            raw.execute(
                "UPDATE records SET seq=?, digest=?, prev=?, hash=? WHERE rowid=?", (seq, covered, prev, hash, row)
            )
            raw.execute("UPDATE payloads SET seq=? WHERE rowid=?", (seq, payload))
            prev = hash
    before = START
    rows = state.rows("SELECT rowid, hash FROM records ORDER BY n")
    raw.execute("UPDATE records SET n = -1 - n")
    for n, (row, hash) in enumerate(rows, 1):
        before = linked(n, hash, before)
        raw.execute("UPDATE records SET n=?, link=? WHERE rowid=?", (n, before, row))
    (workspace,) = state.rows("SELECT value FROM facts WHERE name = 'id'")[0]
    for n, at in state.rows("SELECT n, at FROM seals"):
        found = state.rows("SELECT link FROM records WHERE n = ?", n) or [(before,)]
        bare = Seal(workspace, n, found[0][0], at, signer.public)
        raw.execute(
            "UPDATE seals SET link=?, key=?, signature=? WHERE n=?", (bare.link, bare.key, signer.sign(bare.signed), n)
        )
    raw.commit()


# --- what may be done, each by its name: it says which record is the first bad one, and what that may be called ------------


@dataclass(frozen=True)
class Done:
    record: tuple[str, int]
    whats: frozenset[str]


def _done(record: tuple[str, int], *whats: str) -> Done:
    return Done(record, frozenset(whats))


def _any(state: State, chance: random.Random, last: bool = True) -> tuple[int, str, int]:
    """Some record: its number, run and place."""
    n = chance.randrange(1, len(state.order) + (1 if last else 0))
    return n, *state.order[n - 1]


GARBAGE = ("", "forged", "0" * 64, 7, -1, 1.5, b"\xff\xfe\x00", "\u0000", "é" * 3)
FIELDS = ("at", "kind", "digest", "prev", "hash", "link")


def change_field(state: State, chance: random.Random) -> Done:
    n, run, seq = _any(state, chance)
    field = chance.choice(FIELDS)
    value = chance.choice(GARBAGE)
    while [(value,)] == state.rows(f"SELECT {field} FROM records WHERE n = ?", n):  # a run begins on zeros: no change
        value = chance.choice(GARBAGE)
    state.do(f"UPDATE records SET {field} = ? WHERE n = ?", value, n)
    return _done((run, seq), "changed", "payload changed")


def break_text(state: State, chance: random.Random) -> Done:
    n, run, seq = _any(state, chance)
    state.do(f"UPDATE records SET {chance.choice(FIELDS)} = CAST(X'fffe41' AS TEXT) WHERE n = ?", n)
    return _done((run, seq), "changed")


def change_time(state: State, chance: random.Random) -> Done:
    n, run, seq = _any(state, chance)
    state.do("UPDATE records SET at = '2020-01-01T00:00:00.000Z' WHERE n = ?", n)
    return _done((run, seq), "changed")


def change_kind(state: State, chance: random.Random) -> Done:
    n, run, seq = _any(state, chance)
    state.do("UPDATE records SET kind = 'Critiqued' WHERE n = ?", n)
    return _done((run, seq), "changed", "cut off")


def change_payload(state: State, chance: random.Random) -> Done:
    run, seq, body = chance.choice(state.rows("SELECT run, seq, body FROM payloads ORDER BY run, seq"))
    at = chance.randrange(len(body))
    other = body[:at] + chance.choice("xyz{}\u00e9") + body[at + 1 :]
    state.do("UPDATE payloads SET body = ? WHERE run = ? AND seq = ?", other + (" " if other == body else ""), run, seq)
    return _done((run, seq), "payload changed", "changed")


def break_payload(state: State, chance: random.Random) -> Done:
    run, seq = chance.choice(state.rows("SELECT run, seq FROM payloads ORDER BY run, seq"))
    state.do("UPDATE payloads SET body = ? WHERE run = ? AND seq = ?", chance.choice((b"\xff", 3, "{", "")), run, seq)
    return _done((run, seq), "payload changed", "changed")


def remove_payload(state: State, chance: random.Random) -> Done:
    run, seq = chance.choice(state.rows("SELECT run, seq FROM payloads ORDER BY run, seq"))
    state.do("DELETE FROM payloads WHERE run = ? AND seq = ?", run, seq)
    return _done((run, seq), "payload removed")


def bring_back(state: State, chance: random.Random) -> Done:
    """Something in the place of what was erased."""
    (run,) = state.rows(
        "SELECT run FROM records WHERE kind = 'Routed' AND run NOT IN (SELECT run FROM payloads WHERE seq > 0)"
    )[0]
    seq = chance.randrange(1, sum(each == run for each, _ in state.order))
    state.do("INSERT INTO payloads (run, seq, body) VALUES (?, ?, '{}')", run, seq)
    return _done((run, seq), "payload changed", "changed")


def stray_payload(state: State, chance: random.Random) -> Done:
    _, run, _ = _any(state, chance)
    seq = 1000 + chance.randrange(9)
    state.do("INSERT INTO payloads (run, seq, body) VALUES (?, ?, '{}')", run, seq)
    return _done((run, seq), "payload inserted")


def swap_payloads(state: State, chance: random.Random) -> Done:
    rows = state.rows("SELECT run, seq, body FROM payloads ORDER BY run, seq")
    (run, a, one), (other, b, two) = chance.sample(rows, 2)
    while one == two:  # the same words in each other's place are where they were
        (run, a, one), (other, b, two) = chance.sample(rows, 2)
    state.do("UPDATE payloads SET body = ? WHERE run = ? AND seq = ?", two, run, a)
    state.do("UPDATE payloads SET body = ? WHERE run = ? AND seq = ?", one, other, b)
    first = min(((run, a), (other, b)), key=state.order.index)
    return _done(first, "payload changed", "changed", "reordered", "removed")


def remove_record(state: State, chance: random.Random) -> Done:
    n, run, seq = _any(state, chance)
    state.do("DELETE FROM records WHERE n = ?", n)
    state.do("DELETE FROM payloads WHERE run = ? AND seq = ?", run, seq)
    return _done((run, seq), "removed", "cut off", "run removed")


def cut_off(state: State, chance: random.Random) -> Done:
    n, run, seq = _any(state, chance)
    for each, place in state.order[n - 1 :]:
        state.do("DELETE FROM records WHERE run = ? AND seq = ?", each, place)
        state.do("DELETE FROM payloads WHERE run = ? AND seq = ?", each, place)
    return _done((run, seq), "cut off", "payload removed")


def remove_run(state: State, chance: random.Random) -> Done:
    run = chance.choice(sorted({run for run, _ in state.order} - {WORKSPACE}))
    for table in ("records", "payloads"):
        state.do(f"DELETE FROM {table} WHERE run = ?", run)
    state.do("DELETE FROM runs WHERE id = ?", run)
    return _done((run, 0), "run removed")


def insert_record(state: State, chance: random.Random) -> Done:
    """A record in the middle of a run: what comes after moves up, in the run and among all."""
    n, run, seq = _any(state, chance)
    rows = state.rows("SELECT rowid FROM records WHERE run = ? AND seq >= ? ORDER BY seq DESC", run, seq)
    for (row,) in rows:
        state.raw.execute("UPDATE records SET seq = seq + 1 WHERE rowid = ?", (row,))
    for (row,) in state.rows("SELECT rowid FROM payloads WHERE run = ? AND seq >= ? ORDER BY seq DESC", run, seq):
        state.raw.execute("UPDATE payloads SET seq = seq + 1 WHERE rowid = ?", (row,))
    for (row,) in state.rows("SELECT rowid FROM records WHERE n >= ? ORDER BY n DESC", n):
        state.raw.execute("UPDATE records SET n = n + 1 WHERE rowid = ?", (row,))
    body = f'{{"route":"direct","why":"forged {chance.random()}"}}'
    values = (run, seq, "2026-01-02T00:00:00.000Z", "Routed", digest(body), START, "forged", n, "forged")
    state.raw.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    state.do("INSERT INTO payloads (run, seq, body) VALUES (?, ?, ?)", run, seq, body)
    return _done((run, seq), "inserted", "changed")


def insert_run(state: State, chance: random.Random) -> Done:
    """A whole run that never was, in the middle."""
    n, _, _ = _any(state, chance)
    for (row,) in state.rows("SELECT rowid FROM records WHERE n >= ? ORDER BY n DESC", n):
        state.raw.execute("UPDATE records SET n = n + 1 WHERE rowid = ?", (row,))
    body, run = '{"question":"Forged?"}', "r" + "f" * 16
    state.raw.execute("INSERT INTO runs (id, who, started, delivered, gated) VALUES (?, 'somebody', '', 0, 0)", (run,))
    values = (run, 0, "2026-01-02T00:00:00.000Z", "Asked", digest(body), START, "forged", n, "forged")
    state.raw.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    state.do("INSERT INTO payloads (run, seq, body) VALUES (?, 0, ?)", run, body)
    return _done((run, 0), "inserted")


def append_to_delivered(state: State, chance: random.Random) -> Done:
    """After an answer nothing may follow, and this comes after the last signed head too."""
    run, seq, prev = chance.choice(state.rows("SELECT run, seq, hash FROM records WHERE kind = 'Answered' ORDER BY n"))
    body, n = "{}", len(state.order) + 1
    hash = link(run, seq + 1, "2026-01-02T00:00:00.000Z", "Routed", digest(body), prev)
    (before,) = state.rows("SELECT link FROM records WHERE n = ?", n - 1)[0]
    values = (run, seq + 1, "2026-01-02T00:00:00.000Z", "Routed", digest(body), prev, hash, n, linked(n, hash, before))
    state.raw.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    state.do("INSERT INTO payloads (run, seq, body) VALUES (?, ?, ?)", run, seq + 1, body)
    return _done((run, seq + 1), "inserted", "changed")


def swap_in_run(state: State, chance: random.Random) -> Done:
    """Two neighbours of a run change places, with all they say."""
    places = [(n, run, seq) for n, (run, seq) in enumerate(state.order, 1) if (run, seq + 1) in state.order]
    _, run, seq = chance.choice(places)
    for table in ("records", "payloads"):
        for before, after in ((seq, -1), (seq + 1, seq), (-1, seq + 1)):
            state.do(f"UPDATE {table} SET seq = ? WHERE run = ? AND seq = ?", after, run, before)
    return _done((run, seq), "reordered", "changed")


def swap_in_order(state: State, chance: random.Random) -> Done:
    """Two records change places among all of them."""
    one, two = sorted(chance.sample(range(1, len(state.order) + 1), 2))
    for before, after in ((one, -1), (two, one), (-1, two)):
        state.do("UPDATE records SET n = ? WHERE n = ?", after, before)
    return _done(state.order[one - 1], "reordered")


def renumber(state: State, chance: random.Random) -> Done:
    n, run, seq = _any(state, chance, last=False)
    state.do("UPDATE records SET n = ? WHERE n = ?", chance.choice((0, -5, 10_000)), n)
    return _done((run, seq), "reordered", "removed", "inserted", "changed", "run removed")


def undeliver(state: State, chance: random.Random) -> Done:
    (run, seq) = chance.choice(state.rows("SELECT run, seq FROM records WHERE kind = 'Answered' ORDER BY n"))
    state.do("UPDATE runs SET delivered = 0 WHERE id = ?", run)
    return _done((run, seq), "changed")


def deliver_unfinished(state: State, chance: random.Random) -> Done:
    runs = state.rows("SELECT id FROM runs WHERE delivered = 0 AND id != ? ORDER BY id", WORKSPACE)
    (run,) = chance.choice(runs)
    state.do("UPDATE runs SET delivered = 1 WHERE id = ?", run)
    return _done((run, sum(each == run for each, _ in state.order)), "cut off")


def unlist(state: State, chance: random.Random) -> Done:
    run = chance.choice(sorted({run for run, _ in state.order}))
    state.do("DELETE FROM runs WHERE id = ?", run)
    return _done((run, 0), "run removed")


def approve_afterwards(state: State, chance: random.Random) -> Done:
    """An approval that was none."""
    rows = state.rows(
        "SELECT r.run, r.seq, p.body FROM records r JOIN payloads p ON p.run = r.run AND p.seq = r.seq "
        "WHERE r.kind = 'Reviewed' ORDER BY r.n"
    )
    run, seq, body = chance.choice(rows)
    state.do("UPDATE payloads SET body = ? WHERE run = ? AND seq = ?", body.replace("approve", "reject"), run, seq)
    return _done((run, seq), "payload changed", "changed")


def change_seal(state: State, chance: random.Random) -> Done:
    field = chance.choice(("link", "at", "key", "signature"))
    state.do(f"UPDATE seals SET {field} = 'forged' WHERE n = (SELECT max(n) FROM seals)")
    return _done(("", 0), "seal")


ONCE: tuple[Callable[[State, random.Random], Done], ...] = (
    change_field, break_text, change_time, change_kind, change_payload, break_payload, remove_payload, bring_back,
    stray_payload, swap_payloads, remove_record, cut_off, remove_run, insert_record, insert_run, append_to_delivered,
    swap_in_run, swap_in_order, renumber, undeliver, deliver_unfinished, unlist, approve_afterwards, change_seal,
)  # fmt: skip
RECHAINED = (
    change_time, change_kind, change_payload, swap_payloads, remove_record, cut_off, remove_run, insert_record,
    insert_run, swap_in_run, swap_in_order, approve_afterwards,
)  # fmt: skip
