"""Which embedder and which reranker the settings name."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from assay.errors import UserError
from assay.settings import Settings, secret

if TYPE_CHECKING:
    from assay.models.embed import Embedder
    from assay.models.rerank import Reranker

BUNDLED = "minilm"


def is_endpoint(value: str) -> bool:
    return value.startswith(("http://", "https://"))


def elsewhere(value: str, proxy: str = "") -> list[str]:
    """The machines that text would be sent to or through under this setting, this one left out."""
    if not is_endpoint(value):
        return []
    hosts = [urlsplit(address).hostname or address for address in (value, proxy) if address]
    return [host for host in hosts if not _here(host)]


def _here(host: str) -> bool:
    """Whether a host is this machine, whatever its name looks like."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def embedder_for(settings: Settings) -> Embedder:
    """The bundled model, a folder with a model, or an endpoint."""
    chosen = settings.embedder
    if chosen == BUNDLED:
        from assay.models.minilm import MiniLM

        return MiniLM()
    if is_endpoint(chosen):
        from assay.models.embed import EndpointEmbedder

        if not settings.embedder_model:
            raise UserError("The embedder is an endpoint: set `embedder_model` to the name of its model.")
        return EndpointEmbedder(
            chosen,
            settings.embedder_model,
            secret(settings.embedder_api_key),
            query_prefix=settings.embedder_query_prefix,
            passage_prefix=settings.embedder_passage_prefix,
            proxy=settings.proxy,
            ca_bundle=settings.ca_bundle,
        )
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        raise UserError(f"The embedder {chosen!r} is neither `minilm`, a folder, nor an http(s) address.")
    from assay.models.onnx_folder import OnnxFolder

    return OnnxFolder(
        folder,
        query_prefix=settings.embedder_query_prefix or None,
        passage_prefix=settings.embedder_passage_prefix or None,
        pooling=settings.embedder_pooling or None,
    )


def languages_of(settings: Settings) -> Sequence[str]:
    """The languages that the embedder was trained on; empty when nobody can say."""
    return ("en",) if settings.embedder == BUNDLED else ()


def reranker_for(settings: Settings, embedder: Embedder) -> Reranker | None:
    """None, late interaction over the bundled model, a cross-encoder in a folder, or an endpoint."""
    chosen = settings.reranker
    if chosen == "none":
        return None
    from assay.models import rerank

    if chosen == "late":
        return rerank.LateInteraction()
    if is_endpoint(chosen):
        return rerank.EndpointReranker(
            chosen,
            settings.reranker_model,
            secret(settings.reranker_api_key),
            proxy=settings.proxy,
            ca_bundle=settings.ca_bundle,
        )
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        raise UserError(f"The reranker {chosen!r} is neither `none`, `late`, a folder, nor an http(s) address.")
    return rerank.CrossEncoder(folder)


def endpoints(settings: Settings) -> list[str]:
    """Every address that text may be sent to under these settings."""
    return [value for value in (settings.embedder, settings.reranker) if is_endpoint(value)]
