"""Text and Markdown: as typed, minus what no reader of the page sees."""

from __future__ import annotations

import os

import pytest

from assay.ingest.formats import plain
from assay.ingest.parsed import FileLimits, Parsed, Refused, Status


def read(text: str | bytes, name: str = "note.md") -> Parsed:
    parsed = plain.parse(text.encode() if isinstance(text, str) else text, name, FileLimits())
    assert [parsed.text[s.start : s.end] for s in parsed.sections] == [s.title for s in parsed.sections]
    return parsed


def headings(parsed: Parsed) -> list[tuple[int, str]]:
    return [(section.level, section.title) for section in parsed.sections]


def test_headings_of_both_kinds_become_sections_and_lose_their_marks():
    parsed = read("# One #\n\nText.\n\nTwo\n===\n\nMore.\n\nThree\n---\n\n### Four {#anchor}\n\nEnd.")
    assert headings(parsed) == [(1, "One"), (1, "Two"), (2, "Three"), (3, "Four")]
    assert parsed.text == "One\n\nText.\n\nTwo\n\nMore.\n\nThree\n\nFour\n\nEnd."


def test_a_hash_inside_a_code_fence_is_no_heading():
    parsed = read("# Real\n\n```python\n# comment\nx = 1 <!-- kept -->\n```\n\n~~~\n## no\n~~~\n")
    assert headings(parsed) == [(1, "Real")]
    assert "# comment" in parsed.text and "<!-- kept -->" in parsed.text


def test_a_rule_below_an_empty_line_or_a_table_row_is_no_heading():
    assert headings(read("Text.\n\n---\n\nMore.\n\n| a | b |\n---\n\n- item\n---\n")) == []


def test_front_matter_is_metadata_and_not_text():
    parsed = read(
        '---\ntitle: "Flood report"\nauthor:\n  - name: Ada Obi\n    affiliation: Survey\n  - Ben Lund\n'
        "date: 2024-05-17\nlang: en\n---\n\nThe river rose.\n"
    )
    assert (parsed.title, parsed.authors, parsed.date, parsed.language) == (
        "Flood report",
        ("Ada Obi", "Ben Lund"),
        "2024-05-17",
        "en",
    )
    assert parsed.text == "The river rose."


def test_two_rules_around_prose_are_not_front_matter():
    assert "Just a line of text" in read("---\nJust a line of text\n---\n\nMore.").text


def test_a_single_top_heading_at_the_start_is_the_title():
    assert read("# Flood report\n\n## Rain\n\nText.").title == "Flood report"
    assert read("# One\n\nText.\n\n# Two\n\nText.").title == ""


@pytest.mark.parametrize(
    "hidden",
    [
        "<!-- SECRET -->",
        "<!--\nSECRET\n-->",
        "[//]: # (SECRET)",
        "[comment]: <> (SECRET)",
        '<span style="display:none">SECRET</span>',
        "<div hidden>SECRET</div>",
        "<script>SECRET</script>",
        "![](data:image/png;base64,SECRET)",
    ],
)
def test_what_the_rendered_page_does_not_show_is_not_text(hidden):
    parsed = read(f"Before.\n\n{hidden}\n\nAfter.")
    assert "SECRET" not in parsed.text
    assert parsed.text.startswith("Before.") and parsed.text.endswith("After.")


def test_restructured_text_and_org_headings_become_sections():
    assert headings(read("=====\nTitle\n=====\n\nText.\n\nPart\n----\n\nMore.\n", "a.rst")) == [
        (1, "Title"),
        (2, "Part"),
    ]
    org = read("#+TITLE: A book\n* One\nText.\n** TODO Two :tag:\nMore.", "a.org")
    assert headings(org) == [(1, "One"), (2, "Two")] and org.title == "A book"


def test_plain_text_has_no_headings_and_keeps_its_hashes():
    parsed = read("# not a heading\n\nText.", "note.txt")
    assert parsed.sections == () and parsed.text.startswith("# not") and parsed.kind == "text"


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
)
def test_every_unicode_encoding_is_read_with_or_without_a_mark(encoding):
    text = "Die Flüsse stiegen über Nacht — niemand schlief."
    assert read(text.encode(encoding), "a.txt").text == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Die Flüsse stiegen über Nacht, und für die Brücke war es zu spät.", "cp1252"),
        ("Река поднялась ночью, и утром моста уже не было. Никто в деревне не видел её такой высокой.", "cp1251"),
        ("河水在夜里涨了起来，到早上桥已经不在了。村里的人没有见过这么大的水。", "gb18030"),
        ("밤사이에 강물이 불어났고 아침에는 다리가 사라졌다. 마을의 누구도 이런 일을 본 적이 없다.", "cp949"),
        ("川は夜のうちに増水し、朝には橋がなくなっていた。村の誰も見たことがなかった。", "euc_jp"),
        ("川は夜のうちに増水し、朝には橋がなくなっていた。村の誰も見たことがなかった。", "shift_jis"),
    ],
)
def test_older_encodings_are_recognised(text, encoding):
    assert read(text.encode(encoding), "a.txt").text == text


def test_one_broken_byte_does_not_change_how_the_rest_is_read():
    data = ("Über die Brücke. " * 50).encode()
    parsed = read(data[:100] + b"\xff" + data[100:], "a.txt")
    assert "Brücke" in parsed.text and parsed.warnings


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(Refused) as refused:
        read(bytes(range(256)) * 20 + os.urandom(2000), "a.txt")
    assert refused.value.status == Status.unsupported


@pytest.mark.parametrize("data", [b"", b" \n\t\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused_as_empty(data):
    with pytest.raises(Refused) as refused:
        read(data)
    assert refused.value.status == Status.empty


def test_a_text_over_the_limit_is_refused():
    with pytest.raises(Refused) as refused:
        plain.parse(b"x" * 101, "a.txt", FileLimits(characters=100))
    assert refused.value.status == Status.too_large


def test_invisible_characters_are_gone():
    assert read("in\u200bvisi\u202eble\u00ad", "a.txt").text == "invisible"


def test_the_marks_of_markdown_are_not_part_of_the_text():
    parsed = read(
        "# A *quiet* `river`\n\nThe **level** rose by _two_ metres, says [the log](https://example.org/a_(b)), see "
        "<https://example.org> and [notes][n].\n\n> It fell *again **quickly** on* Monday.\n\n***\n\n"
        "The tag is<br>here; snake_case_name and 2 * 3 * 4 stay, and so does \\*this\\*.\n\n[n]: https://example.org/n\n"
    )
    assert parsed.text == (
        "A quiet river\n\nThe level rose by two metres, says the log, see https://example.org and notes.\n\n"
        "It fell again quickly on Monday.\n\nThe tag is here; snake_case_name and 2 * 3 * 4 stay, and so does *this*."
    )


def test_code_keeps_its_content_without_its_fences():
    parsed = read("Run this:\n\n```sh\necho **not bold** > out_file_name\n```\n\nDone.")
    assert parsed.text == "Run this:\n\necho **not bold** > out_file_name\n\nDone."


def test_the_tags_of_xml_are_not_part_of_the_text():
    parsed = read(
        "<?xml version='1.0'?>\n<list>\n <name>River &amp; Lake</name>\n <p>It <b>rose</b> fast.</p>\n</list>", "a.txt"
    )
    assert parsed.text == "River & Lake\nIt rose fast."
    assert read("<a> is a tag that opens this note.", "a.txt").text == "<a> is a tag that opens this note."
