"""An embedder from a local folder: an ONNX model with its tokenizer, pooling and prefixes, run by openvino.

The folder is laid out as sentence-transformers lays it out; what its files do not say can be set.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.core.errors import UserError
from assay.models.local.minilm import batches, padded
from assay.models.local.openvino_cpu import Runner, cache_folder, compile_runner, load_openvino

if TYPE_CHECKING:
    from tokenizers import Tokenizer

POOLINGS = ("mean", "cls", "max", "last", "none")  # none: the model's output is one vector a text already
MODELS = ("model.onnx", "onnx/model.onnx")
POOLED_OUTPUTS = ("sentence_embedding", "sentence_embeddings", "embeddings", "pooler_output")
QUERY_PROMPTS, PASSAGE_PROMPTS = ("query",), ("passage", "document", "corpus")
DEFAULT_WINDOW, LONGEST_WINDOW = 512, 8192
_loading = threading.Lock()


@dataclass(frozen=True)
class Recipe:
    """How a folder turns a text into a vector. Two folders with equal recipes and files give equal vectors."""

    model: Path
    tokenizer: Path
    output: str  # the name of the output that is read; empty for the first
    pooling: str
    query_prefix: str
    passage_prefix: str
    window: int  # with the marks that the tokenizer adds
    stamp: tuple[int, ...] = ()  # times and sizes of both files: a model that is exchanged is loaded again


class OnnxFolder:
    """Unit vectors from the model in `folder`. Its files are looked at on opening; the model is loaded when needed."""

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
        """Made of the digest of the files: a folder that is moved is the same embedder."""
        return _name(self.recipe)

    @property
    def dim(self) -> int:
        size = _read_model(self.recipe.model, self.recipe.stamp).output(self.recipe.output).partial_shape[-1]
        return size.get_length() if size.is_static else self.embed(["."]).shape[1]

    @property
    def window(self) -> int:
        """What is left for the text itself, after the tokenizer's marks and the prefix."""
        marks = _tokenizer(self.recipe).num_special_tokens_to_add(False)
        return max(1, self.recipe.window - marks - self.tokens(self.recipe.passage_prefix))

    def tokens(self, text: str) -> int:
        return self.count([text])[0]

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, without the marks around it and without its prefix."""
        encoded = _tokenizer(self.recipe).encode_batch_fast(list(texts), add_special_tokens=False)
        return [len(one) for one in encoded]

    async def passages(self, texts: Sequence[str]) -> np.ndarray:
        return await asyncio.to_thread(self.embed, [self.recipe.passage_prefix + text for text in texts])

    async def queries(self, texts: Sequence[str]) -> np.ndarray:
        return await asyncio.to_thread(self.embed, [self.recipe.query_prefix + text for text in texts])

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors of texts that have their prefix, in order. Blocks; any thread may call it."""
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        runner = _runner(self.recipe, self.precision, self.cache or cache_folder())
        tokenizer = _tokenizer(self.recipe)
        marks = tokenizer.num_special_tokens_to_add(False)
        rows = [
            _cut(one.ids, self.recipe.window, marks)
            for one in tokenizer.encode_batch_fast(list(texts), add_special_tokens=True)
        ]
        planned = list(batches([len(row) for row in rows], runner.streams))
        fed = [padded([rows[place] for place in places]) for places in planned]
        vectors: np.ndarray | None = None
        inputs = (_inputs(runner, ids, mask) for ids, mask in fed)
        for places, (_, mask), output in zip(planned, fed, runner.map(inputs, self.recipe.output), strict=True):
            found = pooled(output, mask, self.recipe.pooling)
            if vectors is None:
                vectors = np.zeros((len(texts), found.shape[1]), np.float32)
            vectors[places] = found
        assert vectors is not None
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.maximum(norms, 1e-12)


