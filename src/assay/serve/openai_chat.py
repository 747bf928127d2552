"""An OpenAI-compatible chat endpoint, with the subset of OpenAI's types that a chat needs. Modes and knowledge bases are its
models. The answer is sent after it was checked, with numbered citations, a list of sources at its end, and the same as
annotations.

The conversation comes from the client: its assistant messages help to understand the question and are never evidence. System
messages are ignored: they can change neither the rules nor the answer.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import to_jsonable_python
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException

from assay.core.access import Scope
from assay.core.errors import AssayError, Missing, ModelError, StoreError, UserError
from assay.core.events import Mode, SearchFilters
from assay.core.types import Exchange, Outcome
from assay.serve.attached_run import AttachedRun, RunReply, begin, citation_marks, reply_of, strip_notes
from assay.serve.run_views import CitationView
from assay.serve.schemas import ResponseModel
from assay.serve.state import INTERNAL_ERROR, CurrentServer, CurrentWorkspace
from assay.serve.stream import HEADERS, HEARTBEAT, SSE
from assay.workspace import chat_history
from assay.workspace.chat_history import FULL, LATEST, MOST, SHORT
from assay.workspace.facade import Workspace
from assay.workspace.types import AskOptions, check_length

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


log = logging.getLogger("assay.serve")

PREFIX = "/v1"
INVALID, SERVER = "invalid_request_error", "server_error"
TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
NO_RETRY = {"X-Should-Retry": "false"}  # a client retry would repeat the whole run


def is_openai_path(path: str) -> bool:
    """Whether clients of OpenAI's interface call this path, so that every error there has their format."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


class OpenAIErrorRoute(APIRoute):
    """A route whose errors have OpenAI's format."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handle(request)
            except Exception as error:
                return error_response(error)

        return handled


def openai_error(
    status: int, kind: str, message: str, code: str | None = None, headers: dict[str, str] | None = None
) -> Response:
    body = {"error": OpenAIError(message=message, type=kind, code=code).model_dump()}
    return JSONResponse(body, status, headers)


def error_response(error: Exception) -> Response:
    match error:
        case RequestValidationError():
            first = error.errors()[0]
            place = ".".join(str(each) for each in first["loc"] if each != "body")
            return openai_error(400, INVALID, f"{place}: {first['msg']}" if place else str(first["msg"]))
        case HTTPException(status_code=status, detail=detail, headers=headers):
            kind = TYPES.get(status, INVALID if status < 500 else SERVER)
            code = "rate_limit_exceeded" if status == 429 else None
            return openai_error(status, kind, str(detail), code, dict(headers or {}))
        case Missing():
            return openai_error(404, INVALID, str(error), "model_not_found")
        case UserError():
            return openai_error(400, INVALID, str(error))
        case ModelError():
            log.warning("a question could not begin: %s", error)
            return openai_error(
                502, SERVER, "The language model did not answer as it should. The log says why.", headers=NO_RETRY
            )
        case StoreError():
            log.error("%s", error)
            return openai_error(503, SERVER, str(error), headers={"Retry-After": "1"})
        case AssayError():
            return openai_error(500, SERVER, str(error), headers=NO_RETRY)
        case _:
            log.error("a request broke down", exc_info=error)
            return openai_error(500, SERVER, INTERNAL_ERROR, headers=NO_RETRY)


T = TypeVar("T")

MODES = {"assay": Mode.balanced, "assay-quick": Mode.quick, "assay-thorough": Mode.thorough}
RECENT = 30  # of a person's runs, among which the last answer of a conversation is looked for
GONE = 499  # the client has disconnected

ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"model": OpenAIErrorResponse} for code in (400, 401, 403, 404, 413, 422, 429, 500, 502, 503)
}

chat_router = APIRouter(prefix=PREFIX, tags=["openai"], route_class=OpenAIErrorRoute, responses=ERRORS)


@chat_router.get("/models")
def models(workspace: CurrentWorkspace) -> ModelListResponse:
    """What can be named as a `model`: each mode over all knowledge bases, and over each."""
    return ModelListResponse(data=tuple(_models(workspace.scope())))


@chat_router.get("/models/{model:path}")
def model(model: str, workspace: CurrentWorkspace) -> ModelView:
    """One of them. A knowledge base that is not there and one that is not yours look the same."""
    mode, base = parse_model_name(model, workspace.scope())
    return _shape(model, mode, base)


def _models(scope: Scope) -> Iterator[ModelView]:
    for base in ("", *(each.name for each in scope.bases)):
        for name, mode in MODES.items():
            yield _shape(f"{name}/{base}" if base else name, mode, base)


def _shape(model: str, mode: Mode, base: str) -> ModelView:
    return ModelView(id=model, name=f"Assay, {mode}: {base or 'all documents'}")


def parse_model_name(model: str, scope: Scope) -> tuple[Mode, str]:
    """The mode and knowledge base of a model name; the base's own name may contain anything."""
    name, slash, base = model.partition("/")
    if name not in MODES or (slash and base not in {each.name for each in scope.bases}):
        raise Missing(f"There is no model called {model!r}. GET /v1/models lists them.")
    return MODES[name], base


