"""The shapes of the HTTP API as TypeScript declarations: out of the OpenAPI document, and of the recorded types that it leaves
open. The page is checked against them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import FastAPI
from pydantic import TypeAdapter

Schema = Mapping[str, Any]
TAKEN = {"Report": "ReportTable"}  # names that a browser has types for
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def openapi() -> Schema:
    """The document of a server, without starting one."""
    from assay.serve.app import ROUTERS

    app = FastAPI()
    for router in ROUTERS:
        app.router.routes.extend(router.routes)
    return app.openapi()


def recorded() -> Schema:
    """Schemas of the events and of the result of a synthesis. Their JSON leaves out what is None."""
    from assay.core.events import KINDS
    from assay.core.synthesis import Synthesis

    inputs = [(name, "serialization", TypeAdapter(kind)) for name, kind in {**KINDS, "Synthesis": Synthesis}.items()]
    return TypeAdapter.json_schemas(inputs, ref_template='Recorded["{model}"]')[1]["$defs"]


def declarations(document: Schema, recorded: Schema) -> str:
    """A type for every schema; `Routes`: what each route takes and returns; `Recorded["NAME"]` for what is on record."""
    return "\n".join(
        [
            "// Generated from the OpenAPI document by `make check`.",
            *(f"type {_name(name)} = {typed(schema)};" for name, schema in document["components"]["schemas"].items()),
            "interface Routes {",
            *_routes(document),
            "}",
            "interface Recorded {",
            *(f"  {name}: {typed(schema)};" for name, schema in recorded.items()),
            "}",
            "",
        ]
    )


def typed(schema: Schema) -> str:
    """The type of the values that a JSON schema allows."""
    match schema:
        case {"$ref": reference}:
            return _name(reference.removeprefix("#/components/schemas/"))
        case {"const": value}:
            return json.dumps(value)
        case {"enum": values}:
            return " | ".join(json.dumps(value) for value in values)
        case {"anyOf": options} | {"oneOf": options}:
            return f"({' | '.join(dict.fromkeys(map(typed, options)))})"
        case {"type": "array", "prefixItems": items}:
            return f"[{', '.join(map(typed, items))}]"
        case {"type": "array"}:
            return f"Array<{typed(schema.get('items', {}))}>"
        case {"type": "object", "properties": fields}:
            required = schema.get("required", ())
            inside = (
                f"{json.dumps(name)}{'' if name in required else '?'}: {typed(each)};" for name, each in fields.items()
            )
            return f"{{ {' '.join(inside)} }}"
        case {"type": "object", "additionalProperties": dict(each)}:
            return f"Record<string, {typed(each)}>"
        case {"type": "object"}:
            return "Record<string, any>"
        case {"type": plain}:
            return PLAIN[plain]
        case _:
            return "any"


def _routes(document: Schema) -> Iterator[str]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            yield (
                f'  "{method.upper()} {re.sub("{.*?}", "{}", path)}": '
                f"{{ body: {typed(body['schema']) if body else 'undefined'}; reply: {_reply(operation)} }};"
            )


def _reply(operation: Schema) -> str:
    content = next(each for code, each in operation["responses"].items() if code.startswith("2")).get("content", {})
    if schema := content.get("application/json", {}).get("schema"):
        return typed(schema)
    return "string" if content else "null"


def _name(name: str) -> str:
    name = name.replace("-", "_")  # NAME-Input and NAME-Output, where the two differ
    return TAKEN.get(name, name)
