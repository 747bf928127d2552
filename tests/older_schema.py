"""What takes a state of today back to earlier ones."""

from __future__ import annotations

import json

from sqlalchemy import Connection

from assay.core.codec import START, digest, dumps, linked
from assay.core.events.upgrade import SALT
from assay.store.runs.records import link

BEFORE_MARKS = (
    "DROP TABLE identities",
    "DROP TABLE sign_ins",
    "ALTER TABLE tables DROP COLUMN figures",
    "ALTER TABLE texts DROP COLUMN scan",
    "ALTER TABLE tables DROP COLUMN labels",
    "DROP INDEX documents_listed",
    "ALTER TABLE documents DROP COLUMN off",
    "ALTER TABLE documents DROP COLUMN tags",
    "CREATE INDEX documents_listed ON documents (base, state, label, added, id, passages)",
)
BEFORE_LEASES = (
    *BEFORE_MARKS,
    "ALTER TABLE underway DROP COLUMN process",
    "ALTER TABLE underway DROP COLUMN until",
    "ALTER TABLE underway DROP COLUMN stop",
    "ALTER TABLE jobs DROP COLUMN process",
    "ALTER TABLE jobs DROP COLUMN until",
)


def before_rights_were_recorded(connection: Connection) -> None:
    """Records as earlier versions wrote them: without a salt, each chained to the one before."""
    connection.exec_driver_sql("DELETE FROM facts WHERE name = 'rights recorded'")
    rows = connection.exec_driver_sql(
        "SELECT r.n, r.run, r.seq, r.at, r.kind, p.body FROM records r JOIN payloads p ON p.run = r.run AND p.seq = r.seq "
        "ORDER BY r.n"
    ).all()
    prev: dict[str, str] = {}
    before = START
    for n, run, seq, at, kind, body in rows:
        plain = dumps({name: value for name, value in json.loads(body).items() if name != SALT})
        covered, last = digest(plain), prev.get(run, START)
        prev[run] = link(run, seq, at, kind, covered, last)
        before = linked(n, prev[run], before)
        connection.exec_driver_sql("UPDATE payloads SET body = ? WHERE run = ? AND seq = ?", (plain, run, seq))
        connection.exec_driver_sql(
            "UPDATE records SET digest = ?, prev = ?, hash = ?, link = ? WHERE n = ?",
            (covered, last, prev[run], before, n),
        )
