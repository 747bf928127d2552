"""CSV and TSV: the separator is detected, and every row repeats its column names."""

from __future__ import annotations

import csv
import io

from assay.core.printable import clean_text
from assay.ingest.formats.archive import refuse_damaged
from assay.ingest.formats.decode import decode
from assay.ingest.formats.table import first_rows, write_rows
from assay.ingest.formats.text_builder import TextBuilder, too_long
from assay.ingest.parsed import FileLimits, Parsed

_SEPARATORS = ",;\t|"


def parse(data: bytes, name: str, limits: FileLimits) -> Parsed:
    text = clean_text(decode(data))
    if len(text) > limits.characters:
        raise too_long(limits)
    out = TextBuilder("csv", limits)
    title = ""
    with refuse_damaged("CSV"):
        csv.field_size_limit(max(len(text), 131_072))
        separator = separator_of(text)
        # `sep=;` in the first line is an instruction to Excel, not a row.
        body = text.split("\n", 1)[-1] if text[:4].lower() == "sep=" else text
        if separator:
            rows = csv.reader(io.StringIO(body), delimiter=separator)
            title = write_rows(first_rows(rows, out), out, always_named=True)
        else:
            out.block("\n".join(line.strip().strip('"') for line in body.splitlines() if line.strip()))
    return out.parsed(title=title, empty="The table is empty; check that it was exported.")


def separator_of(text: str) -> str:
    """The separator that gives the most rows of equal width, more than one column; empty if there is none."""
    if text[:4].lower() == "sep=" and text[4:5]:
        return text[4]
    sample = "\n".join(text[:50_000].splitlines()[:100])
    scored: dict[str, tuple[float, int]] = {}
    for separator in _SEPARATORS:
        try:
            widths = [len(row) for row in csv.reader(io.StringIO(sample), delimiter=separator) if row]
        except csv.Error:
            continue
        if widths and (usual := max(set(widths), key=lambda width: (widths.count(width), width))) > 1:
            scored[separator] = (widths.count(usual) / len(widths), usual)
    best = max(scored, key=lambda separator: scored[separator], default="")
    return best if best and scored[best][0] > 0.3 else ""
