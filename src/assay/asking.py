"""A question over a workspace: the run is begun, the kit is laid out, the loop carries it on, each event recorded first."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import date
from typing import TYPE_CHECKING

from assay.agent.limits import ROUNDS, Limits
from assay.agent.loop import carry_on
from assay.agent.steps import HOPS, Kit
from assay.agent.tool import Desk
from assay.errors import UserError
from assay.events import Asked, Event, Mode, Where
from assay.run import Run
from assay.store import documents, records

if TYPE_CHECKING:
    from assay.workspace import Workspace


async def ask(
    workspace: Workspace, question: str, mode: Mode, where: Where, today: str | None
) -> AsyncIterator[tuple[Run, Event]]:
    if not question.strip():
        raise UserError("The question is empty. Ask something.")
    workspace.scope(where.bases)  # an unknown base is said before anything is written down
    who = workspace.principal.id
    asked = Asked(question.strip(), who, today or date.today().isoformat(), mode, where)
    run = recorded(workspace, Run(records.begin(workspace.store, who), ()), asked)
    yield run, asked
    async for step in carried_on(workspace, run):
        yield step


async def carried_on(workspace: Workspace, run: Run) -> AsyncIterator[tuple[Run, Event]]:
    async for event in carry_on(run, await kit_for(workspace, run)):
        run = run.then(event)
        yield run, event


def recorded(workspace: Workspace, run: Run, event: Event) -> Run:
    records.append(workspace.store, run.id, len(run.events), event)
    return run.then(event)


async def kit_for(workspace: Workspace, run: Run) -> Kit:
    """What a run needs. The scope is made anew whenever it is asked for: access taken away is gone at the next call."""
    asked = run.asked
    bases = asked.where.bases
    return Kit(
        desk=Desk(await workspace.shelf(workspace.scope(bases)), lambda: workspace.scope(bases)),
        record=lambda run, event: recorded(workspace, run, event),
        document=lambda document: documents.get(workspace.store, document, workspace.scope(bases)),
        unreadable=lambda: tuple(each.uri for each in workspace.sources(bases) if each.state != documents.READY),
        limits=Limits(rounds=workspace.settings.search_rounds or ROUNDS[asked.mode]),
        hops=HOPS[asked.mode],
    )
