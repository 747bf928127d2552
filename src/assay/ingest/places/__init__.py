"""Places of documents: a folder, a bucket, a WebDAV server, and what fsspec reaches. A place lists its files and brings one;
what is done with them is the same for all (`changes.py`).

Assay only reads there. A place on a network is reached only if the setting `sources_allowed` names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol
from urllib.parse import unquote, urlsplit

from assay.core.errors import StoreError, UserError
from assay.core.printable import printable_name
from assay.core.settings import Settings, secret
from assay.ingest.sources import is_passed_over

YOUNG = 2.0  # seconds after a change in which another one may leave size and time as they are
BY_FSSPEC = ("sftp", "smb", "gs", "abfs", "http", "https")
SCHEMES = ("s3", "dav", "davs", *BY_FSSPEC)
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)  # two letters or more: `c:` is a disk


@dataclass(frozen=True, slots=True)
class Listed:
    """A file of a place."""

    name: str  # its path below the place, with `/` between folders
    size: int | None  # bytes; None: the place does not say
    mark: str  # another one as soon as the content is another; empty: the place does not say, so the file is read again
    young: bool = False  # it changed so lately that it may change again under the same mark


class Place(Protocol):
    """Where documents come from. `tests/contracts/test_places.py` is its specification."""

    @property
    def address(self) -> str:
        """What the locations of its files begin with: no name, password or `/` at the end."""
        ...

    def listed(self) -> list[Listed]:
        """Every file, or an error: what is not listed counts as gone."""
        ...

    def fetch(self, name: str, into: Path) -> None:
        """Write the bytes of a file to `into`. An OSError if this file cannot be read, a StoreError if the place cannot."""
        ...


@dataclass(frozen=True, slots=True)
class Login:
    """A name and a password."""

    name: str = ""
    password: str = ""


NOBODY = Login()


def is_address(where: str) -> bool:
    """Whether this is an address on a network and not a path."""
    return _ADDRESS.match(where) is not None


def open_place(where: Path | str, settings: Settings) -> Place:
    """The place at a path or an address. Nothing is opened yet. UserError if it may not be reached."""
    from assay.ingest.places.folder import Folder

    if not is_address(str(where)):
        return Folder(Path(where))
    address = checked_address(str(where))
    if not allows(settings.sources_allowed, address):
        raise UserError(f"Nothing is fetched from {address}: it is not in the setting `sources_allowed`.")
    login = login_for(address, secret(settings.sources_logins))
    match address.partition(":")[0]:
        case "s3":
            from assay.ingest.places.bucket import Bucket

            return Bucket(address, login)
        case "dav" | "davs":
            from assay.ingest.places.webdav import WebDav

            return WebDav(address, login, settings.proxy, settings.ca_bundle)
        case _:
            from assay.ingest.places.by_fsspec import ByFsspec

            return ByFsspec(address, login)


def checked_address(where: str) -> str:
    """An address in the form that is compared and stored: no `/` at the end, nothing encoded, nothing that leads upwards."""
    try:
        parts = urlsplit(where.strip())
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        raise UserError(f"{where!r} is not an address.") from None
    scheme = parts.scheme.lower()
    if scheme not in SCHEMES:
        raise UserError(f"Assay cannot read from {scheme}://. It knows {', '.join(f'{each}://' for each in SCHEMES)}.")
    # A bucket may have capitals; a host has none.
    host = parts.netloc if scheme in ("s3", "gs", "abfs") else f"{_bracketed(parts.hostname or '')}{port}"
    path = parts.path if scheme == "s3" else unquote(parts.path)
    names = [each for each in path.split("/") if each]
    strange = ("@" in parts.netloc and scheme != "abfs") or parts.query or parts.fragment or "\\" in path
    if not host or strange or {".", ".."} & set(unquote(path).split("/")) or printable_name(path) != path:
        raise UserError(
            f"{_without_login(where)!r} is not an address to read from. Write SCHEME://HOST/PATH; a name and password belong "
            "in the setting `sources_logins`."
        )
    return "/".join((f"{scheme}://{host}", *names))


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _without_login(where: str) -> str:
    return re.sub(r"://[^/?#\s]*@", "://", where)


def entries_of(setting: str) -> list[str]:
    """The folders and addresses in a value of `sources_allowed`, as they are compared."""
    words = [each.strip() for each in setting.split(",") if each.strip()]
    return [checked_address(each) if is_address(each) else str(Path(each).expanduser().resolve()) for each in words]


def allows(setting: str, address: str) -> bool:
    """Whether an address is one of those in `sources_allowed`, or below one."""
    return any(address == each or address.startswith(f"{each}/") for each in entries_of(setting))


def login_for(address: str, lines: str) -> Login:
    """The name and password for an address: those of the longest address in `sources_logins` that it is below."""
    found = {}
    for line in filter(None, map(str.strip, lines.splitlines())):
        where, _, login = line.partition(" ")
        if not is_address(where) or ":" not in login:
            raise UserError("A line of `sources_logins` is not `ADDRESS NAME:PASSWORD`.")
        found[checked_address(where)] = Login(*login.strip().split(":", 1))
    fitting = [each for each in found if address == each or address.startswith(f"{each}/")]
    return found[max(fitting, key=len)] if fitting else NOBODY


def location(place: Place, name: str) -> str:
    """Where a file of a place is, as it is stored and shown."""
    return printable_name(f"{place.address}/{name}")


def is_below(address: str, uri: str) -> bool:
    """Whether a location is one of a place."""
    return uri.startswith(f"{printable_name(address).rstrip('/')}/")


def wanted(files: Iterable[Listed]) -> list[Listed]:
    """Files that people mean by documents, in order of their names: no hidden ones, none of the system."""
    found = {each.name: each for each in files if not is_passed_over(PurePosixPath(each.name))}
    return [found[name] for name in sorted(found)]


def below(folder: str, path: str) -> str:
    """The name of a path below a folder, empty if it is not below it: what a server lists is not trusted."""
    name = path.removeprefix(f"{folder.rstrip('/')}/")
    if name == path or {"", ".", ".."} & set(name.rstrip("/").split("/")):
        return ""
    return name


def unusable(address: str, why: str) -> StoreError:
    return StoreError(f"{address} cannot be read ({why}). Check the address, the network and `sources_logins`.")
