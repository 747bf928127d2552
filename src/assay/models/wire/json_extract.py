"""Extracts JSON from a model's text: in a code fence, amid prose, after its reasoning. Found leniently, parsed strictly, never
repaired: only text that is too long is cut. Failures become one error that the model can act on.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from assay.models.replies import cut_to_lengths
from assay.models.replies import type_schema

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

T = TypeVar("T", bound="BaseModel")

LARGEST = 1_000_000  # characters of a reply
DEEPEST = 50
DIGITS = 30
TRIES = 20  # braces that are tried as the start of an object
ERRORS = 8  # reported at once; the model can fix the rest on the next attempt

_TOKEN = re.compile(r'"(?:[^"\\]+|\\.)*"?|[{}\[\]]', re.DOTALL)
_FENCE = re.compile(r"```[a-zA-Z]*[ \t]*\r?\n\s*(?=[{\[])")
_THOUGHTS = re.compile(r"\s*<(think|thinking|reasoning)>", re.IGNORECASE)


class UnreadableReply(ValueError):
    """The model's text is not what was asked for; the message says exactly why."""


def read(kind: type[T], text: str) -> T:
    """The value of type `kind` in a text. Raises `UnreadableReply`."""
    return fit(kind, extract_json(text))


def fit(kind: type[T], value: Any) -> T:
    """The value as this type, validated strictly; `UnreadableReply` has one line per error."""
    from pydantic import ValidationError

    try:
        # Via JSON, where strict validation still accepts a list for a tuple and a string for an enum.
        return kind.model_validate_json(json.dumps(cut_to_lengths(value, type_schema(kind))), strict=True)
    except ValidationError as error:
        raise UnreadableReply("\n".join(_lines(error))) from None


def extract_json(text: str) -> Any:
    """The first JSON object in a text, or the whole text if it is JSON."""
    if len(text) > LARGEST:
        raise UnreadableReply(f"the reply has {len(text):,} characters; {LARGEST:,} is the most that is read")
    begin = _after_thoughts(text)
    if not text[begin:].strip():
        raise UnreadableReply("the reply is empty")
    first: UnreadableReply | None = None
    for start in _starts(text, begin):
        try:
            return _parsed(text, start)
        except UnreadableReply as error:
            first = first or error
    raise first or UnreadableReply("there is no JSON object in the reply")


def strip_thoughts(text: str) -> str:
    """A reply without the reasoning before it."""
    return text[_after_thoughts(text) :]


def _after_thoughts(text: str) -> int:
    """Offset at which the reply begins after the model's reasoning."""
    opened = _THOUGHTS.match(text)
    if not opened and text.lstrip()[:1] in ("{", "["):
        return 0  # a tag inside an object is part of its text
    end = text.find(f"</{opened[1] if opened else 'think'}>")
    if opened and end < 0:
        raise UnreadableReply("the reply was cut off before the thoughts ended")
    return text.index(">", end) + 1 if end >= 0 else 0


def _starts(text: str, begin: int) -> Iterator[int]:
    """Offsets at which an object may begin: the whole text, code fences, then each brace. Braces inside a broken or truncated
    object are skipped.
    """
    whole = len(text) - len(text[begin:].lstrip())
    if text[whole] in "{[" and _opens(text, whole):
        yield whole
        if text[whole] == "[" or _end_of(text, whole) is None:
            return
    for fenced in list(_FENCE.finditer(text, begin))[:TRIES]:
        yield fenced.end()
    at = begin
    for _ in range(TRIES):
        start = text.find("{", at)
        if start < 0:
            return
        yield start
        end = _end_of(text, start)
        if end is None and _opens(text, start):
            return
        at = end if end is not None and _opens(text, start) else start + 1


def _opens(text: str, start: int) -> bool:
    """Whether a brace opens an object, rather than an aside in prose."""
    return bool(re.compile(r'\{\s*["}]|\[\s*[{\[\]"]').match(text, start))


def _end_of(text: str, start: int) -> int | None:
    """The offset at which the bracket opened at `start` is closed; None if it is not."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if token[0] in "{[":
            depth += 1
        elif token[0] in "}]":
            depth -= 1
        if depth > DEEPEST:
            raise UnreadableReply(f"{_place(text, token.start())}: nested more than {DEEPEST} levels deep")
        if depth == 0:
            return token.end()
    return None


def _parsed(text: str, start: int) -> Any:
    if _end_of(text, start) is None:
        raise UnreadableReply(f"the JSON that begins at {_place(text, start)} is cut off: it is never closed")
    return _decoded(text, start)


def _decoded(text: str, start: int) -> Any:
    decoder = json.JSONDecoder(
        object_pairs_hook=_once_each, parse_constant=_no_number, parse_float=_finite, parse_int=_short
    )
    try:
        value, _ = decoder.raw_decode(text, start)
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate such as `\ud83d` cannot be encoded
    except UnreadableReply:
        raise
    except json.JSONDecodeError as error:
        near = text[error.pos : error.pos + 30].split("\n")[0]
        what = error.msg[0].lower() + error.msg[1:]
        raise UnreadableReply(
            f"{_place(text, error.pos)}: {what}" + (f", near `{near}`" if near.strip() else "")
        ) from None
    except UnicodeEncodeError:
        raise UnreadableReply("the JSON holds half a character (a lone surrogate)") from None
    return value


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    if len(held) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise UnreadableReply(f"the key {json.dumps(twice[:60])} occurs twice in one object")
    return held


def _no_number(word: str) -> Any:
    raise UnreadableReply(f"{word} is not JSON: write a number or null")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise UnreadableReply(f"the number {digits[:40]} is too large")
    return number


def _short(digits: str) -> int:
    if len(digits) > DIGITS:
        raise UnreadableReply(f"the number {digits[:40]}… is too long")
    return int(digits)


def _place(text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    return f"line {line}, column {at - text.rfind(chr(10), 0, at)}"


def _lines(error: ValidationError) -> Iterator[str]:
    found = error.errors(include_url=False)
    for each in found[:ERRORS]:
        where = ".".join(str(part) for part in each["loc"]) or "the reply"
        yield f"{where}: {_what(each['type'], each['msg'], each['input'])}"
    if len(found) > ERRORS:
        yield f"… and {len(found) - ERRORS} more"


def _what(kind: str, words: str, given: Any) -> str:
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return "is not one of the fields"
    message = words.removeprefix("Input ").removeprefix("Value error, ")
    shown = json.dumps(given, ensure_ascii=False, default=str)
    return f"{message} (given: {shown if len(shown) <= 60 else shown[:60] + '…'})"
