"""Files that are larger than their limits: what was read within them is kept, and what is missing is said."""

from __future__ import annotations

import io
import time
import zipfile
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from assay.ingest.formats import plain, xlsx
from assay.ingest.formats.table import first_rows
from assay.ingest.formats.text import TextBuilder
from assay.ingest.parsed import FileLimits, Parsed
from assay.ingest.pdf import reader
from assay.ingest.sandbox.runner import Sandbox
from assay.workspace.facade import open_workspace

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATIONS = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
LATE = FileLimits(seconds=9.0, until=1e-9)


def sheet(rows: int, columns: int) -> bytes:
    """A workbook with as many cells, stored without compression."""
    cells = "".join(
        f"<row>{''.join(f'<c><v>{row * columns + at}</v></c>' for at in range(columns))}</row>" for row in range(rows)
    )
    relation = f'<Relationships {RELATIONS}><Relationship Id="r1" Type="{OFFICE}/%s" Target="%s"/></Relationships>'
    parts = {
        "_rels/.rels": relation % ("officeDocument", "xl/workbook.xml"),
        "xl/_rels/workbook.xml.rels": relation % ("worksheet", "worksheets/sheet1.xml"),
        "xl/workbook.xml": f'<workbook {MAIN} xmlns:r="{OFFICE}"><sheets><sheet name="S" r:id="r1"/></sheets></workbook>',
        "xl/worksheets/sheet1.xml": f"<worksheet {MAIN}><sheetData>{cells}</sheetData></worksheet>",
    }  # fmt: skip
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return out.getvalue()


def csv(rows: int, columns: int) -> bytes:
    return "".join(",".join(str(row * columns + at) for at in range(columns)) + "\n" for row in range(rows)).encode()


@pytest.mark.parametrize(("parse", "data"), [(xlsx.parse, sheet(100, 10)), (plain.parse_delimited, csv(100, 10))])
def test_of_a_table_with_too_many_cells_the_first_ones_are_read(parse, data: bytes) -> None:
    whole = parse(data, "a", FileLimits(cells=1_000))
    assert "999" in whole.text and not whole.warnings
    part = parse(data, "a", FileLimits(cells=500))
    assert "499" in part.text and "500" not in part.text
    [said] = part.warnings
    assert "first 500 cells" in said and "file_max_cells" in said


@pytest.mark.long
@pytest.mark.parametrize("name", ["million.xlsx", "million.csv"])
async def test_a_sheet_with_a_million_cells_ends_within_its_limits(name: str) -> None:
    data = (sheet if name.endswith("xlsx") else csv)(100_000, 10)
    limits = FileLimits(seconds=60.0)
    with Sandbox(limits) as sandbox:
        began = time.monotonic()
        answer = await sandbox.read(data, name)
        assert time.monotonic() - began < 2 * limits.seconds
    assert isinstance(answer, Parsed) and any("cells were read" in said for said in answer.warnings)


def test_what_there_was_no_time_for_is_said() -> None:
    out = io.BytesIO()
    canvas = Canvas(out)
    for page in range(3):
        canvas.drawString(100, 700, f"Page {page} of the log.")
        canvas.showPage()
    canvas.save()
    part = reader.read(out.getvalue(), LATE)
    assert any("0 of its 3 pages were read" in said and "9 seconds" in said for said in part.warnings)
    whole = reader.read(out.getvalue(), FileLimits(seconds=9.0).timed())
    assert not whole.warnings and "Page 2" in whole.built.text


def test_a_parser_that_runs_late_returns_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = iter([["a", "b"], ["1", "2"], ["3", "4"], ["5", "6"]])
    out = TextBuilder("csv", FileLimits(seconds=9.0, until=5.0))
    clock = iter([1.0, 2.0, 6.0, 6.0, 6.0])
    monkeypatch.setattr("assay.ingest.parsed.time.process_time", lambda: next(clock))
    assert list(first_rows(rows, out)) == [["a", "b"], ["1", "2"]]
    [said] = out.warnings
    assert "Only the beginning was read" in said and "9 seconds" in said


@pytest.mark.long
async def test_of_a_file_with_too_many_passages_the_first_ones_can_be_searched(tmp_path: Path) -> None:
    paragraphs = [
        f"Entry {number}. " + "The keeper writes of the sea and of the weather. " * 12 for number in range(30)
    ]
    (tmp_path / "log.txt").write_text("\n\n".join(paragraphs))
    with open_workspace(tmp_path / "workspace", create=True, file_max_passages=5) as opened:
        report = await opened.add([tmp_path / "log.txt"])
        [file] = report.files
        assert file.passages == 5 and file.status == "read"
        assert any("first 5 of its" in said and "file_max_passages" in said for said in file.warnings)
        [entry] = opened.documents.listing()
        assert entry.passages == 5 and entry.warnings == file.warnings
