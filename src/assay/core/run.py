"""A run: its events and the views computed from them. State is never stored, only computed. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import TypeGuard, TypeVar

from assay.core.codec import digest, dumps, to_json
from assay.core.events import (
    SEARCH_MORE,
    Answered,
    Asked,
    AwaitingReview,
    Call,
    Checked,
    Checkpoint,
    Claimed,
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
    HistorySummarised,
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
    Subject,
    ToolRan,
    Translated,
    Withheld,
)
from assay.core.types import Answer, Claim, Evidence, Examined, Exchange, Plan, Searched, Usage, Verdict

V = TypeVar("V")
_CHANGED_BY: dict[str, tuple[type, ...]] = {}


def view(*kinds: type) -> Callable[[Callable[[Run], V]], cached_property[V]]:
    """A view that depends on events of these kinds alone. A plain `cached_property` is computed anew after every event."""

    def make(compute: Callable[[Run], V]) -> cached_property[V]:
        _CHANGED_BY[compute.__name__] = kinds
        return cached_property(compute)

    return make


@cache
def _changed_with(kind: type) -> frozenset[str]:
    """What of a run is not as before after an event of this kind."""
    views = {name for name, each in vars(Run).items() if isinstance(each, cached_property)}
    return frozenset({"id", "events", *(name for name in views if kind in _CHANGED_BY.get(name, (kind,)))})


@dataclass(frozen=True)
class Run:
    """The question and all events since. A view is computed when first asked for, and must not be changed."""

    id: str
    events: tuple[Event, ...]

    def then(self, event: Event) -> Run:
        """The run with one event more. Views that the event does not change are kept."""
        grown = Run(self.id, (*self.events, event))
        changing = _changed_with(type(event))
        grown.__dict__.update({name: value for name, value in self.__dict__.items() if name not in changing})
        return grown

    @view()
    def asked(self) -> Asked:
        first = self.events[0]
        assert isinstance(first, Asked), "a run begins with its question"
        return first

    @view(Rephrased)
    def question(self) -> str:
        """The question to answer: as asked, or as rewritten for its conversation."""
        rephrased = self.rephrased
        return rephrased.question if rephrased else self.asked.question

    @view(Rephrased)
    def query(self) -> str:
        """What is searched for and read for: the question, with words of earlier turns where no model rewrote it."""
        return (self.rephrased.query if self.rephrased else "") or self.question

    @view(Rephrased)
    def rephrased(self) -> Rephrased | None:
        return next((event for event in reversed(self.events) if isinstance(event, Rephrased)), None)

    @view(Rephrased)
    def subject(self) -> Subject | None:
        """What the turn is about, if it is no question to the documents."""
        return self.rephrased.on if self.rephrased else None

    @view(HistorySummarised)
    def summarised(self) -> HistorySummarised | None:
        """The summary of the oldest turns, if it was due in this run."""
        return next((event for event in self.events if isinstance(event, HistorySummarised)), None)

    @view()
    def last_answer(self) -> Exchange | None:
        """The turn whose answer this one may work on, in full."""
        return next((turn for turn in reversed(self.asked.history) if turn.whole is not None), None)

    @view(Decided)
    def recalled(self) -> bool:
        """Whether evidence of earlier turns was reused."""
        return any(isinstance(event, Decided) and event.recalls for event in self.events)

    @cached_property
    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]

    @view(Rephrased, Routed)
    def routed(self) -> Routed | None:
        """The last routing of the question; a question that was rephrased again is routed again."""
        last = next((event for event in reversed(self.events) if isinstance(event, Routed | Rephrased)), None)
        return last if isinstance(last, Routed) else None

    @view(Rephrased, Routed)
    def route(self) -> Route | None:
        return self.routed.route if self.routed else None

    @view(Rephrased, Routed)
    def every(self) -> bool:
        """Whether the question asks for a complete set."""
        return self.routed is not None and self.routed.every

    @view(Rephrased, Routed, Resumed)
    def readings(self) -> tuple[str, ...]:
        """The possible meanings of the question: the one the user chose, or all of them."""
        routed = self.routed
        resumed = self.choices.get(Checkpoint.reading)
        readings = routed.readings if routed else ()
        return (resumed.choice,) if resumed and resumed.choice in readings else readings

    @view(Rephrased, Routed)
    def where(self) -> SearchFilters:
        """The search restrictions of the user; in older runs also those from dates in the question."""
        routed = self.routed
        asked = self.asked.where
        if routed is None or not (routed.since or routed.until):
            return asked
        return replace(asked, since=asked.since or routed.since, until=asked.until or routed.until, undated=True)

    @view(Planned)
    def plan(self) -> Plan | None:
        return next((event.plan for event in reversed(self.events) if isinstance(event, Planned)), None)

    # Models and users

    @view(ModelReplied)
    def consulted(self) -> dict[str, ModelReplied]:
        """All recorded replies, by request digest."""
        return {event.request: event for event in self.events if isinstance(event, ModelReplied)}

    @view(ModelReplied)
    def usage(self) -> Usage:
        return sum((event.usage for event in self.events if isinstance(event, ModelReplied)), Usage())

    @cached_property
    def waiting(self) -> Paused | None:
        """The checkpoint the run is paused at, if any."""
        last = self.events[-1]
        return last if isinstance(last, Paused) else None

    @view(Paused)
    def pauses(self) -> frozenset[Checkpoint]:
        """The checkpoints the run has paused at: each pauses it once."""
        return frozenset(event.at for event in self.events if isinstance(event, Paused))

    @view(Resumed)
    def choices(self) -> dict[Checkpoint, Resumed]:
        """The users' choices, by checkpoint."""
        resumptions: dict[Checkpoint, Resumed] = {}
        for before, event in pairwise(self.events):
            if isinstance(before, Paused) and isinstance(event, Resumed):
                resumptions[before.at] = event
        return resumptions

    def chose(self, at: Checkpoint, choice: str) -> bool:
        """Whether the user made this choice at a checkpoint."""
        made = self.choices.get(at)
        return made is not None and made.choice == choice

    # Searching

    @view(Decided)
    def calls(self) -> tuple[Call, ...]:
        return tuple(call for event in self.events if isinstance(event, Decided) for call in event.calls)

    @view(ToolRan)
    def results(self) -> dict[str, ToolRan]:
        return {event.call: event for event in self.events if isinstance(event, ToolRan)}

    @view(Decided, ToolRan)
    def calls_waiting(self) -> tuple[Call, ...]:
        done = self.results
        return tuple(call for call in self.calls if call.id not in done)

    @view(Decided)
    def rounds(self) -> int:
        """The number of search rounds; following a name or searching for support of a claim does not count."""
        return sum(isinstance(event, Decided) and bool(event.calls) and event.is_round for event in self.events)

    @view(StepAnswered)
    def bound(self) -> dict[str, StepAnswered]:
        """Answers of plan steps, by step."""
        return {event.step: event for event in self.events if isinstance(event, StepAnswered)}

    @view(Compacted)
    def compacted(self) -> tuple[Compacted, ...]:
        return tuple(event for event in self.events if isinstance(event, Compacted))

    @view(ToolRan, Gathered, Judged, Critiqued, Resumed)
    def fresh(self) -> tuple[int, ...]:
        """The number of new pieces of evidence, or of notes on documents, in each judged round since the search was last
        opened."""
        known: set[str] = set()
        counts: list[int] = []
        new = 0
        for event in self.events:
            if self._reopens(event):
                counts, new = [], 0
            if isinstance(event, ToolRan) and event.documents and not event.found:
                new += 1  # it worked on what was found, or listed documents: no passages, but progress
            if isinstance(event, Gathered):
                keys = {each.key for each in event.evidence} - known
                known |= keys
                new += len(keys)
            elif isinstance(event, Judged):
                counts.append(new)
                new = 0
        return tuple(counts)

    @view(Rephrased, Routed, Gathered, ToolRan, PassagesChosen)
    def examined(self) -> Examined | None:
        """How completely a question about a whole set was followed up."""
        if not self.every:
            return None
        skipped: set[str] = set()
        for event in self.events:
            if isinstance(event, Gathered):
                skipped = (skipped | {*event.skipped}) - {*event.dropped, *(each.passage.id for each in event.evidence)}
        found = {found.passage.id: found.passage.doc_id for found in self.found}
        seen = {passage: document for passage, document in found.items() if passage not in skipped}
        ran = [event for event in self.events if isinstance(event, ToolRan)]
        read = {document for event in ran for document in event.whole} - {
            found[each] for each in skipped if each in found
        }
        matching = dict.fromkeys(each.passage.doc_id for each in self.evidence)
        return Examined(
            len(set(seen.values())),
            len(seen),
            sum(event.left for event in ran) + len(found) - len(seen),
            tuple(each for each in matching if each in read),
            tuple(each for each in matching if each not in read),
        )

    @view(ToolRan, PassagesChosen)
    def found(self) -> tuple[Found, ...]:
        """All passages returned by any call or synthesis search, in order; may contain duplicates."""
        return tuple(
            found for event in self.events if isinstance(event, ToolRan | PassagesChosen) for found in event.found
        )

    @view(ToolRan, Gathered)
    def unweighed(self) -> tuple[Found, ...]:
        """Passages still to be weighed, without duplicates. A skipped passage is weighed again when another search
        returns it."""
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

    @view(Gathered)
    def weighed(self) -> frozenset[str]:
        """The passages that were kept or rejected."""
        gathered = [event for event in self.events if isinstance(event, Gathered)]
        return frozenset(
            passage for event in gathered for passage in (*event.dropped, *(each.passage.id for each in event.evidence))
        )

    @view(Gathered)
    def evidence(self) -> tuple[Evidence, ...]:
        """The evidence library: one entry per document span, best first; a later judgement replaces an earlier one."""
        gathered = (event for event in self.events if isinstance(event, Gathered))
        by_key = {evidence.key: evidence for event in gathered for evidence in event.evidence}
        return tuple(sorted(by_key.values(), key=lambda evidence: -evidence.score))

    @view(Judged)
    def judged(self) -> Judged | None:
        return next((event for event in reversed(self.events) if isinstance(event, Judged)), None)

    @view(Judged, ToolRan)
    def round_unjudged(self) -> bool:
        """Whether searches have returned since the last judgement."""
        last = next((event for event in reversed(self.events) if isinstance(event, Judged | ToolRan)), None)
        return isinstance(last, ToolRan)

    @view(Judged, Rephrased, Critiqued, Resumed)
    def satisfied(self) -> bool:
        """Whether the evidence was judged sufficient since the search was last opened."""
        judged = next((event for event in reversed(self.current) if isinstance(event, Judged)), None)
        return judged is not None and judged.enough

    @view(Decided, Rephrased, Critiqued, Resumed)
    def nothing_left(self) -> str:
        """Why nothing more is worth trying; empty otherwise."""
        decided = (event for event in reversed(self.current) if isinstance(event, Decided) and event.is_round)
        last = next(decided, None)
        return last.why if last is not None and not last.calls else ""

    @view(Critiqued, Resumed)
    def reopened(self) -> Critiqued | Resumed | None:
        """What reopened the search after it had stopped, if anything: a gap in the draft, or the user's choice."""
        return next((event for event in reversed(self.events) if self._reopens(event)), None)

    @cached_property
    def current(self) -> tuple[Event, ...]:
        """Events since the search was last opened, or the question rephrased."""
        for place in range(len(self.events) - 1, -1, -1):
            if self._reopens(self.events[place]) or isinstance(self.events[place], Rephrased):
                return self.events[place + 1 :]
        return self.events

    @staticmethod
    def _reopens(event: Event) -> TypeGuard[Critiqued | Resumed]:
        if isinstance(event, Critiqued):
            return not event.complete and not event.final
        return isinstance(event, Resumed) and event.choice in SEARCH_MORE

    @view(Stopped, Rephrased, Critiqued, Resumed)
    def stopped(self) -> Stopped | None:
        return next((event for event in reversed(self.current) if isinstance(event, Stopped)), None)

    @view(Decided, ToolRan, Gathered)
    def searched(self) -> tuple[Searched, ...]:
        """The queries tried, each with the number of passages found and kept."""
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

    @view(Drafted, Rephrased, Critiqued, Resumed)
    def draft(self) -> Drafted | None:
        return next((event for event in reversed(self.current) if isinstance(event, Drafted)), None)

    @cached_property
    def drafting(self) -> tuple[Event, ...]:
        """Events since the draft was written."""
        current = self.current
        for place in range(len(current) - 1, -1, -1):
            if isinstance(current[place], Drafted):
                return current[place + 1 :]
        return ()

    @cached_property
    def writing(self) -> tuple[Event, ...]:
        """Events while the draft was written, or is being written: its claims, and the first verdicts on them."""
        current = self.current[: len(self.current) - len(self.drafting)]
        ends = [place for place, event in enumerate(current) if isinstance(event, Drafted)]
        before = ends[:-1] if self.draft else ends
        begun = range(before[-1] + 1 if before else 0, len(current))
        first = next((place for place in begun if isinstance(current[place], Claimed)), len(current))
        return current[first:]

    @view(Claimed, Drafted, Rephrased, Critiqued, Resumed)
    def claimed(self) -> dict[int, Claimed]:
        """The claims of the draft that is being written, by index."""
        return {event.place: event for event in self.writing if isinstance(event, Claimed)}

    @view(Claimed, Drafted, Checked, Rephrased, Critiqued, Resumed)
    def checked_early(self) -> dict[int, Claim]:
        """Verdicts on claims of the draft from before it was whole; none on a claim that was written anew."""
        verdicts: dict[int, Claim] = {}
        for event in self.writing:
            if isinstance(event, Checked):
                verdicts[event.place] = event.claim
            elif isinstance(event, Claimed):
                verdicts.pop(event.place, None)
        if self.draft is None:
            return verdicts
        stated = [(claim, block.opinion) for block in self.draft.blocks for claim in block.claims]
        known = {place: (event.claim, event.opinion) for place, event in self.claimed.items()}
        return {
            place: claim
            for place, claim in verdicts.items()
            if place < len(stated) and known.get(place) == stated[place]
        }

    @view(Drafted, Revised, Rephrased, Critiqued, Resumed)
    def claims_by_place(self) -> dict[int, Claim]:
        """The draft's current claims by index: with revisions applied and dropped claims removed."""
        draft = self.draft
        claims = dict(enumerate(claim for block in draft.blocks for claim in block.claims)) if draft else {}
        for event in self.drafting:
            if isinstance(event, Revised):
                if event.claim is None:
                    claims.pop(event.place, None)
                else:
                    claims[event.place] = event.claim
        return claims

    @view(Claimed, Drafted, Checked, Revised, Rephrased, Critiqued, Resumed)
    def checked(self) -> dict[int, Claim]:
        """Claims with a verdict, by index; a claim revised since has none."""
        verdicts = dict(self.checked_early)
        for event in self.drafting:
            if isinstance(event, Checked):
                verdicts[event.place] = event.claim
            elif isinstance(event, Revised):
                verdicts.pop(event.place, None)
        return verdicts

    @view(Claimed, Drafted, Checked, Revised, Rephrased, Critiqued, Resumed)
    def unchecked(self) -> tuple[tuple[int, Claim], ...]:
        done = self.checked
        return tuple((place, claim) for place, claim in self.claims_by_place.items() if place not in done)

    @view(Drafted, Revised, Rephrased, Critiqued, Resumed)
    def revised(self) -> dict[int, Revised]:
        return {event.place: event for event in self.drafting if isinstance(event, Revised)}

    @view(Claimed, Drafted, Checked, Revised, Rephrased, Critiqued, Resumed)
    def unsupported(self) -> tuple[tuple[int, Claim], ...]:
        """Unsupported claims that have not been revised, in reading order regardless of verdict order: each is
        revised once."""
        done = self.revised
        return tuple(
            (place, claim)
            for place, claim in sorted(self.checked.items(), key=lambda each: each[0])
            if claim.verdict is not Verdict.supported and place not in done
        )

    @view(Drafted, Decided, Rephrased, Critiqued, Resumed)
    def sought(self) -> bool:
        """Whether support was searched for since the draft was written."""
        return any(isinstance(event, Decided) and event.seeks for event in self.drafting)

    @view(Drafted, Rephrased, Critiqued, Resumed)
    def judgement(self) -> Critiqued | None:
        """The last judgement of the current draft as an answer."""
        return next((event for event in reversed(self.drafting) if isinstance(event, Critiqued)), None)

    @view(Rephrased, Critiqued, Resumed)
    def objections(self) -> tuple[Claim, ...]:
        """Claims of earlier drafts that failed their check, each with the reason, latest last."""
        before = self.events[: len(self.events) - len(self.current)]
        failed = [event.claim for event in before if isinstance(event, Checked) and event.claim.why]
        return tuple(claim for claim in failed if claim.verdict is not Verdict.supported)[-4:]

    @view(Answered)
    def answer(self) -> Answer | None:
        return next((event.answer for event in self.events if isinstance(event, Answered)), None)

    @cached_property
    def delivered(self) -> bool:
        return self.answer is not None or self.withheld is not None

    @cached_property
    def withheld(self) -> Withheld | None:
        """The placeholder for a delivered answer that the viewer may not see or that was erased."""
        last = self.events[-1]
        return last if isinstance(last, Withheld) and last.kind == "Answered" else None

    # Review

    @cached_property
    def held(self) -> AwaitingReview | None:
        """The answer that currently waits for review."""
        last = self.events[-1]
        return last if isinstance(last, AwaitingReview) else None

    @view(AwaitingReview)
    def gated(self) -> bool:
        """Whether the answer has waited for review: from then on only reviewers change it."""
        return any(isinstance(event, AwaitingReview) for event in self.events)

    @view(Reviewed)
    def reviews(self) -> tuple[Reviewed, ...]:
        """The reviewers' decisions, in order."""
        return tuple(event for event in self.events if isinstance(event, Reviewed))

    @view(Reviewed, AwaitingReview, Revised)
    def decided(self) -> Reviewed | None:
        """The decision still to be applied: no answer was submitted for review, or edited, since."""
        ends = Reviewed | AwaitingReview | Revised
        last = next((event for event in reversed(self.events) if isinstance(event, ends)), None)
        return last if isinstance(last, Reviewed) else None

    @view(Reviewed, AwaitingReview, Revised)
    def edits_due(self) -> tuple[Edit, ...]:
        """A reviewer's edits that have not been applied yet."""
        done: set[int] = set()
        for event in reversed(self.events):
            if isinstance(event, AwaitingReview):
                return ()
            if isinstance(event, Revised):
                done.add(event.place)
            if isinstance(event, Reviewed):
                return tuple(each for each in event.edits if each.place not in done)
        return ()

    @view(Reviewed)
    def rejected(self) -> Reviewed | None:
        reviews = self.reviews
        return reviews[-1] if reviews and reviews[-1].decision is Decision.reject else None

    @cached_property
    def failed(self) -> Failed | None:
        last = self.events[-1]
        return last if isinstance(last, Failed) else None


def seal_of(run: Run, answer: Answer, waited: int = 0) -> str:
    """The digest of the answer to be delivered: all text, citations and verdicts, and for a synthesis its
    translations. Costs are excluded. `waited` is how often an answer of this run has waited before: a lapsed answer
    waits under a new seal, so that no old approval matches."""
    translations = [to_json(replace(event, fallback=None)) for event in run.events if isinstance(event, Translated)]
    return digest(dumps([run.id, waited, to_json(replace(answer, usage=Usage())), translations]))
