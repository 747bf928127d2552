"""The weights of a BERT that was exported to ONNX, under the names of `weights_file.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from assay.models.local.onnx_tensors import read_tensors
from assay.models.local.weights_file import Weights, quantised

# An export keeps the names of biases and norms, but not those of the six matrices of a layer: they come in this order.
LINEAR = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "mix": "attention.output.dense",
    "up": "intermediate.dense",
    "down": "output.dense",
}
NORMS = {"mix.norm": "attention.output.LayerNorm", "down.norm": "output.LayerNorm"}

Matrix = Callable[[str], tuple[np.ndarray, np.ndarray]]  # int8 and scales of the tensor of this name


def read_float_bert(path: Path) -> dict[str, np.ndarray]:
    """Float matrices, quantised here."""
    tensors = read_tensors(path)
    matrices = [name for name in tensors if name.startswith("onnx::MatMul")]
    return named_weights(
        tensors, "", matrices, lambda name: quantised(tensors[name].T if name in matrices else tensors[name])
    )


def read_int8_bert(path: Path) -> dict[str, np.ndarray]:
    """Matrices that are int8 already, as the package of MiniLM has them."""
    tensors = read_tensors(path)
    matrices = [name[:-2] for name in tensors if name.startswith("val_") and name.endswith("_q")]

    def matrix(name: str) -> tuple[np.ndarray, np.ndarray]:
        rows = tensors[f"{name}_q"]
        return rows.T if name in matrices else rows, tensors[f"{name}_scale"].reshape(-1)

    return named_weights(tensors, "inner.", matrices, matrix)


def named_weights(tensors: Weights, prefix: str, matrices: Sequence[str], matrix: Matrix) -> dict[str, np.ndarray]:
    """prefix: before every name of the export; matrices: the export's names of the linear layers, six per layer in order"""
    named: dict[str, np.ndarray] = {}

    def add_matrix(name: str, of: str) -> None:
        named[name], named[f"{name}.scale"] = matrix(of)

    def add_floats(name: str, of: str, *parts: str) -> None:
        for part in parts:
            named[f"{name}.{part}"] = tensors[f"{prefix}{of}.{part}"]

    add_matrix("embeddings.word", f"{prefix}embeddings.word_embeddings.weight")
    add_matrix("embeddings.position", f"{prefix}embeddings.position_embeddings.weight")
    named["embeddings.type"] = tensors[f"{prefix}embeddings.token_type_embeddings.weight"]
    add_floats("embeddings.norm", "embeddings.LayerNorm", "weight", "bias")
    for layer in range(len(matrices) // len(LINEAR)):
        for place, (part, of) in enumerate(LINEAR.items()):
            add_matrix(f"layers.{layer}.{part}.weight", matrices[layer * len(LINEAR) + place])
            add_floats(f"layers.{layer}.{part}", f"encoder.layer.{layer}.{of}", "bias")
        for part, of in NORMS.items():
            add_floats(f"layers.{layer}.{part}", f"encoder.layer.{layer}.{of}", "weight", "bias")
    return named
