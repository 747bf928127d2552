"""The report of an evaluation as one HTML file, without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from assay.evaluate.grading import (
    COST,
    MODEL,
    Agreement,
    Estimate,
    Graded,
    agreement,
    compare,
    estimate_metric,
    result_words,
    summarise,
    verdict,
)

Side = tuple[str, str, Sequence[Graded]]  # name, description, results

SHARES = {  # what is printed for a metric, and what it means
    "right": ("right", "says what is expected, or rightly abstains"),
    "exact": ("says the answer", "contains the expected answer"),
    "numbers": ("says its numbers", "has all of its numbers, within their rounding"),
    "token_f1": ("token F1", "words shared with the expected answer; low for long answers"),
    "points": ("points covered", "share of the expected points"),
    "evidence_recall": ("evidence recall", "share of the expected documents or pages that were found"),
    "citation_precision": ("citation precision", "share of the cited documents or pages that were expected"),
    "citation_recall": ("citation recall", "share of the expected documents or pages that are cited"),
    "support": ("claims supported", "share of the claims that were judged supported"),
    "label": ("completeness label", "complete or partial, as it should be called"),
    "abstention": ("abstention", "abstains exactly where it should"),
}
WORDS = {name: words for name, (words, _) in SHARES.items()} | {"rounds": "search rounds"}
WORDS |= {name: name for name in COST if name not in WORDS}
COLOURS = ("a", "b")
WORST = 10  # cases shown
LEFT, WIDTH = 180, 400  # of the bars


def format_metric(name: str, value: float) -> str:
    """A share in per cent, anything else as a number."""
    return f"{100 * value:.0f} %" if name not in COST else f"{value:,.2f}" if value < 10 else f"{value:,.0f}"


def format_estimate(name: str, found: Estimate | None) -> str:
    if found is None or not found.n:
        return "–"
    low, high = format_metric(name, found.low), format_metric(name, found.high)
    return f"{format_metric(name, found.mean)} ({low} to {high})"


def format_difference(name: str, found: Estimate | None) -> str:
    """A difference with its sign; of shares in points."""
    if found is None or not found.n:
        return "–"
    unit, factor, form = (" points", 100, "+.0f") if name not in COST else ("", 1, "+,.2f")
    mean, low, high = (format(factor * each, form) for each in (found.mean, found.low, found.high))
    return f"{mean}{unit} ({low} to {high})"


def meaning(metric: str) -> str:
    return SHARES[metric][1] if metric in SHARES else "per question"


def shown_metrics(found: Sequence[Mapping[str, Estimate]]) -> list[str]:
    """The metrics that any of the evaluations has, without costs that there were none of."""
    return [name for name in WORDS if any(name in each and (name not in COST or each[name].high) for each in found)]


def grading_words(sides: Sequence[Side]) -> str:
    """Who graded the answers, and how far people agree, in plain words."""
    graders = {name: _grader(graded) for name, _, graded in sides}
    same = len(set(graders.values())) == 1
    who = [f"{words}." if same else f"{name}: {words}." for name, words in graders.items()]
    found = agreement(sides[-1][2])
    shown = [_agreement_words(name, each) for name, each in found.items()]
    nobody = "How far people agree is not known: give some answers with your own grade (columns `given`, `grade`)."
    return " ".join([*(who[:1] if same else who), *(shown or [nobody])])


def _grader(graded: Sequence[Graded]) -> str:
    texts = [each for each in graded if each.has_expected_text]
    by_model = sum(each.by == MODEL for each in texts)
    if not by_model:
        return "Answers were graded by their words"
    others = len(texts) - by_model
    rest = f"; {others} got no usable reply and were graded by their words" if others else ""
    return f"A model graded {by_model} of {len(texts)} answers that have an expected text{rest}"


def _agreement_words(grader: str, found: Agreement) -> str:
    share, low, high = (format_metric("same", each) for each in (found.same / found.n, found.low, found.high))
    kappa = "" if found.kappa is None else f", kappa {found.kappa:.2f}"
    by = "the model" if grader == MODEL else "their words"
    return (
        f"Of {found.n} answers that people graded, {found.same} get the same grade by {by}: "
        f"{share} ({low} to {high}){kappa}."
    )


def worst_cases(graded: Sequence[Graded]) -> list[Graded]:
    """Those that were wrong, the farthest from right first."""
    return sorted((each for each in graded if not each.metrics.get("right", 1.0)), key=_value)[:WORST]


def render_report(
    title: str,
    sides: Sequence[Side],
    traces: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """`sides` are one or two evaluations of the same cases: name, description, results. `traces` are the steps of runs."""
    found = [summarise(graded) for _, _, graded in sides]
    names = shown_metrics(found)
    compared = compare(sides[0][2], sides[1][2]) if len(sides) == 2 else None
    differences = compared.differences if compared else {}
    environment = Environment(
        loader=PackageLoader("assay.evaluate"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    last = sides[-1][2]
    return environment.get_template("report.html").render(
        title=title,
        count=len(last),
        sides=[
            {"name": name, "description": description, "colour": colour}
            for (name, description, _), colour in zip(sides, COLOURS, strict=False)
        ],
        verdict=verdict(compared, sides[0][0], sides[1][0]) if compared else result_words(last),
        bars=[_bar(name, found) for name in names if name in SHARES],
        rows=[
            {
                "name": WORDS[name],
                "meaning": meaning(name),
                "count": max(each[name].n for each in found if name in each),
                "cells": [format_estimate(name, each.get(name)) for each in found],
                "difference": format_difference(name, differences.get(name)),
            }
            for name in names
        ],
        differences=bool(compared),
        grading=grading_words(sides),
        **_scatter(sides, found),
        tags=tag_rows(sides),
        worst=worst_cases(last),
        traces=traces or {},
    )


def _value(each: Graded) -> tuple[float, str]:
    return each.metrics.get("token_f1", 0.0) + each.metrics.get("points", 0.0), each.question


def _bar(name: str, found: Sequence[dict[str, Estimate]]) -> dict[str, Any]:
    shown = [(place, each[name]) for place, each in enumerate(found) if name in each]
    return {
        "name": WORDS[name],
        "sides": [
            {
                "colour": COLOURS[place],
                "top": 2 + 11 * place,
                "width": round(WIDTH * each.mean, 1),
                "low": round(LEFT + WIDTH * each.low, 1),
                "high": round(LEFT + WIDTH * each.high, 1),
                "words": format_metric(name, each.mean),
            }
            for place, each in shown
        ],
    }


def _scatter(sides: Sequence[Side], found: Sequence[dict[str, Estimate]]) -> dict[str, Any]:
    name = "tokens" if any(each.get("tokens") and each["tokens"].mean for each in found) else "seconds"
    most = max((each[name].mean for each in found if name in each), default=0.0) or 1.0
    points = [
        {
            "name": side,
            "colour": COLOURS[place],
            "x": round(60 + 400 * each[name].mean / most),
            "y": round(220 - 200 * each["right"].mean),
            "words": f"{format_metric('right', each['right'].mean)} at {format_metric(name, each[name].mean)}",
        }
        for place, ((side, _, _), each) in enumerate(zip(sides, found, strict=True))
        if name in each and "right" in each
    ]
    return {"points": points, "cost_name": WORDS[name]}


def tag_rows(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """The share of right answers for each tag."""
    tags = sorted({tag for _, _, graded in sides for each in graded for tag in each.tags})
    rows: list[dict[str, Any]] = []
    for tag in tags:
        of_tag = [[each for each in graded if tag in each.tags] for _, _, graded in sides]
        cells = [format_estimate("right", estimate_metric("right", each)) for each in of_tag]
        rows.append({"tag": tag, "count": len(of_tag[-1]), "cells": cells})
    return rows
