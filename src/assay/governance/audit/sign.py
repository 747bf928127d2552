"""Ed25519 signatures. The private key is a file that only its owner can read; the public key is no secret."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.errors import UserError
from assay.core.settings import Settings
from assay.store.runs.seals import Sign, erasure_message

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

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
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        data = _create_key(file)
    except OSError as error:
        raise UserError(f"The audit key {str(file)!r} cannot be read: {error.strerror}.") from error
    return _parse_key(data, file)


def _parse_key(data: bytes, file: Path) -> Signer:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(data, None)
    except (ValueError, TypeError) as error:
        raise UserError(f"{str(file)!r} holds no private key that can be used (Ed25519, PEM, no password).") from error
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
