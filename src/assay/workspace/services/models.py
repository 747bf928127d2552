"""The language models of a workspace by role: which are asked, what each can do, and what they may cost."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

from assay.core.codec import dumps, from_json, to_json
from assay.core.errors import Late, UserError
from assay.core.events import ModelReplied, RoleModel
from assay.core.run import Run
from assay.core.settings import Settings, hider
from assay.core.types import Usage
from assay.models.capability import Capability, KnowsWindow, probe, sees
from assay.models.cost import parse_prices, price_of, prompt_tokens
from assay.models.factory import NO_MODEL, is_measured_as_judge, is_provider, llm_for, model_hosts, models_by_role
from assay.models.llm import LLM, Prompt, Reply, Role
from assay.models.meter import ConcurrencyLimit, ConnectedModel, Ledger, Meter, NoReply, StoreLedger, counted
from assay.store import documents, facts
from assay.store.runs.budgets import Ceilings, SpendingReservation
from assay.workspace.context import Service, WorkspaceContext
from assay.workspace.judge_trial import UNKNOWN, JudgeTrial, describe_trial, is_small, measure_judge, trial_form

PROBE, TRIAL, IMAGES = "probe:", "trial:", "pictures:"
UNKNOWN_WINDOW = 8192  # tokens
REMOTE_CONCURRENCY, LOCAL_CONCURRENCY = 4, 1  # requests at a time; parallel requests slow a local model down
DRAFT_IN, DRAFT_OUT = 6000, 1500  # tokens of the final draft that are reserved at the start
WRITING = frozenset({Role.write, Role.check})
MEASURES = ("calls", "tokens", "money", "seconds")
Roles = Mapping[Role, tuple[ConnectedModel, ...]]
L = TypeVar("L", bound=StoreLedger)


@dataclass(frozen=True)
class Models(Service):
    """The language models of a workspace."""

    async def connect(self, run: str = "", *, synthesis: bool = False) -> Roles:
        """The models of every role. Each model is probed once, a judge is measured once, and the results are remembered.
        These requests count in the budget of the run that makes them, and of the person."""
        self.context.check_model_consent()
        settings = self.settings
        named = models_by_role(settings)
        found: dict[str, tuple[LLM, Capability, JudgeTrial | None]] = {}
        for name in dict.fromkeys(name for names in named.values() for name in names):
            llm = llm_for(settings, name)
            found[name] = (llm, *await self._tried_once(llm, name, run, synthesis))
        return {
            role: tuple(
                ConnectedModel(llm, _role_model(settings, role, llm.name, can, trial))
                for llm, can, trial in map(found.__getitem__, names)
            )
            for role, names in named.items()
        }

    async def _tried_once(self, llm: LLM, name: str, run: str, synthesis: bool) -> tuple[Capability, JudgeTrial | None]:
        """What is known of a model. Of runs that begin together one tries it, and the others wait for what that one finds.
        Where a run's own budget is used up, nothing is known of the model, and the run goes on without."""
        tried, key = self.context.parts.tried, (asyncio.get_running_loop(), _fact(PROBE, self.settings, name))
        while (trying := tried.get(key)) is not None and not trying.done():
            with suppress(_NoBudget):  # the other's is used up
                return await asyncio.shield(trying)
        trying = tried[key] = asyncio.ensure_future(self._tried(llm, name, run, synthesis))
        trying.add_done_callback(lambda done: done.cancelled() or done.exception())  # whoever began it may have left
        try:
            return await asyncio.shield(trying)
        except _NoBudget:
            measured = is_measured_as_judge(self.settings, name)
            return UNKNOWN, JudgeTrial(1.0, 1.0, 0, capable=False, sure=False) if measured else None

    async def _tried(self, llm: LLM, name: str, run: str, synthesis: bool) -> tuple[Capability, JudgeTrial | None]:
        """What is known of a model, or found out now."""
        ceilings = _ceilings(self.settings, synthesis) if run else _day_ceilings(self.settings)
        ledger = _ledger(self.context, self.principal.id, run, ceilings, TrialLedger)
        can = await self.capability(_ProbedModel(llm, ledger), name)
        if self._may_show_pictures() and documents.has_figures(self.store, self.context.scope()):
            can = replace(can, images=await self.takes_pictures(_ProbedModel(llm, ledger), name))
        if not is_measured_as_judge(self.settings, name):
            return can, None
        return can, await self.judge_trial(llm, name, can, ledger=ledger)

    async def connect_writer(self, run: str) -> Roles:
        """The models of every role for an answer; none if the one that writes is too small: what rules choose is better."""
        roles = await self.connect(run)
        return {} if roles[Role.write][0].role_model.small else roles

    def too_small(self) -> str:
        """The model that would write, if it is known to be too small for that; else empty. No request is sent."""
        writer = next((each for each in self.known_role_models() if each.role == Role.write), None)
        return writer.model if writer and writer.small else ""

    def known_role_models(self) -> tuple[RoleModel, ...]:
        """The first model of every role as it was probed earlier. One that was never probed or measured counts as large. No
        request is sent."""
        settings = self.settings
        found: list[RoleModel] = []
        for role, names in models_by_role(settings).items():
            known = facts.remembered(self.store, _fact(PROBE, settings, names[0]))
            can = from_json(Capability, json.loads(known)) if known else Capability(True, True, True, UNKNOWN_WINDOW)
            seen = facts.remembered(self.store, _fact(IMAGES, settings, names[0])) == "yes"
            can = replace(can, window=settings.llm_window or can.window, images=seen and self._may_show_pictures())
            found.append(_role_model(settings, role, names[0], can, self.known_trial(names[0])))
        return tuple(found)

    async def capability(self, llm: LLM, name: str, *, anew: bool = False) -> Capability:
        """What a model's endpoint can do: remembered or probed. A window in the settings takes precedence."""
        settings = self.settings
        fact = _fact(PROBE, settings, name)
        known = None if anew else facts.remembered(self.store, fact)
        if known is not None:
            can = from_json(Capability, json.loads(known))
        else:
            can = await probe(llm, settings.llm_timeout)
            if can.sure:  # otherwise the endpoint was too busy, and is probed again next time
                facts.remember(self.store, fact, dumps(to_json(can)))
        return can if not settings.llm_window else replace(can, window=settings.llm_window)

    def _may_show_pictures(self) -> bool:
        hosts = model_hosts(self.settings)
        return self.settings.llm_pictures == "auto" and all(
            facts.agreed_to_pictures(self.store, host) for host in hosts
        )

    async def takes_pictures(self, llm: LLM, name: str) -> bool:
        """Whether a model sees pictures: remembered or probed, once there is a figure to show."""
        fact = _fact(IMAGES, self.settings, name)
        if (known := facts.remembered(self.store, fact)) is not None:
            return known == "yes"
        try:
            found = await sees(llm, self.settings.llm_timeout)
        except Late:  # it is probed again the next time
            return False
        facts.remember(self.store, fact, "yes" if found else "no")
        return found

    def known_trial(self, name: str) -> JudgeTrial | None:
        """How well a model judges, as it was measured earlier with the claims and the prompt of today."""
        known = facts.remembered(self.store, _fact(TRIAL, self.settings, name))
        trial = from_json(JudgeTrial, json.loads(known)) if known else None
        return trial if trial and trial.form == trial_form() else None

    def judge_summary(self) -> str:
        """How well the first judge was measured to judge, in a sentence or two; empty if it was not. No request is sent."""
        for name in models_by_role(self.settings).get(Role.check, ())[:1]:
            if is_measured_as_judge(self.settings, name) and (trial := self.known_trial(name)):
                return f"The model {name}. {describe_trial(trial)[0]}"
        return ""

    async def judge_trial(
        self, llm: LLM, name: str, can: Capability, *, anew: bool = False, ledger: Ledger | None = None
    ) -> JudgeTrial:
        """How well a model judges: remembered or measured."""
        if not anew and (known := self.known_trial(name)):
            return known
        trial = await measure_judge(llm, self.settings.llm_timeout, can, ledger)
        facts.remember(self.store, _fact(TRIAL, self.settings, name), dumps(to_json(trial)))
        return trial

    def in_every_role(self, model: str) -> Settings:
        """The settings with this model in every role; unchanged if the name is empty."""
        roles = {f"llm_{role}_model": "" for role in Role}
        changed = {**roles, "llm_model": model, "llm_fallback_model": ""}
        return self.settings.model_copy(update=changed) if model else self.settings

    def connected(self) -> tuple[str, ...]:
        """The names of the models that the settings connect: each may be named for a question."""
        return tuple(dict.fromkeys(name for names in models_by_role(self.settings).values() for name in names))

    def only_with(self, model: str) -> WorkspaceContext:
        """The workspace with this connected model in every role; unchanged if the name is empty."""
        if model and model not in self.connected():
            there = f"There is: {', '.join(self.connected())}." if self.connected() else "There is none."
            raise UserError(f"No model {model!r} is connected. {there}")
        return with_model(self.context, model)

    def check_name(self, model: str) -> str:
        """The name of a model of the configured endpoint, or of none. Only the administrator chooses a provider."""
        named = model.strip()
        if named and named != NO_MODEL and is_provider(self.settings, named):
            raise UserError(
                f"{named!r} is a provider's model. Here only a model of the endpoint that is set can be named."
            )
        return named


