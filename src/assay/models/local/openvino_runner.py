"""Runs the local models with openvino on the CPU: compiled once, cached on disk, fed with batches of padded rows.

Embedders and cross-encoder define the inputs and interpret the output. openvino is imported on first use, without its
converter, which would load a telemetry package. Nothing here uses the network.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import openvino

CONVERTER = "openvino.tools.ovc"
MOST_STREAMS = 8  # each stream has its own working memory
MOST_RUNNERS = 8  # models kept in memory
STALE_SECONDS = 30 * 24 * 3600
BATCH_TOKENS, LEAST_TOKENS = 2048, 512  # larger batches gain nothing and delay queries; smaller ones lose speed
SIMILAR = 0.9
STEP = 8  # lengths are rounded up to this, so that few shapes occur and each is prepared once
_importing = threading.Lock()
_compiling = threading.Lock()
_runners: dict[tuple[str, str, str | None, Path], Runner] = {}

Inputs = Sequence[np.ndarray] | dict[str, np.ndarray]


def load_openvino() -> ModuleType:
    """The openvino package without its converter. Importing the converter imports `openvino_telemetry`, and is slow."""
    with _importing:
        if "openvino" not in sys.modules:
            os.environ.setdefault("ONEDNN_JIT_PROFILE", "0")  # it would leave a perf-PID.map in the temporary folder
            hidden = CONVERTER not in sys.modules
            if hidden:
                sys.modules[CONVERTER] = None  # pyright: ignore[reportArgumentType]  # python's way to say "cannot be imported"
            try:
                import openvino  # noqa: F401
            finally:
                if hidden:  # other code can still import the converter
                    sys.modules.pop(CONVERTER, None)
    return sys.modules["openvino"]


def cache_folder() -> Path:
    """The folder of compiled models: ASSAY_CACHE_DIR, or the user's cache folder."""
    if configured := os.environ.get("ASSAY_CACHE_DIR"):
        return Path(configured).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("assay", appauthor=False))


@dataclass(frozen=True)
class Runner:
    """A compiled model. Thread-safe.

    Each caller borrows its own inference requests, so a query waits only for batches already running, not for another caller's
    whole list.
    """

    model: openvino.CompiledModel
    streams: int
    idle: deque[openvino.InferRequest]
    memory: object  # may own the model's weights, so it must live as long as the model

    def run(
        self,
        rows: Sequence[Sequence[int]],
        inputs: Callable[[list[int], np.ndarray, np.ndarray], Inputs] = lambda _, ids, mask: (ids, mask),
        output: str | int = 0,
    ) -> Iterator[tuple[list[int], np.ndarray, np.ndarray]]:
        """The output for rows of token ids, batch by batch: the indices of the batch's rows, their mask and the output.

        inputs: builds the model's inputs for a batch from the indices of its rows, their padded ids and their mask
        """
        planned = list(plan_batches([len(row) for row in rows], self.streams))
        masks: deque[np.ndarray] = deque()

        def batches() -> Iterator[Inputs]:
            for places in planned:
                ids, mask = pad([rows[place] for place in places])
                masks.append(mask)
                yield inputs(places, ids, mask)

        for places, found in zip(planned, self.map(batches(), output), strict=True):
            yield places, masks.popleft(), found

    def map(self, batches: Iterable[Inputs], output: str | int = 0) -> Iterator[np.ndarray]:
        """One output per batch, in order; as many batches run concurrently as there are streams."""
        running: deque[openvino.InferRequest] = deque()
        try:
            for inputs in batches:
                if len(running) >= self.streams:
                    yield self._finish(running.popleft(), output)
                try:
                    request = self.idle.pop()
                except IndexError:
                    request = self.model.create_infer_request()
                request.start_async(inputs, share_inputs=False)
                running.append(request)
            while running:
                yield self._finish(running.popleft(), output)
        finally:
            for request in running:  # the caller stopped early
                request.wait()
                self.idle.append(request)

    def _finish(self, request: openvino.InferRequest, output: str | int) -> np.ndarray:
        request.wait()
        tensor = request.get_output_tensor(output) if isinstance(output, int) else request.get_tensor(output)
        found = np.array(tensor.data, dtype=np.float32)  # a copy: the request is reused
        self.idle.append(request)
        return found


