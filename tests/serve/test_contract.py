"""What /openapi.json says is what the server does: every operation, with real ids and with made-up ones, with what the
document allows and with what it forbids. Nothing breaks down, no reply has a status, a type or a form that is not written
there."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import httpx
import pytest
import schemathesis
from fastapi import FastAPI, HTTPException
from fastapi.responses import JSONResponse
from furnished import Real, destroys, furnish, furnished, made, operations, spare
from notes import filled
from pydantic import BaseModel
from schemathesis import Case
from schemathesis.checks import CheckContext
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import from_schema
from schemathesis.engine.events import FatalError, NonFatalError, ScenarioFinished
from schemathesis.openapi.checks import AllowHeaderMismatch, UnsupportedMethodResponse
from schemathesis.schemas import BaseSchema
from serving import Served, served

from assay.serve.guard import SIGNING_IN
from assay.serve.state import ServeOptions
from assay.store.access import members, tokens

# Paths that another path takes as well: a base's name may hold a slash, and `forecast` could be a run. What they do not take
# themselves is answered there.
SHARED = {
    "/api/bases/{name}/access",
    "/api/bases/{name}/readiness",
    "/api/bases/{name}/restrictions",
    "/api/bases/{name}/documents",
    "/api/synthesis/forecast",
}

# What begins work that goes on is not asked in every way there is. Another operation takes the same body and is.
AT_LENGTH = {"/api/synthesis": "/api/synthesis/forecast", "/api/ask": "/api/runs"}
PASSWORD = "a long enough password"


def config(url: str, *, every_way: bool, headers: dict[str, str] | None = None) -> SchemathesisConfig:
    """The same cases every time, few enough to be asked at every commit: what is asked does not depend on what was answered.
    What is well formed and means nothing (a date that is none, a run that has no answer yet) may be refused with 400, but
    never as malformed."""
    unlearned = {"extra-data-sources": {"responses": False}}
    quietly = {"coverage": {"enabled": False}}
    return SchemathesisConfig.from_dict(
        {
            "seed": 5,
            "base-url": url,
            "headers": headers or {},
            "request-timeout": 60,
            "generation": {
                "max-examples": 1,
                "deterministic": True,
                "no-shrink": True,
                "database": "none",
                "with-security-parameters": False,  # the key of the headers is used; made-up ones are tested elsewhere
            },
            "checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", 400, 401, 403, 404, 409, 429]}},
            "phases": {
                "examples": unlearned,
                "coverage": {"enabled": every_way, "unexpected-methods": ["options", "put"], **unlearned},
                "fuzzing": {"error-feedback": {"enabled": False}, **unlearned},
                "stateful": {"enabled": False},
            },
            "operations": [{"include-method": "POST", "include-path": path, "phases": quietly} for path in AT_LENGTH],
        }
    )


def described(client: httpx.Client, real: Real) -> dict[str, Any]:
    """The document, with ids of things that there are as examples. What is deleted is something that nobody misses."""
    document, spared = made(client.get("/openapi.json")), spare(client)
    for method, path, operation in operations(document):
        ids = spared if destroys(method, path) else real.ids(path)
        if path.endswith("/erase"):
            ids = {"document": spared["erased"]}
        if destroys(method, path) and path.startswith("/api/people/"):
            ids = {"name": spared["person"]}
        if path.endswith("/resume"):
            ids = {"run": (real.stopped,)}  # by then somebody has carried on the others
        for each in operation.get("parameters", ()):
            if each["in"] == "path" and each["name"] in ids:
                each["examples"] = {name: {"value": name} for name in ids[each["name"]]}
            if each["in"] == "query" and each["name"] == "pattern":
                each["examples"] = {"a folder": {"value": "hr/**"}}
    examples = {
        "ChatRequest": {"model": "assay", "messages": [{"role": "user", "content": "How tall is the tower?"}]},
        "CreateSynthesisRequest": {"documents": [real.document, real.other], "questions": 1},
        "SearchRequest": {"bases": list(real.bases), "since": "2001", "until": "2031-01"},
        "AskRequest": {"thread": real.thread, "since": "2001", "until": "2031-01"},
        "RerunRequest": {"from": 1},
        "SettingsRequest": {"values": {"search_rounds": 3}},
        "DecisionRequest": {"decision": "approve", "seal": real.seal},
        "MarkDocumentsRequest": {"ids": [real.document], "off": False},
        "ChangeAccessRequest": {"name": "group:readers", "may": True},
        "RestrictRequest": {"pattern": "hr/**", "only_for": ["group:readers"]},
        "AskAndWaitRequest": {"thread": real.thread, "since": "2001", "until": "2031-01"},
    }
    for shape, values in examples.items():
        for name, value in values.items():
            document["components"]["schemas"][shape]["properties"][name]["examples"] = [value]
    return document


def loaded(document: dict[str, Any], real: Real, how: SchemathesisConfig) -> BaseSchema:
    schema = schemathesis.openapi.from_dict(document, config=how)

    @schema.hook
    def map_path_parameters(context: Any, path_parameters: Any) -> Any:
        """A real id about half of the time, but for what destroys."""
        operation = context.operation
        if not isinstance(path_parameters, dict) or destroys(operation.method.upper(), operation.path):
            return path_parameters
        ids = real.ids(operation.path)
        return {
            name: ids[name][len(str(value)) % len(ids[name])] if name in ids and len(str(value)) % 2 else value
            for name, value in path_parameters.items()
        }

    @schema.hook
    def filter_failure(context: Any, failure: Any, case: Case, response: Any) -> bool:
        methods = isinstance(failure, UnsupportedMethodResponse | AllowHeaderMismatch)
        return not (methods and case.operation.path in SHARED)

    return schema


@schemathesis.check
def says_what_is_wrong(context: CheckContext, response: Any, case: Case) -> None:
    """Every error has one form; /v1 has OpenAI's."""
    if response.status_code < 400 or case.path == "/ready":
        return
    said = response.json()
    if case.path.startswith("/v1"):
        assert set(said["error"]) == {"message", "type", "param", "code"} and said["error"]["message"]
    else:
        assert set(said) == {"error", "detail"} and said["error"] and said["detail"]
        assert said["error"] != "http", "an error without a name of its own"


