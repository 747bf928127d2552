"""Settings: flag > environment > `assay.toml` > default. One flat list of names, each with a description."""

from __future__ import annotations

import json
import os
import re
import tomllib
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from assay.core.errors import UserError
from assay.core.private_files import write_private

PREFIX = "ASSAY_"
FILE = "assay.toml"
NO_SECRET = SecretStr("")
_KEY = "key for the endpoint; or file:PATH, or keyring:SERVICE/NAME"


def _set(default: Any, about: str, **limits: Any) -> Any:
    """A setting: its default, what it is, and between which numbers it must lie."""
    return Field(default, description=about, **limits)


def _ceiling(default: float, about: str) -> Any:
    return _set(default, f"{about}; 0 for no ceiling", ge=0)


class Settings(BaseModel):
    """Everything that can be set. `assay config show` prints it with where each value comes from."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    embedder: str = _set(
        "bundled", "`bundled` or `gte-small`, a folder with an ONNX model, or the URL of a /v1 endpoint"
    )
    embedder_model: str = _set("", "the model's name at the endpoint")
    embedder_api_key: SecretStr = _set(NO_SECRET, _KEY)
    embedder_query_prefix: str = _set("", "words put before every query, where the model wants them")
    embedder_passage_prefix: str = _set("", "words put before every passage, where the model wants them")
    embedder_pooling: str = _set("", "mean, cls, max or last; empty takes it from the model's folder")

    reranker: str = _set(
        "none",
        "`none`, `late` (tokens of the bundled embedder), `answer` (the bundled answer model), `llm` (the language "
        "model, in questions), a folder with a cross-encoder, or a /rerank URL",
    )
    reranker_model: str = _set("", "the model's name at the endpoint")
    reranker_api_key: SecretStr = _set(NO_SECRET, _KEY)

    llm_base_url: str = _set(
        "", "address of an OpenAI-compatible endpoint, up to /v1; empty: no model, unless `llm_model` names a provider"
    )
    llm_api_key: SecretStr = _set(NO_SECRET, _KEY)
    llm_model: str = _set(
        "", "the model's name at the endpoint, or provider:model as pydantic-ai spells it; `none` for no model"
    )
    llm_fallback_model: str = _set("", "the model that takes over where another one fails")
    llm_route_model: str = _set("", "a model of its own for routing; empty: `llm_model`")
    llm_plan_model: str = _set("", "a model of its own for planning")
    llm_decide_model: str = _set("", "a model of its own for choosing what to search for")
    llm_weigh_model: str = _set("", "a model of its own for weighing passages; a cheap one will do")
    llm_judge_model: str = _set("", "a model of its own for judging whether there is enough")
    llm_write_model: str = _set("", "a model of its own for writing the answer; take the best one")
    llm_check_model: str = _set("", "a model of its own for checking claims")
    endpoints_allowed: str = _set(
        "", "the only addresses and providers of models, embedders and rerankers, separated by commas; empty for any"
    )
    llm_temperature: float = _set(0.0, "0 for the same answer each time, as far as a model can", ge=0.0, le=2.0)
    llm_timeout: float = _set(180.0, "seconds that one request may take, its retries included", gt=0, le=3600)
    llm_concurrency: int = _set(
        0, "requests at the same time, per question; 0: 1 if the model is on this machine, else 4", ge=0, le=64
    )
    llm_size: Literal["auto", "small", "large"] = _set(
        "auto",
        "a small model is shown one passage at a time, and its verdict lets no claim pass; auto: a judge as it was "
        "measured, other roles by tool calls",
    )
    llm_window: int = _set(0, "tokens that the model can read; 0 asks the endpoint", ge=0)
    llm_prices: str = _set(
        "", "prices of models nobody lists, in USD per million tokens in/out: `my-model=0.5/1.5, other=0/0`"
    )
    llm_pictures: Literal["auto", "no"] = _set(
        "auto", "whether figures of PDFs are shown to models that take pictures; auto: where the endpoint turns out to"
    )
    llm_general: bool = _set(
        True, "whether greetings and general knowledge may be answered without the documents, labelled so"
    )

    budget_run_calls: int = _ceiling(200, "model calls that one question may take")
    budget_run_tokens: int = _ceiling(400_000, "tokens that one question may take")
    budget_run_money: float = _ceiling(0.0, "USD that one question may cost")
    budget_day_tokens: int = _ceiling(0, "tokens that one person may use in a day")
    budget_day_money: float = _ceiling(0.0, "USD that one person may spend in a day")
    budget_day_calls: int = _ceiling(0, "model calls that one person may make in a day")
    budget_day_seconds: float = _ceiling(0.0, "seconds of models' time that one person may use in a day")
    budget_all_day_tokens: int = _ceiling(0, "tokens that all together may use in a day")
    budget_all_day_money: float = _ceiling(0.0, "USD that all together may spend in a day")
    budget_call_tokens: int = _ceiling(0, "tokens that one request may take, in and out")
    budget_run_seconds: float = _set(900.0, "active seconds that one question may take", gt=0)
    synthesis_calls: int = _ceiling(5000, "model calls that one synthesis may take")
    synthesis_tokens: int = _ceiling(5_000_000, "tokens that one synthesis may take")
    synthesis_money: float = _ceiling(0.0, "USD that one synthesis may cost")
    synthesis_seconds: float = _set(14_400.0, "active seconds that one synthesis may take", gt=0)

    tools: str = _set("", "the tools that a model may use, separated by commas; empty for all")
    own_tools: str = _set("", "read-only tools of your own, as package.module:name, separated by commas")
    search_per_base: bool = _set(False, "give the model one search tool per knowledge base")
    eagerness: Literal["sparing", "normal", "eager"] = _set(
        "normal", "how readily it searches: sparing, normal or eager"
    )
    checkpoints: str = _set("", "where to wait for a person: searches, nothing, sources, reading; separated by commas")
    evidence_cutoff: float = _set(3.0, "passages that a model scores below this are dropped", ge=0, le=10)

    passage_tokens: int = _set(400, "the size of a passage, in the embedder's tokens", ge=32, le=2000)
    passage_overlap: int = _set(0, "how many tokens neighbouring passages share, at most", ge=0, le=500)

    state: SecretStr = _set(
        NO_SECRET,
        "where runs, records and accounts are kept: empty for a file in the workspace, or postgresql://…; or "
        "file:PATH, or keyring:SERVICE/NAME with such an address",
    )
    index: str = _set(
        "lance",
        "the search index: `lance` (in the workspace), `lance:PATH`, `lance:s3://BUCKET/PREFIX`, `postgres` (pgvector "
        "in the database that `state` names), `milvus:http://…`, or `memory` (gone when the process ends)",
    )
    blobs: str = _set(
        "",
        "where the original bytes of documents are kept: empty for the folder `originals` of the workspace, a PATH, "
        "or s3://BUCKET/PREFIX",
    )
    sources_allowed: str = _set(
        "",
        "the only addresses that `assay sync` fetches from, and the folders and addresses that a server may watch, separated "
        "by commas: s3://BUCKET/PREFIX, davs://HOST/PATH, /srv/minutes; empty for none",
    )
    sources_logins: SecretStr = _set(
        NO_SECRET,
        "names and passwords for these, a line for each: ADDRESS NAME:PASSWORD; or file:PATH, or keyring:SERVICE/NAME "
        "with such lines",
    )
    watch_every: float = _set(60.0, "seconds between two looks at a place that is watched", ge=1, le=86_400)
    watch_grace: float = _set(
        60.0,
        "seconds that a file must be gone from a place that is watched before its document is removed",
        ge=5,
        le=86_400,
    )
    glossary: str = _set(
        "", "a TOML file with measures and names of your own, added to the glossary that comes with Assay"
    )
    pool: int = _set(100, "how many passages each channel contributes to a search", ge=10, le=1000)
    per_document: int = _set(3, "the most passages of one document in a result; 0 for no cap", ge=0, le=100)
    diversity: float = _set(0.0, "0 ranks by relevance alone, 1 by difference from what is above", ge=0.0, le=1.0)

    file_max_megabytes: int = _set(200, "the largest file that is read", ge=1)
    file_max_pages: int = _set(5000, "the most pages that are read of one file", ge=1)
    file_max_cells: int = _set(200_000, "the most cells of tables that are read of a spreadsheet or CSV file", ge=1000)
    file_max_passages: int = _set(20_000, "the most passages of one file that are made searchable", ge=1)
    file_max_seconds: float = _set(120.0, "processor time that reading one file may take", gt=0)
    file_max_memory_megabytes: int = _set(4000, "memory that reading one file may take", ge=256)
    sandbox: Literal["available", "require"] = _set(
        "available",
        "`require`: read no file where a guard of the parsers' sandbox is missing; `available`: use what there is",
    )
    ingest_engine: Literal["local", "ray"] = _set(
        "local",
        "where `add`, `sync` and `reindex` parse, split and embed: `local` (this process) or `ray` (a Ray cluster)",
    )
    ray_address: str = _set(
        "",
        "the Ray cluster: HOST:PORT of its head, or `auto` for the one that this machine is a node of; empty: Ray is "
        "started on this machine while a command runs",
    )
    ray_embedder_gpus: float = _set(
        0.0,
        "GPUs that Ray reserves for each embedding task; the bundled embedder uses one where torch is installed",
        ge=0.0,
        le=16.0,
    )
    ocr: bool = _set(False, "read pages that are pictures with OCR: by the extra `ocr`, or the tesseract program")
    ocr_languages: str = _set("eng", "the languages of scanned pages, by their three-letter codes: eng+deu")

    search_rounds: int = _set(
        0, "most rounds of searching per question, if fewer than the mode's; 0 leaves it to the mode", ge=0, le=50
    )

    serve_requests_per_minute: int = _ceiling(600, "requests that one person may make of a server in a minute")
    serve_runs_per_person: int = _ceiling(8, "runs of one person that a server carries on at the same time")
    serve_uploads_per_person: int = _ceiling(20, "uploads of one person that may wait to be read by a server")
    serve_connections: int = _ceiling(1000, "connections that a server keeps open at the same time")
    serve_connections_per_address: int = _ceiling(200, "connections from one address, other than a trusted proxy's")
    serve_header_seconds: float = _set(
        20.0, "seconds in which the headers of a request must arrive; 0 for no limit", ge=0
    )
    serve_idle_seconds: float = _set(60.0, "seconds that a body may be late, or a reply unread; 0 for no limit", ge=0)
    serve_megabytes_per_person: int = _ceiling(
        20_000, "megabytes of files that one person or group may keep on a server"
    )
    serve_session_hours: float = _set(24.0, "hours after which a browser has to sign in again", gt=0, le=8760)

    oidc_issuer: str = _set(
        "", "address of an OpenID provider with which people may sign in beside passwords; empty: none"
    )
    oidc_client_id: str = _set("", "the name under which the provider knows this server")
    oidc_client_secret: SecretStr = _set(
        NO_SECRET, "its secret there, if it has one; or file:PATH, or keyring:SERVICE/NAME"
    )
    oidc_address: str = _set(
        "",
        "the address of this server in browsers, as https://HOST; the provider sends them to /api/session/provider there",
    )
    oidc_name: str = _set("", "what the page calls the provider; empty: its host")
    oidc_scopes: str = _set("openid profile", "what is asked of the provider, separated by spaces")
    oidc_new_people: bool = _set(
        False,
        "whether somebody whom the provider names and who has no account gets one; else it has to be linked first",
    )
    oidc_name_claim: str = _set(
        "preferred_username", "the claim that names a new account; `email` counts only where it is verified"
    )
    oidc_groups_claim: str = _set(
        "", "the claim with a person's groups at the provider; empty: groups are set here alone"
    )
    oidc_groups: str = _set(
        "", "which of those groups count, and as which here: `desk, 7f3a=board`; separated by commas"
    )

    review_always: bool = _set(False, "every answer waits for a reviewer before it is delivered")
    review_classes: str = _set(
        "",
        "kinds of questions whose answers wait for a reviewer: medical, legal, financial, employment, safety, or "
        "word:WORD; separated by commas",
    )
    review_support: float = _set(
        0.0, "an answer waits when a smaller share of its draft's claims held; 0 for never", ge=0.0, le=1.0
    )
    review_conflicts: bool = _set(False, "an answer waits when its sources disagree")
    review_flagged: bool = _set(
        False, "an answer waits when a passage that reads like an instruction is among its evidence"
    )
    judges_differ: Literal["drop", "mark"] = _set(
        "drop", "a claim on which two judgements differ is dropped, or delivered with a mark"
    )
    review_four_eyes: bool = _set(False, "whoever asked cannot review the answer")
    reviewers: str = _set("", "who may review, as user:NAME and group:NAME, separated by commas; empty: administrators")
    review_hours: float = _set(24.0, "hours after which an unused approval has lapsed", gt=0, le=8760)
    review_webhook: str = _set("", "address that is told when an answer waits for a reviewer")
    review_webhook_secret: SecretStr = _set(
        NO_SECRET, "signs what the webhook is told; or file:PATH, or keyring:SERVICE/NAME"
    )

    audit_key: str = _set("", "file with the private key that signs the audit log; empty: in the workspace")
    audit_copy: str = _set("", "folder elsewhere that signed heads of the audit log are written to")
    audit_minutes: float = _set(5.0, "minutes between two signed heads, while it serves", gt=0, le=10_080)
    retention_days: int = _set(200, "days that what runs recorded is kept; 0 for ever", ge=0)

    metrics: bool = _set(False, "whether a server shows its figures to Prometheus under /metrics")
    otel_endpoint: str = _set("", "address of an OpenTelemetry collector (OTLP over HTTP); empty: none")

    proxy: str = _set("", "proxy for endpoints; empty uses HTTPS_PROXY and its kin")
    ca_bundle: str = _set("", "file with certificates to trust at endpoints; empty uses the system's")


@dataclass(frozen=True, slots=True)
class Shown:
    """One setting for display; secrets are never shown."""

    name: str
    value: str
    origin: str
    about: str


def load_settings(workspace: Path, flags: Mapping[str, Any] | None = None) -> Settings:
    """The effective settings of a workspace. Raises a one-line `UserError` for an unknown name or an invalid value."""
    return _validated(workspace, _gathered(workspace, flags or {}))


def changed_settings(settings: Settings, wanted: Mapping[str, Any]) -> Settings:
    """These settings with some changed. Raises a one-line `UserError` for an unknown name or an invalid value."""
    found = {name: (value, "as it is") for name, value in settings}
    return _validated(Path(), found | {name: (value, "as given") for name, value in wanted.items()})


def _gathered(workspace: Path, flags: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    """Name → (value, origin); the origin with the highest precedence comes last."""
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
    return [
        Shown(name, shown_value(getattr(settings, name)), found.get(name, ("", "default"))[1], field.description or "")
        for name, field in Settings.model_fields.items()
    ]


def shown_value(value: object) -> str:
    """The value of a setting as anybody may see it."""
    if isinstance(value, SecretStr):
        return "(set)" if value.get_secret_value() else ""
    return masked(str(value))


def masked(words: str) -> str:
    """The text with user names and passwords removed from URLs."""
    return re.sub(r"(://)[^/?#\s]*@|^[^/?#\s:]+:[^/?#\s]*@", r"\1***@", words)


def keys_written_in(workspace: Path) -> list[str]:
    """The settings whose secret is stored in plain text in the workspace's file."""
    found = _read_file(workspace / FILE)
    secrets = [name for name, field in Settings.model_fields.items() if field.annotation is SecretStr]
    own = [name for name in secrets if found.get(name) and not str(found[name]).startswith(("file:", "keyring:"))]
    return own + [name for name, value in found.items() if isinstance(value, str) and masked(value) != value]


