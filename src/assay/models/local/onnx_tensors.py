"""The tensors of an ONNX file: a minimal protobuf reader, because the `onnx` package would be a large dependency."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

FLOAT32, INT8 = 1, 3  # ONNX element types


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """The float32 and int8 tensors by name, in the order of the file; memory-mapped, not copied."""
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    tensors: dict[str, np.ndarray] = {}
    for number, value in _fields(data, 0, len(data)):
        if number == 7:  # ModelProto.graph
            for inner, span in _fields(data, *value):
                if inner == 5:  # GraphProto.initializer
                    name, tensor = _tensor(data, *span)
                    if tensor is not None:
                        tensors[name] = tensor
    return tensors


def _fields(data: mmap.mmap, at: int, end: int) -> Iterator[tuple[int, Any]]:
    """Field numbers with their values: an int, or the span of a length-delimited field."""
    while at < end:
        key, at = _varint(data, at)
        match key & 7:
            case 0:
                value, at = _varint(data, at)
                yield key >> 3, value
            case 1:
                yield key >> 3, (at, at := at + 8)
            case 2:
                size, at = _varint(data, at)
                yield key >> 3, (at, at := at + size)
            case 5:
                yield key >> 3, (at, at := at + 4)
            case kind:
                raise ValueError(f"protobuf wire type {kind}")


def _varint(data: mmap.mmap, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _tensor(data: mmap.mmap, at: int, end: int) -> tuple[str, np.ndarray | None]:
    name, kind, raw = "", 0, None
    dims: list[int] = []
    for number, value in _fields(data, at, end):
        match number:
            case 1 if isinstance(value, int):
                dims.append(value)
            case 1:  # packed
                place, stop = value
                while place < stop:
                    dim, place = _varint(data, place)
                    dims.append(dim)
            case 2:
                kind = value
            case 8:
                name = data[slice(*value)].decode()
            case 9:
                raw = value
            case _:
                pass
    dtype = {FLOAT32: np.float32, INT8: np.int8}.get(kind)
    if raw is None or dtype is None:
        return name, None
    count = (raw[1] - raw[0]) // np.dtype(dtype).itemsize
    return name, np.frombuffer(data, dtype, count, raw[0]).reshape(dims)
