"""The language models of a workspace by role: which are asked, what each can do, and what they may cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from assay.core.codec import dumps, from_json, to_json
from assay.core.errors import UserError
from assay.core.events import ModelReplied, RoleModel
from assay.core.run import Run
from assay.core.settings import Settings, hider
from assay.core.types import Usage
from assay.models.capability import Capability, probe
from assay.models.cost import parse_prices, price_of
from assay.models.factory import NO_MODEL, is_measured_as_judge, is_provider, llm_for, model_hosts, models_by_role
from assay.models.llm import LLM, Role
from assay.models.meter import ConcurrencyLimit, ConnectedModel, Meter, StoreLedger
from assay.store import facts
from assay.store.runs.budgets import Ceilings
from assay.workspace.context import Service, WorkspaceContext
from assay.workspace.judge_trial import JudgeTrial, describe_trial, measure_judge, trial_form

PROBE, TRIAL = "probe:", "trial:"
UNKNOWN_WINDOW = 8192  # tokens
REMOTE_CONCURRENCY, LOCAL_CONCURRENCY = 4, 1  # requests at a time; parallel requests slow a local model down
DRAFT_IN, DRAFT_OUT = 6000, 1500  # tokens of the final draft that are reserved at the start
WRITING = frozenset({Role.write, Role.check})
MEASURES = ("calls", "tokens", "money", "seconds")
Roles = Mapping[Role, tuple[ConnectedModel, ...]]


@dataclass(frozen=True)
class Models(Service):
    """The language models of a workspace."""

    async def connect(self) -> Roles:
        """The models of every role. Each model is probed once, a judge is measured once, and the results are remembered."""
        self.context.check_model_consent()
        settings = self.settings
        named = models_by_role(settings)
        found: dict[str, tuple[LLM, Capability, JudgeTrial | None]] = {}
        for name in dict.fromkeys(name for names in named.values() for name in names):
            llm = llm_for(settings, name)
            can = await self.capability(llm, name)
            found[name] = (
                llm,
                can,
                await self.judge_trial(llm, name, can) if is_measured_as_judge(settings, name) else None,
            )
        return {
            role: tuple(
                ConnectedModel(llm, _role_model(settings, role, llm.name, can, trial))
                for llm, can, trial in map(found.__getitem__, names)
            )
            for role, names in named.items()
        }

    def known_role_models(self) -> tuple[RoleModel, ...]:
        """The first model of every role as it was probed earlier. One that was never probed or measured counts as large. No
        request is sent."""
        settings = self.settings
        found: list[RoleModel] = []
        for role, names in models_by_role(settings).items():
            known = facts.remembered(self.store, _fact(PROBE, settings, names[0]))
            can = from_json(Capability, json.loads(known)) if known else Capability(True, True, True, UNKNOWN_WINDOW)
            can = replace(can, window=settings.llm_window or can.window)
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

    async def judge_trial(self, llm: LLM, name: str, can: Capability, *, anew: bool = False) -> JudgeTrial:
        """How well a model judges: remembered or measured."""
        if not anew and (known := self.known_trial(name)):
            return known
        trial = await measure_judge(llm, self.settings.llm_timeout, can)
        facts.remember(self.store, _fact(TRIAL, self.settings, name), dumps(to_json(trial)))
        return trial

    def in_every_role(self, model: str) -> Settings:
        """The settings with this model in every role; unchanged if the name is empty."""
        roles = {f"llm_{role}_model": "" for role in Role}
        changed = {**roles, "llm_model": model, "llm_fallback_model": ""}
        return self.settings.model_copy(update=changed) if model else self.settings

    def check_name(self, model: str) -> str:
        """The name of a model of the configured endpoint, or of none. Only the administrator chooses a provider."""
        named = model.strip()
        if named and named != NO_MODEL and is_provider(self.settings, named):
            raise UserError(
                f"{named!r} is a provider's model. Here only a model of the endpoint that is set can be named."
            )
        return named


def _role_model(settings: Settings, role: Role, name: str, can: Capability, trial: JudgeTrial | None) -> RoleModel:
    """The size of a model in a role. Unless the settings name it, a judge is small if its trial says so, and a model in
    another role if it calls no tools."""
    able = trial is None or trial.capable if role is Role.check else can.tools
    small = settings.llm_size == "small" or (settings.llm_size == "auto" and not able)
    return RoleModel(role.value, name, can.tools, can.schema, can.json, can.window, small)


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


def _ceilings(settings: Settings, run: Run) -> Ceilings:
    own = allowance(settings, synthesis=run.asked.brief is not None)
    return Ceilings(
        **{f"run_{what}": most for what, most in own.items() if what != "seconds"},
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


def meter(
    context: WorkspaceContext, run: Run, roles: Roles, seconds_left: Callable[[], float], reserve: float
) -> Meter:
    """The meter through which a run calls its models. `reserve` seconds, and the money of the draft, are kept for writing."""
    settings, store = context.settings, context.store.deferred()
    ledger = StoreLedger(
        store, run.asked.who, run.id, _ceilings(settings, run), lambda: store.now()[:10], prices(settings)
    )
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
