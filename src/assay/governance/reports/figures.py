"""Figures of runs, computed from their records in order, and what the rows of reports are about: runs of a week or of a kind,
calls of a tool in a week, forecasts of a kind of work. Pure. Used by reports and monitoring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import groupby
from statistics import mean

from assay.core.events import BUDGETS
from assay.core.types import Usage
from assay.governance.reports.report import BY_NAME, find_outliers, group_by, iso_week, iso_weeks, median_or_none, share
from assay.store.runs.figures import Fact, ForecastOutcome
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


@dataclass(frozen=True)
class RunGroup:
    """Runs that share a row: those of a week, or of a kind of question."""

    name: str
    runs: Sequence[RunFigures]
    spent: Mapping[str, Usage]

    @cached_property
    def payments(self) -> list[Usage]:
        """One for each run; empty for a run that spent nothing."""
        return [self.spent.get(run.id, Usage()) for run in self.runs]

    @cached_property
    def states(self) -> Counter[str]:
        return Counter(run.state for run in self.runs)

    @property
    def delivered_seconds(self) -> list[float]:
        return [run.seconds for run in self.runs if run.delivered]

    @property
    def rounds(self) -> list[float]:
        return [float(run.rounds) for run in self.runs]

    @property
    def median_seconds(self) -> float | None:
        return median_or_none([run.seconds for run in self.runs])

    @property
    def mean_rounds(self) -> float | None:
        return mean(self.rounds) if self.runs else None

    @property
    def mean_tokens(self) -> float | None:
        return mean(each.tokens_in + each.tokens_out for each in self.payments) if self.runs else None


@dataclass(frozen=True)
class RoleSpending:
    """What one role of the models has cost, of `everything` in `runs` runs with a model."""

    role: str
    spent: Usage
    runs: int
    everything: int  # tokens

    @property
    def tokens(self) -> int:
        return self.spent.tokens_in + self.spent.tokens_out


def group_by_week(runs: Sequence[RunFigures], spent: Mapping[str, Usage]) -> list[RunGroup]:
    groups = group_by(runs, lambda run: iso_week(run.started))
    return [RunGroup(week, groups.get(week, []), spent) for week in iso_weeks(run.started for run in runs)]


def cap_share(runs: Sequence[RunFigures]) -> float | None:
    """The share of runs with a model whose search ended because a limit was reached."""
    with_model = [run for run in runs if run.by == "model"]
    return share(sum(run.capped for run in with_model), len(with_model))


def override_share(runs: Sequence[RunFigures]) -> float | None:
    """Answers that a reviewer edited or rejected, of all that reviewers have settled; None if there are none. An answer counts
    once, however many decisions were made on it."""
    settled = [run for run in runs if run.settled]
    return share(sum(run.overridden for run in settled), len(settled))


@dataclass(frozen=True)
class ToolWeek:
    """The calls of one tool in one week. `unusual` and `unusual_runs` are outliers among all weeks and all runs."""

    week: str
    tool: str
    runs: Sequence[RunFigures]
    unusual: bool
    unusual_runs: frozenset[str]

    @cached_property
    def counts(self) -> list[int]:
        return [run.tools[self.tool] for run in self.runs]

    @property
    def errors(self) -> int:
        return sum(run.errors.get(self.tool, 0) for run in self.runs)

    @property
    def error_rate(self) -> float | None:
        return share(self.errors, sum(self.counts))

    @property
    def remarks(self) -> str:
        strange = [run.id for run in self.runs if run.id in self.unusual_runs]
        remarks = [
            *(["calls"] if self.unusual else []),
            *(["error rate"] if BY_NAME["tool_errors"].breached(self.error_rate) else []),
            *([f"runs {', '.join(strange[:3])}{' …' if len(strange) > 3 else ''}"] if strange else []),
        ]
        return "; ".join(remarks)


def unusual_weeks(calls: Sequence[int]) -> tuple[bool, ...]:
    """The first and the last week may be partial: few calls in them mean nothing, many calls do."""
    centre = median_or_none(calls) or 0
    edges = (0, len(calls) - 1)
    return tuple(odd and (at not in edges or calls[at] > centre) for at, odd in enumerate(find_outliers(calls)))


def unusual_runs(runs: Iterable[RunFigures], tool: str) -> frozenset[str]:
    """The runs that called a tool far more often, or less often, than others did."""
    called = [run for run in runs if run.tools.get(tool)]
    odd = find_outliers([run.tools[tool] for run in called])
    return frozenset(run.id for run, is_odd in zip(called, odd, strict=True) if is_odd)


@dataclass(frozen=True)
class ForecastAccuracy:
    """The forecasts of one kind of work, compared with what came of them, in one measure."""

    kind: str
    measure: str
    forecasts: Sequence[ForecastOutcome]

    @cached_property
    def outcomes(self) -> list[tuple[float, float, float, float]]:
        """Low, likely, high and actual, of every forecast that has them."""
        return [
            (low, likely, high, came)
            for each in self.forecasts
            if (came := (each.came or {}).get(self.measure)) is not None
            if (likely := (forecast := each.foreseen.get(self.measure) or {}).get("likely")) is not None
            if (low := forecast.get("low", likely)) is not None
            if (high := forecast.get("high", likely)) is not None
        ]

    @property
    def within(self) -> float | None:
        return share(sum(low <= came <= high for low, _, high, came in self.outcomes), len(self.outcomes))
