"""Scans that the program tesseract reads, where the extra `ocr` is not there; otherwise the person learns what to install."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from assay.ingest.parsed import FileLimits, Parsed, Status, Unreadable
from assay.ingest.pdf import ocr
from assay.ingest.pdf.reader import OpenPdf
from assay.ingest.sandbox.runner import Sandbox, missing_guards
from assay.ingest.scan import SeenPage, scanned_boxes

TABLE = """level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext
1\t1\t0\t0\t0\t0\t0\t0\t1000\t2000\t-1\t
5\t1\t1\t1\t1\t1\t100\t200\t200\t40\t96.5\tEvidence
5\t1\t1\t1\t1\t2\t320\t200\t150\t40\t91.0\tbe-
5\t1\t1\t1\t2\t1\t100\t260\t150\t40\t90.0\tfore
5\t1\t1\t1\t2\t2\t260\t260\t150\t40\t3.0\t~|~
5\t1\t1\t2\t1\t1\t100\t400\t150\t40\t88.0\tWriting.
"""


def scan(pages: int = 1, words: str = "Evidence before writing") -> bytes:
    """A PDF whose pages are pictures of words."""
    drawn = io.BytesIO()
    canvas = Canvas(drawn, pagesize=A4)
    canvas.setFont("Helvetica", 28)
    canvas.drawString(80, 700, words)
    canvas.save()
    picture = OpenPdf().page_image(drawn.getvalue(), 1, 2.0)
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4)
    for _ in range(pages):
        canvas.drawImage(ImageReader(io.BytesIO(picture)), 0, 0, *A4)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


@pytest.fixture
def sandbox():
    with Sandbox(FileLimits(seconds=60)) as made:
        yield made


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put a program called tesseract on the path that does what the test says; nothing else reads scans."""
    monkeypatch.setattr(ocr, "find_spec", lambda _: None)

    def install(body: str) -> None:
        program = tmp_path / "tesseract"
        program.write_text(f"#!{Path(sys.executable).resolve()}\nimport sys, time\n{body}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    return install


async def test_without_the_extra_the_status_says_what_to_install(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ocr, "find_tesseract", lambda: None)
    monkeypatch.setattr(ocr, "find_spec", lambda _: None)
    answer = await ocr.OcrReader(sandbox).read(scan(), "scan.pdf")
    assert isinstance(answer, Unreadable) and answer.status is Status.scanned and "assay[ocr]" in answer.why


async def test_a_document_with_text_never_meets_the_program(sandbox: Sandbox, pretend) -> None:
    pretend("raise SystemExit(3)")
    answer = await ocr.OcrReader(sandbox).read(b"Some plain text.", "note.txt")
    assert isinstance(answer, Parsed) and answer.text == "Some plain text."


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="needs a script that can be run")
async def test_a_scan_becomes_text_with_pages_and_boxes(sandbox: Sandbox, pretend) -> None:
    pretend(f"assert sys.stdin.buffer.read(4) == b'\\x89PNG'\nsys.stdin.buffer.read()\nsys.stdout.write({TABLE!r})")
    data = scan(pages=2)
    parsed = await ocr.OcrReader(sandbox).read(data, "scan.pdf")
    assert isinstance(parsed, Parsed)
    assert parsed.text == "Evidence before\n\nWriting.\n\nEvidence before\n\nWriting."
    assert parsed.pages == (0, parsed.text.index("Evidence", 5)) and parsed.meta["ocr"] == "eng"
    assert any("OCR" in warning for warning in parsed.warnings)
    start = parsed.text.rindex("before")
    boxes = scanned_boxes(parsed.scan, start, start + 6)
    assert [(box.page, box.x0, box.y0) for box in boxes] == [(2, 0.32, 0.1), (2, 0.1, 0.13)]


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="needs a script that can be run")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (
            "sys.stdin.buffer.read()\nsys.stderr.write('Error opening data file xyz.traineddata')\nraise SystemExit(1)",
            Status.unsupported,
        ),
        ("sys.stdin.buffer.read()\nraise SystemExit(139)", Status.crashed),
        ("sys.stdin.buffer.read()\ntime.sleep(60)", Status.too_slow),
        ("sys.stdin.buffer.read()\nprint('nonsense')", Status.empty),
    ],
)
async def test_whatever_the_program_does_is_a_status(
    sandbox: Sandbox, pretend, monkeypatch: pytest.MonkeyPatch, body: str, status: Status
) -> None:
    monkeypatch.setattr(ocr, "PAGE_SECONDS", 3.0)
    pretend(body)
    answer = await ocr.OcrReader(sandbox).read(scan(), "scan.pdf")
    assert isinstance(answer, Unreadable) and answer.status is status


def test_a_language_is_a_code_and_nothing_else(pretend) -> None:
    pretend("raise SystemExit(0)")
    answer = ocr.run_tesseract(b"", 1, "eng --tessdata-dir /etc", FileLimits())
    assert isinstance(answer, Unreadable) and answer.status is Status.unsupported


def test_words_that_are_hardly_read_are_left_out() -> None:
    assert [word.text for word in ocr.parse_table(TABLE, 1).words] == ["Evidence", "be-", "fore", "Writing."]


@pytest.mark.long
@pytest.mark.skipif(ocr.find_tesseract() is None, reason="the tesseract program is not installed here")
async def test_the_real_program_reads_a_scan(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "find_spec", lambda _: None)
    parsed = await ocr.OcrReader(sandbox).read(scan(), "scan.pdf")
    assert isinstance(parsed, Parsed) and "Evidence before writing" in parsed.text


@pytest.mark.skipif(not sys.platform.startswith("linux") or bool(missing_guards()), reason="this system lacks guards")
async def test_a_program_that_was_taken_over_reads_and_writes_nothing(
    sandbox: Sandbox, pretend, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("words")
    tries = [
        f"open('{tmp_path}/secret').read()",
        f"open('{tmp_path}/made', 'w')",
        "socket.create_connection(('127.0.0.1', 9), 1)",
    ]
    lines = [
        f"try:\n    {each}\n    done += 'done'\nexcept OSError as e:\n    done += f'no{{e.errno}},'" for each in tries
    ]
    row = "5\\t1\\t1\\t1\\t1\\t1\\t1\\t1\\t1\\t1\\t99\\t"
    page = "1\\t1\\t0\\t0\\t0\\t0\\t0\\t0\\t9\\t9\\t-1\\t"
    said = f"print('head'); print('{page}'); print('{row}' + done)"
    pretend("\n".join(["import socket", "sys.stdin.buffer.read()", "done = ''", *lines, said]))
    seen = ocr.run_tesseract(b"", 1, "eng", FileLimits())
    assert isinstance(seen, SeenPage), seen
    assert seen.words[0].text in {
        "no13,no13,no13,",
        "no13,no13,no101,",
        "no13,no13,no1,",
    }  # Landlock; or no network at all
