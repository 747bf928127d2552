"""`assay off`, `assay on`, `assay tag` and filters by metadata, on the command line."""

from __future__ import annotations

import json

from terminal import NOTES, Typed

from assay.workspace.facade import Workspace

FIRST, *OTHERS = sorted(f"{name}.md" for name in NOTES)


def titles(typed: Typed, *limits: str) -> set[str]:
    return {hit["path"].rpartition("/")[2] for hit in json.loads(typed("search", "lighthouse", "--json", *limits).out)}


def test_documents_are_switched_off_and_on_by_name(typed: Typed, noted: Workspace):
    everything = titles(typed)
    assert FIRST in everything
    assert typed("off", FIRST).out == f"Off: {noted.documents.listing()[0].uri}\n"
    assert titles(typed) == everything - {FIRST}
    states = {row["path"].rpartition("/")[2]: row["state"] for row in json.loads(typed("sources", "--json").out)}
    assert states[FIRST] == "off" and {states[name] for name in OTHERS} == {"ready"}
    assert " off" in typed("sources").out and "off: it is not searched" in typed("show", FIRST).out
    assert json.loads(typed("on", FIRST, "--json").out)[0]["state"] == "ready"
    assert titles(typed) == everything


def test_documents_are_tagged_listed_by_tag_and_found_by_it(typed: Typed, noted: Workspace):
    assert typed("tag").out.startswith("No document has a tag.")
    assert typed("tag", FIRST, OTHERS[0], "--add", "Sea", "--add", "to check").out.splitlines() == [
        f"{FIRST}: Sea, to check",
        f"{OTHERS[0]}: Sea, to check",
    ]
    assert typed("tag", FIRST, "--remove", "TO CHECK").out == f"{FIRST}: Sea\n"
    assert json.loads(typed("tag", "--json").out) == {"Sea": 2, "to check": 1}
    assert titles(typed, "--meta", "tag=to check") == {OTHERS[0]}
    assert "Sea, to check" in typed("sources").out
    assert typed("tag", "--add", "x").code == 2


def test_a_search_says_what_its_filters_left_out_beside_its_result(typed: Typed, noted: Workspace):
    done = typed("search", "lighthouse", "--since", "last 12 months", "--json")
    assert json.loads(done.out) == [] and done.err == f"The filters left out {len(NOTES)} undated documents.\n"
    assert titles(typed, "--since", "last 12 months", "--undated") == titles(typed)
    asked = typed("ask", "How tall is the tower?", "--no-model", "--since", "2024", "--quiet")
    assert f"The filters left out {len(NOTES)} undated documents." in asked.out


def test_metadata_without_a_value_or_given_twice_is_refused(typed: Typed, noted: Workspace):
    assert "NAME=VALUE" in typed("search", "x", "--meta", "author=").err
    assert "twice" in typed("search", "x", "--meta", "tag=a", "--meta", "tag=b").err
