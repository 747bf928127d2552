"""Removes from the headings of a page what leads to them: permalinks (`#`, `¶`, `§`, "Permalink") and links to edit them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_HEADED = frozenset("h1 h2 h3 h4 h5 h6 dt caption figcaption summary".split())
_AROUND = 4  # elements between a link and its heading, and around a heading, that may carry its id
_EDIT = ".mw-editsection"  # MediaWiki: `[edit]` beside a heading


def remove_permalinks(tree: LexborHTMLParser) -> None:
    """Remove links that lead to their own heading, unless they are all that it says."""
    for node in tree.css(_EDIT):
        node.decompose(recursive=False)  # unlinked, not freed: one may be within another
    found: dict[int, tuple[LexborNode, list[LexborNode]]] = {}
    for link in tree.css("a[href*='#']"):
        if (heading := _heading_of(link)) is not None and _leads_to(link, heading):
            found.setdefault(heading.mem_id, (heading, []))[1].append(link)
    for heading, links in found.values():
        signs = [link for link in links if not _letters(link)]
        says_more = _letters(heading) > sum(map(_letters, links))
        for link in links if says_more else signs:
            link.decompose(recursive=False)


def _heading_of(link: LexborNode) -> LexborNode | None:
    return next((node for node in _above(link) if node.tag in _HEADED), None)


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
