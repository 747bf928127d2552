"""The report on forecasts: how far what was foreseen was from what came."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from assay.governance.reports.report import Cell, Chart, Report, Series, by, report, rounded, share
from assay.store.runs.figures import Foreseen

MEASURES = ("calls", "tokens", "money", "seconds")
COLUMNS = (
    ("work", "what was foreseen: ask, synthesise, add"),
    ("of", "calls of models, tokens, money (USD) or seconds"),
    ("forecasts", "that something came of"),
    ("within", "share that came out from low to high, both included"),
    ("median error", "how far off the likely value was, in shares of what came, in the middle"),
    ("median of came / likely", "over 1: more came than was foreseen"),
    ("open", "forecasts of work that has not ended"),
)


def forecasts(rows: Sequence[Foreseen]) -> Report:
    """By kind of work and by measure: how often it came out as foreseen, and how far off it was."""
    kinds = by(rows, lambda each: each.kind)
    made = [_row(kind, measure, kinds[kind]) for kind in sorted(kinds) for measure in MEASURES]
    shown = tuple(sorted(kinds))
    within = tuple(
        Series(measure, tuple(_number(_row(kind, measure, kinds[kind])[3]) for kind in shown)) for measure in MEASURES
    )
    charts = [Chart("Share that came out as foreseen", "bar", shown, within)]
    return report(
        "Forecasts and what came", "From what was noted when the work began and ended.", COLUMNS, made, charts
    )


def _number(cell: Cell) -> float | None:
    return cell if isinstance(cell, float) else None


def _row(kind: str, measure: str, rows: Sequence[Foreseen]) -> list[Cell]:
    ended = [each for each in rows if each.came is not None]
    pairs = [
        (low, likely, high, came)
        for each in ended
        if (came := (each.came or {}).get(measure)) is not None
        if (likely := (told := each.foreseen.get(measure) or {}).get("likely")) is not None
        if (low := told.get("low", likely)) is not None and (high := told.get("high", likely)) is not None
    ]
    errors = [abs(likely - came) / came for _, likely, _, came in pairs if came]
    factors = [came / likely for _, likely, _, came in pairs if likely]
    return [
        kind,
        measure,
        len(pairs),
        rounded(share(sum(low <= came <= high for low, _, high, came in pairs), len(pairs)), 4),
        rounded(median(errors), 4) if errors else None,
        rounded(median(factors), 4) if factors else None,
        len(rows) - len(ended),
    ]
