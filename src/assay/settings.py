"""Settings: flag > environment > `assay.toml` > default. One flat list of names, each with its reason in words."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from assay.errors import UserError

PREFIX = "ASSAY_"
FILE = "assay.toml"


class Settings(BaseModel):
    """Everything that can be set. `assay config show` prints it with where each value comes from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    embedder: str = Field(
        "minilm", description="`minilm` (bundled), a folder with an ONNX model, or the URL of a /v1 endpoint"
    )
    embedder_model: str = Field("", description="the model's name at the endpoint")
    embedder_api_key: SecretStr = Field(
        SecretStr(""), description="key for the endpoint; or file:PATH, or keyring:SERVICE/NAME"
    )
    embedder_query_prefix: str = Field("", description="words put before every query, where the model wants them")
    embedder_passage_prefix: str = Field("", description="words put before every passage, where the model wants them")
    embedder_pooling: str = Field("", description="mean, cls, max or last; empty takes it from the model's folder")

    reranker: str = Field(
        "none", description="`none`, `late` (bundled embedder), a folder with a cross-encoder, or a /rerank URL"
    )
    reranker_model: str = Field("", description="the model's name at the endpoint")
    reranker_api_key: SecretStr = Field(
        SecretStr(""), description="key for the endpoint; or file:PATH, or keyring:SERVICE/NAME"
    )

    passage_tokens: int = Field(200, ge=32, le=2000, description="the size of a passage, in the embedder's tokens")
    passage_overlap: int = Field(40, ge=0, le=500, description="how many tokens neighbouring passages share, at most")

    pool: int = Field(100, ge=10, le=1000, description="how many passages each channel contributes to a search")
    per_document: int = Field(
        3, ge=0, le=100, description="the most passages of one document in a result; 0 for no cap"
    )
    diversity: float = Field(
        0.0, ge=0.0, le=1.0, description="0 ranks by relevance alone, 1 by difference from what is above"
    )

    file_max_megabytes: int = Field(200, ge=1, description="the largest file that is read")
    file_max_pages: int = Field(5000, ge=1, description="the most pages that are read of one file")
    file_max_seconds: float = Field(120.0, gt=0, description="processor time that reading one file may take")
    file_max_memory_megabytes: int = Field(4000, ge=256, description="memory that reading one file may take")
    ocr: bool = Field(False, description="read scanned pages with the tesseract program, where it is installed")
    ocr_languages: str = Field("eng", description="the languages of scanned pages, as tesseract spells them: eng+deu")

    search_rounds: int = Field(0, ge=0, le=50, description="rounds of searching per question; 0 leaves it to the mode")

    proxy: str = Field("", description="proxy for endpoints; empty uses HTTPS_PROXY and its kin")
    ca_bundle: str = Field("", description="file with certificates to trust at endpoints; empty uses the system's")


@dataclass(frozen=True, slots=True)
class Shown:
    """One setting as a person sees it: secrets are never shown."""

    name: str
    value: str
    origin: str
    about: str


def load_settings(workspace: Path, flags: Mapping[str, Any] | None = None) -> Settings:
    """The settings that hold in a workspace. An unknown name or a bad value is one line that says which."""
    return _validated(workspace, _gathered(workspace, flags or {}))


def _gathered(workspace: Path, flags: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    """Name → (value, origin), the strongest origin last."""
    file = workspace / FILE
    found = {name: (value, str(file)) for name, value in _read_file(file).items()}
    for variable, value in os.environ.items():
        name = variable.removeprefix(PREFIX).lower()
        if variable.startswith(PREFIX) and name in Settings.model_fields:
            found[name] = (value, f"environment {variable}")
    return found | {name: (value, "flag") for name, value in flags.items() if value is not None}


def _read_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{file} is not valid TOML: {error}.") from error
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}.") from error


def _validated(workspace: Path, found: Mapping[str, tuple[Any, str]]) -> Settings:
    try:
        return Settings(**{name: value for name, (value, _) in found.items()})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "?"
        origin = found[name][1] if name in found else str(workspace / FILE)
        if first["type"] == "extra_forbidden":
            raise UserError(
                f"There is no setting called {name!r} ({origin}). `assay config show` lists them."
            ) from error
        raise UserError(f"The setting {name!r} ({origin}) is not usable: {first['msg']}.") from error


def show_settings(workspace: Path, flags: Mapping[str, Any] | None = None) -> list[Shown]:
    found = _gathered(workspace, flags or {})
    settings = _validated(workspace, found)
    lines: list[Shown] = []
    for name, field in Settings.model_fields.items():
        value = getattr(settings, name)
        shown = ("(set)" if value.get_secret_value() else "") if isinstance(value, SecretStr) else masked(str(value))
        lines.append(Shown(name, shown, found[name][1] if name in found else "default", field.description or ""))
    return lines


def masked(words: str) -> str:
    """The same without the name and password that stand before the host in an address."""
    return re.sub(r"(://)[^/?#\s]*@|^[^/?#\s:]+:[^/?#\s]*@", r"\1***@", words)


def keys_written_in(workspace: Path) -> list[str]:
    """The settings whose secret itself stands in the workspace's file."""
    found = _read_file(workspace / FILE)
    secrets = [name for name, field in Settings.model_fields.items() if field.annotation is SecretStr]
    own = [name for name in secrets if found.get(name) and not str(found[name]).startswith(("file:", "keyring:"))]
    return own + [name for name, value in found.items() if isinstance(value, str) and masked(value) != value]


def secret(value: SecretStr) -> str:
    """A secret's own words: as given, from a file, or from the system's keyring."""
    text = value.get_secret_value()
    if text.startswith("file:"):
        file = Path(text.removeprefix("file:")).expanduser()
        try:
            return file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise UserError(f"The key file {file} cannot be read: {error.strerror}.") from error
    if text.startswith("keyring:"):
        service, _, name = text.removeprefix("keyring:").partition("/")
        try:
            import keyring  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise UserError("A key is to come from the keyring: install the package `keyring` first.") from error
        found = keyring.get_password(service, name)
        if found is None:
            raise UserError(f"The keyring has no entry {name!r} of {service!r}.")
        return found
    return text
