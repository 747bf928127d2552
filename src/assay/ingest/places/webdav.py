"""A WebDAV server (Nextcloud, SharePoint, a NAS) as a place: `davs://HOST/PATH`, or `dav://` without encryption."""

from __future__ import annotations

import errno
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from assay.core.errors import UserError
from assay.ingest.places import NOBODY, YOUNG, Listed, Login, below, unusable, wanted
from assay.ingest.sources import is_passed_over

if TYPE_CHECKING:
    import httpx

SECONDS = 60.0  # that the server may be silent
LARGEST = 50_000_000  # bytes that the list of one folder may have
ASKED = (
    b'<?xml version="1.0" encoding="utf-8"?><d:propfind xmlns:d="DAV:"><d:prop><d:resourcetype/><d:getcontentlength/>'
    b"<d:getetag/><d:getlastmodified/></d:prop></d:propfind>"
)


@dataclass(frozen=True)
class WebDav:
    address: str
    login: Login = NOBODY
    proxy: str = ""
    ca_bundle: str = ""

    def listed(self) -> list[Listed]:
        found, waiting = list[Listed](), [""]
        while waiting:
            for name, listed in self._inside(waiting.pop()):
                if listed is not None:
                    found.append(listed)
                elif not is_passed_over(PurePath(name)):
                    waiting.append(f"{name}/")
        return wanted(found)

    def fetch(self, name: str, into: Path) -> None:
        with self._sent("GET", name) as reply, into.open("wb") as file:
            for piece in reply.iter_raw():
                file.write(piece)

    def _inside(self, folder: str) -> Iterator[tuple[str, Listed | None]]:
        """What is in a folder: files, and folders without more. What the server lists of elsewhere is left out."""
        import lxml.etree as etree

        with self._sent("PROPFIND", folder, ASKED) as reply:
            body, now = bytearray(), _seconds(reply.headers.get("date"))
            for piece in reply.iter_raw():
                body += piece
                if len(body) > LARGEST:
                    raise unusable(self.address, "the list of a folder is too long")
        try:
            tree = etree.fromstring(bytes(body), etree.XMLParser(resolve_entities=False, no_network=True))
        except etree.XMLSyntaxError:
            raise unusable(self.address, "it does not answer as a WebDAV server does") from None
        root = unquote(urlsplit(self.address).path).rstrip("/")
        for each in tree.iterfind("{DAV:}response"):
            path = unquote(urlsplit((each.findtext("{DAV:}href") or "").strip()).path)
            name = below(root, path.rstrip("/"))
            if not name or not name.startswith(folder) or "/" in name.removeprefix(folder):
                continue  # the folder itself, or something that is not in it
            if each.find(".//{DAV:}resourcetype/{DAV:}collection") is not None:
                yield name, None
                continue
            length, changed = each.findtext(".//{DAV:}getcontentlength"), each.findtext(".//{DAV:}getlastmodified")
            mark = each.findtext(".//{DAV:}getetag") or (changed and f"{length}-{changed}") or ""
            size = int(length) if length and length.isdecimal() else None
            # Many servers make the tag of size and time, in whole seconds.
            yield name, Listed(name, size, mark, young=bool(changed) and now - _seconds(changed) <= YOUNG)

    @contextmanager
    def _sent(self, method: str, name: str, body: bytes = b"") -> Iterator[httpx.Response]:
        import httpx

        address = f"http{self.address.removeprefix('dav')}"
        scheme, _, rest = address.partition("://")
        host, _, path = rest.partition("/")
        asked = f"{scheme}://{host}/{quote('/'.join(filter(None, (path, name))))}"
        if method == "PROPFIND" and not asked.endswith("/"):
            asked += "/"
        headers = {"Depth": "1", "Content-Type": "application/xml"} if body else {}
        try:
            with self._client.stream(method, asked, content=body, headers=headers) as reply:
                match reply.status_code:
                    case 200 | 207:
                        yield reply
                    case 401 | 407:
                        raise UserError(f"{self.address} wants a name and a password: set `sources_logins`.")
                    case 404 | 410 if name and not name.endswith("/"):
                        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
                    case 403 | 423 if method == "GET":
                        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
                    case status if 300 <= status < 400:
                        raise unusable(self.address, f"it points to another address ({status}), which is not followed")
                    case status:
                        raise unusable(self.address, f"it answered with status {status}")
        except httpx.HTTPError as error:
            raise unusable(self.address, type(error).__name__) from None

    @cached_property
    def _client(self) -> httpx.Client:
        """One for all files: reading the certificates takes 40 ms, and a connection as long as the way is."""
        import httpx

        try:
            trusted = ssl.create_default_context(cafile=self.ca_bundle or None)
        except (OSError, ssl.SSLError):
            raise UserError(f"The certificates in {self.ca_bundle!r} cannot be read: set `ca_bundle`.") from None
        return httpx.Client(
            auth=(self.login.name, self.login.password) if self.login.name else None,
            verify=trusted,
            proxy=self.proxy or None,
            timeout=SECONDS,
            headers={"Accept-Encoding": "identity"},
            follow_redirects=False,
        )


def _seconds(date: str | None) -> float:
    """A date of HTTP, in seconds since 1970; 0 if there is none."""
    try:
        return parsedate_to_datetime(date).timestamp() if date else 0.0
    except ValueError:
        return 0.0
