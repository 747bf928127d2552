"""Creates the embedder, the reranker and the language models that the settings name."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from assay.core.errors import UserError
from assay.core.settings import Settings, masked, secret
from assay.models.llm import LLM, Role

if TYPE_CHECKING:
    from assay.models.embedder import Embedder
    from assay.models.llm import AnswerModel
    from assay.models.reranker import Reranker

BUNDLED = ("bundled", "gte-small")  # values of the setting that name the bundled embedder


def is_endpoint(value: str) -> bool:
    return value.startswith(("http://", "https://"))


def is_folder(value: str) -> bool:
    """Whether the setting of the embedder names a folder with a model."""
    return value not in BUNDLED and not is_endpoint(value)


def remote_hosts(value: str, proxy: str = "") -> list[str]:
    """The hosts, except this machine, that text would be sent to or through under this setting."""
    if not is_endpoint(value):
        return []
    hosts = [urlsplit(address).hostname or address for address in (value, proxy) if address]
    return [host for host in hosts if not _here(host)]


def _here(host: str) -> bool:
    """Whether a host is this machine, under any of its names."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def embedder_setting(settings: Settings) -> str:
    """Which embedder the settings name, `bundled` replaced by the model."""
    return BUNDLED[1] if settings.embedder in BUNDLED else settings.embedder


def embedder_for(settings: Settings) -> Embedder:
    """The embedder of the settings: the bundled model, a model folder, or an endpoint."""
    configured = settings.embedder
    if configured in BUNDLED:
        from assay.models.local.bundled import BundledEmbedder

        return BundledEmbedder()
    if is_endpoint(configured):
        from assay.models.embedder import EndpointEmbedder

        if not settings.embedder_model:
            raise UserError("The embedder is an endpoint: set `embedder_model` to the name of its model.")
        return EndpointEmbedder(
            configured,
            settings.embedder_model,
            secret(settings.embedder_api_key),
            query_prefix=settings.embedder_query_prefix,
            passage_prefix=settings.embedder_passage_prefix,
            proxy=settings.proxy,
            ca_bundle=settings.ca_bundle,
        )
    folder = Path(configured).expanduser()
    if not folder.is_dir():
        raise UserError(
            f"The embedder {configured!r} is neither `bundled`, a folder, nor an http(s) address. Set `embedder`, then run "
            "`assay reindex`."
        )
    from assay.models.local.onnx_folder import OnnxFolder

    return OnnxFolder(
        folder,
        query_prefix=settings.embedder_query_prefix or None,
        passage_prefix=settings.embedder_passage_prefix or None,
        pooling=settings.embedder_pooling or None,
    )


def embedder_languages(settings: Settings) -> Sequence[str]:
    """The languages that the embedder was trained on; empty if unknown."""
    return ("en",) if settings.embedder in BUNDLED else ()


def reranker_for(settings: Settings, embedder: Embedder, answer_model: AnswerModel | None = None) -> Reranker | None:
    """The reranker of the settings: None, late interaction over the bundled embedder, the answer model, a cross-encoder
    folder, or an endpoint. The language model (`llm`) reranks within a run, not in a search."""
    configured = settings.reranker
    if configured in ("none", "llm"):
        return None
    from assay.models import reranker

    if configured == "late":
        return reranker.late_interaction(embedder)
    if configured == "answer":
        if answer_model is None:
            raise UserError("The reranker is `answer`, but this installation has no answer model.")
        return reranker.AnswerReranker(answer_model)
    if is_endpoint(configured):
        return reranker.EndpointReranker(
            configured,
            settings.reranker_model,
            secret(settings.reranker_api_key),
            proxy=settings.proxy,
            ca_bundle=settings.ca_bundle,
        )
    folder = Path(configured).expanduser()
    if not folder.is_dir():
        raise UserError(
            f"The reranker {configured!r} is neither `none`, `late`, `answer`, `llm`, a folder, nor an http(s) address."
        )
    return reranker.CrossEncoder(folder)


def endpoints(settings: Settings) -> list[str]:
    """Every address that text may be sent to under these settings."""
    addresses = (settings.embedder, settings.reranker, settings.llm_base_url)
    return [value for value in addresses if is_endpoint(value)]


NO_MODEL = "none"
NOWHERE = "The model '{name}' is not connected: nothing says where it is. Set `llm_base_url`."
PROVIDERS = frozenset(
    "anthropic azure bedrock cerebras cohere deepseek fireworks github google google-cloud google-gla google-vertex groq "
    "huggingface mistral moonshotai ollama openai openai-chat openai-responses openrouter together vercel xai".split()
)


def has_model(settings: Settings) -> bool:
    """Whether a language model is configured."""
    return bool(settings.llm_model) and settings.llm_model != NO_MODEL


