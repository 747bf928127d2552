"""The OpenAPI document says how a client signs in, as the server is set up; and what it says is what the server accepts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from serving import Served
from team import team

from assay.serve.guard import COOKIE
from assay.serve.state import ServeOptions

Serve = Callable[..., AbstractContextManager[Served]]
TOKEN = "0123456789abcdef0123456789abcdef"


def document(at: Served) -> dict[str, Any]:
    with at.client() as client:
        return client.get("/openapi.json").json()


def test_a_server_of_people_describes_keys_and_sessions(folder: Path):
    with team(folder) as people:
        described = document(people.at)
        schemes = described["components"]["securitySchemes"]
        assert {name: each["type"] for name, each in schemes.items()} == {
            "key": "http",
            "session": "apiKey",
            "csrf": "apiKey",
        }
        assert schemes["session"]["name"] == COOKIE
        paths = described["paths"]
        assert paths["/api/bases"]["get"]["security"] == [{"key": []}, {"session": []}]
        assert paths["/api/bases"]["post"]["security"] == [{"key": []}, {"session": [], "csrf": []}]
        assert paths["/v1/models"]["get"]["security"] == [{"key": []}, {"session": []}]
        assert [paths[path][method]["security"] for path, method in (("/health", "get"), ("/api/session", "post"))] == [
            [],
            [],
        ]
        assert document(people.at) == described, "asked for twice, it is the same"


def test_what_is_described_as_open_is_open_and_nothing_else(folder: Path):
    with team(folder) as people, people.at.client() as nobody:
        for path, operations in document(people.at)["paths"].items():
            for method, operation in operations.items():
                if method == "get" and "{" not in path:
                    refused = nobody.get(path).status_code == 401
                    assert refused == bool(operation["security"]), path


def test_a_server_with_a_token_describes_it(serve: Serve):
    with serve(serving=ServeOptions(token=TOKEN)) as at:
        described = document(at)
        assert described["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
        assert described["paths"]["/api/me"]["get"]["security"] == [{"token": []}]
        assert described["paths"]["/api/session"]["post"]["security"] == [{"token": []}]


def test_a_server_behind_a_proxy_names_its_header(serve: Serve):
    with serve(serving=ServeOptions(auth="header", user_header="X-Forwarded-User", proxies=("127.0.0.1",))) as at:
        described = document(at)
        assert described["components"]["securitySchemes"]["proxy"]["name"] == "X-Forwarded-User"
        assert described["paths"]["/api/me"]["get"]["security"] == [{"proxy": []}]


def test_a_server_that_asks_nothing_describes_nothing(serve: Serve):
    with serve() as at:
        described = document(at)
        assert "securitySchemes" not in described["components"]
        assert "security" not in described["paths"]["/api/me"]["get"]