class Count(BaseModel):
    count: int


@dataclass
class Found:
    """What came of it: the statuses that each operation answered with, and what is wrong, with a line to try it again."""

    answered: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    wrong: dict[str, str] = field(default_factory=dict)
    cases: int = 0


def tried(schema: BaseSchema) -> Found:
    """Every operation, case by case."""
    found = Found()
    for event in from_schema(schema).execute():
        match event:
            case ScenarioFinished():
                recorder = event.recorder
                for id, interaction in recorder.interactions.items():
                    found.cases += 1
                    label = recorder.cases[id].value.operation.label
                    status = interaction.response.status_code if interaction.response else 0
                    if recorder.cases[id].value.method == recorder.cases[id].value.operation.method.upper():
                        found.answered[label].add(status)
                for id, checks in recorder.checks.items():
                    for check in checks:
                        if check.failure_info is not None:
                            failure = check.failure_info.failure
                            key = f"{recorder.cases[id].value.operation.label}: {failure.title}"
                            found.wrong.setdefault(key, f"{failure.message}\n{check.failure_info.code_sample}")
            case NonFatalError():
                found.wrong[f"{event.label}: {event.info.title}"] = str(event.value)
            case FatalError():
                raise event.exception
            case _:
                pass
    return found


# They succeed only with a model, a folder, a restriction or a second person: see test_setup.py, test_feedback.py and
# hostile/test_restricted_files.py.
ELSEWHERE = frozenset(
    {
        "DELETE /api/bases/{name}/restrictions",
        "DELETE /api/identities/{identity}",
        "DELETE /api/people/{name}/identities/{identity}",
        "DELETE /api/watches/{watch}",
        "GET /api/shared-threads/{thread}",
        "POST /api/documents/{document}/held",
        "POST /api/folders",
        "POST /api/shared-threads/{thread}",
        "POST /api/identities",
        "POST /api/model/names",
        "POST /api/model/preview",
        "POST /api/model/test",
        "POST /api/people/{name}/identities",
        "POST /api/session/provider",
        "POST /api/threads/{thread}/readers",
        "POST /api/watches",
        "PUT /api/model",
    }
)


