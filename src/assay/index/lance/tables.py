"""Lance tables: where they are kept (a folder or a bucket), and how they are created and opened."""

from __future__ import annotations

import asyncio
import importlib
import os
import shutil
import sys
import uuid
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from datetime import timedelta
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from assay.core.errors import AssayError, StoreError, UserError
from assay.index.encoding import require_dimensions
from assay.index.lance.rows import schema
from assay.index.lease import file_lease, shared_lease
from assay.index.protocol import NO_INDEX
from assay.store.blobs import check_bucket, endpoint, is_unencrypted, keeps_versions, open_bucket, plain_errors

if TYPE_CHECKING:
    from lancedb.table import AsyncTable
    from obstore.store import S3Store

FOLDERS_FLUSH = os.name != "nt"  # Windows flushes only files, and those only for whoever may write them


async def connect(address: str, options: dict[str, str] | None = None) -> Any:
    lancedb = await asyncio.to_thread(load_lancedb)  # slow the first time
    # Every read checks for a newer version first, since another process may have written; in a folder that costs 0.1 ms.
    return await lancedb.connect_async(address, read_consistency_interval=timedelta(0), storage_options=options)


async def new_table(connection: Any, name: str, dim: int) -> None:
    await build_indices(await connection.create_table(name, schema=schema(dim)))


async def open_table(place: TablePlace, name: str, dim: int) -> AsyncTable:
    found = await asyncio.to_thread(place.find, name)
    if found is None:
        raise UserError(NO_INDEX)
    try:
        table = await (await place.connect()).open_table(found)
        columns = await table.schema()
        held = columns.field("vector").type.list_size
    except AssayError:
        raise
    except Exception as error:
        raise damaged(place, error) from error
    if columns.names not in (schema(held).names, schema(held).names[:-1]):  # the last column, `terms`, came later
        raise damaged(place, ValueError("another version of Assay made it"))
    require_dimensions(held, dim)
    return table


async def build_indices(table: AsyncTable) -> None:
    """Build the full-text index and the indices of the two fields that searches filter by, from the current rows.

    An empty table has them too: rows not yet indexed are searched with the tokenizer of the index, and without an
    index Lance would neither stem nor fold. The merge key `id` has none: Lance is reported to lose updates with one.
    """
    from lancedb.index import FTS, Bitmap, BTree

    await table.create_index("body", config=FTS(with_position=False, max_token_length=64), replace=True)
    await table.create_index("f_label", config=Bitmap(), replace=True)
    await table.create_index("f_doc", config=BTree(), replace=True)


def damaged(place: TablePlace, error: Exception) -> StoreError:
    reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    elsewhere = "Check with `assay doctor` that the storage can be reached. " if "://" in place.address else ""
    return StoreError(
        f"The search index in {place.address} cannot be used ({reason}). {elsewhere}Nothing is lost with it: "
        "run `assay reindex` to build it again from the documents."
    )


REMOTE = ("lance_namespace", "lance_namespace_urllib3_client")


class _Placeholder(ModuleType):
    """A package in which every name is an empty class."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__dict__.setdefault(name, type(name, (Exception,), {}))


class _Finder(Loader):
    """Finds placeholders, and nothing else."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in REMOTE else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Placeholder(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def load_lancedb() -> ModuleType:
    """lancedb, imported with placeholders unless it, or its client, is already imported."""
    if not sys.modules.keys() & {"lancedb", *REMOTE}:
        finder: Any = _Finder()
        sys.meta_path.insert(0, finder)
        try:
            importlib.import_module("lancedb")
        except Exception:
            _forget(("lancedb",))
        finally:
            sys.meta_path.remove(finder)
            _forget(REMOTE)
    return importlib.import_module("lancedb")


def _forget(packages: Sequence[str]) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        del sys.modules[name]


