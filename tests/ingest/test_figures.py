"""Figures are objects: where they are on a page, what their caption is, and which sentences refer to them."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from chart import BODY, CAPTION, REFERS, chart_pdf
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from assay.core.figures import captioned, check_figures, referred_to
from assay.core.types import Document, Figure
from assay.ingest.figures import caption_name
from assay.ingest.formats.detect import read
from assay.ingest.parsed import FileLimits, Parsed
from assay.ingest.pdf.ink import find_ink
from assay.ingest.split import split_passages


def parsed(data: bytes, name: str = "report.pdf") -> Parsed:
    return read(data, name, FileLimits())


def document(found: Parsed) -> Document:
    return Document("d1", "b", "report", "0", "", found.text, figures=found.figures, kind=found.kind, pages=found.pages)


def words(found: Parsed, spans: tuple[tuple[int, int], ...]) -> list[str]:
    return [found.text[start:end] for start, end in spans]


def test_a_figure_of_a_pdf_has_its_box_its_caption_and_the_sentences_about_it():
    found = parsed(chart_pdf())
    (figure,) = found.figures
    assert (figure.name, figure.page) == ("Figure 1", 1)
    assert found.text[figure.start : figure.end] == CAPTION
    assert words(found, figure.mentions) == [REFERS]
    assert figure.box is not None
    x0, y0, x1, y1 = figure.box
    assert x0 == pytest.approx(150 / 595, abs=0.01) and x1 == pytest.approx(450 / 595, abs=0.01)
    assert y0 == pytest.approx(1 - 640 / 842, abs=0.01) and y1 == pytest.approx(1 - 460 / 842, abs=0.01)


def test_a_caption_is_a_passage_of_its_own_and_nothing_changes_without_one():
    found = document(parsed(chart_pdf()))
    passages = split_passages(found, lambda text: len(text.split()))
    assert CAPTION in [passage.text for passage in passages]
    (figure,) = found.figures
    (own,) = [passage for passage in passages if captioned(found, passage.start, passage.end)]
    assert (own.start, own.end) == (figure.start, figure.end)
    above = next(passage for passage in passages if REFERS in passage.text)
    assert referred_to(found, above.start, above.end) == [figure]
    assert not parsed(chart_pdf("The visitors of Carrow Point.")).figures


@pytest.mark.parametrize(
    "caption", ["Figure 1 shows the visitors of the year.", "See Figure 1: the visitors.", "Table 1: Visitors."]
)
def test_a_sentence_about_a_figure_is_no_caption(caption: str):
    assert not parsed(chart_pdf(caption)).figures


def test_a_caption_with_nothing_drawn_beside_it_is_no_figure():
    lines = ["List of figures", "", "Figure 2: The lamp.", "", *BODY]
    assert [each.name for each in parsed(chart_pdf(body=lines)).figures] == ["Figure 1"]


def test_captions_on_one_line_are_those_of_figures_beside_each_other():
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4, invariant=True)
    for number, line in enumerate(BODY):
        canvas.drawString(72, 760 - 14 * number, line)
    for left, caption in ((80, "Figure 1. The tower."), (330, "Figure 2. The lamp of it.")):
        canvas.rect(left, 460, 180, 120, fill=1)
        canvas.drawString(left, 440, caption)
    canvas.save()
    first, second = parsed(out.getvalue()).figures
    assert (first.name, second.name) == ("Figure 1", "Figure 2")
    assert first.box and second.box and first.box[2] < 0.5 < second.box[0]


@pytest.mark.parametrize(
    ("caption", "name"),
    [
        ("Fig. 3. The lamp", "Fig. 3"),
        ("Abbildung 4-2: Besucher", "Abbildung 4-2"),
        ("Abb. 7 Besucher", "Abb. 7"),
        ("Figura 1 – Visitantes", "Figura 1"),
        ("Рис. 5. Маяк", "Рис. 5"),
        ("图2 灯塔", "图2"),
        ("図 12 灯台", "図 12"),
        ("Fig. A.3: The lamp", "Fig. A.3"),
        ("Figure 4 compares both", ""),
        ("Abbildung 4 zeigt beide", ""),
        ("Figures are drawn", ""),
        ("Figure 2019 was a year", ""),
        ("Configuration 3: more", ""),
    ],
)
def test_captions_are_known_in_many_languages(caption: str, name: str):
    assert caption_name(caption) == name


def test_pictures_of_web_pages_have_captions_and_no_box():
    page = (
        "<html><body><h1>Carrow Point</h1><p>As Fig. 2 shows, many came. It was warm.</p>"
        "<figure><img src='a.png'><figcaption>Fig. 2: The <b>visitors</b> of a year.</figcaption></figure>"
        "<figure><img src='b.png' alt='A map of the harbour'></figure>"
        "<figure><table><tr><td>1</td></tr></table><figcaption>Figure 3: Numbers.</figcaption></figure></body></html>"
    )
    found = parsed(page.encode(), "page.html")
    captions = [found.text[each.start : each.end] for each in found.figures]
    assert captions == ["Fig. 2: The visitors of a year.", "A map of the harbour"]
    assert words(found, found.figures[0].mentions) == ["As Fig. 2 shows, many came."]
    assert all(each.box is None for each in found.figures)


def test_pictures_of_word_documents_have_captions():
    namespaces = (
        'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
        'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    )
    lines = ["Figure 1: Below no picture.", "", "Figure 2: The lamp of the tower.", "Figure 2 is of 1871."]
    runs = [
        f"<w:r><w:t>{line}</w:t></w:r>" if line else "<w:r><w:drawing><a:blip/></w:drawing></w:r>" for line in lines
    ]
    body = "".join(f"<w:p>{run}</w:p>" for run in runs)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", f"<w:document {namespaces}><w:body>{body}</w:body></w:document>")
    found = parsed(file.getvalue(), "report.docx")
    assert [found.text[each.start : each.end] for each in found.figures] == ["Figure 2: The lamp of the tower."]
    assert words(found, found.figures[0].mentions) == ["Figure 2 is of 1871."]


@pytest.mark.parametrize("caption", ["Table 2. Visitors", "Tab. 2: Besucher", "Tabla 2 – Visitantes", "表2 游客"])
def test_a_caption_of_a_table_is_told_from_one_of_a_figure(caption: str):
    assert caption_name(caption, of_table=True) and not caption_name(caption)
    assert not caption_name(CAPTION, of_table=True) and not caption_name("Table 2 lists all", of_table=True)


def test_ink_is_what_is_drawn_and_neither_words_nor_shadows_nor_specks():
    page = np.tile(np.linspace(250, 120, 600), (800, 1)) + np.random.default_rng(3).normal(0, 6, (800, 600))
    page[:, :12] = 10  # the edge of the scanner
    page[300:400, 200:400] -= 90
    page[500:510, 100:220:3] -= 90  # words
    page[600:603, 300:303] -= 90
    (found,) = find_ink(np.clip(page, 0, 255).astype(np.uint8), [(100, 500, 220, 510)])
    assert found == pytest.approx((200, 300, 400, 400), abs=8)


@pytest.mark.parametrize(
    "figure",
    [
        Figure(5, 20),
        Figure(3, 3),
        Figure(0, 3, mentions=((2, 11),)),
        Figure(0, 3, page=2, box=(0.0, 0.0, 1.0, 1.0)),
        Figure(0, 3, page=1, box=(0.5, 0.0, 0.5, 1.0)),
        Figure(0, 3, page=1, box=(0.0, 0.0, 1.0, 1.5)),
    ],
)
def test_a_figure_that_does_not_fit_its_text_is_refused(figure: Figure):
    with pytest.raises(ValueError, match="figure"):
        check_figures([figure], 10, 1)
