"""A witness that says what no witness says is found wanting in a line, and breaks nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assay.core.errors import StoreError
from assay.governance.audit.verify import verify
from assay.governance.audit.witness import audit_context, seal
from assay.workspace.facade import Workspace


@pytest.mark.parametrize("told", [10**30, -1, "1", [1], None, 1.5, {}])
@pytest.mark.parametrize("kind", [list, dict])
def test_a_number_that_no_record_has_is_a_fault_and_no_breakdown(opened: Workspace, told: Any, kind: type):
    context = audit_context(opened.store, opened.path, opened.settings)
    seal(context)
    assert context.witness_file is not None and verify(opened.store, context.witness_file).whole
    lines = [json.loads(line) for line in context.witness_file.read_text().splitlines()]
    place = 3 if kind is list else len(lines) - 1
    lines[place]["n" if kind is dict else 0] = told
    context.witness_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert not verify(opened.store, context.witness_file).whole
    if kind is dict:
        with pytest.raises(StoreError):
            seal(context)


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_line_of_other_things_is_a_fault_and_no_breakdown(opened: Workspace, at: int):
    context = audit_context(opened.store, opened.path, opened.settings)
    seal(context)
    assert context.witness_file is not None
    lines = [json.loads(line) for line in context.witness_file.read_text().splitlines()]
    lines[3][at] = ["x", 10**30]
    context.witness_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert not verify(opened.store, context.witness_file).whole
