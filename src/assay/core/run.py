"""A run: its events, and the views computed from them. State is never stored, only computed. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeGuard

from assay.core.codec import digest, dumps, to_json
from assay.core.events import (
    SEARCH_MORE,
    Answered,
    Asked,
    AwaitingReview,
    Call,
    Checked,
    Checkpoint,
    Compacted,
    Critiqued,
    Decided,
    Decision,
    Drafted,
    Edit,
    Event,
    Failed,
    Found,
    Gathered,
    Judged,
    ModelReplied,
    PassagesChosen,
    Paused,
    Planned,
    Rephrased,
    Resumed,
    Reviewed,
    Revised,
    Route,
    Routed,
    SearchFilters,
    StepAnswered,
    Stopped,
    ToolRan,
    Translated,
    Withheld,
)
from assay.core.types import Answer, Claim, Evidence, Examined, Plan, Searched, Usage, Verdict


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
        """What is to be answered: what was asked, or what it means in its conversation."""
        rephrased = self.rephrased
        return rephrased.question if rephrased else self.asked.question

    @property
    def rephrased(self) -> Rephrased | None:
        return next((event for event in self.events[1:] if isinstance(event, Rephrased)), None)

    @property
    def recalled(self) -> bool:
        """Whether evidence of earlier turns was brought up."""
        return any(isinstance(event, Decided) and event.recalls for event in self.events)

    @property
    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]

    @property
    def routed(self) -> Routed | None:
        return next((event for event in reversed(self.events) if isinstance(event, Routed)), None)

    @property
    def route(self) -> Route | None:
        return self.routed.route if self.routed else None

    @property
    def every(self) -> bool:
        """Whether the question asks for a whole set."""
        return self.routed is not None and self.routed.every

    @property
    def readings(self) -> tuple[str, ...]:
        """What the question may mean: what a person chose of it, or all of it."""
        routed = self.routed
        chosen = self.choices.get(Checkpoint.reading)
        readings = routed.readings if routed else ()
        return (chosen.choice,) if chosen and chosen.choice in readings else readings

    @property
    def where(self) -> SearchFilters:
        """What the search is limited to: by the person, and by the dates that the question names."""
        routed = self.routed
        asked = self.asked.where
        if routed is None:
            return asked
        by_question = bool(routed.since or routed.until)
        return replace(asked, since=asked.since or routed.since, until=asked.until or routed.until, undated=by_question)

    @property
    def plan(self) -> Plan | None:
        return next((event.plan for event in reversed(self.events) if isinstance(event, Planned)), None)

    # Models and people

    @property
    def consulted(self) -> dict[str, ModelReplied]:
        """Every reply that was recorded, by the request it answers."""
        return {event.request: event for event in self.events if isinstance(event, ModelReplied)}

    @property
    def usage(self) -> Usage:
        return sum((event.usage for event in self.events if isinstance(event, ModelReplied)), Usage())

    @property
    def waiting(self) -> Paused | None:
        """What a person is asked now."""
        last = self.events[-1]
        return last if isinstance(last, Paused) else None

    @property
    def pauses(self) -> frozenset[Checkpoint]:
        """Where the run has waited already: each checkpoint stops it once."""
        return frozenset(event.at for event in self.events if isinstance(event, Paused))

    @property
    def choices(self) -> dict[Checkpoint, Resumed]:
        """What people chose, by checkpoint."""
        chosen: dict[Checkpoint, Resumed] = {}
        for before, event in pairwise(self.events):
            if isinstance(before, Paused) and isinstance(event, Resumed):
                chosen[before.at] = event
        return chosen

    def chose(self, at: Checkpoint, choice: str) -> bool:
        """Whether a person chose this at a checkpoint."""
        made = self.choices.get(at)
        return made is not None and made.choice == choice

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
        """How often it was decided to search; following a name, or a search for the sake of a claim, is no round."""
        return sum(isinstance(event, Decided) and bool(event.calls) and event.is_round for event in self.events)

    @property
    def bound(self) -> dict[str, StepAnswered]:
        """Answers that steps of the plan have, by step."""
        return {event.step: event for event in self.events if isinstance(event, StepAnswered)}

    @property
    def compacted(self) -> tuple[Compacted, ...]:
        return tuple(event for event in self.events if isinstance(event, Compacted))

    @property
    def fresh(self) -> tuple[int, ...]:
        """How many new pieces of evidence each judged round brought, since the search was last opened."""
        known: set[str] = set()
        counts: list[int] = []
        new = 0
        for event in self.events:
            if self._reopens(event):
                counts, new = [], 0
            if isinstance(event, Gathered):
                keys = {each.key for each in event.evidence} - known
                known |= keys
                new += len(keys)
            elif isinstance(event, Judged):
                counts.append(new)
                new = 0
        return tuple(counts)

    @property
    def examined(self) -> Examined | None:
        """How far a question about a whole set was followed."""
        if not self.every:
            return None
        seen = {found.passage.id: found.passage.doc_id for found in self.found}
        left = sum(event.left for event in self.events if isinstance(event, ToolRan))
        return Examined(len(set(seen.values())), len(seen), left)

    @property
    def found(self) -> tuple[Found, ...]:
        """Everything that any call, or any search of a synthesis, returned, in order; a passage may be there more than once."""
        return tuple(
            found for event in self.events if isinstance(event, ToolRan | PassagesChosen) for found in event.found
        )

    @property
    def unweighed(self) -> tuple[Found, ...]:
        """Passages that still have to be weighed, each once. One that was passed over gets another chance when another
        search brings it up again."""
        waiting: dict[str, Found] = {}
        done: set[str] = set()
        for event in self.events:
            if isinstance(event, ToolRan):
                for found in event.found:
                    if found.passage.id not in done:
                        waiting.setdefault(found.passage.id, found)
            elif isinstance(event, Gathered):
                settled = {*event.dropped, *(each.passage.id for each in event.evidence)}
                done |= settled
                for passage in (*settled, *event.skipped):
                    waiting.pop(passage, None)
        return tuple(waiting.values())

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
        """Whether the evidence was judged to be enough, since the search was last opened."""
        judged = next((event for event in reversed(self.current) if isinstance(event, Judged)), None)
        return judged is not None and judged.enough

    @property
    def nothing_left(self) -> str:
        """Why nothing more is worth trying; empty while there is."""
        decided = (event for event in reversed(self.current) if isinstance(event, Decided) and event.is_round)
        last = next(decided, None)
        return last.why if last is not None and not last.calls else ""

    @property
    def reopened(self) -> Critiqued | Resumed | None:
        """Why the search was opened again after it had stopped, if it was: a gap in the draft, or a person's wish."""
        return next((event for event in reversed(self.events) if self._reopens(event)), None)

    @property
    def current(self) -> tuple[Event, ...]:
        """What has happened since the search was last opened."""
        for place in range(len(self.events) - 1, -1, -1):
            if self._reopens(self.events[place]):
                return self.events[place + 1 :]
        return self.events

    @staticmethod
    def _reopens(event: Event) -> TypeGuard[Critiqued | Resumed]:
        if isinstance(event, Critiqued):
            return not event.complete
        return isinstance(event, Resumed) and event.choice in SEARCH_MORE

    @property
    def stopped(self) -> Stopped | None:
        return next((event for event in reversed(self.current) if isinstance(event, Stopped)), None)

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
        return next((event for event in reversed(self.current) if isinstance(event, Drafted)), None)

    @property
    def drafting(self) -> tuple[Event, ...]:
        """What has happened since the draft was written."""
        current = self.current
        for place in range(len(current) - 1, -1, -1):
            if isinstance(current[place], Drafted):
                return current[place + 1 :]
        return ()

    @property
    def written(self) -> dict[int, Claim]:
        """The draft's claims by place, as they now read: revised, and without those that were dropped."""
        draft = self.draft
        claims = dict(enumerate(claim for block in draft.blocks for claim in block.claims)) if draft else {}
        for event in self.drafting:
            if isinstance(event, Revised):
                if event.claim is None:
                    claims.pop(event.place, None)
                else:
                    claims[event.place] = event.claim
        return claims

    @property
    def checked(self) -> dict[int, Claim]:
        """Claims that have their verdict, by place; a claim that was revised since has none."""
        verdicts: dict[int, Claim] = {}
        for event in self.drafting:
            if isinstance(event, Checked):
                verdicts[event.place] = event.claim
            elif isinstance(event, Revised):
                verdicts.pop(event.place, None)
        return verdicts

    @property
    def unchecked(self) -> tuple[tuple[int, Claim], ...]:
        done = self.checked
        return tuple((place, claim) for place, claim in self.written.items() if place not in done)

    @property
    def revised(self) -> dict[int, Revised]:
        return {event.place: event for event in self.drafting if isinstance(event, Revised)}

    @property
    def unsupported(self) -> tuple[tuple[int, Claim], ...]:
        """Claims that do not hold and have not been revised, in reading order whichever verdict came first: each gets one
        chance."""
        done = self.revised
        return tuple(
            (place, claim)
            for place, claim in sorted(self.checked.items(), key=lambda each: each[0])
            if claim.verdict is not Verdict.supported and place not in done
        )

    @property
    def sought(self) -> bool:
        """Whether support was searched for since the draft was written."""
        return any(isinstance(event, Decided) and event.seeks for event in self.drafting)

    @property
    def critiqued(self) -> Critiqued | None:
        return next((event for event in reversed(self.events) if isinstance(event, Critiqued)), None)

    @property
    def answer(self) -> Answer | None:
        return next((event.answer for event in self.events if isinstance(event, Answered)), None)

    @property
    def delivered(self) -> bool:
        return self.answer is not None or self.withheld is not None

    @property
    def withheld(self) -> Withheld | None:
        """In the place of an answer that was delivered and that whoever looks may not see, or nobody can any more."""
        last = self.events[-1]
        return last if isinstance(last, Withheld) and last.kind == "Answered" else None

    # Review

    @property
    def held(self) -> AwaitingReview | None:
        """The answer that waits for a reviewer now."""
        last = self.events[-1]
        return last if isinstance(last, AwaitingReview) else None

    @property
    def gated(self) -> bool:
        """Whether the answer has waited for a reviewer: from then on only reviewers change it."""
        return any(isinstance(event, AwaitingReview) for event in self.events)

    @property
    def reviews(self) -> tuple[Reviewed, ...]:
        """What reviewers decided, in order."""
        return tuple(event for event in self.events if isinstance(event, Reviewed))

    @property
    def decided(self) -> Reviewed | None:
        """The decision that is still to be carried out: nothing was held, or edited, since."""
        for event in reversed(self.events):
            if isinstance(event, Reviewed):
                return event
            if isinstance(event, AwaitingReview | Revised):
                return None
        return None

    @property
    def edits_due(self) -> tuple[Edit, ...]:
        """What a reviewer wants changed in the draft, as far as it is not done."""
        done: set[int] = set()
        for event in reversed(self.events):
            if isinstance(event, AwaitingReview):
                return ()
            if isinstance(event, Revised):
                done.add(event.place)
            if isinstance(event, Reviewed):
                return tuple(each for each in event.edits if each.place not in done)
        return ()

    @property
    def rejected(self) -> Reviewed | None:
        reviews = self.reviews
        return reviews[-1] if reviews and reviews[-1].decision is Decision.reject else None

    @property
    def failed(self) -> Failed | None:
        last = self.events[-1]
        return last if isinstance(last, Failed) else None


def seal_of(run: Run, answer: Answer, waited: int = 0) -> str:
    """The digest of what would be delivered: every word, citation and verdict, and of a synthesis its translations. What it
    cost is no part of it. `waited` is how often an answer of this run has waited before: what was approved once and has lapsed
    waits under another seal, so that no old approval fits."""
    told = [to_json(replace(event, fallback=None)) for event in run.events if isinstance(event, Translated)]
    return digest(dumps([run.id, waited, to_json(replace(answer, usage=Usage())), told]))
