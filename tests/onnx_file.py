"""Writes small ONNX models for tests. The `onnx` package would be a large dependency for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

FLOAT, INT64 = 1, 7  # ONNX element types
TYPES = {np.dtype(np.float32): FLOAT, np.dtype(np.int64): INT64}


@dataclass(frozen=True)
class Node:
    """One operation; `attributes` are integers."""

    kind: str
    inputs: Sequence[str]
    output: str
    attributes: Mapping[str, int] = field(default_factory=dict)


def write_onnx(
    path: Path,
    nodes: Sequence[Node],
    constants: Mapping[str, np.ndarray],
    inputs: Sequence[str],
    outputs: Mapping[str, Sequence[str | int]],
) -> None:
    """inputs: matrices of int64, a row a text; outputs: the shape of each, of floats"""
    graph = b"".join(
        [
            *(_message(1, _node(each)) for each in nodes),
            _message(2, b"graph"),
            *(_message(5, _tensor(name, value)) for name, value in constants.items()),
            *(_message(11, _value(name, INT64, ("batch", "length"))) for name in inputs),
            *(_message(12, _value(name, FLOAT, shape)) for name, shape in outputs.items()),
        ]
    )
    operations = _message(1, b"") + _number(2, 13)
    path.write_bytes(_number(1, 8) + _message(7, graph) + _message(8, operations))


def gathered_model(path: Path, width: int, outputs: Sequence[str]) -> np.ndarray:
    """A model that looks a vector up for each token (last_hidden_state) and adds them up (sentence_embedding). `outputs`:
    which of these it gives. Returns the vectors, by token of uncased BERT."""
    table = np.random.default_rng(0).normal(size=(30522, width)).astype(np.float32)
    shapes = {"last_hidden_state": ("batch", "length", width), "sentence_embedding": ("batch", width)}
    nodes = [
        Node("Gather", ["table", "input_ids"], "last_hidden_state"),
        Node("ReduceSum", ["last_hidden_state", "axis"], "sentence_embedding", {"keepdims": 0}),
    ]
    constants = {"table": table, "axis": np.array([1])}
    write_onnx(path, nodes, constants, ["input_ids"], {name: shapes[name] for name in outputs})
    return table


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _message(field: int, value: bytes | str) -> bytes:
    body = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(body)) + body


def _node(node: Node) -> bytes:
    names = b"".join(_message(1, name) for name in node.inputs) + _message(2, node.output) + _message(4, node.kind)
    integer = 2  # the type of an attribute
    attributes = (
        _message(1, name) + _number(3, value) + _number(20, integer) for name, value in node.attributes.items()
    )
    return names + b"".join(_message(5, each) for each in attributes)


def _tensor(name: str, value: np.ndarray) -> bytes:
    shape = b"".join(_number(1, size) for size in value.shape)
    return shape + _number(2, TYPES[value.dtype]) + _message(8, name) + _message(9, value.tobytes())


def _value(name: str, kind: int, shape: Sequence[str | int]) -> bytes:
    sizes = (_number(1, size) if isinstance(size, int) else _message(2, size) for size in shape)
    tensor = _number(1, kind) + _message(2, b"".join(_message(1, size) for size in sizes))
    return _message(1, name) + _message(2, _message(1, tensor))
