"""Finds text that a page contains but does not show on a screen, because instructions to a model are hidden there.

Text that a sheet outside the file might colour differently is kept, and so is a closed `details`, which a reader opens.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count, groupby
from math import factorial
from typing import TYPE_CHECKING, Any

import tinycss2
from tinycss2 import color4

from assay.ingest.formats.html_text import walk
from assay.ingest.parsed import HiddenText

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

NOT_DISPLAYED, INVISIBLE, TRANSPARENT = "not displayed", "invisible", "transparent"
SMALL, OFF_THE_PAGE, CUT_OFF = "too small to read", "off the page", "cut off"
SAME_COLOUR = "in the colour of the background"

_LENGTH = re.compile(r"(?:calc\(\s*)?(-?(?:\d++(?:\.\d++)?|\.\d++))\s*(px|pt|em|rem|vw|vh|ex|ch|cm|in|%)?")
_FAR = 400  # pixels outside the page: layouts never need that, hidden text does
_FAR_AFTER = 5_000  # pixels to the right or below
_PIXELS = {"em": 16, "rem": 16, "pt": 1.3, "vw": 12, "vh": 8, "ex": 8, "ch": 8, "cm": 38, "in": 96, "%": 10}

_NOT_TEXT = frozenset({"script", "style", "noscript", "iframe", "object", "embed", "svg", "canvas", "audio", "video"})

Colour = tuple[float, ...]  # red, green and blue, each 0 to 255
Attributes = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class _Look:
    """What an element's text inherits. `ground` is None if it is a picture, or set by a sheet outside the file."""

    ink: Colour = (0.0, 0.0, 0.0)
    ground: Colour | None = (255.0, 255.0, 255.0)
    size: float = 16.0  # pixels
    visible: bool = True
    transparent: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def hidden(self) -> str:
        """How text of this look is hidden; empty if it is seen."""
        if not self.visible:
            return INVISIBLE
        if self.size < 2:
            return SMALL
        if self.transparent:
            return TRANSPARENT
        alike = self.ground is not None and max(abs(a - b) for a, b in zip(self.ink, self.ground, strict=True)) <= 12
        return SAME_COLOUR if alike else ""


@dataclass(frozen=True, slots=True)
class Pruned:
    hidden: tuple[HiddenText, ...]
    depth: int  # of the deepest element
    cut_short: bool  # not every style was applied


def hides_text(style: str) -> bool:
    """Whether an element with this inline style is invisible regardless of its context."""
    own = {name: value for name, (value, _) in declarations(style).items()}
    return bool(_removed(own) or _look(own, {}, _Look(), foreign=False).hidden)


def remove_hidden(tree: LexborHTMLParser) -> Pruned:
    """Remove from the tree what a reader would not see."""
    if tree.root is None:
        return Pruned((), 0, False)
    nodes, depth = _extent(tree.root)
    styles = page_styles(tree, nodes, depth)
    gone: list[LexborNode] = []
    hidden: list[HiddenText] = []
    looks = [_Look()]  # of each open element

    def enter(node: LexborNode) -> bool:
        how, look = _enter(node, looks[-1], styles, tree)
        looks.append(look)
        if how is None:
            return True
        gone.append(node)
        text = (node.text_content or "") if node.tag == "-text" else _text(node)
        if how and text.strip():
            hidden.append(HiddenText(text, how))
        return False

    walk(tree.root, enter, lambda _: looks.pop())
    # Only after the walk, and never a node inside another: a removed node must not be touched again.
    for node in gone:
        node.decompose()
    return Pruned(tuple(hidden), depth + 1, styles.cut_short)


def _extent(root: LexborNode) -> tuple[int, int]:
    """How many nodes a page has, and how deep they are nested."""
    depths = {root.mem_id: 0}
    for node in root.traverse(include_text=True):
        if (parent := node.parent) is not None:
            depths[node.mem_id] = depths.get(parent.mem_id, -1) + 1
    return len(depths), max(depths.values())


def _text(node: LexborNode) -> str:
    """The text of a hidden element; that of a template is in fragments of its own."""
    if node.tag == "template":
        return " ".join(re.sub(r"<[^<>]*+>", " ", node.html or "").split())
    texts = (part for part in node.traverse(include_text=True) if part.tag == "-text")
    shown = (part for part in texts if part.parent is None or part.parent.tag not in _NOT_TEXT)
    return " ".join(part.text_content or "" for part in shown)


