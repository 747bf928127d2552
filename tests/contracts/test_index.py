"""What every `Index` and every `IndexEngine` must do. A new engine adds itself to `ENGINES` and to `factory.ENGINES`.

One promise is not kept by every engine: a Milvus server before 2.5 does not search by words. `has_words` says so; tests of
words alone take `word_index`, and `if_words` expects nothing there.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from milvus_server import milvus_address
from postgres_server import data_folder, new_database
from pydantic import SecretStr
from s3_server import content, new_bucket

from assay.core.errors import StoreError, UserError
from assay.core.settings import Settings
from assay.core.types import Hit, Passage, Row
from assay.governance.backup import hold_writer_locks
from assay.index import factory, milvus_index
from assay.index.filters import EVERYTHING, NOTHING, And, Contains, Eq, Filter, In, Not, Or, matches
from assay.index.lance.lance_index import LanceEngine, MemoryLimits, open_index
from assay.index.lance.tables import Bucket, Folder
from assay.index.lease import lease_path
from assay.index.memory_index import MemoryIndex
from assay.index.milvus_index import MilvusEngine, MilvusIndex, has_bm25
from assay.index.postgres_index import PostgresEngine
from assay.index.protocol import Index, IndexEngine

DIM = 8
SOAK = bool(os.environ.get("ASSAY_SOAK"))
HOSTILE = (
    "", "'", "''", "' OR '1'='1", "\\", "\\'", '"', "`", "%", "_", "100%", "a_b", "axb", "a\x00b", "a\nb", "--", "/*", ";",
    "$1", "?", "{}", "NULL", "TRUE", "İ", "ß", "ss", "SS", "ﬁ", "fi", "é", "e\u0301", "😀", "\U0010ffff", "\ufdd0", "\ufdd1",
    "\ufdd0x\ufdd1y\ufdd0", "\ufdd2\ufde0\ufde0", "\ue000", "\ud7ff", "日本語", "x" * 5000,
)  # fmt: skip


async def lance(folder: Path) -> Index:
    return await open_index(Folder(folder), "contract", DIM, create=True)


async def lance_half_folded(folder: Path) -> Index:
    """The same engine with some rows in its search structures, some deleted from them, and the rest not in them yet."""
    index = await open_index(Folder(folder), "contract", DIM, create=True, limits=MemoryLimits(words=0))
    await index.upsert([row(f"old-{i}", f"forgotten words number{i}") for i in range(30)])
    await index.optimise()
    await index.delete(EVERYTHING)
    return index


async def lance_reading(folder: Path) -> Index:
    """The same engine without room for terms and texts in memory."""
    return await open_index(Folder(folder), "contract", DIM, create=True, limits=MemoryLimits(text_bytes=0, words=0))


async def lance_on_s3(folder: Path) -> Index:
    return await factory.index_engine(settings_of_lance_on_s3(folder), folder).open("contract", DIM, create=True)


async def memory(folder: Path) -> Index:
    return MemoryIndex()


async def postgres(folder: Path) -> Index:
    return await PostgresEngine(folder, new_database()).open("contract", DIM, create=True)


async def milvus_lite(folder: Path) -> Index:
    pytest.importorskip("milvus_lite", reason="the package milvus-lite is not installed")
    return await MilvusEngine(folder, f"{folder}/milvus.db").open("contract", DIM, create=True)


async def milvus_lite_without_words(folder: Path) -> Index:
    """The same as on a server before 2.5."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(milvus_index, "WITH_BM25", (99,))
        return await milvus_lite(folder)


async def milvus_server(folder: Path) -> Index:
    return await MilvusEngine(folder, milvus_address()).open("contract", DIM, create=True)


ENGINES: tuple[Any, ...] = (
    memory,
    lance,
    lance_half_folded,
    lance_reading,
    pytest.param(lance_on_s3, marks=pytest.mark.long),
    pytest.param(postgres, marks=pytest.mark.long),
    pytest.param(milvus_lite, marks=pytest.mark.long),
    pytest.param(milvus_lite_without_words, marks=pytest.mark.long),
    pytest.param(milvus_server, marks=pytest.mark.long),
)


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.__name__)
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Index]:
    opened = await request.param(tmp_path)
    yield opened
    if isinstance(opened, MilvusIndex):  # a server keeps what is loaded in memory
        opened.client.drop_collection(opened.collection)


