"""The numbers that Word shows before list items and headings. They are computed, not stored, but readers cite by them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.ingest.formats.archive import attribute, child, local_name

if TYPE_CHECKING:
    from lxml.etree import _Element as Element


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
    if root is None:
        return Numbering()
    schemes = {
        attribute(scheme, "abstractNumId"): {
            int(attribute(level, "ilvl") or 0): _level(level) for level in scheme if local_name(level) == "lvl"
        }
        for scheme in root
        if local_name(scheme) == "abstractNum"
    }
    found = Numbering()
    for number in root:
        if local_name(number) != "num":
            continue
        name = attribute(number, "numId")
        scheme = _value(number, "abstractNumId")
        found.levels[name] = dict(schemes.get(scheme, {}))
        found.shared[name] = "scheme " + scheme
        for override in number:
            if local_name(override) != "lvlOverride":
                continue
            found.restarts.add(name)
            depth = int(attribute(override, "ilvl") or 0)
            if (level := child(override, "lvl")) is not None:
                found.levels[name][depth] = _level(level)
            if (start := _value(override, "startOverride")).isdigit():
                before = found.levels[name].get(depth, _Level())
                found.levels[name][depth] = _Level(before.form, before.pattern, int(start))
    return found


def _level(level: Element) -> _Level:
    start = _value(level, "start")
    return _Level(_value(level, "numFmt") or "decimal", _value(level, "lvlText"), int(start) if start.isdigit() else 1)


def _value(parent: Element, name: str) -> str:
    element = child(parent, name)
    return attribute(element, "val") if element is not None else ""


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
