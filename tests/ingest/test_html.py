"""Web pages: the content a reader sees, its headings, what the page says of itself, and nothing hidden."""

from __future__ import annotations

import socket

import pytest

from assay.ingest.formats import html
from assay.ingest.metadata import file_fields
from assay.ingest.parsed import FileLimits, Parsed, Refused, Status

PROSE = (
    "The river rose in the night, and nobody in the village had ever seen it so high. By the morning the old stone "
    "bridge was gone, and with it the only road to the market town on the other side of the valley. "
)


def read(page: str | bytes) -> Parsed:
    parsed = html.parse(page.encode() if isinstance(page, str) else page, "page.html", FileLimits())
    assert [parsed.text[s.start : s.end] for s in parsed.sections] == [s.title for s in parsed.sections]
    return parsed


def body(inside: str, head: str = "") -> str:
    return f"<!doctype html><html lang='en-GB'><head>{head}</head><body>{inside}</body></html>"


def test_headings_are_sections_and_lists_and_tables_are_text():
    parsed = read(
        body(
            "<h1>Rivers</h1><p>Two   of\nthem.</p><h2>Names</h2><ul><li>Rhine<ul><li>Upper</li></ul></li><li>Rhône</li></ul>"
            "<table><tr><th>River</th><th>km</th></tr><tr><td>Rhine</td><td>1233</td></tr></table><pre>a\n  b</pre>"
        )
    )
    assert [(s.level, s.title) for s in parsed.sections] == [(1, "Rivers"), (2, "Names")]
    assert parsed.text == (
        "Rivers\n\nTwo of them.\n\nNames\n\n- Rhine\n  - Upper\n- Rhône\n\nRiver | km\nRhine | 1233\n\na\n  b"
    )


@pytest.mark.parametrize(
    "heading",
    [
        "<h3><code>fs.readFile(path)</code><span><a class='mark' href='#x' id='x'>#</a></span><a id='old'></a></h3>",  # Node
        "<section id='x'><h3><code>fs.readFile(path)</code><a class='headerlink' href='#x'>¶</a></h3></section>",
        "<h3 class='anchor' id='x'>fs.<wbr>readFile(path)<a class='hash-link' href='#x' title='Link'>\u200b</a></h3>",
        "<h3 id='x'>fs.readFile(path)<a class='headerlink' href='#x' title='Permanent link'>&para;</a></h3>",  # MkDocs
        "<div><h3>fs.readFile(path)</h3><a class='anchor' href='#x'><svg></svg></a></div>",  # GitHub
        "<h3 class='memtitle'><span class='permalink'><a href='#x'>&#9670;&#160;</a></span>fs.readFile(path)</h3>",  # Doxygen
        "<h3><span id='x'>fs.readFile(path)</span><span class='mw-editsection'>[<a href='/w?action=edit'>edit</a>]</span></h3>",
        "<div><h3>fs.readFile(path)</h3><span class='mw-editsection'>[<a href='/w'>Bearbeiten</a>]</span></div>",
        "<h3 id='x'>fs.readFile(path) <a href='#x'>Permalink</a></h3>",
        "<h3 id='x'><a href='#x'>fs.readFile(path)</a></h3>",  # AsciiDoc
        "<h3 id='x'><a class='anchor' href='#x'>§</a><a href='#x'>fs.readFile(path)</a></h3>",
    ],
)
def test_a_permalink_is_no_part_of_its_heading(heading: str):
    parsed = read(body(f"<h2>Files</h2>{heading}<p>{PROSE}</p>"))
    assert [section.title for section in parsed.sections] == ["Files", "fs.readFile(path)"]
    assert parsed.text == f"Files\n\nfs.readFile(path)\n\n{PROSE.strip()}"


def test_a_link_to_another_place_stays_in_its_heading():
    parsed = read(body(f"<h2 id='a'>Rivers, and <a href='#lakes'>lakes</a></h2><p>{PROSE}</p>"))
    assert parsed.sections[0].title == "Rivers, and lakes"


MENU = "<nav>" + "".join(f"<a href='/{n}'>Menu entry {n}</a> " for n in range(30)) + "</nav>"


