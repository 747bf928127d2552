"""The weights of the local BERT models: one safetensors file each, with the same names for every model.

A matrix NAME is stored as int8 rows with one float scale per row, NAME.scale; everything else is float32. A linear layer is
[output, input], as torch has it. `bert_graph.py` lists the names.
"""

from __future__ import annotations

import functools
import hashlib
import json
import mmap
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from assay.core.errors import UserError

Weights = Mapping[str, np.ndarray]

WEIGHTS = Path(__file__).parent / "weights"  # the weights files of the package
TYPES = {"F32": np.float32, "I8": np.int8}


@functools.cache
def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file by name; memory-mapped, not copied. UserError if the file is damaged."""
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        return {
            name: _tensor(data, 8 + size, entry["dtype"], entry["shape"], *entry["data_offsets"])
            for name, entry in header.items()
            if name != "__metadata__"
        }
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{path} is damaged: reinstall it with pip install --force-reinstall.") from None


def _tensor(data: mmap.mmap, start: int, dtype: str, shape: list[int], begin: int, end: int) -> np.ndarray:
    kind = np.dtype(TYPES[dtype])
    return np.frombuffer(data, kind, (end - begin) // kind.itemsize, start + begin).reshape(shape)


def write_safetensors(path: Path, tensors: Weights, metadata: Mapping[str, str]) -> None:
    """The tensors in one file, in the given order."""
    names = {np.dtype(kind): name for name, kind in TYPES.items()}
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    at = 0
    for name, tensor in tensors.items():
        header[name] = {
            "dtype": names[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [at, at + tensor.nbytes],
        }
        at += tensor.nbytes
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for tensor in tensors.values():
            file.write(np.ascontiguousarray(tensor).tobytes())


def quantised(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int8 rows and the scale of each row: symmetric, the largest number of a row becomes 127; halves round to even."""
    scales = (np.abs(matrix).max(axis=1) / 127).astype(np.float32)
    scales[scales == 0] = 1
    return np.clip(np.rint(matrix / scales[:, None]), -127, 127).astype(np.int8), scales


def dequantised(weights: Weights, name: str) -> np.ndarray:
    return weights[name].astype(np.float32) * weights[f"{name}.scale"][:, None]
