"""Tells users who never need the research loop that a look-up is cheaper. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from assay.core.events import Route

EVERY = 10  # consecutive questions before the hint, and before each repetition


def never_needed_the_loop(routes: Iterable[Route]) -> bool:
    """Whether to show the hint: the number of latest consecutive questions without research is ten, twenty, …"""
    row = 0
    for route in routes:
        if route is Route.research:
            break
        row += 1
    return row > 0 and row % EVERY == 0


REMARK = (
    f"Your last {EVERY} questions needed one search each, or none. With `--route lookup` a question is looked up straight "
    "away, without a model being asked first which way to go."
)
