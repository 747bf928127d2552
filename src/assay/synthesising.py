"""A synthesis over a workspace: what it is to be, what it will take, the run that is begun, and the account of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from assay import seating
from assay.accounts import EXPERT, Account, Approach, Brief, Pipeline
from assay.asking import carried_on, recorded, roles_of
from assay.errors import UserError
from assay.events import Asked, Event, Where
from assay.models.choose import has_model, reached_by_models
from assay.models.llm import Role
from assay.run import Run
from assay.store import budgets, records
from assay.store import documents as library
from assay.synthesis import account as accounts
from assay.synthesis import forecast as forecasts
from assay.synthesis.forecast import Forecast

if TYPE_CHECKING:
    from assay.workspace import Workspace

RERANKERS = ("none", "late", "set", "llm")
ALL_OF_IT = {
    Pipeline.summary: "What do these documents say?",
    Pipeline.synthesis: "What does each of these documents contribute, and how do they relate to each other?",
}


@dataclass(frozen=True, slots=True)
class Wish:
    """How a synthesis is to be made: what a person may choose."""

    pipeline: Pipeline = Pipeline.synthesis
    focus: str = ""
    questions: int = 3
    audiences: tuple[str, ...] = (EXPERT,)
    approach: Approach = Approach.search
    pool: int = 100
    top: int = 3
    reranker: str = "late"
    compare: tuple[str, ...] = ()
    model: bool = True  # False goes by rule, whatever the settings say
    today: str | None = None


def brief_of(workspace: Workspace, documents: Sequence[str], wish: Wish) -> Brief:
    """The wish as it will be recorded; what cannot be done is said here, before anything is written down."""
    entries = {entry.id: entry for entry in workspace.sources() if entry.state == library.READY}
    chosen = tuple(dict.fromkeys(document for document in documents if document in entries))
    if not chosen:
        raise UserError("There is no readable document to give an account of. Add some with `assay add`.")
    if wish.pipeline is Pipeline.synthesis and len(chosen) < 2:
        raise UserError("A synthesis compares documents, and there is one. Add more, or take --pipeline summary.")
    if not 1 <= wish.questions <= 20:
        raise UserError(f"{wish.questions} questions per document cannot be asked: choose 1 to 20.")
    for name in (wish.reranker, *wish.compare):
        if name not in RERANKERS:
            raise UserError(f"There is no reranker called {name!r}. There is: {', '.join(RERANKERS)}.")
    return Brief(
        wish.pipeline,
        chosen,
        " ".join(wish.focus.split()),
        wish.questions,
        tuple(dict.fromkeys(" ".join(each.split()) for each in (EXPERT, *wish.audiences) if each.strip())),
        wish.approach,
        wish.pool,
        wish.top,
        wish.reranker,
        wish.compare,
    )


async def plan(workspace: Workspace, documents: Sequence[str], wish: Wish) -> Forecast:
    """What a synthesis will take, as far as that can be told before it begins."""
    brief = brief_of(workspace, documents, wish)
    settings = workspace.settings
    roles = await roles_of(workspace) if wish.model and has_model(settings) else {}
    writer = roles[Role.write][0].seat if roles else None
    lengths = {entry.id: entry.characters for entry in workspace.sources()}
    price = seating.prices(settings)
    speed = forecasts.REMOTE if reached_by_models(settings) else forecasts.LOCAL
    if writer is not None:
        speed = forecasts.pace(budgets.paid_to(workspace.store, writer.model), speed)
    return forecasts.forecast(
        brief,
        lengths=[lengths.get(document, 0) for document in brief.documents],
        small=writer is not None and writer.small,
        has_model=writer is not None,
        price=lambda tokens_in, tokens_out: price(writer.model, tokens_in, tokens_out) if writer else 0.0,
        speed=speed,
    )


async def synthesise(workspace: Workspace, documents: Sequence[str], wish: Wish) -> AsyncIterator[tuple[Run, Event]]:
    brief = brief_of(workspace, documents, wish)
    roles = await roles_of(workspace) if wish.model and has_model(workspace.settings) else {}
    named = {base.id: base.name for base in workspace.scope().bases}
    chosen = set(brief.documents)
    bases = {named[entry.base] for entry in workspace.sources() if entry.id in chosen}
    who = workspace.principal.id
    asked = Asked(
        brief.focus or ALL_OF_IT[brief.pipeline],
        who,
        wish.today or date.today().isoformat(),
        where=Where(bases=tuple(sorted(bases))),
        seats=seating.seats(roles),
        brief=brief,
    )
    run = recorded(workspace, Run(records.begin(workspace.store, who), ()), asked)
    yield run, asked
    async for step in carried_on(workspace, run, roles):
        yield step


def account(workspace: Workspace, run: Run) -> Account:
    """The account of a delivered synthesis, in the words of the documents that this person may still read."""
    if run.asked.brief is None:
        raise UserError(f"Run {run.id} is a question, not a synthesis. `assay replay {run.id}` shows its answer.")
    if run.answer is None:
        raise UserError(f"Run {run.id} was not finished. `assay resume {run.id}` carries it on.")
    return accounts.account(run, workspace.document)
