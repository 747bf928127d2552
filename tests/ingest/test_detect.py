"""Which kind of file it is, by content first; and that nothing without text ever passes for read."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile

import pytest

from assay.core.formats import FORMATS, format_of_suffix
from assay.ingest.formats.detect import UNSUPPORTED, complete, detect_format, read
from assay.ingest.parsed import FileLimits, Parsed, Refused, Status
from assay.language.identify import identify_language

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def zipped(*names: str, content: bytes = b"<x/>", compress: int = zipfile.ZIP_DEFLATED, **named: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compress) as archive:
        for name in names:
            archive.writestr(name, content)
        for name, data in named.items():
            archive.writestr(name, data)
    return out.getvalue()


def kind(data: bytes, name: str = "file", limits: FileLimits | None = None) -> str:
    return detect_format(data, name, limits or FileLimits()).name


def refusal(data: bytes, name: str = "file", limits: FileLimits | None = None) -> Refused:
    with pytest.raises(Refused) as caught:
        detect_format(data, name, limits or FileLimits())
    assert caught.value.why.endswith(".")
    return caught.value


MAIL = (
    b"Received: by mx\r\nFrom: a@example.org\r\nTo: b@example.org\r\nMessage-ID: <1@x>\r\nSubject: Hi\r\n\r\nBody\r\n"
)


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    [
        (b"%PDF-1.7\n...", "paper.pdf", "pdf"),
        (b"\n\n%PDF-1.4\n...", "paper.txt", "pdf"),
        (zipped("[Content_Types].xml", "word/document.xml"), "letter.docx", "docx"),
        (zipped("[Content_Types].xml", "word/document.xml"), "letter.zip", "docx"),
        (zipped("[Content_Types].xml", "ppt/presentation.xml"), "talk.bin", "pptx"),
        (zipped("[Content_Types].xml", "xl/workbook.xml"), "table", "xlsx"),
        (zipped("META-INF/container.xml", mimetype=b"application/epub+zip"), "book", "epub"),
        (b"<!DOCTYPE html><p>Hello", "page.txt", "html"),
        (b"\xef\xbb\xbf <?xml version='1.0'?>\n<html><p>Hello", "page", "html"),
        (b"Hello there", "page.html", "html"),
        (MAIL, "note.txt", "email"),
        (MAIL, "note.eml", "email"),
        (b"From alice@example.org Mon Jan  1 00:00:00 2024\nSubject: x\n\nHi", "inbox", "email"),
        (b"From: the desk of Bob\nSubject: lunch\n\nHello", "note.txt", "text"),
        (b"a,b\n1,2\n", "table.csv", "csv"),
        (b"# Title\n\nText", "notes.md", "markdown"),
        (b"print('hi')\n", "script.py", "text"),
    ],
)
def test_content_decides_before_the_name(data: bytes, name: str, expected: str) -> None:
    assert kind(data, name) == expected


@pytest.mark.parametrize(
    ("data", "name", "status", "says"),
    [
        (b"", "x.pdf", Status.empty, "empty"),
        (b" \n\t\r\n", "x.txt", Status.empty, "empty"),
        (b"\x00" * 50, "x.txt", Status.empty, "empty"),
        (OLE + "EncryptedPackage".encode("utf-16-le") + b"\0\0", "x.docx", Status.encrypted, "password"),
        (OLE + "WordDocument".encode("utf-16-le") + b"\0\0", "x.doc", Status.unsupported, "DOCX"),
        (OLE + "Workbook".encode("utf-16-le") + b"\0\0", "x.xls", Status.unsupported, "XLSX"),
        (OLE + "PowerPoint Document".encode("utf-16-le") + b"\0\0", "x.ppt", Status.unsupported, "PPTX"),
        (OLE + "__properties_version1.0".encode("utf-16-le") + b"\0\0", "x.msg", Status.unsupported, "EML"),
        (OLE, "x", Status.unsupported, "Office"),
        (b"PK\x03\x04 and then nothing", "x.docx", Status.corrupt, "damaged"),
        (zipped("[Content_Types].xml", "docProps/app.xml"), "x.docx", Status.corrupt, "missing"),
        (zipped("a.txt", "b.txt"), "x.zip", Status.unsupported, "unpack"),
        (
            zipped("content.xml", mimetype=b"application/vnd.oasis.opendocument.text"),
            "x.odt",
            Status.unsupported,
            "DOCX",
        ),
        (b"GIF89a", "x.gif", Status.unsupported, "picture"),
        (b"hello", "x.png", Status.corrupt, "name says PNG"),
        (b"ID3\x04", "x.mp3", Status.unsupported, "sound"),
        (b"\x1f\x8b\x08", "x.gz", Status.unsupported, "archive"),
        (b"\x7fELF", "x", Status.unsupported, "program"),
        (b"{\\rtf1 hello}", "x.rtf", Status.unsupported, "DOCX"),
        (b"hello", "x.pdf", Status.corrupt, "name says PDF"),
        (b"hello", "x.docx", Status.corrupt, "name says DOCX"),
        (b"<?xml version='1.0'?><article/>", "x.xml", Status.unsupported, "XML"),
    ],
)
def test_what_cannot_be_read_says_what_to_do(data: bytes, name: str, status: Status, says: str) -> None:
    refused = refusal(data, name)
    assert refused.status is status and says in refused.why


def test_a_zip_bomb_is_seen_before_it_is_unpacked() -> None:
    bomb = zipped("word/document.xml", content=b"\0" * 30_000_000)
    assert len(bomb) < 100_000
    assert refusal(bomb, "x.docx").status is Status.too_large
    assert kind(bomb, "x.docx", FileLimits(expansion=10_000)) == "docx"
    stored = zipped("word/document.xml", content=b"\0" * 3_000_000, compress=zipfile.ZIP_STORED)
    assert refusal(stored, "x.docx", FileLimits(expanded_bytes=2_000_000)).status is Status.too_large


def test_a_locked_zip_is_encrypted() -> None:
    data = bytearray(zipped("word/document.xml"))
    data[6] |= 1  # the flag in the member's own header
    data[data.rindex(b"PK\x01\x02") + 8] |= 1  # and in the directory
    assert refusal(bytes(data)).status is Status.encrypted


def test_a_document_without_text_is_never_read() -> None:
    for text in ("", " \n\t ", "\n\n"):
        with pytest.raises(Refused) as caught:
            complete(Parsed(text, "text"), FileLimits())
        assert caught.value.status is Status.empty


def test_limits_hold_for_every_format() -> None:
    with pytest.raises(Refused) as caught:
        complete(Parsed("x" * 50, "text"), FileLimits(characters=49))
    assert caught.value.status is Status.too_large
    with pytest.raises(Refused) as caught:
        complete(Parsed("x y", "text", pages=(0, 1, 2)), FileLimits(pages=2))
    assert caught.value.status is Status.too_large
    with pytest.raises(Refused) as caught:
        read(b"x" * 50, "x.txt", FileLimits(bytes=49))
    assert caught.value.status is Status.too_large


def test_a_plain_text_is_read_with_its_language() -> None:
    text = "The cat sat on the mat, and it was not amused by what it saw from there."
    parsed = read(text.encode(), "cat.txt", FileLimits())
    assert parsed.text == text and parsed.language == "en"


def test_every_format_and_every_refusal_is_one_line_in_a_table() -> None:
    suffixes = [suffix for each in FORMATS for suffix in each.suffixes]
    assert len(suffixes) == len(set(suffixes)) and all(format_of_suffix(f"x{suffix}") for suffix in suffixes)
    assert all(why.endswith(".") for why, _, _ in UNSUPPORTED)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("The results of this study show that the method is better than those in use, and it is cheap.", "en"),
        ("Die Ergebnisse der Studie zeigen, dass das Verfahren besser ist als die, die man heute nutzt.", "de"),
        ("Les résultats de cette étude montrent que la méthode est plus rapide et qui ne coûte pas cher.", "fr"),
        ("Los resultados del estudio muestran que el método es mejor que los que se usan hoy en el país.", "es"),
        ("I risultati dello studio mostrano che il metodo è migliore di quelli in uso e non costa di più.", "it"),
        ("Os resultados do estudo mostram que o método é melhor do que os que se usam, e não é caro.", "pt"),
        ("De resultaten van het onderzoek laten zien dat de methode beter is dan wat er nu wordt gebruikt.", "nl"),
        ("Resultaten visar att metoden är bättre än det som används och att den inte kostar mer för dem.", "sv"),
        ("Wyniki badania pokazują, że metoda jest lepsza od tych, które są w użyciu, i nie jest droga.", "pl"),
        ("Bu çalışmanın sonuçları, yöntemin daha iyi olduğunu ve çok pahalı olmadığını gösteriyor ve bir ilk.", "tr"),
        ("研究结果表明，该方法比现在使用的方法更好，而且并不昂贵。", "zh"),
        ("この研究の結果は、その方法がより優れていることを示しています。", "ja"),
        ("이 연구의 결과는 그 방법이 더 낫다는 것을 보여준다.", "ko"),
        ("Результаты исследования показывают, что этот метод лучше.", "ru"),
        ("Результати дослідження показують, що цей метод є кращим і дешевшим.", "uk"),
        ("تظهر نتائج الدراسة أن هذه الطريقة أفضل من غيرها", "ar"),
        ("תוצאות המחקר מראות שהשיטה הזו טובה יותר", "he"),
        ("Τα αποτελέσματα της μελέτης δείχνουν ότι η μέθοδος είναι καλύτερη", "el"),
        ("ผลการศึกษาแสดงให้เห็นว่าวิธีนี้ดีกว่า", "th"),
        ("अध्ययन के परिणाम बताते हैं कि यह विधि बेहतर है", "hi"),
        ("12 34 56 78", None),
        ("ab", None),
        ("", None),
        ("foo bar baz qux quux corge grault garply waldo", None),
        (
            "Name, Role, Site\nAnders Aas, Operator, Ås\nOla V. Dahl, Operator, Nes\nIda Z. Gran, Engineer, Å i Lofoten",
            None,
        ),
        ("A. Novak\nV. Svoboda\nS. Dvorak\nZ. Cerny\nO. Prochazka", None),
        ("María de la Cruz\nJuan de los Ríos\nAna del Valle\nPedro de la Torre", None),
        ("Jan van de Berg\nPiet van der Meer\nEls de Vries\nKees in 't Veld", None),
        ("Write to ann@example.com, bo@example.com, or see www.example.com and docs.example.com", "en"),
        ("This is the first paragraph.", "en"),
        ("Porten ble åpnet ved middagstid, og vannet rant ned i det nederste bassenget av seg selv.", "no"),
        ("Porten blev åbnet ved middagstid, og vandet løb ned i det nederste bassin af sig selv.", "da"),
        ("Brána se otevřela v poledne a voda tekla do dolní nádrže po tři hodiny, jako by byla živá.", "cs"),
        ("Poarta a fost deschisă la prânz și apa a curs în bazinul de jos timp de trei ore.", "ro"),
        ("Pintu air dibuka pada tengah hari dan air mengalir ke kolam di bawah untuk tiga jam.", "id"),
        ("THE GATE WAS OPENED AT NOON, AND THE WATER RAN INTO THE LOWER BASIN FOR THREE HOURS.", "en"),
    ],
)
def test_a_language_is_told_by_its_script_and_small_words(text: str, code: str | None) -> None:
    assert identify_language(text) == code


def test_after_the_rehearsal_a_text_loads_nothing_more() -> None:
    script = (
        "import sys; from assay.ingest.formats.detect import read, rehearse; from assay.ingest.parsed import FileLimits;"
        "rehearse(); before = set(sys.modules);"
        "read(b'A title\\n\\nBy B. Reed, 2 May 2023\\n\\nA first sentence. And a second one.', 'x.txt', FileLimits().timed());"
        "print(*sorted(set(sys.modules) - before))"
    )
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "\n"
