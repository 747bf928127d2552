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
WORST = 10  # cases shown


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
    wrong = [each for each in graded if not each.metrics.get("right", 1.0)]
    shared = [each.metrics.get("token_f1", 0.0) + each.metrics.get("points", 0.0) for each in wrong]
    ranked = sorted(zip(shared, wrong, strict=True), key=lambda pair: (pair[0], pair[1].question))
    return [each for _, each in ranked[:WORST]]


def render_report(
    title: str,
    sides: Sequence[Side],
    traces: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """`sides` are one or two evaluations of the same cases: name, description, results. `traces` are the steps of runs."""
    found = [summarise(graded) for _, _, graded in sides]
    names = shown_metrics(found)
    compared = compare(sides[0][2], sides[1][2]) if len(sides) == 2 else None
    cost = "tokens" if any(each.get("tokens") and each["tokens"].mean for each in found) else "seconds"
    environment = Environment(
        loader=PackageLoader("assay.evaluate"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.globals |= {
        each.__name__: each for each in (format_metric, format_estimate, format_difference, meaning)
    }
    last = sides[-1][2]
    return environment.get_template("report.html").render(
        title=title,
        count=len(last),
        sides=sides,
        found=found,
        names=names,
        words=WORDS,
        shares=SHARES,
        counts={name: max(each[name].n for each in found if name in each) for name in names},
        verdict=verdict(compared, sides[0][0], sides[1][0]) if compared else result_words(last),
        differences=compared.differences if compared else None,
        grading=grading_words(sides),
        cost=cost,
        scattered=compared is not None and all(cost in each and "right" in each for each in found),
        tags=tag_rows(sides),
        worst=worst_cases(last),
        traces=traces or {},
    )


def tag_rows(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """The share of right answers for each tag."""
    tags = sorted({tag for _, _, graded in sides for each in graded for tag in each.tags})
    rows: list[dict[str, Any]] = []
    for tag in tags:
        of_tag = [[each for each in graded if tag in each.tags] for _, _, graded in sides]
        cells = [format_estimate("right", estimate_metric("right", each)) for each in of_tag]
        rows.append({"tag": tag, "count": len(of_tag[-1]), "cells": cells})
    return rows
