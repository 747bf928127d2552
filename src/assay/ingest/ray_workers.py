"""Parsing, splitting and embedding on a Ray cluster.

This process keeps the catalogue, the statuses and the index: it alone writes. Workers get bytes and return plain data, so Ray
may run a task again when its worker is lost, and nothing is in the index twice.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import logging
import os
import pickle
import re
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from assay import __version__
from assay.core.errors import AssayError, UserError
from assay.core.types import Document, Passage
from assay.ingest.parsed import FileLimits, Parsed, Status, Unreadable
from assay.ingest.sandbox.process import CRASHED, OUT_OF_MEMORY, unguarded
from assay.ingest.sandbox.runner import Sandbox, load_source
from assay.ingest.sandbox.runner import missing_guards as guards_missing_here
from assay.ingest.split import split_passages
from assay.ingest.workers import BATCH, DocumentReader, IngestEngine, reader_in
from assay.models.embedder import Embedder

LOCAL = "local"  # what Ray calls a cluster of its own on this machine
PER_TASK = 64  # passages embedded by one task; with a GPU, a whole batch
AHEAD = 2  # tasks for each processor: one that runs, and one that waits
RETRIES = 3  # of a task whose worker was lost
OBJECT_STORE = 300_000_000  # bytes, of a cluster of our own: more than twice the files that are read at the same time
ON_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # at 0, also on Linux, Ray listens on 127.0.0.1 only
REACH_SECONDS = 5.0
AUTHENTICATES = (2, 52)  # the first version with tokens


@asynccontextmanager
async def ray_workers(
    address: str, limits: FileLimits, ocr_languages: str, embedder_gpus: float, check_consent: Callable[[str], None]
) -> AsyncIterator[RayWorkers]:
    """The workers of the cluster at `address`. `check_consent` is called with the host of its head if any of its nodes is
    another machine."""
    ray = _load_ray(address)
    connected_already = ray.is_initialized()  # by whoever uses this library
    async with nullcontext() if connected_already else _connected(ray, address):
        if (host := _host_elsewhere(ray)) is not None:
            check_consent(host)
        yield RayWorkers(ray, limits, ocr_languages, embedder_gpus)


@asynccontextmanager
async def _connected(ray: ModuleType, address: str) -> AsyncIterator[None]:
    with redirect_stdout(sys.stderr):  # Ray tells of lost workers where the report of a command belongs
        await asyncio.to_thread(_connect, ray, address)
        try:
            yield
        finally:
            await asyncio.to_thread(ray.shutdown)


def _load_ray(address: str) -> ModuleType:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
    if not address:
        os.environ.setdefault(ON_LOOPBACK, "0")
        if "RAY_AUTH_MODE" not in os.environ:  # nobody else on this machine may send tasks to it
            os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    try:
        import ray
    except ImportError as error:
        raise UserError("The engine `ray` needs the package ray: pip install 'assay[ray]'") from error
    check_authenticates(ray.__version__)
    return ray


def check_authenticates(version: str) -> None:
    """Refuse a Ray that obeys everybody who reaches its port."""
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < AUTHENTICATES:
        raise UserError(f"Ray {version} runs whatever anybody sends to it. Install Ray 2.52 or newer.")


def _connect(ray: ModuleType, address: str) -> None:
    quietly: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if not address:
        # Ray makes its session folders writable for everybody: they stand in one that is ours alone.
        private = tempfile.mkdtemp(prefix="assay-ray-")
        atexit.register(shutil.rmtree, private, ignore_errors=True)
        own: dict[str, Any] = {"_temp_dir": f"{private}/ray"}
        ray.init(LOCAL, include_dashboard=False, object_store_memory=OBJECT_STORE, **quietly, **own)
        return
    if address != "auto":
        check_reachable(address)
    try:
        ray.init(address, **quietly)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(
            f"There is no Ray cluster at {address!r} ({reason}). Start one with `ray start --head`, or set `ray_address`."
        ) from error


def check_reachable(address: str) -> None:
    """Raise if nobody listens there. Ray itself would try for a long time."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        raise UserError(f"`ray_address` is {address!r}; it must be HOST:PORT, `auto`, or empty.")
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH_SECONDS).close()
    except OSError as error:
        raise UserError(
            f"The Ray cluster at {address} cannot be reached ({error.strerror or error}). Is `ray start --head` running there?"
        ) from error


def _host_elsewhere(ray: Any) -> str | None:
    here = {str(ray.util.get_node_ip_address()), "127.0.0.1"}
    nodes = {str(node["NodeManagerAddress"]) for node in ray.nodes() if node["Alive"]}
    head = str(ray.get_runtime_context().gcs_address).rpartition(":")[0].strip("[]")
    return head if nodes - here else None


