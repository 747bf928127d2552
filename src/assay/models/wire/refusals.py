"""What an endpoint's error means: the prompt is too long, a parameter is not supported, or a retry would not help. Pure.

Every server words its errors differently; the patterns here are those of the common ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

READ = 4000  # characters of an error that are examined
LARGEST_WINDOW = 100_000_000

Adaptation = Literal["max_completion_tokens", "no temperature"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """An endpoint's error: its message, and its code and type if it has them."""

    message: str
    codes: frozenset[str] = frozenset()
    window: int | None = None  # where a field states it


# How servers state the window in their errors. The group is the window.
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


def parse_refusal(text: str) -> Refusal:
    """The error in a reply's body; the whole body if it is not JSON."""
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return Refusal(text[:READ])
    if isinstance(data, list) and data:
        data = data[0]
    if not isinstance(data, Mapping):
        return Refusal(text[:READ])
    inner = data.get("error")
    error: Mapping[str, Any] = inner if isinstance(inner, Mapping) else data
    message = next(
        (value for value in (error.get("message"), inner, data.get("detail")) if isinstance(value, str) and value), text
    )
    codes = [error.get(name) for name in ("code", "type", "param", "error_type")]
    return Refusal(
        message[:READ], frozenset(each for each in codes if isinstance(each, str)), _bounded(error.get("n_ctx"))
    )


def is_too_long(refusal: Refusal) -> bool:
    return bool(refusal.codes & _CODES or _TOO_LONG.search(refusal.message) or _windows_in(refusal.message))


def stated_window(refusal: Refusal) -> int | None:
    """The context window in tokens, if the error states it."""
    return refusal.window or next(iter(_windows_in(refusal.message)), None)


def adaptation_for(refusal: Refusal) -> Adaptation | None:
    """What to omit or rename in later requests, if that caused the refusal."""
    if is_too_long(refusal) or not (
        _UNKNOWN.search(refusal.message) or any("unsupported" in code for code in refusal.codes)
    ):
        return None
    if "max_completion_tokens" in refusal.message or "max_tokens" in refusal.codes:
        return "max_completion_tokens"
    return "no temperature" if "temperature" in refusal.codes or "temperature" in refusal.message.lower() else None


def is_permanent(status: int, refusal: Refusal) -> bool:
    """Whether a usually transient status would not change on a retry."""
    if status == 429:
        return bool(refusal.codes & _UNPAID)
    return status == 500 and (is_too_long(refusal) or bool(_NEVER.search(refusal.message)))


def _windows_in(words: str) -> list[int]:
    found = [match.groups()[-1] for pattern in _WINDOWS if (match := pattern.search(words))]
    return [window for each in found if (window := _bounded(int(re.sub(r"[,_]", "", each))))]


def _bounded(value: object) -> int | None:
    return value if type(value) is int and 0 < value <= LARGEST_WINDOW else None