@pytest.fixture
def word_index(index: Index) -> Index:
    if not has_words(index):
        pytest.skip("this engine does not search by words")
    return index


def has_words(index: Index) -> bool:
    return not isinstance(index, MilvusIndex) or index.has_words


def if_words(index: Index, expected: list[str]) -> list[str]:
    """What a search by words must find: nothing where the engine does not search by words."""
    return expected if has_words(index) else []


def row(
    id: str, text: str = "plain words", *, vector: np.ndarray | None = None, lead: str = "", page: int | None = None,
    **fields: str,
) -> Row:  # fmt: skip
    doc = str(fields.get("doc", "d"))
    passage = Passage(id, doc, text, 3, 3 + len(text), "Methods › Sampling", page)
    spread = np.random.default_rng(list(id.encode())).standard_normal(DIM).astype(np.float32)
    return Row(passage, spread if vector is None else vector, lead, {"doc": doc, **fields})


def ids(hits: list[Hit]) -> list[str]:
    return [hit.passage.id for hit in hits]


def unit(at: int) -> np.ndarray:
    return np.eye(DIM, dtype=np.float32)[at]


async def test_an_empty_index_answers_with_nothing(index):
    assert await index.count(EVERYTHING) == 0
    assert await index.dense(unit(0), 5, EVERYTHING) == []
    assert await index.lexical("anything", 5, EVERYTHING) == []
    assert await index.fetch(["a"], EVERYTHING) == []
    assert await index.delete(EVERYTHING) == 0
    await index.upsert([])
    await index.optimise()
    assert await index.lexical("anything", 5, EVERYTHING) == []


async def test_what_goes_in_comes_out_exactly(index):
    fields = {"title": "A title", "date": "2024-05", "meta.färbe": "grün\n"}
    text = "  Ünïcode 😀 \u2028 text\n\twith a tail \n"
    stored = row("id-1", text, lead="Title\nHeading\n", page=7, **fields)
    await index.upsert([stored, row("id-2", "other", page=None)])
    by_words = await index.lexical("ünïcode", 1, EVERYTHING)
    assert ids(by_words) == if_words(index, ["id-1"])
    for hit in (
        (await index.fetch(["id-1"], EVERYTHING))[0],
        (await index.dense(stored.vector, 1, EVERYTHING))[0],
        *by_words,
    ):
        assert hit.passage == stored.passage
        assert hit.fields == stored.fields
        assert hit.title == "A title"
        assert np.array_equal(hit.vector, stored.vector)
        assert {name: type(value) for name, value in hit.fields.items()} == {
            k: type(v) for k, v in stored.fields.items()
        }


async def test_an_upsert_replaces_the_row_of_the_same_id(index):
    await index.upsert([row("a", "apples"), row("b", "bananas")])
    await index.upsert([row("a", "cherries", vector=unit(3), doc="new")])
    assert await index.count(EVERYTHING) == 2
    assert await index.lexical("apples", 5, EVERYTHING) == []
    assert ids(await index.lexical("cherries", 5, EVERYTHING)) == if_words(index, ["a"])
    assert ids(await index.dense(unit(3), 1, EVERYTHING)) == ["a"]
    assert await index.count(Eq("doc", "new")) == 1


async def test_of_two_rows_with_one_id_in_a_batch_the_last_counts(index):
    await index.upsert([row("a", "first"), row("a", "second")])
    assert await index.count(EVERYTHING) == 1
    assert (await index.fetch(["a"], EVERYTHING))[0].passage.text == "second"


async def test_what_is_deleted_is_found_no_more(index):
    await index.upsert([row(f"p{i}", "common words", doc=f"d{i % 3}") for i in range(30)])
    await index.optimise()
    assert await index.delete(Eq("doc", "d1")) == 10
    assert await index.delete(Eq("doc", "d1")) == 0
    left = sorted(f"p{i}" for i in range(30) if i % 3 != 1)
    for _ in range(2):
        assert sorted(ids(await index.lexical("common", 99, EVERYTHING))) == if_words(index, left)
        assert sorted(ids(await index.dense(unit(0), 99, EVERYTHING))) == left
        assert sorted(ids(await index.fetch([f"p{i}" for i in range(30)], EVERYTHING))) == left
        await index.optimise()


