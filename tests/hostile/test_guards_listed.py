"""The list of guards is about what is there: `make guards` takes each out in turn."""

from __future__ import annotations

import pytest
from guards import GUARDS, ROOT, SOURCE, Guard, page


@pytest.mark.parametrize("guard", GUARDS, ids=[each.name for each in GUARDS])
def test_every_guard_stands_once_where_the_list_says_and_its_test_is_there(guard: Guard):
    assert (SOURCE / guard.file).read_text(encoding="utf-8").count(guard.words) == 1
    file, _, name = guard.test.partition("::")
    assert not name or f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")


def test_the_list_is_in_the_docs():
    assert (ROOT / "docs" / "guards.md").read_text(encoding="utf-8") == page(), "run: make docs"
