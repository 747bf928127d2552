"""The page is checked against declarations of the API, and a registry out of reach is no failure of the check."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "scripts" / "page"))

from api_types import declarations, openapi, recorded, typed
from check import UNREACHABLE


def test_every_route_and_every_event_has_its_type() -> None:
    said = declarations(openapi(), recorded())
    assert '  "GET /api/runs/{}": { body: undefined; reply: RunView };' in said
    assert '  "POST /api/runs/{}/choice": { body: ChoiceRequest; reply: RunStartedResponse };' in said
    assert '  "GET /api/bases": { body: undefined; reply: Array<BaseView> };' in said
    assert '  "DELETE /api/keys/{}": { body: undefined; reply: null };' in said
    assert '  StepAnswered: { "step": string; "value": string; "cites": Array<string>; "by"?: string; };' in said


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        ({"$ref": "#/components/schemas/Place-Input"}, "Place_Input"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "(number | null)"),
        ({"enum": ["new", "old"]}, '"new" | "old"'),
        ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}]}, "[string, boolean]"),
        (
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]},
            '{ "a": string; "b"?: any; }',
        ),
        ({"type": "object", "additionalProperties": {"const": 1}}, "Record<string, 1>"),
    ],
)
def test_a_schema_is_a_type(schema: dict[str, object], type_: str) -> None:
    assert typed(schema) == type_


@pytest.mark.parametrize("code", ["ENOTFOUND", "ECONNREFUSED", "ETIMEDOUT", "E503", "SELF_SIGNED_CERT_IN_CHAIN"])
def test_without_npm_the_check_is_left_out(code: str) -> None:
    assert UNREACHABLE.search(f"npm error code {code}\nnpm error network")


@pytest.mark.parametrize("code", ["EUSAGE", "EINTEGRITY", "ENOENT"])
def test_a_lock_that_does_not_fit_is_a_failure(code: str) -> None:
    assert not UNREACHABLE.search(f"npm error code {code}\nnpm error")
