"""What an endpoint means by a refusal: the prompt is too long, a parameter is not known there, or there is no use in
asking again. Endpoints say it in words of their own; these are the words of the common ones. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

READ = 4000  # characters of an error that are looked at
LARGEST_WINDOW = 100_000_000

Lesson = Literal["max_completion_tokens", "no temperature"]


@dataclass(frozen=True, slots=True)
class Said:
    """An endpoint's error: its sentence, and the code and type where it has them."""

    words: str
    codes: frozenset[str] = frozenset()
    window: int | None = None  # where a field of its own says it


# How the window is named, by whom. A group is the window.
_NUMBER = r"(\d[\d,_]{0,14})"
_WINDOWS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"maximum (?:context|prompt|model|sequence) ?length (?:is|of) (?:only )?{_NUMBER}",  # OpenAI, vLLM, SGLang, xAI
        rf"context (?:length|window|size) (?:is|of) (?:only )?{_NUMBER}",  # vLLM, LM Studio
        rf"available context size \({_NUMBER}",  # llama.cpp
        rf"context length \({_NUMBER}",  # SGLang
        rf"too long: ?{_NUMBER} ?tokens ?> ?{_NUMBER}",  # Anthropic: the last group counts
        rf"exceeds? (?:the )?context (?:limit|window|length)[^>]{{0,60}}> ?{_NUMBER}",  # Anthropic
        rf"max_new_tokens`? must be <= ?{_NUMBER}",  # text-generation-inference
        rf"must have less than {_NUMBER} tokens",  # text-generation-inference
        rf"with {_NUMBER} maximum context length",  # Mistral
        rf"maximum number of tokens(?: allowed)? \({_NUMBER}",  # Google
        rf"configured limit of {_NUMBER} tokens",  # OpenAI
        rf"in the prompt cannot exceed {_NUMBER}",  # Cohere
    )
)
_TOO_LONG = re.compile(
    r"exceeds? the (?:available )?context (?:size|window|length)|exceeds? (?:the )?(?:maximum|max) context length"
    r"|exceeded max context length|prompt (?:is )?too long|input is too long|context length exceeded"
    r"|context[ _]window[ _]exceeded|longer than the (?:maximum model length|model's context length)"
    r"|reduce the length of the (?:messages|prompt|input)|too many (?:input )?tokens"
    r"|exceeds? the maximum number of tokens|input tokens exceed|context overflow",
    re.IGNORECASE,
)
_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "context_window_exceeded"})

_UNKNOWN = re.compile(
    r"not supported?|unsupported|does(?:n't| not) support|not allowed|deprecated|unrecognized|unrecognised|unknown"
    r"|unexpected|extra inputs|extra fields|only the default|not permitted",
    re.IGNORECASE,
)
_NEVER = re.compile(r"requires? --?\w|not implemented|unsupported|not supported|does not support", re.IGNORECASE)
_UNPAID = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})


def error_said(text: str) -> Said:
    """The error in a reply's body, wherever it stands in it; the whole body where it is no JSON."""
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return Said(text[:READ])
    if isinstance(data, list) and data:
        data = data[0]
    if not isinstance(data, Mapping):
        return Said(text[:READ])
    inner = data.get("error")
    error: Mapping[str, Any] = inner if isinstance(inner, Mapping) else data
    words = next(
        (value for value in (error.get("message"), inner, data.get("detail")) if isinstance(value, str) and value), text
    )
    told = [error.get(name) for name in ("code", "type", "param", "error_type")]
    return Said(words[:READ], frozenset(each for each in told if isinstance(each, str)), _bounded(error.get("n_ctx")))


def is_too_long(said: Said) -> bool:
    return bool(said.codes & _CODES or _TOO_LONG.search(said.words) or _windows_in(said.words))


def window_said(said: Said) -> int | None:
    """How many tokens the model has room for, where the error says so."""
    return said.window or next(iter(_windows_in(said.words)), None)


def lesson_of(said: Said) -> Lesson | None:
    """What to leave out or call otherwise from now on, where that is why the request was refused."""
    if is_too_long(said) or not (_UNKNOWN.search(said.words) or any("unsupported" in code for code in said.codes)):
        return None
    if "max_completion_tokens" in said.words or "max_tokens" in said.codes:
        return "max_completion_tokens"
    return "no temperature" if "temperature" in said.codes or "temperature" in said.words.lower() else None


def is_hopeless(status: int, said: Said) -> bool:
    """Whether a reply with a status that often passes would be the same again."""
    if status == 429:
        return bool(said.codes & _UNPAID)
    return status == 500 and (is_too_long(said) or bool(_NEVER.search(said.words)))


def _windows_in(words: str) -> list[int]:
    found = [match.groups()[-1] for pattern in _WINDOWS if (match := pattern.search(words))]
    return [window for each in found if (window := _bounded(int(re.sub(r"[,_]", "", each))))]


def _bounded(value: object) -> int | None:
    return value if type(value) is int and 0 < value <= LARGEST_WINDOW else None
