"""What a model is told of tools, what it may write, and which tools there are."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tool_contexts import ANN, BOB, Library, after, call, names_found, refused

from assay.agent.tool import Result, ToolContext, Within, checked, schema_of, tool
from assay.agent.toolbox import TOOLS, tools_for
from assay.core.codec import from_json, to_json
from assay.core.errors import ToolError, UserError
from assay.core.events import Call

ROOT = Path(__file__).parent.parent.parent

# --- arguments ------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("search", [], "search takes one JSON object of arguments, not a list."),
        ("search", "pump", "search takes one JSON object of arguments, not a string."),
        ("search", None, "search takes one JSON object of arguments, not null."),
        ("search", {}, "search needs the argument 'query'."),
        ("search", {"query": None}, "search needs the argument 'query'."),
        (
            "search",
            {"query": "x", "user": "bob"},
            "search takes no argument 'user'. It takes: query, k, since, until, type, base, meta, undated.",
        ),
        ("search", {"query": 5}, "search: 'query' must be a string, not a whole number."),
        ("search", {"query": " "}, "search: 'query' must not be empty."),
        ("search", {"query": "x" * 20001}, "search: 'query' is 20001 characters long; at most 20000 are allowed."),
        (
            "search",
            {"query": "x", "since": "y" * 101},
            "search: 'since' is 101 characters long; at most 100 are allowed.",
        ),
        ("search", {"query": "\ud800"}, "search: 'query' holds characters that are not text."),
        ("search", {"query": "x", "k": "8"}, "search: 'k' must be a whole number, not a string."),
        ("search", {"query": "x", "k": 8.0}, "search: 'k' must be a whole number, not a number."),
        ("search", {"query": "x", "k": True}, "search: 'k' must be a whole number, not true or false."),
        ("search", {"query": "x", "k": 0}, "search: 'k' must be from 1 to 50, not 0."),
        (
            "read_on",
            {"passage": "p", "direction": "up"},
            "read_on: 'direction' must be one of: after, before; not 'up'.",
        ),
        (
            "compare_documents",
            {"documents": "a", "aspect": "x"},
            "compare_documents: 'documents' must be a list of strings, not a string.",
        ),
        (
            "compare_documents",
            {"documents": ["a", 1], "aspect": "x"},
            "compare_documents: 'documents' must be a list of strings, not a list.",
        ),
        (
            "compare_documents",
            {"documents": ["a"], "aspect": "x"},
            "compare_documents: 'documents' must have 2 to 6 entries, not 1.",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_exact_words(plant: Library, name: str, arguments: Any, words: str):
    assert refused(plant.tool_context(), name, arguments) == words


def test_an_optional_argument_may_be_null_and_lists_become_tuples():
    assert checked(TOOLS["search"], {"query": "x", "since": None}) == {"query": "x"}
    given = {"documents": ["a", "b"], "aspect": "x"}
    assert checked(TOOLS["compare_documents"], given) == {"documents": ("a", "b"), "aspect": "x"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
FITTING = st.text(max_size=12) | st.sampled_from(["pumps", "last week", "2024", "plant", "text", "after", "pump"])


def nearly(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments under the right names, with values that often fit."""
    properties = schema_of(TOOLS[name]).parameters["properties"]
    values = {
        "string": FITTING,
        "integer": st.integers(-2, 60),
        "boolean": st.booleans(),
        "array": st.lists(FITTING, max_size=4),
    }
    return st.fixed_dictionaries({}, optional={each: values[of["type"]] | JSON for each, of in properties.items()})


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.long
def test_whatever_a_model_writes_as_arguments_is_a_result_or_a_tool_error(plant: Library, data: st.DataObject):
    tool_context = plant.tool_context()
    tool_context = after(tool_context, call(tool_context, "search", query="pump", k=2))
    name = data.draw(st.sampled_from(sorted(TOOLS)))
    arguments = data.draw(nearly(name) | JSON)
    try:
        result = asyncio.run(TOOLS[name](tool_context, arguments))
    except ToolError as error:
        assert str(error).isprintable() and len(str(error)) < 1200
    else:
        assert isinstance(result, Result) and len(result.note) < 8000


def test_a_call_with_a_list_of_names_survives_its_record():
    made = Call(
        "c1", "compare_documents", checked(TOOLS["compare_documents"], {"documents": ["a", "b"], "aspect": "x"})
    )
    again = from_json(Call, json.loads(json.dumps(to_json(made))))
    assert again == made and again.arguments["documents"] == ("a", "b")
    for value in (True, 3, 2.5, "x"):
        assert from_json(Call, to_json(Call("c", "t", {"v": value}))).arguments["v"] is value or value in (2.5, "x", 3)