def _enter(node: LexborNode, around: _Look, styles: Styles, tree: LexborHTMLParser) -> tuple[str | None, _Look]:
    """How a node is hidden (None: it is not; empty: it is no text), and the look that its children inherit."""
    tag = node.tag or ""
    if tag == "-text":
        return around.hidden or None, around
    if tag in _NOT_TEXT:
        return "", around
    if tag == "template":
        return NOT_DISPLAYED, around
    attributes = node.attributes
    if not attributes and tag != "dialog" and node.mem_id not in styles.elements:
        return None, around
    own = styles.of(node.mem_id, attributes.get("style") or "")
    if around.variables or any("var(" in value for value in own.values()) or any(name.startswith("--") for name in own):
        variables = {**around.variables, **{name: value for name, value in own.items() if name.startswith("--")}}
        own = {name: _filled(value, variables) for name, value in own.items()}
        around = replace(around, variables=variables)
    if "display" not in own and ("hidden" in attributes or (tag == "dialog" and "open" not in attributes)):
        own["display"] = "none"
    look = _look(own, attributes, around, styles.foreign)
    if _waits_for_scripts(node, tag, tree):
        return None, replace(look, visible=True)
    return _removed(own) or None, look


def _waits_for_scripts(node: LexborNode, tag: str, tree: LexborHTMLParser) -> bool:
    """Whether the element is the whole page, which some pages hide until their scripts have run."""
    if tag in {"main", "article"}:
        return tree.body is not None and 2 * len(node.text()) > len(tree.body.text())
    return tag in {"html", "body"}


_VARIABLE = re.compile(r"var\(\s*(--[\w-]+)\s*(?:,([^()]*))?\)")


def _filled(value: str, variables: Mapping[str, str]) -> str:
    for _ in range(4):
        if "var(" not in value or len(value) > 2_000:
            break
        value = _VARIABLE.sub(lambda match: variables.get(match[1], match[2] or ""), value)
    return value.strip()


def _look(own: dict[str, str], attributes: Attributes, around: _Look, foreign: bool) -> _Look:
    ink, transparent = around.ink, around.transparent
    for name in ("color", "-webkit-text-fill-color"):
        declared = own.get(name) or ((attributes.get("color") or "").lower() if name == "color" else "")
        if declared in {"initial", "revert"}:
            ink, transparent = (0.0, 0.0, 0.0), False
        elif found := _colour(declared):
            ink, transparent = found[0], found[1] <= 0.05
    visible = around.visible
    if (declared := own.get("visibility", "inherit")) not in {"inherit", "unset"}:
        visible = declared not in {"hidden", "collapse"}
    size = _font_size(own.get("font-size", ""), around.size)
    return replace(
        around, ink=ink, transparent=transparent, visible=visible, size=size,
        ground=_ground(own, attributes, around.ground, foreign),
    )  # fmt: skip


def _ground(own: dict[str, str], attributes: Attributes, around: Colour | None, foreign: bool) -> Colour | None:
    declared = own.get("background-color") or (attributes.get("bgcolor") or "").lower()
    if own.get("background-image", "none") != "none" or "background" in attributes:
        return None
    if declared in {"", "none", "transparent", "inherit", "initial", "unset"}:
        return None if foreign and {"class", "id"} & attributes.keys() else around
    found = next(filter(None, map(_colour, re.findall(r"[\w-]+\([^()]*\)|[^\s()]+", declared))), None)
    if found is None or 0 < found[1] < 1:
        return None
    return found[0] if found[1] else around


def _colour(value: str) -> tuple[Colour, float] | None:
    """Red, green and blue, and how opaque they are."""
    found: Any = color4.parse_color(value) if value else None
    if found is None or isinstance(found, str):
        return None
    try:
        shown = found.to("srgb") if found.space != "srgb" else found
    except (NotImplementedError, ValueError):
        return None
    return tuple(255 * (part or 0.0) for part in shown.coordinates), shown.alpha


def _font_size(declared: str, around: float) -> float:
    unsaid = around if declared in {"", "inherit", "unset", "smaller", "larger"} else 16.0
    return _measure(declared, {**_PIXELS, "em": around, "%": around / 100}, unsaid)


