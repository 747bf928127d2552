"""The report on iterations: how often questions search, by week, and which kinds of question are expensive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

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
    share,
    week_of,
    weeks_of,
)
from assay.governance.reports.thresholds import BY_NAME, quantile
from assay.store.runs.figures import Spent

COLUMNS = (
    ("of", "a week, or a kind of question: its route, whether it asks for a whole set, its mode"),
    ("questions", "delivered in it"),
    ("mean", "rounds of searching, on average"),
    ("p99", "rounds that 99 of 100 stayed within"),
    ("at the cap", "share whose search ended because a limit was reached; of those that have a model"),
    ("mean calls", "requests to models, on average"),
    ("mean tokens", "of models, in and out, on average"),
    ("mean usd", "what models cost, on average"),
    ("median s", "seconds at work, in the middle"),
)


def iterations(runs: Sequence[RunFigures], spent: Mapping[str, Spent]) -> Report:
    """Rounds by week, and kinds of question with the most expensive first."""
    runs = [run for run in runs if run.delivered and not run.erased]  # of what was erased nobody can count the rounds
    asked = [run for run in runs if run.by != "synthesis"]
    weeks = weeks_of(run.started for run in asked)
    apart = by(asked, lambda run: week_of(run.started))
    kinds = by(runs, lambda run: run.kind)
    dear = sorted(kinds, key=lambda kind: (-_tokens(kinds[kind], spent), -_seconds(kinds[kind]), kind))
    rows = [_row(week, apart.get(week, []), spent) for week in weeks]
    rows += [_row(kind, kinds[kind], spent) for kind in dear]
    rounds = {week: [float(run.rounds) for run in apart.get(week, [])] for week in weeks}
    charts = [
        Chart(
            "Rounds per question",
            "line",
            weeks,
            (
                Series("mean", tuple(rounded(mean(each)) if each else None for each in rounds.values())),
                Series("p99", tuple(quantile(each, 0.99) for each in rounds.values())),
            ),
            BY_NAME["iterations"].limit,
        ),
        Chart(
            "Share of questions at the cap",
            "line",
            weeks,
            (Series("at the cap", tuple(rounded(at_cap(apart.get(week, [])), 4) for week in weeks)),),
            BY_NAME["cap_hits"].limit,
        ),
        Chart(
            "Tokens per question, by kind",
            "bar",
            tuple(dear),
            (Series("tokens", tuple(rounded(_tokens(kinds[kind], spent)) for kind in dear)),),
        ),
    ]
    return report("Rounds by week, and what kinds cost", "Only what was delivered counts.", COLUMNS, rows, charts)


def at_cap(runs: Sequence[RunFigures]) -> float | None:
    with_model = [run for run in runs if run.by == "model"]
    return share(sum(run.capped for run in with_model), len(with_model))


def _tokens(runs: Sequence[RunFigures], spent: Mapping[str, Spent]) -> float:
    paid = [spent.get(run.id, Spent()) for run in runs]
    return mean(each.tokens_in + each.tokens_out for each in paid) if paid else 0.0


def _seconds(runs: Sequence[RunFigures]) -> float:
    return middle([run.seconds for run in runs]) or 0.0


def _row(name: str, runs: Sequence[RunFigures], spent: Mapping[str, Spent]) -> list[Cell]:
    paid = [spent.get(run.id, Spent()) for run in runs]
    rounds = [float(run.rounds) for run in runs]
    return [
        name,
        len(runs),
        rounded(mean(rounds)) if rounds else None,
        quantile(rounds, 0.99),
        rounded(at_cap(runs), 4),
        rounded(mean(each.calls for each in paid)) if paid else None,
        rounded(_tokens(runs, spent), 1) if paid else None,
        rounded(mean(each.money for each in paid), 6) if paid else None,
        rounded(middle([run.seconds for run in runs])),
    ]