# --- what a model is told -------------------------------------------------------------------------------------------


def test_the_schema_comes_from_the_signature_and_the_docstring():
    @tool
    async def sample(
        context: ToolContext,
        query: str,
        names: Annotated[list[str], Within(2, 3)],
        k: int = 5,
        exact: bool = False,
        share: float = 0.5,
        order: Literal["up", "down"] = "up",
    ) -> Result:
        """Do a thing.
        And say so.

        query: what to look for
        k: how many
        """
        return Result()

    spec = schema_of(sample)
    assert (spec.name, spec.about) == ("sample", "Do a thing.\nAnd say so.")
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "what to look for"},
            "names": {"type": "array", "items": {"type": "string"}},
            "k": {"type": "integer", "description": "how many"},
            "exact": {"type": "boolean"},
            "share": {"type": "number"},
            "order": {"type": "string", "enum": ["up", "down"]},
        },
        "required": ["query", "names"],
    }


@pytest.mark.parametrize("k", [51, 10**30])
def test_more_passages_than_a_call_gives_are_as_many_as_it_gives(k: int):
    assert checked(TOOLS["search"], {"query": "x", "k": k}) == {"query": "x", "k": 50}


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_every_tool_has_a_short_manual_and_short_lines_for_its_arguments(name: str):
    spec = schema_of(TOOLS[name])
    assert 0 < len(spec.about) < 100
    for argument, shape in spec.parameters["properties"].items():
        assert len(shape.get("description", "")) < 60, argument


def test_all_tools_together_are_told_in_few_words():
    specs = [schema_of(tool) for tool in TOOLS.values()]
    told = [json.dumps({"name": each.name, "about": each.about, "parameters": dict(each.parameters)}) for each in specs]
    assert sum(map(len, told)) < 3000


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_no_tool_takes_a_person_or_a_scope(name: str):
    taken = set(schema_of(TOOLS[name]).parameters["properties"])
    assert not taken & {"desk", "user", "who", "principal", "scope", "label", "labels", "group", "person"}


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_every_tool_is_documented_with_exactly_its_arguments(name: str):
    page = (ROOT / "docs/reference/tools.md").read_text(encoding="utf-8")
    told = re.search(rf"^## `{name}`\n(.*?)(?=^## |\Z)", page, re.M | re.S)
    assert told, f"docs/reference/tools.md has no section on {name}"
    rows = re.findall(r"^\| `(\w+)` \|", told[1], re.M)
    assert rows == list(schema_of(TOOLS[name]).parameters["properties"])


# --- which tools there are ------------------------------------------------------------------------------------------


def test_all_tools_are_there_unless_some_are_named():
    assert tools_for() == TOOLS
    assert list(tools_for(["list_sources", "search"])) == ["search", "list_sources"]
    with pytest.raises(UserError, match=r"There is no tool called 'delete'\. There are: compare_documents,"):
        tools_for(["delete"])


def test_there_can_be_one_search_per_knowledge_base(plant: Library):
    plant.add(plant.base("HR & pay!", ANN, "wages\nand leave"), "pay.txt", "The pay of the pump team.")
    tool_context = plant.tool_context()
    tools = tools_for(bases=tool_context.bases, per_base=True)
    assert "search" not in tools and {"search_plant", "search_hr_pay", "search_all"} <= tools.keys()
    spec = schema_of(tools["search_hr_pay"])
    assert spec.about == "Search the knowledge base 'HR & pay!' by words and by meaning. wages and leave"
    assert list(spec.parameters["properties"]) == ["query", "k", "since", "until", "type", "meta", "undated"]
    result = asyncio.run(tools["search_hr_pay"](tool_context, {"query": "pump"}))
    assert names_found(result, plant) == {"pay.txt"}
    with pytest.raises(ToolError, match="There is no knowledge base called"):
        asyncio.run(tools["search_hr_pay"](plant.tool_context(BOB), {"query": "pump"}))


def test_bases_whose_names_look_alike_get_tools_of_their_own():
    tools = tools_for(bases={"a b": "", "a-b": "", "all": "", "日本": ""}, per_base=True)
    assert {"search_a_b", "search_a_b_2", "search_all", "search_all_2", "search_base"} <= tools.keys()
    assert tools["search_all"] is TOOLS["search_all"]