def _removed(own: dict[str, str]) -> str:
    """How an element is hidden with everything in it; empty if it is not."""
    if not own:
        return ""
    if own.get("display") == "none" or own.get("mso-hide") == "all" or own.get("content-visibility") == "hidden":
        return NOT_DISPLAYED  # mso-hide: in e-mails
    if _measure(own.get("opacity"), {"%": 0.01}, 1.0) <= 0.05 or re.search(
        r"opacity\(\s*0(?:\.0\d*)?%?\s*\)", own.get("filter", "")
    ):
        return TRANSPARENT
    if _pixels(own.get("text-indent")) <= -_FAR or _pixels(own.get("margin-left")) <= -_FAR or _is_moved_away(own):
        return OFF_THE_PAGE
    if re.search(r"scale[xy3d]*\(\s*0(?:\.0+)?\s*[,)]|rotate[xy]\(\s*-?90deg", own.get("transform", "")):
        return SMALL
    if re.match(r"0(?:\.0+)?(?:\s|$)", own.get("scale", "")) or re.fullmatch(r"0(?:\.0+)?%?", own.get("zoom", "")):
        return SMALL
    return CUT_OFF if _is_cut_off(own) else ""


def _is_moved_away(own: dict[str, str]) -> bool:
    moved = re.search(r"translate[xy3d]*\([^()]*-\d{4,}", own.get("transform", ""))
    if moved or re.search(r"-\d{4,}", own.get("translate", "")):
        return True
    if own.get("position") not in {"absolute", "fixed", "relative"}:
        return False
    edges = [_pixels(own.get(edge)) for edge in ("left", "top", "right", "bottom", "margin-left", "margin-top")]
    return min(edges) <= -_FAR or max(edges[:2]) >= _FAR_AFTER


_NO_AREA = re.compile(r"inset\(\s*(?:50|100)%|(?:circle|ellipse)\(\s*0(?:px|%)?\s*[)a0]|polygon\(\s*0[^,()]*\)")
_NO_RECTANGLE = re.compile(r"rect\(\s*[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01]")


def _is_cut_off(own: dict[str, str]) -> bool:
    placed = own.get("position") in {"absolute", "fixed"}
    if _NO_AREA.search(own.get("clip-path", "")) or (placed and _NO_RECTANGLE.search(own.get("clip", ""))):
        return True
    sides = (own.get(side) for side in ("width", "height", "max-width", "max-height"))
    return own.get("overflow", "").split(" ")[0] in {"hidden", "clip"} and min(map(_pixels, sides)) <= 1


def _pixels(value: str | None) -> float:
    """A length in pixels, roughly; anything else counts as a length that hides nothing."""
    return _measure(value, _PIXELS, 100.0)


def _measure(value: str | None, units: Mapping[str, float], unsaid: float) -> float:
    match = _LENGTH.match(value or "")
    return float(match[1]) * units.get(match[2] or "px", 1) if match else unsaid


MOST_CSS = 2_000_000  # characters of a page's sheets
MOST_STEPS = 200_000_000  # of matching one selector, at worst
MOST_SECONDS = 8.0  # for the selectors of a page
MOST_NESTED = 12
SCREEN = {"width": 1280.0, "height": 800.0}

_PROPERTIES = frozenset(
    "display visibility opacity color background background-color background-image font font-size position left top right "
    "bottom inset text-indent margin margin-left margin-top clip clip-path transform scale translate overflow overflow-x "
    "overflow-y width height max-width max-height content-visibility filter mso-hide -webkit-text-fill-color zoom".split()
)
_EDGES = ("top", "right", "bottom", "left")
_FONT_SIZE = re.compile(r"(?:^|\s)((?:\d+(?:\.\d+)?|\.\d+)(?:px|pt|em|rem|%)?)(?:/\S+)?\s")

Declared = dict[str, tuple[str, bool]]  # property → value, and whether it is important
Priority = tuple[bool, bool, tuple[int, int, int], int]  # important, outside layers, specificity, order


@dataclass(frozen=True, slots=True)
class Rule:
    selector: str
    specificity: tuple[int, int, int]
    declared: Declared
    in_layer: bool


