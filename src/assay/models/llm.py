"""The seam to a language model: a prompt goes out, a reply comes back. Plain values; who speaks HTTP is elsewhere.

Nothing calls an `LLM` but `meter.py`, which reserves before, records and settles after.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol

from assay.core.types import Usage


class Role(StrEnum):
    """What a model is asked for. Each may have a model of its own."""

    route = "route"
    plan = "plan"
    decide = "decide"
    weigh = "weigh"
    judge = "judge"
    write = "write"
    check = "check"


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model is told of it; `parameters` is a JSON schema."""

    name: str
    about: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is shown, and the form its reply must have.

    `form` is how the endpoint is asked to keep to it: `schema` constrains the reply to `schema`, `json` asks for some JSON
    object, `text` for nothing. In all three cases the words of the prompt say what is wanted.
    """

    messages: tuple[Message, ...]
    form: Literal["text", "json", "schema"] = "text"
    schema: Mapping[str, Any] | None = None
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int = 1024
    temperature: float = 0.0


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model wrote it: `arguments` is JSON, or should be."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. `finish` is `stop`, `length`, `tool_calls`, `content_filter` or whatever the endpoint says."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    finish: str = "stop"
    usage: Usage = field(default_factory=Usage)
    model: str = ""


class LLM(Protocol):
    """A model somewhere. It retries what is worth retrying until `seconds` have passed, then raises `ModelError`, always
    within those seconds. A prompt that is too long for the model raises `TooLong`."""

    @property
    def name(self) -> str:
        """What events, prices and people call it."""
        ...

    async def complete(self, prompt: Prompt, seconds: float) -> Reply: ...
