"""ONNX models in local folders: an embedder with its tokenizer, pooling and prefixes, and a cross-encoder, which reads a
query and a passage together and returns one score for the pair.

A folder has the layout of sentence-transformers. Settings supply what its files do not say.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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


POOLINGS = ("mean", "cls", "max", "last", "none")  # none: the model already returns one vector per text
POOLED_OUTPUTS = ("sentence_embedding", "sentence_embeddings", "embeddings", "pooler_output")
QUERY_PROMPTS, PASSAGE_PROMPTS = ("query",), ("passage", "document", "corpus")
POOLING_MODES = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "last",
}


@dataclass(frozen=True, slots=True)
class EmbeddingRecipe:
    """How a folder turns a text into a vector. Equal recipes over equal files give equal vectors."""

    files: ModelFiles
    output: str  # name of the output tensor
    pooling: str
    query_prefix: str
    passage_prefix: str
    window: int  # including special tokens


@dataclass(eq=False)
class OnnxFolder:
    """Unit vectors from the model in `folder`. Its files are read on opening; the model is loaded on first use."""

    folder: Path
    query_prefix: str | None = field(default=None, repr=False)
    passage_prefix: str | None = field(default=None, repr=False)
    pooling: str | None = field(default=None, repr=False)
    precision: str | None = field(default=None, repr=False)
    cache: Path | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.recipe = read_recipe(self.folder, self.query_prefix, self.passage_prefix, self.pooling)

    @property
    def name(self) -> str:
        """Derived from the digest of the files: a folder that is moved remains the same embedder."""
        return _name(self.recipe)

    @property
    def dim(self) -> int:
        size = load_model(self.recipe.files).output(self.recipe.output).partial_shape[-1]
        return size.get_length() if size.is_static else self.embed(["."]).shape[1]

    @property
    def window(self) -> int:
        """Tokens of the text itself, without the special tokens and the prefix."""
        special = load_tokenizer(self.recipe.files).num_special_tokens_to_add(False)
        return max(1, self.recipe.window - special - self.tokens(self.recipe.passage_prefix))

    def tokens(self, text: str) -> int:
        return self.count([text])[0]

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, without special tokens and prefix."""
        encoded = load_tokenizer(self.recipe.files).encode_batch_fast(list(texts), add_special_tokens=False)
        return [len(one) for one in encoded]

    async def passages(self, texts: Sequence[str]) -> np.ndarray:
        return await asyncio.to_thread(self.embed, [self.recipe.passage_prefix + text for text in texts])

    async def queries(self, texts: Sequence[str]) -> np.ndarray:
        return await asyncio.to_thread(self.embed, [self.recipe.query_prefix + text for text in texts])

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors of texts that already have their prefix, in input order. Blocks; thread-safe."""
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        recipe = self.recipe
        runner = folder_runner(recipe.files, "onnx", self.precision, self.cache)

        def inputs(_: list[int], ids: np.ndarray, mask: np.ndarray) -> dict[str, np.ndarray]:
            positions = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
            offered = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            return named_inputs(runner, {**offered, "position_ids": positions})

        vectors: np.ndarray | None = None
        for places, mask, output in runner.run(self._token_rows(texts), inputs, recipe.output):
            found = pool(output, mask, recipe.pooling)
            if vectors is None:
                vectors = np.zeros((len(texts), found.shape[1]), np.float32)
            vectors[places] = found
        assert vectors is not None
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.maximum(norms, 1e-12)

    def _token_rows(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids with special tokens, cut to the window. The last token is kept, as some models pool it."""
        tokenizer, window = load_tokenizer(self.recipe.files), self.recipe.window
        special = tokenizer.num_special_tokens_to_add(False)
        rows: list[list[int]] = []
        for one in tokenizer.encode_batch_fast(list(texts), add_special_tokens=True):
            ids = one.ids or [0]  # without special tokens, an empty text has no tokens
            if len(ids) > window:
                ids = [*ids[: window - 1], ids[-1]] if special else ids[:window]
            rows.append(ids)
        return rows


