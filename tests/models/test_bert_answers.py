"""The answer model: its numbers are those of the network written out in numpy, and spans are places in the text."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from assay.models.local import bert_graph, bundled
from assay.models.local.bundled import BertAnswers, best_span, reading

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
import weights_file

QUESTION = "How many litres does the kettle hold?"
TEXTS = ["The kettle in the pump house holds seven litres.", "", "Die Straße zum Hafen. " * 120, "naïve café"]


def random_weights(layers: int = 2) -> dict[str, np.ndarray]:
    dice = np.random.default_rng(3)
    found: dict[str, np.ndarray] = {}

    def matrix(name: str, rows: int, columns: int, spread: float = 0.05) -> None:
        found[name], found[f"{name}.scale"] = weights_file.quantised(
            dice.normal(size=(rows, columns), scale=spread).astype(np.float32)
        )

    def floats(name: str, *shape: int, around: float = 0.0) -> None:
        found[name] = (around + dice.normal(size=shape, scale=0.1)).astype(np.float32)

    matrix("embeddings.word", 30522, 384)
    matrix("embeddings.position", 512, 384)
    floats("embeddings.type", 2, 384)
    norms = ["embeddings.norm"]
    for layer in range(layers):
        for part, rows, columns in [(n, 384, 384) for n in ("query", "key", "value", "mix")] + [
            ("up", 1536, 384),
            ("down", 384, 1536),
        ]:
            matrix(f"layers.{layer}.{part}.weight", rows, columns)
            floats(f"layers.{layer}.{part}.bias", rows)
        norms += [f"layers.{layer}.mix.norm", f"layers.{layer}.down.norm"]
    for name in norms:
        floats(f"{name}.weight", 384, around=1.0)
        floats(f"{name}.bias", 384)
    for head, rows in (("answers", 1), ("span", 2)):
        floats(f"heads.{head}.weight", rows, 384)
        floats(f"heads.{head}.bias", rows)
    return found


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> BertAnswers:
    folder = tmp_path_factory.mktemp("answers")
    weights_file.write_safetensors(folder / "w.safetensors", random_weights(), {})
    return BertAnswers(folder / "w.safetensors", "f32", folder)


def plain_bert(w: bert_graph.Weights, ids: list[int], types: list[int]) -> np.ndarray:
    """The same network in numpy, one text at a time, without a mask."""

    def norm(name: str, x: np.ndarray) -> np.ndarray:
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
        return x * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(name: str, x: np.ndarray) -> np.ndarray:
        return x @ bert_graph.dequantised(w, f"{name}.weight").T + w[f"{name}.bias"]

    words = bert_graph.dequantised(w, "embeddings.word")[ids]
    x = norm(
        "embeddings.norm",
        words + bert_graph.dequantised(w, "embeddings.position")[: len(ids)] + w["embeddings.type"][types],
    )
    for layer in ("layers.0.", "layers.1."):
        query, key, value = (
            linear(layer + part, x).reshape(-1, 12, 32).swapaxes(0, 1) for part in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(1, 2) / math.sqrt(32)
        seen = (np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)) @ value
        x = norm(f"{layer}mix.norm", x + linear(layer + "mix", seen.swapaxes(0, 1).reshape(-1, 384)))
        up = linear(layer + "up", x)
        gelu = up * 0.5 * (1 + np.vectorize(math.erf)(up / math.sqrt(2)))
        x = norm(f"{layer}down.norm", x + linear(layer + "down", gelu))
    heads = [x @ w[f"heads.{name}.weight"].T + w[f"heads.{name}.bias"] for name in ("answers", "span")]
    return np.concatenate(heads, axis=1)


def test_the_readings_are_those_of_the_network_in_numpy(model: BertAnswers):
    asked, text = bundled.tokenizer().encode_batch([QUESTION, TEXTS[0]], add_special_tokens=False)
    first = [bundled.START, *asked.ids, bundled.END]
    ids = [*first, *text.ids, bundled.END]
    numbers = plain_bert(model.weights(), ids, [0] * len(first) + [1] * (len(text.ids) + 1))
    expected = reading(numbers[0, 0], numbers[len(first) : -1, 1:], text.offsets)
    found = model.readings(QUESTION, TEXTS)[0]
    assert found.span == expected.span
    assert [found.answers, found.span_score] == pytest.approx([expected.answers, expected.span_score], abs=2e-3)


async def test_a_text_reads_the_same_alone_and_in_company_and_spans_lie_in_it(model: BertAnswers):
    together = await model.read(QUESTION, TEXTS)
    for text, one in zip(TEXTS, together, strict=True):
        (alone,) = await model.read(QUESTION, [text])
        assert alone.answers == pytest.approx(one.answers, abs=1e-3) and alone.span == one.span
        assert 0 <= one.span[0] <= one.span[1] <= len(text)
        assert 0 <= one.answers <= 1
    assert together[1].span == (0, 0)
    assert await model.read(QUESTION, []) == []


def test_a_long_question_is_cut_and_the_text_still_read(model: BertAnswers):
    near, far = model.readings("why " * 500, [TEXTS[0], "The far shore."])
    assert near.answers != far.answers


def test_the_best_span_ends_after_it_starts_and_is_short():
    assert best_span(np.array([0.1, 0.8, 0.1]), np.array([0.7, 0.1, 0.2]))[:2] == (1, 2)
    starts, ends = np.zeros(80), np.zeros(80)
    starts[0], ends[79], ends[20] = 1.0, 0.9, 0.1
    assert best_span(starts, ends) == (0, 20, pytest.approx(0.1))


def test_the_name_changes_with_the_weights_and_there_is_no_model_without_them(
    model: BertAnswers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    weights_file.write_safetensors(tmp_path / "w.safetensors", {"a": np.zeros(2, np.float32)}, {})
    assert model.name != BertAnswers(tmp_path / "w.safetensors").name
    monkeypatch.setattr(bundled, "FILE", tmp_path / "none.safetensors")
    assert bundled.bundled_answer_model.__wrapped__() is None
