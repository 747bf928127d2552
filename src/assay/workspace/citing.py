"""Which answers of a person cite a document."""

from __future__ import annotations

from contextlib import suppress

from assay.core.errors import UserError
from assay.core.run import Run
from assay.store.runs import history
from assay.workspace.context import WorkspaceContext

LOOKED_AT = 40  # runs that speak of the document, newest first
SHOWN = 20


def citing_runs(context: WorkspaceContext, document: str) -> list[Run]:
    """This person's delivered runs that cite the document, newest first."""
    found: list[Run] = []
    for run_id in history.runs_mentioning(context.store, context.principal.id, document, LOOKED_AT):
        with suppress(UserError):  # erased meanwhile
            run = context.run(run_id)
            if len(found) < SHOWN and run.answer is not None and document in _cited(run):
                found.append(run)
    return found


def _cited(run: Run) -> set[str]:
    assert run.answer is not None
    keys = run.answer.cited_keys
    return {each.passage.doc_id for each in run.evidence if each.key in keys}