@chat_router.post(
    "/chat/completions",
    response_model=ChatCompletion,
    responses={200: {"content": SSE, "description": "The answer, or (`stream`) its pieces as they come."}},
)
async def completions(
    chat: ChatRequest, request: Request, workspace: CurrentWorkspace, server: CurrentServer
) -> Response:
    """Answer the last message from the documents. Who hangs up stops the run."""
    if chat.n not in (None, 1):
        raise UserError("Only one answer is given to a question: leave `n` at 1.")
    mode, base = await asyncio.to_thread(lambda: parse_model_name(chat.model, workspace.scope()))
    question, history = split_messages(chat.messages)
    history = await asyncio.to_thread(_with_known_answer, workspace, chat.messages, history)
    how = AskOptions(mode=mode, where=SearchFilters(bases=(base,) if base else ()), checkpoints=(), history=history)
    asked = await begin(server, workspace, question, how)
    page = str(request.base_url.replace(scheme="https") if server.serving.secure else request.base_url)
    if chat.stream:
        usage = bool(chat.stream_options and chat.stream_options.include_usage)
        return StreamingResponse(
            _streamed(asked, chat.model, page, usage),
            media_type="text/event-stream",
            headers=HEADERS,
            background=BackgroundTask(asked.leave),  # also if the client left before the first chunk
        )
    reply = await _unless_gone(request, _ended(asked))
    if reply is None:
        return Response(status_code=GONE)
    if reply.error:
        return openai_error(502, SERVER, reply.error, headers=NO_RETRY)
    return JSONResponse(_completion(reply, chat.model, page).model_dump(mode="json"))


def _with_known_answer(
    workspace: Workspace, messages: Sequence[ChatMessage], history: tuple[Exchange, ...]
) -> tuple[Exchange, ...]:
    """The history with the last answer in full and what it cites, if it is that of a recent run of this person: "shorter"
    works on it. A reply that Assay did not give, or not so, stays words."""
    asked, said = last_exchange(messages)
    if not history or not said:
        return history
    for each in workspace.questions.recent(workspace.principal.id, workspace.scope(), RECENT):
        if each.delivered and each.question == asked and plain_reply(reply_of(workspace, each.id).text) == said:
            known = chat_history.history([workspace.questions.run_for_asker(each.id)])[-1]
            return (*history[:-1], replace(known, question=history[-1].question))
    return history


async def _ended(asked: AttachedRun) -> RunReply:
    async with aclosing(asked.lines()) as lines:
        async for _ in lines:
            pass
    return await asked.reply()


async def _unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of the work; None, with the work cancelled, if the client disconnects first."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _completion(reply: RunReply, model: str, page: str) -> ChatCompletion:
    message = AssistantMessage(content=reply.text, annotations=annotations_for(reply, page), assay=_own(reply))
    return ChatCompletion(
        id=f"chatcmpl-{reply.run.id}",
        created=int(time.time()),
        model=model,
        choices=(CompletionChoice(message=message),),
        usage=_tokens(reply),
    )


