"""The protocols of language and answer models and their values: prompt, reply, tool call, reading.

Only `meter.py` calls an `LLM`: it reserves before the request, and settles and records after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal, Protocol, runtime_checkable

from assay.core.types import Picture, Usage, omitted_when_empty


class Role(StrEnum):
    """What a model is used for. Each role may have its own model."""

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
    """A tool as described to a model; `parameters` is a JSON schema."""

    name: str
    about: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """A picture in a prompt, between two lines that fence it. `png` is no part of the digest of a request."""

    picture: Picture
    before: str
    after: str
    png: bytes = omitted_when_empty(b"")


Form = Literal["text", "json", "schema"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages for a model, and the required form of its reply.

    `form` is how the endpoint enforces it: `schema` constrains the reply to `schema`, `json` to any JSON object, `text` not at
    all. In all three cases the text of the prompt states what is wanted.
    """

    messages: tuple[Message, ...]
    form: Form = "text"
    schema: Mapping[str, Any] | None = None
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int = 1024
    temperature: float = 0.0
    pictures: tuple[ShownPicture, ...] = omitted_when_empty(())  # below the first message of the user

    @property
    def without_pixels(self) -> Prompt:
        """The prompt as it is recorded: of its pictures, the places and digests."""
        bare = tuple(replace(each, png=b"") for each in self.pictures)
        return replace(self, pictures=bare) if bare else self


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call as the model wrote it: `arguments` should be JSON, but is unchecked."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply. `finish` is `stop`, `length`, `tool_calls`, `content_filter` or another value of the endpoint."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    finish: str = "stop"
    usage: Usage = field(default_factory=Usage)
    model: str = ""


Heard = Callable[[str], None]  # gets a reply as far as it is written, each time that it has grown or begun anew


class LLM(Protocol):
    """A language model. It retries transient failures and raises `ModelError` within `seconds` at the latest. A prompt that is
    too long for the model raises `TooLong`.
    """

    @property
    def name(self) -> str:
        """The name used in events, prices and messages."""
        ...

    async def complete(self, prompt: Prompt, seconds: float) -> Reply: ...


@runtime_checkable
class StreamingLLM(LLM, Protocol):
    """A language model whose replies can be heard while they are written. The reply is the same as without."""

    async def stream(self, prompt: Prompt, seconds: float, heard: Heard) -> Reply: ...


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says about a question.

    answers: the probability that the text answers the question
    span: the characters of the text that most likely are the answer; (0, 0) for a text without words
    span_score: the probability of that span among those of the text
    """

    answers: float
    span: tuple[int, int] = (0, 0)
    span_score: float = 0.0


class AnswerModel(Protocol):
    @property
    def name(self) -> str:
        """Changes whenever the readings do."""
        ...

    async def read(self, question: str, texts: Sequence[str]) -> list[Reading]:
        """One reading per text, in order. A text is read up to the model's window."""
        ...
