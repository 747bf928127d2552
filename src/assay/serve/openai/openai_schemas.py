"""Request and response types of the OpenAI-compatible routes: the subset of OpenAI's types that a chat needs. Other
fields are accepted and ignored."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from assay.core.types import Outcome
from assay.serve.run_schemas import CitationView
from assay.serve.run_schemas import ResponseModel

MAX_MESSAGES = 2000


class OpenAIRequestModel(BaseModel):
    """What a client sends; fields that mean nothing here are passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class MessagePart(OpenAIRequestModel):
    """A part of a message: `text` has words, the others (pictures, sound, files) have none that could be searched for."""

    type: str
    text: str = ""


class ChatMessage(OpenAIRequestModel):
    role: str
    content: str | tuple[MessagePart, ...] | None = None


class StreamOptions(OpenAIRequestModel):
    include_usage: bool | None = False


class ChatRequest(OpenAIRequestModel):
    """A conversation, of which the last message is the question. `model` is one of those that `/v1/models` lists."""

    model: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    messages: Annotated[tuple[ChatMessage, ...], Field(min_length=1, max_length=MAX_MESSAGES)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = 1


class ModelView(ResponseModel):
    """A way of being asked: a mode, over every knowledge base or one."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "assay"
    name: str  # display name, shown by some front ends


class ModelListResponse(ResponseModel):
    object: Literal["list"] = "list"
    data: tuple[ModelView, ...]


class UrlCitation(ResponseModel):
    """`content[start_index:end_index]` is the number in brackets; `url` leads to the words on this server's page."""

    start_index: int
    end_index: int
    title: str
    url: str


class Annotation(ResponseModel):
    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


class AssayExtension(ResponseModel):
    """What Assay adds to a message: the run, and each citation with its document, its place and its words."""

    run: str
    outcome: Outcome | None
    citations: tuple[CitationView, ...]


class AssistantMessage(ResponseModel):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None
    annotations: tuple[Annotation, ...]
    assay: AssayExtension


class CompletionChoice(ResponseModel):
    index: int = 0
    message: AssistantMessage
    logprobs: None = None
    finish_reason: Literal["stop"] = "stop"


class CompletionUsage(ResponseModel):
    """What the language model behind Assay was sent and has written for this answer; nothing, where there is none."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(ResponseModel):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: tuple[CompletionChoice, ...]
    usage: CompletionUsage


class Delta(ResponseModel):
    """What is new. `reasoning_content` tells what is being done, in lines; it is no part of the answer."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    reasoning_content: str | None = None
    annotations: tuple[Annotation, ...] | None = None
    assay: AssayExtension | None = None


class OpenAIError(ResponseModel):
    message: str
    type: str
    param: str | None = None
    code: str | None = None


class OpenAIErrorResponse(ResponseModel):
    """An error as OpenAI writes it."""

    error: OpenAIError


def chunk(run: str, created: int, model: str, **given: Any) -> dict[str, Any]:
    """One chunk of a stream."""
    return {"id": f"chatcmpl-{run}", "object": "chat.completion.chunk", "created": created, "model": model} | given