@dataclass(slots=True)
class Styles:
    """What sheets declare for each element, by its address; `cut_short` if not every rule was applied."""

    elements: dict[int, dict[str, tuple[Priority, str]]] = field(default_factory=dict)
    foreign: bool = False  # some sheets are outside the file
    cut_short: bool = False

    def of(self, element: int, inline: str) -> dict[str, str]:
        """The values that win for an element."""
        sheets = self.elements.get(element, {})
        found = {name: value for name, (_, value) in sheets.items()}
        for name, (value, important) in declarations(inline).items() if inline else ():
            if important or name not in sheets or not sheets[name][0][0]:
                found[name] = value
        return found


def page_styles(tree: LexborHTMLParser, nodes: int, depth: int) -> Styles:
    """What the sheets of a page with so many nodes, nested so deep, declare."""
    found = Styles()
    found.foreign = any("stylesheet" in (link.attributes.get("rel") or "").lower() for link in tree.css("link[rel]"))
    sheets = [node.text() for node in tree.css("style") if _on_screen(node.attributes.get("media") or "")]
    left, until, order = MOST_CSS, time.process_time() + MOST_SECONDS, count(1)
    for sheet in sheets:
        found.cut_short |= len(sheet) > left
        found.foreign |= "@import" in sheet
        for rule in parse_sheet(sheet[: max(0, left)]):
            if time.process_time() > until or _steps(rule.selector, nodes, depth) > MOST_STEPS:
                found.cut_short = True
            else:
                _apply(tree, rule, next(order), found)
        left -= len(sheet)
    return found


def _apply(tree: LexborHTMLParser, rule: Rule, order: int, found: Styles) -> None:
    from selectolax.lexbor import SelectolaxError

    try:
        matched = tree.css(rule.selector)
    except SelectolaxError:  # a browser ignores a selector that it does not know, too
        return
    entries = {
        name: ((important, rule.in_layer == important, rule.specificity, order), value)
        for name, (value, important) in rule.declared.items()
    }
    for node in matched:
        own = found.elements.setdefault(node.mem_id, {})
        for name, entry in entries.items():
            if name not in own or own[name][0] <= entry[0]:
                own[name] = entry


def _steps(selector: str, nodes: int, depth: int) -> float:
    """At worst every way to place the parts of a selector among the ancestors of an element is tried."""
    spread = len(re.findall(r"(?<![\s>+~,(])\s+(?![\s>+~,)])|~|:has\(", selector))
    return nodes * float(depth) ** min(spread, 40) / factorial(min(spread, 40)) + len(selector)


def declarations(style: str) -> Declared:
    """`color: Red !important; top:0` → {"color": ("red", True), "top": ("0", False)}, with shorthands taken apart."""
    return _declared(_parts(style))


def _parts(content: Any) -> list[Any]:
    return tinycss2.parse_blocks_contents(content, skip_comments=True, skip_whitespace=True)


def _declared(nodes: Iterable[Any]) -> Declared:
    found: Declared = {}
    for node in nodes:
        if node.type == "declaration" and (node.lower_name in _PROPERTIES or node.name.startswith("--")):
            value = tinycss2.serialize(node.value).strip().lower()
            for name, part in _longhands(node.lower_name, value):
                if node.important or not found.get(name, ("", False))[1]:
                    found[name] = (part, node.important)
    return found


def _longhands(name: str, value: str) -> Iterator[tuple[str, str]]:
    if name in {"inset", "margin"}:
        parts = value.split()
        sides = [*parts, parts[1]] if len(parts) == 3 else parts * (4 // len(parts)) if parts else []
        prefix = "margin-" if name == "margin" else ""
        yield from ((prefix + edge, side) for edge, side in zip(_EDGES, sides, strict=False))
    elif name == "font":
        size = _FONT_SIZE.search(value)
        yield "font-size", size[1] if size else "medium"
    elif name in {"background", "background-color"}:
        yield "background-color", value
        if name == "background":
            yield "background-image", value if "(" in value and not value.startswith(("rgb", "hsl")) else "none"
    else:
        yield ("overflow" if name.startswith("overflow") else name), value


@lru_cache(maxsize=16)
def parse_sheet(css: str) -> tuple[Rule, ...]:
    """The rules of a sheet that apply on a screen and may hide or show text."""
    return tuple(_rules(tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True), False, "", 0))


