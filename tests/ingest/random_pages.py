"""Draws PDF pages with random layouts, and lists the sentences that stand on them.

A page is drawn as a compositor would set it: bands from top to bottom, columns in a band, and in a column paragraphs,
headings, pictures with captions, tables and footnotes. The words may be written to the file in any order.
"""

from __future__ import annotations

import io
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from reportlab.lib.pagesizes import A4, letter
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

SYLLABLES = (
    "ba de fi go lu ma ne pi ro su ta ve wi zo kra ble dri sto gla pre tun mor sel tan ver nik lor pas dun hil".split()
)
SHORT = "the of and to in a is was for on with by from at as or it that this be are not has had".split()
FAMILIES = (
    ("Helvetica", "Helvetica-Bold", "Helvetica-Oblique"),
    ("Times-Roman", "Times-Bold", "Times-Italic"),
)


@dataclass
class Piece:
    """Words that are written to the file by one command."""

    x: float
    y: float
    text: str
    font: str
    size: float
    space: float = 0.0  # between words, beyond the font's own


@dataclass
class DrawnPage:
    """`flows` are texts that are each read from beginning to end: the body, a box, a caption, a row of a table."""

    data: bytes
    flows: list[list[str]]
    features: list[str]


@dataclass
class Sentences:
    """Endless text, and the sentences that were used up."""

    rng: random.Random
    words: list[str] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    current: list[str] = field(default_factory=list)

    def word(self) -> str:
        if self.rng.random() < 0.35:
            return self.rng.choice(SHORT)
        return "".join(self.rng.choices(SYLLABLES, k=self.rng.choice((1, 2, 2, 3, 3, 4))))

    def sentence(self) -> str:
        words = [self.word() for _ in range(self.rng.randint(5, 18))]
        if self.rng.random() < 0.3:
            at = self.rng.randrange(1, len(words))
            words[at] = self.rng.choice((words[at].capitalize(), str(self.rng.randint(1, 2030)), f"({words[at]})"))
        words[0] = words[0].capitalize()
        if len(words) > 8 and self.rng.random() < 0.4:
            words[len(words) // 2] += ","
        return " ".join(words) + "."


class Compositor:
    """One page. All heights are from the bottom of the page, as PDF has them."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.width, self.height = rng.choice((A4, letter))
        self.regular, self.bold, self.italic = rng.choice(FAMILIES)
        self.size = rng.choice((8, 9, 9.5, 10, 10, 11, 12))
        self.leading = self.size * rng.uniform(1.12, 1.4)
        self.justified = rng.random() < 0.5
        self.indent = self.size * rng.choice((0, 1, 1.5))
        self.between = 0.0 if self.indent else self.leading * rng.uniform(0.4, 0.8)
        self.hyphens = rng.random() < 0.4
        self.left = rng.uniform(40, 75)
        self.right = self.width - rng.uniform(40, 75)
        self.top = self.height - rng.uniform(50, 80)
        self.bottom = rng.uniform(50, 80)
        self.columns = rng.choice((1, 2, 2, 2, 3))
        if self.columns == 3:
            self.size = min(self.size, 9.5)
            self.leading = self.size * rng.uniform(1.12, 1.4)
        self.gutter = rng.choice((rng.uniform(10, 15), rng.uniform(12, 30)))
        self.pieces: list[Piece] = []
        self.flows: list[list[str]] = []
        self.features: list[str] = [f"{self.columns} columns"]
        self.marks: list[tuple[str, tuple[float, float, float, float]]] = []
        self.body = Sentences(rng)
        self.pending: list[str] = []  # words of the body that are not yet set

    # --- lines ---

    def lines(self, words: list[str], width: float, font: str, size: float, indent: float = 0.0) -> list[list[str]]:
        lines: list[list[str]] = [[]]
        queue = list(words)
        while queue:
            word = queue.pop(0)
            room = width - (indent if len(lines) == 1 else 0)
            if not lines[-1] or stringWidth(" ".join([*lines[-1], word]), font, size) <= room:
                lines[-1].append(word)
                continue
            if self.hyphens and word.isalpha() and len(word) >= 8 and self.rng.random() < 0.5:
                at = len(word) // 2
                if stringWidth(" ".join([*lines[-1], word[:at] + "-"]), font, size) <= room:
                    lines[-1].append(word[:at] + "-")
                    lines.append([word[at:]])
                    continue
            lines.append([word])
        return lines

    def set_line(self, words: list[str], x: float, y: float, width: float, font: str, size: float, full: bool) -> None:
        text = " ".join(words)
        spare = width - stringWidth(text, font, size)
        space = (
            spare / (len(words) - 1) if full and self.justified and len(words) > 2 and 0 < spare < 0.35 * width else 0
        )
        self.pieces.append(Piece(x, y, text, font, size, space))

    def flow(self, texts: list[str]) -> None:
        if texts:
            self.flows.append(texts)

    def block(
        self, sentences: list[str], x: float, y: float, width: float, font: str, size: float, leading: float
    ) -> float:
        """Set whole sentences as one paragraph from `y` down; the new height."""
        lines = self.lines(" ".join(sentences).split(), width, font, size)
        for number, line in enumerate(lines):
            y -= leading
            self.set_line(line, x, y, width, font, size, number < len(lines) - 1)
        return y

    # --- the body ---

    def paragraph(self) -> list[str]:
        sentences = [self.body.sentence() for _ in range(self.rng.randint(1, 5))]
        self.body.used += sentences
        return " ".join(sentences).split()

    def fill(self, x: float, top: float, bottom: float, width: float) -> float:
        """Set the body into a column, as far as it goes; the height reached."""
        y = top
        fresh = False
        while y - self.leading >= bottom:
            if not self.pending:
                if y < top:
                    y -= self.between
                self.pending, fresh = self.paragraph(), True
                continue
            indent = self.indent if fresh else 0.0
            lines = self.lines(self.pending, width, self.regular, self.size, indent)
            room = int((y - bottom) / self.leading)
            for number, line in enumerate(lines[:room]):
                y -= self.leading
                shift = indent if number == 0 else 0.0
                full = number < len(lines) - 1
                self.set_line(line, x + shift, y, width - shift, self.regular, self.size, full)
            self.pending = [word for line in lines[room:] for word in line]
            fresh = False
            if room <= 0:
                break
        return y

    def end_section(self) -> None:
        """What is left of the last paragraph is not on the page; drop its unfinished sentences."""
        rest = squeeze(" ".join(self.pending))
        while rest and self.body.used:
            rest = rest[: -len(squeeze(self.body.used.pop()))]
        self.pending = []
        self.flow(self.body.used)
        self.body = Sentences(self.rng)

    # --- things in a column ---

    def own(self, count: tuple[int, int] = (1, 3)) -> list[str]:
        return [self.body.sentence() for _ in range(self.rng.randint(*count))]

    def picture(self, x: float, y: float, width: float) -> float:
        """A picture with its caption."""
        self.features.append("caption")
        high = self.rng.uniform(30, 110)
        self.marks.append(("picture", (x, y - high, width, high)))
        size = self.size * self.rng.choice((0.85, 0.9, 1))
        sentences = self.own((1, 2))
        sentences[0] = f"{self.rng.choice(('Figure', 'Fig.'))} {self.rng.randint(1, 9)}: {sentences[0]}"
        self.flow(sentences)
        font = self.italic if size == self.size else self.regular
        return self.block(sentences, x, y - high - 4, width, font, size, 1.2 * size) - self.leading

    def table(self, x: float, y: float, width: float, rows: int = 0) -> float:
        """Rows of short cells, each a text of its own."""
        self.features.append("table")
        size = self.size * self.rng.choice((0.85, 0.9, 1))
        leading = size * self.rng.uniform(1.2, 1.6)
        cells = 2 if width < 22 * size else self.rng.randint(3, 5)
        first = 0.3 * width if cells > 2 else 0.55 * width
        step = (width - first) / (cells - 1)
        y -= leading
        top = y + leading
        for row in range(rows or self.rng.randint(3, 8)):
            y -= leading
            label = self.body.word().capitalize()
            if stringWidth(label, self.regular, size) > first - 12:
                label = label[:6]
            texts = [label]
            self.pieces.append(Piece(x, y, label, self.regular, size))
            for cell in range(1, cells):
                text = f"{self.rng.randint(0, 9999) / self.rng.choice((1, 10, 100)):g}"
                if row == 0:
                    text = self.body.word()[:7]
                where = x + first + cell * step - stringWidth(text, self.regular, size)
                self.pieces.append(Piece(where, y, text, self.regular, size))
                texts.append(text)
            self.flow([" ".join(texts)])
        self.marks.append(("rules", (x, y - 4, width, top - y)))
        return y - 1.5 * self.leading

    def footnotes(self, x: float, bottom: float, width: float) -> float:
        """Footnotes that stand on `bottom`; the height at which the text above must end."""
        self.features.append("footnote")
        size = 0.8 * self.size
        notes = [self.own((1, 2)) for _ in range(self.rng.randint(1, 2))]
        height = 0.0
        for number, note in enumerate(notes, 1):
            note[0] = f"{number} {note[0]}"
            height += 1.2 * size * len(self.lines(" ".join(note).split(), width, self.regular, size))
        y = bottom + height
        if self.rng.random() < 0.6:
            self.marks.append(("rule", (x, y + 3, 0.4 * width, 0)))
        for note in notes:
            self.flow(note)
            # hyphens are chosen at random, so count the lines that were reserved
            hyphens, self.hyphens = self.hyphens, False
            y = self.block(note, x, y, width, self.regular, size, 1.2 * size)
            self.hyphens = hyphens
        return bottom + height + 0.8 * self.leading

    def heading(self, x: float, y: float, width: float, size: float) -> float:
        words = self.body.sentence().rstrip(".").split()[: self.rng.randint(2, 9)]
        lines = self.lines(words, width, self.bold, size)
        self.flow([" ".join(words)])
        for line in lines:
            y -= 1.2 * size
            shift = (width - stringWidth(" ".join(line), self.bold, size)) / 2 if self.rng.random() < 0.5 else 0
            self.pieces.append(Piece(x + shift, y, " ".join(line), self.bold, size))
        return y - 0.6 * self.leading

    def box(self, x: float, top: float, width: float) -> float:
        """Text in a frame; the height of its lower edge."""
        self.features.append("box")
        size = self.size * self.rng.choice((0.85, 0.9, 1))
        pad = self.rng.uniform(4, 9)
        sentences = self.own((2, 4))
        self.flow(sentences)
        y = top - pad
        if self.rng.random() < 0.5:
            y = self.heading(x + pad, y, width - 2 * pad, size * 1.1)
        y = self.block(sentences, x + pad, y, width - 2 * pad, self.regular, size, 1.22 * size) - pad - 0.25 * size
        if self.rng.random() < 0.8:
            self.marks.append(("frame", (x, y, width, top - y)))
        return y

    # --- bands ---

    def band(self, top: float, bottom: float, last: bool) -> None:
        """The columns between two heights; in the last band they may be of any length."""
        wide = (self.right - self.left - (self.columns - 1) * self.gutter) / self.columns
        ends = [bottom] * self.columns
        if last and self.columns > 1 and self.rng.random() < 0.6:
            self.features.append("unequal")
            short = self.rng.randint(1, self.columns - 1)
            for column in range(short, self.columns):
                ends[column] = top - self.leading * (self.rng.randint(1, 3) if self.rng.random() < 0.5 else 12) - 1
                if column > short:
                    ends[column] = top
            ends = [max(end, bottom) for end in ends]
        for column, end in enumerate(ends):
            x = self.left + column * (wide + self.gutter)
            y = top
            high = y - end
            if high < self.leading:
                continue
            if high > 20 * self.leading and self.rng.random() < 0.2:
                end = self.footnotes(x, end, wide)
            if high > 30 * self.leading and self.rng.random() < 0.3:
                y = self.rng.choice((self.picture, self.table))(x, y, wide)
            if y - end > 34 * self.leading and self.rng.random() < 0.5:
                if self.rng.random() < 0.5:
                    y = self.fill(x, y, y - self.leading * self.rng.randint(4, 9), wide)
                    y = self.finish_paragraph(x, y, wide)
                    y = self.rng.choice((self.picture, self.table))(x, y - 0.8 * self.leading, wide)
                else:
                    y = self.finish_paragraph(x, y, wide) - self.leading
                    y = self.heading(x, y, wide, self.size * self.rng.choice((1, 1.15, 1.3)))
            self.fill(x, y, end, wide)

    def finish_paragraph(self, x: float, y: float, width: float) -> float:
        if self.pending:
            lines = self.lines(self.pending, width, self.regular, self.size)
            for number, line in enumerate(lines):
                y -= self.leading
                self.set_line(line, x, y, width, self.regular, self.size, number < len(lines) - 1)
            self.pending = []
        return y

    def with_box(self, top: float, bottom: float) -> None:
        """One column of text with a box, or a table, at its side."""
        share = self.rng.uniform(0.3, 0.45)
        gap = self.rng.uniform(10, 20)
        full = self.right - self.left
        aside = share * full
        at_left = self.rng.random() < 0.3
        y = self.fill(self.left, top, top - self.leading * self.rng.randint(3, 10), full)
        y = self.finish_paragraph(self.left, y, full) - 0.5 * self.leading
        x = self.left if at_left else self.right - aside
        if self.rng.random() < 0.65:
            low = self.box(x, y, aside)
        else:
            self.features.append("table beside text")
            low = self.table(x, y + self.leading, aside)
        beside = self.left + aside + gap if at_left else self.left
        low = min(low, y - 6 * self.leading)
        y = self.fill(beside, y, low, full - aside - gap)
        y = self.finish_paragraph(beside, y, full - aside - gap)
        y = min(y, low) - self.leading
        self.fill(self.left, y, bottom, full)

    def compose(self) -> None:
        rng = self.rng
        full = self.right - self.left
        y, bottom = self.top, self.bottom
        if rng.random() < 0.4:
            self.features.append("title")
            y = self.heading(self.left, y, full, self.size * rng.uniform(1.4, 2)) - self.leading
        if rng.random() < 0.25:
            self.features.append("abstract")
            sentences = self.own((3, 5))
            self.flow(sentences)
            inset = rng.choice((0, 0.08 * full))
            y = self.block(sentences, self.left + inset, y, full - 2 * inset, self.regular, self.size, self.leading)
            y -= 1.5 * self.leading
        if rng.random() < 0.2:
            bottom = self.footnotes(self.left, bottom, full)
        if self.columns == 1:
            if rng.random() < 0.6:
                self.with_box(y, bottom)
            else:
                self.band(y, bottom, True)
        else:
            high = y - bottom
            if rng.random() < 0.4:
                self.features.append("two bands")
                middle = y - high * rng.uniform(0.3, 0.6)
                self.band(y, middle, False)
                middle -= 1.2 * self.leading
                if rng.random() < 0.4:
                    middle = self.table(self.left, middle, full)
                elif rng.random() < 0.5:
                    middle = self.picture(self.left, middle, full)
                else:
                    self.features.append("section")
                    self.end_section()
                    middle = self.heading(self.left, middle, full, self.size * rng.uniform(1.2, 1.5))
                y = middle
            self.band(y, bottom, True)
        self.end_section()

    def draw(self) -> DrawnPage:
        self.compose()
        out = io.BytesIO()
        canvas = Canvas(out, pagesize=(self.width, self.height))
        for kind, (x, y, wide, high) in self.marks:
            canvas.setFillGray(0.8)
            if kind == "picture":
                canvas.rect(x, y, wide, high, stroke=1, fill=1)
            elif kind == "frame":
                canvas.rect(x, y, wide, high, stroke=1, fill=0)
            elif kind == "rule":
                canvas.line(x, y, x + wide, y)
            else:
                canvas.line(x, y, x + wide, y)
                canvas.line(x, y + high, x + wide, y + high)
        canvas.setFillGray(0)
        pieces = self.pieces
        order = self.rng.choice(("as set", "as set", "by height", "words"))
        self.features.append(f"drawn {order}")
        if order == "by height":
            pieces = sorted(pieces, key=lambda piece: (-piece.y, piece.x))
        if order == "words":
            pieces = [word for piece in pieces for word in split_piece(piece)]
            self.rng.shuffle(pieces)
        for piece in pieces:
            text = canvas.beginText(piece.x, piece.y)
            text.setFont(piece.font, piece.size)
            text.setWordSpace(piece.space)
            text.textOut(piece.text)
            canvas.drawText(text)
        canvas.showPage()
        canvas.save()
        return DrawnPage(out.getvalue(), self.flows, self.features)


def split_piece(piece: Piece) -> Iterator[Piece]:
    x = piece.x
    for word in piece.text.split():
        yield Piece(x, piece.y, word, piece.font, piece.size)
        x += stringWidth(word + " ", piece.font, piece.size) + piece.space


def draw_page(seed: int) -> DrawnPage:
    return Compositor(seed).draw()


def squeeze(text: str) -> str:
    """The text without white space and hyphens, since lines and words are broken at will."""
    return "".join(text.split()).replace("-", "")


def broken_sentences(page: DrawnPage, text: str, seams: Sequence[int] = ()) -> list[str]:
    """The sentences of the page that do not stand in `text` whole and in their order; none may cross one of the `seams`."""
    edges = [0, *seams, len(text)]
    squeezed = "\0".join(squeeze(text[start:end]) for start, end in pairwise(edges))
    broken: list[str] = []
    for flow in page.flows:
        reached = 0
        for sentence in flow:
            at = squeezed.find(squeeze(sentence), reached)
            if at < 0:
                broken.append(sentence)
            else:
                reached = at + len(squeeze(sentence))
    return broken
