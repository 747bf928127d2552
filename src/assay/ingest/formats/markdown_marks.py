"""Removes the marks of Markdown from text, so that what is quoted reads as the rendered page does. Pure.

Emphasis, code marks, links, tags of HTML and the marks of block quotes go; the words, and all of fenced code, stay.
All patterns are bounded: a mark may be left open.
"""

from __future__ import annotations

import re

CODE = re.compile(r"(?<!`)(`{1,3})(?!`)([^`]{1,2000})(?<!`)\1(?!`)")
LINK = re.compile(
    r"!?\[([^\[\]]{0,2000})\]\((?:[^()\s]|\([^()\s]{0,500}\)){0,2000}(?:\s{1,3}[\"'(][^\"\n]{0,500}[\"')])?\)"
)
REFERENCE = re.compile(r"!?\[([^\[\]]{1,1000})\]\[([^\[\]]{0,300})\]")
DEFINITION = re.compile(r"(?m)^ {0,3}\[([^\[\]^][^\[\]]{0,300})\]:[ \t]+\S+(?:[ \t]+[\"'(].{0,300}[\"')])?[ \t]*$\n?")
AUTOLINK = re.compile(r"<(?:mailto:)?((?:https?://|ftp://)[^<>\s]{1,2000}|[\w.+-]{1,100}@[\w.-]{1,200})>")
INLINE_TAG = re.compile(
    r"</?(?:a|abbr|b|cite|code|del|em|font|i|ins|kbd|mark|q|s|small|span|strong|sub|sup|tt|u|var)(?:\s[^<>]{0,2000})?/?>",
    re.IGNORECASE,
)
BLOCK_TAG = re.compile(
    r"</?(?:blockquote|br|caption|center|colgroup|col|dd|details|div|dl|dt|figcaption|figure|h[1-6]|hr|img|li|ol|p|picture|pre"
    r"|section|source|summary|table|tbody|td|tfoot|th|thead|tr|ul|video)(?:\s[^<>]{0,2000})?/?>",
    re.IGNORECASE,
)
STARS = re.compile(r"(?<![\\*\w])(\*{1,3})(?=[^\s*])([^*]{1,2000}?)(?<=[^\s\\])\1(?!\*)")
STRONG = re.compile(r"(?<![\\*])\*\*(?=[^\s*])([^*]{1,2000}?)(?<=[^\s\\])\*\*(?!\*)")  # also inside a word
LINES = re.compile(r"(?<![\w\\])(_{1,3})(?=[^\s_])([^_]{1,2000}?)(?<=[^\s\\])\1(?!\w)")
STRUCK = re.compile(r"~~(?=\S)([^~\n]{1,1000}?)~~")
QUOTED = re.compile(r"(?m)^ {0,3}(?:>[ \t]?)+")
RULE = re.compile(r"(?m)^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$\n?")
ESCAPED = re.compile(r"\\([*_`#>~-])")
FENCE = re.compile(r"(?m)^ {0,3}(?:`{3,}|~{3,}).*$\n?")


def strip_marks(text: str, references: frozenset[str] = frozenset()) -> str:
    """Markdown outside fenced code, without its marks; `references` are the names of links that the file defines."""
    text = RULE.sub("", QUOTED.sub("", DEFINITION.sub("", text)))
    shown: list[str] = []
    at = 0
    for code in CODE.finditer(text):
        if "\n\n" not in code[2]:
            shown += [_without_marks(text[at : code.start()], references), code[2].strip()]
            at = code.end()
    return "".join([*shown, _without_marks(text[at:], references)])


def strip_fences(text: str) -> str:
    """Fenced code without the lines that fence it."""
    return FENCE.sub("", text)


def find_references(text: str) -> frozenset[str]:
    return frozenset(match[1].casefold() for match in DEFINITION.finditer(text))


def _without_marks(text: str, references: frozenset[str]) -> str:
    if not any(mark in text for mark in "*_[<~\\"):
        return text
    text = AUTOLINK.sub(r"\1", text)
    for _ in range(3):  # emphasis within emphasis, an image in a link
        before = text
        text = LINK.sub(r"\1", text)
        if references:
            text = REFERENCE.sub(lambda match: _named(match, references), text)
        text = LINES.sub(r"\2", STRONG.sub(r"\1", STARS.sub(r"\2", text)))
        if text == before:
            break
    text = BLOCK_TAG.sub(" ", INLINE_TAG.sub("", STRUCK.sub(r"\1", text)))
    return ESCAPED.sub(r"\1", text)


def _named(match: re.Match[str], references: frozenset[str]) -> str:
    return match[1] if (match[2] or match[1]).casefold() in references else match[0]
