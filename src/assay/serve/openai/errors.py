"""Errors of the OpenAI-compatible routes in OpenAI's format; clients choose their exception by the status code."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from assay.core.errors import AssayError, Missing, ModelError, StoreError, UserError
from assay.serve.openai_chat import OpenAIError
from assay.serve.state import INTERNAL_ERROR

log = logging.getLogger("assay.serve")

PREFIX = "/v1"
INVALID, SERVER = "invalid_request_error", "server_error"
TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
NO_RETRY = {"X-Should-Retry": "false"}  # a client retry would repeat the whole run


def is_openai_path(path: str) -> bool:
    """Whether clients of OpenAI's interface call this path, so that every error there has their format."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


class RunWithoutAnswer(Exception):
    """A run that ended without an answer."""


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
        case RunWithoutAnswer():
            return openai_error(502, SERVER, str(error), headers=NO_RETRY)
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
