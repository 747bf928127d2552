"""A cross-encoder in a local folder: a query and a passage read together, one number for how well they fit."""

from __future__ import annotations

import functools
import hashlib
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.core.errors import UserError
from assay.models.local.minilm import batches, padded
from assay.models.local.openvino_cpu import Runner, cache_folder, compile_runner, load_openvino

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MODELS = ("model.onnx", "onnx/model.onnx")
DEFAULT_WINDOW, LONGEST_WINDOW = 512, 8192
_loading = threading.Lock()


def pair_scores(
    folder: Path, query: str, texts: Sequence[str], precision: str | None = None, cache: Path | None = None
) -> np.ndarray:
    """How well each text fits the query, in the order of the texts, 0 to 1. Blocks; any thread may call it."""
    scores = np.zeros(len(texts), np.float32)
    if not texts:
        return scores
    runner = _runner(folder, precision, cache or cache_folder())
    # Where both do not fit, the longer of the two gives way, which is the passage.
    encoded = _tokenizer(folder).encode_batch([(query, text) for text in texts])
    planned = list(batches([len(pair.ids) for pair in encoded], runner.streams))
    fed = (_inputs(runner, [encoded[place] for place in places]) for places in planned)
    for places, output in zip(planned, runner.map(fed), strict=True):
        scores[places] = fit(output)
    return scores


def fit(output: np.ndarray) -> np.ndarray:
    """One probability a row, from one number (a logit) or from two (does not fit, fits)."""
    logits = output.reshape(len(output), -1)
    if logits.shape[1] > 2:
        raise UserError(f"The reranker gives {logits.shape[1]} numbers a pair where one or two say how well it fits.")
    margin = logits[:, -1] - logits[:, 0] if logits.shape[1] == 2 else logits[:, 0]
    return 1.0 / (1.0 + np.exp(-np.clip(margin, -60, 60)))


def _inputs(runner: Runner, pairs: Sequence[Any]) -> dict[str, np.ndarray]:
    """What the model asks for, by name."""
    ids, mask = padded([pair.ids for pair in pairs])
    kinds = np.zeros_like(ids)
    for row, pair in enumerate(pairs):
        kinds[row, : len(pair.type_ids)] = pair.type_ids
    offered = {"input_ids": ids, "attention_mask": mask, "token_type_ids": kinds}
    fed: dict[str, np.ndarray] = {}
    for port in runner.model.inputs:
        name = next((name for name in port.names if name in offered), None)
        if name is None:
            raise UserError(f"The reranker asks for {port.any_name!r}, which no cross-encoder of text needs.")
        fed[name] = offered[name].astype(port.element_type.to_dtype())
    return fed


def _model(folder: Path) -> Path:
    found = next((folder / name for name in MODELS if (folder / name).is_file()), None)
    if found is None:
        raise UserError(f"There is no ONNX model in {folder}: it needs model.onnx, or onnx/model.onnx.")
    return found


@functools.lru_cache(maxsize=4)
def _tokenizer(folder: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    path = next((place / "tokenizer.json" for place in (folder, folder / "onnx") if _has(place)), None)
    if path is None:
        raise UserError(f"There is no tokenizer.json in {folder}: save the model's fast tokenizer beside the model.")
    try:
        made = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises nothing narrower
        raise UserError(f"{path} cannot be read as a tokenizer: {error}") from None
    made.no_padding()
    made.enable_truncation(_window(folder), strategy="longest_first")
    return made


def _has(place: Path) -> bool:
    return (place / "tokenizer.json").is_file()


def _window(folder: Path) -> int:
    """The tokenizer's limit, never beyond the model's positions."""
    told = [
        _said(folder / "tokenizer_config.json").get("model_max_length"),  # huge where nobody said
        _said(folder / "config.json").get("max_position_embeddings"),
    ]
    return min((n for n in told if isinstance(n, int) and 8 < n <= LONGEST_WINDOW), default=DEFAULT_WINDOW)


def _said(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise UserError(f"{path} is not JSON.") from None
    return read if isinstance(read, dict) else {}


def _runner(folder: Path, precision: str | None, cache: Path) -> Runner:
    with _loading:  # two threads that ask at once share one model
        return _compiled(folder, precision, cache)


@functools.lru_cache(maxsize=2)
def _compiled(folder: Path, precision: str | None, cache: Path) -> Runner:
    model = _model(folder)
    digest = hashlib.sha256()
    weights = [path for path in model.parent.iterdir() if path.name.endswith((".onnx_data", ".onnx.data"))]
    for path in (model, *sorted(weights)):  # large models keep their weights in files of their own
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return compile_runner(
        lambda: _read(model), identity=digest.hexdigest(), label="cross", precision=precision, folder=cache
    )


def _read(model: Path) -> Any:
    try:
        return load_openvino().Core().read_model(model)
    except RuntimeError as error:
        reason = (str(error).strip().splitlines() or [""])[-1]
        raise UserError(f"{model} cannot be read as an ONNX model: {reason}") from None
