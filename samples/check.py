"""Checks that every evidence sentence of `questions.jsonl` stands in one of the documents named for it.

    python samples/check.py

Reads the documents with plain means, not with the product's own parsers. Line breaks and hyphens at line ends
do not count. In tables the evidence is the text of one cell.
"""

from __future__ import annotations

import csv
import email
import email.policy
import json
import re
import sys
import zipfile
from email.message import EmailMessage
from pathlib import Path
from xml.etree import ElementTree

import pypdfium2
from openpyxl import load_workbook
from pptx import Presentation
from selectolax.lexbor import LexborHTMLParser

HERE = Path(__file__).resolve().parent
KINDS = {"single", "multi", "set", "compare", "unanswerable", "ambiguous", "conflict"}
FIELDS = {"id", "question", "kind", "answer", "documents", "evidence"}
JUDGED = {"answers", "all_of", "must_not"}  # what `assay evaluate qa` looks for
BLOCKS = {"p", "h1", "h2", "li", "tr"}


def pdf(path: Path) -> str:
    pages = (page.get_textpage().get_text_range() for page in pypdfium2.PdfDocument(path))
    return re.sub("\ufffe\\s*", "", "\f".join(pages))  # how pdfium writes a hyphen at a line end


def html(path: Path) -> str:
    tree = LexborHTMLParser(path.read_text(encoding="utf-8"))
    for node in tree.css("[hidden], nav, script, style"):
        node.decompose()
    return tree.body.text(separator=" ")


def xml(data: bytes) -> str:
    parts: list[str] = []
    for element in ElementTree.fromstring(data).iter():
        if element.tag.rsplit("}", 1)[-1] in BLOCKS:
            parts.append("\n")
        parts.append(element.text or "")
    return "".join(parts)


def archive(path: Path, pattern: str) -> str:
    with zipfile.ZipFile(path) as members:
        assert members.testzip() is None
        return "\n".join(xml(members.read(name)) for name in members.namelist() if re.fullmatch(pattern, name))


def pptx(path: Path) -> str:
    parts: list[str] = []
    for slide in Presentation(str(path)).slides:
        parts += [shape.text_frame.text for shape in slide.shapes if shape.has_text_frame]
        parts.append(slide.notes_slide.notes_text_frame.text if slide.has_notes_slide else "")
    return "\n".join(parts)


def xlsx(path: Path) -> str:
    book = load_workbook(path)
    return "\n".join(str(cell) for sheet in book for row in sheet.iter_rows(values_only=True) for cell in row)


def eml(path: Path) -> str:
    message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    parts = (part.get_content() for part in message.walk() if part.get_content_maintype() == "text")
    return re.sub(r"^> ?", "", "\n".join(parts), flags=re.MULTILINE)


READERS = {
    ".pdf": pdf,
    ".html": html,
    ".docx": lambda path: archive(path, r"word/document\.xml"),
    ".epub": lambda path: archive(path, r"OEBPS/chapter-\d+\.xhtml"),
    ".pptx": pptx,
    ".xlsx": xlsx,
    ".eml": eml,
    ".csv": lambda path: "\n".join(
        cell for row in csv.reader(path.read_text(encoding="utf-8").splitlines()) for cell in row
    ),
    ".md": lambda path: path.read_text(encoding="utf-8"),
    ".txt": lambda path: path.read_text(encoding="utf-8"),
}


def squeeze(text: str) -> str:
    return " ".join(text.split())


def main() -> int:
    texts = {path.name: squeeze(READERS[path.suffix](path)) for path in sorted((HERE / "corpus").iterdir())}
    for name, text in texts.items():
        print(f"{len(text.split()):>6} words  {name}")
    lines = (HERE / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line) for line in lines]
    wrong: list[str] = []
    if len({question["id"] for question in questions}) != len(questions):
        wrong.append("an id is used twice")
    without_text = {name for name, text in texts.items() if not text}
    if without_text != {"inspection-record-brackwell-1998.pdf", "field-notes-to-follow.txt"}:
        wrong.append(f"documents without text: {sorted(without_text)}")
    for question in questions:
        name = question["id"]
        if set(question) - JUDGED != FIELDS or question["kind"] not in KINDS:
            wrong.append(f"{name}: fields or kind")
        if not question["documents"] and question["kind"] != "unanswerable":
            wrong.append(f"{name}: no documents")
        held = {
            document: [s for s in question["evidence"] if s in texts[document]] for document in question["documents"]
        }
        wrong += [f"{name}: no evidence in {document}" for document, found in held.items() if not found]
        found = {sentence for sentences in held.values() for sentence in sentences}
        wrong += [f"{name}: not found: {sentence}" for sentence in question["evidence"] if sentence not in found]
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(texts)} documents, {len(questions)} questions, {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