def test_code_in_a_heading_and_in_a_sentence_stays_there_in_an_article():
    inside = "".join(
        f"<h2><code>open_{n}()</code></h2><p>Call <code>open_{n}</code> first. {2 * PROSE}</p>" for n in range(4)
    )
    parsed = read(body(f"{MENU}<article><h1>Gates</h1>{inside}</article>"))
    assert "Menu entry" not in parsed.text
    assert [section.title for section in parsed.sections][-4:] == ["open_0()", "open_1()", "open_2()", "open_3()"]
    assert "\n\nCall open_2 first. The river rose" in parsed.text


def test_a_handbook_beside_a_menu_keeps_nested_lists_tables_and_descriptions():
    inside = "".join(
        f"<h2>Gate {n}</h2><p>{PROSE}</p><ul><li><code>level</code> <b>number</b><ul><li>in metres {n}</li></ul></li>"
        f"</ul><dl><dt>--lift</dt><dd>Lift gate {n}.</dd></dl><pre>lift  {n}\n  now</pre>"
        for n in range(8)
    )
    parsed = read(body(f"{MENU}<div id='page'><h1>Gates</h1>{inside}</div><footer>Imprint</footer>"))
    assert "Menu entry" not in parsed.text and "Imprint" not in parsed.text
    assert "- level number\n  - in metres 3\n\n--lift\n    Lift gate 3.\n\nlift  3\n  now" in parsed.text


def test_a_description_is_indented_below_its_term():
    parsed = read(
        body(
            "<dl><dt>-v<a href='#v'>¶</a></dt><dd><p>Say more.</p><p>Or less.</p></dd><dt>-q</dt><dd>Be quiet.</dd></dl>"
        )
    )
    assert parsed.text == "-v\n    Say more.\n    Or less.\n-q\n    Be quiet."


def test_menus_and_footers_are_left_out_of_an_article():
    menu = "<nav>" + "".join(f"<a href='/{n}'>Menu entry {n}</a> " for n in range(30)) + "</nav>"
    paragraphs = [f"<p>On day {n} of that year it was worse. {PROSE}</p>" for n in range(11)]
    article = f"<article><h1>The flood</h1>{''.join(paragraphs[:8])}<h2>Later</h2>{''.join(paragraphs[8:])}</article>"
    parsed = read(body(menu + article + "<footer>Copyright Example Press</footer>"))
    assert "Menu entry" not in parsed.text and "Copyright" not in parsed.text
    assert parsed.text.count("The river rose") == 11
    assert "Later" in [section.title for section in parsed.sections]


def test_lists_and_boxes_in_the_cells_of_a_table_are_read_in_an_article():
    menu = "<nav>" + "".join(f"<a href='/{n}'>Menu entry {n}</a> " for n in range(30)) + "</nav>"
    table = (
        "<table><tr><th>Founders</th><td><div><ul><li><a href='/a'>Ada Lund</a></li><li>Bo Vik</li></ul></div></td></tr>"
        "<tr><th><div>Net income</div></th><td>4 million</td></tr><tr><th>Seat</th><td>Halden</td></tr></table>"
    )
    paragraphs = "".join(f"<p>On day {n} of that year it was worse. {PROSE}</p>" for n in range(11))
    parsed = read(body(f"{menu}<article><h1>The firm</h1>{table}{paragraphs}</article>"))
    assert "Founders | Ada Lund, Bo Vik\nNet income | 4 million" in parsed.text and "Menu entry" not in parsed.text


def test_a_report_without_menus_is_read_whole():
    rows = "".join(f"<tr><td>Item {n}</td><td>{n * 7}</td></tr>" for n in range(100))
    parsed = read(body(f"<div>Table 1. Costs</div><table>{rows}</table><div>Source: the ledger.</div>"))
    assert "Item 99 | 693" in parsed.text and parsed.text.endswith("Source: the ledger.")