@pytest.mark.long
async def test_a_search_sees_every_change_made_before_it(index):
    expected: set[str] = set()
    for i in range(12):
        new = {f"{i}-{n}" for n in range(i % 4 + 1)}
        await index.upsert([row(name, "common words", doc=f"d{i}") for name in sorted(new)])
        expected |= new
        if i % 3 == 2:
            await index.delete(Eq("doc", f"d{i - 1}"))
            expected -= {name for name in expected if name.startswith(f"{i - 1}-")}
        assert set(ids(await index.dense(unit(0), 99, EVERYTHING))) == expected
        assert sorted(ids(await index.lexical("common", 99, EVERYTHING))) == if_words(index, sorted(expected))
        if i % 5 == 4:
            await index.optimise()


async def test_everything_can_be_deleted_and_the_index_used_again(index):
    await index.upsert([row(f"p{i}", "old words") for i in range(5)])
    await index.optimise()
    assert await index.delete(EVERYTHING) == 5
    await index.optimise()
    await index.upsert([row("p0", "running words")])
    assert ids(await index.lexical("runs old", 5, EVERYTHING)) == if_words(index, ["p0"])
    assert ids(await index.dense(unit(0), 5, EVERYTHING)) == ["p0"]


async def test_dense_hits_come_best_first_by_cosine(index):
    await index.upsert(
        [
            row("far", vector=-unit(0)),
            row("near", vector=unit(0) * 9 + unit(1)),
            row("same", vector=unit(0) * 0.1),
            row("across", vector=unit(1)),
            row("nowhere", vector=unit(0) * 0),
        ]
    )
    hits = await index.dense(unit(0) * 5, 9, EVERYTHING)
    assert ids(hits) == ["same", "near", "across", "nowhere", "far"]
    assert [hit.rank for hit in hits] == [1, 2, 3, 4, 5]
    assert [hit.scores["dense"] for hit in hits] == pytest.approx([1, 9 / 82**0.5, 0, 0, -1], abs=1e-6)


async def test_ties_break_on_the_passage_id_in_both_channels(index):
    names = [f"t{i:03d}" for i in range(80)]
    vector = np.random.default_rng(1).standard_normal(DIM).astype(np.float32)
    for start in (40, 0):
        shuffled = np.random.default_rng(2).permutation(names[start : start + 40]).tolist()
        await index.upsert([row(name, "equal words", vector=vector, half=str(name < "t040")) for name in shuffled])
    for where, expected in ((EVERYTHING, names[:7]), (Eq("half", "False"), names[40:47])):
        assert ids(await index.dense(vector, 7, where)) == expected
        assert ids(await index.lexical("equal", 7, where)) == if_words(index, expected)
    await index.optimise()
    assert ids(await index.dense(vector, 7, EVERYTHING)) == names[:7]
    assert ids(await index.lexical("equal", 7, EVERYTHING)) == if_words(index, names[:7])


async def test_k_may_be_larger_than_the_index_and_may_be_nothing(index):
    await index.upsert([row("a", "words"), row("b", "words")])
    assert len(await index.dense(unit(0), 1000, EVERYTHING)) == 2
    assert sorted(ids(await index.lexical("words", 1000, EVERYTHING))) == if_words(index, ["a", "b"])
    assert await index.dense(unit(0), 0, EVERYTHING) == []
    assert await index.lexical("words", 0, EVERYTHING) == []


async def test_a_rare_row_behind_a_filter_is_found_however_many_are_nearer(index):
    crowd = [row(f"c{i:04d}", "fever fever aspirin", vector=unit(0), label="crowd") for i in range(400)]
    rare = [row(f"r{i}", "one fever among many other words here", vector=unit(1), label="rare") for i in range(3)]
    await index.upsert(crowd + rare)
    for _ in range(2):
        assert ids(await index.dense(unit(0), 3, Eq("label", "rare"))) == ["r0", "r1", "r2"]
        assert ids(await index.lexical("fever", 3, Eq("label", "rare"))) == if_words(index, ["r0", "r1", "r2"])
        await index.optimise()


