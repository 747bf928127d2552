"""An OpenAI-compatible chat endpoint. Modes and knowledge bases are its models. The answer is sent after it was
checked, with numbered citations, a list of sources at its end, and the same as annotations."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.background import BackgroundTask

from assay.core.access import Scope
from assay.core.errors import Missing, UserError
from assay.core.events import Mode, SearchFilters
from assay.core.types import Exchange
from assay.serve.attached_run import AttachedRun, RunReply, begin, reply_of
from assay.serve.openai_chat import PREFIX
from assay.serve.openai_chat import SERVER
from assay.serve.openai_chat import OpenAIErrorRoute
from assay.serve.openai_chat import RunWithoutAnswer
from assay.serve.openai_chat import last_exchange
from assay.serve.openai_chat import plain_reply
from assay.serve.openai_chat import split_messages
from assay.serve.openai_chat import Annotation
from assay.serve.openai_chat import AssayExtension
from assay.serve.openai_chat import AssistantMessage
from assay.serve.openai_chat import ChatCompletion
from assay.serve.openai_chat import ChatMessage
from assay.serve.openai_chat import ChatRequest
from assay.serve.openai_chat import CompletionChoice
from assay.serve.openai_chat import CompletionUsage
from assay.serve.openai_chat import Delta
from assay.serve.openai_chat import ModelListResponse
from assay.serve.openai_chat import ModelView
from assay.serve.openai_chat import OpenAIError
from assay.serve.openai_chat import OpenAIErrorResponse
from assay.serve.openai_chat import UrlCitation
from assay.serve.openai_chat import chunk
from assay.serve.state import CurrentPerson, CurrentServer, CurrentWorkspace
from assay.serve.stream import HEADERS, HEARTBEAT, SSE
from assay.serve.attached_run import citation_marks
from assay.store.runs import history as runs
from assay.workspace import chat_history
from assay.workspace.facade import Workspace
from assay.workspace.types import AskOptions

T = TypeVar("T")

MODES = {"assay": Mode.balanced, "assay-quick": Mode.quick, "assay-thorough": Mode.thorough}
RECENT = 30  # of a person's runs, among which the last answer of a conversation is looked for
GONE = 499  # the client has disconnected

ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"model": OpenAIErrorResponse} for code in (400, 401, 403, 404, 413, 422, 429, 500, 502, 503)
}

router = APIRouter(
    prefix=PREFIX,
    tags=["openai"],
    route_class=OpenAIErrorRoute,
    responses=ERRORS,
)


# --- models ---------------------------------------------------------------------------------------------------------


@router.get("/models", response_model=ModelListResponse)
def models(workspace: CurrentWorkspace) -> ModelListResponse:
    """What can be named as a `model`: each mode over all knowledge bases, and over each."""
    return ModelListResponse(data=tuple(_models(workspace.scope())))


@router.get("/models/{model:path}", response_model=ModelView)
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


# --- completions ----------------------------------------------------------------------------------------------------


@router.post(
    "/chat/completions",
    response_model=ChatCompletion,
    responses={200: {"content": SSE, "description": "The answer, or (`stream`) its pieces as they come."}},
)
async def completions(
    chat: ChatRequest, request: Request, workspace: CurrentWorkspace, who: CurrentPerson, server: CurrentServer
) -> Response:
    """Answer the last message from the documents. Who hangs up stops the run."""
    if chat.n not in (None, 1):
        raise UserError("Only one answer is given to a question: leave `n` at 1.")
    mode, base = await asyncio.to_thread(lambda: parse_model_name(chat.model, workspace.scope()))
    question, history = split_messages(chat.messages)
    history = await asyncio.to_thread(_with_known_answer, workspace, chat.messages, history)
    how = AskOptions(mode=mode, where=SearchFilters(bases=(base,) if base else ()), checkpoints=(), history=history)
    asked = await begin(server, who, workspace, question, how)
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
        raise RunWithoutAnswer(reply.error)
    return JSONResponse(_completion(reply, chat.model, page).model_dump(mode="json"))


def _with_known_answer(
    workspace: Workspace, messages: Sequence[ChatMessage], history: tuple[Exchange, ...]
) -> tuple[Exchange, ...]:
    """The history with the last answer in full and what it cites, if it is that of a recent run of this person: "shorter"
    works on it. A reply that Assay did not give, or not so, stays words."""
    asked, said = last_exchange(messages)
    if not history or not said:
        return history
    for each in runs.history(workspace.store, workspace.principal.id, workspace.scope(), RECENT):
        if each.delivered and each.question == asked and plain_reply(reply_of(workspace, each.id).text) == said:
            known = chat_history.history([workspace.run_for_asker(each.id)])[-1]
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
    """Stream the role, then progress as reasoning, and after delivery the answer, one paragraph at a time."""
    created = int(time.time())
    empty = {"usage": None} if with_usage else {}

    def piece(finish: str | None = None, **new: Any) -> str:
        delta = {name: value for name, value in Delta(**new).model_dump(mode="json").items() if value is not None}
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
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
                start_index=mark.start,
                end_index=mark.end,
                title=found.title,
                url=f"{page}#/document/{quote(found.document)}?start={found.start}&end={found.end}",
            )
        )
        for mark in citation_marks(reply.text)
        if (found := cited.get(mark.number)) is not None
    )


def _own(reply: RunReply) -> AssayExtension:
    return AssayExtension(run=reply.run.id, outcome=reply.outcome, citations=reply.citations)


def _tokens(reply: RunReply) -> CompletionUsage:
    spent = reply.run.usage
    total = spent.tokens_in + spent.tokens_out
    return CompletionUsage(prompt_tokens=spent.tokens_in, completion_tokens=spent.tokens_out, total_tokens=total)
