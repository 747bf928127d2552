"""E-mail: what its reader sees, then what is attached."""

from __future__ import annotations

from email.message import EmailMessage

import pytest

from assay.ingest.formats import mail
from assay.ingest.parsed import FileLimits, Parsed, Refused, Status


def message(text: str = "The river rose.", **fields: str) -> EmailMessage:
    made = EmailMessage()
    for name, value in {"From": "Ada Obi <ada@example.org>", "To": "ben@example.org", "Subject": "Flood",
                        "Date": "Fri, 17 May 2024 23:30:00 -0500", **fields}.items():  # fmt: skip
        made[name] = value
    made.set_content(text)
    return made


def read(made: EmailMessage | bytes, limits: FileLimits | None = None) -> Parsed:
    return mail.parse(made if isinstance(made, bytes) else made.as_bytes(), "a.eml", limits or FileLimits())


def test_the_headers_lead_and_give_title_author_and_date():
    parsed = read(message())
    assert parsed.text == (
        "From: Ada Obi <ada@example.org>\nTo: ben@example.org\nDate: Fri, 17 May 2024 23:30:00 -0500\nSubject: Flood\n\n"
        "The river rose."
    )
    assert (parsed.title, parsed.authors, parsed.date) == ("Flood", ("Ada Obi",), "2024-05-17")


def test_the_plain_version_is_read_rather_than_the_html_one():
    made = message("The plain version of the message.")
    made.add_alternative("<p>The HTML version of the message.</p>", subtype="html")
    text = read(made).text
    assert "plain version" in text and "HTML version" not in text


def test_html_alone_is_read_as_it_shows_and_hidden_text_is_not():
    made = message()
    made.set_content("<h2>News</h2><p>Seen.</p><p style='display:none'>SECRET</p>", subtype="html")
    parsed = read(made)
    assert parsed.text.endswith("News\n\nSeen.") and "SECRET" not in parsed.text
    assert [section.title for section in parsed.sections] == ["News"]


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", "koi8-r", "iso-2022-jp"])
@pytest.mark.parametrize("encoding", ["base64", "quoted-printable"])
def test_bodies_in_any_encoding_are_read(charset, encoding):
    words = {"koi8-r": "Река поднялась ночью", "iso-2022-jp": "川は増水した"}.get(charset, "Die Flüsse stiegen")
    made = message()
    made.set_content(words, charset=charset, cte=encoding)
    assert words in read(made).text


def test_encoded_headers_are_decoded():
    parsed = read(b"From: =?utf-8?q?J=C3=BCrgen_Ros=C3=A9?= <j@example.org>\nSubject: =?utf-8?b?w5xiZXI=?=\n\nText.\n")
    assert (parsed.title, parsed.authors) == ("Über", ("Jürgen Rosé",))


def test_an_attachment_that_can_be_read_is_a_section_with_its_own_headings_below():
    made = message()
    made.add_attachment(b"# Rain\n\nIt rained.\n", maintype="text", subtype="markdown", filename="notes.md")
    parsed = read(made)
    assert parsed.text.endswith("Attachment: notes.md\n\nRain\n\nIt rained.")
    assert [(s.level, s.title) for s in parsed.sections] == [(1, "Attachment: notes.md"), (2, "Rain")]
    assert [parsed.text[s.start : s.end] for s in parsed.sections] == ["Attachment: notes.md", "Rain"]


def test_an_attachment_that_cannot_be_read_is_named_in_a_warning():
    made = message()
    made.add_attachment(b"\x89PNG\r\n\x1a\n" + b"\x00" * 50, maintype="image", subtype="png", filename="map.png")
    parsed = read(made)
    assert "Attachment:" not in parsed.text
    assert len(parsed.warnings) == 1 and "map.png" in parsed.warnings[0]


def test_messages_attached_to_messages_are_read_down_to_a_depth():
    made = message("level 0")
    for level in range(1, 9):
        outer = message(f"level {level}")
        outer.add_attachment(made)
        made = outer
    parsed = read(made, FileLimits(depth=3))
    assert "level 5" in parsed.text and "level 4" not in parsed.text
    assert any("left out" in warning for warning in parsed.warnings)


def test_an_encrypted_message_is_refused():
    data = b"From: a@example.org\nContent-Type: application/pkcs7-mime; smime-type=enveloped-data; name=smime.p7m\n\nAAAA\n"
    with pytest.raises(Refused) as refused:
        read(data)
    assert refused.value.status == Status.encrypted


@pytest.mark.parametrize("data", [b"", b"no headers here at all\n\nbody", b"\x00\x01\x02" * 100])
def test_what_is_no_mail_is_refused(data):
    with pytest.raises(Refused):
        read(data)


def test_a_mailbox_is_one_section_per_message():
    data = b""
    for number in range(3):
        data += b"From ada@example.org Fri May 17 23:30:00 2024\n"
        data += (
            message(f"Body {number}.\n\nFrom the bridge nothing is left.", Subject=f"Day {number}").as_bytes() + b"\n\n"
        )
    parsed = read(data)
    assert [section.title for section in parsed.sections] == ["Day 0", "Day 1", "Day 2"]
    assert parsed.text.count("From the bridge nothing is left.") == 3
    assert parsed.date == "2024-05-17"


def test_broken_structure_is_read_as_far_as_it_goes():
    data = (
        b"From: a@example.org\nSubject: x\nContent-Type: multipart/mixed; boundary=B\n\n"
        b"--B\nContent-Type: text/plain; charset=nonsense\n"
        b"Content-Transfer-Encoding: base64\n\n%%%not base64"
    )
    assert "Subject: x" in read(data).text


def test_the_marks_before_a_repeated_message_are_not_part_of_the_text() -> None:
    parsed = read(message("On Friday Ben wrote:\n> How high is it?\n>> It rose.\n> Still?\nTwo metres.\n"))
    assert parsed.text.endswith("On Friday Ben wrote:\n\nHow high is it?\n\nIt rose.\n\nStill?\n\nTwo metres.")
