"""Reviewing over a workspace: what waits, what there is to see of it, and deciding. The command line, the API and the page all
come through here. Whoever may not review an answer is told the same as if there were none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from assay.core.access import LOCAL, Principal, Scope
from assay.core.errors import Missing, StoreError, UserError
from assay.core.events import RULES, Asked, AwaitingReview, Decision, Edit, Event, Reviewed
from assay.core.run import Run
from assay.core.settings import secret
from assay.core.types import Answer, Claim, Evidence, Outcome
from assay.governance.review import gate
from assay.governance.review.gate import Reviewer
from assay.governance.review.policy import BEGUN, policy_of, reasons
from assay.governance.review.visibility import for_asker
from assay.language.clean import clean_text
from assay.store import documents
from assay.store.runs import records, reviews
from assay.store.runs.records import Record
from assay.store.runs.reviews import Review, State

if TYPE_CHECKING:
    from assay.workspace.facade import Workspace

LONGEST = 4000  # characters of a claim that a reviewer writes, and of a note
GONE = "Nothing of run {run} waits for a reviewer any more."
PARTLY = "Part of this answer may speak of documents that you may not read. Somebody who may read them has to decide."


@dataclass(frozen=True, slots=True)
class ReviewContext:
    """Where somebody reviews: the workspace as they see it, whether they are an administrator, and how people who asked are
    known now."""

    workspace: Workspace
    admin: bool
    present: Callable[[str, str], Principal]  # of a run, who asked: in the groups that they are in now

    @property
    def reviewer(self) -> Reviewer:
        names = gate.reviewers_in(self.workspace.settings.reviewers)
        return Reviewer(self.workspace.principal, self.admin, names)


def at_terminal(workspace: Workspace) -> ReviewContext:
    """The bench of whoever works at the command line."""
    store = workspace.store
    admin = workspace.principal == LOCAL and gate.at_terminal(store)
    return ReviewContext(workspace, admin, lambda run, who: gate.as_now(store, who))


@dataclass(frozen=True, slots=True)
class Line:
    """An answer that waits or waited, at a glance."""

    review: Review
    question: str
    may_decide: bool
    why_not: str = ""  # in words


@dataclass(frozen=True, slots=True)
class Written:
    """A claim of the draft with its verdict. `told` says that it is part of the answer, `flagged` that it rests on nothing but
    passages that read like instructions."""

    place: int
    claim: Claim
    told: bool
    flagged: bool
    editable: bool


@dataclass(frozen=True, slots=True)
class Sheet:
    """An answer with all that a reviewer needs to decide on it, as far as they may see it."""

    line: Line
    answer: Answer
    claims: tuple[Written, ...]
    evidence: tuple[Evidence, ...]  # of documents that the reviewer may read
    history: tuple[Reviewed, ...]  # what was decided before
    open: bool = True  # whether the draft is shown: with four eyes, not to whoever asked

    @property
    def seal(self) -> str:
        return self.line.review.seal


@dataclass(frozen=True, slots=True)
class Seen:
    """A run under review, as whoever asked sees it now: for the gate, and not to be shown as it is."""

    run: Run
    held: AwaitingReview
    documents: frozenset[str]  # that its answer cites
    hidden: frozenset[str]  # that its record speaks of, and that the reviewer may not read


def oversees(workspace: Workspace) -> Callable[[Run, Answer], tuple[str, ...]]:
    """Why answers in this workspace have to wait, as its settings and the marks of its knowledge bases say now. A run that was
    once made to wait does so whatever they say later."""
    store, policy = workspace.store, policy_of(workspace.settings)

    def why(run: Run, answer: Answer) -> tuple[str, ...]:
        found = reasons(run, answer, policy, lambda ids: reviews.marked(store, ids))
        return found or ((BEGUN,) if reviews.is_gated(store, run.id) else ())

    return why


def watched(workspace: Workspace, run: str) -> bool:
    """Whether the answer of a run waits, or may yet have to: until it is delivered, nobody who asked sees its draft."""
    return reviews.is_gated(workspace.store, run) or (
        not reviews.is_delivered(workspace.store, run)
        and (not policy_of(workspace.settings).idle or bool(reviews.marks(workspace.store)))
    )


def mark_base(workspace: Workspace, name: str, *, on: bool) -> None:
    """From now on answers that draw on this knowledge base wait for a reviewer, or do so no more; as its owner says."""
    base = workspace.scope().named(name)
    if not workspace.principal.owns(base):
        raise UserError(f"The knowledge base {name!r} is not yours to change.")
    reviews.mark(workspace.store, base.id, on=on)


async def tell(workspace: Workspace, seconds: float) -> int:
    """Tell the webhook, if there is one, of every answer that waits and that it was not told of; how many those were. What
    could not be told stays to be told."""
    settings = workspace.settings
    if not settings.review_webhook:
        return 0
    from assay.governance.review.webhook import Webhook, message

    hook = Webhook(settings.review_webhook, secret(settings.review_webhook_secret), settings.proxy, settings.ca_bundle)
    waiting = reviews.untold(workspace.store)
    for each in waiting:
        await hook.tell(message(each.run, each.seal, each.created, each.reasons), seconds)
        reviews.told(workspace.store, each.id)
    return len(waiting)


# --- the queue ------------------------------------------------------------------------------------------------------


def queue(bench: ReviewContext, *, waiting: bool = True, after: str = "", limit: int = 50) -> tuple[list[Line], str]:
    """What this person may review, and the place to go on from: what waits, the longest first, or what was decided."""
    found: list[Line] = []
    if not bench.reviewer.may_review:
        return found, ""
    while True:
        rows, after = reviews.page(bench.workspace.store, waiting=waiting, after=after, limit=limit)
        found += [line for row in rows if (line := _line_of(bench, row)) is not None]
        if len(found) >= limit or not after:
            break
    if len(found) <= limit:
        return found, after
    last = found[limit - 1].review  # a page of rows that was only needed in part
    return found[:limit], f"{last.created if waiting else last.decided}{reviews.PLACE}{last.id}"


def _line_of(bench: ReviewContext, review: Review) -> Line | None:
    try:
        seen = _seen(bench, review)
    except Missing:
        return None
    return _line(bench, review, seen)


def _line(bench: ReviewContext, review: Review, seen: Seen) -> Line:
    why = _why_not(bench, review, seen)
    return Line(review, seen.run.asked.question, not why, why)


def _why_not(bench: ReviewContext, review: Review, seen: Seen) -> str:
    """Why somebody who may see it cannot decide on it; empty if they can."""
    if review.state is not State.waiting:
        return GONE.format(run=review.run)
    if _own(bench, review):
        return gate.OWN
    return PARTLY if _untold(seen) else ""


def _own(bench: ReviewContext, review: Review) -> bool:
    """Whether it is their own question, which somebody else has to look at first: until then its draft is not theirs to see."""
    four_eyes = review.four_eyes or bench.workspace.settings.review_four_eyes
    mine = gate.own(review.who, bench.reviewer.principal, four_eyes=four_eyes)
    return mine and review.state is not State.delivered


def _untold(seen: Seen) -> bool:
    """Whether the answer has words that no citation stands for, and that a model may have taken from what the reviewer may not
    read: those are not shown to them, and nobody decides on what they have not seen."""
    by_rule = seen.run.draft is None or seen.run.draft.by == RULES
    return bool(seen.hidden and not by_rule and (seen.held.answer.gaps or seen.held.answer.said))


def _seen(bench: ReviewContext, review: Review) -> Seen:
    """The run under review, if this person may review it: each document that the answer cites is one that they may read."""
    workspace, reviewer = bench.workspace, bench.reviewer
    if not reviewer.may_review:
        raise gate.missing(review.run)
    try:
        run = workspace.seen_by(bench.present(review.run, review.who)).run(review.run)
    except Missing:
        raise gate.missing(review.run) from None
    waited = (
        event for event in reversed(run.events) if isinstance(event, AwaitingReview) and event.seal == review.seal
    )
    if (held := next(waited, None)) is None:
        raise gate.missing(review.run)  # whoever asked may not see it any more either
    cited = gate.cited(run, held.answer)
    spoken_of = reviews.mentioned(workspace.store, review.run) | cited
    hidden = reviews.unreadable(workspace.store, reviewer.principal.names, spoken_of)
    if cited & hidden:
        raise gate.missing(review.run)
    return Seen(run, held, cited, frozenset(hidden))


# --- looking --------------------------------------------------------------------------------------------------------


def shown(bench: ReviewContext, run: str) -> Sheet:
    """An answer that waits, or the last one that did, for whoever may review it."""
    review = reviews.latest(bench.workspace.store, run)
    if review is None:
        raise gate.missing(run)
    return _sheet(bench, review, _seen(bench, review))


def _sheet(bench: ReviewContext, review: Review, seen: Seen) -> Sheet:
    run, answer = seen.run, seen.held.answer
    if _own(bench, review):
        nothing = Answer(answer.question, (), Outcome.abstained)
        return Sheet(_line(bench, review, seen), nothing, (), run.evidence, (), open=False)
    there = {entry.uri for entry in bench.workspace.sources()} if answer.unread else set[str]()
    answer = replace(answer, unread=tuple(uri for uri in answer.unread if uri in there))
    if seen.hidden:  # what a model wrote beside its claims may be from what this person may not read
        said = {"gaps": (), "said": ""} if _untold(seen) else {}
        answer = replace(answer, question=run.asked.question, searched=(), **said)
    evidence = tuple(each for each in run.evidence if each.passage.doc_id not in seen.hidden)
    history = run.reviews
    if seen.hidden:
        evidence = tuple(replace(each, note="") for each in evidence)
        history = tuple(replace(each, edits=()) for each in history)
    return Sheet(_line(bench, review, seen), answer, tuple(_claims(seen)), evidence, history)


def _claims(seen: Seen) -> Iterator[Written]:
    """The draft's claims as they stand, also those that did not hold; but none that may be from what is hidden."""
    run, told = seen.run, set(seen.held.answer.claims)
    checked = run.checked
    flagged = {each.key for each in run.evidence if each.flagged}
    for place, written in run.written.items():
        claim = checked.get(place, written)
        if seen.hidden:
            claim = replace(claim, why="")
        if seen.hidden and checked.get(place) not in told:
            continue
        alone = bool(claim.cites) and flagged.issuperset(claim.cites)
        yield Written(place, claim, checked.get(place) in told, alone, run.asked.brief is None)