def read_recipe(
    folder: Path, query_prefix: str | None = None, passage_prefix: str | None = None, pooling: str | None = None
) -> Recipe:
    """What the folder says, and what was set over it. UserError names the file that is missing or makes no sense."""
    model = next((folder / name for name in MODELS if (folder / name).is_file()), None)
    if model is None:
        raise UserError(f"There is no ONNX model in {folder}: it needs model.onnx, or onnx/model.onnx.")
    tokenizer = next((place / "tokenizer.json" for place in (folder, model.parent) if _has(place)), None)
    if tokenizer is None:
        raise UserError(f"There is no tokenizer.json in {folder}: save the model's fast tokenizer beside the model.")
    if pooling is not None and pooling not in POOLINGS:
        raise UserError(f"There is no pooling called {pooling!r}: choose one of {', '.join(POOLINGS)}.")
    stamp = tuple(number for path in (model, tokenizer) for number in (path.stat().st_mtime_ns, path.stat().st_size))
    output, chosen = _pooling(folder, model, stamp, pooling)
    prompts = _json(folder / "config_sentence_transformers.json").get("prompts")
    prompts = prompts if isinstance(prompts, Mapping) else {}
    return Recipe(
        model,
        tokenizer,
        output,
        chosen,
        _prompt(prompts, QUERY_PROMPTS) if query_prefix is None else query_prefix,
        _prompt(prompts, PASSAGE_PROMPTS) if passage_prefix is None else passage_prefix,
        _window(folder),
        stamp,
    )


def pooled(output: np.ndarray, mask: np.ndarray, pooling: str) -> np.ndarray:
    """One vector a text. Padding has no part in it."""
    if output.ndim == 2 or pooling == "none":
        if output.ndim != 2:
            raise UserError(
                "The model gives one vector a token, so `embedder_pooling` cannot be none: set mean or cls."
            )
        return output
    match pooling:
        case "cls":
            return output[:, 0]
        case "last":
            return output[np.arange(len(output)), mask.sum(axis=1) - 1]
        case "max":
            return np.where(mask[:, :, None] > 0, output, -np.inf).max(axis=1)
        case _:
            return np.einsum("bld,bl->bd", output, mask.astype(np.float32)) / mask.sum(axis=1, keepdims=True)


def _pooling(folder: Path, model: Path, stamp: tuple[int, ...], asked: str | None) -> tuple[str, str]:
    """The output to read and how to pool it: as set, as 1_Pooling says, or as the model's outputs suggest."""
    outputs = {name: output for output in _read_model(model, stamp).outputs for name in output.names}
    flat = [name for name in outputs if outputs[name].partial_shape.rank.get_length() == 2]
    whole = [name for name in outputs if outputs[name].partial_shape.rank.get_length() == 3]
    whole.sort(key=lambda name: name != "last_hidden_state")
    said = asked or _declared(folder)
    if said and said != "none":
        if not whole:
            raise UserError(f"{model} gives one vector a text already: set `embedder_pooling` to none, not {said}.")
        return whole[0], said
    named = [name for name in POOLED_OUTPUTS if name in flat]
    if said is None and whole and named[:1] in ([], ["pooler_output"]):  # BERT's pooler was not trained for this
        return whole[0], "mean"
    if not flat:
        raise UserError(f"{model} gives one vector a token: set `embedder_pooling` to mean, cls, max or last.")
    return (named or flat)[0], "none"


def _declared(folder: Path) -> str | None:
    said = _json(folder / "1_Pooling" / "config.json")
    modes = {
        "pooling_mode_mean_tokens": "mean",
        "pooling_mode_cls_token": "cls",
        "pooling_mode_max_tokens": "max",
        "pooling_mode_lasttoken": "last",
    }
    chosen = [modes.get(key, key) for key, on in said.items() if key.startswith("pooling_mode_") and on]
    if not chosen:
        return None
    if len(chosen) > 1 or chosen[0] not in POOLINGS:
        raise UserError(
            f"{folder / '1_Pooling'} asks for {' and '.join(chosen)}, which is not supported: set `embedder_pooling`."
        )
    return chosen[0]


