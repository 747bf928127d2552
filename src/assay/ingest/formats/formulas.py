"""Formulas in Office files as one line of text: `E = mc^2`, `(a)/(b)`, `√(x)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.ingest.formats.archive import attribute, child, local_name

if TYPE_CHECKING:
    from lxml.etree import _Element as Element


def formula(element: Element | None) -> str:
    """The formula under an element; parts without a linear form are written one after the other."""
    if element is None:
        return ""
    name = local_name(element)
    if name == "t":
        return element.text or ""
    if name.endswith("Pr"):
        return ""
    part = {local_name(found): formula(found) for found in element if local_name(found) in _PARTS}
    if name == "f":
        return f"{_grouped(part.get('num', ''))}/{_grouped(part.get('den', ''))}"
    if name in {"sSup", "sSub", "sSubSup", "sPre"}:
        below = f"_{_grouped(part['sub'])}" if part.get("sub") else ""
        above = f"^{_grouped(part['sup'])}" if part.get("sup") else ""
        return part.get("e", "") + below + above
    if name == "rad":
        return f"{part.get('deg', '')}√({part.get('e', '')})"
    if name == "d":
        sign = child(element, "dPr", "begChr")
        opening = attribute(sign, "val") if sign is not None else "("
        closing = {"(": ")", "[": "]", "{": "}", "|": "|"}.get(opening, "")
        return opening + ", ".join(formula(found) for found in element if local_name(found) == "e") + closing
    if name == "nary":
        sign = child(element, "naryPr", "chr")
        below, above = part.get("sub", ""), part.get("sup", "")
        limits = (f"_{_grouped(below)}" if below else "") + (f"^{_grouped(above)}" if above else "")
        return f"{attribute(sign, 'val') if sign is not None else '∫'}{limits} {part.get('e', '')}"
    if name == "func":
        return f"{part.get('fName', '')} {part.get('e', '')}"
    if name == "mr":
        return ", ".join(formula(found) for found in element) + "; "
    return "".join(formula(found) for found in element)


_PARTS = frozenset({"num", "den", "e", "sub", "sup", "deg", "fName"})


def _grouped(text: str) -> str:
    return text if len(text) <= 1 or text.isalnum() else f"({text})"
