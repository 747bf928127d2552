from __future__ import annotations

from math import log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.evaluate.metrics import all_found, intervals, mean, mean_interval, means, ndcg, recall


@settings(max_examples=60)
@given(
    st.permutations([f"d{n}" for n in range(15)]),
    st.dictionaries(st.sampled_from([f"d{n}" for n in range(20)]), st.integers(0, 4), min_size=1),
)
def test_measures_follow_the_definitions_of_trec_eval(ranking: list[str], grades: dict[str, int]):
    if not any(grades.values()):
        return
    gains = [grades.get(document, 0) for document in ranking[:10]]
    best = sorted(grades.values(), reverse=True)[:10]
    ideal, reached = (sum(gain / log2(place + 2) for place, gain in enumerate(each)) for each in (best, gains))
    relevant = {document for document, grade in grades.items() if grade}
    assert ndcg(ranking, grades, 10) == pytest.approx(reached / ideal)
    assert recall(ranking, grades, 5) == pytest.approx(len(relevant & set(ranking[:5])) / len(relevant))


def test_a_question_that_needs_two_documents_is_not_half_answered_by_one():
    grades = {"a": 1, "b": 1}
    assert (all_found(["a", "x", "b"], grades, 3), all_found(["a", "x", "b"], grades, 2)) == (1.0, 0.0)


def test_a_figure_counts_only_where_it_applies():
    rows = [{"right": 1.0, "kept": 0.0}, {"right": 0.0}]
    assert means(rows) == {"right": 0.5, "kept": 0.0}


def test_an_interval_holds_the_figure_narrows_with_more_questions_and_is_the_same_each_time():
    few, many = [{"right": float(n % 4 > 0)} for n in range(12)], [{"right": float(n % 4 > 0)} for n in range(400)]
    (low, high), (lower, higher) = intervals(few, means)["right"], intervals(many, means)["right"]
    assert low < lower < 0.75 < higher < high
    assert intervals(few, means) == intervals(few, means)
    assert intervals([{"right": 1.0}] * 5, means) == {"right": (1.0, 1.0)}
    assert intervals([], means) == {}


def test_the_interval_of_a_mean_is_that_of_drawing_one_by_one():
    values = [0.0, 0.2, 0.5, 1.0] * 25
    one_by_one = intervals(values, lambda drawn: {"mean": mean(drawn)})["mean"]
    assert mean_interval(values) == pytest.approx(one_by_one, abs=0.02) and mean_interval(values) == mean_interval(
        values
    )
    assert mean_interval([1.0] * 3) == (1.0, 1.0)
