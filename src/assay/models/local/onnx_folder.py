"""An embedder from a local folder: an ONNX model with its tokenizer, pooling and prefixes.

The folder has the layout of sentence-transformers. Settings supply what its files do not say.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.core.errors import UserError
from assay.models.local.onnx_folder import ModelFiles
from assay.models.local.onnx_folder import digest
from assay.models.local.onnx_folder import find_files
from assay.models.local.onnx_folder import folder_runner
from assay.models.local.onnx_folder import load_model
from assay.models.local.onnx_folder import load_tokenizer
from assay.models.local.onnx_folder import named_inputs
from assay.models.local.onnx_folder import read_json
from assay.models.local.onnx_folder import read_window

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


class OnnxFolder:
    """Unit vectors from the model in `folder`. Its files are read on opening; the model is loaded on first use."""

    def __init__(
        self,
        folder: Path,
        query_prefix: str | None = None,
        passage_prefix: str | None = None,
        pooling: str | None = None,
        precision: str | None = None,
        cache: Path | None = None,
    ) -> None:
        self.folder = folder
        self.recipe = read_recipe(folder, query_prefix, passage_prefix, pooling)
        self.precision = precision
        self.cache = cache

    def __repr__(self) -> str:
        return f"OnnxFolder({str(self.folder)!r})"

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
