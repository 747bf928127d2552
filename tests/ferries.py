"""A document with one table, for tests of look-ups."""

from __future__ import annotations

from assay.core.types import Document
from assay.ingest.formats.plain import parse_delimited
from assay.ingest.parsed import FileLimits

FERRIES = b"""Ferry,Port,Built,Capacity (cars),Speed,Contract ends,Restaurant on board,Remark
Gannet,Skelby,1998,120,18 kn,2026-03-31,yes,Sails to Aldersay.
Petrel,Marl Quay,2004,85,22 kn,2025-12-31,no,Reserve ship.
Skua,Skelby,1987,40,14 kn,2027-06-30,no,Oldest of the fleet.
Tern,Ostrey,2019,210,25 kn,2028-01-31,yes,New engines.
"""


def document(data: bytes = FERRIES, name: str = "ferries.csv", title: str = "Ferries of the sound") -> Document:
    parsed = parse_delimited(data, name, FileLimits())
    return Document("d", "b", name, "", title, parsed.text, kind="csv", tables=tuple(parsed.tables))