def plan_batches(
    lengths: Sequence[int], streams: int = 1, most: int = BATCH_TOKENS, least: int = LEAST_TOKENS
) -> Iterator[list[int]]:
    """Batches of row indices with similar lengths, longest first, so that padding is small and the last batches are short.

    A batch ends when it is full, or when it is large enough and the next row is much shorter.
    """
    # A small number of rows is divided between the streams.
    full = min(most, max(least, -(-sum(map(padded_length, lengths)) // streams)))
    batch: list[int] = []
    width = 0
    for place in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        length = padded_length(lengths[place])
        ends = (len(batch) + 1) * width > full or (len(batch) * width >= least and length < SIMILAR * width)
        if batch and ends:
            yield batch
            batch = []
        if not batch:
            width = length
        batch.append(place)
    if batch:
        yield batch


def padded_length(length: int, step: int = STEP) -> int:
    return -(-length // step) * step


def pad(rows: Sequence[Sequence[int]], step: int = STEP) -> tuple[np.ndarray, np.ndarray]:
    """Token ids and their mask, padded to the longest row, rounded up to `step`."""
    width = padded_length(max(map(len, rows)), step)
    ids = np.zeros((len(rows), width), np.int32)
    mask = np.zeros((len(rows), width), np.int32)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
        mask[place, : len(row)] = 1
    return ids, mask


def cores() -> int:
    """CPU cores that this process may use: fewer than the machine has in a container that pins them, and no more than
    OMP_NUM_THREADS, by which schedulers such as Ray divide a machine between processes."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(available, int(asked)) if asked.isdecimal() and int(asked) else available


def runner_for(
    build: Callable[[], openvino.Model],
    *,
    identity: str,
    label: str,
    precision: str | None = None,
    cache: Path | None = None,
) -> Runner:
    """The runner of a model, compiled once per process and loaded from disk if this machine has compiled it before.

    build: makes the model; called only if no compiled one exists
    identity: changes whenever `build` would make a different model
    precision: "bf16" or "f32"; None selects bf16 if the CPU supports it
    cache: folder of compiled models; None for `cache_folder()`. If it is not writable, each start compiles again
    """
    key = (identity, label, precision, cache or cache_folder())
    if found := _runners.get(key):
        return found
    with _compiling:  # concurrent callers share one model
        if key not in _runners:
            if len(_runners) >= MOST_RUNNERS:
                del _runners[next(iter(_runners))]
            _runners[key] = _compile(build, *key)
        return _runners[key]


def _compile(
    build: Callable[[], openvino.Model], identity: str, label: str, precision: str | None, folder: Path
) -> Runner:
    ov = load_openvino()
    core = ov.Core()
    # One stream per core: cores that each run their own batch never wait for each other within a layer.
    streams = min(cores(), MOST_STREAMS)
    options: dict[str, Any] = {"NUM_STREAMS": streams, "INFERENCE_NUM_THREADS": cores(), "CACHE_DIR": ""}
    options["ENABLE_CPU_PINNING"] = False  # every process would pin its first thread to the same core
    if precision is not None:
        options["INFERENCE_PRECISION_HINT"] = precision
    path = folder / f"{label}-{_machine_key(ov, core, identity, options)}.blob"
    model, memory = _read_compiled(ov, core, path, options)
    if model is None:
        model = core.compile_model(build(), "CPU", options)
        _write_compiled(model, path, label)
    return Runner(model, streams, deque(), memory)


def _machine_key(ov: ModuleType, core: openvino.Core, identity: str, options: dict[str, Any]) -> str:
    # A compiled model is valid for one openvino release on one kind of CPU; a shared home directory may see several.
    facts = [identity, ov.__version__, repr(sorted(options.items()))]
    for fact in ("FULL_DEVICE_NAME", "OPTIMIZATION_CAPABILITIES", "INFERENCE_PRECISION_HINT"):
        facts.append(str(core.get_property("CPU", fact)))
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:24]


def _read_compiled(ov: ModuleType, core: openvino.Core, path: Path, options: dict[str, Any]) -> tuple[Any, Any]:
    """The compiled model and the memory that backs it, or nothing."""
    try:
        if not path.is_file():
            return None, None
        # Mapped, not read. Copy-on-write, because openvino accepts only writable arrays.
        mapped = ov.Tensor(np.memmap(path, np.uint8, "c"), shared_memory=True)
        model = core.import_model(mapped, "CPU", options)
    except (OSError, ValueError, RuntimeError):  # unreadable, empty or from another release: compile again
        return None, None
    with contextlib.suppress(OSError):
        os.utime(path)  # so that it does not count as stale
    return model, mapped


def _write_compiled(model: openvino.CompiledModel, path: Path, label: str) -> None:
    """Writes to a temporary file and renames it, so that another process sees all of it or nothing."""
    part: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f"{label}-", suffix=".part", dir=path.parent)
        part = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(model.export_model().getbuffer())
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except (OSError, RuntimeError):  # folder not writable, disk full, or file in use on Windows
        if part:
            with contextlib.suppress(OSError):
                part.unlink()
        return
    for other in (*path.parent.glob(f"{label}-*.blob"), *path.parent.glob(f"{label}-*.part")):
        with contextlib.suppress(OSError):
            if other != path and time.time() - other.stat().st_mtime > STALE_SECONDS:
                other.unlink()