@dataclass
class RayWorkers:
    """A connection to a cluster. At most `AHEAD` tasks for each of its processors are under way."""

    ray: Any
    limits: FileLimits
    ocr_languages: str
    embedder_gpus: float
    missing_guards: Sequence[str] = ()
    remote: dict[Callable[..., Any], Any] = field(default_factory=dict)  # tasks as Ray knows them

    async def check_guards(self) -> None:
        """As one worker finds them; a worker that lacks a required guard refuses the files that it is given."""
        self.missing_guards = await self.run(missing_guards)
        if self.limits.require_guards and self.missing_guards:
            raise UserError(unguarded(self.missing_guards))

    def engine(self, embedder: Embedder, size: int, overlap: int) -> IngestEngine:
        copy = self._copied(embedder)
        ahead = AHEAD * self._processors()
        return IngestEngine(
            reader=self,
            split=partial(self.run, split_document, copy, size, overlap),
            embedder=embedder.name,
            embed=partial(self._embed, copy),
            files_at_once=ahead,
            batch=max(BATCH, ahead * PER_TASK, AHEAD * BATCH if self.embedder_gpus else 0),
        )

    async def read(self, data: Path | bytes, name: str) -> Parsed | Unreadable:
        loaded = await asyncio.to_thread(load_source, data, self.limits)
        if isinstance(loaded, Unreadable):
            return loaded
        try:
            return await self._result(read_file, self.limits, self.ocr_languages, loaded, name)
        except self.ray.exceptions.WorkerCrashedError:
            return Unreadable(Status.crashed, CRASHED)
        except self.ray.exceptions.OutOfMemoryError:
            return Unreadable(Status.out_of_memory, OUT_OF_MEMORY)

    async def run(self, work: Callable[..., Any], *given: Any, gpus: float = 0.0) -> Any:
        """The result of a task. If its worker is lost, Ray runs it again."""
        try:
            return await self._result(work, *given, gpus=gpus)
        except self.ray.exceptions.RayTaskError:
            raise
        except self.ray.exceptions.RayError as error:
            raise UserError(
                f"The Ray cluster lost a task {RETRIES + 1} times ({type(error).__name__}). What is finished is kept: see what "
                "`ray status` says, then run the same command again."
            ) from error

    async def _result(self, work: Callable[..., Any], *given: Any, gpus: float = 0.0) -> Any:
        if work not in self.remote:
            self.remote[work] = self.ray.remote(max_retries=RETRIES)(work)
        result = self.remote[work].options(num_gpus=gpus).remote(__version__, *given)
        try:
            return await result
        except asyncio.CancelledError:
            self.ray.cancel(result)
            raise
        except self.ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, AssayError):
                raise error.cause from None
            if "failed to import" in str(error):
                raise UserError(
                    f"A Ray worker cannot import Assay: install Assay {__version__} on every node of the cluster."
                ) from error
            raise

    async def _embed(self, embedder: EmbedderCopy, texts: Sequence[str]) -> np.ndarray:
        many = BATCH if self.embedder_gpus else PER_TASK
        parts = [texts[first : first + many] for first in range(0, len(texts), many)]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [self.run(embed_passages, embedder, part, gpus=self.embedder_gpus) for part in parts]
                embedding = [group.create_task(task) for task in tasks]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed  # the first error suffices; the other tasks were cancelled
        return np.concatenate([each.result() for each in embedding])

    def _copied(self, embedder: Embedder) -> EmbedderCopy:
        try:
            return EmbedderCopy(embedder.name, self.ray.cloudpickle.dumps(embedder))
        except (TypeError, AttributeError, ValueError) as error:
            raise UserError(f"The embedder {embedder.name!r} cannot be sent to Ray workers: {error}.") from error

    def _processors(self) -> int:
        there = self.ray.cluster_resources()
        if there.get("CPU", 0) < 1:
            raise UserError("The Ray cluster has no processor for tasks: start its nodes with `--num-cpus`.")
        if self.embedder_gpus > there.get("GPU", 0):
            raise UserError(
                f"`ray_embedder_gpus` is {self.embedder_gpus:g}, and the Ray cluster has {there.get('GPU', 0):g} GPUs."
            )
        return int(there["CPU"])


@dataclass(frozen=True, slots=True)
class EmbedderCopy:
    """An embedder on its way to other processes. `name` must be that of the copy, or vectors would not be comparable."""

    name: str
    pickled: bytes


def read_file(version: str, limits: FileLimits, ocr_languages: str, data: bytes, name: str) -> Parsed | Unreadable:
    _check_version(version)
    return asyncio.run(_reader(limits, ocr_languages).read(data, name))


def split_document(version: str, embedder: EmbedderCopy, size: int, overlap: int, document: Document) -> list[Passage]:
    _check_version(version)
    return split_passages(document, _embedder(embedder).tokens, size, overlap)


def embed_passages(version: str, embedder: EmbedderCopy, texts: Sequence[str]) -> np.ndarray:
    _check_version(version)
    return asyncio.run(_embedder(embedder).passages(texts))


def missing_guards(version: str) -> list[str]:
    _check_version(version)
    return guards_missing_here()


def _check_version(version: str) -> None:
    if version != __version__:
        raise UserError(
            f"A Ray worker has Assay {__version__}, and this is {version}: install the same version on every node."
        )


@functools.lru_cache(1)
def _reader(limits: FileLimits, ocr_languages: str) -> DocumentReader:
    return reader_in(Sandbox(limits), ocr_languages)  # its processes end with this one


@functools.lru_cache(1)
def _embedder(copy: EmbedderCopy) -> Embedder:
    embedder: Embedder = pickle.loads(copy.pickled)
    if embedder.name != copy.name:
        raise UserError(
            f"The embedder of a Ray worker is {embedder.name!r} and not {copy.name!r}: put the same model on every node."
        )
    return embedder
