"""A synthesis over a workspace: what it is to be, what it will take, the run that is begun, and the account of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING

from assay.agent.forecast import errors, foreseen
from assay.core.account import EXPERT, Account, Approach, Brief, Pipeline
from assay.core.errors import UserError
from assay.core.events import Asked, Event, RoleModel, SearchFilters
from assay.core.run import Run
from assay.models.factory import has_model
from assay.models.llm import Role
from assay.store import documents as library
from assay.store.access import withheld
from assay.store.runs import forecasts as kept
from assay.store.runs import records
from assay.synthesis import forecast as forecasts
from assay.synthesis.forecast import SynthesisForecast
from assay.synthesis.output import account as accounts
from assay.workspace import forecast, model_roles
from assay.workspace.ask import carried_on, recorded, roles_of

if TYPE_CHECKING:
    from assay.workspace.facade import Workspace

RERANKERS = ("none", "late", "set", "llm")
ALL_OF_IT = {
    Pipeline.summary: "What do these documents say?",
    Pipeline.synthesis: "What does each of these documents contribute, and how do they relate to each other?",
}


@dataclass(frozen=True, slots=True)
class SynthesisRequest:
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


def brief_of(workspace: Workspace, documents: Sequence[str], wish: SynthesisRequest) -> Brief:
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


async def plan(workspace: Workspace, documents: Sequence[str], wish: SynthesisRequest) -> SynthesisForecast:
    """What a synthesis will take, as far as that can be told before it begins."""
    brief = brief_of(workspace, documents, wish)
    settings = workspace.settings
    roles = await roles_of(workspace) if wish.model and has_model(settings) else {}
    expected, past = _expected(workspace, brief, roles[Role.write][0].seat if roles else None)
    assert expected.foreseen is not None
    own = model_roles.allowed(settings, synthesis=True)
    met = forecast.in_the_way(workspace, expected.foreseen, own, "synthesis")
    outlook = forecast.Outlook(
        kept.Kind.synthesise,
        brief.pipeline,
        expected.foreseen,
        tuple(each for each in met if each.ceiling.whose != "run"),
        errors(past),
    )
    return replace(expected, notes=tuple(forecast.lines(outlook)))


def _expected(
    workspace: Workspace, brief: Brief, writer: RoleModel | None
) -> tuple[SynthesisForecast, tuple[kept.Past, ...]]:
    """The forecast with its ranges, and what earlier syntheses of this person came to."""
    lengths = {entry.id: entry.characters for entry in workspace.sources()}
    price = model_roles.prices(workspace.settings)
    expected = forecasts.forecast(
        brief,
        lengths=[lengths.get(document, 0) for document in brief.documents],
        small=writer is not None and writer.small,
        has_model=writer is not None,
        price=lambda tokens_in, tokens_out: price(writer.model, tokens_in, tokens_out) if writer else 0.0,
        speed=forecast.speed(workspace, writer.model if writer else ""),
    )
    past = kept.past(workspace.store, kept.Kind.synthesise, workspace.principal.id, _alike(brief, writer))
    guess = kept.Amount(expected.calls, expected.tokens_in + expected.tokens_out, expected.money, expected.seconds)
    counts = {"documents": expected.documents, "questions": expected.questions}
    return replace(expected, foreseen=foreseen(guess, past, counts)), past


def _alike(brief: Brief, writer: RoleModel | None) -> str:
    return f"{brief.pipeline} {writer.model if writer else forecast.BY_RULE}"


async def synthesise(
    workspace: Workspace, documents: Sequence[str], wish: SynthesisRequest
) -> AsyncIterator[tuple[Run, Event]]:
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
        where=SearchFilters(bases=tuple(sorted(bases))),
        seats=model_roles.seats(roles),
        brief=brief,
    )
    gated = workspace.settings.review_always
    run = recorded(workspace, Run(records.begin(workspace.store, who, gated=gated), ()), asked)
    writer = roles[Role.write][0].seat if roles else None
    expected = _expected(workspace, brief, writer)[0].foreseen
    assert expected is not None
    kept.begun(workspace.store, run.id, kept.Kind.synthesise, who, _alike(brief, writer), expected)
    yield run, asked
    async for step in carried_on(workspace, run, roles):
        yield step


def account(workspace: Workspace, run: Run) -> Account:
    """The account of a delivered synthesis, in the words of the documents that this person may still read."""
    if run.asked.brief is None:
        raise UserError(f"Run {run.id} is a question, not a synthesis. `assay replay {run.id}` shows its answer.")
    if run.withheld:
        raise UserError(withheld.ANSWER)
    if run.answer is None:
        raise UserError(f"Run {run.id} was not finished. `assay resume {run.id}` carries it on.")
    return accounts.account(run, workspace.document)