def trace(bench: ReviewContext, run: str) -> list[tuple[Record, Event]]:
    """Every record of a run under review, as far as the reviewer may see it."""
    sheet, workspace = shown(bench, run), bench.workspace
    scope = workspace.scope()
    texts = documents.texts_for(workspace.store, scope)
    who = sheet.line.review.who
    chain = records.chain(workspace.store, run, who)
    found = [_known(event, scope) for event in records.events_of(workspace.store, run, who, texts, scope)]
    return list(zip(chain, map(for_asker, found) if _own(bench, sheet.line.review) else found, strict=True))


def _known(event: Event, scope: Scope) -> Event:
    """Of a question, the knowledge bases that the reviewer has too: what whoever asked calls the same may be another one."""
    if not isinstance(event, Asked):
        return event
    known = {base.name: base.description for base in scope.bases}
    about = {name: said for name, said in event.about.items() if known.get(name) == said}
    bases = tuple(name for name in event.where.bases if name in known)
    return replace(event, about=about, where=replace(event.where, bases=bases))


# --- deciding -------------------------------------------------------------------------------------------------------


def decide(
    bench: ReviewContext, run: str, decision: Decision, seal: str, note: str = "", edits: Sequence[Edit] = ()
) -> Reviewed:
    """Decide on the answer with this seal, if it is the one that waits now. Everything is looked at again in the transaction
    that records it."""
    workspace, reviewer = bench.workspace, bench.reviewer
    review = reviews.latest(workspace.store, run)
    if review is None:
        raise gate.missing(run)
    seen = _seen(bench, review)
    if why := _why_not(bench, review, seen):
        raise UserError(why)
    if seal != review.seal:
        raise UserError(f"What waits in run {run} is no longer what you looked at. Look again.")
    made = Reviewed(decision, seal, reviewer.principal.id, _said(note), _edits(seen, decision, edits))
    if decision is Decision.reject and not made.note:
        raise UserError("Say why it is rejected, with a note: whoever asked is told.")
    try:
        records.append(
            workspace.store,
            run,
            len(seen.run.events),
            made,
            hours=workspace.settings.review_hours,
            check=lambda connection: gate.still(connection, reviewer, run, seen.documents),
        )
    except StoreError:
        now = reviews.latest(workspace.store, run)
        if now is not None and (now.id != review.id or now.state is not State.waiting):
            raise UserError(GONE.format(run=run)) from None  # somebody else was a moment faster
        raise
    return made


