"""Removes invisible characters and superfluous white space."""

from __future__ import annotations

import re

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


_BLANKS = re.compile(r"[^\S\n]+")
_LINES = re.compile(r" ?\n ?(?:\n[ \n]*)?")


def tidy_whitespace(text: str) -> str:
    """Clean text with white space as a reader sees it: a run of blanks is one blank, empty lines are dropped."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()
    return _LINES.sub("\n", _BLANKS.sub(" ", clean_text(text))).strip()
