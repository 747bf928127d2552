"""A bucket of S3, or of a server that speaks its protocol, as a place. The server, and keys that are not in `sources_logins`,
come from the usual variables of the environment."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from assay.ingest.places import NOBODY, Listed, Login, wanted
from assay.store.blobs import PIECE, open_bucket, plain_errors


@dataclass(frozen=True, slots=True)
class Bucket:
    address: str
    login: Login = NOBODY

    def listed(self) -> list[Listed]:
        found: list[Listed] = []
        with plain_errors(self.address):
            for some in self._objects().list():
                for each in some:
                    mark = each["e_tag"] or f"{each['size']}-{each['last_modified'].isoformat()}"
                    found.append(Listed(each["path"], each["size"], mark))
        return wanted(found)

    def fetch(self, name: str, into: Path) -> None:
        with plain_errors(self.address):
            try:
                found = self._objects().get(name)
            except FileNotFoundError:
                found = None
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        with into.open("wb") as file, plain_errors(self.address):
            for piece in found.stream(PIECE):
                file.write(piece)

    def _objects(self):
        return open_bucket(self.address, (self.login.name, self.login.password) if self.login.name else None)
