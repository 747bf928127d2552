"""The models of a workspace in their roles: who is asked, what each can do, and what asking may cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from assay.core.codec import dumps, from_json, to_json
from assay.core.events import ModelReplied, RoleModel
from assay.core.run import Run
from assay.core.settings import hider
from assay.core.types import Usage
from assay.models.capability import Capability, probe
from assay.models.factory import is_provider, llm_for, model_hosts, models_by_role
from assay.models.llm import LLM, Role
from assay.models.meter import ConcurrencyLimit, ConnectedModel, Meter, StoreLedger
from assay.models.prices import parse_prices, price_of
from assay.store import facts
from assay.store.runs.budgets import Ceilings

if TYPE_CHECKING:
    from assay.core.settings import Settings
    from assay.workspace.facade import Workspace

PROBE = "probe:"
UNKNOWN_WINDOW = 8192  # tokens
AT_ONCE, AT_HOME = 4, 1  # requests at a time: a model on one's own machine gets slower by being asked more
DRAFT_IN, DRAFT_OUT = 6000, 1500  # tokens of the final draft that are set aside at the start
WRITING = frozenset({Role.write, Role.check})


async def seated(workspace: Workspace) -> Mapping[Role, tuple[ConnectedModel, ...]]:
    """Every role with its models, each probed once and then remembered."""
    settings = workspace.settings
    named = models_by_role(settings)
    found: dict[str, tuple[LLM, Capability]] = {}
    for name in dict.fromkeys(name for names in named.values() for name in names):
        llm = llm_for(settings, name)
        found[name] = (llm, await capability(workspace, llm, name))
    size = settings.llm_size
    return {role: tuple(_seated(role, *found[name], size) for name in names) for role, names in named.items()}


def _seated(role: Role, llm: LLM, can: Capability, size: str) -> ConnectedModel:
    """A model that makes tool calls is taken for a large one, unless the settings say what it is."""
    small = size == "small" or (size == "auto" and not can.tools)
    return ConnectedModel(llm, RoleModel(role.value, llm.name, can.tools, can.schema, can.json, can.window, small))


def remembered(workspace: Workspace) -> tuple[RoleModel, ...]:
    """The seats as they were found to be, without asking anybody; what was never probed is taken for a large model."""
    settings = workspace.settings
    found: list[RoleModel] = []
    for role, names in models_by_role(settings).items():
        known = facts.remembered(workspace.store, _fact(settings, names[0]))
        can = from_json(Capability, json.loads(known)) if known else Capability(True, True, True, UNKNOWN_WINDOW)
        small = settings.llm_size == "small" or (settings.llm_size == "auto" and not can.tools)
        found.append(
            RoleModel(role.value, names[0], can.tools, can.schema, can.json, settings.llm_window or can.window, small)
        )
    return tuple(found)


def _fact(settings: Settings, name: str) -> str:
    place = "provider" if is_provider(settings, name) else urlsplit(settings.llm_base_url).netloc.rpartition("@")[2]
    return f"{PROBE}{place}/{name}"


async def capability(workspace: Workspace, llm: LLM, name: str, *, anew: bool = False) -> Capability:
    """What a model's endpoint can do: remembered, or probed. A window that is set counts for more than one that is found."""
    settings = workspace.settings
    fact = _fact(settings, name)
    known = None if anew else facts.remembered(workspace.store, fact)
    if known is not None:
        can = from_json(Capability, json.loads(known))
    else:
        can = await probe(llm, settings.llm_timeout)
        if can.sure:  # an endpoint that was too busy to show what it can do is asked again next time
            facts.remember(workspace.store, fact, dumps(to_json(can)))
    return can if not settings.llm_window else replace(can, window=settings.llm_window)


def seats(roles: Mapping[Role, tuple[ConnectedModel, ...]]) -> tuple[RoleModel, ...]:
    return tuple(each.seat for seated in roles.values() for each in seated)


def as_recorded(
    roles: Mapping[Role, tuple[ConnectedModel, ...]], run: Run
) -> Mapping[Role, tuple[ConnectedModel, ...]]:
    """The same models, taken to be able to do what the run says: what they are shown must not change half-way."""
    known = {(seat.role, seat.model): seat for seat in run.asked.seats}
    return {
        role: tuple(ConnectedModel(each.llm, known.get((role.value, each.seat.model), each.seat)) for each in seated)
        for role, seated in roles.items()
    }


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one run may take; 0 is no ceiling."""

    calls: int
    tokens: int
    money: float
    seconds: float


def allowance(settings: Settings, run: Run) -> Allowance:
    return allowed(settings, synthesis=run.asked.brief is not None)


def allowed(settings: Settings, *, synthesis: bool) -> Allowance:
    """A synthesis reads many documents, and may take more than a question."""
    if synthesis:
        return Allowance(
            settings.synthesis_calls, settings.synthesis_tokens, settings.synthesis_money, settings.synthesis_seconds
        )
    return Allowance(
        settings.budget_run_calls, settings.budget_run_tokens, settings.budget_run_money, settings.budget_run_seconds
    )


def ceilings(settings: Settings, run: Run) -> Ceilings:
    own = allowance(settings, run)
    return Ceilings(
        run_calls=own.calls,
        run_tokens=own.tokens,
        run_money=own.money,
        day_calls=settings.budget_day_calls,
        day_tokens=settings.budget_day_tokens,
        day_money=settings.budget_day_money,
        day_seconds=settings.budget_day_seconds,
        all_tokens=settings.budget_all_day_tokens,
        all_money=settings.budget_all_day_money,
        call_tokens=settings.budget_call_tokens,
    )


def prices(settings: Settings) -> Callable[[str, int, int], float | None]:
    """USD for a model and so many tokens in and out; none where no price is known."""
    own = parse_prices(settings.llm_prices)
    elsewhere = model_hosts(settings)

    def price(model: str, tokens_in: int, tokens_out: int) -> float | None:
        if not elsewhere and model not in own:
            return 0.0  # on this machine nobody sends a bill, whatever the model is called
        return price_of(model, Usage(tokens_in=tokens_in, tokens_out=tokens_out), own)

    return price


def meter(
    workspace: Workspace,
    run: Run,
    roles: Mapping[Role, tuple[ConnectedModel, ...]],
    left: Callable[[], float],
    kept_back: float,
) -> Meter:
    """The run's way out to its models. Searching may not use up the seconds, nor the money, that writing needs."""
    settings = workspace.settings
    store = workspace.store
    book = StoreLedger(
        store, run.asked.who, run.id, ceilings(settings, run), lambda: store.now()[:10], prices(settings)
    )
    writer = roles[Role.write][0].seat
    if run.draft is None:
        book.set_aside(writer.model, min(DRAFT_IN, writer.window // 2), DRAFT_OUT)

    def seconds(role: Role) -> float:
        return left() - (0.0 if role in WRITING else kept_back)

    def nothing(_: ModelReplied) -> None:
        raise AssertionError("the loop hands in its log")

    return Meter(
        seats=roles,
        record=nothing,
        recalled=lambda request: run.consulted.get(request),
        book=book,
        seconds=seconds,
        timeout=settings.llm_timeout,
        gate=ConcurrencyLimit(settings.llm_concurrency or (AT_ONCE if model_hosts(settings) else AT_HOME)),
        temperature=settings.llm_temperature,
        hide=hider(settings),
    )
