"""A report with a chart, whose values are drawn and are nowhere in its text; and scans, one of them of such a report."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

import numpy as np
from PIL import Image
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from assay.ingest.pdf.reader import OpenPdf

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


Line = tuple[int, int, str]  # from the left, from the foot, words
OF_TABLE = "Table 2. Visitors to Carrow Point by year."
ROWS = (("", "1901", "1902", "1903"), ("Visitors", "1,204", "1,377", "1,502"), ("Ferries", "830", "912", "987"))


def scanned(draw: Callable[[Canvas], None]) -> np.ndarray:
    """A page at 150 dpi, a little askew and with noise."""
    drawn = io.BytesIO()
    canvas = Canvas(drawn, pagesize=A4)
    draw(canvas)
    canvas.save()
    shown = Image.open(io.BytesIO(OpenPdf().page_image(drawn.getvalue(), 1, 150 / 72))).convert("L")
    askew = shown.rotate(0.7, resample=Image.Resampling.BICUBIC, fillcolor=255)
    noise = np.random.default_rng(7).normal(0, 10, (shown.height, shown.width))
    return np.clip(np.asarray(askew, dtype=float) + noise, 0, 255).astype(np.uint8)


def scanned_pdf(*pages: np.ndarray | Sequence[Line]) -> bytes:
    """A PDF of pages with text (lines) and of scans (pictures)."""
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4)
    for each in pages:
        if isinstance(each, np.ndarray):
            size = (each.shape[1] * 72 / 150, each.shape[0] * 72 / 150)
            canvas.setPageSize(size)
            canvas.drawImage(ImageReader(Image.fromarray(each)), 0, 0, *size)
        else:
            canvas.setPageSize(A4)
            for x, y, words in each:
                canvas.drawString(x, y, words)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def draw_report(canvas: Canvas) -> None:
    """Text, a table below its caption, a chart of bars above its caption, and captions with nothing beside them."""
    canvas.setFont("Helvetica", 12)
    for number, line in enumerate(["Table 2 lists what Figure 1 draws for Carrow Point.", *BODY[2:]]):
        canvas.drawString(72, 770 - 16 * number, line)
    canvas.drawString(72, 700, OF_TABLE)
    for row, cells in enumerate(ROWS):
        for x, cell in zip((72, 240, 340, 440), cells, strict=True):
            canvas.drawString(x, 672 - 20 * row, cell)
    canvas.line(150, 380, 150, 540)
    canvas.line(150, 380, 450, 380)
    for place, (year, high) in enumerate(zip(ROWS[0][1:], (120, 90, 150), strict=True)):
        canvas.rect(180 + 90 * place, 380, 50, high, fill=1)
        canvas.drawString(190 + 90 * place, 364, year)
    canvas.drawString(150, 336, CAPTION)
    for number, line in enumerate([BODY[0], BODY[2]]):
        canvas.drawString(72, 300 - 16 * number, line)
    canvas.drawString(72, 240, "Table 3: Of the stairs, which was left out.")
    canvas.drawString(72, 200, "Figure 4: Of the harbour, which was left out.")