class _NoBudget(Exception):
    """A model cannot be tried within the budget."""


class TrialLedger(StoreLedger):
    """For requests before a run has begun: what they may not spend is an error."""

    def reserve(self, role: Role, model: str, tokens: int, max_tokens: int, seconds: float) -> SpendingReservation:
        place = super().reserve(role, model, tokens, max_tokens, seconds)
        if isinstance(place, NoReply):
            raise _NoBudget(place.detail)
        return place


@dataclass(frozen=True, slots=True)
class _ProbedModel:
    """A model whose requests are reserved and settled like those of a run, before there is one."""

    llm: LLM
    ledger: TrialLedger

    @property
    def name(self) -> str:
        return self.llm.name

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        tokens, begun = prompt_tokens(prompt), time.monotonic()
        place = self.ledger.reserve(Role.check, self.name, tokens, prompt.max_tokens, seconds)
        await self.ledger.flushed()
        try:
            reply = await self.llm.complete(prompt, min(seconds, place.seconds))
        except BaseException:
            self.ledger.release(place.id)
            raise
        self.ledger.settle(place.id, self.name, counted(reply, tokens, time.monotonic() - begun))
        await self.ledger.flushed()
        return reply

    async def window(self, seconds: float) -> int | None:
        return await self.llm.window(seconds) if isinstance(self.llm, KnowsWindow) else None