def _edits(seen: Seen, decision: Decision, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    if decision is not Decision.edit:
        if edits:
            raise UserError("Claims are either edited, or the answer is approved or rejected as it is.")
        return ()
    if seen.run.asked.brief is not None:
        raise UserError("A synthesis is approved or rejected as a whole; its claims cannot be edited.")
    if not edits:
        raise UserError("Name the claims to edit: the place of each, and its new words.")
    known = {each.place for each in _claims(seen)}
    for each in edits:
        if each.place not in known:
            raise UserError(f"There is no claim at place {each.place} that can be edited.")
    if len({each.place for each in edits}) < len(edits):
        raise UserError("Each claim can be edited once at a time.")
    return tuple(Edit(each.place, _said(each.text)) for each in edits)


def _said(words: str) -> str:
    """What a person wrote, in a line, and without what cannot be seen."""
    told = " ".join(clean_text(words).split())
    if len(told) > LONGEST:
        raise UserError(f"That is too long: {LONGEST} characters are the most.")
    return told


def carried_on(bench: ReviewContext, run: str) -> AsyncIterator[tuple[Run, Event]]:
    """The run after a decision, as whoever asked is now: what is approved is delivered, what is edited is checked."""
    review = reviews.latest(bench.workspace.store, run)
    if review is None:
        raise gate.missing(run)
    return bench.workspace.seen_by(bench.present(run, review.who)).resume(run)


def kept(bench: ReviewContext, limit: int = 50) -> list[tuple[Sheet, Reviewed]]:
    """What was decided, the newest first: the answer as it then was, and the decision. Cases to hold a later Assay against."""
    found: list[tuple[Sheet, Reviewed]] = []
    for line in queue(bench, waiting=False, limit=limit)[0]:
        sheet = _sheet(bench, line.review, _seen(bench, line.review))
        found += [
            (sheet, each) for each in sheet.history if each.seal == line.review.seal and each.by == line.review.by
        ]
    return found
