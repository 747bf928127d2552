"""BERT as an openvino graph, of any depth: int8 weights are converted to float once, when the graph is built.

Built by hand, because exported int8 graphs dequantise at every call: the float graph in half precision is several times faster.

The weights of each model are one safetensors file. A matrix NAME is stored as int8 rows with one float scale per row,
NAME.scale; everything else is float32. A linear layer is [output, input], as torch has it. Names: embeddings.word,
embeddings.position, embeddings.type, embeddings.norm, and for each layer N: layers.N.query, key, value, mix, mix.norm, up,
down, down.norm, each with weight and bias. Optional: `centre`, and heads.answers, heads.span.
"""

from __future__ import annotations

import functools
import hashlib
import json
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from assay.core.errors import UserError
from assay.models.local.openvino_runner import load_openvino

if TYPE_CHECKING:
    import openvino

HEADS, DIM = 12, 384
EPSILON = 1e-12
MASKED = -1e4  # finite, so that half-precision arithmetic has no infinities; exp() of it is zero
ANSWER_HEADS = ("answers", "span")

Output = Literal["mean", "tokens", "heads"]


def build_graph(weights: Weights, output: Output, window: int) -> openvino.Model:
    """Token ids and their mask, both [batch, length], to the output; `heads` has a third input, the types of the tokens.

    mean: a unit vector per text [batch, 384]; if the weights have a `centre`, it is subtracted and the rest normalised again
    tokens: a unit vector per token [batch, length, 384]
    heads: the numbers of all answer heads for every token [batch, length, 3]
    window: the longest input in tokens
    """
    ov = load_openvino()
    from openvino import opset13 as op

    names = ("ids", "mask", "types") if output == "heads" else ("ids", "mask")
    inputs = [op.parameter([-1, -1], np.int32, name=name) for name in names]
    shown = op.convert(inputs[1], "f32")
    bias = op.multiply(op.subtract(op.constant(np.float32(1)), shown), op.constant(np.float32(MASKED)))
    bias = op.unsqueeze(bias, _ints(op, 1, 2))
    x = _embed(op, weights, inputs[0], inputs[2] if output == "heads" else None, window)
    for layer in range(depth(weights)):
        x = _layer(op, weights, f"layers.{layer}.", x, bias)
    match output:
        case "mean":
            x = _mean(op, x, shown, weights.get("centre"))
        case "tokens":
            x = op.normalize_l2(x, _ints(op, 2), EPSILON, "max")
        case "heads":
            matrix = np.concatenate([weights[f"heads.{name}.weight"] for name in ANSWER_HEADS])
            x = _linear(op, x, matrix, np.concatenate([weights[f"heads.{name}.bias"] for name in ANSWER_HEADS]))
    return ov.Model([x], inputs, f"bert {output}")


def depth(weights: Weights) -> int:
    return sum(name.endswith(".query.weight") for name in weights)


def _mean(op: Any, x: Any, shown: Any, centre: np.ndarray | None) -> Any:
    # A masked sum is enough for the mean: normalising removes the factor.
    pooled = op.squeeze(op.matmul(op.unsqueeze(shown, _ints(op, 1)), x, False, False), _ints(op, 1))
    pooled = op.normalize_l2(pooled, _ints(op, 1), EPSILON, "max")
    if centre is None:
        return pooled
    return op.normalize_l2(op.subtract(pooled, op.constant(centre[None])), _ints(op, 1), EPSILON, "max")


def _embed(op: Any, weights: Weights, ids: Any, types: Any | None, window: int) -> Any:
    # The word table stays int8 (12 MB, not 47): only the rows looked up are converted to float, without loss.
    axis = op.constant(np.int32(0))
    rows = op.gather(op.constant(weights["embeddings.word"]), ids, axis)
    scales = op.gather(op.constant(weights["embeddings.word.scale"][:, None]), ids, axis)
    x = op.multiply(op.convert(rows, "f32"), scales)
    table = dequantised(weights, "embeddings.position")[:window]
    if types is None:  # every token is of type 0: its vector is added to the positions once, here
        table = table + weights["embeddings.type"][0]
    else:
        x = op.add(x, op.gather(op.constant(weights["embeddings.type"]), types, axis))
    length = op.gather(op.shape_of(ids, "i64"), _ints(op, 1), axis)
    positions = op.slice(op.constant(table[None]), _ints(op, 0), length, _ints(op, 1), _ints(op, 1))
    return _normed(op, weights, "embeddings.norm", op.add(x, positions))


def _layer(op: Any, weights: Weights, prefix: str, x: Any, bias: Any) -> Any:
    def linear(name: str, x: Any) -> Any:
        return _linear(op, x, dequantised(weights, f"{prefix}{name}.weight"), weights[f"{prefix}{name}.bias"])

    query, key, value = (
        op.transpose(op.reshape(linear(name, x), _ints(op, 0, 0, HEADS, DIM // HEADS), True), _ints(op, 0, 2, 1, 3))
        for name in ("query", "key", "value")
    )
    scores = op.multiply(op.matmul(query, key, False, True), op.constant(np.float32((DIM // HEADS) ** -0.5)))
    seen = op.matmul(op.softmax(op.add(scores, bias), -1), value, False, False)
    seen = op.reshape(op.transpose(seen, _ints(op, 0, 2, 1, 3)), _ints(op, 0, 0, DIM), True)
    x = _normed(op, weights, f"{prefix}mix.norm", op.add(linear("mix", seen), x))
    wide = linear("down", op.gelu(linear("up", x), "erf"))
    return _normed(op, weights, f"{prefix}down.norm", op.add(wide, x))


def _linear(op: Any, x: Any, matrix: np.ndarray, bias: np.ndarray) -> Any:
    return op.add(op.matmul(x, op.constant(matrix), False, True), op.constant(bias))


def _normed(op: Any, weights: Weights, name: str, x: Any) -> Any:
    centred = op.mvn(x, _ints(op, -1), True, EPSILON, "INSIDE_SQRT")
    scaled = op.multiply(centred, op.constant(weights[f"{name}.weight"]))
    return op.add(scaled, op.constant(weights[f"{name}.bias"]))


def _ints(op: Any, *values: int) -> Any:
    return op.constant(np.array(values, np.int64))


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


def dequantised(weights: Weights, name: str) -> np.ndarray:
    return weights[name].astype(np.float32) * weights[f"{name}.scale"][:, None]
