"""Finds text that a page contains but does not show on a screen, because instructions to a model are hidden there.

Text that a sheet outside the file might colour differently is kept, and so is a closed `details`, which a reader opens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from assay.ingest.formats.html_styles import Styles, declarations, page_styles
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
    return bool(_removed(own) or _look(own, {}, "", _Look(), foreign=False).hidden)


def remove_hidden(tree: LexborHTMLParser) -> Pruned:
    """Remove from the tree what a reader would not see."""
    styles = page_styles(tree)
    gone: list[LexborNode] = []
    hidden: list[HiddenText] = []
    depth = 0
    looks = [_Look()]  # of each open element
    node = tree.root
    entering = True
    while node is not None and looks:
        if entering:
            how, look = _enter(node, looks[-1], styles, tree)
            if how is not None:
                gone.append(node)
                text = (node.text_content or "") if node.tag == "-text" else _text(node)
                if how and text.strip():
                    hidden.append(HiddenText(text, how))
            elif (child := node.first_child) is not None:
                looks.append(look)
                depth = max(depth, len(looks))
                node = child
                continue
        if (following := node.next) is not None:
            node, entering = following, True
        else:
            node, entering = node.parent, False
            looks.pop()
    # Only after the walk, and never a node inside another: a removed node must not be touched again.
    for node in gone:
        node.decompose()
    return Pruned(tuple(hidden), depth, styles.cut_short)


def _text(node: LexborNode) -> str:
    """The text of a hidden element; that of a template is in fragments of its own."""
    if node.tag == "template":
        return " ".join(re.sub(r"<[^<>]*+>", " ", node.html or "").split())
    return " ".join(part.text_content or "" for part in node.traverse(include_text=True) if _is_prose(part))


def _is_prose(node: LexborNode) -> bool:
    return node.tag == "-text" and (node.parent is None or node.parent.tag not in _NOT_TEXT)


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
    look = _look(own, attributes, tag, around, styles.foreign)
    if _waits_for_scripts(node, tag, tree):
        return None, replace(look, visible=True)
    return _removed(own) or None, look


def _waits_for_scripts(node: LexborNode, tag: str, tree: LexborHTMLParser) -> bool:
    """Whether the element is the whole page, which some pages hide until their scripts have run."""
    if tag in {"main", "article"}:
        return tree.body is not None and 2 * len(node.text()) > len(tree.body.text())
    return tag in {"html", "body"}


def _filled(value: str, variables: Mapping[str, str]) -> str:
    for _ in range(4):
        if "var(" not in value or len(value) > 2_000:
            break
        value = re.sub(
            r"var\(\s*(--[\w-]+)\s*(?:,([^()]*))?\)", lambda match: variables.get(match[1], match[2] or ""), value
        )
    return value.strip()


def _look(own: dict[str, str], attributes: Mapping[str, str | None], tag: str, around: _Look, foreign: bool) -> _Look:
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


def _ground(
    own: dict[str, str], attributes: Mapping[str, str | None], around: Colour | None, foreign: bool
) -> Colour | None:
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
    from tinycss2 import color4

    if not value:
        return None
    found: Any = color4.parse_color(value)
    if found is None or isinstance(found, str):
        return None
    try:
        shown = found.to("srgb") if found.space != "srgb" else found
    except (NotImplementedError, ValueError):
        return None
    return tuple(255 * (part or 0.0) for part in shown.coordinates), shown.alpha


def _font_size(declared: str, around: float) -> float:
    match = _LENGTH.match(declared)
    if match is None:
        return around if declared in {"", "inherit", "unset", "smaller", "larger"} else 16.0
    units = {**_PIXELS, "em": around, "%": around / 100}
    return float(match[1]) * units.get(match[2] or "px", 1)


def _removed(own: dict[str, str]) -> str:
    """How an element is hidden with everything in it; empty if it is not."""
    if not own:
        return ""
    if own.get("display") == "none" or own.get("mso-hide") == "all" or own.get("content-visibility") == "hidden":
        return NOT_DISPLAYED  # mso-hide: in e-mails
    if _share(own.get("opacity")) <= 0.05 or re.search(r"opacity\(\s*0(?:\.0\d*)?%?\s*\)", own.get("filter", "")):
        return TRANSPARENT
    if _pixels(own.get("text-indent")) <= -_FAR or _pixels(own.get("margin-left")) <= -_FAR or _is_moved_away(own):
        return OFF_THE_PAGE
    if re.search(r"scale[xy3d]*\(\s*0(?:\.0+)?\s*[,)]|rotate[xy]\(\s*-?90deg", own.get("transform", "")):
        return SMALL
    if re.match(r"0(?:\.0+)?(?:\s|$)", own.get("scale", "")) or re.fullmatch(r"0(?:\.0+)?%?", own.get("zoom", "")):
        return SMALL
    return CUT_OFF if _is_cut_off(own) else ""


def _is_moved_away(own: dict[str, str]) -> bool:
    if re.search(r"translate[xy3d]*\([^()]*-\d{4,}", own.get("transform", "")) or re.search(
        r"-\d{4,}", own.get("translate", "")
    ):
        return True
    if own.get("position") not in {"absolute", "fixed", "relative"}:
        return False
    edges = [_pixels(own.get(edge)) for edge in ("left", "top", "right", "bottom", "margin-left", "margin-top")]
    return min(edges) <= -_FAR or max(edges[:2]) >= _FAR_AFTER


def _is_cut_off(own: dict[str, str]) -> bool:
    if re.search(
        r"inset\(\s*(?:50|100)%|(?:circle|ellipse)\(\s*0(?:px|%)?\s*[)a0]|polygon\(\s*0[^,()]*\)",
        own.get("clip-path", ""),
    ):
        return True
    if own.get("position") in {"absolute", "fixed"} and re.search(
        r"rect\(\s*[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01]", own.get("clip", "")
    ):
        return True
    sides = (own.get(side) for side in ("width", "height", "max-width", "max-height"))
    return own.get("overflow", "").split(" ")[0] in {"hidden", "clip"} and min(map(_pixels, sides)) <= 1


def _share(value: str | None) -> float:
    match = _LENGTH.match(value or "")
    return (float(match[1]) / (100 if match[2] == "%" else 1)) if match else 1.0


def _pixels(value: str | None) -> float:
    """A length in pixels, roughly; anything else counts as a length that hides nothing."""
    match = _LENGTH.match(value or "")
    return float(match[1]) * _PIXELS.get(match[2] or "px", 1) if match else 100.0
