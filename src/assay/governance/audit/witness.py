"""Sealing: the head of all records is signed (Ed25519) and appended to the witness in a second place, an append-only file that
lists all records, one short line each. A line that was cut short by a crash stays as it is and is written again after it.

The private key is a file that only its owner can read; the public key is no secret.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from filelock import FileLock
from sqlalchemy import Connection, select

from assay.core.codec import dumps
from assay.core.errors import StoreError, UserError
from assay.core.settings import Settings
from assay.store.database import Store
from assay.store.runs import seals
from assay.store.runs.chains import erasures
from assay.store.runs.seals import MOST, Seal, Sign, erasure_message
from assay.store.schema import records

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FILE = "assay-witness.jsonl"
MARK = 12  # hexadecimal digits of a payload's digest: they distinguish a moved record from a changed one
BLOCK = 1 << 20  # bytes that are written at once


class WitnessLine(NamedTuple):
    """One record in the witness."""

    n: int
    run: str
    seq: int
    hash: str
    mark: str


@dataclass(frozen=True, slots=True)
class WitnessEnd:
    """The end of a witness: its last record, its last signed head, and whether its last line is incomplete."""

    line: WitnessLine | None = None
    seal: Seal | None = None
    torn: bool = False


def witness_file(copy: str, folder: Path) -> Path | None:
    """The witness file, or None if no second place is set."""
    if not copy:
        return None
    second = Path(copy).expanduser()
    if not second.is_dir():
        raise UserError(f"The second place {copy!r} for signed heads is no folder, or it is not mounted.")
    if second.resolve().is_relative_to(folder.resolve()):
        raise UserError(f"The second place {copy!r} is inside the workspace: whoever changes one changes both.")
    return second / FILE


def file_size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def read_records(file: Path, upto: int) -> Iterator[WitnessLine]:
    """The records in the first `upto` bytes, in order. Invalid lines are skipped."""
    return (each for line in _read(file, upto, b"[") if isinstance(each := _parse_line(line), WitnessLine))


def read_heads(file: Path, upto: int) -> Iterator[Seal]:
    """The signed heads in the first `upto` bytes. Invalid lines are skipped."""
    return (each for line in _read(file, upto, b"{") if isinstance(each := _parse_line(line), Seal))


def _read(file: Path, upto: int, first: bytes) -> Iterator[bytes]:
    """Lines that begin with `first`."""
    if not upto:
        return
    left = upto
    with file.open("rb") as every:
        for line in every:
            left -= len(line)
            if left < 0:
                return
            if line.startswith(first):
                yield line


def _parse_line(line: bytes) -> WitnessLine | Seal | None:
    if not line.endswith(b"\n"):
        return None
    try:
        parsed = _parsed(line.decode())
        if isinstance(parsed, list):
            n, run, seq, hash, mark = parsed
            right = (
                type(n) is int and 0 < n < MOST and type(run) is type(hash) is type(mark) is str and type(seq) is int
            )
            return WitnessLine(n, run, seq, hash, mark) if right and 0 <= seq < MOST else None
        return Seal(**parsed)
    except (ValueError, TypeError):
        return None


_parsed = json.JSONDecoder().decode


def read_end(file: Path) -> WitnessEnd:
    """The end of a witness, read backwards."""
    if not file.exists():
        return WitnessEnd()
    size = file_size(file)
    back = 1 << 16
    while True:
        with file.open("rb") as tail:
            tail.seek(max(size - back, 0))
            block = tail.read(size - max(size - back, 0))
        lines = block.splitlines(keepends=True)
        parsed = [_parse_line(each) for each in (lines if back >= size else lines[1:])]
        line = next((each for each in reversed(parsed) if isinstance(each, WitnessLine)), None)
        seal = next((each for each in reversed(parsed) if isinstance(each, Seal)), None)
        if back >= size or (line and seal):
            return WitnessEnd(line, seal, bool(block) and not block.endswith(b"\n"))
        back *= 4


def append(file: Path, lines: Iterable[tuple[int, str, int, str, str]], seal: Seal, *, torn: bool) -> None:
    """Append the lines of records, sync them to disk, then append the signed head. Existing bytes are never changed."""
    with _open_for_append(file) as out:
        block = bytearray(b"\n" if torn else b"")
        for n, run, seq, hash, covered in lines:
            block += dumps([n, run, seq, hash, covered[:MARK]]).encode() + b"\n"
            if len(block) >= BLOCK:
                out.write(block)
                block = bytearray()
        out.write(block)
        out.flush()
        os.fsync(out.fileno())
        out.write(dumps(asdict(seal)).encode() + b"\n")
        out.flush()
        os.fsync(out.fileno())


def _open_for_append(file: Path) -> BinaryIO:
    try:
        return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
    except OSError as error:
        raise UserError(f"The second place {str(file)!r} cannot be written to: {error.strerror}.") from error


KEY = "audit.key"  # in the workspace, unless another path is set


@dataclass(frozen=True, slots=True)
class Signer:
    """A private key. It is never in a repr, a log or a record."""

    _key: Ed25519PrivateKey = field(repr=False)

    @property
    def public(self) -> str:
        return self._key.public_key().public_bytes_raw().hex()

    def sign(self, message: bytes) -> str:
        return self._key.sign(message).hex()


def is_signed_by(key: str, signature: str, message: bytes) -> bool:
    """Whether the signature of the message is valid for this public key. False for malformed keys and signatures."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def is_signed_erasure(workspace: str, note: Mapping[str, Any], keys: Collection[str]) -> bool:
    """Whether a note of an erasure, as it is stored, was signed with one of these public keys."""
    key, signature = str(note.get("key", "")), str(note.get("signature", ""))
    return key in keys and is_signed_by(key, signature, erasure_message(workspace, note))


