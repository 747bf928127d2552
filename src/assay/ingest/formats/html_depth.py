"""Limits the nesting depth of markup before it is parsed, since a parser scans all open elements at every tag. Text is never
changed, and neither is a page of ordinary depth.
"""

from __future__ import annotations

import re

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
