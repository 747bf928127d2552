"""Parts of the JSON schemas of replies. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def object_schema(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """An object with exactly these fields."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def list_schema(items: Mapping[str, Any], least: int, most: int) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}
