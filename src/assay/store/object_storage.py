"""A bucket of S3, or of a server that speaks its protocol. Where the server is and the keys come from the usual variables of
the environment (AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, …), or from the role of the machine."""

from __future__ import annotations

import errno
import ipaddress
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from assay.core.errors import AssayError, StoreError, UserError

if TYPE_CHECKING:
    from obstore.store import S3Store

SCHEME = "s3://"
PIECE = 1 << 20  # bytes


def is_bucket(address: str) -> bool:
    return address.startswith(SCHEME)


def open_bucket(address: str) -> S3Store:
    """The objects below `s3://BUCKET/PREFIX`. Nothing is sent yet."""
    parts = urlsplit(address)
    if not is_bucket(address) or not parts.hostname or "@" in parts.netloc:
        raise UserError(
            f"{address!r} is not a place on object storage. Write s3://BUCKET/PREFIX; keys belong in the environment "
            "(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)."
        )
    return _open(parts.netloc, parts.path.strip("/"), endpoint())


@lru_cache(maxsize=8)
def _open(bucket: str, prefix: str, at: str) -> S3Store:
    try:
        from obstore.store import S3Store
    except ImportError as error:
        raise UserError("Object storage needs a client: `pip install 'assay[s3]'`.") from error
    return S3Store(
        bucket,
        prefix=prefix or None,
        client_options={"allow_http": at.startswith("http://"), "connect_timeout": "5s", "timeout": "120s"},
        retry_config={"max_retries": 5, "retry_timeout": timedelta(seconds=60)},
    )


def endpoint() -> str:
    """The address of the server, where it is not that of Amazon."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""


def is_unencrypted() -> bool:
    """Whether objects go to another machine without encryption."""
    at = urlsplit(endpoint())
    if at.scheme != "http":
        return False
    try:
        return not ipaddress.ip_address(at.hostname or "").is_loopback
    except ValueError:
        return at.hostname != "localhost"


def check_bucket(address: str) -> None:
    """Write, read and delete an object. A StoreError if that fails, or if the server overwrites what may only be created: two
    writers could then lose each other's work."""
    import obstore
    from obstore.exceptions import AlreadyExistsError

    bucket, probe = open_bucket(address), f"check-{secrets.token_hex(8)}"
    with plain_errors(address):
        obstore.put(bucket, probe, b"first", mode="create")
        try:
            obstore.put(bucket, probe, b"second", mode="create")
        except AlreadyExistsError:
            pass
        else:
            raise StoreError(
                f"The object storage of {address} ignores conditional writes (If-None-Match). Use one that knows them."
            )
        finally:
            obstore.delete(bucket, probe)


def read_object(address: str, name: str) -> Iterator[bytes]:
    """The bytes of an object, in pieces. FileNotFoundError if there is none."""
    import obstore

    with plain_errors(address):
        try:
            found = obstore.get(open_bucket(address), name)
        except FileNotFoundError:
            found = None
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), f"{address}/{name}")
    with plain_errors(address):
        yield from map(bytes, found.stream(PIECE))


def keeps_versions(address: str) -> bool:
    """Whether the bucket keeps what is deleted or overwritten."""
    import obstore

    bucket, probe = open_bucket(address), f"check-{secrets.token_hex(8)}"
    with plain_errors(address):
        written = obstore.put(bucket, probe, b"")
        obstore.delete(bucket, probe)
    return written["version"] is not None


@contextmanager
def plain_errors(address: str) -> Iterator[None]:
    """Turn the client's errors into a StoreError that says what to check."""
    from obstore.exceptions import BaseError

    try:
        yield
    except AssayError:
        raise
    except (BaseError, OSError) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise StoreError(
            f"{address} cannot be used ({reason}). Check the bucket, AWS_ENDPOINT_URL and the keys in the environment."
        ) from error
