"""Lance tables in a bucket. Every change of a table is committed by a conditional write of its next version, so readers on any
machine see all of it or nothing."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.index.lance.tables import connect, new_table
from assay.index.lease import shared_lease
from assay.store.blobs import check_bucket
from assay.store.blobs import endpoint
from assay.store.blobs import is_unencrypted
from assay.store.blobs import keeps_versions
from assay.store.blobs import open_bucket
from assay.store.blobs import plain_errors

if TYPE_CHECKING:
    from obstore.store import S3Store


@dataclass(frozen=True, slots=True)
class Bucket:
    """A `TablePlace`. The object `NAME.table` has the name of the table: a bucket has no rename by which a whole table could
    appear at once.

    address: s3://BUCKET/PREFIX
    locks: the folder of the lock files, for processes on this machine
    database: the server whose locks keep writers on other machines apart; empty where the state is in a file
    """

    address: str
    locks: Path
    database: str = ""

    async def check(self) -> dict[str, str]:
        from importlib.metadata import version

        await asyncio.to_thread(check_bucket, self.address)
        return {"obstore": version("obstore")}

    def limits(self) -> tuple[str, ...]:
        limits = ["Parts of an upload that was cut off stay until a rule of the bucket for such uploads deletes them."]
        if keeps_versions(self.address):
            limits.append(
                "The bucket keeps old versions, and erased text in them: let a rule of the bucket delete them."
            )
        if is_unencrypted():
            limits.append(f"Texts go to {endpoint()} without encryption.")
        return tuple(limits)

    def find(self, name: str) -> str | None:
        import obstore

        with plain_errors(self.address):
            try:
                return bytes(obstore.get(self._objects, f"{name}.table").bytes()).decode()
            except FileNotFoundError:
                return None

    async def connect(self) -> Any:
        return await connect(self.address.rstrip("/"), {"allow_http": "true"} if endpoint()[:5] == "http:" else None)

    async def create(self, name: str, dim: int) -> None:
        import obstore

        with plain_errors(self.address):
            await self.drop(name)  # what a process that was killed has left
            table = f"{name}.{uuid.uuid4().hex[:12]}"
            await new_table(await self.connect(), table, dim)
            await obstore.put_async(self._objects, f"{name}.table", table.encode(), mode="create")

    async def drop(self, name: str) -> None:
        import obstore

        with plain_errors(self.address):
            await self._delete(f"{name}.table")  # first: nobody opens a table that is half deleted
            listed = await obstore.list_with_delimiter_async(self._objects)
            for table in listed["common_prefixes"]:
                if table.startswith(f"{name}."):
                    async for objects in obstore.list(self._objects, f"{table}/"):
                        await obstore.delete_async(self._objects, [each["path"] for each in objects])
        await self.unmark(name)

    def lock(self, name: str, patience: float) -> AbstractAsyncContextManager[None]:
        return shared_lease(self.locks / f"{name}.lock", self.database, f"lance table {name}", patience)

    async def files(self, table: str, part: str) -> list[str]:
        import obstore

        with plain_errors(self.address):
            listed = await obstore.list_with_delimiter_async(self._objects, f"{table}.lance/{part}/")
        return [each["path"].rpartition("/")[2] for each in listed["objects"]]

    async def flush(self, table: str, since: float) -> None:
        """An object is durable when its upload has ended."""

    async def mark(self, name: str) -> None:
        import obstore

        with plain_errors(self.address):
            await obstore.put_async(self._objects, f"{name}.erase", b"")

    async def is_marked(self, name: str) -> bool:
        import obstore

        with plain_errors(self.address):
            try:
                await obstore.head_async(self._objects, f"{name}.erase")
            except FileNotFoundError:
                return False
        return True

    async def unmark(self, name: str) -> None:
        with plain_errors(self.address):
            await self._delete(f"{name}.erase")

    async def kept_copies(self) -> tuple[str, ...]:
        kept = await asyncio.to_thread(keeps_versions, self.address)
        return (f"old versions of objects in {self.address}, which the bucket keeps",) if kept else ()

    @property
    def _objects(self) -> S3Store:
        return open_bucket(self.address)

    async def _delete(self, key: str) -> None:
        import obstore

        with suppress(FileNotFoundError):
            await obstore.delete_async(self._objects, key)
