"""Questions that were asked: their runs, replays and branches, feedback on answers, and questions to ask next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest

from assay.answer.compose import Statement, statements
from assay.answer.render import claim_text
from assay.core import events
from assay.core.errors import AssayError, UserError
from assay.core.run import Run
from assay.core.settings import hider
from assay.core.types import Document
from assay.governance.replay import NoSearch, Replay, replay
from assay.governance.reviewing import any_review, may_need_review, redact_run, shows_statements
from assay.models.factory import NO_MODEL, has_model, remote_hosts
from assay.store import document_list
from assay.store.documents import READY, Entry
from assay.store.runs import budgets, feedback, history, records, reviews, visibility
from assay.store.runs.feedback import FeedbackEntry
from assay.store.runs.visibility import WITHHELD_ANSWER
from assay.workspace.context import OnStore, Service
from assay.workspace.forecast import WorkForecast
from assay.workspace.services.ask import continue_run, record, resumption, run_context_for
from assay.workspace.services.forecast import forecast_question
from assay.workspace.services.models import Models, role_models, with_model
from assay.workspace.suggest import ENGLISH, questions_of, title_of
from assay.workspace.types import AskOptions, FeedbackItem, Steps, Suggestion

WITHIN_STEP = (events.ModelReplied, events.Failed, events.Resumed)  # recorded while a step is under way
REPEATED: tuple[tuple[type, ...], ...] = (  # one step may record several events of these types
    (events.Checked,),
    (events.Revised,),
    (events.Gathered,),
    (events.StepAnswered, events.Judged, events.Routed),
)
WRITTEN = (events.Claimed, events.Checked)  # recorded while a draft is written
NOT_COPIED = (events.Withheld, events.Narrowed)  # withheld from this person
MENTIONING, CITING = 40, 20  # runs that speak of a document and are looked into; those that are shown
LISTED, READ, SUGGESTED = 1000, 24, 3  # documents that are considered, and looked into, for questions; questions


@dataclass(frozen=True)
class Questions(Service):
    """Questions that were asked: their runs, what they took, what people said of them, and what to ask next."""

    recent = OnStore(history.history)
    page = OnStore(history.page)
    progress = OnStore(history.run_progress)
    routes = OnStore(history.routes)
    chain = OnStore(records.chain)
    faults = OnStore(records.faults)
    owner = OnStore(records.owner)
    started = OnStore(records.started)
    recorded_at = OnStore(records.recorded_at)
    active_seconds = OnStore(records.active_seconds)
    events_since = OnStore(records.events_since)
    runs_after = OnStore(records.runs_after)
    hidden_events = OnStore(visibility.hidden_events)
    mark_lost = OnStore(budgets.mark_lost)
    spent = OnStore(budgets.spent_by_run)

    def run(self, run_id: str) -> Run:
        """A recorded run, with the text of the documents that this person may still read."""
        return self.context.run(run_id)

    def run_for_asker(self, run_id: str, run: Run | None = None) -> Run:
        """A recorded run as the person who asked may see it: before delivery without words that are not checked, and without
        the draft while a reviewer may have to approve it."""
        return redact_run(run or self.run(run_id), watched=may_need_review(self.store, self.settings, run_id))

    def statements(self, run: Run) -> tuple[Statement, ...]:
        """What of an answer that is being written may be shown to the person who asked: nothing where it may be reviewed, also
        not when its delivery is recorded and not told yet."""
        watched = any_review(self.store, self.settings) or may_need_review(self.store, self.settings, run.id)
        if not shows_statements(run.asked) or watched:
            return ()
        return statements(run, self.context.document)

    def record(self, run: Run, event: events.Event) -> Run:
        """Append an event to a run. Secrets in it are masked."""
        return record(self.context, run, event)

    def check_choice(self, run: Run, choice: str, words: str) -> None:
        """Raise a UserError unless `resume` would accept this choice."""
        resumption(run, choice, words, self.principal.id)

    def forecast(self, how: AskOptions) -> WorkForecast:
        """What a question is expected to take. No model is asked."""
        return forecast_question(self.context, how)

    def check_branch(self, origin: Run, place: int) -> None:
        """Raise a UserError unless a branch can begin at this record."""
        first_of_step(origin, place)

    async def replay(self, run: Run) -> Replay:
        """Recompute the run from its record, and compare the two. Vectors are compared only with a local embedder and an
        existing index; nothing else is needed."""
        if run.answer is None:
            raise UserError(
                f"Run {run.id} has no answer yet, or none that you may read: there is nothing to make again."
            )
        if not remote_hosts(self.settings.embedder, self.settings.proxy):
            with suppress(AssayError, OSError, RuntimeError):  # no index, a damaged one, or one of another embedder
                return await replay(run, await run_context_for(self.context, run))
        without_index = await run_context_for(self.context, run, search_context=NoSearch(self.store))
        return await replay(run, without_index, searchable=False)

    async def branch(self, origin: Run, place: int, model: str = "", today: str = "") -> Steps:
        """A new run that begins with the events of another one before the step of record `place`, and continues live: with the
        named model, or as the original did, with the models that are configured now or by rule. Recorded model calls are not
        repeated; access is as of now. With `today`, dates are relative to another day."""
        first = first_of_step(origin, place)
        by_rule = model == NO_MODEL or (not model and not origin.asked.has_model)
        if not model and not by_rule and not has_model(self.settings):
            raise UserError(
                f"Run {origin.id} has a language model, and the settings name none. `--model none` goes on by rule."
            )
        scope = self.context.scope(origin.asked.where.bases)  # a missing base is reported before anything is recorded
        run_id = records.new_id(self.store)
        models, synthesis = Models(with_model(self.context, model)), origin.asked.brief is not None
        connect = partial(models.connect, synthesis=True) if synthesis else models.connect_writer
        roles = {} if by_rule else await connect(run_id)
        who = self.principal.id
        asked = replace(
            origin.asked,
            who=who,
            today=today or origin.asked.today,
            seats=role_models(roles),
            about={base.name: base.description for base in scope.bases} if origin.asked.brief is None else {},
            thread="",  # it is no turn of the conversation, though it knows the history
            branch=events.Branch(origin.id, first, model),
        )
        gated = asked.stakes is events.Stakes.high or self.settings.review_always
        gated = gated or reviews.is_gated(self.store, origin.id)  # a branch must not bypass a review
        asked = replace(asked, may_be_reviewed=gated or any_review(self.store, self.settings))
        run = record(self.context, Run(records.begin(self.store, who, gated=gated, run=run_id), ()), asked)
        yield run, asked
        for event in copied_events(origin, first):
            run = record(self.context, run, event)
            yield run, event
        async for step in continue_run(self.context, run, roles):
            yield step

    def citing(self, document: str) -> list[Run]:
        """This person's delivered runs that cite the document, newest first."""
        found: list[Run] = []
        for run_id in history.runs_mentioning(self.store, self.principal.id, document, MENTIONING):
            with suppress(UserError):  # erased meanwhile
                run = self.context.run(run_id)
                if len(found) < CITING and run.answer is not None and document in _cited(run):
                    found.append(run)
        return found

    def give_feedback(
        self, run: Run, kind: events.FeedbackKind, claim: int | None = None, words: str = ""
    ) -> events.FeedbackGiven:
        """Record what the person who asked makes of a delivered answer, or of one claim of it."""
        if run.withheld:
            raise UserError(WITHHELD_ANSWER)
        if run.answer is None:
            raise UserError(f"Run {run.id} has no answer yet: there is nothing to say about it.")
        if claim is not None and not 0 <= claim < len(_statements(run)):
            raise UserError(f"The answer of run {run.id} has no statement {claim + 1}.")
        made = events.FeedbackGiven(run.id, kind, self.principal.id, claim, hider(self.settings)(words.strip()))
        feedback.give(self.store, made)
        return made

    def feedback(self, *, everyone: bool = False, limit: int = 200) -> list[FeedbackItem]:
        """Feedback, newest first: one's own with what it is about; of everyone without it."""
        who = self.principal.id
        found = feedback.listing(self.store, self.context.scope(), "" if everyone else who, limit)
        return [self._feedback_item(each) if each.given.by == who else FeedbackItem(each) for each in found]

    def _feedback_item(self, entry: FeedbackEntry) -> FeedbackItem:
        with suppress(UserError):  # the run was erased meanwhile
            run = self.context.run(entry.given.run)
            claims = _statements(run)
            place = entry.given.claim
            return FeedbackItem(entry, run.question, claims[place] if place is not None and place < len(claims) else "")
        return FeedbackItem(entry)

    def suggest(self) -> list[Suggestion]:
        """Questions to begin with, each from another document while there are others; the same for the same documents."""
        newest = document_list.page(self.store, self.context.scope(), (READY,), limit=LISTED).entries
        entries = sorted((each for each in newest if each.language in ENGLISH), key=lambda each: (each.name, each.id))
        titled = {title: each for each in entries if (title := title_of(each.title, each.uri))}
        found = [*_apart(list(titled.values())), *(each for each in entries if not title_of(each.title, each.uri))]
        return _chosen(document for entry in found[:READ] if (document := self.context.document(entry.id)))

    def suggest_follow_ups(self, run: Run) -> list[Suggestion]:
        """Questions about the documents that an answer cites, on what it does not cite of them."""
        if run.answer is None:
            return []
        cited = {key for block in run.answer.blocks for claim in block.claims for key in claim.cites}
        spans: dict[str, list[tuple[int, int]]] = {}
        for each in run.evidence:
            if each.key in cited:
                spans.setdefault(each.passage.doc_id, []).append((each.quote.start, each.quote.end))
        return _chosen((found for each in spans if (found := self.context.document(each))), spans, asked=run.question)