async def test_words_are_found_in_any_form_case_and_accent(word_index):
    await word_index.upsert([row("a", "The RUNNERS were running near the Café"), row("b", "nothing of the kind")])
    for _ in range(2):
        for query in ("run", "Running", "CAFE", "café", "runner"):
            assert ids(await word_index.lexical(query, 5, EVERYTHING)) == ["a"], query
        await word_index.optimise()


async def test_the_lead_is_searched_but_is_no_part_of_the_passage(word_index):
    await word_index.upsert([row("a", "body words", lead="Pharmacology"), row("b", "body words", lead="Botany")])
    hits = await word_index.lexical("pharmacology", 5, EVERYTHING)
    assert [hit.passage.text for hit in hits] == ["body words"]


async def test_more_and_rarer_words_rank_higher(word_index):
    await word_index.upsert(
        [row("both", "aspirin lowers fever"), row("one", "a fever is common here")]
        + [row(f"x{i}", "fever fever charts") for i in range(20)]
    )
    assert ids(await word_index.lexical("aspirin fever", 3, EVERYTHING))[0] == "both"


QUERIES = (
    '"', '"unclosed', "AND OR NOT", "*:*", "body:words", "+words -words", "words~2", "(", ")", "[a TO b]", "\\", "😀", "",
    " \n", "\x00", "'; DROP TABLE x; --", "\ud800", "the", "words^3", "w*", "word?", "日本語", "words " * 20_000,
    "a" * 100_000, " ".join(f"n{i}" for i in range(20_000)),
)  # fmt: skip


@pytest.mark.long
async def test_a_query_is_words_and_never_syntax(word_index):
    await word_index.upsert([row("a", "some words"), row("b", "a b")])
    for query in QUERIES:
        assert set(ids(await word_index.lexical(query, 5, EVERYTHING))) <= {"a", "b"}, ascii(query[:12])
        assert "a" in ids(await word_index.lexical(f"{query[:50]} words", 5, EVERYTHING)), ascii(query[:12])
    assert ids(await word_index.fetch(["a", "b"], EVERYTHING)) == ["a", "b"], "a query took something away"


async def test_rows_are_fetched_in_the_order_asked_for(index):
    await index.upsert([row(name, label="x" if name < "c" else "y") for name in ("a", "b", "c", "it's")])
    assert ids(await index.fetch(["it's", "a", "missing", "c", "a"], EVERYTHING)) == ["it's", "a", "c"]
    assert ids(await index.fetch(["c", "b", "a"], Eq("label", "x"))) == ["b", "a"]
    assert await index.fetch([], EVERYTHING) == []


async def test_empty_filters_mean_everything_or_nothing(index):
    await index.upsert([row("a"), row("b")])
    for where in (And(), Not(Or()), And((And(), And()))):
        assert await index.count(where) == 2
    for where in (Or(), NOTHING, In("doc", ()), Not(And()), Or((Or(),))):
        assert await index.count(where) == 0
        assert await index.dense(unit(0), 5, where) == []
        assert await index.lexical("words", 5, where) == []


@pytest.mark.parametrize("name", ["title", "meta.author", "it's \ufdd0odd\ufdd1", "label"])
@pytest.mark.long
async def test_no_string_can_break_a_filter(name, index, request):
    if name != "title" and "lance_on_s3" in request.node.name and not SOAK:
        pytest.skip("in a bucket the filters are the same SQL as in a folder: one field is enough")
    await index.upsert([row(f"h{i:02d}", **{name: text}) for i, text in enumerate(HOSTILE)])
    filters = [make(text) for text in HOSTILE for make in (
        lambda text: Eq(name, text), lambda text: Contains(name, text),
    )]  # fmt: skip
    await agree(index, {f"h{i:02d}": {name: text} for i, text in enumerate(HOSTILE)}, filters)


async def test_half_a_character_in_a_filter_matches_nothing_and_breaks_nothing(index):
    stored = {"a": "\ud7ff", "b": "\ue000", "c": "x"}
    await index.upsert([row(id, title=text, other=text) for id, text in stored.items()])
    lone = "\ud800"
    for name in ("title", "other"):
        for where in (Eq(name, lone), Contains(name, lone), In(name, (lone, lone + "x")), Eq(lone, "x")):
            assert await index.count(where) == 0
            assert await index.count(Not(where)) == 3


