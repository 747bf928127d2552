"""What takes a state of today back to one from before leases."""

from __future__ import annotations

WITHOUT_LEASES = (
    "ALTER TABLE underway DROP COLUMN process",
    "ALTER TABLE underway DROP COLUMN until",
    "ALTER TABLE underway DROP COLUMN stop",
    "ALTER TABLE jobs DROP COLUMN process",
    "ALTER TABLE jobs DROP COLUMN until",
)
