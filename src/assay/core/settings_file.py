"""Changes single settings in `assay.toml` and preserves the rest of the file, including comments."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from assay.core.private_files import write_private
from assay.core.settings import FILE, Settings

Value = str | int | float | bool


def write_settings(folder: Path, wanted: Mapping[str, Any]) -> bool:
    """Write these settings to the workspace's file; False if nothing was to change. A value equal to the default needs no
    line, and an existing line for it is removed."""
    place = folder / FILE
    text = place.read_text(encoding="utf-8") if place.exists() else ""
    present, changes = tomllib.loads(text), {}
    for name, value in wanted.items():
        default = Settings.model_fields[name].default
        line = None if value == (default.get_secret_value() if isinstance(default, SecretStr) else default) else value
        if present.get(name) != line:
            changes[name] = line
    if changes:
        write_private(place, with_settings(text, changes).encode())
    return bool(changes)


def with_settings(text: str, values: Mapping[str, Value | None]) -> str:
    """The file with these settings; a value of None removes the setting. If lines cannot be separated (a value over
    several lines), the file is rewritten without its comments."""
    lines = text.splitlines()
    for name, value in values.items():
        own = [place for place, line in enumerate(lines) if re.match(rf"\s*{re.escape(name)}\s*=", line)]
        if value is not None and own:
            lines[own[0]] = f"{name} = {spelled(value)}"
        elif value is not None:
            lines.append(f"{name} = {spelled(value)}")
        elif own:
            del lines[own[0]]
    wanted = {**tomllib.loads(text), **values}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    changed = "".join(f"{line}\n" for line in lines)
    return changed if _reads_as(changed, wanted) else "".join(f"{k} = {spelled(v)}\n" for k, v in wanted.items())


def _reads_as(text: str, wanted: Mapping[str, Value]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False


def spelled(value: Value) -> str:
    """A value in TOML syntax."""
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f") if isinstance(value, str) else repr(value)