@pytest.mark.long
async def test_large_filters_are_taken_in_their_stride(index):
    await index.upsert([row("a", title="x" * 1_000_000), row("b", title="y", doc="d7")])
    assert await index.count(Eq("title", "x" * 1_000_000)) == 1
    assert await index.count(Contains("title", "X" * 999_999)) == 1
    assert await index.count(In("doc", tuple(f"d{i}" for i in range(5_000)))) == 1
    assert await index.count(Or(tuple(Eq("doc", f"d{i}") for i in range(2_000)))) == 1
    assert await index.count(And(tuple(Not(Eq("doc", f"e{i}")) for i in range(2_000)))) == 2


# ── filters, against their meaning ────────────────────────────────────────────────────────────────────────────────────

TEXTS = st.sampled_from(HOSTILE) | st.text(max_size=6)
STRINGS = ("title", "date", "label", "meta.author", "k")


def leaves() -> st.SearchStrategy[Filter]:
    name = st.sampled_from((*STRINGS, "absent"))
    return (
        st.builds(Eq, name, TEXTS)
        | st.builds(In, name, st.lists(TEXTS, max_size=3).map(tuple))
        | st.builds(Contains, name, TEXTS)
    )


FILTERS = st.recursive(
    leaves(),
    lambda inner: (
        st.builds(And, st.lists(inner, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, max_size=3).map(tuple))
        | st.builds(Not, inner)
    ),
    max_leaves=6,
)
FIELDS = st.fixed_dictionaries({}, optional=dict.fromkeys(STRINGS, TEXTS))


async def agree(index: Index, fields: dict[str, dict[str, str]], filters: list[Filter]) -> None:
    """Every way of reading agrees with `matches` about every filter."""
    for where in filters:
        expected = sorted(id for id, own in fields.items() if matches(where, own))
        assert await index.count(where) == len(expected), where
        assert sorted(ids(await index.fetch(list(fields), where))) == expected, where
        assert sorted(ids(await index.dense(unit(0), len(fields), where))) == expected, where
        assert sorted(ids(await index.lexical("words", len(fields), where))) == if_words(index, expected), where


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.__name__)
@pytest.mark.long
def test_every_filter_means_what_matches_says(engine, runner, tmp_path):
    counter = itertools.count()

    examples = (
        4 if engine is lance_on_s3 and not SOAK else 12
    )  # in a bucket they take long, and are the same SQL as in a folder

    @settings(max_examples=examples, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(FIELDS, min_size=1, max_size=12), st.lists(FILTERS, min_size=8, max_size=12))
    def check(rows: list[dict[str, str]], filters: list[Filter]) -> None:
        async def play() -> None:
            batch = next(counter)
            named = {f"{batch}-{i}": own for i, own in enumerate(rows)}
            await index.delete(EVERYTHING)
            await index.upsert([_bare(id, own) for id, own in named.items()])
            await agree(index, named, filters)
            doomed = filters[0]
            assert await index.delete(doomed) == sum(matches(doomed, own) for own in rows)
            await agree(index, {id: own for id, own in named.items() if not matches(doomed, own)}, filters[1:3])

        runner.run(play())

    index = runner.run(engine(tmp_path))
    check()


def _bare(id: str, fields: dict[str, str]) -> Row:
    """A row with these fields and no others."""
    made = row(id)
    return Row(made.passage, made.vector, made.lead, fields)


# ── engines: what the workspace and erase need ────────────────────────────────────────────────────────────────────────


def settings_of_lance(folder: Path) -> Settings:
    return Settings(index="lance")


def settings_of_lance_elsewhere(folder: Path) -> Settings:
    return Settings(index=f"lance:{folder}/elsewhere")


def settings_of_lance_on_s3(folder: Path) -> Settings:
    return Settings(index=f"lance:{new_bucket()}")


def settings_of_lance_on_s3_and_postgres(folder: Path) -> Settings:
    return Settings(index=f"lance:{new_bucket()}", state=SecretStr(new_database()))


def settings_of_memory(folder: Path) -> Settings:
    return Settings(index="memory")


def settings_of_postgres(folder: Path) -> Settings:
    return Settings(index="postgres", state=SecretStr(new_database()))


def settings_of_milvus_lite(folder: Path) -> Settings:
    pytest.importorskip("milvus_lite", reason="the package milvus-lite is not installed")
    return Settings(index=f"milvus:{folder}/milvus.db")


