"""What takes a state of today back to earlier ones."""

from __future__ import annotations

BEFORE_MARKS = (
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
