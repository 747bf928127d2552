"""The run time under the local embedders: openvino on the processor, imported late, compiled once, kept on disk.

Nothing here reaches the network: the converter, which alone would load a telemetry package, is kept out.
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
MOST_STREAMS = 8  # each has its own working memory
STALE_SECONDS = 30 * 24 * 3600
_importing = threading.Lock()

Inputs = Sequence[np.ndarray] | dict[str, np.ndarray]


def load_openvino() -> ModuleType:
    """The openvino package without its converter. Importing the converter imports `openvino_telemetry`, and is slow."""
    with _importing:
        if "openvino" not in sys.modules:
            hidden = CONVERTER not in sys.modules
            if hidden:
                sys.modules[CONVERTER] = None  # pyright: ignore[reportArgumentType]  # python's way to say "cannot be imported"
            try:
                import openvino  # noqa: F401
            finally:
                if hidden:  # whoever wants the converter for themselves can still import it
                    sys.modules.pop(CONVERTER, None)
    return sys.modules["openvino"]


def cache_folder() -> Path:
    """Where compiled models are kept: ASSAY_CACHE_DIR, or the user's cache folder."""
    if chosen := os.environ.get("ASSAY_CACHE_DIR"):
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("assay", appauthor=False))


@dataclass(frozen=True)
class Runner:
    """A compiled model that any thread may call.

    Each caller borrows requests of its own, so that a query never waits for the whole of somebody's long list, only
    for the batches that are already running.
    """

    model: openvino.CompiledModel
    streams: int
    idle: deque[openvino.InferRequest]
    memory: object  # what the model's weights may lie in, kept as long as the model

    def map(self, batches: Iterable[Inputs], output: str | int = 0) -> Iterator[np.ndarray]:
        """One output for each batch, in order; as many run at once as there are streams."""
        running: deque[openvino.InferRequest] = deque()
        try:
            for inputs in batches:
                if len(running) >= self.streams:
                    yield self._finished(running.popleft(), output)
                request = self._borrowed()
                request.start_async(inputs, share_inputs=False)
                running.append(request)
            while running:
                yield self._finished(running.popleft(), output)
        finally:
            for request in running:  # the caller gave up half way
                request.wait()
                self.idle.append(request)

    def _borrowed(self) -> openvino.InferRequest:
        try:
            return self.idle.pop()
        except IndexError:
            return self.model.create_infer_request()

    def _finished(self, request: openvino.InferRequest, output: str | int) -> np.ndarray:
        request.wait()
        tensor = request.get_output_tensor(output) if isinstance(output, int) else request.get_tensor(output)
        found = np.array(tensor.data, dtype=np.float32)  # a copy: the request is used again
        self.idle.append(request)
        return found


def cores() -> int:
    """Cores this process may use; fewer than the machine's in a container that pins them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compile_runner(
    build: Callable[[], openvino.Model], *, identity: str, label: str, precision: str | None, folder: Path | None
) -> Runner:
    """A runner for the model that `build` makes; taken from `folder` when this machine compiled it before.

    identity: changes whenever `build` would make another model
    precision: "bf16" or "f32"; None takes bf16 where the processor has it
    folder: where to keep the compiled model; None, or one that cannot be written to, costs a slower start and no more
    """
    ov = load_openvino()
    core = ov.Core()
    # One stream a core: two cores that each take a batch never wait for each other half way through a layer.
    streams = min(cores(), MOST_STREAMS)
    options: dict[str, Any] = {"NUM_STREAMS": streams, "INFERENCE_NUM_THREADS": cores(), "CACHE_DIR": ""}
    if precision is not None:
        options["INFERENCE_PRECISION_HINT"] = precision
    kept = folder / f"{label}-{_machine_key(ov, core, identity, options)}.blob" if folder else None
    model, memory = _from_disk(ov, core, kept, options) if kept else (None, None)
    if model is None:
        model = core.compile_model(build(), "CPU", options)
        if kept:
            _to_disk(model, kept, label)
    return Runner(model, streams, deque(), memory)


def _machine_key(ov: ModuleType, core: openvino.Core, identity: str, options: dict[str, Any]) -> str:
    # A compiled model is good for one release of openvino on one kind of processor: a shared home may see several.
    facts = [identity, ov.__version__, repr(sorted(options.items()))]
    for fact in ("FULL_DEVICE_NAME", "OPTIMIZATION_CAPABILITIES", "INFERENCE_PRECISION_HINT"):
        facts.append(str(core.get_property("CPU", fact)))
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:24]


def _from_disk(ov: ModuleType, core: openvino.Core, kept: Path, options: dict[str, Any]) -> tuple[Any, Any]:
    """The model and the memory that it lives in, or nothing."""
    try:
        if not kept.is_file():
            return None, None
        # Mapped, not read. Copy-on-write, because openvino takes no array that could not be written to.
        mapped = ov.Tensor(np.memmap(kept, np.uint8, "c"), shared_memory=True)
        model = core.import_model(mapped, "CPU", options)
    except (OSError, ValueError, RuntimeError):  # unreadable, empty, not a model of this release: compile again
        return None, None
    with contextlib.suppress(OSError):
        os.utime(kept)  # so that it does not count as stale
    return model, mapped


def _to_disk(model: openvino.CompiledModel, kept: Path, label: str) -> None:
    """Written beside and renamed, so that a second process sees all of it or nothing."""
    part: Path | None = None
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f"{label}-", suffix=".part", dir=kept.parent)
        part = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(model.export_model().getbuffer())
            file.flush()
            os.fsync(file.fileno())
        part.replace(kept)
    except (OSError, RuntimeError):  # a folder that cannot be written to, a full disk, a file in use on Windows
        if part:
            with contextlib.suppress(OSError):
                part.unlink()
        return
    for old in _stale(kept, label):
        with contextlib.suppress(OSError):
            old.unlink()


def _stale(kept: Path, label: str) -> Iterator[Path]:
    for other in (*kept.parent.glob(f"{label}-*.blob"), *kept.parent.glob(f"{label}-*.part")):
        with contextlib.suppress(OSError):
            if other != kept and time.time() - other.stat().st_mtime > STALE_SECONDS:
                yield other