def settings_of_milvus_server(folder: Path) -> Settings:
    return Settings(index=f"milvus:{milvus_address()}")


WORKSPACES = (
    settings_of_lance,
    settings_of_lance_elsewhere,
    settings_of_memory,
    pytest.param(settings_of_lance_on_s3, marks=pytest.mark.long),
    pytest.param(settings_of_lance_on_s3_and_postgres, marks=pytest.mark.long),
    pytest.param(settings_of_postgres, marks=pytest.mark.long),
    pytest.param(settings_of_milvus_lite, marks=pytest.mark.long),
    pytest.param(settings_of_milvus_server, marks=pytest.mark.long),
)


@pytest.fixture(params=WORKSPACES, ids=lambda settings_of: settings_of.__name__.removeprefix("settings_of_"))
async def new_engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Callable[[str], IndexEngine]]:
    """The engine of a new workspace of this name."""
    made: list[IndexEngine] = []

    def make(name: str) -> IndexEngine:
        folder = tmp_path / name
        folder.mkdir()
        made.append(factory.index_engine(request.param(folder), folder))
        return made[-1]

    yield make
    for engine in made:
        if isinstance(engine, MilvusEngine):
            for base in ("b", "c"):
                await engine.drop(base)


@pytest.fixture
def engine(new_engine: Callable[[str], IndexEngine]) -> IndexEngine:
    return new_engine("workspace")


def test_an_unknown_engine_is_refused_by_name(tmp_path: Path):
    with pytest.raises(UserError, match=r"no index engine 'solr'.*lance"):
        factory.index_engine(Settings(index="solr"), tmp_path)


def test_an_address_is_not_taken_for_a_folder(tmp_path: Path):
    with pytest.raises(UserError, match="in a folder or on S3"):
        factory.index_engine(Settings(index="lance:https://host/index"), tmp_path)


def test_keys_are_not_taken_from_an_address(tmp_path: Path):
    with pytest.raises(UserError, match="keys belong in the environment"):
        factory.index_engine(Settings(index="lance:s3://key:secret@bucket/index"), tmp_path)


async def test_an_index_exists_from_its_creation_until_it_is_dropped(engine: IndexEngine):
    assert not engine.exists("b")
    with pytest.raises(UserError, match="assay reindex"):
        await engine.open("b", DIM)
    index = await engine.open("b", DIM, create=True)
    assert engine.exists("b") and not engine.exists("c")
    await index.upsert([row("a")])
    assert await (await engine.open("b", DIM)).count(EVERYTHING) == 1
    assert await (await engine.open("b", DIM, create=True)).count(EVERYTHING) == 1
    await engine.drop("b")
    assert not engine.exists("b")
    await engine.drop("b")
    assert await (await engine.open("b", DIM, create=True)).count(EVERYTHING) == 0


async def test_bases_do_not_share_rows_and_workspaces_do_not_share_bases(new_engine: Callable[[str], IndexEngine]):
    engine = new_engine("workspace")
    first, second = await engine.open("b", DIM, create=True), await engine.open("c", DIM, create=True)
    await first.upsert([row("a")])
    assert await second.count(EVERYTHING) == 0
    await engine.drop("c")
    assert await first.count(EVERYTHING) == 1
    assert not new_engine("other").exists("b")


async def test_an_index_is_not_opened_with_vectors_of_another_length(engine: IndexEngine):
    await engine.open("b", DIM, create=True)
    with pytest.raises(StoreError, match="assay reindex"):
        await engine.open("b", DIM + 1)


async def test_purge_leaves_nothing_of_deleted_rows(engine: IndexEngine, tmp_path: Path):
    index = await engine.open("b", DIM, create=True)
    await index.upsert([row(f"s{i}", f"xylophonequartz{i}", doc="secret") for i in range(3)])
    await index.upsert([row("k", "marmalade")])
    await index.optimise()
    disk = data_folder() if isinstance(engine, PostgresEngine) else tmp_path
    await index.delete(Eq("doc", "secret"))
    await index.upsert([row("k", "zeppelin")])
    left = await index.purge()
    if isinstance(engine, MilvusEngine):  # it removes old segments when it likes, and says so
        assert left and "Milvus" in left[0]
        return
    assert left == ()
    if isinstance(engine, LanceEngine) and isinstance(engine.place, Bucket):
        assert b"zeppelin" in content(engine.place.address)
        assert not any(word in content(engine.place.address) for word in (b"xylophonequartz", b"marmalade"))
    on_disk = b"".join(path.read_bytes() for path in disk.rglob("*") if path.is_file())
    assert b"xylophonequartz" not in on_disk and b"marmalade" not in on_disk
    assert ids(await index.lexical("zeppelin", 5, EVERYTHING)) == ["k"]


