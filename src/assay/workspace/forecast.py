"""What a question, or adding files, will take in a workspace: told before it begins, kept when it does, and set beside what
it took when it ends. Nothing is asked of a model for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.agent import forecast
from assay.agent.forecast import Ceiling, Error, Reached
from assay.core.events import RoleModel
from assay.core.formats import format_of_suffix
from assay.models.factory import has_model, model_hosts, remote_hosts
from assay.store import document_list
from assay.store.runs import budgets, forecasts
from assay.store.runs.forecasts import Amount, Foreseen, Kind, Past, Range
from assay.workspace import model_roles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.agent.limits import Limits
    from assay.core.run import Run
    from assay.ingest.readiness import Readiness
    from assay.ingest.sources import Source
    from assay.workspace.ask import AskOptions
    from assay.workspace.facade import Workspace

BY_RULE = "rules"  # in the place of a model's name

CHARACTERS = 4  # of a token
OPENED, PARSED, EMBEDDED = 0.03, 2e-7, 0.02  # seconds for a file, for a byte of it, for a passage
BATCH = 64  # passages in one request, where the embedder is at an endpoint


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a piece of work is expected to take, how good such forecasts were before, and what would cut it short."""

    kind: Kind
    alike: str
    foreseen: Foreseen
    reached: tuple[Reached, ...] = ()
    errors: Mapping[str, Error] = field(default_factory=dict)


def of_question(workspace: Workspace, how: AskOptions) -> Outlook:
    """Before a question is asked. Models are taken to be what they were when they were last asked."""
    settings = workspace.settings
    seats = model_roles.remembered(workspace) if how.model and has_model(settings) else ()
    held = document_list.counts(workspace.store, workspace.scope(how.where.bases))
    counts = {
        "documents": sum(each.ready for each in held.values()),
        "passages": sum(each.passages for each in held.values()),
    }
    alike = f"{how.mode} {_model(seats)}"
    past = forecasts.past(workspace.store, Kind.ask, workspace.principal.id, alike)
    expected = forecast.foreseen(_guess(workspace, seats, how.mode), past, counts)
    return _outlook(workspace, Kind.ask, alike, expected, past, model_roles.allowed(settings, synthesis=False))


def begun(workspace: Workspace, run: Run) -> None:
    """A question has been asked: what it should take is kept, in one insertion."""
    asked = run.asked
    alike = f"{asked.mode} {_model(asked.seats)}"
    past = forecasts.past(workspace.store, Kind.ask, asked.who, alike)
    expected = forecast.foreseen(_guess(workspace, asked.seats, asked.mode), past)
    forecasts.begun(workspace.store, run.id, Kind.ask, asked.who, alike, expected)


def ended(workspace: Workspace, run: Run, limits: Limits) -> None:
    """A run has ended: what it set aside is free, and what it took is kept."""
    used = run.usage
    seconds = round(max(0.0, limits.seconds - limits.seconds_left()), 3)
    with workspace.store.write() as connection:
        budgets.give_back(connection, run.id)
        forecasts.ended(connection, run.id, Amount(used.calls, used.tokens_in + used.tokens_out, used.money, seconds))


