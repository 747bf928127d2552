"""A synthesis: its brief, its forecast, its run, and its account."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from assay.core.errors import UserError
from assay.core.events import DECIDES_SYNTHESIS, Asked, RoleModel, SearchFilters, Stakes
from assay.core.run import Run
from assay.core.synthesis import EXPERT, Brief, Pipeline, Synthesis
from assay.models.factory import has_model
from assay.models.llm import Role
from assay.store.documents import READY
from assay.store.runs import forecasts, records, visibility
from assay.store.runs.forecasts import Amount, PastWork, WorkEstimate, WorkKind
from assay.synthesis import account as accounts
from assay.workspace import synthesis_forecast
from assay.workspace.context import Service
from assay.workspace.forecast import WorkForecast, errors, estimate_work, forecast_lines
from assay.workspace.services import forecast
from assay.workspace.services.ask import continue_run, record
from assay.workspace.services.models import Models, Roles, prices, role_models
from assay.workspace.synthesis_forecast import SynthesisForecast
from assay.workspace.types import Steps, SynthesisRequest

RERANKERS = ("none", "late", "set", "llm")
DEFAULT_QUESTION = {
    Pipeline.summary: "What do these documents say?",
    Pipeline.synthesis: "What does each of these documents contribute, and how do they relate to each other?",
}


@dataclass(frozen=True)
class Syntheses(Service):
    """Syntheses: their forecast, their run, and their account."""

    def _brief(self, documents: Sequence[str], request: SynthesisRequest) -> Brief:
        """The request as it is recorded. Raises a UserError if it cannot be done."""
        ready = {entry.id for entry in self.context.sources() if entry.standing == READY}
        selected = tuple(dict.fromkeys(document for document in documents if document in ready))
        if not selected:
            raise UserError("There is no readable document to give an account of. Add some with `assay add`.")
        if request.pipeline is Pipeline.synthesis and len(selected) < 2:
            raise UserError("A synthesis compares documents, and there is one. Add more, or take --pipeline summary.")
        if not 1 <= request.questions <= 20:
            raise UserError(f"{request.questions} questions per document cannot be asked: choose 1 to 20.")
        for name in (request.reranker, *request.compare):
            if name not in RERANKERS:
                raise UserError(f"There is no reranker called {name!r}. There is: {', '.join(RERANKERS)}.")
        return Brief(
            request.pipeline,
            selected,
            " ".join(request.focus.split()),
            request.questions,
            tuple(dict.fromkeys(" ".join(each.split()) for each in (EXPERT, *request.audiences) if each.strip())),
            request.approach,
            request.pool,
            request.top,
            request.reranker,
            request.compare,
        )

    async def _connect(self, request: SynthesisRequest, run: str = "") -> tuple[Roles, RoleModel | None]:
        """The models by role, and the writing model; empty and None without a model."""
        if not (request.model and has_model(self.settings)):
            return {}, None
        roles = await Models(self.context).connect(run, synthesis=True)
        return roles, roles[Role.write][0].role_model

    async def plan(self, documents: Sequence[str], request: SynthesisRequest) -> SynthesisForecast:
        """What a synthesis is expected to take."""
        brief = self._brief(documents, request)
        _, writer = await self._connect(request)
        expected, ranges, past = self._forecast(brief, writer)
        limits = forecast.reached_limits(self.context, ranges, "synthesis")
        reached = tuple(each for each in limits if each.whose != "run")
        work = WorkForecast(WorkKind.synthesise, brief.pipeline, ranges, reached, errors(past))
        return replace(expected, notes=tuple(forecast_lines(work)))

    def _forecast(
        self, brief: Brief, writer: RoleModel | None
    ) -> tuple[SynthesisForecast, WorkEstimate, tuple[PastWork, ...]]:
        """The forecast, its ranges, and this person's earlier syntheses."""
        lengths = {entry.id: entry.characters for entry in self.context.sources()}
        price = prices(self.settings)
        expected = synthesis_forecast.forecast(
            brief,
            lengths=[lengths.get(document, 0) for document in brief.documents],
            small=writer is not None and writer.small,
            has_model=writer is not None,
            price=lambda tokens_in, tokens_out: price(writer.model, tokens_in, tokens_out) if writer else 0.0,
            speed=forecast.model_speed(self.context, writer.model if writer else ""),
            window=writer.window if writer else 0,
        )
        past = forecasts.past_work(self.store, WorkKind.synthesise, self.principal.id, _alike(brief, writer))
        guess = Amount(expected.calls, expected.tokens_in + expected.tokens_out, expected.money, expected.seconds)
        ranges = estimate_work(guess, past, {"documents": expected.documents, "questions": expected.questions})
        return replace(expected, foreseen=ranges), ranges, past

    async def begin(self, documents: Sequence[str], request: SynthesisRequest | None = None) -> Steps:
        """Read these documents, by id, and write one account of them. `resume` continues it like any run."""
        request = request or SynthesisRequest()
        brief = self._brief(documents, request)
        run_id = records.new_id(self.store)
        roles, writer = await self._connect(request, run_id)
        names = {base.id: base.name for base in self.context.scope().bases}
        selected = set(brief.documents)
        bases = {names[entry.base] for entry in self.context.sources() if entry.id in selected}
        who = self.principal.id
        asked = Asked(
            brief.focus or DEFAULT_QUESTION[brief.pipeline],
            who,
            request.today or date.today().isoformat(),
            where=SearchFilters(bases=tuple(sorted(bases))),
            seats=role_models(roles),
            brief=brief,
            stakes=request.stakes,
            version=DECIDES_SYNTHESIS,
        )
        gated = request.stakes is Stakes.high or self.settings.review_always
        run = Run(records.begin(self.store, who, gated=gated, run=run_id), ())
        run = record(self.context, run, asked)
        _, ranges, _ = self._forecast(brief, writer)
        forecasts.add_forecast(self.store, run.id, WorkKind.synthesise, who, _alike(brief, writer), ranges)
        yield run, asked
        async for step in continue_run(self.context, run, roles):
            yield step

    def account(self, run_id: str) -> Synthesis:
        """The account of a delivered synthesis, in the words of the documents that this person may still read."""
        run = self.context.run(run_id)
        if run.asked.brief is None:
            raise UserError(f"Run {run.id} is a question, not a synthesis. `assay replay {run.id}` shows its answer.")
        if run.withheld:
            raise UserError(visibility.WITHHELD_ANSWER)
        if run.answer is None:
            raise UserError(f"Run {run.id} was not finished. `assay resume {run.id}` carries it on.")
        return accounts.account(run, self.context.document)


def _alike(brief: Brief, writer: RoleModel | None) -> str:
    return f"{brief.pipeline} {writer.model if writer else forecast.BY_RULE}"
