"""Text without what cannot be seen: escaped in names that are shown, removed from text that is read."""

from __future__ import annotations

import re

# Controls with all line breaks, bidirectional controls, zero-width and other invisible format characters, language tags.
# Joiners (U+200C, U+200D) are letters' business in some scripts, and stay.
UNSAFE = "\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff"
_IN_NAMES = re.compile(f"[\x00-\x1f{UNSAFE}]")
_IN_TEXT = re.compile(f"[\x00-\x08\x0b-\x1f{UNSAFE}]")  # tabs and line ends stay


def printable_name(name: str) -> str:
    """A name on one line: control, bidirectional and line-breaking characters are escaped."""
    return _IN_NAMES.sub(_escaped, name)


def printable_text(text: str) -> str:
    """Text of several lines without characters that control what shows it; such characters are escaped."""
    return _IN_TEXT.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# Invisible characters: zero-width, bidirectional controls, soft hyphen, byte-order mark, variation selectors, language
# tags and the C0/C1 controls. They hide instructions from a reader and split words for a search.
_INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u0084\u0086-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_LINE_END = re.compile("\r\n?|\u0085|\u2028|\u2029")
# A terminal escape sequence is removed whole: without its first character the rest would be read as words.
_ESCAPE = re.compile(
    "\u001b\\[[0-?]*[ -/]*[@-~]|\u001b\\][^\u0007\u001b\n]{0,500}(?:\u0007|\u001b\\\\)|\u001b[@-Z\\\\^_]"
)


def clean_text(text: str) -> str:
    """The text without invisible characters and with `\\n` as the only line end. Nothing else changes."""
    plain = _ESCAPE.sub("", text) if "\u001b" in text else text
    return _INVISIBLE.sub("", _LINE_END.sub("\n", plain))


def one_line(words: str) -> str:
    """Text on one line, without invisible characters or terminal control characters."""
    return " ".join(clean_text(words).split())


_BLANKS = re.compile(r"[^\S\n]+")
_LINES = re.compile(r" ?\n ?(?:\n[ \n]*)?")


def tidy_whitespace(text: str) -> str:
    """Clean text with white space as a reader sees it: a run of blanks is one blank, empty lines are dropped."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()
    return _LINES.sub("\n", _BLANKS.sub(" ", clean_text(text))).strip()
