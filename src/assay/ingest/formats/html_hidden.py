"""Detects text that a page contains but does not show. It is not read, because instructions to a model are hidden there.

A rule must be certain: text that an external style sheet or a script might still show is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_SIZE = re.compile(r"(-?(?:\d++(?:\.\d++)?|\.\d++))\s*(px|pt|em|rem|vw|vh|ex|ch|cm|in|%)?")
_FONT = re.compile(r"(?:^|\s)(\d++(?:\.\d++)?|\.\d++)(px|pt|em|rem|%)?(?:/\S+)?\s")
_FAR = 400  # pixels outside the page: layouts never need that, hidden text does
_PIXELS = {"em": 16, "rem": 16, "pt": 1.3, "vw": 12, "vh": 8, "ex": 8, "ch": 8, "cm": 38, "in": 96, "%": 10}


def declarations(style: str) -> dict[str, str]:
    """`color: Red !important; top:0` → {"color": "red", "top": "0"}."""
    found: dict[str, str] = {}
    if not style:
        return found
    for part in re.sub(r"/\*.*?(?:\*/|\Z)", "", style, flags=re.DOTALL).split(";"):
        key, _, value = part.partition(":")
        found[key.strip().lower()] = value.replace("!important", "").strip().lower()
    return found


def hides_text(style: str) -> bool:
    """Whether an element with this inline style is invisible regardless of its context."""
    return bool(style) and _invisible(declarations(style))


def _invisible(style: dict[str, str]) -> bool:
    if not style:
        return False
    if style.get("display") == "none" or style.get("visibility") in {"hidden", "collapse"}:
        return True
    if style.get("mso-hide") == "all" or style.get("content-visibility") == "hidden":  # mso-hide: in e-mails
        return True
    if re.search(r"opacity\(\s*0(?:\.0\d*)?%?\s*\)", style.get("filter", "")):
        return True
    if _share(style.get("opacity")) <= 0.05 or _pixels(style.get("font-size")) < 2:
        return True
    if "font" in style and (size := _FONT.search(style["font"])):
        return _pixels(size[1] + (size[2] or "")) < 2
    if _pixels(style.get("text-indent")) <= -_FAR:
        return True
    if style.get("position") in {"absolute", "fixed"}:
        edges = [_pixels(style.get(edge)) for edge in ("left", "top", "right", "bottom", "margin-left", "margin-top")]
        if min(edges) <= -_FAR or re.search(r"rect\(\s*[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01]", style.get("clip", "")):
            return True
    if _pixels(style.get("margin-left")) <= -_FAR or re.search(
        r"inset\((?:50|100)%|circle\(\s*0(?:px|%)?\s*[)a]", style.get("clip-path", "")
    ):
        return True
    if re.search(r"scale\(\s*0(?:\.0+)?\s*[,)]|translate[xy3d]*\(\s*-\d{4,}", style.get("transform", "")):
        return True
    if style.get("overflow") in {"hidden", "clip"}:
        sides = (style.get(side) for side in ("width", "height", "max-width", "max-height"))
        if min(map(_pixels, sides)) <= 1:
            return True
    inks = (style.get("color", ""), style.get("-webkit-text-fill-color", ""))
    return any(re.fullmatch(r"transparent|(?:rgba|hsla)\(.*[,/]\s*0?(?:\.0+)?%?\s*\)", ink) for ink in inks)


def _share(value: str | None) -> float:
    match = _SIZE.match(value or "")
    return (float(match[1]) / (100 if match[2] == "%" else 1)) if match else 1.0


def _pixels(value: str | None) -> float:
    """A length in pixels, roughly; anything else counts as a length that hides nothing."""
    match = _SIZE.match(value or "")
    return float(match[1]) * _PIXELS.get(match[2] or "px", 1) if match else 100.0


# --- colours --------------------------------------------------------------------------------------------------------

Colour = tuple[int, int, int]

_NAMED = {"white": (255, 255, 255), "black": (0, 0, 0), "snow": (255, 250, 250), "ivory": (255, 255, 240)}
_NAMED |= {
    "red": (255, 0, 0),
    "blue": (0, 0, 255),
    "green": (0, 128, 0),
    "yellow": (255, 255, 0),
    "gray": (128, 128, 128),
}
_WHITE = (255, 255, 255)


def parse_colour(value: str) -> Colour | None:
    if match := re.search(r"#([0-9a-f]{3,8})\b", value):
        digits = match[1] if len(match[1]) >= 6 else "".join(2 * digit for digit in match[1])
        return int(digits[0:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)
    if match := re.search(r"rgba?\(\s*(\d+)[\s,]+(\d+)[\s,]+(\d+)", value):
        return int(match[1]), int(match[2]), int(match[3])
    return next((_NAMED[word] for word in re.findall(r"[a-z]+", value) if word in _NAMED), None)


def are_alike(one: Colour, other: Colour) -> bool:
    """Whether a reader cannot tell these two colours apart."""
    return max(abs(a - b) for a, b in zip(one, other, strict=True)) <= 12


# --- pages ----------------------------------------------------------------------------------------------------------

_NOT_TEXT = frozenset(
    {"script", "style", "template", "noscript", "iframe", "object", "embed", "svg", "canvas", "audio", "video"}
)
# A page that waits for its scripts hides itself entirely at first; that is not hidden text.
_WHOLE = frozenset({"html", "body", "main", "article"})
_UNKNOWN = (-1, -1, -1)  # an image, or a background set by a style sheet that is not available


@dataclass(frozen=True, slots=True)
class _StyleSheet:
    """What the page's own style sheets declare for plain selectors (`p`, `.note`, `#aside`, `p.note`)."""

    hidden: frozenset[str]
    backgrounds: dict[str, str]
    foreign: bool  # some style sheets are not available


