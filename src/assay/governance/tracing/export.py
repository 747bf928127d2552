"""Sends the spans of a run to the configured collector. A failure never affects the run."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from assay import __version__
from assay.governance.spans import build_spans
from assay.governance.spans import to_otlp
from assay.store.runs import figures

if TYPE_CHECKING:
    from assay.core.run import Run
    from assay.core.settings import Settings
    from assay.store.database import Store

log = logging.getLogger("assay.tracing")

PATH = "/v1/traces"
PATIENCE = 3.0  # timeout in seconds


def traces_url(endpoint: str) -> str:
    """The configured address with the path that the protocol defines."""
    return endpoint if endpoint.rstrip("/").endswith(PATH) else f"{endpoint.rstrip('/')}{PATH}"


async def export_spans(store: Store, settings: Settings, run: Run, since: int) -> bool:
    """Send the spans of a run from record `since` on. Returns whether they arrived."""
    if not settings.otel_endpoint or len(run.events) <= since:
        return False
    try:
        import ssl

        import httpx

        times = figures.record_times(store, run.id)
        body = to_otlp(build_spans(run, times, since), __version__)
        trusted = ssl.create_default_context(cafile=settings.ca_bundle or None)
        async with httpx.AsyncClient(timeout=PATIENCE, verify=trusted, proxy=settings.proxy or None) as client:
            reply = await client.post(traces_url(settings.otel_endpoint), json=body)
        if reply.status_code >= 300:
            log.warning("the collector did not take the spans of run %s: %s", run.id, reply.status_code)
        return reply.status_code < 300
    except Exception as error:  # an unreachable or misconfigured collector must not affect the run
        log.warning("the spans of run %s did not arrive: %s", run.id, type(error).__name__)
        return False