async def test_a_lease_has_one_holder_and_keeps_nobody_from_reading(engine: IndexEngine):
    index = await engine.open("b", DIM, create=True)
    async with engine.lease("b", 1.0):
        with pytest.raises(UserError, match="Another process has been writing"):
            async with engine.lease("b", 0.0):
                pass
        async with engine.lease("c", 0.0):
            pass
        await index.upsert([row("a")])
        assert await index.count(EVERYTHING) == 1
    async with engine.lease("b", 0.0):
        pass


async def test_a_lease_holds_the_lock_file_that_backup_and_erase_take(engine: IndexEngine, tmp_path: Path):
    held = {"b": lease_path(tmp_path / "workspace", "b")}
    with hold_writer_locks(held), pytest.raises(UserError, match="Another process has been writing"):
        async with engine.lease("b", 0.0):
            pass


async def test_rows_come_back_as_they_were_written(index):
    written = [row(f"r{i}", f"text {i}", lead="A lead\n", page=i, title="T") for i in range(5)]
    await index.upsert(written)
    assert await index.ids() == [f"r{i}" for i in range(5)]
    found = await index.rows(["r3", "gone", "r1"])
    assert [each.passage for each in found] == [written[3].passage, written[1].passage]
    assert [(each.lead, dict(each.fields)) for each in found] == [
        (written[at].lead, dict(written[at].fields)) for at in (3, 1)
    ]
    assert all(np.array_equal(each.vector, written[at].vector) for each, at in zip(found, (3, 1), strict=True))
    assert await index.rows([]) == []


async def test_an_engine_names_its_parts_and_their_versions(engine: IndexEngine):
    assert all(name and version for name, version in (await engine.versions()).items())


async def test_relabelled_rows_are_found_under_the_new_label_only(index):
    await index.upsert([row("a", doc="d1", label="open"), row("b", doc="d2", label="open")])
    assert await index.relabel({"d1": "secret"}) == 1
    assert await index.relabel({"d9": "secret"}) == 0
    assert ids(await index.lexical("words", 5, Eq("label", "secret"))) == if_words(index, ["a"])
    assert ids(await index.dense(unit(0), 5, Eq("label", "secret"))) == ["a"]
    assert ids(await index.dense(unit(0), 5, Eq("label", "open"))) == ["b"]


@pytest.mark.parametrize(
    ("version", "bm25"),
    [
        ("2.3.5", False),
        ("v2.3.5-lite", False),
        ("2.4.23", False),
        ("2.5.0", True),
        ("v2.6.1-dev", True),
        ("3.2.2", True),
    ],
)
def test_milvus_has_bm25_from_2_5_on(version: str, bm25: bool):
    assert has_bm25(version) == bm25


@pytest.mark.long
async def test_an_engine_without_search_by_words_says_so(engine: IndexEngine):
    index = await engine.open("b", DIM, create=True)
    assert any("not by their words" in limit for limit in engine.limits()) != has_words(index)


@pytest.mark.long
async def test_an_index_without_words_says_so_when_it_is_opened(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    assert not has_words(await milvus_lite_without_words(tmp_path))
    assert "not by their words" in caplog.text and "assay reindex" in caplog.text
    assert not has_words(await milvus_lite(tmp_path))  # it stays as it was made


async def test_a_milvus_that_is_too_old_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    server = SimpleNamespace(get_server_version=lambda: "v2.2.16", has_collection=lambda name: False)
    monkeypatch.setattr(milvus_index, "_client", lambda address: server)
    engine = MilvusEngine(tmp_path, "http://127.0.0.1:9")
    for use in (engine.versions(), engine.open("b", DIM, create=True)):
        with pytest.raises(UserError, match="is too old"):
            await use