@pytest.mark.parametrize(
    "hidden",
    [
        "<p hidden>SECRET</p>",
        "<p style='display: none'>SECRET</p>",
        "<p style='DISPLAY:NONE !important'>SECRET</p>",
        "<p style='visibility:hidden'>SECRET</p>",
        "<p style='mso-hide:all'>SECRET</p>",
        "<p style='content-visibility: hidden'>SECRET</p>",
        "<p style='filter: opacity(0)'>SECRET</p>",
        "<p style='clip-path: circle(0)'>SECRET</p>",
        "<p style='-webkit-text-fill-color: transparent'>SECRET</p>",
        "<p style='opacity:0'>SECRET</p>",
        "<span style='font-size:0px'>SECRET</span>",
        "<span style='font-size:1px'>SECRET</span>",
        "<div style='position:absolute;left:-9999px'>SECRET</div>",
        "<div style='text-indent:-5000px'>SECRET</div>",
        "<div style='height:0;overflow:hidden'>SECRET</div>",
        "<p style='color:#fff;background:#ffffff'>SECRET</p>",
        "<p style='color:white'>SECRET</p>",
        "<font color='#FFFFFF'>SECRET</font>",
        "<div style='background:black'><b style='color:rgb(0,0,0)'>SECRET</b></div>",
        "<p style='color:rgba(0,0,0,0)'>SECRET</p>",
        "<div class='ghost'>SECRET</div>",
        "<div style='display:none'><p style='display:block'>SECRET</p></div>",
        "<dialog>SECRET</dialog>",
        "<!-- SECRET -->",
        "<script>SECRET</script>",
        "<style>SECRET</style>",
        "<template>SECRET</template>",
        "<noscript>SECRET</noscript>",
        "<p title='SECRET'>x</p><img alt='SECRET'>",
    ],
)
def test_hidden_text_is_not_read(hidden):
    head = "<style>.ghost { display: none } @media print { .shown { display: none } }</style>"
    short = read(body(f"<p>Seen.</p>{hidden}<p class='shown'>Also seen.</p>", head))
    assert "SECRET" not in short.text
    assert "Seen." in short.text and "Also seen." in short.text
    long = read(body(f"<nav><a href='/'>Home</a></nav><article>{f'<p>{PROSE}</p>' * 10}{hidden}</article>", head))
    assert "SECRET" not in long.text and PROSE.strip() in long.text


@pytest.mark.parametrize(
    "shown",
    [
        "<p style='color:rgb(0,0,0)'>SHOWN</p>",
        "<div style='background:#003366'><p style='color:#fff'>SHOWN</p></div>",
        "<div class='dark'><p style='color:#fff'>SHOWN</p></div>",
        "<table bgcolor='navy'><tr><td bgcolor='#000080'><font color='white'>SHOWN</font></td></tr></table>",
        "<p style='background:url(x.png);color:white'>SHOWN</p>",
        "<p style='opacity:0.9;font-size:11px;left:-5px;position:absolute'>SHOWN</p>",
        "<p aria-hidden='true'>SHOWN</p>",
        "<p class='ghost' style='display:block'>SHOWN</p>",
    ],
)
def test_text_that_can_be_seen_is_read(shown):
    head = "<style>.dark { background: #222 } .ghost { display: none }</style>"
    assert "SHOWN" in read(body(f"<p>First.</p>{shown}", head)).text


def test_what_was_hidden_is_said():
    parsed = read(body("<p>Seen.</p><p style='display:none'>one two three four five six seven</p>"))
    assert parsed.warnings == ("Text that no reader sees was left out: 7 words (not displayed).",)


def test_title_authors_date_and_language_come_from_the_page_itself():
    head = (
        "<title>The flood | Example Press</title><meta name='author' content='Wrong Person'>"
        '<script type="application/ld+json">{"@graph":[{"@type":"NewsArticle","headline":"The flood",'
        '"datePublished":"2024-05-17T08:00:00+02:00","author":[{"@type":"Person","name":"Ada Obi"},{"name":"Ben Lund"}]}]}'
        "</script>"
    )
    parsed = read(body(f"<h1>The flood</h1><p>{PROSE}</p>", head))
    assert (parsed.title, parsed.authors, parsed.date, parsed.language) == (
        "The flood",
        ("Ada Obi", "Ben Lund"),
        "2024-05-17",
        "en",
    )


def test_scholarly_metadata_is_read():
    head = "".join(
        f"<meta name='{name}' content='{content}'>"
        for name, content in [
            ("citation_title", "Rivers at night"),
            ("citation_author", "Obi, Ada"),
            ("citation_author", "Lund, Ben"),
            ("citation_publication_date", "2023/11"),
        ]
    )
    parsed = read(body("<p>Text.</p>", head))
    assert (parsed.title, parsed.authors, parsed.date) == ("Rivers at night", ("Obi, Ada", "Lund, Ben"), "2023-11")