def _rules(nodes: Iterable[Any], in_layer: bool, parents: str, depth: int) -> Iterator[Rule]:
    for node in nodes if depth < MOST_NESTED else ():
        if node.type == "qualified-rule":
            held = _parts(node.content)
            selectors = list(_selectors(node.prelude, parents))
            if declared := _declared(held):
                yield from (Rule(*selector, declared, in_layer) for selector in selectors)
            inner = [part for part in held if part.type in {"qualified-rule", "at-rule"}]
            yield from _rules(inner, in_layer, ", ".join(text for text, _ in selectors), depth + 1)
        elif node.type == "at-rule" and node.content is not None:
            name, condition = node.lower_at_keyword, tinycss2.serialize(node.prelude).strip().lower()
            applies = (name == "media" and _on_screen(condition)) or name == "layer"
            if applies or (name == "supports" and not condition.startswith("not")):
                yield from _rules(_parts(node.content), in_layer or name == "layer", parents, depth + 1)


def _selectors(prelude: list[Any], parents: str) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """The selectors of a rule; pseudo-elements hold no text of the page."""
    for tokens in _split(prelude):
        text = tinycss2.serialize(tokens).strip()
        if not text or "::" in text:
            continue
        if parents and len(parents) + len(text) < 2_000:
            text = text.replace("&", f":is({parents})") if "&" in text else f":is({parents}) {text}"
        yield text, _specificity(tokens)


def _split(tokens: list[Any]) -> list[list[Any]]:
    """The tokens between commas."""
    parts = groupby(tokens, key=lambda token: token.type == "literal" and token.value == ",")
    return [list(part) for is_comma, part in parts if not is_comma]


def _specificity(tokens: list[Any]) -> tuple[int, int, int]:
    ids = classes = names = 0
    before = ""
    for token in tokens:
        if token.type == "hash":
            ids += 1
        elif token.type == "[] block" or (token.type == "ident" and before in {".", ":"}):
            classes += 1
        elif token.type == "ident":
            names += 1
        elif token.type == "function" and token.lower_name in {"is", "not", "has"}:
            inner = max(map(_specificity, _split(token.arguments)), default=(0, 0, 0))
            ids, classes, names = ids + inner[0], classes + inner[1], names + inner[2]
        elif token.type == "function" and token.lower_name != "where":
            classes += 1
        before = token.value if token.type == "literal" else ""
    return ids, classes, names


_FEATURE = re.compile(r"\(\s*([\w-]+)\s*(?::\s*([^()]*?))?\s*\)")
_RANGE = re.compile(r"\(\s*(width|height)\s*([<>]=?)\s*([\d.]+)\s*(px|em|rem)?\s*\)")
_SETTINGS = {
    "prefers-color-scheme": "light", "prefers-reduced-motion": "no-preference", "hover": "hover", "pointer": "fine",
    "any-hover": "hover", "any-pointer": "fine", "orientation": "landscape", "scripting": "enabled", "color": "",
    "forced-colors": "none", "prefers-contrast": "no-preference",
}  # fmt: skip


def _on_screen(queries: str) -> bool:
    """Whether a list of media queries applies to an ordinary screen; an empty one always does."""
    return not queries.strip() or any(_query_holds(query.strip()) for query in queries.lower().split(","))


def _query_holds(query: str) -> bool:
    negated = query.startswith("not ")
    query = query.removeprefix("not ").removeprefix("only ").strip()
    kind = query.split("(")[0].removesuffix("and ").split()
    if kind and kind[0] not in {"all", "screen", "and", "or"}:
        return negated
    tests = [_in_range(*match.groups()) for match in _RANGE.finditer(query)]
    tests += [_feature_holds(match[1], match[2] or "") for match in _FEATURE.finditer(query)]
    return (any(tests) if " or " in query else all(tests)) != negated


def _in_range(side: str, sign: str, value: str, unit: str | None) -> bool:
    size = float(value) * (16 if unit in {"em", "rem"} else 1) if value.count(".") < 2 else 0.0
    return SCREEN[side] <= size if sign.startswith("<") else SCREEN[side] >= size


def _feature_holds(name: str, value: str) -> bool:
    side = name.removeprefix("min-").removeprefix("max-").removeprefix("device-")
    number = re.match(r"([\d.]+)\s*(px|em|rem)?", value)
    if side in SCREEN and number:
        return _in_range(side, "<" if name.startswith("max-") else ">", number[1], number[2])
    return name in _SETTINGS and (not value or _SETTINGS[name] in {"", value.strip()})