def _role_model(settings: Settings, role: Role, name: str, can: Capability, trial: JudgeTrial | None) -> RoleModel:
    small = is_small(settings.llm_size, role, can, trial)
    return RoleModel(role.value, name, can.tools, can.schema, can.json, can.window, small, can.images)


def _fact(kind: str, settings: Settings, name: str) -> str:
    host = "provider" if is_provider(settings, name) else urlsplit(settings.llm_base_url).netloc.rpartition("@")[2]
    return f"{kind}{host}/{name}"


def role_models(roles: Roles) -> tuple[RoleModel, ...]:
    return tuple(each.role_model for models in roles.values() for each in models)


def with_recorded_capabilities(roles: Roles, run: Run) -> Roles:
    """The same models with the capabilities that the run has recorded: prompts must not change half-way through a run."""
    known = {(role_model.role, role_model.model): role_model for role_model in run.asked.seats}
    return {
        role: tuple(
            ConnectedModel(each.llm, known.get((role.value, each.role_model.model), each.role_model)) for each in models
        )
        for role, models in roles.items()
    }


def with_model(context: WorkspaceContext, model: str) -> WorkspaceContext:
    return replace(context, settings=Models(context).in_every_role(model))


def allowance(settings: Settings, *, synthesis: bool) -> dict[str, Any]:
    """What one question or one synthesis may take, by measure; 0 means no limit."""
    prefix = "synthesis" if synthesis else "budget_run"
    return {what: getattr(settings, f"{prefix}_{what}") for what in MEASURES}


def _ceilings(settings: Settings, synthesis: bool) -> Ceilings:
    own = allowance(settings, synthesis=synthesis)
    return replace(_day_ceilings(settings), **{f"run_{what}": own[what] for what in MEASURES if what != "seconds"})


def _day_ceilings(settings: Settings) -> Ceilings:
    return Ceilings(
        **{f"day_{what}": getattr(settings, f"budget_day_{what}") for what in MEASURES},
        all_tokens=settings.budget_all_day_tokens,
        all_money=settings.budget_all_day_money,
        call_tokens=settings.budget_call_tokens,
    )


def prices(settings: Settings) -> Callable[[str, int, int], float | None]:
    """A function from model, tokens in and tokens out to the price in USD; None if it is unknown."""
    own = parse_prices(settings.llm_prices)
    remote = model_hosts(settings)

    def price(model: str, tokens_in: int, tokens_out: int) -> float | None:
        if not remote and model not in own:
            return 0.0  # a model on this machine is free, whatever its name
        return price_of(model, Usage(tokens_in=tokens_in, tokens_out=tokens_out), own)

    return price


def _ledger(context: WorkspaceContext, who: str, run: str, ceilings: Ceilings, kind: type[L]) -> L:
    store = context.store.deferred()
    return kind(store, who, run, ceilings, lambda: store.now()[:10], prices(context.settings))


def meter(
    context: WorkspaceContext, run: Run, roles: Roles, seconds_left: Callable[[], float], reserve: float
) -> Meter:
    """The meter through which a run calls its models. `reserve` seconds, and the money of the draft, are kept for writing."""
    settings = context.settings
    ledger = _ledger(context, run.asked.who, run.id, _ceilings(settings, run.asked.brief is not None), StoreLedger)
    writer = roles[Role.write][0].role_model
    if run.draft is None and not run.asked.recheck:
        ledger.set_aside(writer.model, min(DRAFT_IN, writer.window // 2), DRAFT_OUT)

    def refuse(_: ModelReplied) -> None:
        raise AssertionError("the loop sets `record`")

    return Meter(
        models=roles,
        record=refuse,
        recorded_reply=lambda request: run.consulted.get(request),
        ledger=ledger,
        seconds=lambda role: seconds_left() - (0.0 if role in WRITING else reserve),
        timeout=settings.llm_timeout,
        concurrency=ConcurrencyLimit(
            settings.llm_concurrency or (REMOTE_CONCURRENCY if model_hosts(settings) else LOCAL_CONCURRENCY)
        ),
        temperature=settings.llm_temperature,
        hide=hider(settings),
    )