def _prompt(prompts: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next((prompts[key] for key in keys if isinstance(prompts.get(key), str)), "")


def _window(folder: Path) -> int:
    """sentence-transformers' own limit, or the tokenizer's, never beyond the model's positions."""
    told = [
        _json(folder / "sentence_bert_config.json").get("max_seq_length"),
        _json(folder / "tokenizer_config.json").get("model_max_length"),  # huge where nobody said
        _json(folder / "config.json").get("max_position_embeddings"),
    ]
    known = [number for number in told if isinstance(number, int) and 2 < number <= LONGEST_WINDOW]
    return min(known, default=DEFAULT_WINDOW)


def _has(place: Path) -> bool:
    return (place / "tokenizer.json").is_file()


def _json(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise UserError(f"{path} is not JSON.") from None
    return read if isinstance(read, dict) else {}


def _cut(ids: list[int], window: int, marks: int) -> list[int]:
    # The closing mark is kept, as tokenizers do when they truncate: some models pool it.
    if len(ids) <= window:
        return ids or [0]  # a tokenizer without marks finds nothing in an empty text
    return [*ids[: window - 1], ids[-1]] if marks else ids[:window]


def _inputs(runner: Runner, ids: np.ndarray, mask: np.ndarray) -> dict[str, np.ndarray]:
    """What the model asks for, by name."""
    offered = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    offered["position_ids"] = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
    fed: dict[str, np.ndarray] = {}
    for port in runner.model.inputs:
        name = next((name for name in port.names if name in offered), None)
        if name is None:
            raise UserError(
                f"The model asks for {port.any_name!r}, which no text embedder needs: is it the right model?"
            )
        fed[name] = offered[name].astype(port.element_type.to_dtype())
    return fed


@functools.lru_cache(maxsize=4)
def _read_model(path: Path, stamp: tuple[int, ...]) -> Any:
    try:
        return load_openvino().Core().read_model(path)
    except RuntimeError as error:
        reason = (str(error).strip().splitlines() or [""])[-1]
        raise UserError(f"{path} cannot be read as an ONNX model: {reason}") from None


@functools.lru_cache(maxsize=4)
def _tokenizer(recipe: Recipe) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        made = Tokenizer.from_file(str(recipe.tokenizer))
    except Exception as error:  # tokenizers raises nothing narrower
        raise UserError(f"{recipe.tokenizer} cannot be read as a tokenizer: {error}") from None
    made.no_padding()
    made.no_truncation()
    return made


@functools.lru_cache(maxsize=8)
def _name(recipe: Recipe) -> str:
    said = [recipe.output, recipe.pooling, recipe.query_prefix, recipe.passage_prefix, str(recipe.window)]
    made = hashlib.sha256("\n".join([_digest(recipe), *map(repr, said)]).encode()).hexdigest()
    return f"onnx/{made[:24]}/{recipe.pooling}"


@functools.lru_cache(maxsize=8)
def _digest(recipe: Recipe) -> str:
    """Of the files that make the vectors. Large models keep their weights in files of their own."""
    digest = hashlib.sha256()
    weights = [path for path in recipe.model.parent.iterdir() if path.name.endswith((".onnx_data", ".onnx.data"))]
    for path in (recipe.model, *sorted(weights), recipe.tokenizer):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _runner(recipe: Recipe, precision: str | None, folder: Path) -> Runner:
    with _loading:
        return _compiled(recipe, precision, folder)


@functools.lru_cache(maxsize=4)
def _compiled(recipe: Recipe, precision: str | None, folder: Path) -> Runner:
    return compile_runner(
        lambda: _read_model(recipe.model, recipe.stamp),
        identity=_digest(recipe),
        label="onnx",
        precision=precision,
        folder=folder,
    )