async def _streamed(asked: AttachedRun, model: str, page: str, with_usage: bool) -> AsyncIterator[str]:
    """Stream the role, then progress as reasoning, which is no part of the answer, and after delivery the answer, one
    paragraph at a time."""
    created = int(time.time())
    empty = {"usage": None} if with_usage else {}

    def piece(finish: str | None = None, **new: Any) -> str:
        choice = {"index": 0, "delta": to_jsonable_python(new), "logprobs": None, "finish_reason": finish}
        return _event(chunk(asked.run, created, model, choices=[choice], **empty))

    yield piece(role="assistant", content="")
    async with aclosing(asked.lines()) as lines:
        async for line in lines:
            yield piece(reasoning_content=f"{line}\n") if line else HEARTBEAT
    reply = await asked.reply()
    if reply.error:
        yield _event({"error": OpenAIError(message=reply.error, type=SERVER).model_dump()})
        return
    for part in reply.text.splitlines(keepends=True):
        yield piece(content=part)
    yield piece("stop", annotations=annotations_for(reply, page), assay=_own(reply))
    if with_usage:
        yield _event(chunk(asked.run, created, model, choices=[], usage=_tokens(reply).model_dump()))
    yield "data: [DONE]\n\n"


def _event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data)}\n\n"


def annotations_for(reply: RunReply, page: str) -> tuple[Annotation, ...]:
    """Annotations for each citation number in the text: the title of the source and a link to the quotation."""
    cited = {each.number: each for each in reply.citations}
    return tuple(
        Annotation(
            url_citation=UrlCitation(
                start_index=mark.start(),
                end_index=mark.end(),
                title=found.title,
                url=f"{page}#/document/{quote(found.document)}?start={found.start}&end={found.end}",
            )
        )
        for mark in citation_marks(reply.text)
        if (found := cited.get(int(mark[1]))) is not None
    )


def _own(reply: RunReply) -> AssayExtension:
    return AssayExtension(run=reply.run.id, outcome=reply.outcome, citations=reply.citations)


def _tokens(reply: RunReply) -> CompletionUsage:
    spent = reply.run.usage
    total = spent.tokens_in + spent.tokens_out
    return CompletionUsage(prompt_tokens=spent.tokens_in, completion_tokens=spent.tokens_out, total_tokens=total)


ASKED = 2000  # characters kept of an earlier question
UNANSWERED = "(not answered)"


def split_messages(messages: Sequence[ChatMessage]) -> tuple[str, tuple[Exchange, ...]]:
    """The question and the turns before it, oldest first."""
    spoken = [each for each in messages if each.role in ("user", "assistant")]
    if not spoken or spoken[-1].role != "user":
        raise UserError("The last message has to be the user's: it is the question.")
    question = extract_question(spoken[-1])
    pairs: list[tuple[str, str]] = []
    for message in spoken[:-1]:
        words = plain_reply(message_text(message))
        if message.role == "user":
            pairs.append((words, ""))
        elif pairs and words:
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]} {words}".strip())
    pairs = [pair for pair in pairs if pair[0]][-MOST:]
    before: list[Exchange] = []
    for place, (earlier, answer) in enumerate(pairs):
        room = FULL if place >= len(pairs) - LATEST else SHORT
        before.append(Exchange("", earlier[:ASKED], answer[:room] or UNANSWERED))
    return question, tuple(before)


def last_exchange(messages: Sequence[ChatMessage]) -> tuple[str, str]:
    """The last question before this one and the reply to it, as plain words; both empty if there is none."""
    spoken = [each for each in messages if each.role in ("user", "assistant")][:-1]
    if len(spoken) < 2 or [each.role for each in spoken[-2:]] != ["user", "assistant"]:
        return "", ""
    return message_text(spoken[-2]).strip(), plain_reply(message_text(spoken[-1]))


def plain_reply(text: str) -> str:
    """A reply without its notes, whatever a client has made of its white space."""
    return " ".join(strip_notes(text).split())


def extract_question(message: ChatMessage) -> str:
    """The text of the question. Pictures and files cannot be searched for."""
    if not isinstance(message.content, str) and (
        strange := [part.type for part in message.content or () if part.type != "text"]
    ):
        raise UserError(
            f"A question can only be text, and this one has a part of type {strange[0]!r}. "
            "Add the file to a knowledge base and ask about it."
        )
    question = message_text(message).strip()
    if not question:
        raise UserError("The question is empty. Ask something.")
    check_length(question)
    return question


def message_text(message: ChatMessage) -> str:
    content = message.content
    words = (
        content if isinstance(content, str) else "\n".join(each.text for each in content or () if each.type == "text")
    )
    return words.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # lone surrogates are accepted
