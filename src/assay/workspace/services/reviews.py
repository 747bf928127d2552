"""Reviews: the queue, what a reviewer may see, and decisions. A person who may not review an answer gets the same
error as if it did not exist."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from assay.answer import claim_details, compose
from assay.core.access import LOCAL, Principal, Scope
from assay.core.errors import Missing, StoreError, UserError
from assay.core.events import RULES, Asked, AwaitingReview, Decision, Edit, Event, Reviewed
from assay.core.printable import clean_text
from assay.core.run import Run
from assay.core.types import Answer, Claim, Outcome
from assay.governance import reviewing
from assay.governance.reviewing import Reviewer, redact_event
from assay.store import documents
from assay.store.runs import records, reviews
from assay.store.runs.records import Record
from assay.store.runs.reviews import Review, ReviewState
from assay.workspace.context import OnStore, Service
from assay.workspace.services.ask import resume
from assay.workspace.types import MAX_REVIEW_TEXT, DraftedClaim, ReviewItem, ReviewSheet, Steps

NOT_WAITING = "Nothing of run {run} waits for a reviewer any more."
PARTLY_HIDDEN = (
    "Part of this answer may speak of documents that you may not read. Somebody who may read them has to decide."
)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A run under review, as the person who asked may see it now. It is never shown unredacted."""

    run: Run
    held: AwaitingReview
    cited: frozenset[str]  # documents that the answer cites
    hidden: frozenset[str]  # documents that the record mentions and the reviewer may not read

    @property
    def has_hidden_text(self) -> bool:
        """Whether a model may have written uncited text from documents that the reviewer may not read. Such text is
        hidden, and nobody may decide on text they cannot see."""
        by_rule = self.run.draft is None or self.run.draft.by == RULES
        return bool(self.hidden and not by_rule and (self.held.answer.gaps or self.held.answer.said))


