"""Files that are made to harm: archives and XML that grow, links that lead elsewhere, sheets and pages beyond all measure."""

from __future__ import annotations

import io
import os
import resource
import time
import zipfile
import zlib
from pathlib import Path

import pytest

from assay.core.errors import UserError
from assay.ingest.formats import archive
from assay.ingest.formats.detect import read
from assay.ingest.formats.html_text import limit_depth
from assay.ingest.parsed import FileLimits, Parsed, Refused, Status, Unreadable
from assay.ingest.sandbox.runner import Sandbox
from assay.ingest.sources import find_sources

SOAK = bool(os.environ.get("ASSAY_SOAK"))
NAMES = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
WORD = f'<w:document xmlns:w="{NAMES}"><w:body><w:p><w:r><w:t>{{}}</w:t></w:r></w:p></w:body></w:document>'


def zipped(members: list[tuple[str, bytes]], compress: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compress) as file:
        for name, data in members:
            file.writestr(zipfile.ZipInfo(name), data, compress)
    return made.getvalue()


def outcome(data: bytes, name: str, limits: FileLimits | None = None) -> str:
    """The words that were read, or what it was refused as."""
    try:
        return read(data, name, limits or FileLimits()).text
    except Refused as refused:
        assert "\n" not in refused.why
        return refused.status


# --- archives and XML -----------------------------------------------------------------------------------------------


def test_an_archive_that_says_it_is_small_is_read_no_further_than_it_says():
    """The directory says ten bytes; what is packed is ten million."""
    good = zipped([("word/document.xml", b"x" * 10_000_000)])
    at = good.rindex(b"PK\x01\x02") + 24
    lying = good[:at] + (10).to_bytes(4, "little") + good[at + 4 :]
    assert outcome(lying, "x.docx") == Status.corrupt
    opened = archive.open_archive(lying, FileLimits())
    with pytest.raises((zipfile.BadZipFile, EOFError, zlib.error)):
        opened.read("word/document.xml")


def test_an_archive_in_an_archive_in_an_archive_is_not_opened():
    inner = zipped([("a.txt", b"0" * 1_000_000)])
    for _ in range(20):
        inner = zipped([("inner.zip", inner)])
    assert outcome(inner, "x.zip") in {Status.unsupported, Status.corrupt, Status.too_large}
    assert (
        outcome(zipped([("word/document.xml", WORD.format("Seen.").encode()), ("x.zip", inner)]), "x.docx") == "Seen."
    )


def test_names_in_an_archive_lead_nowhere_and_of_two_alike_one_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    members = [(name, b"evil") for name in ("/assay-evil", "../../assay-evil", "C:\\assay-evil", "a/../../assay-evil")]
    members += [
        ("word/document.xml", WORD.format("First.").encode()),
        ("word/document.xml", WORD.format("Last.").encode()),
    ]
    assert outcome(zipped(members), "x.docx") in {"First.", "Last."}
    assert not list(tmp_path.parent.rglob("assay-evil")) and not Path("/assay-evil").exists()


@pytest.mark.parametrize("before", ["", f"<!-- {'x' * 70_000} -->"])
@pytest.mark.parametrize("used", ["&l9;", "&l1;", "&file;"])
def test_entities_never_grow_wherever_they_are_defined(before: str, used: str):
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'{before}<!DOCTYPE x [<!ENTITY l0 "ha">{laughs}<!ENTITY file SYSTEM "file:///etc/passwd">]>'
    begun = time.thread_time()
    words = outcome(zipped([("word/document.xml", (bomb + WORD.format(used)).encode())]), "x.docx")
    assert time.thread_time() - begun < 1.0
    assert len(words) < 1_000 and "root:" not in words and "haha" not in words


def test_more_members_than_any_document_has_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archive, "_MEMBERS", 50)
    members = [("word/document.xml", WORD.format("Seen.").encode()), *((f"word/{n}.xml", b"") for n in range(60))]
    assert outcome(zipped(members), "x.docx") == Status.too_large