def first_of_step(run: Run, place: int) -> int:
    """The first record of the step that record `place` belongs to. A step is always repeated as a whole, with its model
    replies. Reviews are not steps: a branch from a review begins at the answer under review."""
    if not 1 <= place < len(run.events):
        raise UserError(
            f"Run {run.id} has no record {place} to go on from: choose 1 to {len(run.events) - 1}, as `assay trace` shows them."
        )
    held = next((at for at, event in enumerate(run.events[:place]) if isinstance(event, events.AwaitingReview)), None)
    first = place if held is None else held
    made = next((event for event in run.events[first:] if not isinstance(event, WITHIN_STEP)), run.events[first])
    same = next((types for types in REPEATED if isinstance(made, types)), ())
    first = _back_over(run, first, same)
    begun = _back_over(run, first, WRITTEN) if isinstance(made, (*WRITTEN, events.Drafted)) else first
    return begun if any(isinstance(event, events.Claimed) for event in run.events[begun:first]) else first


def _back_over(run: Run, first: int, types: tuple[type, ...]) -> int:
    while first > 1 and isinstance(before := run.events[first - 1], (*WITHIN_STEP, *types)):
        if isinstance(before, events.Resumed) and before.choice:
            break  # what a person chose is a step of its own
        first -= 1
    return first


