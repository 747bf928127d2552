"""Files that tests send: PDFs with known words on known pages, and a client's way to wait until they are read."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import httpx
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas
from serving import until

Files = Sequence[tuple[str, bytes]]


def pdf(*pages: Sequence[str], head: str = "") -> bytes:
    """A PDF with these lines on its pages; `head` stands on top of each of them."""
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4, invariant=True)
    for lines in pages:
        if head:
            canvas.drawString(72, 810, head)
        for number, line in enumerate(lines):
            canvas.drawString(72, 760 - 16 * number, line)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def send(client: httpx.Client, files: Files, base: str = "default") -> httpx.Response:
    return client.post(f"/api/bases/{base}/documents", files=[("files", each) for each in files])


def job(client: httpx.Client, name: str) -> dict[str, Any]:
    return client.get(f"/api/jobs/{name}").json()


def read(client: httpx.Client, files: Files, base: str = "default") -> dict[str, Any]:
    """Send these files and wait until they are read: the job as it then stands."""
    sent = send(client, files, base)
    assert sent.status_code == 202, sent.text
    name = sent.json()["id"]
    until(lambda: job(client, name)["state"] not in {"waiting", "running"}, 60)
    return job(client, name)


def listed(client: httpx.Client, **query: Any) -> list[dict[str, Any]]:
    return client.get("/api/documents", params=query).json()["documents"]
