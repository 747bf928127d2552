"""A plot of lines on two logarithmic axes, as SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

Points = Sequence[tuple[float, float]]
COLOURS = ("#2563eb", "#c2410c", "#15803d", "#7e22ce", "#0e7490", "#a16207")
WIDE, HIGH, LEFT, RIGHT, TOP, BOTTOM = 720, 400, 70, 130, 20, 50


def log_plot(lines: Mapping[str, Points], across: str, up: str) -> str:
    """One line for each name. Every point is marked, and each line named at its end."""
    xs = [x for points in lines.values() for x, _ in points]
    ys = [y for points in lines.values() for _, y in points]
    columns, rows = decades(xs), decades(ys)

    def at(x: float, y: float) -> tuple[float, float]:
        right = share(x, columns) * (WIDE - LEFT - RIGHT) + LEFT
        return right, HIGH - BOTTOM - share(y, rows) * (HIGH - TOP - BOTTOM)

    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" role="img"',
        '     font-family="sans-serif" font-size="13">',
        f"<title>{escape(up)} by {escape(across)}</title>",
        f'<rect width="{WIDE}" height="{HIGH}" fill="#ffffff"/>',
    ]
    for column in columns:
        x, _ = at(column, rows[0])
        drawn.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HIGH - BOTTOM}" stroke="#e5e7eb"/>')
        drawn.append(f'<text x="{x:.1f}" y="{HIGH - BOTTOM + 18}" text-anchor="middle">{column:,.0f}</text>')
    for row in rows:
        _, y = at(columns[0], row)
        drawn.append(f'<line x1="{LEFT}" x2="{WIDE - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e7eb"/>')
        drawn.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{row:g}</text>')
    ends: list[float] = []
    for (name, points), colour in zip(lines.items(), COLOURS, strict=False):
        placed = [at(*point) for point in sorted(points)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in placed]
        x, y = placed[-1]
        while any(abs(y - other) < 14 for other in ends):
            y += 4
        ends.append(y)
        drawn.append(f'<text x="{x + 8:.1f}" y="{y + 4:.1f}" fill="{colour}">{escape(name)}</text>')
    middle = (LEFT + WIDE - RIGHT) / 2
    drawn.append(f'<text x="{middle:.0f}" y="{HIGH - 10}" text-anchor="middle">{escape(across)}</text>')
    drawn.append(f'<text transform="translate(16 {HIGH / 2}) rotate(-90)" text-anchor="middle">{escape(up)}</text>')
    return "\n".join([*drawn, "</svg>\n"])


def decades(values: Sequence[float]) -> list[float]:
    """The powers of ten around these values."""
    first, last = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return [10.0**power for power in range(first, max(last, first + 1) + 1)]


def share(value: float, ticks: Sequence[float]) -> float:
    low, high = math.log10(ticks[0]), math.log10(ticks[-1])
    return (math.log10(value) - low) / (high - low)
