"""Selects the main content of a page, without menus, advertisements and footers: by trafilatura."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.etree import _Element as Element
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_SURROUNDINGS = "nav, aside, footer, form, [role=navigation], [role=contentinfo]"
_MENU = 0.7  # of the text of a table
_LINKED = 0.1  # of the visible text; menus consist of links, prose does not
_ENTRIES, _LEADS = 5, 0.9  # links of a table of contents, and their share of its text
_NEARLY_ALL = 0.97  # of the blocks of the main content
_BLOCKS = "p, li, h1, h2, h3, h4, h5, h6, pre, td, th, dt, dd, blockquote"
_OPENING = 60  # characters by which a block is recognised
# The elements of trafilatura, with those of HTML.
_TAGS = {"list": "ul", "item": "li", "code": "pre", "quote": "blockquote", "lb": "br", "ref": "a", "row": "tr"}


def remove_menus(tree: LexborHTMLParser) -> None:
    """Remove menus, and lists that only lead to the parts of the page."""
    contents = [node for node in tree.css("ul, ol") if _is_contents(node)]
    for menu in (*tree.css(_SURROUNDINGS), *contents):
        menu.decompose(recursive=False)  # unlinked, not freed: there may be menus within menus


def _is_contents(node: LexborNode) -> bool:
    links = node.css("a[href^='#']")
    return len(links) >= _ENTRIES and sum(len(link.text().strip()) for link in links) > _LEADS * len(
        "".join(node.text().split())
    )


def has_surroundings(tree: LexborHTMLParser, length: int) -> bool:
    """Whether the page has anything beside its content: a report saved as HTML has no menus, and all of it counts."""
    if tree.css_first(_SURROUNDINGS) is not None:
        return True
    linked = sum(len(link.text()) for link in tree.css("a[href]:not([href^='#'])"))
    return linked > _LINKED * length


def main_content(tree: LexborHTMLParser) -> LexborHTMLParser | None:
    """The main content, by trafilatura; None if there is none. It gets only the page's characters, never a URL."""
    import logging

    from lxml.etree import tostring
    from selectolax.lexbor import LexborHTMLParser
    from trafilatura import bare_extraction

    page = LexborHTMLParser(tree.html or "")
    _flatten_cells(page)
    _flatten_code(page)
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    try:
        found = bare_extraction(page.html or "", include_formatting=True, include_comments=False)
        body = getattr(found, "body", None)
        if body is None:
            return None
        for element in body.iter("*"):
            element.tag = _html_tag(element)
        return LexborHTMLParser(tostring(body, encoding="unicode"))
    except MemoryError:
        raise
    except Exception:  # if the selection fails in any way, the visible text remains
        return None


def main_element(tree: LexborHTMLParser, content: LexborHTMLParser) -> LexborNode | None:
    """The smallest element of the page that holds nearly all blocks of its main content; None if only the whole page does.

    The content itself may lack nested lists and tables, which the element has."""
    selected = {opening for node in content.css(_BLOCKS) if (opening := _opening(node))}
    found: dict[int, int] = {}  # per element: the selected blocks in it
    total = 0
    for node in tree.css(_BLOCKS):
        if _opening(node) in selected:
            total += 1
            above = node.parent
            while above is not None:
                found[above.mem_id] = found.get(above.mem_id, 0) + 1
                above = above.parent
    element = tree.body
    inner = element
    while inner is not None:
        element = inner
        inner = next((node for node in element.iter() if found.get(node.mem_id, 0) > _NEARLY_ALL * total), None)
    return element if total and element is not None and element.tag not in {"body", "html"} else None


def _opening(node: LexborNode) -> str:
    return " ".join(node.text().split())[:_OPENING]


def _html_tag(element: Element) -> str:
    tag, kind = str(element.tag), element.get("rend") or ""
    if tag == "head" and kind in {"h1", "h2", "h3", "h4", "h5", "h6"}:
        return kind
    if tag == "list" and kind in {"ol", "dl"}:
        return kind
    if tag == "item" and kind[:3] in {"dt-", "dd-"}:
        return kind[:2]
    if tag == "cell":
        return "th" if element.get("role") == "head" else "td"
    return {"head": "h3", "hi": "span", **_TAGS}.get(tag, tag)


def _flatten_cells(tree: LexborHTMLParser) -> None:
    """Leave only text in the cells of tables: the selection of the main content drops lists and boxes inside a cell. Tables
    of links are menus, and stay as they are."""
    for table in tree.css("table"):
        linked = sum(len(link.text()) for link in table.css("a"))
        if table.css_first("table table") is not None or linked > _MENU * len(table.text()):
            continue
        for cell in table.css("td, th"):
            if cell.css_first("div, ul, ol, dl, p") is None:
                continue
            for item in cell.css("li + li, dd + dd"):
                item.insert_before(", ")
            for block in cell.css("div, p, br, ul, ol"):
                block.insert_before(" ")
            cell.inner_html = escape(" ".join(cell.text().split()).replace(" ,", ","))


def _flatten_code(tree: LexborHTMLParser) -> None:
    """Leave only text in blocks of code, and unmark code in running text: the selection takes every `code` for a block, and
    every other `pre` for a quotation."""
    for block in tree.css("pre"):
        for end in block.css("br, code + code"):
            end.insert_before("\n")
        block.inner_html = f"<code>{escape(block.text())}</code>"
    for words in tree.css(":not(pre) > code"):
        words.unwrap()
