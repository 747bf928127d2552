"""What is filled in keeps to its schema, whoever chooses."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from doubles.fill import fill
from doubles.fill_policies import cooperative_policy, random_policy


class Leaf(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: Literal["leaf"]
    score: Annotated[int, Field(ge=0, le=10)]
    share: Annotated[float, Field(gt=0, lt=1)]
    far: Annotated[int, Field(ge=500)]
    code: Annotated[str, Field(pattern=r"^[a-f0-9]{8}$")]
    step: Annotated[str, Field(pattern=r"^s\d-[1-9]x$")]
    short: Annotated[str, Field(min_length=3, max_length=5)]


class Tree(BaseModel):
    """One that contains itself, with a bit of everything."""

    model_config = ConfigDict(extra="forbid")

    first: Leaf | None
    sign: Literal["yes", "no"] | int
    leaves: Annotated[list[Leaf], Field(min_length=1, max_length=3)]
    trees: list[Tree] = []
    pair: tuple[int, str]
    words: set[Literal["a", "b"]]
    loose: dict[str, Any]
    counts: dict[str, int]
    flag: bool = False


def test_what_chance_fills_in_is_always_valid():
    schema = Tree.model_json_schema()
    for seed in range(200):
        Tree.model_validate(fill(schema, random_policy({"messages": []}, seed)), strict=False)


def test_what_is_easy_going_is_valid_too():
    Tree.model_validate(fill(Tree.model_json_schema(), cooperative_policy({"messages": []})))


def test_chance_finds_what_a_schema_leaves_open():
    trees = [fill(Tree.model_json_schema(), random_policy({}, seed)) for seed in range(100)]
    assert {tree["first"] is None for tree in trees} == {True, False}
    assert {isinstance(tree["sign"], int) for tree in trees} == {True, False}
    assert {len(tree["leaves"]) for tree in trees} == {1, 2, 3}
    assert {"trees" in tree for tree in trees} == {True, False}
    assert {leaf["score"] for tree in trees for leaf in tree["leaves"]} == set(range(11))


def test_a_value_outside_its_schema_would_be_seen():
    tree = fill(Tree.model_json_schema(), random_policy({}, 1))
    with pytest.raises(ValidationError):
        Tree.model_validate(tree | {"sign": "perhaps"})
