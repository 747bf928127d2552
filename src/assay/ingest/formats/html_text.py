"""Converts a tree of HTML elements to text with sections: paragraphs, list items, table rows. Used for every kind of HTML.

The walk uses an explicit stack, because a page may be nested deeper than Python's recursion limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.core.printable import tidy_whitespace
from assay.ingest.formats.table import BarTable
from assay.ingest.formats.text import TextBuilder

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(
    "address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure footer form "
    "header hgroup hr html legend li main menu nav ol p pre section summary table tbody td tfoot th thead tr ul caption "
    "optgroup h1 h2 h3 h4 h5 h6".split()
)
_SKIPPED = frozenset(
    "script style template noscript head iframe object embed svg canvas audio video map select datalist input textarea "
    "button annotation annotation-xml rp".split()
)
_INDENTS = {"li": 2, "dd": 4}  # so that what belongs to an item or a term is seen to be below it
_WIDEST = 24
BLANKS = re.compile(r"[ \t\n\r\f]+")


def walk(root: LexborNode, enter: Callable[[LexborNode], bool], leave: Callable[[LexborNode], object]) -> None:
    """Visit a node and all below it, in order; the children of a node only if `enter` returns true for it."""
    node: LexborNode | None = root
    entering = True
    while node is not None:
        if entering and enter(node) and (child := node.child) is not None:
            node = child
            continue
        leave(node)
        if node.mem_id == root.mem_id:
            break
        following = node.next
        node, entering = (following, True) if following is not None else (node.parent, False)


def write_tree(root: LexborNode, out: TextBuilder, below: int = 0) -> None:
    """Append all text under `root`; headings become sections, `below` levels deeper than their own level."""
    writer = _HtmlWriter(out, below)
    walk(root, writer.enter, writer.leave)
    writer.flush()


@dataclass(slots=True)
class _HtmlWriter:
    out: TextBuilder
    below: int
    inline: list[str] = field(default_factory=list)
    tables: list[bool] = field(default_factory=list)  # per open table: a data table, or a layout table
    table: BarTable | None = None  # the open data table
    row: list[tuple[str, int, int, bool]] = field(default_factory=list)  # per cell: text, columns, rows, is it a header
    lists: int = 0
    item: bool = False  # a list item is open that has no text yet
    indents: list[int] = field(default_factory=list)  # per open list item or description
    gap: str = "\n\n"
    pre: int = 0

    def enter(self, node: LexborNode) -> bool:
        """Enter an element; false if its children must be skipped."""
        tag = node.tag
        if tag == "-text":
            text = node.text_content or ""
            self.inline.append(text if self.pre else BLANKS.sub(" ", text))
            return False
        if tag in _SKIPPED or tag is None or tag.startswith(("-comment", "!")):
            return False
        if tag == "br":
            self.inline.append("\n")
        elif tag in _BLOCKS:
            self._open(tag, node)
        return True

    def leave(self, node: LexborNode) -> None:
        tag = node.tag
        if tag not in _BLOCKS:
            return
        if tag in _HEADINGS and self.table is None:
            words = self._taken()
            # A long paragraph marked up as a heading is a paragraph.
            if len(words) <= 250:
                self.out.heading(words, _HEADINGS[tag] + self.below)
            else:
                self.out.block(words)
            self.gap = "\n\n"
            return
        if tag in {"td", "th"} and self.table is not None:
            text = self._taken().replace("\n", " ")
            self.row.append((text, _span(node, "colspan"), _span(node, "rowspan"), tag == "th"))
            return
        if tag == "caption" and self.table is not None:
            self.table.caption = self._taken().replace("\n", " ")
            self.out.block(self.table.caption, self.gap)
            self.gap = "\n"
            return
        self.flush()
        if tag == "tr" and self.table is not None and self.tables[-1] and self.row:
            texts, spans, down, heads = zip(*self.row, strict=True)
            in_head = node.parent is not None and node.parent.tag == "thead"
            headed = in_head or all(head for text, head in zip(texts, heads, strict=True) if text)
            self.table.gap, self.row = self.gap, []
            self.table.write(texts, spans=spans, down=down, head=headed)
            self.gap = self.table.gap
        elif tag == "table" and self.tables:
            if self.tables.pop() and self.table is not None:
                self.table.close()
                self.table = None
            self.gap = "\n\n"
        elif tag in {"ul", "ol", "dl"}:
            self.lists = max(0, self.lists - 1)
            self.gap = "\n" if self.lists else "\n\n"
        elif tag == "pre":
            self.pre = max(0, self.pre - 1)
        elif tag in _INDENTS:
            self.item = False
            self.indents.pop()
            self.gap = "\n"

    def flush(self) -> None:
        """Write the collected text as one paragraph, list item or, in a table, part of a cell."""
        if self.table is not None:
            if self.inline and not self.inline[-1].endswith((" ", "\n")):
                self.inline.append(" ")
            return
        text = self._taken()
        if text:
            indent = " " * min(sum(self.indents), _WIDEST)
            lines = text.replace("\n", "\n" + indent)
            if self.item:
                self.out.block("- " + lines, self.gap + indent[2:])
            else:
                self.out.block(lines, self.gap + indent)
            self.item = False
            self.gap = "\n" if self.lists else "\n\n"

    def _open(self, tag: str, node: LexborNode) -> None:
        self.flush()
        if tag == "table":
            self.tables.append(self.table is None and _holds_data(node))
            if self.tables[-1]:
                self.row = []
                self.table = BarTable(self.out, self.out.last_lines())
            self.gap = "\n\n"
        elif tag in {"ul", "ol", "dl"}:
            self.lists += 1
        elif tag in _INDENTS:
            self.item = tag == "li"
            self.indents.append(_INDENTS[tag])
        elif tag == "pre":
            self.pre += 1
        elif tag == "p" and not self.lists:
            self.gap = "\n\n"

    def _taken(self) -> str:
        text = "".join(self.inline)
        self.inline.clear()
        return text.strip("\n").rstrip() if self.pre else tidy_whitespace(text)


def _span(cell: LexborNode, name: str) -> int:
    value = (cell.attributes.get(name) or "").strip()
    return min(int(value), 1000) if value.isdigit() and int(value) else 1


def _holds_data(table: LexborNode) -> bool:
    """Whether a table has rows and columns of short cells; one with headings, other tables or long text is for layout."""
    if table.css_first("table table, h1, h2, h3, h4") is not None:
        return False
    rows = table.css("tr")
    cells = table.css("td, th")
    if len(cells) <= len(rows):
        return table.css_first("th") is not None
    return len(table.text()) / len(cells) < 600


MOST = 2_000  # nested elements; browsers stop at 512
TAG = re.compile(r"<(/?)([a-zA-Z][^\s/<>]*+)[^<>]*+>")
# Void elements, and those whose end tag is optional: they do not nest by themselves.
FLAT = frozenset(
    "area base br col embed hr img input link meta param source track wbr p li dt dd tr td th option optgroup thead tbody "
    "tfoot colgroup caption rb rt rtc rp".split()
)


def limit_depth(source: str) -> str:
    """The same page with at most `MOST` nested elements."""
    if source.count("<") <= MOST:
        return source
    kept: list[str] = []
    depth = dropped = at = 0
    for tag in TAG.finditer(source):
        if tag[2].lower() in FLAT or tag[0].endswith("/>"):
            continue
        if not tag[1]:
            depth += 1
            flat = depth > MOST
            dropped += flat
        else:
            flat = dropped > 0
            dropped -= flat
            depth = max(0, depth - 1)
        if flat:
            kept += (source[at : tag.start()], " ")
            at = tag.end()
    return "".join((*kept, source[at:])) if kept else source


_HEADED = frozenset("h1 h2 h3 h4 h5 h6 dt caption figcaption summary".split())
_AROUND = 4  # elements between a link and its heading, and around a heading, that may carry its id
_EDIT = ".mw-editsection"  # MediaWiki: `[edit]` beside a heading


def remove_permalinks(tree: LexborHTMLParser) -> None:
    """Remove links that lead to their own heading, unless they are all that it says."""
    for node in tree.css(_EDIT):
        node.decompose(recursive=False)  # unlinked, not freed: one may be within another
    found: dict[int, tuple[LexborNode, list[LexborNode]]] = {}
    for link in tree.css("a[href*='#']"):
        heading = next((node for node in _above(link) if node.tag in _HEADED), None)
        if heading is not None and _leads_to(link, heading):
            found.setdefault(heading.mem_id, (heading, []))[1].append(link)
    for heading, links in found.values():
        signs = [link for link in links if not _letters(link)]
        says_more = _letters(heading) > sum(map(_letters, links))
        for link in links if says_more else signs:
            link.decompose(recursive=False)


def _leads_to(link: LexborNode, heading: LexborNode) -> bool:
    """Whether a link is a mere sign, or its target is itself, its heading or an element directly around that."""
    target = (link.attributes.get("href") or "").rpartition("#")[2]
    ids = (node.attributes.get("id") for node in (link, *_above(link), heading, *_above(heading)))
    return not _letters(link) or (bool(target) and target in ids)


def _above(node: LexborNode) -> list[LexborNode]:
    found: list[LexborNode] = []
    above = node.parent
    while above is not None and len(found) < _AROUND:
        found.append(above)
        above = above.parent
    return found


def _letters(node: LexborNode) -> int:
    return sum(map(str.isalnum, node.text()))
