"""Every format can be named in a search by type and in a question about the collection."""

from __future__ import annotations

import pytest

from assay.agent.toolbox import collection
from assay.core.errors import UserError
from assay.core.formats import FORMATS, Format
from assay.index.search_filter import parse_document_types


@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_every_format_can_be_filtered_by_its_name_its_aliases_and_its_suffixes(format: Format):
    names = (format.name, format.name.upper(), *format.aliases, *format.suffixes)
    assert set(parse_document_types(names)) == {format.name}


def test_a_type_that_is_no_format_is_refused_with_those_that_there_are():
    with pytest.raises(UserError) as refused:
        parse_document_types(["pdf", ".dwg"])
    assert "'dwg'" in str(refused.value) and all(each.name in str(refused.value) for each in FORMATS)


@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_the_nouns_of_a_format_select_it_from_the_collection(format: Format):
    for noun in format.nouns:
        asked = collection.parse(f"How many {noun}s are there?")
        assert asked is not None and format.name in asked.kinds


def test_no_two_formats_share_a_name_for_a_search_by_type():
    names = [
        name for each in FORMATS for name in {each.name, *each.aliases, *(end.lstrip(".") for end in each.suffixes)}
    ]
    assert len(names) == len(set(names))
