"""PDFs whose words stand where we put them."""

from __future__ import annotations

from pathlib import Path

from reportlab.lib.pagesizes import A4
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

FONT, SIZE = "Helvetica", 12
SENTENCE = "The Marrow sluice is opened by hand when the water stands above 4.2 metres."
WORDS = "gull heron barge lamp winch rope keel tide sluice gate pump weir oar buoy lantern ferry crane".split()
LEFT, BASE = 80, 300  # where it is drawn, in points from the lower left corner of the second page


def handbook(file: Path, title: str = "Sluice handbook") -> Path:
    """Two pages; the sentence stands on the second, with other words around it."""
    canvas = Canvas(str(file), pagesize=A4)
    canvas.setTitle(title)
    canvas.setFont(FONT, SIZE)
    canvas.drawString(LEFT, 760, "Sluice handbook")
    canvas.drawString(LEFT, 720, "This handbook is for those who work at the quay in winter.")
    canvas.showPage()
    canvas.setFont(FONT, SIZE)
    canvas.drawString(LEFT, 760, "Chapter two speaks of pumps, which are oiled in spring.")
    canvas.drawString(LEFT, BASE, SENTENCE)
    canvas.drawString(LEFT, 120, "Lamps are lit at dusk.")
    canvas.save()
    return file


def sentence_box() -> tuple[float, float, float, float]:
    """Where the sentence stands, in fractions of the page, from its top left corner."""
    width, height = A4
    right = LEFT + stringWidth(SENTENCE, FONT, SIZE)
    return LEFT / width, 1 - (BASE + 0.75 * SIZE) / height, right / width, 1 - (BASE - 0.25 * SIZE) / height


def tome(file: Path, pages: int) -> Path:
    """A long one: each page says which it is."""
    canvas = Canvas(str(file), pagesize=A4)
    canvas.setTitle("Log of the quay")
    for page in range(1, pages + 1):
        canvas.setFont(FONT, SIZE)
        for line in range(4):  # at places of its own, so that no line is taken for what is printed on every page
            words = WORDS[(page + 3 * line) % len(WORDS)]
            canvas.drawString(
                LEFT, 700 - (page * 37) % 400 - 20 * line, f"Entry {page}.{line}: the {words} was seen at the quay."
            )
        canvas.showPage()
    canvas.save()
    return file