@dataclass(frozen=True)
class Reviews(Service):
    """The reviews that one person may do. `admin` says whether they are an administrator; `principal_of(run, name)` returns a
    person who asked, in their current groups. By default both come from the store, as for the command line."""

    bases = OnStore(reviews.bases_with_review)
    undelivered = OnStore(reviews.undelivered)

    admin: bool | None = None
    principal_of: Callable[[str, str], Principal] | None = None

    def acting(self, *, admin: bool, principal_of: Callable[[str, str], Principal] | None = None) -> Reviews:
        """The reviews of a person whose rights are known."""
        return replace(self, admin=admin, principal_of=principal_of)

    @property
    def reviewer(self) -> Reviewer:
        alone = self.admin is None and self.principal == LOCAL and reviewing.has_no_members(self.store)
        return Reviewer(self.principal, self.admin or alone, reviewing.parse_reviewers(self.settings.reviewers))

    def asker(self, run: str, who: str) -> Principal:
        """A person who asked, in their current groups."""
        return self.principal_of(run, who) if self.principal_of else reviewing.current_principal(self.store, who)

    def may_be_needed(self, run_id: str) -> bool:
        """Whether the answer of a run waits for a reviewer, or may still have to."""
        return reviewing.may_need_review(self.store, self.settings, run_id)

    def queue(self, *, waiting: bool = True, after: str = "", limit: int = 50) -> tuple[list[ReviewItem], str]:
        """A page of the reviews this person may do, and the cursor of the next page: waiting ones oldest first, or
        decided ones."""
        found: list[ReviewItem] = []
        if not self.reviewer.may_review:
            return found, ""
        while True:
            rows, after = reviews.page(self.store, waiting=waiting, after=after, limit=limit)
            for row in rows:
                with suppress(Missing):
                    found.append(self._item(row, self._draft(row)))
            if len(found) >= limit or not after:
                break
        if len(found) <= limit:
            return found, after
        last = found[limit - 1].review  # only part of the last page of rows was needed
        return found[:limit], f"{last.created if waiting else last.decided}{reviews.PLACE}{last.id}"

    def _item(self, review: Review, draft: _Draft) -> ReviewItem:
        why = self._why_not(review, draft)
        return ReviewItem(review, draft.run.asked.question, not why, why)

    def _why_not(self, review: Review, draft: _Draft) -> str:
        """Why a person who may see the review cannot decide on it; empty if they can."""
        if review.state is not ReviewState.waiting:
            return NOT_WAITING.format(run=review.run)
        if self._is_own(review):
            return reviewing.OWN
        return PARTLY_HIDDEN if draft.has_hidden_text else ""

    def _is_own(self, review: Review) -> bool:
        """Whether another person has to review it, since this one asked the question. They do not see the draft
        until it is delivered."""
        four_eyes = review.four_eyes or self.settings.review_four_eyes
        return four_eyes and review.who == self.principal.id and review.state is not ReviewState.delivered

    def _latest(self, run: str) -> Review:
        review = reviews.latest(self.store, run)
        if review is None:
            raise reviewing.missing(run)
        return review

    def _draft(self, review: Review) -> _Draft:
        """The run under review, if this person may review it: they may read every document that the answer cites."""
        reviewer, store = self.reviewer, self.store
        if not reviewer.may_review:
            raise reviewing.missing(review.run)
        try:
            run = self.context.for_principal(self.asker(review.run, review.who)).run(review.run)
        except Missing:
            raise reviewing.missing(review.run) from None
        held = next(
            (each for each in reversed(run.events) if isinstance(each, AwaitingReview) and each.seal == review.seal),
            None,
        )
        if held is None:
            raise reviewing.missing(review.run)  # the person who asked may not see it any more either
        cited = reviewing.cited_documents(run, held.answer)
        mentioned = reviews.mentioned_documents(store, review.run) | cited
        with store.read() as connection:
            hidden = reviews.unreadable(connection, reviewer.principal.names, mentioned)
        if cited & hidden:
            raise reviewing.missing(review.run)
        return _Draft(run, held, cited, frozenset(hidden))

    def sheet(self, run: str) -> ReviewSheet:
        """The answer of a run that waits, or the last one that did."""
        review = self._latest(run)
        return self._sheet(review, self._draft(review))

    def _sheet(self, review: Review, draft: _Draft) -> ReviewSheet:
        run, answer = draft.run, draft.held.answer
        item = self._item(review, draft)
        if self._is_own(review):
            return ReviewSheet(item, Answer(answer.question, (), Outcome.abstained), (), run.evidence, (), open=False)
        known = {entry.uri for entry in self.context.sources()} if answer.unread else set[str]()
        answer = replace(answer, unread=tuple(uri for uri in answer.unread if uri in known))
        evidence, history = run.evidence, run.reviews
        if draft.hidden:  # what a model wrote beside its claims may come from documents the reviewer may not read
            uncited = {"gaps": (), "said": ""} if draft.has_hidden_text else {}
            answer = replace(answer, question=run.asked.question, searched=(), **uncited)
            answer = _without_all_reasons(answer)
            readable = (each for each in evidence if each.passage.doc_id not in draft.hidden)
            evidence = tuple(replace(each, note="") for each in readable)
            history = tuple(replace(each, edits=()) for each in history)
        return ReviewSheet(item, answer, tuple(_claims(draft)), evidence, history)

    def trace(self, run: str) -> list[tuple[Record, Event]]:
        """Every record of a run under review, as far as the reviewer may see it."""
        review, store, scope = self.sheet(run).line.review, self.store, self.context.scope()
        texts = documents.texts_for(store, scope)
        chain = records.chain(store, run, review.who)
        found = [_hide_bases(event, scope) for event in records.events_of(store, run, review.who, texts, scope)]
        return list(zip(chain, map(redact_event, found) if self._is_own(review) else found, strict=True))

    def decided(self, limit: int = 50) -> list[tuple[ReviewSheet, Reviewed]]:
        """Past decisions, the newest first, each with the answer as it then was."""
        found: list[tuple[ReviewSheet, Reviewed]] = []
        for item in self.queue(waiting=False, limit=limit)[0]:
            review = item.review
            sheet = self._sheet(review, self._draft(review))
            found += [(sheet, each) for each in sheet.history if (each.seal, each.by) == (review.seal, review.by)]
        return found

    def decide(self, run: str, decision: Decision, seal: str, note: str = "", edits: Sequence[Edit] = ()) -> Reviewed:
        """Decide on the answer with this seal, if it is the one that waits now. Everything is checked again in the
        transaction that records the decision."""
        store, reviewer = self.store, self.reviewer
        review = self._latest(run)
        draft = self._draft(review)
        if why := self._why_not(review, draft):
            raise UserError(why)
        if seal != review.seal:
            raise UserError(f"What waits in run {run} is no longer what you looked at. Look again.")
        made = Reviewed(decision, seal, reviewer.principal.id, _clean(note), _check_edits(draft, decision, edits))
        if decision is Decision.reject and not made.note:
            raise UserError("Say why it is rejected, with a note: whoever asked is told.")
        try:
            records.append(
                store,
                run,
                len(draft.run.events),
                made,
                hours=self.settings.review_hours,
                check=lambda connection: reviewing.check_still_allowed(connection, reviewer, run, draft.cited),
            )
        except StoreError:
            now = reviews.latest(store, run)
            if now is not None and (now.id != review.id or now.state is not ReviewState.waiting):
                raise UserError(NOT_WAITING.format(run=run)) from None  # another reviewer decided first
            raise
        return made

    def resume(self, run: str) -> Steps:
        """Continue a run after a decision, as the person who asked: an approved answer is delivered, an edited one
        checked."""
        asker = self.context.for_principal(self.asker(run, self._latest(run).who))
        return resume(asker, asker.run(run))

    def mark_base(self, name: str, *, on: bool) -> None:
        """Decide whether answers that use this base wait for a reviewer. Only its owner may do so."""
        base = self.context.require_owner(self.context.scope().named(name))
        reviews.set_review_required(self.store, base.id, on=on)

    async def notify(self, seconds: float) -> int:
        """Notify the webhook, if there is one, of every waiting answer that it was not notified of yet. Returns their
        number. A message that could not be delivered is sent again by the next call."""
        settings = self.settings
        if not settings.review_webhook:
            return 0
        from assay.governance.reviewing import build_message, tell_webhook

        waiting = reviews.not_notified(self.store)
        for each in waiting:
            await tell_webhook(settings, build_message(each.run, each.seal, each.created, each.reasons), seconds)
            reviews.mark_notified(self.store, each.id)
        return len(waiting)


