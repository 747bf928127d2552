"""Migrations of a workspace's state from one version to the next. Each step is spelt out and does not use the
schema, since the next step starts from the tables as they were then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from sqlalchemy import Connection

from assay.core.codec import START, digest, dumps, linked
from assay.store import sqlite

Migration = Callable[[Connection], None]


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _steps(*steps: str | Migration) -> Migration:
    """A migration by statements and functions, in order."""

    def migrate(connection: Connection) -> None:
        for step in steps:
            if isinstance(step, str):
                connection.exec_driver_sql(step)
            else:
                step(connection)

    return migrate


def _number_records(connection: Connection) -> None:
    """Give every existing record its position in the chain of all records, in the order of writing, and record payloads that
    were deleted with their documents before this was recorded. From here on, a missing payload without such a record counts
    as tampering."""
    rows = connection.exec_driver_sql("SELECT * FROM records ORDER BY rowid").all()
    connection.exec_driver_sql("DROP TABLE records")
    connection.exec_driver_sql(
        """CREATE TABLE records (
            run VARCHAR NOT NULL, seq INTEGER NOT NULL, at VARCHAR NOT NULL, kind VARCHAR NOT NULL, digest VARCHAR NOT NULL,
            prev VARCHAR NOT NULL, hash VARCHAR NOT NULL, n INTEGER NOT NULL, link VARCHAR NOT NULL, PRIMARY KEY (run, seq),
            FOREIGN KEY(run) REFERENCES runs (id))"""
    )
    connection.exec_driver_sql("CREATE UNIQUE INDEX records_in_order ON records (n)")
    link = START
    for n, row in enumerate(rows, 1):
        link = linked(n, row.hash, link)
        values = (row.run, row.seq, row.at, row.kind, row.digest, row.prev, row.hash, n, link)
        connection.exec_driver_sql("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    gone: dict[str, list[int]] = {}
    for run, seq in connection.exec_driver_sql(
        "SELECT r.run, r.seq FROM records r LEFT JOIN payloads p ON p.run = r.run AND p.seq = r.seq "
        "WHERE p.run IS NULL ORDER BY r.run, r.seq"
    ):
        gone.setdefault(run, []).append(seq)
    if gone:
        body = dumps({"why": "before erasing was noted", "by": "", "gone": [], "records": gone})
        _note(connection, "Erased", body)


def _fill_lists(connection: Connection) -> None:
    """Access lists belong to locations from here on: those of the documents become those of their locations."""
    rows = connection.exec_driver_sql(
        "SELECT base, uri, label FROM documents WHERE label != base ORDER BY added, id"
    ).all()
    for base, uri, label in rows:
        values = (digest(dumps([base, uri])), base, label)
        connection.exec_driver_sql("INSERT OR REPLACE INTO lists (place, base, label) VALUES (?, ?, ?)", values)


def _note_handovers(connection: Connection) -> None:
    """Record whose runs had changed hands before that was recorded. From here on, a run that is listed under another name
    than its record's without such a record counts as tampering."""
    pairs = connection.exec_driver_sql(
        "SELECT DISTINCT json_extract(p.body, '$.who'), r.who FROM runs r JOIN payloads p ON p.run = r.id AND p.seq = 0 "
        "WHERE json_extract(p.body, '$.who') != r.who ORDER BY 1, 2"
    ).all()
    for asker, owner in pairs:
        body = dumps({"name": f"user:{asker}", "change": "handed over", "by": "", "detail": owner})
        _note(connection, "AccountChanged", body)


def _note(connection: Connection, kind: str, body: str) -> None:
    """Append a record to the workspace's own chain."""
    run, at, covered = "workspace", now(), digest(body)
    if connection.exec_driver_sql("SELECT 1 FROM runs WHERE id = ?", (run,)).first() is None:
        connection.exec_driver_sql("INSERT INTO runs (id, who, started, delivered) VALUES (?, '', ?, 0)", (run, at))
    last = connection.exec_driver_sql(
        "SELECT seq, hash FROM records WHERE run = ? ORDER BY seq DESC LIMIT 1", (run,)
    ).first()
    seq, prev = (last.seq + 1, last.hash) if last else (0, START)
    head = connection.exec_driver_sql("SELECT n, link FROM records ORDER BY n DESC LIMIT 1").first()
    n, before = (head.n + 1, head.link) if head else (1, START)
    hash = digest(dumps([run, seq, at, kind, covered, prev]))
    connection.exec_driver_sql(
        "INSERT INTO records (run, seq, at, kind, digest, prev, hash, n, link) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (run, seq, at, kind, covered, prev, hash, n, linked(n, hash, before)),
    )
    connection.exec_driver_sql("INSERT INTO payloads (run, seq, body) VALUES (?, ?, ?)", (run, seq, body))


