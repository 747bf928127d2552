"""Word documents, read from their XML: headings by style, lists with their numbers, tables, notes, text boxes.

Deleted revisions and hidden text are kept apart, since no reader sees them; comments are skipped. Of the styles are read
which are headings, which are lists, and which hide their text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace

from lxml.etree import _Element as Element

from assay.core.printable import tidy_whitespace
from assay.core.types import Figure
from assay.ingest.figures import caption_name
from assay.ingest.formats.archive import (
    CHARACTERS,
    SAME_COLOUR,
    attribute,
    child,
    children,
    formula,
    inside,
    joined_text,
    local_name,
    office_properties,
    open_archive,
    refuse_damaged,
    same_colour,
    value,
    whole,
)
from assay.ingest.formats.html_hidden import hides_text
from assay.ingest.formats.table import BarTable
from assay.ingest.formats.text import TextBuilder
from assay.ingest.parsed import FileLimits, HiddenText, Parsed, Refused, Status

_TRANSPARENT = frozenset("sdt sdtContent customXml smartTag ins moveTo body hyperlink dir bdo".split())
_DELETED = frozenset({"del", "moveFrom"})
DELETED = "deleted in a tracked change"
_FAR = 8_000_000  # in drawings, of which 12,700 are a point: about the width of a page
_LEFT_OUT = frozenset({"instrText", "delText", "rt", "pPr", "rPr", "tblPr", "tcPr", "trPr", "sdtPr"})


def parse(data: bytes, name: str, limits: FileLimits) -> Parsed:
    out = TextBuilder("docx", limits)
    with refuse_damaged("DOCX"):
        archive = open_archive(data, limits)
        part = archive.linked("", "officeDocument") or "word/document.xml"
        root = archive.xml(part)
        body = child(root, "body")
        if root is None or body is None:
            raise Refused(Status.corrupt, "It holds no document; open it in Word and save it again.")
        properties = office_properties(archive)
        reader = _Reader(
            out,
            read_styles(archive.side_xml(archive.linked(part, "styles"))),
            {
                f"{kind}Reference": {
                    attribute(note, "id"): note for note in children(archive.side_xml(archive.linked(part, f"{kind}s")))
                }
                for kind in ("footnote", "endnote")
            },
            read_numbering(archive.side_xml(archive.linked(part, "numbering"))),
            ground_of(attribute(child(root, "background"), "color"), "FFFFFF"),
        )
        reader.blocks(body)
    properties["title"] = reader.title or properties["title"]
    why = "There is no text in it; if its pages are pictures, save it as PDF and read that with OCR."
    return out.parsed(**properties, empty=why)


MOST_INHERITED = 50  # styles based on one another
SMALLEST = 3  # half points
OFF_PAGE = 10_000  # twips to the left of the margin: most of a page
_OFF = frozenset({"0", "false", "off", "none"})

VANISHED, SMALL, CUT_OFF = "formatted as hidden", "too small to read", "cut off"
TRANSPARENT, OFF_THE_PAGE = "transparent", "off the page"

Look = Mapping[str, str]  # a property of text, by its name in the file → its value


@dataclass(frozen=True, slots=True)
class Style:
    level: int = 0  # of a heading; 0 for body text
    title: bool = False
    numbered: tuple[str, int] | None = None  # list id and depth
    text: Look = field(default_factory=dict)
    paragraph: Look = field(default_factory=dict)
    shaded: bool = False  # somewhere in it, for a table


@dataclass(frozen=True, slots=True)
class StyleSheet:
    styles: Mapping[str, Style] = field(default_factory=dict)
    default: Look = field(default_factory=dict)  # of text without a style
    unnamed: Style = field(default_factory=Style)  # of paragraphs without a style

    def paragraph(self, paragraph: Element) -> Style:
        return self.styles.get(value(paragraph, "pPr", "pStyle"), self.unnamed)

    def table(self, table: Element) -> Style:
        return self.styles.get(value(table, "tblPr", "tblStyle"), Style())

    def text(self, run: Element, paragraph: Style, table: Style) -> Look:
        """The properties of a run: its own, those of its styles, and the defaults."""
        own = read_look(child(run, "rPr"))
        named = self.styles.get(value(run, "rPr", "rStyle"), Style())
        found = {**self.default, **table.text, **paragraph.text, **named.text, **own}
        for switch in ("vanish", "specVanish"):
            # A switch that two of the styles set is off again.
            styled = sum(style.text.get(switch, "0") not in _OFF for style in (table, paragraph, named)) % 2
            found[switch] = own.get(switch) or ("1" if styled else self.default.get(switch, "0"))
        return found


def read_styles(root: Element | None) -> StyleSheet:
    """Styles by id, each with what it inherits from the style it is based on."""
    found = {attribute(style, "styleId"): style for style in children(root, "style")}
    styles = {name: _style(name, found) for name in found}
    paragraphs = [name for name, style in found.items() if attribute(style, "type") == "paragraph"]
    defaults = [styles[name] for name in paragraphs if attribute(found[name], "default") in {"1", "true"}]
    return StyleSheet(styles, read_look(child(root, "docDefaults", "rPrDefault", "rPr")), *defaults[:1])


def _style(name: str, found: Mapping[str, Element], above: int = 0) -> Style:
    """A style with what it inherits; `above` styles are based on it."""
    style = found.get(name)
    if style is None or above >= MOST_INHERITED:
        return Style()
    base = _style(value(style, "basedOn"), found, above + 1)
    called = value(style, "name").strip().lower()
    named = re.fullmatch(r"heading\s*([1-9])", called)
    title = called == "title" and not above
    return Style(
        level=0 if title else int(named[1]) if named else outline(style) or base.level,
        title=title,
        numbered=numbered(style) or base.numbered,
        text={**base.text, **read_look(child(style, "rPr"))},
        paragraph={**base.paragraph, **read_look(child(style, "pPr"))},
        shaded=base.shaded or style.find(".//{*}shd") is not None,
    )


def read_look(looks: Element | None) -> Look:
    """The properties of text or of a paragraph that a style, a paragraph or a run sets itself."""
    found: dict[str, str] = {}
    for look in children(looks):
        name = local_name(look)
        if name == "shd":
            found[name] = attribute(look, "fill")
        elif name == "textFill":
            alphas = [attribute(part, "val") for part in inside(look, "alpha")]
            clear = child(look, "noFill") is not None or any(each.isdigit() and int(each) > 95_000 for each in alphas)
            found[name] = "clear" if clear else ""
        elif name == "spacing" and attribute(look, "lineRule") == "exact":
            found["line"] = attribute(look, "line")
        elif name == "ind":
            found["left"] = attribute(look, "left") or attribute(look, "start")
        else:
            found[name] = attribute(look, "val") or "1"
    return found


Ground = str | None  # six hexadecimal digits; None: not known


def ground_of(fill: str, around: Ground) -> Ground:
    """The background that a shading gives, over the one around it."""
    if fill.lower() in {"", "auto", "none"}:
        return around
    return fill if re.fullmatch(r"[0-9A-Fa-f]{6}", fill) else None


def hidden_paragraph(look: Look) -> str:
    """How a paragraph is hidden with all its text; empty if it is not."""
    if look.get("line", "").isdigit() and int(look["line"]) <= 20:
        return CUT_OFF
    return OFF_THE_PAGE if re.fullmatch(r"-\d+", look.get("left", "")) and int(look["left"]) < -OFF_PAGE else ""


def hidden_text(look: Look, ground: Ground) -> str:
    """How text of this look is hidden on this background; empty if it is seen."""
    if any(look.get(switch, "0") not in _OFF for switch in ("vanish", "specVanish")):
        return VANISHED
    for name, least in (("sz", SMALLEST), ("w", 5)):  # half points; percent of the width
        if look.get(name, "").isdigit() and int(look[name]) <= least:
            return SMALL
    if look.get("textFill") == "clear":
        return TRANSPARENT
    marked = look.get("highlight", "none") != "none"
    ground = None if marked else ground_of(look.get("shd", ""), ground)
    return SAME_COLOUR if same_colour(look.get("color", ""), ground) else ""


def outline(holder: Element) -> int:
    """The heading level that a style or a paragraph sets itself; 0 for none."""
    level = _count(child(holder, "pPr", "outlineLvl"), 9)
    return level + 1 if level < 9 else 0


def numbered(holder: Element) -> tuple[str, int] | None:
    """The list and depth that a style or a paragraph sets itself."""
    scheme = child(holder, "pPr", "numPr", "numId")
    level = _count(child(holder, "pPr", "numPr", "ilvl"), 0)
    return (attribute(scheme, "val"), level) if scheme is not None else None


@dataclass(frozen=True, slots=True)
class _Level:
    form: str = "bullet"
    pattern: str = ""
    start: int = 1


@dataclass(slots=True)
class Numbering:
    """Counts list items in document order."""

    levels: dict[str, dict[int, _Level]] = field(default_factory=dict)  # by list id
    shared: dict[str, str] = field(default_factory=dict)  # list → the abstract list whose count it continues
    counts: dict[tuple[str, int], int] = field(default_factory=dict)

    def label(self, numbered: tuple[str, int] | None) -> str:
        """The label of the next item of a list at a depth: `2.1`, `(a)`, `-`; empty if it is not in a list."""
        if numbered is None or numbered[0] in {"0", ""}:
            return ""
        name, depth = numbered
        levels = self.levels.get(name, {})
        level = levels.get(depth, _Level())
        if level.form == "none" and not level.pattern:
            return ""
        if level.form in {"bullet", "none"}:
            return "-"
        scheme = self.shared.get(name, name)
        self.counts[scheme, depth] = self.counts.get((scheme, depth), level.start - 1) + 1
        for deeper in [key for key in self.counts if key[0] == scheme and key[1] > depth]:
            del self.counts[deeper]

        def shown(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            above = levels.get(at, _Level("decimal"))
            return _format_count(self.counts.get((scheme, at), above.start), above.form)

        return re.sub(r"%([1-9])", shown, level.pattern).strip()


def read_numbering(root: Element | None) -> Numbering:
    schemes = {
        attribute(scheme, "abstractNumId"): {
            int(attribute(level, "ilvl") or 0): _level(level) for level in children(scheme, "lvl")
        }
        for scheme in children(root, "abstractNum")
    }
    found = Numbering()
    for number in children(root, "num"):
        name, scheme = attribute(number, "numId"), value(number, "abstractNumId")
        found.levels[name] = dict(schemes.get(scheme, {}))
        found.shared[name] = "scheme " + scheme
        for override in children(number, "lvlOverride"):
            found.shared[name] = name  # it counts anew
            depth = int(attribute(override, "ilvl") or 0)
            if (level := child(override, "lvl")) is not None:
                found.levels[name][depth] = _level(level)
            before = found.levels[name].get(depth, _Level())
            start = _count(child(override, "startOverride"), before.start)
            found.levels[name][depth] = replace(before, start=start)
    return found


def _level(level: Element) -> _Level:
    return _Level(value(level, "numFmt") or "decimal", value(level, "lvlText"), _count(child(level, "start"), 1))


_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"))
_ROMAN += ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))


def _format_count(count: int, form: str) -> str:
    if form in {"lowerLetter", "upperLetter"} and count > 0:
        letters = chr(97 + (count - 1) % 26) * ((count - 1) // 26 + 1)
        return letters if form == "lowerLetter" else letters.upper()
    if form in {"lowerRoman", "upperRoman"} and 0 < count < 4000:
        roman = ""
        for value, sign in _ROMAN:
            roman += sign * (count // value)
            count %= value
        return roman if form == "lowerRoman" else roman.upper()
    return f"{count:02d}" if form == "decimalZero" else str(count)


@dataclass(slots=True)
class _Reader:
    out: TextBuilder
    styles: StyleSheet
    notes: dict[str, dict[str, Element]]
    numbering: Numbering
    ground: Ground  # of the page or the cell
    table_style: Style = field(default_factory=Style)
    title: str = ""
    in_list: bool = False
    pictured: bool = False  # the paragraph before has a picture
    aside: list[Element] = field(default_factory=list)  # text boxes and notes found inside a paragraph

    def blocks(self, parent: Element) -> None:
        for element in parent:
            name = local_name(element)
            if name == "p":
                self.paragraph(element)
            elif name == "tbl":
                self.table(element)
            elif name in _TRANSPARENT or name == "AlternateContent":
                self.blocks(_alternative(element) if name == "AlternateContent" else element)

    def paragraph(self, element: Element) -> None:
        style = self.styles.paragraph(element)
        label, text = self._labelled(element, style)
        if text:
            level = outline(element) or style.level
            if style.title and not self.title:
                self.title = text.replace("\n", " ")
            # A long paragraph in a heading style is still a paragraph.
            if level and len(text) < 250:
                self.out.heading(f"{label} {text}" if label not in {"", "-"} else text, level)
            else:
                start = self.out.block(f"{label} {text}".lstrip(), "\n" if label and self.in_list else "\n\n")
                if (self.pictured or _has_picture(element)) and (name := caption_name(text)):
                    self.out.figures.append(Figure(start, self.out.length, name))
            self.in_list = bool(label) and not level
        self.pictured = _has_picture(element)
        self._write_aside()

    def _labelled(self, paragraph: Element, style: Style) -> tuple[str, str]:
        """The label of a list item, empty for other paragraphs, and the text."""
        text = self._text(paragraph, style)
        return self.numbering.label(numbered(paragraph) or style.numbered) if text else "", text

    def _write_aside(self) -> None:
        aside, self.aside = self.aside, []
        for box in aside:
            self.blocks(box)

    def table(self, element: Element) -> None:
        around = self.table_style, self.ground
        self.table_style = self.styles.table(element)
        if self.table_style.shaded or child(element, "tblPr", "shd") is not None:
            self.ground = None
        self._rows(element)
        self.table_style, self.ground = around

    def _rows(self, element: Element) -> None:
        """Rows as lines; a layout table is read cell by cell instead."""
        lines = [row for row in _inside(element, "tr") if not self._hide(row, _hidden_row(row))]
        rows = [list(_inside(line, "tc")) for line in lines]
        if all(len(row) <= 1 for row in rows) or any(self._is_page(cell) for row in rows for cell in row):
            for row in rows:
                for cell in row:
                    around, self.ground = self.ground, self._ground(cell)
                    self.blocks(cell)
                    self.ground = around
            return
        above: dict[int, str] = {}
        table = BarTable(self.out, self.out.last_lines())
        for line, row in zip(lines, rows, strict=True):
            texts: list[str] = []
            spans: list[int] = []
            first = column = _count(child(line, "trPr", "gridBefore"), 0)
            for cell in row:
                merged = child(cell, "tcPr", "vMerge")
                text = self._cell(cell)
                if merged is not None and attribute(merged, "val") != "restart":
                    text = above.get(column, "")  # the cell continues from the row above
                above[column] = text
                texts.append(text)
                spans.append(_count(child(cell, "tcPr", "gridSpan"), 1))
                column += spans[-1]
            table.write(texts, first=first, spans=spans, head=child(line, "trPr", "tblHeader") is not None)
        table.close()
        self.in_list = False
        self._write_aside()

    def _cell(self, cell: Element) -> str:
        around, self.ground = self.ground, self._ground(cell)
        texts = [" ".join(self._labelled(part, self.styles.paragraph(part))).strip() for part in _paragraphs(cell)]
        self.ground = around
        return " ".join(filter(None, texts)).replace("\n", " ")

    def _is_page(self, cell: Element) -> bool:
        paragraphs = list(_paragraphs(cell))
        length = sum(len(joined_text(paragraph, by="")) for paragraph in paragraphs)
        return length > 1200 or any(self.styles.paragraph(paragraph).level for paragraph in paragraphs)

    def _ground(self, cell: Element) -> Ground:
        return ground_of(attribute(child(cell, "tcPr", "shd"), "fill"), self.ground)

    def _hide(self, element: Element, how: str) -> bool:
        """Keep the text of an element apart, if it is hidden."""
        if how:
            self.out.hidden.append(HiddenText(joined_text(element, "t", "delText"), how))
        return bool(how)

    def _text(self, paragraph: Element, style: Style) -> str:
        look = {**style.paragraph, **read_look(child(paragraph, "pPr"))}
        if self._hide(paragraph, hidden_paragraph(look)):
            return ""
        ground = ground_of(look.get("shd", ""), self.ground)
        return tidy_whitespace("".join(self._words(paragraph, style, ground)))

    def _words(self, parent: Element, style: Style, ground: Ground) -> Iterator[str]:
        """The characters of a paragraph; text boxes and notes are collected for later."""
        for element in parent:
            name = local_name(element)
            if name == "t":
                yield element.text or ""
            elif name in CHARACTERS:
                yield CHARACTERS[name]
            elif name == "txbxContent":
                self.aside.append(element)
            elif name in self.notes:
                number = attribute(element, "id")
                note = self.notes[name].get(number)
                if note is not None:
                    yield f"[{number}]"
                    self.aside.append(_marked(note, number))
            elif name == "AlternateContent":
                yield from self._words(_alternative(element), style, ground)
            elif name in {"oMathPara", "oMath"}:
                yield f" {formula(element)} "
            elif name in _DELETED:
                self._hide(element, DELETED)
            elif (
                name == "r"
                and self._hide(element, hidden_text(self.styles.text(element, style, self.table_style), ground))
            ) or (name in {"drawing", "pict"} and self._hide(element, _hidden_drawing(element))):
                continue
            elif name not in _LEFT_OUT:
                yield from self._words(element, style, ground)


def _alternative(element: Element) -> Element:
    """One of several renderings of the same content: the first that contains text."""
    ways = list(children(element, "Choice", "Fallback"))
    return next((way for way in ways if way.find(".//{*}t") is not None), ways[0] if ways else element)


def _marked(note: Element, number: str) -> Element:
    """A copy of a note that begins with its mark, if the mark itself is not a character."""
    copy = deepcopy(note)
    for part in list(inside(copy, "footnoteRef", "endnoteRef"))[:1]:
        part.tag = part.tag.replace(local_name(part), "t")
        part.text = f"[{number}]"
    return copy


def _hidden_row(row: Element) -> str:
    looks = child(row, "trPr")
    if child(looks, "del") is not None:
        return DELETED
    if (switch := child(looks, "hidden")) is not None and attribute(switch, "val") not in {"0", "false", "off"}:
        return VANISHED
    height = child(looks, "trHeight")
    return CUT_OFF if attribute(height, "hRule") == "exact" and _count(height, 100) <= 20 else ""


def _has_picture(paragraph: Element) -> bool:
    return paragraph.find(".//{*}blip") is not None


def _hidden_drawing(drawing: Element) -> str:
    """How a drawing with its text boxes is hidden; empty if it is not."""
    for part in drawing.iter():
        name = local_name(part)
        if name == "txbxContent":
            break
        if name == "docPr" and attribute(part, "hidden") in {"1", "true"}:
            return VANISHED
        if name == "extent" and min(whole(attribute(part, side), 12_700) for side in ("cx", "cy")) < 12_700:
            return CUT_OFF
        if name == "posOffset" and abs(whole(part.text or "")) > _FAR:
            return OFF_THE_PAGE
        if "style" in part.attrib and hides_text(attribute(part, "style")):
            return VANISHED
    return ""


def _count(element: Element | None, unsaid: int) -> int:
    count = attribute(element, "val")
    return int(count) if count.isdigit() else unsaid


def _inside(parent: Element, name: str) -> Iterator[Element]:
    for element in children(parent, name, *_TRANSPARENT):
        yield from [element] if local_name(element) == name else _inside(element, name)


def _paragraphs(cell: Element) -> Iterator[Element]:
    """All paragraphs of a cell, including those of nested tables."""
    for element in children(cell, "p", "tbl", "tr", "tc", *_TRANSPARENT):
        yield from [element] if local_name(element) == "p" else _paragraphs(element)
