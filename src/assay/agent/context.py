"""What a run is carried on with, and the log it grows in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from assay.agent.hops.scoring import HopSettings
from assay.agent.limits import Limits
from assay.agent.tool import Tool, ToolContext
from assay.agent.toolbox import TOOLS
from assay.answer.checking.judge import JUDGE, Judge
from assay.answer.evidence_text import Sources
from assay.core.events import Event, ModelReplied, Narrowed, Withheld
from assay.core.run import Run
from assay.core.types import Answer, Document
from assay.evidence.assess import Assessor, BatchLimits
from assay.models.ask import ask
from assay.models.llm import Role
from assay.models.meter import Meter, NoReply
from assay.prompts.fence import fence_mark

T = TypeVar("T", bound=BaseModel)

NARROWED = "a document was erased, or may not be read any more"


@dataclass
class Log:
    """A run as it grows: an event is on disk before it is part of the run, and part of the run before anyone sees it."""

    run: Run
    record: Callable[[Run, Event], Run]
    _shown: int = 0
    _replies: dict[str, ModelReplied] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._shown = len(self.run.events)
        self._replies = self.run.consulted

    def add(self, event: Event) -> None:
        self.run = self.record(self.run, event)
        if isinstance(event, ModelReplied):
            self._replies[event.request] = event

    def narrow(self, now: Run) -> None:
        """Go on with what of the run may still be seen, and say so on record: what follows knows nothing of the rest."""
        since = self._since(now)
        self.run = now
        self._replies = now.consulted
        self.add(Narrowed(since, NARROWED))

    def _since(self, now: Run) -> int:
        """From where on something is gone. Where it went while nobody carried the run on, it was not here before either."""
        before = self.run.events
        aside = [range(event.since, place) for place, event in enumerate(now.events) if isinstance(event, Narrowed)]
        first = next(
            (
                place
                for place, event in enumerate(now.events)
                if (place < len(before) and event != before[place])
                or (isinstance(event, Withheld) and not any(place in each for each in aside))
            ),
            0,
        )
        # A question that was given earlier turns, or documents, speaks of them itself, and is shown all the same.
        return 0 if first == 1 and (now.asked.history or now.asked.brief) else first

    def unseen(self) -> Sequence[Event]:
        """What was added since this was last asked for."""
        new = self.run.events[self._shown :]
        self._shown = len(self.run.events)
        return new

    def recalled(self, request: str) -> ModelReplied | None:
        """The recorded reply to a request, if there is one."""
        return self._replies.get(request)


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a run is carried on with. `record` puts an event on disk and gives back the longer run; without a meter
    everything goes by rule."""

    tool_context: ToolContext
    record: Callable[[Run, Event], Run]
    document: Callable[[str], Document | None]  # within the scope of the person asking
    unreadable: Callable[[], tuple[str, ...]] = tuple
    limits: Limits = field(default_factory=Limits)
    hops: HopSettings = field(default_factory=HopSettings)
    meter: Meter | None = None
    judge: Judge = JUDGE
    tools: Mapping[str, Tool] = field(default_factory=lambda: TOOLS)
    width: BatchLimits = field(default_factory=BatchLimits)
    cutoff: float = 3.0
    general: bool = True  # answers that are not from the documents are allowed, labelled so
    assess: Assessor | None = None  # a team's own way to weigh, in the model's place
    titled: Callable[[Sequence[str]], Mapping[str, str]] | None = None  # in the place of the desk, where there is none
    oversees: Callable[[Run, Answer], tuple[str, ...]] = lambda run, answer: ()  # why a person has to look at it first
    cleared: Callable[[str], bool] = lambda seal: False  # whether a reviewer's approval of this is there, unused
    four_eyes: bool = False  # whoever asked cannot review
    current: Callable[[Run], Run] = lambda run: run  # as its person may see it now
    _titles: dict[str, str] = field(default_factory=dict)
    _dates: dict[str, str] = field(default_factory=dict)

    def forget(self) -> None:
        """What was looked up of documents counts no more: some of them may not be read any more."""
        for known in (self._titles, self._dates, self.tool_context.seen):
            known.clear()

    def small(self, role: Role) -> bool:
        """Whether a model of this role is a small one: shown little at a time, and not believed against the rules."""
        return self.meter is not None and any(seated.seat.small for seated in self.meter.seats.get(role, ()))

    async def ask(
        self,
        role: Role,
        name: str,
        kind: type[T],
        build_prompt: Callable[[int], Mapping[str, str]],
        *,
        schema: Mapping[str, Any] | None = None,
        documents: Sequence[str] = (),
        max_tokens: int = 1024,
    ) -> tuple[T, str] | NoReply:
        """Ask a model for a value of this type. Only steps of a run that has a model come here."""
        assert self.meter is not None, "a run without a model asks none"
        return await ask(
            self.meter, role, name, kind, build_prompt, schema=schema, documents=documents, max_tokens=max_tokens
        )

    def titles(self, run: Run) -> dict[str, str]:
        """The titles of the documents that were found, by document; looked up once, since the loop asks at every step."""
        new = sorted({found.passage.doc_id for found in run.found} - self._titles.keys())
        if new:
            known = (self.titled or self.tool_context.titles)(new)
            self._titles.update({doc: known.get(doc, "") for doc in new})
        return self._titles

    def sources(self, run: Run) -> Sources:
        """What is known of the documents that the evidence is from, beside their text."""
        new = sorted({each.passage.doc_id for each in run.evidence} - self._dates.keys())
        if new and self.titled is None:
            known = self.tool_context.dates(new)  # in one go: whole documents would be fetched for a few dates
            self._dates.update({doc: known.get(doc, "") for doc in new})
        for doc in new if self.titled is not None else ():
            document = self.document(doc)
            self._dates[doc] = (document.date if document else None) or ""
        return Sources(self.titles(run), {doc: date for doc, date in self._dates.items() if date})


def mark(run: Run) -> str:
    return fence_mark(run.id)
