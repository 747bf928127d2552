from __future__ import annotations

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.evaluate.metrics import all_found, ndcg, recall


@settings(max_examples=60, deadline=None)
@given(
    st.permutations([f"d{n}" for n in range(15)]),
    st.dictionaries(st.sampled_from([f"d{n}" for n in range(20)]), st.integers(0, 4), min_size=1),
)
def test_our_measures_agree_with_trec_eval(ranking: list[str], grades: dict[str, int]):
    if not any(grades.values()):
        return
    qrels = [ir_measures.Qrel("q", document, grade) for document, grade in grades.items()]
    run = [ir_measures.ScoredDoc("q", document, -float(place)) for place, document in enumerate(ranking)]
    theirs = ir_measures.calc_aggregate([ir_measures.nDCG @ 10, ir_measures.R @ 5], qrels, run)
    assert ndcg(ranking, grades, 10) == pytest.approx(theirs[ir_measures.nDCG @ 10])
    assert recall(ranking, grades, 5) == pytest.approx(theirs[ir_measures.R @ 5])


def test_a_question_that_needs_two_documents_is_not_half_answered_by_one():
    grades = {"a": 1, "b": 1}
    assert (all_found(["a", "x", "b"], grades, 3), all_found(["a", "x", "b"], grades, 2)) == (1.0, 0.0)