def secret(value: SecretStr) -> str:
    """The plain value of a secret: as given, from a file, or from the system keyring."""
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


HIDDEN = "…"
SHORTEST = 8  # characters; anything shorter is no real secret and would match in any text


def hider(settings: Settings) -> Callable[[str], str]:
    """A function that removes all configured keys and passwords from a text: endpoints, proxies and tools tend to
    echo them."""
    known: set[str] = {value for name, value in os.environ.items() if name.endswith("_API_KEY")}
    for name in Settings.model_fields:
        value = getattr(settings, name)
        if isinstance(value, SecretStr):
            with suppress(UserError):  # a missing file contains nothing to hide
                known.add(secret(value).strip())
                if name == "sources_logins":
                    known |= {line.partition(" ")[2].partition(":")[2].strip() for line in secret(value).splitlines()}
        elif isinstance(value, str):
            known |= _passwords(value)
    known |= {password for name in PROXIES for password in _passwords(os.environ.get(name, ""))}
    spelt = {form for each in known for form in (each, json.dumps(each)[1:-1], quote(each, safe=""))}
    secrets = sorted((each for each in spelt if len(each) >= SHORTEST), key=len, reverse=True)

    def hide(words: str) -> str:
        for each in secrets:
            words = words.replace(each, HIDDEN)
        return words

    return hide


PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy")


def _passwords(address: str) -> set[str]:
    """The password in a URL: as written, decoded, and as sent."""
    found = re.match(r"[a-z][a-z0-9+.-]*://([^/?#\s:@]*):([^/?#\s]*)@", address, re.IGNORECASE)
    if not found:
        return set()
    name, password = found[1], found[2]
    return {password, unquote(password), b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode()}


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
