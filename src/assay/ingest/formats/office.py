"""Office formats by name, for the dispatcher: each lives in a file of its own and is imported when it is needed."""

from __future__ import annotations

from assay.ingest.parsed import Limits, Parsed


def docx(data: bytes, name: str, limits: Limits) -> Parsed:
    from assay.ingest.formats.ooxml.docx import parse

    return parse(data, name, limits)


def pptx(data: bytes, name: str, limits: Limits) -> Parsed:
    from assay.ingest.formats.ooxml.pptx import parse

    return parse(data, name, limits)


def xlsx(data: bytes, name: str, limits: Limits) -> Parsed:
    from assay.ingest.formats.ooxml.xlsx import parse

    return parse(data, name, limits)


def csv(data: bytes, name: str, limits: Limits) -> Parsed:
    from assay.ingest.formats.delimited import parse

    return parse(data, name, limits)
