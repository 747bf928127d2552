"""Prometheus metrics: counts over the records of all users and processes, and over this server's own requests. No
label names a person, document, question or model: label values come from small fixed sets."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay.agent.toolbox import TOOLS
from assay.governance.reports.figures import RunFigures
from assay.workspace.facade import Workspace
from assay.workspace.stored import Fact

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

ROUNDS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20)
SECONDS = (0.5, 1, 2, 5, 10, 15, 20, 30, 45, 60, 120, 300, 600)  # includes the thresholds of the alert rules
REPLIES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
OTHER = "other"


class ServerMetrics:
    """One per server, with its own registry. Records are counted on each scrape, from where the last one ended; the
    first counts all existing records, so that a restart loses nothing."""

    def __init__(self, workspace: Workspace) -> None:
        from prometheus_client import CollectorRegistry, Counter, Histogram

        self.registry: CollectorRegistry = CollectorRegistry(auto_describe=False)
        own: dict[str, Any] = {"registry": self.registry}
        self.runs = Counter("assay_runs", "Runs that were delivered.", ["kind", "outcome"], **own)
        self.model_runs = Counter("assay_model_runs", "Delivered questions that had a model.", **own)
        self.failures = Counter("assay_run_failures", "How often a run could not go on.", **own)
        self.rounds = Histogram("assay_rounds", "Rounds of searching per question.", buckets=ROUNDS, **own)
        self.caps = Counter("assay_cap_hits", "Questions whose search ended because a limit was reached.", **own)
        self.seconds = Histogram("assay_session_seconds", "Seconds at work per question.", buckets=SECONDS, **own)
        self.calls = Counter("assay_tool_calls", "Calls of tools that came back.", ["tool"], **own)
        self.errors = Counter("assay_tool_errors", "Those of them that went wrong.", ["tool"], **own)
        self.reviews = Counter("assay_reviews", "Decisions of reviewers.", ["decision"], **own)
        self.reviewed = Counter("assay_reviewed_answers", "Answers that reviewers settled.", ["overridden"], **own)
        self.traces = Counter("assay_traces", "Delivered runs.", **own)
        self.complete = Counter("assay_traces_complete", "Delivered runs whose record is complete.", **own)
        self.requests = Counter("assay_http_requests", "Requests to this server.", ["method", "status"], **own)
        self.replies = Histogram("assay_http_seconds", "Seconds until a reply begins.", buckets=REPLIES, **own)
        for decision in ("approve", "edit", "reject"):
            self.reviews.labels(decision)  # initialised, so that a ratio without data is defined
        for overridden in ("yes", "no"):
            self.reviewed.labels(overridden)
        self._figures = workspace.figures
        self._open: dict[str, RunFigures] = {}
        self._n = 0
        self._lock = threading.Lock()
        self.registry.register(self)  # pyright: ignore[reportArgumentType]

    def update(self) -> None:
        """Count the records since the last update."""
        with self._lock:
            while facts := self._figures.facts_after(self._n):
                for fact in facts:
                    self._count(fact)
                self._n = facts[-1].n

    def _count(self, fact: Fact) -> None:
        run = self._open.setdefault(fact.run, RunFigures(fact.run))
        called = run.add(fact)
        if called is not None:
            tool = called[0] if called[0] in TOOLS else OTHER
            self.calls.labels(tool).inc()
            self.errors.labels(tool).inc(called[1])
        match fact.kind:
            case "Reviewed":
                self.reviews.labels(fact.one or OTHER).inc()
                if run.settled:
                    self.reviewed.labels("yes" if run.overridden else "no").inc()
            case "Failed":
                self.failures.inc()
            case "Answered":
                self._delivered(self._open.pop(fact.run))

    def _delivered(self, run: RunFigures) -> None:
        question = run.by != "synthesis"
        self.runs.labels("question" if question else "synthesis", run.state).inc()
        self.traces.inc()
        self.complete.inc(run.complete)
        if question:
            self.seconds.observe(run.seconds)
        if question and not run.erased:  # the rounds of erased runs cannot be counted
            self.rounds.observe(run.rounds)
            self.model_runs.inc(run.by == "model")
            self.caps.inc(run.capped)

    def collect(self) -> Iterable[Any]:
        """Current gauges, and total spending, for the registry."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        spent = self._figures.spent_by_role()
        calls = CounterMetricFamily("assay_model_calls", "Requests to models.", labels=["role"])
        for role, each in sorted(spent.items()):
            calls.add_metric([role], each.calls)
        yield calls
        tokens = CounterMetricFamily("assay_tokens", "Tokens of models.", labels=["direction"])
        tokens.add_metric(["in"], sum(each.tokens_in for each in spent.values()))
        tokens.add_metric(["out"], sum(each.tokens_out for each in spent.values()))
        yield tokens
        money = sum(each.money for each in spent.values())
        yield CounterMetricFamily("assay_money_usd", "What models cost, where a price is known.", value=money)
        waiting = self._figures.count_waiting()
        yield GaugeMetricFamily("assay_reviews_waiting", "Answers that wait for a reviewer.", value=waiting)
        under_way = self._figures.count_under_way()
        yield GaugeMetricFamily("assay_runs_under_way", "Runs that a server carries on now.", value=under_way)
        jobs = GaugeMetricFamily("assay_jobs", "Uploads.", labels=["state"])
        for state, count in sorted(self._figures.jobs_by_state().items()):
            jobs.add_metric([state], count)
        yield jobs


class MetricsMiddleware:
    """ASGI middleware: counts requests by result, and measures the time until the response begins."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in METHODS else OTHER
        begun, status = time.monotonic(), "none"

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = f"{message['status'] // 100}xx"
                self.metrics.replies.observe(time.monotonic() - begun)
            await send(message)

        try:
            await self.app(scope, receive, counted)
        finally:
            self.metrics.requests.labels(method, status).inc()
