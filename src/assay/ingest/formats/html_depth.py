"""Markup before it is parsed: elements nested beyond all measure are laid flat, since a parser looks through all that are open
at every tag. Words are never touched, and a page that anybody would write is left as it is."""

from __future__ import annotations

import re

MOST = 2_000  # elements inside each other; browsers stop at 512
TAG = re.compile(r"<(/?)([a-zA-Z][^\s/<>]*+)[^<>]*+>")
# Those that have no end, and those whose end nobody has to write: they do not nest by themselves.
FLAT = frozenset(
    "area base br col embed hr img input link meta param source track wbr p li dt dd tr td th option optgroup thead tbody "
    "tfoot colgroup caption rb rt rtc rp".split()
)


def limit_depth(source: str) -> str:
    """The same page with at most so many elements inside each other."""
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
