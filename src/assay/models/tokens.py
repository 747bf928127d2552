"""How many tokens a text may have, guessed on the high side: what is reserved and laid out by it is seldom too little."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from assay.models.llm import Prompt

# Words, capitals and figures are cut differently by every tokenizer; these are near the worst of the common ones.
_PIECES = re.compile(r"[a-z]+|[A-Z]+|[0-9]+|[!-/:-@\[-`{-~]{1,2}|\s{2,}|\n")
_LOWER, _CAPITALS, _BEYOND_ASCII = 4.5, 2.25, 0.45
_MESSAGE = 6  # the marks around a message
_FRAME = 16  # what a template puts before and after


def estimate_tokens(text: str) -> int:
    """A pure guess at the tokens of a text, rather over than under."""
    total = 0.0
    for piece in _PIECES.findall(text):
        first = piece[0]
        if first.islower():
            total += max(1.0, len(piece) / _LOWER)
        elif first.isupper():
            total += max(1.0, len(piece) / _CAPITALS)
        elif first.isdigit():
            total += 1 + len(piece)
        else:
            total += 1 + len(piece) // 64
    if not text.isascii():
        total += (len(text.encode("utf-8", "replace")) - len(text.encode("ascii", "ignore"))) * _BEYOND_ASCII
    return int(total) + bool(text)


def fitting(text: str, room: int) -> str:
    """The beginning of a text that fits into `room` tokens, with a sign where it was cut."""
    reach = max(4 * room, 64)  # a long document is not counted to its end to find its beginning
    while reach < len(text) and estimate_tokens(text[:reach]) <= room:
        reach *= 2
    if reach >= len(text) and estimate_tokens(text) <= room:
        return text
    low, high = 0, min(reach, len(text))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimate_tokens(text[:middle] + "…") <= room else (low, middle - 1)
    return f"{text[:low].rstrip()}…" if low else ""


def prompt_tokens(prompt: Prompt) -> int:
    """The same for a whole prompt, with the tools and the schema that are sent along."""
    told = [tool.name + tool.about + _spelt(tool.parameters) for tool in prompt.tools]
    if prompt.schema is not None and prompt.form == "schema":
        told.append(_spelt(prompt.schema))
    words = [message.text for message in prompt.messages] + told
    return _FRAME + sum(estimate_tokens(each) + _MESSAGE for each in words)


def _spelt(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, default=dict)
