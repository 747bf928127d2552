"""A place on a page. Apart from the PDF engine, so that who only passes boxes on never loads it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Box:
    """A stretch of one line on a page; edges are fractions of the page as shown, from its top left corner."""

    page: int  # counted from 1
    x0: float
    y0: float
    x1: float
    y1: float
