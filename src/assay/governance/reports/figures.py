"""Figures of runs, computed from their records in order. Pure. Used by reports and monitoring."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby

from assay.core.events import BUDGETS
from assay.store.runs.figures import Fact
from assay.store.runs.records import IDLE, LONGEST

CAPS = frozenset(reason.value for reason in BUDGETS)  # the search ended because a limit was reached
AWAKENED = ("Resumed", "Reviewed")  # the time before these events was spent waiting


@dataclass
class RunFigures:
    """One run so far. A branch counts only its own records, not those it copied."""

    id: str
    who: str = ""
    started: str = ""
    mode: str = ""
    by: str = ""  # rules, model, synthesis
    route: str = ""
    every: bool = False
    outcome: str = ""  # if delivered
    stopped: str = ""  # why its search ended
    last: str = ""  # the kind of its latest record
    rounds: int = 0
    seconds: float = 0.0  # active time
    records: int = 0
    failures: int = 0
    tools: dict[str, int] = field(default_factory=dict)  # completed calls
    errors: dict[str, int] = field(default_factory=dict)  # completed calls that failed
    decisions: list[tuple[str, str]] = field(default_factory=list)  # time and decision of each review
    gaps: int = 0  # missing records
    erased: int = 0  # records with erased payload
    own: int = 0  # the first record that is not copied from another run
    _calls: dict[str, str] = field(default_factory=dict)
    _at: datetime | None = None

    @property
    def delivered(self) -> bool:
        return self.last == "Answered"

    @property
    def complete(self) -> bool:
        """Whether its record runs from the question to the answer without a gap, and every call has its result."""
        answered = not self._calls or self.erased > 0  # unknown for erased records
        return self.delivered and not self.gaps and answered and self.records > 1

    @property
    def capped(self) -> bool:
        """Whether a limit was reached. Without a model, a full round of searches is the normal end and does not
        count."""
        return self.by == "model" and self.stopped in CAPS

    @property
    def settled(self) -> bool:
        """Whether a reviewer has approved or rejected it in the end."""
        return bool(self.decisions) and self.decisions[-1][1] != "edit"

    @property
    def overridden(self) -> bool:
        """Whether a reviewer has edited or rejected it."""
        return any(decision != "approve" for _, decision in self.decisions)

    @property
    def rejected(self) -> bool:
        return bool(self.decisions) and self.decisions[-1][1] == "reject"

    @property
    def calls(self) -> int:
        return sum(self.tools.values())

    @property
    def failed_calls(self) -> int:
        return sum(self.errors.values())

    @property
    def state(self) -> str:
        """The outcome if it was delivered, otherwise its current state."""
        if self.delivered:
            return self.outcome or "erased"
        if self.rejected:
            return "rejected"
        return {"Paused": "waiting", "Failed": "failed", "AwaitingReview": "held"}.get(self.last, "unfinished")

    @property
    def kind(self) -> str:
        """The kind of question, as far as it affects the cost."""
        if self.by == "synthesis":
            return "synthesis"
        return " · ".join(filter(None, (self.route or "unrouted", "whole set" if self.every else "", self.mode)))

    def add(self, fact: Fact) -> tuple[str, bool] | None:
        """Add the next record of this run. For a completed call, returns the tool and whether it failed."""
        self._timed(fact)
        self.gaps += fact.seq != self.records
        self.records = fact.seq + 1
        self.erased += fact.erased
        self.last = fact.kind
        if fact.erased:
            return None
        return self._returned(fact) if fact.kind == "ToolRan" else self._counted(fact)

    def _returned(self, fact: Fact) -> tuple[str, bool] | None:
        tool = self._calls.pop(fact.one, "")
        if not tool or fact.seq < self.own:
            return None
        self.tools[tool] = self.tools.get(tool, 0) + 1
        self.errors[tool] = self.errors.get(tool, 0) + int(fact.two or 0)
        return tool, bool(fact.two)

    def _timed(self, fact: Fact) -> None:
        at = datetime.fromisoformat(fact.at)
        if self._at is not None and self.last not in IDLE and fact.kind not in AWAKENED:
            self.seconds += min(max((at - self._at).total_seconds(), 0.0), LONGEST)
        self._at = at

    def _counted(self, fact: Fact) -> None:
        match fact.kind:
            case "Asked":
                self.mode, self.own, self.by = fact.one or "", fact.two or 0, fact.three
            case "Routed":
                self.route, self.every = fact.one or "", bool(fact.two)
            case "Decided":
                calls = {call["id"]: call["tool"] for call in fact.one or []}
                self._calls |= calls
                self.rounds += bool(calls) and bool(fact.two)
            case "Stopped":
                self.stopped = fact.one or ""
            case "Answered":
                self.outcome, self.stopped = fact.one or "", fact.two or self.stopped
            case "Reviewed":
                self.decisions.append((fact.at, fact.one or ""))
            case "Failed":
                self.failures += 1


def figures(facts: Iterable[Fact]) -> Iterator[RunFigures]:
    """The figures of each run, from records grouped by run and in order."""
    for run, own in groupby(facts, key=lambda fact: fact.run):
        made = RunFigures(run)
        for fact in own:
            made.who, made.started = fact.who, fact.started
            made.add(fact)
        yield made
