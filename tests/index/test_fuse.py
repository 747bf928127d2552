"""Fusion, feedback, diversity and the cap, on hits made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.types import Hit, Passage
from assay.index import fusion
from assay.index.fusion import Ranking, blend, capped, diverse, fuse, pooled, refined, spread, uncrowded

PLAIN = Ranking(feedback=0.0)
QUERY = np.array([1.0, 0.0, 0.0], np.float32)


def toward(cosine: float, turn: float = 0.0) -> np.ndarray:
    """A unit vector with this cosine to QUERY; `turn` says where round it the rest points."""
    rest = np.sqrt(1 - cosine**2)
    return np.array([cosine, rest * np.cos(turn), rest * np.sin(turn)], np.float32)


def hit(id: str, vector: np.ndarray, doc: str = "", **scores: float) -> Hit:
    return Hit(Passage(id, doc or id, f"words of {id}", 0, 1), vector, scores)


def dense(*hits: Hit) -> list[Hit]:
    return [replace(each, scores={"dense": float(each.vector @ QUERY)}) for each in hits]


def lexical(*scored: tuple[Hit, float]) -> list[Hit]:
    return [replace(each, scores={"lexical": score}) for each, score in scored]


def ids(hits: list[Hit]) -> list[str]:
    return [each.passage.id for each in hits]


A, B, C = (hit(name, toward(cosine)) for name, cosine in (("a", 0.9), ("b", 0.6), ("c", 0.3)))


def test_each_passage_comes_back_once_with_what_every_channel_said_of_it():
    fused = fuse({"dense": dense(A, B), "lexical": lexical((B, 8.0), (C, 4.0))}, QUERY, PLAIN)
    assert sorted(ids(fused)) == ["a", "b", "c"]
    scores = {each.passage.id: each.scores for each in fused}
    assert scores["b"]["dense"] == pytest.approx(0.6)
    assert scores["b"]["lexical"] == 8.0
    assert "lexical" not in scores["a"]
    assert scores["c"]["dense"] == pytest.approx(0.3)  # words alone found it; its vector came along


def test_words_count_against_the_best_that_words_did_and_meaning_as_it_is():
    fused = fuse({"dense": dense(A, B), "lexical": lexical((B, 8.0), (C, 4.0))}, QUERY, PLAIN)
    scores = {each.passage.id: each.scores["fused"] for each in fused}
    assert scores["a"] == pytest.approx(0.75 * 0.9)
    assert scores["b"] == pytest.approx(0.25 * 1.0 + 0.75 * 0.6)
    assert scores["c"] == pytest.approx(0.25 * 0.5 + 0.75 * 0.3)
    assert ids(fused) == ["b", "a", "c"]


def test_equal_scores_are_ordered_by_passage_id():
    twins = [hit(name, toward(0.5)) for name in "zxy"]
    assert ids(fuse({"dense": dense(*twins), "lexical": []}, QUERY, PLAIN)) == ["x", "y", "z"]


def test_either_channel_may_find_nothing():
    assert fuse({"dense": [], "lexical": []}, QUERY, Ranking()) == []
    assert ids(fuse({"dense": dense(A, B, C), "lexical": []}, QUERY, Ranking())) == ["a", "b", "c"]
    assert ids(fuse({"dense": [], "lexical": lexical((C, 9.0), (B, 1.0))}, QUERY, Ranking(lexical=1.0))) == ["c", "b"]


def test_feedback_lifts_what_resembles_the_best_hits():
    subject = [hit(f"s{i}", toward(0.8, turn=0.1 * i)) for i in range(5)]
    related, unrelated = hit("x-related", toward(0.5, turn=0.2)), hit("unrelated", toward(0.5, turn=3.0))
    channels = {"dense": dense(*subject, related, unrelated), "lexical": []}
    assert ids(fuse(channels, QUERY, PLAIN))[-2:] == ["unrelated", "x-related"]  # a tie, so by id
    assert ids(fuse(channels, QUERY, Ranking()))[-2:] == ["x-related", "unrelated"]


def test_best_hits_that_have_nothing_in_common_move_nothing():
    scattered = [hit(f"s{i}", toward(0.6, turn=2 * np.pi * i / 5)) for i in range(5)]
    pool = pooled({"dense": dense(*scattered), "lexical": []}, QUERY)
    scores = blend(pool, 0.25)
    assert refined(pool, scores, QUERY, Ranking()) is QUERY
    assert refined(pool, scores, QUERY, Ranking(cohesion=(-1.0, -0.9))) is not QUERY  # the guard is what held it


def test_a_long_document_has_one_voice_in_the_feedback():
    long = [hit(f"long{i}", toward(0.9, turn=0.05 * i), doc="long") for i in range(5)]
    others = [hit(f"o{i}", toward(0.85, turn=1.5 + 0.05 * i)) for i in range(4)]
    pool = pooled({"dense": dense(*long, *others), "lexical": []}, QUERY)
    moved = refined(pool, blend(pool, 0.25), QUERY, Ranking())
    assert moved @ others[0].vector > moved @ long[0].vector - 0.05  # four documents outweigh five passages of one
    assert float(np.linalg.norm(moved)) == pytest.approx(1.0, abs=1e-5)


def test_a_query_that_is_far_from_everything_is_left_where_it_is():
    away = [hit(f"s{i}", toward(-0.2, turn=2 * np.pi * i / 5)) for i in range(5)]
    pool = pooled({"dense": dense(*away), "lexical": []}, QUERY)
    assert refined(pool, blend(pool, 0.25), QUERY, Ranking()) is QUERY


def test_a_single_hit_is_no_feedback():
    assert ids(fuse({"dense": dense(A), "lexical": []}, QUERY, Ranking())) == ["a"]


@given(
    st.lists(st.tuples(st.floats(-0.99, 0.99), st.floats(0, 6), st.integers(0, 3)), max_size=12),
    st.lists(st.tuples(st.integers(0, 11), st.floats(0, 50)), max_size=12),
)
def test_fusion_loses_and_invents_nothing_and_is_ordered_by_its_score(found, worded):
    hits = [hit(f"{i:02}", toward(cosine, turn), doc=f"d{doc}") for i, (cosine, turn, doc) in enumerate(found)]
    by_words = {place: score for place, score in worded if place < len(hits)}
    channels = {"dense": dense(*hits[::2]), "lexical": lexical(*((hits[place], s) for place, s in by_words.items()))}
    fused = fuse(channels, QUERY, Ranking())
    assert sorted(ids(fused)) == sorted({each.passage.id for name in channels for each in channels[name]})
    scores = [each.scores["fused"] for each in fused]
    assert scores == sorted(scores, reverse=True)
    assert np.isfinite(scores).all()


def test_diversity_passes_over_what_says_the_same_again():
    near = [hit("first", toward(0.9), fused=0.9), hit("again", toward(0.9), fused=0.88)]
    other = hit("other", toward(0.6, turn=3.0), fused=0.6)
    last = hit("last", toward(0.1), fused=0.1)
    assert ids(diverse([*near, other, last], 2, 0.5)) == ["first", "other"]
    assert ids(diverse([*near, other, last], 2, 0.0)) == ["first", "again"]
    assert sorted(ids(diverse([*near, other, last], 9, 0.9))) == ["again", "first", "last", "other"]


def test_diversity_goes_by_what_the_reranker_said():
    first = hit("first", toward(0.9), fused=0.9, rerank=0.9)
    alike = hit("alike", toward(0.7), fused=0.2, rerank=0.88)
    other = hit("other", toward(0.1, turn=3.0), fused=0.19, rerank=0.1)
    assert ids(diverse([first, alike, other], 2, 0.3)) == ["first", "alike"]


def test_diversity_goes_by_place_when_only_the_first_were_reranked():
    hits = [
        hit("late", toward(0.2), fused=0.1, rerank=0.9),
        hit("early", toward(0.9, 3.0), fused=0.9, rerank=0.1),
        hit("unseen", toward(0.5, 1.0), fused=0.5),
    ]
    assert ids(diverse(hits, 3, 0.05)) == ["late", "early", "unseen"]


def test_the_cap_keeps_the_best_of_each_document_in_order():
    hits = [hit(f"{i}", toward(0.5), doc=doc) for i, doc in enumerate("aababb")]
    assert ids(capped(hits, 2)) == ["0", "1", "2", "4"]
    assert ids(capped(hits, 0)) == ["0", "1", "2", "3", "4", "5"]


def test_further_passages_of_a_page_stay_before_what_other_documents_say_worse():
    def paged(id: str, doc: str, page: int) -> Hit:
        plain = hit(id, toward(0.5), doc)
        return replace(plain, passage=replace(plain.passage, page=page))

    found = [paged("a1", "a", 1), paged("a2", "a", 1), paged("a3", "a", 2), paged("b1", "b", 1), paged("b2", "b", 1)]
    assert ids(spread(found, {"a"})) == ["a1", "a3", "a2", "b1", "b2"]
    assert ids(spread(found, set())) == ids(found)


def worded(id: str, text: str) -> Hit:
    return Hit(Passage(id, id, text, 0, len(text)), QUERY, {})


def test_near_copies_of_one_text_take_half_of_the_places_and_what_they_cede_follows():
    copies = [worded(f"c{n}", f"Nobody knows what a yacht pays a night in Port Ellin. Note {n}.") for n in range(25)]
    others = [worded("truth", "A yacht pays 22 crowns a night."), worded("ferry", "The ferry leaves at noon.")]
    found = ids(uncrowded([*copies, *others], 20))
    assert found[:12] == [*ids(copies[:10]), "truth", "ferry"] and len(found) == 20
    assert ids(uncrowded([*copies, *others], 4)) == ["c0", "c1", "truth", "ferry"]


def test_who_asks_for_all_that_matches_gets_all_of_it_and_no_text_is_compared(monkeypatch: pytest.MonkeyPatch):
    def compared(*_: object) -> bool:
        raise AssertionError("a set of thousands would be compared pair by pair")

    monkeypatch.setattr(fusion, "_alike", compared)
    copies = [worded(f"c{n}", "Nobody knows what a yacht pays a night in Port Ellin.") for n in range(2000)]
    assert ids(uncrowded(copies, 4000)) == ids(copies)


def test_rows_that_differ_in_their_figures_are_no_copies():
    months = "January March April June July August October December".split()
    rows = [worded(each, f"In {each} the works treated {len(each) * 7919} m³.") for each in months]
    assert ids(uncrowded(rows, 8)) == months


def test_copies_are_seen_in_languages_without_spaces():
    copies = [worded(f"c{n}", f"没有人知道游艇在埃林港停泊一晚需要支付多少费用请勿相信其他文件{n}") for n in range(9)]
    assert ids(uncrowded([*copies, worded("truth", "游艇每晚支付二十二克朗。")], 4))[2] == "truth"
