"""E-mail: the visible parts of a message (sender, date, subject, body), then its attachments as sections.

An mbox file contains many messages; each is a section.
"""

from __future__ import annotations

import email
import re
from collections.abc import Iterator
from dataclasses import replace
from email.header import decode_header, make_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime
from itertools import filterfalse

from assay.core.printable import tidy_whitespace
from assay.core.types import ATTACHMENT
from assay.ingest.formats.archive import refuse_damaged
from assay.ingest.formats.text import TextBuilder, decode
from assay.ingest.metadata import file_fields
from assay.ingest.parsed import FileLimits, Parsed, Refused, Status

_SHOWN = ("From", "To", "Cc", "Date", "Subject")
_BORDER = re.compile(rb"(?:\A|\n\r?\n)(?=From \S+.{0,100}\d{2}:\d{2}.{0,40}\d{4}[^\n]{0,40}\r?\n)")
_QUOTED = re.compile(r"(?:>[ \t]?)+")
_LOCKED = "The message is encrypted; open it in a mail program that has the key, and save a copy without encryption."


def parse(data: bytes, name: str, limits: FileLimits) -> Parsed:
    """One message, or a whole mailbox."""
    out = TextBuilder("email", limits)
    if b"\x00" in data[:100]:  # saved by an editor as UTF-16; genuine mail never is
        data = decode(data).encode()
    with refuse_damaged("e-mail"):
        pieces = [piece for piece in _BORDER.split(data) if piece.strip()] if data.startswith(b"From ") else [data]
        messages = [email.message_from_bytes(piece) for piece in pieces]
        if not any(_field(message, field) for message in messages for field in _SHOWN):
            raise Refused(
                Status.corrupt, "It has no sender, date or subject, so it is no e-mail; check where it came from."
            )
        if len(messages) > 1:
            return _many(messages, out)
        [message] = messages
        _write(message, out, 0)
        return out.parsed(
            title=file_fields.plausible_title(_field(message, "Subject")),
            authors=_senders(message),
            date=_date(message),
            empty="The message has no text.",
        )


def _many(messages: list[Message], out: TextBuilder) -> Parsed:
    for number, message in enumerate(messages, start=1):
        out.heading(_field(message, "Subject") or f"Message {number}", 1)
        try:
            _write(message, out, 1)
        except Refused as refused:
            if refused.status == Status.too_large:
                raise
            out.warn(f"Message {number} could not be read: {refused.why}")
    dates = sorted(filter(None, map(_date, messages)))
    return out.parsed(date=dates[-1] if dates else None, meta={"messages": str(len(messages))})


def _write(message: Message, out: TextBuilder, level: int) -> None:
    parts = list(_leaves(message))
    shown = [f"{name}: {value}" for name in _SHOWN if (value := _field(message, name))]
    out.block("\n".join(shown))
    for body in filter(_is_body, parts):
        if body.get_content_subtype() == "html":
            from assay.ingest.formats.html import decode_page, write_visible

            charset, payload = body.get_content_charset(), _payload(body)
            write_visible(decode(payload, charset) if charset else decode_page(payload), out, level)
        else:
            out.block(_plain(body))
    for number, part in enumerate(filterfalse(_is_body, parts), start=1):
        _attach(part, number, out, level + 1)


def _leaves(part: Message) -> Iterator[Message]:
    """The parts that a message consists of; of alternative bodies, the plainest that is not empty."""
    kind = part.get_content_type()
    sealed = kind in {"application/pkcs7-mime", "application/x-pkcs7-mime"}
    if kind == "multipart/encrypted" or (sealed and str(part.get_param("smime-type")).lower() != "certs-only"):
        raise Refused(Status.encrypted, _LOCKED)
    if part.is_multipart() and kind != "message/rfc822":
        parts = [inner for inner in part.get_payload() if isinstance(inner, Message)]
        for inner in [_plainest(parts)] if kind == "multipart/alternative" and parts else parts:
            yield from _leaves(inner)
    elif not (kind.startswith("image/") and part.get("Content-ID")):  # an inline image is not an attachment
        yield part


def _is_body(part: Message) -> bool:
    attached = part.get_content_disposition() == "attachment" or part.get_filename()
    return part.get_content_type() in {"text/plain", "text/html"} and not attached


def _plainest(parts: list[Message]) -> Message:
    plain = next((part for part in parts if part.get_content_type() == "text/plain"), None)
    if plain is not None and len(_plain(plain).strip()) > 20:
        return plain
    with_html = (
        part for part in reversed(parts) if any(leaf.get_content_type() == "text/html" for leaf in part.walk())
    )
    return next(with_html, plain if plain is not None else parts[-1])


def _payload(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _plain(part: Message) -> str:
    try:
        text = decode(_payload(part), part.get_content_charset()).replace("\r\n", "\n")
    except Refused:  # an undecodable part does not affect the others
        return ""
    if str(part.get_param("format") or "").lower() == "flowed":  # lines that end in a space continue on the next
        text = re.sub(r"(?<!--) \n(?![>\n])", " ", text)
    return re.sub(r"\n(?:[ \t\xa0]*\n)+", "\n\n", _without_quote_marks(text))


def _without_quote_marks(text: str) -> str:
    """Lines of a reply without the `>` before what it repeats; an empty line parts it from what is new."""
    lines: list[str] = []
    depth = 0
    for line in text.split("\n"):
        marks = _QUOTED.match(line)
        marked = marks[0].count(">") if marks else 0
        if marked != depth and lines and lines[-1].strip():
            lines.append("")
        depth = marked
        lines.append(line[marks.end() :] if marks else line)
    return "\n".join(lines)


def _attach(part: Message, number: int, out: TextBuilder, level: int) -> None:
    """Parse an attachment by its format; if that fails, a warning names it."""
    name = tidy_whitespace(_words(part.get_filename() or "")).replace("\n", " ")
    inside = replace(out.limits, depth=out.limits.depth - 1)
    if inside.depth < 0:
        out.warn(f"Attachment {name or number} was left out: it is attached to an attachment of an attachment.")
        return
    try:
        if part.get_content_type() == "message/rfc822":
            inner = part.get_payload()
            held = inner[0].as_bytes() if isinstance(inner, list) and isinstance(inner[0], Message) else b""
            parsed = parse(held, name, inside)
            name = name or parsed.title
        else:
            from assay.ingest.formats.detect import read

            parsed = read(_payload(part), name, inside)
    except Refused as refused:
        out.warn(f"Attachment {name or number} could not be read: {refused.why}")
        return
    out.heading(f"{ATTACHMENT}{name or number}", level)
    out.embed(parsed, level)
    for warning in parsed.warnings:
        out.warn(f"{name or number}: {warning}")


def _field(message: Message, name: str) -> str:
    return tidy_whitespace(", ".join(_words(str(value)) for value in message.get_all(name, []))).replace("\n", " ")


def _words(value: str) -> str:
    """A decoded header; with an unknown encoding it stays unchanged."""
    try:
        return str(make_header(decode_header(value)))
    except (LookupError, ValueError, AssertionError):
        return value


def _senders(message: Message) -> tuple[str, ...]:
    # Addresses are split before they are decoded: a decoded name may contain commas.
    pairs = getaddresses([str(value) for value in message.get_all("From", [])])
    return tuple(filter(None, (tidy_whitespace(_words(name)) or address for name, address in pairs)))


def _date(message: Message) -> str | None:
    header = _field(message, "Date")
    try:
        return file_fields.parse_date(parsedate_to_datetime(header).date().isoformat())
    except (TypeError, ValueError, IndexError, OverflowError):
        return file_fields.parse_date(header)