def models_by_role(settings: Settings) -> Mapping[Role, tuple[str, ...]]:
    """The model names of each role: its own or the general one, then the fallback."""
    if not has_model(settings):
        return {}
    return {
        role: tuple(
            dict.fromkeys(
                name
                for name in (getattr(settings, f"llm_{role}_model") or settings.llm_model, settings.llm_fallback_model)
                if name
            )
        )
        for role in Role
    }


def unconnected(settings: Settings) -> str:
    """Why the models that are named cannot be asked, in a sentence; empty if they can, or none is named."""
    names = {name for named in models_by_role(settings).values() for name in named}
    lost = sorted(name for name in names if not (settings.llm_base_url or is_provider(settings, name)))
    return NOWHERE.format(name=lost[0]) if lost else ""


def is_measured_as_judge(settings: Settings, name: str) -> bool:
    """Whether a model's judgement is measured: it has the role `check`, and the settings do not name its size."""
    return settings.llm_size == "auto" and name in models_by_role(settings).get(Role.check, ())


def is_provider(settings: Settings, name: str) -> bool:
    """Whether a name is a pydantic-ai name (`provider:model`) rather than an endpoint's. Names at local servers contain colons
    too (`llama3:8b`), so if an endpoint is configured only the well-known providers count.
    """
    return ":" in name and (not settings.llm_base_url or name.partition(":")[0] in PROVIDERS)


def llm_for(settings: Settings, name: str) -> LLM:
    """The model of this name, at the endpoint or at a provider."""
    if is_provider(settings, name):
        from assay.models.provider import ProviderModel

        return ProviderModel(name, "" if settings.llm_base_url else secret(settings.llm_api_key))
    if not settings.llm_base_url:
        raise UserError(NOWHERE.format(name=name))
    if not is_endpoint(settings.llm_base_url):
        raise UserError(f"`llm_base_url` is {settings.llm_base_url!r}; it must begin with http:// or https://.")
    from assay.models.endpoint import ChatEndpoint

    return ChatEndpoint(
        settings.llm_base_url, name, secret(settings.llm_api_key), proxy=settings.proxy, ca_bundle=settings.ca_bundle
    )


def _providers(settings: Settings) -> list[str]:
    names = {name for named in models_by_role(settings).values() for name in named}
    return sorted({name.partition(":")[0] for name in names if is_provider(settings, name)} - {"test"})


def model_hosts(settings: Settings, *, local: bool = False) -> list[str]:
    """The hosts or providers that questions and passages would be sent to, without this machine unless `local`: then an
    address on it counts with its port, since another program may listen at each."""
    names = {name for named in models_by_role(settings).values() for name in named}
    if all(is_provider(settings, name) for name in names):
        return _providers(settings)
    place = urlsplit(settings.llm_base_url)
    here = [place.netloc.rpartition("@")[2]] if local and _here(place.hostname or "") else []
    return here + remote_hosts(settings.llm_base_url, settings.proxy) + _providers(settings)


def reached(settings: Settings, *, model: bool = True, local: bool = False) -> list[str]:
    """The hosts or providers that any text would be sent to under these settings, `local` as above."""
    uses = _uses(settings, local=local) if model else _uses(settings)[:-1]
    return list(dict.fromkeys(host for hosts, _ in uses for host in hosts))


def require_allowed(settings: Settings) -> None:
    """Refuse an endpoint or provider that is not in the operator's list, if there is one."""
    allowed = {each.strip().rstrip("/") for each in settings.endpoints_allowed.split(",") if each.strip()}
    for place in (*map(masked, endpoints(settings)), *_providers(settings)) if allowed else ():
        if place.replace("***@", "").rstrip("/") not in allowed:
            raise UserError(f"Nothing is sent to {place}: it is not in the setting `endpoints_allowed` of this server.")


def cluster_hosts(settings: Settings) -> list[str]:
    """The host of the Ray cluster that files are sent to, if the settings name another machine."""
    host = settings.ray_address.rpartition(":")[0].strip("[]") if settings.ingest_engine == "ray" else ""
    return [host] if host and not _here(host) else []


def receives(settings: Settings, host: str) -> list[str]:
    """What would be sent to a host, as text."""
    return [what for hosts, what in _uses(settings, local=True) if host in hosts]


def _uses(settings: Settings, *, local: bool = False) -> list[tuple[list[str], str]]:
    """Hosts and what is sent to them; models come last."""
    embedder, reranker = (remote_hosts(each, settings.proxy) for each in (settings.embedder, settings.reranker))
    names = ", ".join(sorted({name for named in models_by_role(settings).values() for name in named}))
    return [
        (embedder, "every passage of your documents and every search, to be embedded"),
        (reranker, "every search with the passages it finds, to be ranked"),
        (cluster_hosts(settings), "every file that is added, as a whole, to be parsed, split and embedded on Ray"),
        (
            model_hosts(settings, local=local),
            f"your questions, and the passages found for them, figures included, to be read by {names}",
        ),
    ]