def copied_events(origin: Run, first: int) -> tuple[events.Event, ...]:
    """The events after the question that a branch copies. There is never an answer or a review among them."""
    copied = tuple(event for event in origin.events[1:first] if not isinstance(event, NOT_COPIED))
    assert not any(
        isinstance(event, events.Asked | events.AwaitingReview | events.Reviewed | events.Answered) for event in copied
    )
    return copied


def _cited(run: Run) -> set[str]:
    assert run.answer is not None
    keys = run.answer.cited_keys
    return {each.passage.doc_id for each in run.evidence if each.key in keys}


def _statements(run: Run) -> list[str]:
    return [claim_text(claim) for block in run.answer.blocks for claim in block.claims] if run.answer else []


def _chosen(
    documents: Iterable[Document], known: dict[str, list[tuple[int, int]]] | None = None, asked: str = ""
) -> list[Suggestion]:
    """The first question of each document, then the second, until there are enough. No further document is read."""
    streams: list[Iterator[Suggestion]] = []

    def in_turn() -> Iterator[Suggestion | None]:
        for each in documents:
            streams.append(_suggestions(each, (known or {}).get(each.id, [])))
            yield next(streams[-1], None)
        for row in zip_longest(*streams):
            yield from row

    found: dict[str, Suggestion] = {}
    for each in in_turn():
        if each is not None and each.question.casefold() != asked.casefold():
            found.setdefault(each.question, each)
        if len(found) == SUGGESTED:
            break
    return list(found.values())


def _apart(entries: Sequence[Entry]) -> list[Entry]:
    """Documents that stand far from each other first: neighbours are often of one kind."""
    step = max(1, len(entries) // SUGGESTED)
    return [each for start in range(step) for each in entries[start::step]]


def _suggestions(document: Document, known: list[tuple[int, int]]) -> Iterator[Suggestion]:
    for each in questions_of(document, known):
        yield Suggestion(each.question, document.id, document.title or document.uri.rpartition("/")[2])