def pdf_behind(blanks: int) -> bytes:
    """A page that says something behind so many megabytes of blanks, which are packed a thousandfold."""
    pack = zlib.compressobj(9)
    stream = b"".join(pack.compress(b" " * 1_000_000) for _ in range(blanks))
    stream += pack.compress(b"BT /F 12 Tf 72 700 Td (Seen.) Tj ET") + pack.flush()
    font = b"/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]%s/Contents 4 0 R>>" % font
    parts = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count 1/Kids[3 0 R]>>", page]
    parts.append(b"<</Filter/FlateDecode/Length %d>>stream\n%s\nendstream" % (len(stream), stream))
    objects = b"".join(b"%d 0 obj%s\nendobj\n" % (n, part) for n, part in enumerate(parts, 1))
    return b"%PDF-1.4\n" + objects + b"trailer<</Root 1 0 R>>"


@pytest.mark.skipif(not SOAK, reason="takes a while")
@pytest.mark.parametrize(("memory", "told"), [(4_000_000_000, "Seen."), (1_000_000_000, Status.out_of_memory)])
def test_a_pdf_whose_page_unpacks_to_a_gigabyte_is_read_or_refused_as_its_limits_say(memory: int, told: str):
    with Sandbox(FileLimits(memory=memory, seconds=20.0)) as sandbox:
        large, next_one = (sandbox.read_now(pdf_behind(blanks), "x.pdf") for blanks in (1_000, 1))
    assert (large.status if isinstance(large, Unreadable) else large.text) == told
    assert isinstance(next_one, Parsed) and next_one.text == "Seen."  # whatever became of the one before it


# --- large ones -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", ["div", "b", "table><tr><td", "ul><li"] if SOAK else ["div"])
@pytest.mark.parametrize("closed", [False, True])
def test_a_page_nested_200_000_deep_is_read_in_its_time(tag: str, closed: bool):
    end = "".join(f"</{each}>" for each in reversed(tag.split("><"))) * 200_000 if closed else ""
    begun = time.thread_time()
    words = outcome(f"<p>Seen.</p>{f'<{tag}>' * 200_000}deep{end}<p>After.</p>".encode(), "x.html")
    assert time.thread_time() - begun < 8.0
    item = ["-"] if "li" in tag else []  # one mark, however many lists it is in
    assert (
        words.split() == ["Seen.", *item, "deep", "After."] and len(words) < 100
    )  # lists are set in, but not by 200,000


def test_a_page_that_somebody_would_write_is_left_as_it_is():
    rows = "".join(f"<tr><td><b>{n}</b><br><p>x<td>y" for n in range(3_000))
    page = f"<div><ul>{'<li>item' * 3_000}</ul><table>{rows}</table>{'<div><span>a</span></div>' * 3_000}</div>"
    assert limit_depth(page) == page


def test_a_sheet_of_a_million_cells_is_read_or_refused_within_its_limits():
    wide = 1_000 if SOAK else 100
    rows = b"".join(b",".join(b"%d" % (n * k) for k in range(wide)) + b"\n" for n in range(1_000))
    begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert outcome(rows, "x.csv")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - begun < 3_000_000  # kilobytes


# --- links ----------------------------------------------------------------------------------------------------------


def test_links_that_go_in_a_circle_or_lead_out_of_the_folder_are_passed_over(tmp_path: Path):
    folder, outside = tmp_path / "notes", tmp_path / "private"
    folder.mkdir(), outside.mkdir()
    (folder / "own.txt").write_text("Mine.")
    (outside / "secret.txt").write_text("Not to be read.")
    (folder / "circle").symlink_to(folder)
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    (folder / "out").symlink_to(outside)
    (folder / "secret.txt").symlink_to(outside / "secret.txt")
    (folder / "gone.txt").symlink_to(tmp_path / "nothing")
    (folder / "again.txt").symlink_to(folder / "own.txt")
    os.mkfifo(folder / "pipe.txt")
    assert [Path(each.uri).name for each in find_sources([folder])] == ["own.txt"]
    assert [Path(each.uri).name for each in find_sources([folder / "secret.txt"])] == [
        "secret.txt"
    ]  # who names it means it
    with pytest.raises(UserError):
        find_sources([folder / "a"])
