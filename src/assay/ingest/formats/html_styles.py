"""The styles that a page's own sheets give to its elements on a screen: tinycss2 parses them, lexbor matches the selectors.

Scripts are not run, and sheets outside the file are not read.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from math import factorial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

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
    selectors: tuple[tuple[str, tuple[int, int, int]], ...]  # with their specificity
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


def page_styles(tree: LexborHTMLParser) -> Styles:
    found = Styles()
    found.foreign = any("stylesheet" in (link.attributes.get("rel") or "").lower() for link in tree.css("link[rel]"))
    sheets = [node.text() for node in tree.css("style") if _on_screen(node.attributes.get("media") or "")]
    if not any(sheets):
        return found
    nodes, depth = _extent(tree)
    left, until, order = MOST_CSS, time.process_time() + MOST_SECONDS, 0
    for sheet in sheets:
        found.cut_short |= len(sheet) > left
        found.foreign |= "@import" in sheet
        for rule in parse_sheet(sheet[: max(0, left)]):
            for selector, specificity in rule.selectors:
                order += 1
                if time.process_time() > until or _steps(selector, nodes, depth) > MOST_STEPS:
                    found.cut_short = True
                else:
                    _apply(tree, selector, specificity, rule, order, found)
        left -= len(sheet)
    return found


def _apply(
    tree: LexborHTMLParser, selector: str, specificity: tuple[int, int, int], rule: Rule, order: int, found: Styles
) -> None:
    from selectolax.lexbor import SelectolaxError

    try:
        matched = tree.css(selector)
    except SelectolaxError:  # a browser ignores a selector that it does not know, too
        return
    entries = {
        name: ((important, rule.in_layer == important, specificity, order), value)
        for name, (value, important) in rule.declared.items()
    }
    for node in matched:
        own = found.elements.setdefault(node.mem_id, {})
        for name, entry in entries.items():
            if name not in own or own[name][0] <= entry[0]:
                own[name] = entry


def _extent(tree: LexborHTMLParser) -> tuple[int, int]:
    """How many elements the page has, and how deep they are nested."""
    nodes = depth = deepest = 0
    node, entering = tree.root, True
    while node is not None:
        if entering:
            nodes += 1
            if (child := node.first_child) is not None:
                depth += 1
                deepest = max(deepest, depth)
                node = child
                continue
        following = node.next
        node, entering = (following, True) if following is not None else (node.parent, False)
        depth -= not entering
    return nodes, deepest


def _steps(selector: str, nodes: int, depth: int) -> float:
    """At worst every way to place the parts of a selector among the ancestors of an element is tried."""
    spread = len(re.findall(r"(?<![\s>+~,(])\s+(?![\s>+~,)])|~|:has\(", selector))
    return nodes * float(depth) ** min(spread, 40) / factorial(min(spread, 40)) + len(selector)


# --- sheets ---------------------------------------------------------------------------------------------------------


def declarations(style: str) -> Declared:
    """`color: Red !important; top:0` → {"color": ("red", True), "top": ("0", False)}, with shorthands taken apart."""
    import tinycss2

    return _declared(tinycss2.parse_blocks_contents(style, skip_comments=True, skip_whitespace=True))


def _declared(nodes: Iterable[Any]) -> Declared:
    import tinycss2

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
        if 1 <= len(parts) <= 4:
            sides = (parts[0], parts[1 % len(parts)], parts[2 % len(parts) if len(parts) != 3 else 2], parts[-1])
            sides = (*sides[:3], parts[3] if len(parts) == 4 else sides[1])
            prefix = "margin-" if name == "margin" else ""
            yield from ((prefix + edge, side) for edge, side in zip(_EDGES, sides, strict=True))
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
    import tinycss2

    return tuple(_rules(tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True), False, "", 0))


def _rules(nodes: Iterable[Any], in_layer: bool, parents: str, depth: int) -> Iterator[Rule]:
    import tinycss2

    for node in nodes if depth < MOST_NESTED else ():
        if node.type == "qualified-rule":
            held = tinycss2.parse_blocks_contents(node.content, skip_comments=True, skip_whitespace=True)
            selectors = tuple(_selectors(node.prelude, parents))
            if selectors and (declared := _declared(held)):
                yield Rule(selectors, declared, in_layer)
            inner = [part for part in held if part.type in {"qualified-rule", "at-rule"}]
            if inner:
                yield from _rules(inner, in_layer, ", ".join(text for text, _ in selectors), depth + 1)
        elif node.type == "at-rule" and node.content is not None:
            name, condition = node.lower_at_keyword, tinycss2.serialize(node.prelude).strip().lower()
            applies = (name == "media" and _on_screen(condition)) or name == "layer"
            if applies or (name == "supports" and not condition.startswith("not")):
                held = tinycss2.parse_blocks_contents(node.content, skip_comments=True, skip_whitespace=True)
                yield from _rules(held, in_layer or name == "layer", parents, depth + 1)


def _selectors(prelude: list[Any], parents: str) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """The selectors of a rule; pseudo-elements hold no text of the page."""
    import tinycss2

    for tokens in _split(prelude):
        text = tinycss2.serialize(tokens).strip()
        if not text or "::" in text:
            continue
        if parents and len(parents) + len(text) < 2_000:
            text = text.replace("&", f":is({parents})") if "&" in text else f":is({parents}) {text}"
        yield text, _specificity(tokens)


def _split(tokens: list[Any]) -> Iterator[list[Any]]:
    part: list[Any] = []
    for token in tokens:
        if token.type == "literal" and token.value == ",":
            yield part
            part = []
        else:
            part.append(token)
    yield part


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


# --- media ----------------------------------------------------------------------------------------------------------

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
