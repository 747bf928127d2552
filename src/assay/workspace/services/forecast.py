"""What a question, or adding files, is expected to take: forecast before it begins, stored when it does, and compared with what
it took when it ends. No model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.core.events import RoleModel
from assay.core.formats import format_of_suffix
from assay.core.types import Usage
from assay.models.factory import embedder_setting, has_model, model_hosts, remote_hosts
from assay.store import document_list
from assay.store.runs import budgets, forecasts
from assay.store.runs.forecasts import Amount, WorkEstimate, WorkKind
from assay.workspace import forecast
from assay.workspace.context import WorkspaceContext
from assay.workspace.forecast import Ceiling, WorkForecast
from assay.workspace.services.models import MEASURES, Models, prices
from assay.workspace.types import AskOptions

if TYPE_CHECKING:
    from assay.agent.context import Limits
    from assay.core.run import Run
    from assay.ingest.readiness import Readiness
    from assay.ingest.sources import SourceFile

BY_RULE = "rules"  # instead of the name of a model

# Adding files. The first forecasts are rough; later ones are corrected by what adding took.
CHARACTERS_PER_TOKEN = 4
SECONDS_PER_FILE, SECONDS_PER_BYTE, SECONDS_PER_PASSAGE = 0.03, 2e-7, 0.04
PASSAGES_PER_REQUEST = 64  # to a remote embedder


def forecast_question(context: WorkspaceContext, how: AskOptions) -> WorkForecast:
    """What a question is expected to take. Models are assumed to be as they were when last asked."""
    settings = context.settings
    known = Models(context)
    models = known.known_role_models() if how.model and has_model(settings) and not known.too_small() else ()
    held = document_list.counts(context.store, context.scope(how.where.bases))
    counts = {
        "documents": sum(each.ready for each in held.values()),
        "passages": sum(each.passages for each in held.values()),
    }
    alike = f"{how.mode} {_writer(models)}"
    past = forecasts.past_work(context.store, WorkKind.ask, context.principal.id, alike)
    expected = forecast.estimate_work(_guess(context, models, how.mode), past, counts)
    reached = reached_limits(context, expected, "budget_run")
    return WorkForecast(WorkKind.ask, alike, expected, reached, forecast.errors(past))


def record_expected(context: WorkspaceContext, run: Run) -> None:
    """Store what a question that was just asked is expected to take."""
    asked = run.asked
    alike = f"{asked.mode} {_writer(asked.seats)}"
    past = forecasts.past_work(context.store, WorkKind.ask, asked.who, alike)
    expected = forecast.estimate_work(_guess(context, asked.seats, asked.mode), past)
    forecasts.add_forecast(context.store, run.id, WorkKind.ask, asked.who, alike, expected)


def record_actual(context: WorkspaceContext, run: Run, limits: Limits) -> None:
    """Store what a run that has ended took, and release what it had reserved."""
    used = run.usage
    seconds = round(max(0.0, limits.seconds - limits.seconds_left()), 3)
    with context.store.write() as connection:
        budgets.release_draft(connection, run.id)
        forecasts.add_outcome(
            connection, run.id, Amount(used.calls, used.tokens_in + used.tokens_out, used.money, seconds)
        )


def forecast_files(context: WorkspaceContext, files: Sequence[SourceFile], base: str) -> WorkForecast:
    """What adding files is expected to take. Known files of unchanged length are assumed to cost nothing."""
    settings = context.settings
    exists = any(each.name == base for each in context.scope().bases)
    known = {(entry.uri, entry.bytes) for entry in context.sources([base])} if exists else set()
    sizes = {one.uri: (one.name, one.size()) for one in files}
    fresh = [(name, size) for uri, (name, size) in sizes.items() if (uri, size) not in known]
    characters = sum(size * (found.text_share if (found := format_of_suffix(name)) else 1.0) for name, size in fresh)
    step = max(1, settings.passage_tokens - settings.passage_overlap)
    passages = round(characters / CHARACTERS_PER_TOKEN / step) + len(fresh)
    remote = bool(remote_hosts(settings.embedder, settings.proxy))
    seconds = SECONDS_PER_FILE * len(fresh) + SECONDS_PER_BYTE * sum(size for _, size in fresh)
    guess = Amount(
        calls=-(-passages // PASSAGES_PER_REQUEST) if remote else 0,
        tokens=passages * settings.passage_tokens if remote else 0,
        money=None if remote else 0.0,
        seconds=seconds + SECONDS_PER_PASSAGE * passages if fresh else 0.0,
    )
    counts = {"files": len(sizes), "new": len(fresh), "passages": passages if fresh else 0}
    embedder = embedder_setting(settings)
    past = forecasts.past_work(context.store, WorkKind.add, context.principal.id, embedder)
    expected = forecast.estimate_work(guess, past, counts)
    return WorkForecast(WorkKind.add, embedder, expected, errors=forecast.errors(past))


def record_added(context: WorkspaceContext, expected: WorkForecast, report: Readiness) -> None:
    """Store a forecast of added files with what adding them took; nothing if there was nothing new."""
    if not report.embedded:
        return
    guess = expected.foreseen.guess
    actual = Amount(guess.calls, guess.tokens, guess.money, round(report.seconds, 3))
    id = f"add-{context.store.new_id()}"
    who = context.principal.id
    forecasts.add_forecast(context.store, id, WorkKind.add, who, expected.alike, expected.foreseen, actual)


def model_speed(context: WorkspaceContext, model: str) -> forecast.Speed:
    """The speed of a model, as this person has measured it lately, or guessed from where it runs."""
    guess = forecast.REMOTE if model_hosts(context.settings) else forecast.LOCAL
    return forecast.pace(budgets.recent_usage(context.store, model, context.principal.id), guess)


def reached_limits(context: WorkspaceContext, expected: WorkEstimate, prefix: str) -> tuple[Ceiling, ...]:
    """The limits that this work may reach: of the run, of the person today, of everybody today."""
    store, who = context.store, context.principal.id
    today = store.now()[:10]
    found = _ceilings(context, prefix, "run", Usage())
    if not expected.calls.high:  # without a model only the seconds of the run itself can end it
        return forecast.reached(expected, [each for each in found if each.what == "seconds"])
    found += _ceilings(context, "budget_day", "day", budgets.spent(store, who, today))
    found += _ceilings(context, "budget_all_day", "all", budgets.spent_by_all(store, today))
    return forecast.reached(expected, found)


def _ceilings(context: WorkspaceContext, prefix: str, whose: str, used: Usage) -> list[Ceiling]:
    """The limits that the settings with this prefix set."""
    spent = Amount(used.calls, used.tokens_in + used.tokens_out, used.money, used.seconds)
    limits = {what: getattr(context.settings, f"{prefix}_{what}", 0) for what in MEASURES}
    return [
        Ceiling(f"{prefix}_{what}", what, whose, most, most - getattr(spent, what)) for what, most in limits.items()
    ]


def _writer(models: Sequence[RoleModel]) -> str:
    return next((each.model for each in models if each.role == "write"), BY_RULE)


def _guess(context: WorkspaceContext, models: Sequence[RoleModel], mode: forecast.Mode) -> Amount:
    work = forecast.question(mode, models)
    if not work.calls:
        return Amount(money=0.0, seconds=forecast.RULED[mode])
    model = _writer(models)
    speed = model_speed(context, model)
    asking = (work.tokens_in / speed.read + work.tokens_out / speed.write) / min(speed.at_once, 2)
    money = prices(context.settings)(model, work.tokens_in, work.tokens_out)
    return Amount(work.calls, work.tokens_in + work.tokens_out, money, asking + forecast.SEARCH * forecast.ROUNDS[mode])