def wrong_with(schema: BaseSchema, never: frozenset[str] = frozenset()) -> dict[str, str]:
    """What is wrong. Every operation is tried, and each has something to say to somebody, but for those named."""
    found, labels = tried(schema), {f"{method} {path}" for method, path, _ in operations(schema.raw_schema)}
    silent = {label for label in labels if not any(200 <= status < 300 for status in found.answered[label])}
    return found.wrong | {label: f"answers only {found.answered[label]}" for label in silent ^ never}


@pytest.mark.long
def test_what_an_operation_does_otherwise_than_it_says_is_seen():
    wrong = FastAPI()

    @wrong.get("/breaks")
    def breaks() -> None:
        raise RuntimeError("broken")

    @wrong.get("/lies", response_model=Count)
    def lies() -> JSONResponse:
        return JSONResponse({"count": "many"})

    @wrong.get("/refuses", responses={404: {"model": dict[str, str]}})
    def refuses() -> None:
        raise HTTPException(404, "in another form")

    @wrong.get("/surprises")
    def surprises() -> JSONResponse:
        return JSONResponse({"error": "tea", "detail": "no coffee"}, 418)

    schema = schemathesis.openapi.from_asgi("/openapi.json", wrong, config=config("http://localhost", every_way=False))
    found = wrong_with(schema)
    for path in ("/breaks", "/lies", "/refuses", "/surprises"):
        assert any(label.startswith(f"GET {path}: ") for label in found), path


def quick_passwords() -> Any:
    """Many are set here, and how long that takes is not what is tested."""
    return patch.object(members, "COST", 2**10)


# --- one person -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, BaseSchema]]:
    folder = tmp_path_factory.mktemp("alone") / "workspace"
    with quick_passwords(), furnished(folder, metrics=True) as (at, real), at.client() as client:
        yield at, loaded(described(client, real), real, config(at.url, every_way=True))


@pytest.mark.long
@pytest.mark.timeout(300)
def test_every_operation_answers_as_the_document_says(alone: tuple[Served, BaseSchema]):
    at, schema = alone
    never = {"POST /api/session", "POST /api/keys", "DELETE /api/keys/{key}"}  # who is alone needs none of these
    wrong = wrong_with(schema, frozenset(never) | ELSEWHERE)
    assert not wrong, "\n".join(f"{each}: {why}" for each, why in wrong.items())
    with at.client() as client:
        assert client.get("/health").json() == {"status": "ok"}


# --- people who sign in ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def signed_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, BaseSchema]]:
    folder = tmp_path_factory.mktemp("team") / "workspace"
    asyncio.run(filled(folder, {}))
    with quick_passwords(), served(folder, serving=ServeOptions(auth="keys"), metrics=True) as at:
        store = at.server.workspace.store
        reader = members.add(store, "reader", ["readers"], admin=True, password=PASSWORD)
        key = {"Authorization": f"Bearer {tokens.new_key(store, 'reader')}"}
        with at.client(**key) as client:
            real = furnish(client, at.server, reader.principal)
            document = described(client, real)
            login = document["components"]["schemas"]["LoginRequest"]["properties"]
            login["name"]["examples"], login["password"]["examples"] = ["reader"], [PASSWORD]
            yield at, loaded(document, real, config(at.url, every_way=False, headers=key))


@pytest.mark.long
@pytest.mark.timeout(300)
def test_with_a_key_every_operation_answers_as_the_document_says(signed_in: tuple[Served, BaseSchema]):
    wrong = wrong_with(signed_in[1], ELSEWHERE)
    assert not wrong, "\n".join(f"{each}: {why}" for each, why in wrong.items())


@pytest.mark.long
def test_without_a_key_no_operation_says_anything_but_that(signed_in: tuple[Served, BaseSchema]):
    at, schema = signed_in
    refused = 0
    with at.client() as client:
        for method, path, operation in operations(schema.raw_schema):
            reply = client.request(method, path.replace("{", "").replace("}", ""), json={})
            if path in {"/health", "/ready"} or (method, path) in SIGNING_IN:
                assert reply.status_code in {200, 303, 400, 404, 422}
                continue
            assert reply.status_code == 401, (method, path)
            assert "401" in operation["responses"], (method, path)
            assert reply.headers["WWW-Authenticate"].startswith("Bearer")
            assert reply.json()["error"]
            refused += 1
    assert refused > 40