def of_files(workspace: Workspace, files: Sequence[Source], base: str) -> Outlook:
    """Before files are added. Those that are there already, and are as long as they were, are taken to cost nothing."""
    settings = workspace.settings
    mine = any(each.name == base for each in workspace.scope().bases)
    there = {(entry.uri, entry.bytes) for entry in workspace.sources([base])} if mine else set()
    sizes = {one.uri: (one.name, one.size()) for one in files}
    fresh = [(name, size) for uri, (name, size) in sizes.items() if (uri, size) not in there]
    characters = sum(size * (found.text_share if (found := format_of_suffix(name)) else 1.0) for name, size in fresh)
    passages = round(characters / CHARACTERS / max(1, settings.passage_tokens - settings.passage_overlap)) + len(fresh)
    away = bool(remote_hosts(settings.embedder, settings.proxy))
    seconds = OPENED * len(fresh) + PARSED * sum(size for _, size in fresh) + EMBEDDED * passages
    guess = Amount(
        calls=-(-passages // BATCH) if away else 0,
        tokens=passages * settings.passage_tokens if away else 0,
        money=None if away else 0.0,
        seconds=seconds if fresh else 0.0,
    )
    counts = {"files": len(sizes), "new": len(fresh), "passages": passages if fresh else 0}
    past = forecasts.past(workspace.store, Kind.add, workspace.principal.id, settings.embedder)
    return _outlook(workspace, Kind.add, settings.embedder, forecast.foreseen(guess, past, counts), past)


def added(workspace: Workspace, outlook: Outlook, report: Readiness) -> None:
    """Files were added: what was expected is kept with what it took. Where there was nothing new, nothing is learnt."""
    if not report.embedded:
        return
    guess = outlook.foreseen.guess
    came = Amount(guess.calls, guess.tokens, guess.money, round(report.seconds, 3))
    id = f"add-{workspace.store.new_id()}"
    who = workspace.principal.id
    forecasts.begun(workspace.store, id, Kind.add, who, outlook.alike, outlook.foreseen, came)


def speed(workspace: Workspace, model: str) -> forecast.Speed:
    """How fast a model is: as it was with this person of late, or guessed by where it is."""
    guess = forecast.REMOTE if model_hosts(workspace.settings) else forecast.LOCAL
    return forecast.pace(budgets.paid_to(workspace.store, model, workspace.principal.id), guess)


def in_the_way(
    workspace: Workspace, expected: Foreseen, allowed: model_roles.Allowance, prefix: str
) -> tuple[Reached, ...]:
    """The ceilings that this would meet: of the run, of the person today, of everybody today."""
    settings, store, who = workspace.settings, workspace.store, workspace.principal.id
    own = (allowed.calls, allowed.tokens, allowed.money, allowed.seconds)
    found = [
        Ceiling(f"{prefix}_{what}", what, "run", most, most)
        for what, most in zip(("calls", "tokens", "money", "seconds"), own, strict=True)
    ]
    if any(getattr(settings, f"budget_day_{what}") for what in ("calls", "tokens", "money", "seconds")):
        used = _spent(budgets.spent(store, who, store.now()[:10]))
        for what, already in used.items():
            most = getattr(settings, f"budget_day_{what}")
            found.append(Ceiling(f"budget_day_{what}", what, "day", most, most - already))
    if settings.budget_all_day_tokens or settings.budget_all_day_money:
        used = _spent(budgets.spent_by_all(store, store.now()[:10]))
        for what in ("tokens", "money"):
            most = getattr(settings, f"budget_all_day_{what}")
            found.append(Ceiling(f"budget_all_day_{what}", what, "all", most, most - used[what]))
    return forecast.reached(expected, found) if expected.calls.high else _on_time_alone(expected, found)


def _on_time_alone(expected: Foreseen, found: Sequence[Ceiling]) -> tuple[Reached, ...]:
    """Without a model only the seconds of the run itself can end it."""
    own = [each for each in found if each.what == "seconds" and each.whose == "run"]
    return forecast.reached(expected, own)


def _spent(used: budgets.Usage) -> dict[str, float]:
    return {
        "calls": used.calls,
        "tokens": used.tokens_in + used.tokens_out,
        "money": used.money,
        "seconds": used.seconds,
    }


def _outlook(
    workspace: Workspace,
    kind: Kind,
    alike: str,
    expected: Foreseen,
    past: Sequence[Past],
    allowed: model_roles.Allowance | None = None,
) -> Outlook:
    met = in_the_way(workspace, expected, allowed, "budget_run") if allowed is not None else ()
    return Outlook(kind, alike, expected, met, forecast.errors(past))


def _model(seats: Sequence[RoleModel]) -> str:
    return next((seat.model for seat in seats if seat.role == "write"), BY_RULE)


def _guess(workspace: Workspace, seats: Sequence[RoleModel], mode: forecast.Mode) -> Amount:
    work = forecast.question(mode, seats)
    if not work.calls:
        return Amount(money=0.0, seconds=forecast.RULED[mode])
    model = _model(seats)
    pace = speed(workspace, model)
    asking = (work.tokens_in / pace.read + work.tokens_out / pace.write) / min(pace.at_once, 2)
    money = model_roles.prices(workspace.settings)(model, work.tokens_in, work.tokens_out)
    return Amount(work.calls, work.tokens_in + work.tokens_out, money, asking + forecast.SEARCH * forecast.ROUNDS[mode])


# --- in words -------------------------------------------------------------------------------------------------------


def lines(outlook: Outlook) -> list[str]:
    """The forecast, how good such forecasts were, and what would cut it short; each figure rounded, since it is a guess."""
    expected = outlook.foreseen
    took = f"from {_runs(expected.from_runs)}" if expected.from_runs else "a guess: nothing like it was done here yet"
    told = [f"Forecast ({took}): {in_ranges(expected)}."]
    if outlook.errors:
        said = [f"{name} {error.inside:.0%}" for name, error in outlook.errors.items()]
        typical = outlook.errors.get("tokens") or outlook.errors["seconds"]
        told.append(
            f"Earlier forecasts ({expected.from_runs:,}) that held their range: {', '.join(said)}; "
            f"in the middle it took {typical.ratio:.2g} times what was likely."
        )
    return [*told, *(reached_in_words(each) for each in outlook.reached)]


def in_ranges(expected: Foreseen) -> str:
    """Low to high, and likely, of everything that it takes."""
    from assay.synthesis.forecast import charge, counted, lasting, rounded

    parts: list[str] = []
    if expected.calls.high:
        parts.append(_said(expected.calls, lambda n: f"{rounded(round(n)):,}", "requests"))
        parts.append(_said(expected.tokens, lambda n: f"{rounded(round(n)):,}", "tokens"))
        parts.append("price not known" if expected.money is None else _said(expected.money, charge))
    if expected.counts.get("new") is not None:
        parts.append(counted(expected.counts["new"], "new file"))
        parts.append(f"about {counted(rounded(expected.counts['passages']), 'passage')}")
    parts.append(_said(expected.seconds, lasting))
    return "; ".join(parts)


def reached_in_words(met: Reached) -> str:
    from assay.synthesis.forecast import charge, lasting

    ceiling = met.ceiling
    most = {"calls": f"{ceiling.most:,.0f} requests", "tokens": f"{ceiling.most:,.0f} tokens"}.get(ceiling.what)
    most = most or (charge(ceiling.most) if ceiling.what == "money" else lasting(ceiling.most))
    whose = {"run": "for one run", "day": "for one person in a day", "all": "for all together in a day"}[ceiling.whose]
    how = "will probably be reached" if met.probably else "may be reached"
    return f"Note: the limit of {most} {whose} (`{ceiling.setting}`) {how}; from there on it goes by rule."


def _said(range_: Range, told, unit: str = "") -> str:
    low, likely, high = (told(each) for each in (range_.low, range_.likely, range_.high))
    unit = f" {unit}" if unit else ""
    return f"{likely}{unit}" if low == likely == high else f"{low} to {high}{unit}, likely {likely}"


def _runs(count: int) -> str:
    return "1 earlier one" if count == 1 else f"{count:,} earlier ones"
