"""A cross-encoder in a local folder: reads a query and a passage together and returns one score for the pair."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from assay.core.errors import UserError
from assay.models.local.onnx_folder import find_files
from assay.models.local.onnx_folder import folder_runner
from assay.models.local.onnx_folder import load_tokenizer
from assay.models.local.onnx_folder import named_inputs
from assay.models.local.onnx_folder import read_window


def pair_scores(
    folder: Path, query: str, texts: Sequence[str], precision: str | None = None, cache: Path | None = None
) -> np.ndarray:
    """The relevance of each text to the query, 0 to 1, in input order. Blocks; thread-safe."""
    scores = np.zeros(len(texts), np.float32)
    if not texts:
        return scores
    files = find_files(folder)
    runner = folder_runner(files, "cross", precision, cache)
    pairs = load_tokenizer(files, read_window(folder)).encode_batch([(query, text) for text in texts])

    def inputs(places: list[int], ids: np.ndarray, mask: np.ndarray) -> dict[str, np.ndarray]:
        types = np.zeros_like(ids)
        for row, place in enumerate(places):
            types[row, : len(pairs[place].type_ids)] = pairs[place].type_ids
        return named_inputs(runner, {"input_ids": ids, "attention_mask": mask, "token_type_ids": types})

    for places, _, output in runner.run([pair.ids for pair in pairs], inputs):
        scores[places] = probabilities(output)
    return scores


def probabilities(output: np.ndarray) -> np.ndarray:
    """One probability per row, from one logit or from two (does not fit, fits)."""
    logits = output.reshape(len(output), -1)
    if logits.shape[1] > 2:
        raise UserError(f"The reranker gives {logits.shape[1]} numbers per pair; it must give one or two.")
    margin = logits[:, -1] - logits[:, 0] if logits.shape[1] == 2 else logits[:, 0]
    return 1.0 / (1.0 + np.exp(-np.clip(margin, -60, 60)))
