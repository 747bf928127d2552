"""Makes names safe to show: what cannot be seen, or changes the order or the lines of text around it, is escaped."""

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
