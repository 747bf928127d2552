"""What the shape of a synthesis says about the work behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from assay.core.events import Asked, Event, Found, Paired, PassagesChosen, Related, RoleModel
from assay.core.run import Run
from assay.core.synthesis import Brief, Pipeline, Relation, RelationSide, RelationType, RerankerComparison
from assay.core.types import Passage, Quote
from assay.models.llm import Role
from assay.synthesis.account import diagnose


def run(*events: Event, pipeline: Pipeline = Pipeline.synthesis, model: bool = True) -> Run:
    seats = tuple(RoleModel(role.value, "model") for role in Role) if model else ()
    return Run("r1", (Asked("What?", "me", "2026-01-01", seats=seats, brief=Brief(pipeline, ("d1", "d2"))), *events))


def relation(type_: RelationType, at: int = 0) -> Relation:
    left, right = (RelationSide(f"q1-{doc}", doc, "k", Quote(doc, at, at + 1, "x")) for doc in ("d1", "d2"))
    return Relation(left, right, type_, "so it is")


def related(
    types: Sequence[RelationType], dropped: Sequence[str] = (), by: str = "relate@model", block: int = 0
) -> tuple[Event, ...]:
    return (
        Paired((), "12 points of 2 documents were compared."),
        Related(block, tuple(map(relation, types, range(len(types)))), tuple(dropped), by),
    )


def test_every_type_is_counted_also_those_that_do_not_occur():
    found = diagnose(run(*related([RelationType.parallel, RelationType.parallel, RelationType.extension])))
    assert found.types == {"extension": 1, "contradiction": 0, "complement": 0, "improvement": 0, "parallel": 2}


@pytest.mark.parametrize(
    ("types", "says"),
    [
        ([RelationType.complement] * 7 + [RelationType.parallel] * 3, "too general"),
        ([RelationType.complement] * 9 + [RelationType.extension], "9 of 10 relations are of one type (complement)"),
        ([RelationType.extension] * 5 + [RelationType.parallel] * 3, "5 of 8 relations are of one type (extension)"),
        (
            [RelationType.complement] * 4
            + [RelationType.extension, RelationType.improvement, RelationType.contradiction],
            "healthy mix: 7 relations of 4 types",
        ),
        (
            [RelationType.contradiction] * 3 + [RelationType.parallel] * 2,
            "3 of 5 relations are contradictions: look at those first",
        ),
        ([RelationType.complement], "1 relation."),
    ],
)
def test_the_mix_of_types_is_read_in_plain_words(types: list[RelationType], says: str):
    assert says in diagnose(run(*related(types))).reading


def test_what_was_compared_is_said_first():
    assert diagnose(run(*related([]))).reading == "12 points of 2 documents were compared. No relation was found."


def test_by_rule_nobody_is_told_that_what_was_noted_is_too_general():
    reading = diagnose(run(*related([RelationType.complement] * 9, by="rules"), model=False)).reading
    assert "too general" not in reading and "only contradictions are recognised" in reading


def test_a_summary_is_not_blamed_for_having_no_relations():
    assert "looks for no other relations" in diagnose(run(pipeline=Pipeline.summary)).reading


def test_what_was_proposed_and_dropped_is_listed_in_the_order_of_the_blocks():
    second = Related(1, (), ("no quotation on the right",), "relate@model")
    first = related([RelationType.parallel] * 2, ["no quotation on the left"])
    found = diagnose(run(*first[:1], second, *first[1:]))
    assert found.dropped == ("no quotation on the left", "no quotation on the right")
    assert "2 proposals were dropped" in found.reading


def looked(question: str, ids: Sequence[str], others: Mapping[str, tuple[str, ...]]) -> PassagesChosen:
    found = tuple(Found(Passage(id, "d1", "x", 0, 1), at, 1.0) for at, id in enumerate(ids))
    return PassagesChosen(question, found, 100, "late", others)


def test_rerankers_are_compared_with_the_one_in_use():
    found = diagnose(
        run(
            looked("q1", ("a", "b", "c"), {"none": ("a", "x", "y"), "llm": ("c", "b", "a")}),
            looked("q2", ("d", "e", "f"), {"none": ("d", "e", "z")}),
            looked("q3", ("g",), {}),
        )
    )
    assert found.rerankers == (
        RerankerComparison("late", 6, 6),
        RerankerComparison("none", 6, 3),
        RerankerComparison("llm", 3, 3),
    )


def test_where_no_reranker_was_compared_there_is_nothing_to_show():
    assert diagnose(run(looked("q1", ("a",), {}))).rerankers == ()
