"""A Word document's paragraph styles, as far as parsing needs them: which are headings, which are lists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.ingest.formats.archive import attribute, child, local_name

if TYPE_CHECKING:
    from lxml.etree import _Element as Element


@dataclass(frozen=True, slots=True)
class Style:
    level: int = 0  # of a heading; 0 for body text
    title: bool = False
    numbered: tuple[str, int] | None = None  # list id and depth
    shaded: bool = False  # has its own background


def read_styles(root: Element | None) -> dict[str, Style]:
    """Styles by id, each with what it inherits from the style it is based on."""
    if root is None:
        return {}
    found = {attribute(style, "styleId"): style for style in root if local_name(style) == "style"}
    return {name: _style(name, found) for name in found}


def _style(name: str, found: dict[str, Element]) -> Style:
    level = 0
    title = False
    shaded = False
    in_list: tuple[str, int] | None = None
    seen: set[str] = set()
    while name in found and name not in seen:
        seen.add(name)
        style = found[name]
        name_node = child(style, "name")
        called = attribute(name_node, "val") if name_node is not None else ""
        level = level or _named_level(called) or outline(style)
        title = title or (called.lower() == "title" and len(seen) == 1)
        shaded = shaded or child(style, "pPr", "shd") is not None
        in_list = in_list or numbered(style)
        above = child(style, "basedOn")
        name = attribute(above, "val") if above is not None else ""
    return Style(0 if title else level, title, in_list, shaded)


def _named_level(called: str) -> int:
    match = re.fullmatch(r"heading\s*([1-9])", called.strip(), re.IGNORECASE)
    return int(match[1]) if match else 0


def outline(holder: Element) -> int:
    """The heading level that a style or a paragraph sets itself; 0 for none."""
    found = child(holder, "pPr", "outlineLvl")
    level = attribute(found, "val") if found is not None else ""
    return int(level) + 1 if level.isdigit() and int(level) < 9 else 0


def numbered(holder: Element) -> tuple[str, int] | None:
    """The list and depth that a style or a paragraph sets itself."""
    number, depth = child(holder, "pPr", "numPr", "numId"), child(holder, "pPr", "numPr", "ilvl")
    if number is None:
        return None
    level = attribute(depth, "val") if depth is not None else "0"
    return attribute(number, "val"), int(level) if level.isdigit() else 0
