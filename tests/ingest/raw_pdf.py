"""Writes small PDF files from page operators, for what no library would draw: hidden layers, clips, texts under boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

FONT = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def stream(content: str | bytes, entries: str = "") -> bytes:
    data = content.encode("latin-1") if isinstance(content, str) else content
    return f"<< {entries} /Length {len(data)} >>\nstream\n".encode("latin-1") + data + b"\nendstream"


def raw_pdf(
    content: str | Sequence[str],
    resources: str = "",
    objects: Mapping[int, str | bytes] | None = None,
    page: str = "/MediaBox [0 0 595 842]",
    catalog: str = "",
) -> bytes:
    """A PDF with a page for each content. `objects` are further objects, numbered from 10; the font is /F1."""
    pages = [content] if isinstance(content, str) else list(content)
    numbers = [100 + 2 * at for at in range(len(pages))]
    made: dict[int, str | bytes] = {
        1: f"<< /Type /Catalog /Pages 2 0 R {catalog} >>",
        2: f"<< /Type /Pages /Count {len(pages)} /Kids [{' '.join(f'{number} 0 R' for number in numbers)}] >>",
        3: FONT,
        **(objects or {}),
    }
    for number, drawn in zip(numbers, pages, strict=True):
        held = f"/Resources << /Font << /F1 3 0 R >> {resources} >>"
        made[number] = f"<< /Type /Page /Parent 2 0 R {page} {held} /Contents {number + 1} 0 R >>"
        made[number + 1] = stream(drawn)
    out, places = bytearray(b"%PDF-1.7\n"), {}
    for number, body in sorted(made.items()):
        places[number] = len(out)
        out += (
            f"{number} 0 obj\n".encode() + (body.encode("latin-1") if isinstance(body, str) else body) + b"\nendobj\n"
        )
    start, size = len(out), max(made) + 1
    out += f"xref\n0 {size}\n0000000000 65535 f \n".encode()
    for number in range(1, size):
        out += f"{places[number]:010} 00000 n \n".encode() if number in places else b"0000000000 65535 f \n"
    out += f"trailer << /Root 1 0 R /Size {size} >>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(out)


def words(text: str, x: float = 72, y: float = 400, size: float = 11, before: str = "") -> str:
    """Operators that write a line of text; `before` are operators inside the text object."""
    return f"BT /F1 {size} Tf {before} 1 0 0 1 {x} {y} Tm ({text}) Tj ET\n"
