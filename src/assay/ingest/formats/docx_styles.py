"""A Word document's styles, as far as parsing needs them: which are headings, which are lists, and which hide their text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.ingest.formats.archive import attribute, child, children, inside, local_name, value

if TYPE_CHECKING:
    from lxml.etree import _Element as Element


MOST_INHERITED = 50  # styles based on one another
SMALLEST = 3  # half points
CLOSE = 12  # of 255: colours that a reader cannot tell apart
OFF_PAGE = 10_000  # twips to the left of the margin: most of a page
_OFF = frozenset({"0", "false", "off", "none"})

VANISHED, SMALL, CUT_OFF = "formatted as hidden", "too small to read", "cut off"
SAME_COLOUR, TRANSPARENT, OFF_THE_PAGE = "in the colour of the background", "transparent", "off the page"

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
        own = text_look(child(run, "rPr"))
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
    return StyleSheet(styles, text_look(child(root, "docDefaults", "rPrDefault", "rPr")), *defaults[:1])


def _style(name: str, found: dict[str, Element]) -> Style:
    level = 0
    title = shaded = False
    in_list: tuple[str, int] | None = None
    text: Look = {}
    paragraph: Look = {}
    seen: set[str] = set()
    while name in found and name not in seen and len(seen) < MOST_INHERITED:
        seen.add(name)
        style = found[name]
        called = value(style, "name")
        level = level or _named_level(called) or outline(style)
        title = title or (called.lower() == "title" and len(seen) == 1)
        in_list = in_list or numbered(style)
        text = {**text_look(child(style, "rPr")), **text}
        paragraph = {**paragraph_look(child(style, "pPr")), **paragraph}
        shaded = shaded or style.find(".//{*}shd") is not None
        name = value(style, "basedOn")
    return Style(0 if title else level, title, in_list, text, paragraph, shaded)


def text_look(looks: Element | None) -> Look:
    found: dict[str, str] = {}
    for look in children(looks):
        name = local_name(look)
        if name == "shd":
            found[name] = attribute(look, "fill")
        elif name == "textFill":
            alphas = [attribute(part, "val") for part in inside(look, "alpha")]
            clear = child(look, "noFill") is not None or any(each.isdigit() and int(each) > 95_000 for each in alphas)
            found[name] = "clear" if clear else ""
        else:
            found[name] = attribute(look, "val") or "1"
    return found


def paragraph_look(looks: Element | None) -> Look:
    found: dict[str, str] = {}
    for look in children(looks):
        name = local_name(look)
        if name == "shd":
            found[name] = attribute(look, "fill")
        elif name == "spacing" and attribute(look, "lineRule") == "exact":
            found["line"] = attribute(look, "line")
        elif name == "ind":
            found["left"] = attribute(look, "left") or attribute(look, "start")
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
    ink = look.get("color", "")
    if ground is None or not re.fullmatch(r"[0-9A-Fa-f]{6}", ink):
        return ""
    parts = zip(bytes.fromhex(ink), bytes.fromhex(ground), strict=True)
    return SAME_COLOUR if max(abs(one - other) for one, other in parts) <= CLOSE else ""


def _named_level(called: str) -> int:
    match = re.fullmatch(r"heading\s*([1-9])", called.strip(), re.IGNORECASE)
    return int(match[1]) if match else 0


def outline(holder: Element) -> int:
    """The heading level that a style or a paragraph sets itself; 0 for none."""
    level = value(holder, "pPr", "outlineLvl")
    return int(level) + 1 if level.isdigit() and int(level) < 9 else 0


def numbered(holder: Element) -> tuple[str, int] | None:
    """The list and depth that a style or a paragraph sets itself."""
    if child(holder, "pPr", "numPr", "numId") is None:
        return None
    level = value(holder, "pPr", "numPr", "ilvl")
    return value(holder, "pPr", "numPr", "numId"), int(level) if level.isdigit() else 0


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
    restarts: set[str] = field(default_factory=set)
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
        scheme = name if name in self.restarts else self.shared.get(name, name)
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
            found.restarts.add(name)
            depth = int(attribute(override, "ilvl") or 0)
            if (level := child(override, "lvl")) is not None:
                found.levels[name][depth] = _level(level)
            if (start := value(override, "startOverride")).isdigit():
                before = found.levels[name].get(depth, _Level())
                found.levels[name][depth] = _Level(before.form, before.pattern, int(start))
    return found


def _level(level: Element) -> _Level:
    start = value(level, "start")
    return _Level(value(level, "numFmt") or "decimal", value(level, "lvlText"), int(start) if start.isdigit() else 1)


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