@dataclass(frozen=True, slots=True)
class Folder:
    """Where tables are kept. `name` stands for a knowledge base. `table` is its table: one that is dropped and made again has
    another name, so that a reader who still has the old one open cannot take the new rows for the old ones."""

    path: Path

    @property
    def address(self) -> str:
        """Where it is, for messages."""
        return str(self.path)

    async def check(self) -> dict[str, str]:
        """Try whether tables can be written there. The parts that it needs and their versions, or an AssayError."""
        return {}

    def limits(self) -> tuple[str, ...]:
        """What it does less well than the contract says, a sentence each."""
        return ()

    def find(self, name: str) -> str | None:
        """The table of this name, intact or damaged; None if there is none."""
        return next((path.stem for path in self._tables(name)), None)

    async def connect(self) -> Any:
        """A connection of lancedb in which tables are opened."""
        return await connect(str(self.path))

    async def create(self, name: str, dim: int) -> None:
        """Create the table with its indices: `find` finds all of it or nothing. The caller holds the lock."""
        unfinished = self.path / f"{name}.new"  # renamed into place, so that a partial table can never be opened
        shutil.rmtree(unfinished, ignore_errors=True)
        await new_table(await connect(str(unfinished)), "table", dim)
        (unfinished / "table.lance").rename(self.path / f"{name}.{uuid.uuid4().hex[:12]}.lance")
        shutil.rmtree(unfinished, ignore_errors=True)

    async def drop(self, name: str) -> None:
        """Delete the tables of this name with all their content. The caller holds the lock."""
        for path in self._tables(name):
            await asyncio.to_thread(shutil.rmtree, path)
        await self.unmark(name)

    def lock(self, name: str, patience: float) -> AbstractAsyncContextManager[None]:
        """Held for each write, by one process at a time, wherever it is. UserError after `patience` seconds."""
        return file_lease(self.path / f"{name}.lock", patience)

    async def files(self, table: str, part: str) -> list[str]:
        """The names of the files in one part of a table, such as `_versions`."""
        try:
            # Not `Path / …`: joining would take as long as reading.
            with os.scandir(f"{self.path}/{table}.lance/{part}") as entries:
                return [entry.name for entry in entries]
        except FileNotFoundError:
            return []

    async def flush(self, table: str, since: float) -> None:
        """Make durable what was written since this time."""
        await asyncio.to_thread(_flush, self.path / f"{table}.lance", since)

    async def mark(self, name: str) -> None:
        """Note that text of deleted or replaced rows may still be stored."""
        self._marker(name).touch()

    async def is_marked(self, name: str) -> bool:
        return self._marker(name).exists()

    async def unmark(self, name: str) -> None:
        self._marker(name).unlink(missing_ok=True)

    async def kept_copies(self) -> tuple[str, ...]:
        """What the storage keeps of deleted files, a phrase each."""
        return ()

    def _tables(self, name: str) -> list[Path]:
        return sorted(self.path.glob(f"{name}.*.lance"))

    def _marker(self, name: str) -> Path:
        return self.path / f"{name}.erase"


def _flush(table: Path, since: float) -> None:
    """Flush (fsync) what was written since `since`: Lance leaves that to the system, which may lose power."""
    for place in (table / "data", table / "_deletions", table / "_versions"):
        if not place.is_dir():
            continue
        with os.scandir(place) as entries:
            fresh = [entry.path for entry in entries if entry.stat().st_mtime >= since - 1]
        for path in [*fresh, str(place)] if FOLDERS_FLUSH else fresh:
            handle = os.open(path, os.O_RDONLY if FOLDERS_FLUSH else os.O_RDWR)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


@dataclass(frozen=True, slots=True)
class Bucket:
    """As `Folder`, in a bucket. The object `NAME.table` has the name of the table: a bucket has no rename by which a whole
    table could appear at once.

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
        with plain_errors(self.address):
            try:
                return bytes(self._objects.get(f"{name}.table").bytes()).decode()
            except FileNotFoundError:
                return None

    async def connect(self) -> Any:
        return await connect(self.address.rstrip("/"), {"allow_http": "true"} if endpoint()[:5] == "http:" else None)

    async def create(self, name: str, dim: int) -> None:
        with plain_errors(self.address):
            await self.drop(name)  # what a process that was killed has left
            table = f"{name}.{uuid.uuid4().hex[:12]}"
            await new_table(await self.connect(), table, dim)
            await self._objects.put_async(f"{name}.table", table.encode(), mode="create")

    async def drop(self, name: str) -> None:
        with plain_errors(self.address):
            await self._delete(f"{name}.table")  # first: nobody opens a table that is half deleted
            listed = await self._objects.list_with_delimiter_async()
            for table in listed["common_prefixes"]:
                if table.startswith(f"{name}."):
                    async for objects in self._objects.list(f"{table}/"):
                        await self._objects.delete_async([each["path"] for each in objects])
        await self.unmark(name)

    def lock(self, name: str, patience: float) -> AbstractAsyncContextManager[None]:
        return shared_lease(self.locks / f"{name}.lock", self.database, f"lance table {name}", patience)

    async def files(self, table: str, part: str) -> list[str]:
        with plain_errors(self.address):
            listed = await self._objects.list_with_delimiter_async(f"{table}.lance/{part}/")
        return [each["path"].rpartition("/")[2] for each in listed["objects"]]

    async def flush(self, table: str, since: float) -> None:
        """An object is durable when its upload has ended."""

    async def mark(self, name: str) -> None:
        with plain_errors(self.address):
            await self._objects.put_async(f"{name}.erase", b"")

    async def is_marked(self, name: str) -> bool:
        with plain_errors(self.address):
            try:
                await self._objects.head_async(f"{name}.erase")
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
        with suppress(FileNotFoundError):
            await self._objects.delete_async(key)


TablePlace = Folder | Bucket
