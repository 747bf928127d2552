"""Every report: its columns, its rows and its charts. All figures come from the records and from the spending table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from statistics import mean

from assay.core.run import Run
from assay.core.types import Usage
from assay.governance.reports import ReportKind
from assay.governance.reports.figures import (
    ForecastAccuracy,
    RoleSpending,
    RunFigures,
    RunGroup,
    ToolWeek,
    cap_share,
    figures,
    group_by_week,
    override_share,
    unusual_runs,
    unusual_weeks,
)
from assay.governance.reports.report import (
    BY_NAME,
    DAYS,
    OUTLIERS,
    THRESHOLDS,
    Cell,
    Report,
    ReportField,
    Threshold,
    draw_chart,
    format_figure,
    group_by,
    median_or_none,
    quantile,
    render_report,
    share,
)
from assay.store.database import Store
from assay.store.runs import budgets, records
from assay.store.runs import figures as store_figures
from assay.store.runs.figures import ForecastOutcome

# The kinds of records that a report needs; reports that are not listed need every record.
NEEDS = {
    ReportKind.tools: ("Asked", "Decided", "ToolRan"),
    ReportKind.overrides: ("Reviewed",),
    ReportKind.roles: ("Asked",),
}


def build_report(store: Store, kind: ReportKind, since: str = "", until: str = "", who: str | None = None) -> Report:
    """A report on the runs that began from `since` to `until`, both days included, of everybody or of one person. The
    report on health always covers the last days, as the alert rules do."""
    if kind is ReportKind.forecasts:
        return forecasts_report(store_figures.forecast_outcomes(store, since, until, who))
    if kind is ReportKind.health:
        since, until = (date.fromisoformat(store.now()[:10]) - timedelta(days=DAYS - 1)).isoformat(), ""
    runs = list(figures(store_figures.facts(store, since, until, who, NEEDS.get(kind, ()))))
    match kind:
        case ReportKind.runs:
            return runs_report(runs, store_figures.spent(store, since, until, who))
        case ReportKind.tools:
            return tools_report(runs)
        case ReportKind.overrides:
            return overrides_report(runs)
        case ReportKind.roles:
            return roles_report(runs, store_figures.spent_by_role(store, since, until, who))
        case ReportKind.iterations:
            return iterations_report(runs, store_figures.spent(store, since, until, who))
        case _:
            return health_report(runs)


def build_run_account(store: Store, run: Run) -> Report:
    """The account of one run. The caller must have checked that it may be shown."""
    own = next(iter(figures(store_figures.facts_of_run(store, run.id))), RunFigures(run.id))
    return run_account(run, own, budgets.spent_by_run(store, run.id), list(records.faults(store, run.id)))


STATES = ("answered", "partial", "abstained", "direct", "failed", "rejected", "held", "waiting", "unfinished", "erased")


def _state_field(state: str) -> ReportField[RunGroup]:
    return ReportField(state, f"how many of them stand so: {state}", lambda group: group.states[state])


RUNS: tuple[ReportField[RunGroup], ...] = (
    ReportField("week", "the ISO week in which the runs were begun", lambda group: group.name),
    ReportField("runs", "questions and syntheses", lambda group: len(group.runs)),
    *(_state_field(state) for state in STATES),
    ReportField(
        "median s",
        "seconds at work, in the middle; waiting for a person is not work",
        lambda group: median_or_none(group.delivered_seconds),
        2,
    ),
    ReportField(
        "p95 s", "seconds that 95 of 100 stayed within", lambda group: quantile(group.delivered_seconds, 0.95), 2
    ),
    ReportField("calls", "requests to models", lambda group: sum(each.calls for each in group.payments)),
    ReportField(
        "tokens",
        "of models, in and out",
        lambda group: sum(each.tokens_in + each.tokens_out for each in group.payments),
    ),
    ReportField(
        "usd",
        "what models cost, where a price is known",
        lambda group: sum(group.spent[run.id].money for run in group.runs if run.id in group.spent),
        6,
    ),
)


def runs_report(runs: Sequence[RunFigures], spent: Mapping[str, Usage]) -> Report:
    """How many runs there were in each week, how they ended, and what they cost."""
    groups = group_by_week(runs, spent)
    weeks = [group.name for group in groups]
    found = {run.state for run in runs}
    ended = {state: [float(group.states[state]) for group in groups] for state in STATES if state in found}
    seconds = {"p95": [quantile(group.delivered_seconds, 0.95) for group in groups]}
    charts = [
        draw_chart("Runs by week", "bar", weeks, ended),
        draw_chart("Seconds at work, P95", "line", weeks, seconds, BY_NAME["session_p95"].limit),
    ]
    return render_report("Runs by week", "From the records and from what was spent.", RUNS, groups, charts)


ACCOUNT: tuple[ReportField[tuple[str, Cell]], ...] = (
    ReportField("what", "what is told", lambda row: row[0]),
    ReportField("value", "as it was recorded", lambda row: row[1]),
)


def run_account(run: Run, figures: RunFigures, spent: Usage, faults: Sequence[str]) -> Report:
    """One run: the question, the steps, the result, the reviews and the cost."""
    asked, answer = run.asked, run.answer
    models = sorted({role_model.model for role_model in asked.seats})
    rows: list[tuple[str, Cell]] = [
        ("run", run.id),
        ("asked by", asked.who),
        ("begun", figures.started),
        ("question", asked.question),
        *([("understood as", run.question)] if run.question != asked.question else []),
        *([("goes on from", f"{asked.branch.run}, record {asked.branch.at}")] if asked.branch else []),
        ("models", ", ".join(models) or "none: by rule"),
        ("kind", figures.kind),
        *(("step of the plan", f"{step.id} {step.question}") for step in (run.plan.steps if run.plan else ())),
        ("rounds", figures.rounds),
        *((f"calls of {tool}", count) for tool, count in sorted(figures.tools.items())),
        ("calls that went wrong", figures.failed_calls),
        *(("searched", f"{each.query}: {each.found} found, {each.kept} kept") for each in run.searched),
        ("evidence", len(run.evidence)),
        ("search ended", figures.stopped or "–"),
        ("stands", figures.state),
        *_claim_counts(run),
        *(("review", f"{when[:19]} {decision}") for when, decision in figures.decisions),
        *([("gaps", "; ".join(answer.gaps))] if answer and answer.gaps else []),
        ("requests to models", spent.calls),
        ("tokens", spent.tokens_in + spent.tokens_out),
        ("usd", round(spent.money, 6)),
        ("seconds at work", round(figures.seconds, 3)),
        ("records", figures.records),
        ("record", "; ".join(faults) or "whole"),
    ]
    return render_report(f"The account of run {run.id}", "`assay trace` shows every step of it.", ACCOUNT, rows)


def _claim_counts(run: Run) -> list[tuple[str, Cell]]:
    """The delivered claims, by verdict. Claims that await review are not counted."""
    if not run.answer:
        return []
    verdicts = Counter(claim.verdict.value for claim in run.answer.claims if claim.verdict)
    cited = {key for claim in run.answer.claims for key in claim.cites}
    counts: list[tuple[str, Cell]] = [(f"claims {verdict}", count) for verdict, count in sorted(verdicts.items())]
    return [*counts, ("quotations cited", len(cited))]


CHARTED_TOOLS = 8  # the other tools are only in the table
TOOLS: tuple[ReportField[ToolWeek], ...] = (
    ReportField("week", "the ISO week in which the runs were begun", lambda row: row.week),
    ReportField("tool", "the tool", lambda row: row.tool),
    ReportField("calls", "how often it was called", lambda row: sum(row.counts)),
    ReportField("errors", "how often that went wrong: it refused, or failed", lambda row: row.errors),
    ReportField("error rate", "errors for each call", lambda row: row.error_rate, 4),
    ReportField("runs", "runs that called it", lambda row: len(row.runs)),
    ReportField(
        "median in a run",
        "calls in a run that called it, in the middle",
        lambda row: median_or_none([float(count) for count in row.counts]),
    ),
    ReportField("most in a run", "calls in the run that called it most", lambda row: max(row.counts)),
    ReportField(
        "stands out", "this week's calls, its error rate, or single runs, by the rule above", lambda row: row.remarks
    ),
)


def tools_report(runs: Sequence[RunFigures]) -> Report:
    """Calls of tools by week, with outliers."""
    weeks = group_by_week(runs, {})
    totals = sum((Counter(run.tools) for run in runs), Counter[str]())
    names = sorted(totals, key=lambda tool: (-totals[tool], tool))
    calls = {tool: [sum(run.tools.get(tool, 0) for run in week.runs) for week in weeks] for tool in names}
    odd_weeks = {tool: unusual_weeks(calls[tool]) for tool in names}
    odd_runs = {tool: unusual_runs(runs, tool) for tool in names}
    rows = [
        ToolWeek(
            week.name, tool, [run for run in week.runs if run.tools.get(tool)], odd_weeks[tool][at], odd_runs[tool]
        )
        for at, week in enumerate(weeks)
        for tool in names
        if calls[tool][at]
    ]
    limit = BY_NAME["tool_errors"]
    rates = [share(sum(run.failed_calls for run in week.runs), sum(run.calls for run in week.runs)) for week in weeks]
    x = [week.name for week in weeks]
    charted = {tool: [float(count) for count in calls[tool]] for tool in names[:CHARTED_TOOLS]}
    charts = [
        draw_chart("Calls of tools by week", "bar", x, charted),
        draw_chart("Share of calls that went wrong", "line", x, {"error rate": rates}, limit.limit, 4),
    ]
    about = f"{OUTLIERS} An error rate {limit.words} does too."
    return render_report("Calls of tools by week", about, TOOLS, rows, charts)


OVERRIDES: tuple[ReportField[tuple[str, Sequence[RunFigures]]], ...] = (
    ReportField("month", "the month of the last decision", lambda row: row[0]),
    ReportField("answers", "approved or rejected in the end", lambda row: len(row[1])),
    ReportField("approved", "let through as it was", lambda row: sum(not run.overridden for run in row[1])),
    ReportField(
        "edited",
        "changed, checked again and let through",
        lambda row: sum(run.overridden - run.rejected for run in row[1]),
    ),
    ReportField("rejected", "not delivered", lambda row: sum(run.rejected for run in row[1])),
    ReportField("override rate", "edited and rejected, of all of these", lambda row: override_share(row[1]), 4),
)


def overrides_report(runs: Sequence[RunFigures]) -> Report:
    """The share of reviewed answers that were changed or rejected, by month."""
    rows = sorted(group_by((run for run in runs if run.settled), lambda run: run.decisions[-1][0][:7]).items())
    rates = [override_share(answers) for _, answers in rows]
    months, limit = [month for month, _ in rows], BY_NAME["overrides"].limit
    chart = draw_chart("Override rate by month", "line", months, {"override rate": rates}, limit, 4)
    about = "An answer counts once, however often it was edited."
    return render_report("Reviewed answers by month", about, OVERRIDES, rows, [chart])


ITERATIONS: tuple[ReportField[RunGroup], ...] = (
    ReportField(
        "of",
        "a week, or a kind of question: its route, whether it asks for a whole set, its mode",
        lambda group: group.name,
    ),
    ReportField("questions", "delivered in it", lambda group: len(group.runs)),
    ReportField("mean", "rounds of searching, on average", lambda group: group.mean_rounds, 2),
    ReportField("p99", "rounds that 99 of 100 stayed within", lambda group: quantile(group.rounds, 0.99)),
    ReportField(
        "at the cap",
        "share whose search ended because a limit was reached; of those that have a model",
        lambda group: cap_share(group.runs),
        4,
    ),
    ReportField(
        "mean calls",
        "requests to models, on average",
        lambda group: mean(each.calls for each in group.payments) if group.runs else None,
        2,
    ),
    ReportField("mean tokens", "of models, in and out, on average", lambda group: group.mean_tokens, 1),
    ReportField(
        "mean usd",
        "what models cost, on average",
        lambda group: mean(each.money for each in group.payments) if group.runs else None,
        6,
    ),
    ReportField("median s", "seconds at work, in the middle", lambda group: group.median_seconds, 2),
)


def iterations_report(runs: Sequence[RunFigures], spent: Mapping[str, Usage]) -> Report:
    """Rounds by week, and kinds of question, the most expensive first."""
    runs = [run for run in runs if run.delivered and not run.erased]  # the rounds of an erased run are unknown
    weeks = group_by_week([run for run in runs if run.by != "synthesis"], spent)
    kinds = [RunGroup(kind, own, spent) for kind, own in group_by(runs, lambda run: run.kind).items()]
    kinds.sort(key=lambda group: (-(group.mean_tokens or 0), -(group.median_seconds or 0), group.name))
    x = [week.name for week in weeks]
    rounds = {"mean": [week.mean_rounds for week in weeks], "p99": [quantile(week.rounds, 0.99) for week in weeks]}
    tokens = {"tokens": [kind.mean_tokens for kind in kinds]}
    caps = {"at the cap": [cap_share(week.runs) for week in weeks]}
    charts = [
        draw_chart("Rounds per question", "line", x, rounds, BY_NAME["iterations"].limit),
        draw_chart("Share of questions at the cap", "line", x, caps, BY_NAME["cap_hits"].limit, 4),
        draw_chart("Tokens per question, by kind", "bar", [kind.name for kind in kinds], tokens),
    ]
    about = "Only what was delivered counts."
    return render_report("Rounds by week, and what kinds cost", about, ITERATIONS, [*weeks, *kinds], charts)


ROLES: tuple[ReportField[RoleSpending], ...] = (
    ReportField("role", "what models were asked to do", lambda row: row.role),
    ReportField("requests", "to models in this role", lambda row: row.spent.calls),
    ReportField("per question", "requests for each run with a model", lambda row: share(row.spent.calls, row.runs), 2),
    ReportField("tokens in", "of prompts", lambda row: row.spent.tokens_in),
    ReportField("tokens out", "of replies", lambda row: row.spent.tokens_out),
    ReportField("share", "of all tokens", lambda row: share(row.tokens, row.everything), 4),
    ReportField("usd", "what they cost, where a price is known", lambda row: row.spent.money, 6),
)


def roles_report(runs: Sequence[RunFigures], spent: Mapping[str, Usage]) -> Report:
    """What each role of the models costs, the most expensive first, and all of them together."""
    with_model = sum(run.by != "rules" for run in runs)
    every = sum(spent.values(), Usage())
    tokens = every.tokens_in + every.tokens_out
    rows = [RoleSpending(role, each, with_model, tokens) for role, each in spent.items()]
    rows.sort(key=lambda row: (-row.tokens, row.role))
    chart = draw_chart("Tokens by role", "bar", [row.role for row in rows], {"tokens": [float(r.tokens) for r in rows]})
    if rows:
        rows.append(RoleSpending("all", every, with_model, tokens))
    return render_report("What each role costs", "From what was spent.", ROLES, rows, [chart])


MEASURES = ("calls", "tokens", "money", "seconds")


FORECASTS: tuple[ReportField[ForecastAccuracy], ...] = (
    ReportField("work", "what was foreseen: ask, synthesise, add", lambda row: row.kind),
    ReportField("of", "calls of models, tokens, money (USD) or seconds", lambda row: row.measure),
    ReportField("forecasts", "that something came of", lambda row: len(row.outcomes)),
    ReportField("within", "share that came out from low to high, both included", lambda row: row.within, 4),
    ReportField(
        "median error",
        "how far off the likely value was, in shares of what came, in the middle",
        lambda row: median_or_none([abs(likely - came) / came for _, likely, _, came in row.outcomes if came]),
        4,
    ),
    ReportField(
        "median of came / likely",
        "over 1: more came than was foreseen",
        lambda row: median_or_none([came / likely for _, likely, _, came in row.outcomes if likely]),
        4,
    ),
    ReportField(
        "open", "forecasts of work that has not ended", lambda row: sum(each.came is None for each in row.forecasts)
    ),
)


def forecasts_report(forecasts: Sequence[ForecastOutcome]) -> Report:
    """By kind of work and by measure: how often the outcome was within the forecast, and how far off it was."""
    kinds = group_by(forecasts, lambda each: each.kind)
    rows = [ForecastAccuracy(kind, measure, kinds[kind]) for kind in sorted(kinds) for measure in MEASURES]
    within = {measure: [row.within for row in rows if row.measure == measure] for measure in MEASURES}
    chart = draw_chart("Share that came out as foreseen", "bar", sorted(kinds), within, places=4)
    about = "From what was noted when the work began and ended."
    return render_report("Forecasts and what came", about, FORECASTS, rows, [chart])


HEALTH: tuple[ReportField[tuple[Threshold, float | None]], ...] = (
    ReportField("figure", "what is watched", lambda row: row[0].name),
    ReportField("value", "over these days; empty where nothing happened", lambda row: row[1], 4),
    ReportField("alarm", "where an alarm is raised", lambda row: row[0].words),
    ReportField("goal", "what to aim for", lambda row: format_figure(row[0].goal, row[0].unit)),
    ReportField(
        "state",
        "ok, alarm, or – where there is nothing to judge",
        lambda row: "–" if row[1] is None else "alarm" if row[0].breached(row[1]) else "ok",
    ),
    ReportField("about", "in words", lambda row: row[0].about),
)


def health_report(runs: Sequence[RunFigures]) -> Report:
    """The figures and thresholds of the alert rules."""
    values = health_figures(runs)
    rows = [(threshold, values[threshold.name]) for threshold in THRESHOLDS]
    return render_report(f"The last {DAYS} days", "Figures of what was delivered, from the records.", HEALTH, rows)


def health_figures(runs: Sequence[RunFigures]) -> dict[str, float | None]:
    """Every monitored figure by name; None if there is no data."""
    delivered = [run for run in runs if run.delivered]
    asked = [run for run in delivered if run.by != "synthesis"]
    readable = [run for run in asked if not run.erased]  # the rounds of an erased run are unknown
    return {
        "iterations": mean(run.rounds for run in readable) if readable else None,
        "cap_hits": cap_share(readable),
        "session_p95": quantile([run.seconds for run in asked], 0.95),
        "tool_errors": share(sum(run.failed_calls for run in runs), sum(run.calls for run in runs)),
        "overrides": override_share(runs),
        "trace_completeness": share(sum(run.complete for run in delivered), len(delivered)),
    }
