"""Sealing: sign the head of all records, and append it with a line for each record to the witness in a second place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from filelock import FileLock
from sqlalchemy import Connection, select

from assay.core.errors import StoreError
from assay.core.settings import Settings
from assay.governance.audit import witness
from assay.governance.audit.witness import Signer
from assay.governance.audit.witness import is_signed_erasure
from assay.governance.audit.witness import key_file
from assay.governance.audit.witness import load_signer
from assay.store.database import Store
from assay.store.runs import seals
from assay.store.runs.chains import erasures
from assay.store.runs.seals import Seal
from assay.store.schema import records

LOCK = ".audit.lock"
DIFFERS = (
    "The second place {place!r} tells of other records than this workspace has: run `assay verify`. After a restored "
    "backup, name a new folder as `audit_copy`, and keep the old one."
)
UNSIGNED = (
    "A note that nobody signed says that signed records were erased: run `assay verify`. If an earlier version of Assay erased "
    "them, `assay audit seal --accept-erasures` signs the note."
)
OTHER_KEY = (
    "The second place {place!r} was signed with another key than {key!r}. Set `audit_key` back, or name a new folder as "
    "`audit_copy`, and keep the old one."
)


@dataclass(frozen=True, slots=True)
class AuditContext:
    """What sealing needs of a workspace."""

    store: Store
    folder: Path
    key: Path
    witness_file: Path | None  # in the second place

    @property
    def signer(self) -> Signer:
        with FileLock(self.folder / LOCK):
            return load_signer(self.key)


def audit_context(store: Store, folder: Path, settings: Settings) -> AuditContext:
    return AuditContext(
        store, folder, key_file(folder, settings.audit_key), witness.witness_file(settings.audit_copy, folder)
    )


def seal(context: AuditContext, *, accept_erasures: bool = False) -> Seal | None:
    """Sign the head, first in the second place and then here. Returns the last seal if there are no new records, None if
    there are no records. Records that contradict the witness are never signed, nor is an unsigned note on the erasure of
    signed records, unless `accept_erasures` is set."""
    with context.store.read() as connection:
        if seals.head(connection) is None:
            return None
    signer = context.signer
    with FileLock(context.folder / LOCK):
        with context.store.read() as connection:
            made = _sign_head(connection, context, signer, accept_erasures)
        seals.add(context.store, made)
    return made


def _sign_head(connection: Connection, context: AuditContext, signer: Signer, accept_erasures: bool) -> Seal:
    n, link = seals.head(connection) or (0, "")
    before = (
        witness.read_end(context.witness_file)
        if context.witness_file
        else witness.WitnessEnd(seal=seals.last(connection))
    )
    _check_unchanged(connection, context, before, seals.last(connection))
    if before.seal is not None and (before.seal.n, before.seal.key) == (n, signer.public):
        return before.seal
    if context.witness_file is not None and before.seal is not None and before.seal.key != signer.public:
        raise StoreError(OTHER_KEY.format(place=str(context.witness_file), key=str(context.key)))
    if before.seal is not None and not accept_erasures:
        _check_erasures(connection, before.seal, {before.seal.key, signer.public})
    bare = Seal(seals.identity(connection), n, link, context.store.now(), signer.public)
    made = replace(bare, signature=signer.sign(bare.signed))
    if context.witness_file is not None:
        lines = seals.lines(connection, before.line.n if before.line else 0, n)
        witness.append(context.witness_file, witness.format_records(lines), made, torn=before.torn)
    return made


def _check_erasures(connection: Connection, last: Seal, keys: set[str]) -> None:
    """Raise if an unsigned note since the last seal says that records under that seal were erased."""

    def signed(n: int, note: Mapping[str, Any]) -> bool:
        return n <= last.n or is_signed_erasure(last.workspace, note, keys)

    for run, spans in erasures(connection, signed=signed).unsigned.items():
        sealed = connection.scalars(select(records.c.seq).where(records.c.run == run, records.c.n <= last.n)).all()
        if any(first <= seq <= end for seq in sealed for first, end in spans):
            raise StoreError(UNSIGNED)


def _check_unchanged(
    connection: Connection, context: AuditContext, before: witness.WitnessEnd, own: Seal | None
) -> None:
    """Raise unless the records that were sealed last are unchanged. This is a quick check; `verify` checks everything."""
    line = before.line
    found = seals.record_at(connection, line.n) if line else None
    same = not line or (found is not None and found[:3] == (line.run, line.seq, line.hash))
    for each in (before.seal, own):
        at = seals.record_at(connection, each.n) if each else None
        same = same and (
            not each or (at is not None and at[3] == each.link and each.workspace == seals.identity(connection))
        )
    if not same:
        raise StoreError(DIFFERS.format(place=str(context.witness_file or context.folder)))
