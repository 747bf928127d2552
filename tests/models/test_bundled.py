"""The bundled embedder: right vectors, in order, from any thread, without the network and without torch."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.errors import UserError
from assay.models.local import bert_graph, bundled, openvino_runner
from assay.models.local.bundled import BundledEmbedder, gte_small_weights
from assay.models.local.openvino_runner import pad, plan_batches

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
import weights_file

TEXTS = [
    "Aspirin reduces fever in adults.",
    "",
    "The mitochondrion is the powerhouse of the cell. " * 20,
    "Ein kleiner Hund läuft über die Straße.",
    "深度学习 is deep learning",
    "fever",
    "naïve café, ÉCOLE!",
    "x" * 5000,
    "word " * 2000,
    "tabs\tand\nlines\u0000and\u200binvisible",
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> BundledEmbedder:
    return BundledEmbedder(cache=tmp_path_factory.mktemp("cache"))


@pytest.mark.long
@pytest.mark.parametrize("precision", [None, "f32"])
def test_the_vectors_of_gte_small_are_those_of_the_original_less_their_centre(
    model: BundledEmbedder, precision: str | None
) -> None:
    original = json.loads((Path(__file__).parent / "gte_small_vectors.json").read_text())
    expected = np.array(list(original.values())) - gte_small_weights()["centre"]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    vectors = BundledEmbedder(precision, model.cache).embed(list(original))
    assert ((vectors * expected).sum(axis=1) > 0.999).all()


def test_texts_of_different_subjects_are_near_zero(model: BundledEmbedder) -> None:
    train, cell, sales = model.embed(
        ["The train to Lyon leaves at nine.", "Mitochondria produce energy.", "Net sales rose to $ 1,577 million."]
    )
    assert all(abs(similarity) < 0.3 for similarity in (train @ cell, train @ sales, cell @ sales))


def test_quantised_rows_are_within_half_a_step() -> None:
    matrix = np.random.default_rng(0).normal(size=(5, 64)).astype(np.float32)
    matrix[3] = 0
    rows, scales = weights_file.quantised(matrix)
    assert rows.dtype == np.int8 and np.abs(rows[0]).max() == 127
    assert (np.abs(rows * scales[:, None] - matrix) <= scales[:, None] / 2 + 1e-7).all()


def test_a_weights_file_comes_back_as_it_was_written(tmp_path: Path) -> None:
    tensors = {"a": np.arange(6, dtype=np.int8).reshape(2, 3), "b": np.array([0.5, -1], np.float32)}
    weights_file.write_safetensors(tmp_path / "w.safetensors", tensors, {"model": "test"})
    read = bert_graph.read_safetensors(tmp_path / "w.safetensors")
    assert list(read) == ["a", "b"]
    assert all(read[name].dtype == tensors[name].dtype and (read[name] == tensors[name]).all() for name in tensors)


def test_vectors_are_unit_float32_in_the_order_of_the_texts(model: BundledEmbedder) -> None:
    vectors = model.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), model.dim)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    backwards = model.embed(TEXTS[::-1])[::-1]
    assert ((vectors * backwards).sum(axis=1) > 0.9999).all()


def test_a_text_gets_the_same_vector_alone_and_in_company(model: BundledEmbedder) -> None:
    together = model.embed(TEXTS * 3)[: len(TEXTS)]
    alone = np.concatenate([model.embed([text]) for text in TEXTS])
    assert ((together * alone).sum(axis=1) > 0.9999).all()


def test_near_meanings_are_nearer_than_far_ones(model: BundledEmbedder) -> None:
    fever, paraphrase, other = model.embed(
        ["Aspirin reduces fever.", "A drug that lowers body temperature.", "The train to Lyon leaves at nine."]
    )
    assert fever @ paraphrase > fever @ other + 0.2


def test_no_texts_give_no_vectors(model: BundledEmbedder) -> None:
    assert model.embed([]).shape == (0, 384)


async def test_many_callers_at_once_each_get_their_own(model: BundledEmbedder) -> None:
    expected = model.embed(TEXTS)
    results = await asyncio.gather(*(model.passages([text] * 3) for text in TEXTS), model.queries(TEXTS))
    for place, found in enumerate(results[:-1]):
        assert (found @ expected[place] > 0.9999).all()
    assert ((results[-1] * expected).sum(axis=1) > 0.9999).all()


@pytest.mark.long
async def test_the_event_loop_keeps_turning_while_texts_are_embedded(model: BundledEmbedder) -> None:
    work = asyncio.create_task(model.passages(["a long passage about nothing " * 60] * 24))
    turns = 0
    while not work.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert turns > 5


def test_what_comes_after_the_window_is_not_read(model: BundledEmbedder) -> None:
    text = "river " * model.window
    assert model.tokens(text) == model.window
    first, second, third = model.embed([text, text + "a completely different end", "river " * (model.window - 40)])
    assert first @ second > 0.9999
    assert model.tokens(text + "end") == model.window + 1
    assert first @ third < 0.9999


def test_word_pieces_are_those_of_uncased_bert() -> None:
    pieces = bundled.tokenizer().encode("Naïve ÉCOLE unaffable, 大学!", add_special_tokens=False)
    assert pieces.tokens == ["naive", "ecole", "una", "##ffa", "##ble", ",", "大", "学", "!"]
    assert pieces.ids[0] == 15743


def test_counting_many_is_counting_each() -> None:
    model = BundledEmbedder()
    assert model.count(TEXTS) == [model.tokens(text) for text in TEXTS]
    assert model.tokens("") == 0
    assert model.count([]) == []


@given(st.lists(st.integers(2, 256), max_size=200), st.integers(1, 16))
def test_every_text_is_in_exactly_one_batch_that_fits(lengths: list[int], streams: int) -> None:
    planned = list(plan_batches(lengths, streams))
    assert sorted(place for places in planned for place in places) == list(range(len(lengths)))
    for places in planned:
        assert (
            len(places) * openvino_runner.padded_length(max(lengths[place] for place in places))
            <= openvino_runner.BATCH_TOKENS
        )


def test_texts_of_unlike_length_are_not_padded_to_the_longest_and_few_texts_use_every_core() -> None:
    assert list(plan_batches([250, 20, 250, 30, 250])) == [[0, 2, 4], [3, 1]]
    assert list(plan_batches([250] * 8, streams=2)) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_padding_is_masked() -> None:
    ids, mask = pad([[101, 7, 102], [101, 102]], step=4)
    assert ids.tolist() == [[101, 7, 102, 0], [101, 102, 0, 0]]
    assert mask.tolist() == [[1, 1, 1, 0], [1, 1, 0, 0]]


COLD = """
import sys, asyncio
before = set(sys.modules)
from assay.models.local.bundled import BundledEmbedder
assert not {"openvino", "tokenizers", "onnx", "httpx"} & set(sys.modules), "imported too early"
import socket
def refuse(*_, **__): raise AssertionError("the network was reached for")
vector = None
from pathlib import Path
loop = asyncio.new_event_loop()
socket.socket.connect = refuse
socket.getaddrinfo = refuse
vector = loop.run_until_complete(BundledEmbedder().queries(["fever"]))
loaded = [name for name in sys.modules if name.startswith(("openvino_telemetry", "openvino.tools", "torch", "onnx"))]
assert not loaded, loaded
print(float((vector ** 2).sum()))
"""


def cold(folder: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"ASSAY_CACHE_DIR": str(folder)}
    return subprocess.Popen([sys.executable, "-c", COLD], env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.long
def test_a_cold_start_reaches_no_network_and_loads_no_telemetry_and_two_at_once_share_a_cache(tmp_path: Path) -> None:
    for process in [cold(tmp_path), cold(tmp_path)]:
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert float(out) == pytest.approx(1, abs=1e-3)
    (kept,) = tmp_path.iterdir()  # one compiled model, no half-written files
    assert kept.suffix == ".blob"


def test_a_cache_that_cannot_be_written_to_only_costs_time(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert np.isfinite(BundledEmbedder(cache=blocked / "cache").embed(["fever"])).all()
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert np.isfinite(BundledEmbedder(cache=closed).embed(["fever"])).all()


@pytest.mark.long
def test_a_damaged_cache_is_made_anew(tmp_path: Path) -> None:
    expected = BundledEmbedder(cache=tmp_path).embed(["fever"])
    (kept,) = tmp_path.iterdir()
    whole = kept.read_bytes()
    openvino_runner._runners.clear()
    kept.unlink()  # the file in use stays as it is: it is mapped
    kept.write_bytes(whole[: len(whole) // 2])
    assert BundledEmbedder(cache=tmp_path).embed(["fever"]) @ expected.T > 0.9999
    openvino_runner._runners.clear()
    kept.unlink()
    kept.write_bytes(b"")
    assert BundledEmbedder(cache=tmp_path).embed(["fever"]) @ expected.T > 0.9999


def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    broken = tmp_path / "model.onnx"
    broken.write_bytes(b"not a model")
    with pytest.raises(UserError, match="reinstall"):
        gte_small_weights(broken)
    with pytest.raises(UserError, match="reinstall"):
        bert_graph.read_safetensors(broken)


def test_the_name_does_not_depend_on_the_precision() -> None:
    assert BundledEmbedder(precision="f32").name == BundledEmbedder(precision="bf16").name == BundledEmbedder().name


def test_no_more_threads_are_used_than_the_scheduler_of_the_process_grants(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(openvino_runner.os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    for granted, used in (("", 4), ("1", 1), ("8", 4), ("0", 4), ("many", 4)):
        monkeypatch.setenv("OMP_NUM_THREADS", granted)
        assert openvino_runner.cores() == used
