"""A run: its events, and the views computed from them. State is never stored, only computed. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from assay.events import (
    Answered,
    Asked,
    Call,
    Checked,
    Decided,
    Drafted,
    Event,
    Failed,
    Found,
    Gathered,
    Judged,
    Planned,
    Route,
    Routed,
    Stopped,
    ToolRan,
    Where,
)
from assay.types import Answer, Claim, Evidence, Plan, Searched


@dataclass(frozen=True, slots=True)
class Run:
    """What was asked, and everything that has happened since."""

    id: str
    events: tuple[Event, ...]

    def then(self, event: Event) -> Run:
        return replace(self, events=(*self.events, event))

    @property
    def asked(self) -> Asked:
        first = self.events[0]
        assert isinstance(first, Asked), "a run begins with its question"
        return first

    @property
    def question(self) -> str:
        return self.asked.question

    @property
    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]

    @property
    def route(self) -> Route | None:
        return next((event.route for event in self.events if isinstance(event, Routed)), None)

    @property
    def where(self) -> Where:
        """What the search is limited to: by the person, and by the dates that the question names."""
        routed = next((event for event in self.events if isinstance(event, Routed)), None)
        asked = self.asked.where
        if routed is None:
            return asked
        by_question = bool(routed.since or routed.until)
        return replace(asked, since=asked.since or routed.since, until=asked.until or routed.until, undated=by_question)

    @property
    def plan(self) -> Plan | None:
        return next((event.plan for event in reversed(self.events) if isinstance(event, Planned)), None)

    # Searching

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(call for event in self.events if isinstance(event, Decided) for call in event.calls)

    @property
    def results(self) -> dict[str, ToolRan]:
        return {event.call: event for event in self.events if isinstance(event, ToolRan)}

    @property
    def calls_waiting(self) -> tuple[Call, ...]:
        done = self.results
        return tuple(call for call in self.calls if call.id not in done)

    @property
    def rounds(self) -> int:
        """How often it was decided to search."""
        return sum(isinstance(event, Decided) and bool(event.calls) for event in self.events)

    @property
    def found(self) -> tuple[Found, ...]:
        """Everything that any call returned, in order; a passage may be there more than once."""
        return tuple(found for event in self.events if isinstance(event, ToolRan) for found in event.found)

    @property
    def weighed(self) -> frozenset[str]:
        """Passages that were weighed already, kept or not."""
        ids: set[str] = set()
        for event in self.events:
            if isinstance(event, Gathered):
                ids.update(event.dropped)
                ids.update(evidence.passage.id for evidence in event.evidence)
        return frozenset(ids)

    @property
    def unweighed(self) -> tuple[Found, ...]:
        """Passages that still have to be weighed, each once."""
        done = self.weighed
        new = {found.passage.id: found for found in reversed(self.found) if found.passage.id not in done}
        return tuple(reversed(new.values()))

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The evidence library: one entry per document span, best first; of two judgements the later one holds."""
        by_key = {
            evidence.key: evidence
            for event in self.events
            if isinstance(event, Gathered)
            for evidence in event.evidence
        }
        return tuple(sorted(by_key.values(), key=lambda evidence: -evidence.score))

    @property
    def judged(self) -> Judged | None:
        return next((event for event in reversed(self.events) if isinstance(event, Judged)), None)

    @property
    def round_unjudged(self) -> bool:
        """Whether searches have come back since the last judgement."""
        for event in reversed(self.events):
            if isinstance(event, Judged):
                return False
            if isinstance(event, ToolRan):
                return True
        return False

    @property
    def satisfied(self) -> bool:
        """Whether the evidence was judged to be enough."""
        return self.judged is not None and self.judged.enough

    @property
    def nothing_left(self) -> str:
        """Why nothing more is worth trying; empty while there is."""
        last = next((event for event in reversed(self.events) if isinstance(event, Decided)), None)
        return last.why if last is not None and not last.calls else ""

    @property
    def stopped(self) -> Stopped | None:
        return next((event for event in reversed(self.events) if isinstance(event, Stopped)), None)

    @property
    def searched(self) -> tuple[Searched, ...]:
        """What was tried: each query with how much it found and how much of that was worth keeping."""
        kept = {evidence.passage.id for evidence in self.evidence}
        results = self.results
        return tuple(
            Searched(
                str(call.arguments.get("query", call.tool)),
                len(results[call.id].found),
                sum(found.passage.id in kept for found in results[call.id].found),
            )
            for call in self.calls
            if call.id in results
        )

    # Writing

    @property
    def draft(self) -> Drafted | None:
        return next((event for event in reversed(self.events) if isinstance(event, Drafted)), None)

    @property
    def checked(self) -> dict[int, Claim]:
        """Claims of the draft that have their verdict, by place."""
        return {event.place: event.claim for event in self.events if isinstance(event, Checked)}

    @property
    def unchecked(self) -> tuple[tuple[int, Claim], ...]:
        if self.draft is None:
            return ()
        claims = [claim for block in self.draft.blocks for claim in block.claims]
        done = self.checked
        return tuple((place, claim) for place, claim in enumerate(claims) if place not in done)

    @property
    def answer(self) -> Answer | None:
        return next((event.answer for event in self.events if isinstance(event, Answered)), None)

    @property
    def delivered(self) -> bool:
        return self.answer is not None

    @property
    def failed(self) -> Failed | None:
        last = self.events[-1]
        return last if isinstance(last, Failed) else None
