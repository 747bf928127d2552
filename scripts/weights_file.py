"""Write a weights file of the bundled models; `src/assay/models/local/bert_graph.py` describes it and reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from assay.models.local.bert_graph import TYPES, Weights


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