def read_recipe(
    folder: Path, query_prefix: str | None = None, passage_prefix: str | None = None, pooling: str | None = None
) -> EmbeddingRecipe:
    """The folder's recipe with the settings applied. UserError names the file that is missing or invalid."""
    files = find_files(folder)
    if pooling is not None and pooling not in POOLINGS:
        raise UserError(f"There is no pooling called {pooling!r}: choose one of {', '.join(POOLINGS)}.")
    output, mode = _pooling(folder, files, pooling)
    prompts = read_json(folder / "config_sentence_transformers.json").get("prompts")
    prompts = prompts if isinstance(prompts, Mapping) else {}
    return EmbeddingRecipe(
        files,
        output,
        mode,
        _prompt(prompts, QUERY_PROMPTS) if query_prefix is None else query_prefix,
        _prompt(prompts, PASSAGE_PROMPTS) if passage_prefix is None else passage_prefix,
        read_window(folder),
    )


def pool(output: np.ndarray, mask: np.ndarray, pooling: str) -> np.ndarray:
    """One vector per text, ignoring padding."""
    if output.ndim == 2:
        return output
    match pooling:
        case "none":
            raise UserError(
                "The model gives one vector per token, so `embedder_pooling` cannot be none: set mean or cls."
            )
        case "cls":
            return output[:, 0]
        case "last":
            return output[np.arange(len(output)), mask.sum(axis=1) - 1]
        case "max":
            return np.where(mask[:, :, None] > 0, output, -np.inf).max(axis=1)
        case _:
            return np.einsum("bld,bl->bd", output, mask.astype(np.float32)) / mask.sum(axis=1, keepdims=True)


def _pooling(folder: Path, files: ModelFiles, asked: str | None) -> tuple[str, str]:
    """The output to read and how to pool it: as set, as 1_Pooling says, or as the model's outputs suggest."""
    ranks = {name: each.partial_shape.rank.get_length() for each in load_model(files).outputs for name in each.names}
    per_text = [name for name, rank in ranks.items() if rank == 2]
    per_token = sorted((name for name, rank in ranks.items() if rank == 3), key=lambda n: n != "last_hidden_state")
    mode = asked or _declared_pooling(folder)
    if mode and mode != "none":
        if not per_token:
            raise UserError(
                f"{files.model} gives one vector per text already: set `embedder_pooling` to none, not {mode}."
            )
        return per_token[0], mode
    known = [name for name in POOLED_OUTPUTS if name in per_text]
    if mode is None and per_token and known[:1] in ([], ["pooler_output"]):  # BERT's pooler was not trained for this
        return per_token[0], "mean"
    if not per_text:
        raise UserError(f"{files.model} gives one vector per token: set `embedder_pooling` to mean, cls, max or last.")
    return (known or per_text)[0], "none"


def _declared_pooling(folder: Path) -> str | None:
    config = read_json(folder / "1_Pooling" / "config.json")
    modes = [POOLING_MODES.get(key, key) for key, on in config.items() if key.startswith("pooling_mode_") and on]
    if not modes:
        return None
    if len(modes) > 1 or modes[0] not in POOLINGS:
        raise UserError(
            f"{folder / '1_Pooling'} asks for {' and '.join(modes)}, which is not supported: set `embedder_pooling`."
        )
    return modes[0]


def _prompt(prompts: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next((prompts[key] for key in keys if isinstance(prompts.get(key), str)), "")


@functools.lru_cache(maxsize=8)
def _name(recipe: EmbeddingRecipe) -> str:
    parts = [recipe.output, recipe.pooling, recipe.query_prefix, recipe.passage_prefix, str(recipe.window)]
    whole = hashlib.sha256("\n".join([digest(recipe.files), *map(repr, parts)]).encode()).hexdigest()
    return f"onnx/{whole[:24]}/{recipe.pooling}"