@pytest.mark.parametrize(
    "page",
    [
        "<meta charset='windows-1251'><p>Река поднялась</p>".encode("cp1251"),
        "<meta http-equiv='Content-Type' content='text/html; charset=koi8-r'><p>Река поднялась</p>".encode("koi8-r"),
        "<meta charset='iso-8859-1'><p>Река поднялась</p>".encode(),  # says one thing, is another
        "<p>Река поднялась</p>".encode("utf-16"),
        "<?xml version='1.0' encoding='iso-8859-5'?><html><body><p>Река поднялась</p></body></html>".encode(
            "iso8859_5"
        ),
    ],
)
def test_the_declared_encoding_is_used_unless_the_bytes_say_otherwise(page):
    assert read(page).text == "Река поднялась"


def test_a_page_filled_in_by_scripts_is_refused_with_what_to_do():
    with pytest.raises(Refused) as refused:
        read(body("<div id='root'></div><script>render()</script>"))
    assert refused.value.status == Status.empty and "browser" in refused.value.why


def test_a_page_nested_without_end_is_still_read():
    assert "deep" in read("<div>" * 50_000 + "deep" + "</div>" * 50_000).text


def test_a_web_archive_is_read_like_the_page_it_holds():
    data = (
        b"From: <Saved by a browser>\r\nSubject: x\r\nMIME-Version: 1.0\r\n"
        b'Content-Type: multipart/related; type="text/html"; boundary="B"\r\n\r\n--B\r\nContent-Type: text/html\r\n'
        b"Content-Transfer-Encoding: quoted-printable\r\n\r\n<p>The river =C3=BCber all.</p>\r\n--B--\r\n"
    )
    assert read(data).text == "The river über all."


def test_reading_a_page_opens_no_connection(monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    links = "<nav><a href='http://example.org/next'>next</a></nav><img src='http://example.org/a.png'>"
    assert read(
        body(links + f"<article>{f'<p>{PROSE}</p>' * 10}</article>", "<link rel='canonical' href='http://example.org'>")
    )


@pytest.mark.parametrize(
    ("written", "iso"),
    [
        ("2024-05-17T08:00:00Z", "2024-05-17"),
        ("2024-05", "2024-05"),
        ("2024", "2024"),
        ("20240517", "2024-05-17"),
        ("17 May 2024", "2024-05-17"),
        ("May 17, 2024", "2024-05-17"),
        ("Friday, 17 May 2024", "2024-05-17"),
        ("May 2024", "2024-05"),
        ("05/17/2024", None),
        ("2024-13-45", None),
        ("soon", None),
        ("2013-12-23T23:15:00Z", None),  # the birthday of a library's template
    ],
)
def test_a_declared_date_is_as_precise_as_it_is_written(written, iso):
    assert file_fields.parse_date(written) == iso


@pytest.mark.parametrize(
    "rubbish",
    [
        "Untitled",
        "untitled document",
        "PowerPoint Presentation",
        "Document1",
        "x.docx",
        "--",
        "test",
        "Title Slide",
        "Click to add title",
        "Lorem ipsum dolor",
        "Insert title here",
        "XXX",
    ],
)
def test_a_title_that_names_nothing_is_no_title(rubbish):
    assert file_fields.plausible_title(rubbish) == ""


def test_a_title_with_its_program_in_front_loses_it():
    assert file_fields.plausible_title("Microsoft Word - Flood report") == "Flood report"
    assert file_fields.plausible_title("Microsoft Word - flood.doc") == ""


@pytest.mark.parametrize(
    ("written", "people"),
    [
        ("Ada Obi; Ben Lund", ("Ada Obi", "Ben Lund")),
        ("Ada Obi, Ben Lund and Cy Dee", ("Ada Obi", "Ben Lund", "Cy Dee")),
        ("By Ada Obi", ("Ada Obi",)),
        ("Obi, Ada", ("Obi, Ada",)),
        ("python-docx", ()),
        ("Microsoft Office User", ()),
        ("admin", ()),
    ],
)
def test_authors_are_people(written, people):
    assert file_fields.parse_authors(written) == people
