from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from assay.core.types import Hit, Passage
from assay.evaluate.plain_text import WordEmbedder
from assay.index.filters import EVERYTHING
from assay.index.fusion import Ranking, capped, fuse
from assay.index.lance import rows
from assay.index.protocol import HitList, hit_list, pick
from assay.ingest.sources import SourceFile
from assay.workspace.facade import open_workspace


def hit(id: str, doc: str = "d", score: float = 1.0) -> Hit:
    return Hit(Passage(id, doc, f"text of {id}", 0, 9), np.array([1.0, score], np.float32), {"dense": score}, 1)


def counted(hits: list[Hit], made: list[int]) -> HitList:
    columns = hit_list(hits, "dense")

    def make(at: int) -> Hit:
        made.append(at)
        return hits[at]

    return HitList(columns.ids, columns.doc_ids, columns.vectors, columns.scores, make)


def test_a_list_with_columns_is_a_list():
    hits = [hit(name) for name in "abcd"]
    listed = counted(hits, [])
    assert list(listed) == hits and listed[1] is hits[1] and listed[-1] is hits[3] and listed[1:3] == hits[1:3]
    assert (len(listed), bool(listed), bool(listed.take([]))) == (4, True, False)
    assert hits[2] in listed and hit_list(listed) is listed
    with pytest.raises(IndexError):
        listed[4]


def test_columns_stay_with_their_hits():
    left, right = counted([hit("a", "x", 0.9), hit("b", "y", 0.5)], []), counted([hit("c", "z", 0.7)], [])
    for listed in (pick([(left, 1), (right, 0), (left, 0)]), left.take([1, 0])):
        assert [each.passage.id for each in listed] == list(listed.ids)
        assert [each.passage.doc_id for each in listed] == list(listed.doc_ids)
        assert [each.scores["dense"] for each in listed] == list(listed.scores)
        assert all(each.vector is vector for each, vector in zip(listed, listed.vectors, strict=True))


def test_ranking_makes_no_hit():
    made: list[int] = []
    hits = counted([hit(f"p{n:02}", f"d{n % 5}", 1 - n / 100) for n in range(50)], made)
    best = capped(fuse({"dense": hits}, np.array([1.0, 0.2], np.float32), Ranking()), 2)
    assert (len(best), made) == (10, [])
    assert best[0].scores["fused"] and len(made) == 1


async def test_a_search_reads_the_text_of_what_it_returns_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    read: list[str] = []
    hit_of = rows.hit_of
    monkeypatch.setattr(rows, "hit_of", lambda body, *rest: read.append(body) or hit_of(body, *rest))
    files = [SourceFile(f"{n}.txt", f"{n}.txt", data=f"Valve {n} opens in the morning.".encode()) for n in range(40)]
    with open_workspace(tmp_path / "w", create=True) as workspace:
        workspace.embedder = WordEmbedder()
        await workspace.documents.add_sources(files)
        found = await workspace.search("valve 7 opens", 3)
        assert len(found) == len(read) == 3
        assert {each.passage.text for each in found} == {body.split("\n", 1)[1] for body in read}
        index = await workspace.context.index(workspace.scope().named("default"))
        assert len(list(await index.dense(found[0].vector, 40, EVERYTHING))) == 40
