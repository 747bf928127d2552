"""The files of an ONNX model in a local folder: finds, reads and loads them."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.core.errors import UserError
from assay.models.local.openvino_runner import Runner, load_openvino, runner_for

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MODELS = ("model.onnx", "onnx/model.onnx")
DEFAULT_WINDOW, LONGEST_WINDOW = 512, 8192


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model and its tokenizer. `stamp` has the times and sizes of both files, so that a replaced model is loaded again."""

    model: Path
    tokenizer: Path
    stamp: tuple[int, ...]


def find_files(folder: Path) -> ModelFiles:
    """The model and tokenizer files of a folder. UserError names the file that is missing."""
    model = next((folder / name for name in MODELS if (folder / name).is_file()), None)
    if model is None:
        raise UserError(f"There is no ONNX model in {folder}: it needs model.onnx, or onnx/model.onnx.")
    places = (folder / "tokenizer.json", model.parent / "tokenizer.json", folder / "onnx" / "tokenizer.json")
    tokenizer = next((path for path in places if path.is_file()), None)
    if tokenizer is None:
        raise UserError(f"There is no tokenizer.json in {folder}: save the model's fast tokenizer beside the model.")
    stats = [path.stat() for path in (model, tokenizer)]
    return ModelFiles(model, tokenizer, tuple(number for stat in stats for number in (stat.st_mtime_ns, stat.st_size)))


def read_json(path: Path) -> Mapping[str, Any]:
    """The JSON object in a file; empty if the file does not exist."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise UserError(f"{path} is not JSON.") from None
    return value if isinstance(value, dict) else {}


def read_window(folder: Path) -> int:
    """The model's window in tokens: the limit of sentence-transformers or of the tokenizer, at most the model's positions."""
    stated = [
        read_json(folder / "sentence_bert_config.json").get("max_seq_length"),
        read_json(folder / "tokenizer_config.json").get("model_max_length"),  # huge if it is not set
        read_json(folder / "config.json").get("max_position_embeddings"),
    ]
    known = [number for number in stated if isinstance(number, int) and 2 < number <= LONGEST_WINDOW]
    return min(known, default=DEFAULT_WINDOW)


@functools.lru_cache(maxsize=4)
def load_tokenizer(files: ModelFiles, truncate: int | None = None) -> Tokenizer:
    """The tokenizer, without padding.

    truncate: the most tokens of a pair of texts, where the longer of the two is cut; None cuts nothing
    """
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(files.tokenizer))
    except Exception as error:  # tokenizers raises no narrower type
        raise UserError(f"{files.tokenizer} cannot be read as a tokenizer: {error}") from None
    tokenizer.no_padding()
    if truncate is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(truncate, strategy="longest_first")
    return tokenizer


@functools.lru_cache(maxsize=4)
def load_model(files: ModelFiles) -> Any:
    try:
        return load_openvino().Core().read_model(files.model)
    except RuntimeError as error:
        reason = (str(error).strip().splitlines() or [""])[-1]
        raise UserError(f"{files.model} cannot be read as an ONNX model: {reason}") from None


@functools.lru_cache(maxsize=8)
def digest(files: ModelFiles) -> str:
    """Of the files that decide the output. Large models keep their weights in separate files."""
    total = hashlib.sha256()
    weights = [path for path in files.model.parent.iterdir() if path.name.endswith((".onnx_data", ".onnx.data"))]
    for path in (files.model, *sorted(weights), files.tokenizer):
        with path.open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


def folder_runner(files: ModelFiles, label: str, precision: str | None, cache: Path | None) -> Runner:
    return runner_for(lambda: load_model(files), identity=digest(files), label=label, precision=precision, cache=cache)


def named_inputs(runner: Runner, offered: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The model's inputs, by name and in its number type. UserError if it needs an input that is not offered."""
    inputs: dict[str, np.ndarray] = {}
    for port in runner.model.inputs:
        name = next((name for name in port.names if name in offered), None)
        if name is None:
            raise UserError(
                f"The model asks for the input {port.any_name!r}, which is not part of a text: is it the right model?"
            )
        inputs[name] = offered[name].astype(port.element_type.to_dtype())
    return inputs
