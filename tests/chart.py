"""A report with a chart, whose values are drawn and are nowhere in its text."""

from __future__ import annotations

import io
from collections.abc import Sequence

from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

REFERS = "Figure 1 shows how many people came to the lighthouse."
CAPTION = "Figure 1: Visitors to Carrow Point by year."
BODY = [
    "The keeper of Carrow Point counts everybody who climbs the stairs of the tower.",
    f"{REFERS} Most of them come in July, and",
    "nearly all of them arrive by the ferry that leaves the harbour in the morning.",
]


def chart_pdf(caption: str = CAPTION, body: Sequence[str] = BODY, bars: Sequence[int] = (120, 90, 150)) -> bytes:
    """A page of text, a chart of bars without a word, its caption, and text below; then a page without figures."""
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4, invariant=True)
    for number, line in enumerate(body):
        canvas.drawString(72, 760 - 14 * number, line)
    canvas.line(150, 460, 150, 640)
    canvas.line(150, 460, 450, 460)
    for place, height in enumerate(bars):
        canvas.rect(180 + 90 * place, 460, 50, height, fill=1)
    canvas.drawString(150, 430, caption)
    for number, line in enumerate(body):
        canvas.drawString(72, 380 - 14 * number, line.replace(REFERS, "The stairs have two hundred steps."))
    canvas.showPage()
    canvas.drawString(72, 760, "The tower is 31 metres tall, and its lamp was lit in 1871 for the first time.")
    canvas.save()
    return out.getvalue()