def key_file(folder: Path, setting: str) -> Path:
    return Path(setting).expanduser() if setting else folder / KEY


def erasure_signer(folder: Path, settings: Settings) -> Sign:
    """Signs notes of erasures with the key of the workspace, which is read when it is needed."""

    def sign(message: bytes) -> tuple[str, str]:
        signer = load_signer(key_file(folder, settings.audit_key))
        return signer.public, signer.sign(message)

    return sign


def load_signer(file: Path) -> Signer:
    """The key in this file. If there is none, a new one is created that only its owner can read."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        data = file.read_bytes()
    except FileNotFoundError:
        data = _create_key(file)
    except OSError as error:
        raise UserError(f"The audit key {str(file)!r} cannot be read: {error.strerror}.") from error
    try:
        key = load_pem_private_key(data, None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise UserError(f"{str(file)!r} holds no private key that can be used (Ed25519, PEM, no password).")
    return Signer(key)


def _create_key(file: Path) -> bytes:
    """Create a key file atomically, since another process may be creating it at the same time."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    data = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    partial = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as made:
            made.write(data)
            made.flush()
            os.fsync(made.fileno())
        try:
            os.link(partial, file)  # fails if another process has created one meanwhile; a rename would replace it
        except FileExistsError:
            return file.read_bytes()
        except OSError:  # a file system without hard links
            partial.replace(file)
    except OSError as error:
        raise UserError(f"The audit key {str(file)!r} cannot be made: {error.strerror}.") from error
    finally:
        partial.unlink(missing_ok=True)
    return data


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
    return AuditContext(store, folder, key_file(folder, settings.audit_key), witness_file(settings.audit_copy, folder))


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
    before = read_end(context.witness_file) if context.witness_file else WitnessEnd(seal=seals.last(connection))
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
        append(context.witness_file, lines, made, torn=before.torn)
    return made


def _check_erasures(connection: Connection, last: Seal, keys: set[str]) -> None:
    """Raise if an unsigned note since the last seal says that records under that seal were erased."""

    def signed(n: int, note: Mapping[str, Any]) -> bool:
        return n <= last.n or is_signed_erasure(last.workspace, note, keys)

    for run, spans in erasures(connection, signed=signed).unsigned.items():
        sealed = connection.scalars(select(records.c.seq).where(records.c.run == run, records.c.n <= last.n)).all()
        if any(first <= seq <= end for seq in sealed for first, end in spans):
            raise StoreError(UNSIGNED)


def _check_unchanged(connection: Connection, context: AuditContext, before: WitnessEnd, own: Seal | None) -> None:
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
