"""A model in a folder: what its files say is done, and what is missing is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from onnx_file import gathered_model

from assay.core.errors import UserError
from assay.models.local import bundled
from assay.models.local.bundled import BundledEmbedder
from assay.models.local.onnx_folder import OnnxFolder, pool, read_recipe

TEXTS = ["Aspirin reduces fever in adults.", "", "The powerhouse of the cell. " * 80, "Straße"]


def save_tokenizer(folder: Path) -> None:
    from tokenizers.processors import TemplateProcessing

    tokenizer = bundled.tokenizer().from_str(bundled.tokenizer().to_str())  # a copy
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", bundled.START), ("[SEP]", bundled.END)]
    )
    tokenizer.enable_truncation(16)  # as saved files often have it; the window is what counts
    tokenizer.enable_padding(length=128)
    tokenizer.save(str(folder / "tokenizer.json"))


def write(path: Path, value: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value))


@pytest.fixture(scope="module")
def _written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and its tokenizer: fifty megabytes, which no test changes where they are."""
    made = tmp_path_factory.mktemp("written")
    gathered_model(made / "model.onnx", 384, ["last_hidden_state"])
    save_tokenizer(made)
    return made


@pytest.fixture
def folder(_written: Path, tmp_path: Path) -> Path:
    made = tmp_path / "model"
    (made / "onnx").mkdir(parents=True)
    (made / "onnx" / "model.onnx").hardlink_to(_written / "model.onnx")
    shutil.copy(_written / "tokenizer.json", made)
    write(made / "config.json", {"max_position_embeddings": 512})
    write(made / "sentence_bert_config.json", {"max_seq_length": 256})
    return made


@pytest.mark.long
async def test_a_folder_gives_the_vectors_of_its_model(folder: Path, tmp_path: Path) -> None:
    embedder = OnnxFolder(folder, cache=tmp_path, precision="f32")
    vectors = await embedder.passages(TEXTS)
    table = gathered_model(tmp_path / "again.onnx", 384, ["last_hidden_state"])
    for text, vector in zip(TEXTS, vectors, strict=True):
        mean = table[bundled.token_rows([text], 254)[0]].mean(axis=0)
        assert vector @ mean / np.linalg.norm(mean) > 0.999
    assert embedder.dim == vectors.shape[1] == 384
    assert embedder.window == 254
    assert embedder.count(TEXTS) == BundledEmbedder().count(TEXTS)
    assert (await embedder.queries([])).shape == (0, 384)


async def test_prefixes_come_from_the_folder_unless_they_are_set(folder: Path, tmp_path: Path) -> None:
    write(folder / "config_sentence_transformers.json", {"prompts": {"query": "query: ", "document": "passage: "}})
    said = OnnxFolder(folder, cache=tmp_path)
    assert (said.recipe.query_prefix, said.recipe.passage_prefix) == ("query: ", "passage: ")
    assert said.window == 254 - 2
    query, passage = await said.queries(["fever"]), await said.passages(["fever"])
    plain = OnnxFolder(folder, "", "", cache=tmp_path)
    assert (await plain.queries(["query: fever"])) @ query.T > 0.9999
    assert (await plain.passages(["passage: fever"])) @ passage.T > 0.9999
    assert query @ passage.T < 0.999
    assert plain.name != said.name


def test_the_name_follows_the_files_and_the_pooling_and_not_the_place(folder: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(folder, moved, symlinks=True)
    assert OnnxFolder(moved).name == OnnxFolder(folder).name
    assert OnnxFolder(folder, pooling="cls").name != OnnxFolder(folder).name
    changed = (moved / "tokenizer.json").read_text().replace('"lowercase":true', '"lowercase":false')
    shutil.copytree(moved, tmp_path / "cased", symlinks=True)
    (tmp_path / "cased" / "tokenizer.json").write_text(changed + " ")
    assert OnnxFolder(tmp_path / "cased").name != OnnxFolder(folder).name


@pytest.mark.parametrize(
    ("mode", "pooling"),
    [("mean_tokens", "mean"), ("cls_token", "cls"), ("max_tokens", "max"), ("lasttoken", "last")],
)
def test_pooling_is_what_the_folder_says(folder: Path, mode: str, pooling: str) -> None:
    write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 384, f"pooling_mode_{mode}": True})
    assert read_recipe(folder).pooling == pooling
    assert read_recipe(folder, pooling="cls").pooling == "cls"


def test_an_output_that_is_pooled_already_is_taken_as_it_is(tmp_path: Path) -> None:
    gathered_model(tmp_path / "model.onnx", 8, ["last_hidden_state", "sentence_embedding"])
    save_tokenizer(tmp_path)
    embedder = OnnxFolder(tmp_path, cache=tmp_path / "cache", precision="f32")
    assert (embedder.recipe.output, embedder.recipe.pooling) == ("sentence_embedding", "none")
    assert embedder.dim == 8
    meaned = OnnxFolder(tmp_path, pooling="mean", cache=tmp_path / "cache", precision="f32")
    assert meaned.recipe.output == "last_hidden_state"
    # Eight tokens are not padded, and a sum and a mean point the same way.
    text = "one two three four five six"
    assert embedder.embed([text]) @ meaned.embed([text]).T > 0.9999


def test_padding_has_no_part_in_any_pooling() -> None:
    tokens = np.array([[[1.0, 4.0], [3.0, 2.0], [99.0, 99.0]]], np.float32)
    mask = np.array([[1, 1, 0]], np.int32)
    assert pool(tokens, mask, "mean").tolist() == [[2, 3]]
    assert pool(tokens, mask, "cls").tolist() == [[1, 4]]
    assert pool(tokens, mask, "max").tolist() == [[3, 4]]
    assert pool(tokens, mask, "last").tolist() == [[3, 2]]
    assert pool(tokens[:, 0], mask, "none").tolist() == [[1, 4]]


def test_what_is_missing_or_wrong_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no ONNX model in .*model\.onnx"):
        OnnxFolder(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"no pooling called 'sum': choose one of mean, cls, max, last, none"):
        OnnxFolder(folder, pooling="sum")
    with pytest.raises(UserError, match="gives one vector per token"):
        OnnxFolder(folder, pooling="none")
    write(folder / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True})
    with pytest.raises(UserError, match="mean and max, which is not supported"):
        OnnxFolder(folder)
    (folder / "1_Pooling" / "config.json").write_text("{")
    with pytest.raises(UserError, match="is not JSON"):
        OnnxFolder(folder)
    (folder / "1_Pooling" / "config.json").unlink()
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match="cannot be read as a tokenizer"):
        OnnxFolder(folder).tokens("a")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(UserError, match=r"no tokenizer\.json"):
        OnnxFolder(folder)
    (folder / "onnx" / "model.onnx").unlink()
    (folder / "onnx" / "model.onnx").write_bytes(b"nothing like a model")
    save_tokenizer(folder)
    with pytest.raises(UserError, match="cannot be read as an ONNX model"):
        OnnxFolder(folder)