@dataclass(frozen=True, slots=True)
class HiddenText:
    words: int  # of hidden text
    depth: int  # of the deepest element


def remove_hidden(tree: LexborHTMLParser) -> HiddenText:
    """Remove from the tree what a reader would not see."""
    sheet = _sheet(tree)
    gone: list[LexborNode] = []
    words = depth = 0
    behind: list[Colour] = [_WHITE]  # the background of each open element
    node = tree.root
    entering = True
    while node is not None and behind:
        if entering:
            attributes = node.attributes
            if node.tag in _NOT_TEXT:
                gone.append(node)
            elif (attributes or node.tag == "dialog") and _hidden(node.tag or "", attributes, behind[-1], sheet):
                gone.append(node)
                words += len(node.text().split())
            elif (child := node.child) is not None:
                behind.append(_background(node.tag or "", attributes, behind[-1], sheet))
                depth = max(depth, len(behind))
                node = child
                continue
        if (following := node.next) is not None:
            node, entering = following, True
        else:
            node, entering = node.parent, False
            behind.pop()
    # Only after the walk, and never a node inside another: a removed node must not be touched again.
    for node in gone:
        node.decompose()
    return HiddenText(words, depth)


def _hidden(tag: str, attributes: Mapping[str, str | None], behind: Colour, sheet: _StyleSheet) -> bool:
    if tag in _WHOLE:
        return False
    if "hidden" in attributes or (tag == "dialog" and "open" not in attributes):
        return True
    style = declarations(attributes.get("style") or "")
    if _invisible(style):
        return True
    shown = style.get("display") or style.get("visibility") == "visible"
    if not shown and sheet.hidden and not sheet.hidden.isdisjoint(_selectors(tag, attributes)):
        return True
    declared = style.get("color") or (attributes.get("color") or "").lower()
    ink = parse_colour(declared) if declared else None
    return ink is not None and are_alike(ink, _background(tag, attributes, behind, sheet))


def _background(tag: str, attributes: Mapping[str, str | None], behind: Colour, sheet: _StyleSheet) -> Colour:
    if not attributes and not sheet.backgrounds:
        return behind
    style = declarations(attributes.get("style") or "")
    names = _selectors(tag, attributes)
    declared = style.get("background-color") or style.get("background") or attributes.get("bgcolor") or ""
    declared = (declared or next((sheet.backgrounds[name] for name in names if name in sheet.backgrounds), "")).lower()
    if "url(" in declared or "gradient" in declared or "background-image" in style:
        return _UNKNOWN
    if declared and (found := parse_colour(declared)):
        return found
    return _UNKNOWN if sheet.foreign and len(names) > 1 else behind


def _selectors(tag: str, attributes: Mapping[str, str | None]) -> list[str]:
    marks = ["." + name for name in (attributes.get("class") or "").lower().split()]
    if named := attributes.get("id"):
        marks.append("#" + named.lower())
    return [tag, *marks, *(tag + mark for mark in marks)]


def _sheet(tree: LexborHTMLParser) -> _StyleSheet:
    hidden: set[str] = set()
    backgrounds: dict[str, str] = {}
    for node in tree.css("style"):
        if (node.attributes.get("media") or "all").lower() in {"all", "screen"}:
            for selectors, style in _rules(node.text()):
                background = style.get("background-color") or style.get("background")
                invisible = _invisible(style)
                for selector in map(str.strip, selectors.lower().split(",")) if background or invisible else ():
                    if invisible and re.fullmatch(r"\w*[.#][\w-]+", selector):
                        hidden.add(selector)
                    if background:
                        backgrounds[selector] = background
    foreign = any("stylesheet" in (link.attributes.get("rel") or "").lower() for link in tree.css("link[rel]"))
    return _StyleSheet(frozenset(hidden), backgrounds, foreign)


def _rules(css: str) -> list[tuple[str, dict[str, str]]]:
    """Rules outside every @-block: those inside apply only to some screens, or to print."""
    rules: list[tuple[str, dict[str, str]]] = []
    css = re.sub(r"/\*.*?(?:\*/|\Z)", "", css, flags=re.DOTALL)
    depth = start = opened = 0
    for match in re.finditer(r"[{}]", css):
        if match[0] == "{":
            opened = match.end() if depth == 0 else opened
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                selectors = css[start : opened - 1].rpartition(";")[2].strip()
                if not selectors.startswith("@"):
                    rules.append((selectors, declarations(css[opened : match.start()])))
                start = match.end()
    return rules