# source version → migration to the next
MIGRATIONS: Mapping[int, Migration] = {
    1: _steps(
        """CREATE TABLE spending (
            id INTEGER NOT NULL, who VARCHAR NOT NULL, run VARCHAR NOT NULL, role VARCHAR NOT NULL, model VARCHAR NOT NULL,
            day VARCHAR NOT NULL, state VARCHAR NOT NULL, calls INTEGER NOT NULL, reserved_tokens INTEGER NOT NULL,
            reserved_money FLOAT NOT NULL, tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, money FLOAT NOT NULL,
            seconds FLOAT NOT NULL, PRIMARY KEY (id))""",
        "CREATE INDEX spending_by_run ON spending (run)",
        "CREATE INDEX spending_by_day ON spending (who, day)",
    ),
    2: _steps(
        """CREATE TABLE threads (
            id VARCHAR NOT NULL, who VARCHAR NOT NULL, title TEXT NOT NULL, created VARCHAR NOT NULL,
            updated VARCHAR NOT NULL, PRIMARY KEY (id))""",
        "CREATE INDEX threads_by_person ON threads (who, updated)",
        """CREATE TABLE turns (
            thread VARCHAR NOT NULL, n INTEGER NOT NULL, run VARCHAR NOT NULL, PRIMARY KEY (thread, n), UNIQUE (run),
            FOREIGN KEY(thread) REFERENCES threads (id), FOREIGN KEY(run) REFERENCES runs (id))""",
    ),
    3: _steps(
        """CREATE TABLE members (
            name VARCHAR NOT NULL, groups JSON NOT NULL, admin BOOLEAN NOT NULL, password TEXT NOT NULL,
            created VARCHAR NOT NULL, PRIMARY KEY (name))""",
        """CREATE TABLE keys (
            digest VARCHAR NOT NULL, id VARCHAR NOT NULL, who VARCHAR NOT NULL, label TEXT NOT NULL, created VARCHAR NOT NULL,
            used VARCHAR NOT NULL, PRIMARY KEY (digest), UNIQUE (id),
            FOREIGN KEY(who) REFERENCES members (name) ON DELETE CASCADE)""",
        """CREATE TABLE sessions (
            digest VARCHAR NOT NULL, who VARCHAR NOT NULL, csrf VARCHAR NOT NULL, created VARCHAR NOT NULL,
            expires VARCHAR NOT NULL, PRIMARY KEY (digest), FOREIGN KEY(who) REFERENCES members (name) ON DELETE CASCADE)""",
        """CREATE TABLE jobs (
            id VARCHAR NOT NULL, who VARCHAR NOT NULL, groups JSON NOT NULL, base VARCHAR NOT NULL, state VARCHAR NOT NULL,
            error TEXT NOT NULL, passages INTEGER NOT NULL, seconds FLOAT NOT NULL, created VARCHAR NOT NULL,
            updated VARCHAR NOT NULL, PRIMARY KEY (id))""",
        "CREATE INDEX documents_listed ON documents (base, state, label, added, id, passages)",
        "CREATE INDEX jobs_by_person ON jobs (who, created)",
        "CREATE INDEX jobs_by_state ON jobs (state)",
        """CREATE TABLE job_files (
            job VARCHAR NOT NULL, n INTEGER NOT NULL, name TEXT NOT NULL, bytes INTEGER NOT NULL, outcome VARCHAR NOT NULL,
            report JSON NOT NULL, PRIMARY KEY (job, n), FOREIGN KEY(job) REFERENCES jobs (id) ON DELETE CASCADE)""",
        """CREATE TABLE underway (
            run VARCHAR NOT NULL, who VARCHAR NOT NULL, groups JSON NOT NULL, PRIMARY KEY (run),
            FOREIGN KEY(run) REFERENCES runs (id))""",
        # Base names are unique per owner from here on. The table is rebuilt, since a constraint cannot be changed.
        # Documents refer to its rows, which are restored before the deferred foreign keys are checked.
        sqlite.DEFER_FOREIGN_KEYS,
        "CREATE TABLE bases_before AS SELECT * FROM bases",
        "DROP TABLE bases",
        """CREATE TABLE bases (
            id VARCHAR NOT NULL, name VARCHAR NOT NULL, owner VARCHAR NOT NULL, description TEXT NOT NULL,
            embedder VARCHAR NOT NULL, dim INTEGER NOT NULL, created VARCHAR NOT NULL, PRIMARY KEY (id),
            UNIQUE (owner, name))""",
        """INSERT INTO bases (id, name, owner, description, embedder, dim, created)
            SELECT id, name, owner, description, embedder, dim, created FROM bases_before""",
        "DROP TABLE bases_before",
    ),
    4: _steps(
        "ALTER TABLE bases ADD COLUMN review BOOLEAN NOT NULL DEFAULT '0'",
        "ALTER TABLE runs ADD COLUMN gated BOOLEAN NOT NULL DEFAULT '0'",
        "DROP TABLE heads",  # replaced by the chain over all records
        """CREATE TABLE seals (
            n INTEGER NOT NULL, link VARCHAR NOT NULL, at VARCHAR NOT NULL, key VARCHAR NOT NULL, signature VARCHAR NOT NULL,
            PRIMARY KEY (n))""",
        """CREATE TABLE reviews (
            id INTEGER NOT NULL, run VARCHAR NOT NULL, seal VARCHAR NOT NULL, who VARCHAR NOT NULL, state VARCHAR NOT NULL,
            reasons JSON NOT NULL, four_eyes BOOLEAN NOT NULL, "by" VARCHAR NOT NULL, note TEXT NOT NULL,
            created VARCHAR NOT NULL, decided VARCHAR NOT NULL, expires VARCHAR NOT NULL, notified VARCHAR NOT NULL,
            PRIMARY KEY (id), FOREIGN KEY(run) REFERENCES runs (id))""",
        "CREATE INDEX reviews_by_run ON reviews (run)",
        "CREATE INDEX mentions_by_run ON mentions (run, seq)",
        "CREATE INDEX reviews_by_state ON reviews (state, created)",
        "CREATE TABLE backups (path TEXT NOT NULL, at VARCHAR NOT NULL, PRIMARY KEY (path))",
        """CREATE TABLE forecasts (
            run VARCHAR NOT NULL, kind VARCHAR NOT NULL, who VARCHAR NOT NULL, alike VARCHAR NOT NULL,
            foreseen JSON NOT NULL, came JSON, at VARCHAR NOT NULL, PRIMARY KEY (run))""",
        "CREATE INDEX forecasts_alike ON forecasts (who, kind, alike, at)",
        "CREATE INDEX spending_of_day ON spending (day)",
        _number_records,
    ),
    5: _steps(
        """CREATE TABLE tables (
            document VARCHAR NOT NULL, body JSON NOT NULL, PRIMARY KEY (document),
            FOREIGN KEY(document) REFERENCES documents (id) ON DELETE CASCADE)"""
    ),
    6: _steps(  # access lists belong to locations from here on
        "CREATE TABLE lists (place VARCHAR NOT NULL, base VARCHAR NOT NULL, label VARCHAR NOT NULL, PRIMARY KEY (place))",
        "CREATE INDEX lists_by_base ON lists (base)",
        _fill_lists,
    ),
    7: _note_handovers,
    8: _steps(  # shares are offered from here on; those that there are count as accepted
        """CREATE TABLE acceptances (
            base VARCHAR NOT NULL, name VARCHAR NOT NULL, accepted BOOLEAN NOT NULL, PRIMARY KEY (base, name))""",
        """INSERT OR IGNORE INTO acceptances (base, name, accepted)
            SELECT b.id, g.name, 1 FROM grants g JOIN bases b ON b.id = g.label
            UNION SELECT l.base, g.name, 1 FROM grants g JOIN lists l ON l.label = g.label""",
    ),
    9: _steps(
        "ALTER TABLE underway ADD COLUMN process VARCHAR DEFAULT '' NOT NULL",
        "ALTER TABLE underway ADD COLUMN until VARCHAR DEFAULT '' NOT NULL",
    ),
    10: _steps(
        "ALTER TABLE jobs ADD COLUMN process VARCHAR DEFAULT '' NOT NULL",
        "ALTER TABLE jobs ADD COLUMN until VARCHAR DEFAULT '' NOT NULL",
        "ALTER TABLE underway ADD COLUMN stop BOOLEAN DEFAULT FALSE NOT NULL",
    ),
    11: _steps(
        "ALTER TABLE documents ADD COLUMN off BOOLEAN DEFAULT FALSE NOT NULL",
        "ALTER TABLE documents ADD COLUMN tags JSON DEFAULT '[]' NOT NULL",
        "DROP INDEX IF EXISTS documents_listed",
        "CREATE INDEX documents_listed ON documents (base, state, label, added, id, passages, off)",
        "ALTER TABLE tables ADD COLUMN labels JSON",
    ),
    12: _steps(
        """CREATE TABLE identities (
            issuer VARCHAR NOT NULL, subject VARCHAR NOT NULL, id VARCHAR NOT NULL, who VARCHAR NOT NULL,
            created VARCHAR NOT NULL, PRIMARY KEY (issuer, subject), UNIQUE (id),
            FOREIGN KEY(who) REFERENCES members (name) ON DELETE CASCADE)""",
        """CREATE TABLE sign_ins (
            browser VARCHAR NOT NULL, state VARCHAR NOT NULL, nonce VARCHAR NOT NULL, verifier VARCHAR NOT NULL,
            who VARCHAR NOT NULL, problem TEXT NOT NULL, expires VARCHAR NOT NULL, PRIMARY KEY (browser))""",
    ),
    13: _steps("ALTER TABLE texts ADD COLUMN scan TEXT DEFAULT '' NOT NULL"),
    14: _steps("ALTER TABLE tables ADD COLUMN figures JSON"),
}