def _claims(draft: _Draft) -> Iterator[DraftedClaim]:
    """The claims of a draft with their verdicts, including unsupported ones, but none that may come from a hidden
    document."""
    run, delivered = draft.run, set(draft.held.answer.claims)
    checked, opinions, judges = run.checked, compose.opinions(run), claim_details.recorded_judges(run.events)
    flagged = {each.key for each in run.evidence if each.flagged}
    for place, drafted in run.claims_by_place.items():
        claim, is_delivered = checked.get(place, drafted), checked.get(place) in delivered
        if draft.hidden:
            if not is_delivered:
                continue
            claim = _without_reasons(claim)
        only_flagged = bool(claim.cites) and flagged.issuperset(claim.cites)
        basis = claim_details.basis(claim, opinion=place in opinions)
        by = claim_details.judged_by(claim, judges)
        yield DraftedClaim(place, claim, is_delivered, only_flagged, True, basis, by)


def _without_reasons(claim: Claim) -> Claim:
    """A claim without what a model wrote beside it."""
    return replace(claim, why="", objection="")


def _without_all_reasons(answer: Answer) -> Answer:
    blocks = (replace(each, claims=tuple(map(_without_reasons, each.claims))) for each in answer.blocks)
    return replace(answer, blocks=tuple(blocks), near=tuple(map(_without_reasons, answer.near)))


def _hide_bases(event: Event, scope: Scope) -> Event:
    """A question without the bases that the reviewer cannot read. A base of the same name may be another one."""
    if not isinstance(event, Asked):
        return event
    known = {base.name: base.description for base in scope.bases}
    about = {name: value for name, value in event.about.items() if known.get(name) == value}
    bases = tuple(name for name in event.where.bases if name in known)
    return replace(event, about=about, where=replace(event.where, bases=bases))


def _check_edits(draft: _Draft, decision: Decision, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    if decision is not Decision.edit:
        if edits:
            raise UserError("Claims are either edited, or the answer is approved or rejected as it is.")
        return ()
    if not edits:
        raise UserError("Name the claims to edit: the place of each, and its new words.")
    known = {each.place for each in _claims(draft)}
    for each in edits:
        if each.place not in known:
            raise UserError(f"There is no claim at place {each.place} that can be edited.")
    if len({each.place for each in edits}) < len(edits):
        raise UserError("Each claim can be edited once at a time.")
    return tuple(Edit(each.place, _clean(each.text)) for each in edits)


def _clean(words: str) -> str:
    """A reviewer's text on one line, without invisible characters."""
    cleaned = " ".join(clean_text(words).split())
    if len(cleaned) > MAX_REVIEW_TEXT:
        raise UserError(f"That is too long: {MAX_REVIEW_TEXT} characters are the most.")
    return cleaned
