"""Reports on runs: how many there were in each week and how they ended; and the account of a single one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from assay.core.events import Planned
from assay.core.run import Run
from assay.governance.reports.figures import RunFigures
from assay.governance.reports.report import (
    Cell,
    Chart,
    Report,
    Series,
    by,
    middle,
    report,
    rounded,
    week_of,
    weeks_of,
)
from assay.governance.reports.thresholds import BY_NAME, quantile
from assay.store.runs.figures import Spent

STATES = ("answered", "partial", "abstained", "direct", "failed", "rejected", "held", "waiting", "unfinished", "erased")
WEEKS = (
    ("week", "the ISO week in which the runs were begun"),
    ("runs", "questions and syntheses"),
    *((state, f"how many of them stand so: {state}") for state in STATES),
    ("median s", "seconds at work, in the middle; waiting for a person is not work"),
    ("p95 s", "seconds that 95 of 100 stayed within"),
    ("calls", "requests to models"),
    ("tokens", "of models, in and out"),
    ("usd", "what models cost, where a price is known"),
)


def by_week(runs: Sequence[RunFigures], spent: Mapping[str, Spent]) -> Report:
    """How many runs there were in each week, how they stand, and what they took."""
    weeks = weeks_of(run.started for run in runs)
    own = by(runs, lambda run: week_of(run.started))
    rows = [_week(week, own.get(week, []), spent) for week in weeks]
    seconds = [quantile([run.seconds for run in own.get(week, []) if run.delivered], 0.95) for week in weeks]
    states = [state for state in STATES if any(run.state == state for run in runs)]
    ended = tuple(
        Series(state, tuple(float(sum(run.state == state for run in own.get(week, []))) for week in weeks))
        for state in states
    )
    charts = [
        Chart("Runs by week", "bar", weeks, ended),
        Chart(
            "Seconds at work, P95",
            "line",
            weeks,
            (Series("p95", tuple(rounded(each) for each in seconds)),),
            BY_NAME["session_p95"].limit,
        ),
    ]
    return report("Runs by week", "From the records and from what was spent.", WEEKS, rows, charts)


def _week(week: str, runs: Sequence[RunFigures], spent: Mapping[str, Spent]) -> list[Cell]:
    states = Counter(run.state for run in runs)
    seconds = [run.seconds for run in runs if run.delivered]
    paid = [spent[run.id] for run in runs if run.id in spent]
    return [
        week,
        len(runs),
        *(states[state] for state in STATES),
        rounded(middle(seconds)),
        rounded(quantile(seconds, 0.95)),
        sum(each.calls for each in paid),
        sum(each.tokens_in + each.tokens_out for each in paid),
        round(sum(each.money for each in paid), 6),
    ]


def of_one(run: Run, figures: RunFigures, spent: Spent, faults: Sequence[str]) -> Report:
    """One run's account: what was asked, what was done, what came of it, who looked at it and what it took."""
    asked, answer = run.asked, run.answer
    plan = next((event.plan for event in reversed(run.events) if isinstance(event, Planned)), None)
    models = sorted({seat.model for seat in asked.seats})
    rows: list[tuple[str, Cell]] = [
        ("run", run.id),
        ("asked by", asked.who),
        ("begun", figures.started),
        ("question", asked.question),
        *([("understood as", run.question)] if run.question != asked.question else []),
        *([("goes on from", f"{asked.branch.run}, record {asked.branch.at}")] if asked.branch else []),
        ("models", ", ".join(models) or "none: by rule"),
        ("kind", figures.kind),
        *(("step of the plan", f"{step.id} {step.question}") for step in (plan.steps if plan else ())),
        ("rounds", figures.rounds),
        *((f"calls of {tool}", count) for tool, count in sorted(figures.tools.items())),
        ("calls that went wrong", figures.failed_calls),
        *(("searched", f"{each.query}: {each.found} found, {each.kept} kept") for each in run.searched),
        ("evidence", len(run.evidence)),
        ("search ended", figures.stopped or "–"),
        ("stands", figures.state),
        *_said(run),
        *(("review", f"{when[:19]} {decision}") for when, decision in figures.decisions),
        *([("gaps", "; ".join(answer.gaps))] if answer and answer.gaps else []),
        ("requests to models", spent.calls),
        ("tokens", spent.tokens_in + spent.tokens_out),
        ("usd", round(spent.money, 6)),
        ("seconds at work", round(figures.seconds, 3)),
        ("records", figures.records),
        ("record", "; ".join(faults) or "whole"),
    ]
    columns = (("what", "what is told"), ("value", "as it was recorded"))
    return report(f"The account of run {run.id}", "`assay trace` shows every step of it.", columns, rows)


def _said(run: Run) -> list[tuple[str, Cell]]:
    """The claims that were delivered, by verdict. What only waits for a reviewer is not told."""
    claims = run.answer.claims if run.answer else ()
    verdicts = Counter(claim.verdict.value for claim in claims if claim.verdict)
    cited = {key for claim in claims for key in claim.cites}
    told: list[tuple[str, Cell]] = [(f"claims {verdict}", count) for verdict, count in sorted(verdicts.items())]
    return [*told, ("quotations cited", len(cited))] if run.answer else []
