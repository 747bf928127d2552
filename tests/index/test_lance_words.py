"""Words in memory: they rank as Lance's word index does, and follow the table through every change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from assay.core.types import Passage, Row
from assay.index.filters import EVERYTHING, Eq, Filter
from assay.index.lance.lance_index import LanceIndex, MemoryLimits, open_index
from assay.index.lance.tables import Folder
from assay.index.lance.words import bm25, pack_terms, query_terms, terms_of, word_block, word_weights

DIM = 4
LANCE = MemoryLimits(words=0)
VOCABULARY = (
    "the of and a flood floods flooding flooded river rivers Café cafe naïve running runner valve valves valve-11 2019 "
    "1,250 treatment treated analyses analysis dying skies generously München x_y don't not with into U.S. e-mail"
).split()
QUERIES = (
    "flooding rivers",
    "the café",
    "valve 11",
    "analysis of treated skies",
    "MUNCHEN naive",
    "x y don't",
    "1250 1 250",
)


def row(id: str, text: str, doc: str = "d", lead: str = "Lead") -> Row:
    vector = np.random.default_rng(list(id.encode())).standard_normal(DIM).astype(np.float32)
    return Row(Passage(id, doc, text, 0, len(text)), vector, lead, {"doc": doc, "label": "l"})


async def opened(folder: Path, limits: MemoryLimits | None = None) -> LanceIndex:
    return await open_index(Folder(folder), "b", DIM, create=True, limits=limits)


def invented(count: int, seed: int) -> list[Row]:
    chance = np.random.default_rng(seed)
    texts = (" ".join(chance.choice(VOCABULARY, chance.integers(1, 40))) for _ in range(count))
    return [row(f"p{seed}-{i:03d}", text, doc=f"d{i % 3}") for i, text in enumerate(texts)]


async def ranked(index: LanceIndex, query: str, where: Filter = EVERYTHING) -> dict[str, float]:
    return {hit.passage.id: hit.scores["lexical"] for hit in await index.lexical(query, 1000, where)}


def in_memory(index: LanceIndex) -> bool:
    assert index._view and index._view.snapshot
    return index._view.snapshot.has_words


@pytest.mark.parametrize("where", [EVERYTHING, Eq("doc", "d1")], ids=["all rows", "a third of them"])
async def test_words_in_memory_score_as_those_of_lance(tmp_path, where):
    index, plain = await opened(tmp_path), await opened(tmp_path, LANCE)
    await index.upsert(invented(200, seed=1))
    await index.optimise()
    for query in QUERIES:
        ours, theirs = await ranked(index, query, where), await ranked(plain, query, where)
        assert ours and ours == pytest.approx(theirs, rel=1e-4), query
    assert in_memory(index) and not in_memory(plain)


async def test_words_in_memory_follow_every_change(tmp_path):
    chance = np.random.default_rng(3)
    index = await opened(tmp_path)
    for seed in range(6):
        await index.upsert(invented(int(chance.integers(1, 60)), seed))
        await index.delete(Eq("doc", f"d{seed % 3}"))
        fresh = await opened(tmp_path)
        for query in QUERIES:
            assert await ranked(index, query) == pytest.approx(await ranked(fresh, query), rel=1e-5), query
    assert in_memory(index)


async def test_a_table_that_outgrows_the_limit_is_searched_by_lance(tmp_path):
    index = await opened(tmp_path, MemoryLimits(words=30))
    await index.upsert([row(f"a{i:02d}", f"flood number{i}") for i in range(25)])
    assert len(await ranked(index, "flood")) == 25
    assert in_memory(index)
    await index.upsert([row(f"b{i:02d}", f"flood number{i}") for i in range(10)])
    assert len(await ranked(index, "flood")) == 35
    assert not in_memory(index)
    await index.upsert([row("c", "flood", doc="late")])  # without terms
    await index.delete(Eq("doc", "d"))
    for each in (index, await opened(tmp_path)):
        assert list(await ranked(each, "flood")) == ["c"]
        assert not in_memory(each)


async def test_a_table_made_before_it_had_terms_is_searched_and_written_all_the_same(tmp_path):
    older = await opened(tmp_path)
    await older.upsert([row("a", "flood in the valley"), row("b", "nothing of the kind")])
    await older.table.drop_columns(["terms"])
    index = await opened(tmp_path)
    assert list(await ranked(index, "flooding")) == ["a"]
    await index.upsert([row("c", "floods"), row("b", "a flood after all")])
    assert set(await ranked(index, "flooding")) == {"a", "b", "c"}
    assert await index.relabel({"d": "m"}) == 3
    assert not in_memory(index)
    assert [each.passage.id for each in await index.rows(["a", "c"])] == ["a", "c"]


def test_terms_are_stems_without_stop_words_and_garbage():
    assert terms_of("The Runners were RUNNING to München, " + "x" * 65) == ["runner", "run", "munchen"]
    assert terms_of("") == terms_of("the !") == []


def test_many_repetitions_count_as_255_and_half_characters_do_no_harm():
    assert [entry & 0xFF for entry in pack_terms("flood " * 1_000)] == [255]
    assert pack_terms("\ud800 half") and len(query_terms("\ud800 half")) in (1, 2)


def test_a_block_without_words_scores_nothing():
    nothing = word_block(np.array(pack_terms("the"), np.uint64), np.array([0, 0], np.int32))
    (scores,) = bm25(query_terms("flood"), word_weights([(nothing, np.ones(2, bool))]))
    assert scores.tolist() == [0.0, 0.0]
