"""What the package fsspec reaches, as a place: SFTP, SMB, Google Cloud Storage, Azure, and a directory of a web server. Each
needs a package of its own (`pip install 'assay[sftp]'`)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from assay.core.errors import AssayError, UserError
from assay.ingest.places import NOBODY, YOUNG, Listed, Login, below, unusable, wanted
from assay.ingest.sources import is_passed_over

EXTRAS = {"gs": "gcs", "abfs": "azure", "https": "http"}
TAGS = ("ETag", "etag", "md5Hash", "content_md5", "Content-MD5", "Digest")
TIMES = ("mtime", "updated", "last_modified", "last_write_time", "Last-Modified")


@dataclass(frozen=True, slots=True)
class ByFsspec:
    address: str
    login: Login = NOBODY

    def listed(self) -> list[Listed]:
        files, found, waiting = self._open(), list[Listed](), [""]
        root = self._shown(self._path("")).rstrip("/")
        with _plain(self.address):
            while waiting:
                for each in files.ls(self._path(waiting.pop()), detail=True):
                    # A page of a web server may link to anything: only what is below this address is looked at.
                    path = str(each["name"]).rstrip("/")
                    name = "" if self._is_web and {"?", "#"} & set(path) else below(root, self._shown(path))
                    if not name:
                        continue
                    if each["type"] == "directory":
                        waiting += [] if is_passed_over(PurePath(name)) else [f"{name}/"]
                    else:
                        found.append(_listed(name, files.info(each["name"]) if self._is_web else each))
        return wanted(found)

    def fetch(self, name: str, into: Path) -> None:
        with _plain(self.address):
            self._open().get_file(self._path(name), str(into))

    @property
    def _is_web(self) -> bool:
        return self.address.startswith("http")

    def _shown(self, name: str) -> str:
        return unquote(name) if self._is_web else name

    def _path(self, name: str) -> str:
        """What fsspec calls a file, or with an empty name the place itself."""
        scheme, _, rest = self.address.partition("://")
        host, _, path = rest.partition("/")
        whole = "/".join(filter(None, (path, name)))
        if self._is_web:
            return f"{scheme}://{host}/{quote(whole)}" + ("" if name or not whole else "/")
        return f"/{whole}" if scheme in ("sftp", "smb") else f"{host}/{whole}".rstrip("/")

    def _open(self) -> Any:
        scheme, parts = self.address.partition(":")[0], urlsplit(self.address)
        package = EXTRAS.get(scheme, scheme)
        try:
            import fsspec

            return fsspec.filesystem(scheme, skip_instance_cache=True, use_listings_cache=False, **self._options(parts))
        except ImportError:
            raise UserError(f"{scheme}:// needs a client: `pip install 'assay[{package}]'`.") from None

    def _options(self, parts: Any) -> dict[str, Any]:
        name, password = self.login.name, self.login.password
        match parts.scheme:
            case "sftp" | "smb":
                known = {"username": name, "password": password, "port": parts.port}
                return {"host": parts.hostname} | {key: value for key, value in known.items() if value}
            case "gs":
                return {"token": password} if password else {}
            case "abfs":
                return {"account_name": name, "account_key": password} if name else {}
            case _:
                import aiohttp

                auth = aiohttp.BasicAuth(name, password) if name else None
                client = {"auth": auth, "trust_env": True, "raise_for_status": _refuse_redirect}
                return {"client_kwargs": client, "allow_redirects": False, "simple_links": False}


async def _refuse_redirect(reply: Any) -> None:
    """Called with each reply of a web server: the address that it points to is in no setting."""
    if 300 <= reply.status < 400:
        raise OSError(f"it points to another address ({reply.status}), which is not followed")


def _listed(name: str, about: Mapping[str, Any]) -> Listed:
    """A file by what fsspec says of it: each file system has its own words."""
    size = about.get("size")
    tag = next((str(about[key]) for key in TAGS if about.get(key)), "")
    changed = next((about[key] for key in TIMES if about.get(key)), None)
    seconds = _seconds(changed)
    mark = tag or (f"{size}-{changed}" if changed is not None else "")
    return Listed(name, size, mark, young=not tag and seconds is not None and time.time() - seconds <= YOUNG)


def _seconds(time: Any) -> float | None:
    """A time in seconds since 1970, in whatever form it is given."""
    try:
        if isinstance(time, datetime):
            return time.timestamp()
        if isinstance(time, str):
            return (datetime.fromisoformat(time) if "T" in time[:11] else parsedate_to_datetime(time)).timestamp()
        return float(time)
    except (TypeError, ValueError):
        return None


class _plain:
    """Turns the errors of a file system into those of a place. That a file is gone or closed is said of the file."""

    def __init__(self, address: str) -> None:
        self.address = address

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, AssayError | FileNotFoundError | PermissionError) or not isinstance(error, Exception):
            return
        why = str(error).splitlines()[0][:200] if isinstance(error, OSError) and str(error) else type(error).__name__
        raise unusable(self.address, why) from None
