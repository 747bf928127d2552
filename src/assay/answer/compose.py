"""Builds the answer from checked claims. The only place that decides what is delivered; nothing unverified passes.
Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate

from assay.answer.checking.claim_rules import follows_instruction
from assay.answer.checking.judge import Documents, sources_of, verify
from assay.answer.claims import ROW, accept_gap, known_words
from assay.answer.extracts import FOUND
from assay.core.events import BUDGETS, RULES, Claimed, Described, Drafted, Judged, Route, StopReason, Task, fallbacks
from assay.core.figures import captioned, referred_to
from assay.core.run import Run
from assay.core.types import (
    Answer,
    Block,
    Claim,
    Conflict,
    Derivation,
    Evidence,
    Examined,
    Outcome,
    Picture,
    Shape,
    Verdict,
)

EXTRACTS = 7  # version of the decisions since which a draft by rule is extracts, with a probability
MOST_UNSEEN = 3  # figures that an answer names as not read
NEAR = 3  # quotations shown if nothing answers the question


def opinions(run: Run) -> frozenset[int]:
    """The indexes of claims that are opinions."""
    blocks = run.draft.blocks if run.draft else ()
    marked = [block.opinion for block in blocks for _ in block.claims]
    return frozenset(place for place, opinion in enumerate(marked) if opinion)


def headings(run: Run) -> frozenset[int]:
    """The indexes of claims that are the headings of their blocks."""
    return stated_headings(run.draft) if run.draft else frozenset()


def columns(run: Run) -> dict[int, str]:
    """The names of the columns by the indexes of claims that are rows of a table."""
    blocks = run.draft.blocks if run.draft else ()
    names = [block.heading if ROW in block.heading else "" for block in blocks for _ in block.claims]
    return {place: each for place, each in enumerate(names) if each}


def stated_headings(draft: Drafted) -> frozenset[int]:
    first = accumulate((len(block.claims) for block in draft.blocks), initial=0)
    return frozenset(place for place, block in zip(first, draft.blocks, strict=False) if _has_stated_heading(block))


def _has_stated_heading(block: Block) -> bool:
    return len(block.claims) > 1 and bool(block.heading) and block.claims[0].text == block.heading


def guarded_answer(run: Run, guard: DeliveryGuard, titles: Mapping[str, str], unread: Sequence[str] = ()) -> Answer:
    """The delivered answer: the claims that passed, and what is missing or failed. `titles` are those of the found
    documents."""
    draft = run.draft or Drafted((), Shape.list)
    good = {place: claim for place, claim in guard.checked.items() if not find_fault(place, claim, guard)}
    delivered = _keep_claims(draft.blocks, good)
    conflicts = _conflicts(run, draft)
    delivered += (sides := _other_sides(run, conflicts, delivered, guard))
    gaps = _gaps(run, draft)
    cells_alone = any(claim.derived and claim.derived.rule is Derivation.facts for claim in good.values())
    lost = len(good.keys() | headings(run)) < len(_claims(draft)) or cells_alone
    outcome = _outcome(run, draft, delivered, gaps, lost=lost or bool(sides))
    outcome = Outcome.partial if sides and outcome is Outcome.answered else outcome
    beside: tuple[Claim, ...] = ()
    if outcome is Outcome.abstained:  # true statements beside the point are shown as what came nearest
        beside, delivered = tuple(claim for block in delivered for claim in block.claims), ()
    keys = {key for block in delivered for claim in block.claims for key in claim.cites}
    asks_again = run.route is Route.rework and run.rephrased is not None and run.rephrased.task is Task.check
    rechecked = _claims(draft) if asks_again else []  # the person asked if the last answer holds
    return Answer(
        question=run.question,
        blocks=delivered,
        outcome=outcome,
        shape=draft.shape,
        conflicts=tuple(each for each in conflicts if {each.left, each.right} <= keys),
        gaps=gaps,
        searched=run.searched if run.route is not Route.rework else (),
        stopped=run.stopped.reason if run.stopped else "",
        near=(beside or _near(run, draft, guard)) if outcome is Outcome.abstained else (),
        unread=tuple(unread),
        since=run.where.since,
        until=run.where.until,
        left_out=run.asked.left_out if run.route not in (Route.direct, Route.rework) else None,
        probability=draft.probability,
        said=draft.said if outcome is Outcome.direct else "",
        readings=run.readings if len(run.readings) > 1 else (),
        examined=with_titles(run.examined, titles),
        usage=run.usage,
        rechecked=len(rechecked),
        unseen=_unseen(run, keys, guard.document),
        fallen=tuple(claim.words for place, claim in enumerate(rechecked) if place not in good),
    )


def _unseen(run: Run, cited: Collection[str], document: Documents) -> tuple[str, ...]:
    """The figures that the answer is about, or the evidence if there is no whole answer, that no model was shown, and why:
    `Figure 2 on page 5 was not read: the model takes no pictures, or may not be sent any`."""
    shown = {(each.document, each.page, each.box) for reply in run.consulted.values() for each in reply.pictures}
    sees = any(role_model.images for role_model in run.asked.seats)
    found: dict[str, None] = {}
    for each in sorted(run.evidence, key=lambda each: each.key not in cited):
        source = document(each.passage.doc_id)
        span = (each.quote.start, each.quote.end) if each.key in cited else (each.passage.start, each.passage.end)
        own = captioned(source, each.passage.start, each.passage.end) if source else []
        about = referred_to(source, *span) if source and each.key in cited and not sees else own
        for figure in about if source else ():  # of a table that is a picture, OCR has read the words
            if not figure.table and (each.passage.doc_id, figure.page, figure.box) not in shown:
                where = f"{figure.name or 'A figure'}{f' on page {figure.page}' if figure.page else ''}"
                found[f"{where} was not read: {_why_unseen(run, sees=sees, drawn=figure.box is not None)}"] = None
    return tuple(found)[:MOST_UNSEEN]


def _why_unseen(run: Run, *, sees: bool, drawn: bool) -> str:
    if not run.asked.has_model:
        return "without a model no picture is read"
    if not sees:
        return "the model takes no pictures, or may not be sent any"
    return "there was no room for its picture" if drawn else "only figures of PDFs are shown to a model"


def with_titles(examined: Examined | None, titles: Mapping[str, str]) -> Examined | None:
    if examined is None:
        return None
    whole, partly = (tuple(titles.get(each) or each for each in ids) for ids in (examined.whole, examined.partly))
    return replace(examined, whole=whole, partly=partly)


def _claims(draft: Drafted) -> list[Claim]:
    return [claim for block in draft.blocks for claim in block.claims]


def _keep_claims(blocks: Sequence[Block], good: Mapping[int, Claim]) -> tuple[Block, ...]:
    """The blocks with only the claims that passed; empty blocks are removed. An opinion needs facts: alone, it is
    removed too."""
    kept: list[Block] = []
    first = accumulate((len(block.claims) for block in blocks), initial=0)
    for place, block in zip(first, blocks, strict=False):
        stated = _has_stated_heading(block)
        own = [good[at] for at in range(place + stated, place + len(block.claims)) if at in good]
        if own:
            heading = "" if stated and place not in good else block.heading
            kept.append(replace(block, claims=tuple(own), heading=heading))
    return tuple(kept) if any(not block.opinion for block in kept) else ()


def _conflicts(run: Run, draft: Drafted) -> tuple[Conflict, ...]:
    """The conflicts that the writer names, and those that the judge sees besides."""
    seen = run.judgement.conflicts if run.judgement else ()
    named = {frozenset((each.left, each.right)) for each in draft.conflicts}
    return (*draft.conflicts, *(each for each in seen if {each.left, each.right} not in named))


def _other_sides(
    run: Run, conflicts: Sequence[Conflict], delivered: Sequence[Block], guard: DeliveryGuard
) -> tuple[Block, ...]:
    """The sides of conflicts of which only the other side passed, as quotations: it is not delivered as the answer."""
    cited = {key for block in delivered for claim in block.claims for key in claim.cites}
    if run.asked.brief is not None or run.route is Route.rework:
        return ()
    open_ = [{each.left, each.right} - cited for each in conflicts]
    keys = {key for each in open_ if len(each) == 1 for key in each}
    sides = [Claim("", (each.key,), quote=each.quote) for each in run.evidence if each.key in keys and not each.flagged]
    return tuple(Block((claim,)) for claim in map(guard.verify, sides) if claim.verdict is Verdict.supported)


def _gaps(run: Run, draft: Drafted) -> tuple[str, ...]:
    """The unanswered parts: as the judge of the draft says; without one, as the writer states. Where a limit ended a search
    that never had enough, what it lacked last."""
    if draft.said or run.asked.brief is not None:  # a synthesis answers no single question
        return ()
    if run.route is Route.rework:  # what was missing from the last answer still is
        return run.last_answer.whole.gaps if run.last_answer and run.last_answer.whole else ()
    if run.judgement is not None and run.judgement.by != RULES:
        return run.judgement.missing or _never_enough(run)
    return draft.missing


def _never_enough(run: Run) -> tuple[str, ...]:
    """What the evidence lacked according to the last judgement, if a limit ended the search and something was missing each
    time."""
    judged = [event for event in run.current if isinstance(event, Judged) and event.by != RULES]
    if not (run.stopped and run.stopped.reason in BUDGETS and judged and all(each.missing for each in judged)):
        return ()
    known = known_words(run.question, run.evidence)
    found = [accept_gap(each, known) for each in judged[-1].missing]
    return tuple(dict.fromkeys(each or run.question for each in found))


def _outcome(run: Run, draft: Drafted, delivered: Sequence[Block], gaps: Sequence[str], *, lost: bool) -> Outcome:
    """Abstained: no claims, or they do not answer the question. Partial: its judge says that something is missing, or a
    budget cut the search short; without a judge, a claim failed, something is missing, or the search was ended by a limit
    or by unusable replies; of extracts, that none of them is likely enough to answer. Without a model, a full round of
    searches does not count as a limit: the rules would do no more."""
    judgement = run.judgement
    if not delivered:
        return Outcome.direct if draft.said else Outcome.abstained
    if run.asked.brief is not None:
        events = (event for event in run.events if not isinstance(event, Described))
        short = any(map(fallbacks, events))  # rules replaced the model for part of it
        return Outcome.partial if lost or short else Outcome.answered
    if judgement is not None and judgement.beside:
        return Outcome.abstained
    if run.route is Route.rework:
        return Outcome.partial if lost or gaps else Outcome.answered
    reason = run.stopped.reason if run.stopped else None
    if judgement is not None and judgement.by != RULES:
        cut_short = reason in BUDGETS - {StopReason.rounds, StopReason.searches}
        return Outcome.partial if gaps or cut_short else Outcome.answered
    usual = {StopReason.searches, StopReason.rounds} if not run.asked.has_model else frozenset()
    limited = reason in (BUDGETS | {StopReason.unusable}) - usual
    return Outcome.partial if lost or limited or draft.missing or _unsure(run, draft) else Outcome.answered


def _unsure(run: Run, draft: Drafted) -> bool:
    """Whether extracts are only perhaps an answer. What is computed is proven, unless OCR read the cells."""
    if draft.by != RULES or any(claim.derived and not claim.derived.scanned for claim in _claims(draft)):
        return False
    return run.asked.version >= EXTRACTS if draft.probability is None else draft.probability < FOUND


def _near(run: Run, draft: Drafted, guard: DeliveryGuard) -> tuple[Claim, ...]:
    """The closest quotations if nothing answers the question: those the draft names, or else the best evidence."""
    best = draft.near or tuple(
        Claim("", (each.key,), quote=each.quote) for each in run.evidence[:NEAR] if not each.flagged
    )
    found = (guard.verify(claim) for claim in best if claim.quote)
    return tuple(claim for claim in found if claim.verdict is Verdict.supported)


# --- the last guard -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeliveryGuard:
    """What every claim is checked against before delivery; computed once for all claims."""

    checked: Mapping[int, Claim]
    evidence: tuple[Evidence, ...]
    document: Documents
    passages: tuple[str, ...]  # everything found, kept as evidence or not
    verify: Callable[[Claim], Claim]  # by the judge's rules, once for equal claims
    judged_by_sight: frozenset[Picture] = frozenset()  # the pictures that judges were shown


def delivery_guard(run: Run, document: Documents) -> DeliveryGuard:
    passages = tuple(dict.fromkeys(found.passage.text for found in run.found))
    document = cache(document)
    verified = cache(lambda claim: verify(claim, run.evidence, document))
    seen = frozenset(each for reply in run.consulted.values() if reply.prompt == "check" for each in reply.pictures)
    return DeliveryGuard(run.checked, run.evidence, document, passages, verified, seen)


def find_fault(place: int, claim: Claim, guard: DeliveryGuard) -> str:
    """Why a claim must not be delivered; empty if it may. It must have been checked in this run, found supported and
    unchanged since, and the string checks and rules must still not reject it."""
    if guard.checked.get(place) != claim or claim.verdict is not Verdict.supported:
        return f"“{claim.words}” was not found to be supported"
    if not claim.words.strip():
        return "a claim says nothing"
    if claim.figure and not claim.edited and claim.figure not in guard.judged_by_sight:
        return f"“{claim.words}” is read from a figure that no judge was shown"
    again = guard.verify(claim)
    if again.verdict is Verdict.supported:
        return ""
    if claim.quote is None and again.verdict is Verdict.partial:  # a model has settled what the rules leave open
        cited = [each for each in guard.evidence if each.key in claim.cites]
        instructed = follows_instruction(claim, cited, sources_of(cited, guard.document), guard.passages)
        return f"“{claim.words}”: a passage tells its reader to say so" if instructed else ""
    return f"“{claim.words}”: {again.why}"


def find_faults(answer: Answer, run: Run, document: Documents) -> list[str]:
    """The faults of an answer. Every claim must have been checked in this run and be supported, every key must be
    evidence of this run, every quotation must be in its document, both sides of a conflict must be cited, and content
    that is not from the documents must be labelled."""
    return guarded_faults(answer, run, delivery_guard(run, document))


def guarded_faults(answer: Answer, run: Run, guard: DeliveryGuard) -> list[str]:
    places: dict[Claim, int] = {claim: place for place, claim in guard.checked.items()}
    found: list[str] = []
    for claim in (*answer.claims, *answer.near):
        if claim.quote is None or claim in places:
            found += [why for why in (find_fault(places.get(claim, -1), claim, guard),) if why]
        elif guard.verify(claim) != claim or claim.verdict is not Verdict.supported:
            found.append(f"“{claim.words}” is not a quotation")
    cited = {key for claim in answer.claims for key in claim.cites}
    found += [
        f"a conflict about “{each.about}” is not cited"
        for each in answer.conflicts
        if not {each.left, each.right} <= cited
    ]
    headings = {block.heading for block in run.draft.blocks} if run.draft else set()
    found += [
        f"the heading “{each.heading}” is not the draft's"
        for each in answer.blocks
        if each.heading not in {"", *headings}
    ]
    if (answer.outcome is Outcome.direct) != bool(answer.said) or (answer.said and answer.blocks):
        found.append("what is not from the documents must be marked so, and stand alone")
    if (answer.outcome in {Outcome.answered, Outcome.partial}) != bool(answer.blocks):
        found.append(f"an answer without claims cannot be {answer.outcome}")
    return found


# --- while it is written --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of an answer that is not delivered yet, by its place in the draft. Without a claim it is still being
    checked or put right."""

    place: int
    claim: Claim | None
    heading: str = ""
    opinion: bool = False


def statements(run: Run, document: Documents) -> tuple[Statement, ...]:
    """What a model has written so far, in order. Only what passed its check and would be delivered is in words; one side of a
    conflict only together with the other, and an opinion only beside facts. A later event may change any of it."""
    if run.delivered or (run.draft or Drafted((), Shape.list, by="")).by == RULES:
        return ()
    if run.judgement is not None and run.judgement.beside:
        return ()
    guard = delivery_guard(run, document)
    good = {place: claim for place, claim in guard.checked.items() if not find_fault(place, claim, guard)}
    written = sorted(run.claimed.values(), key=lambda event: event.place)
    known = whole_claims(run.draft) if run.draft else written
    stands = {event.place for event in known if event.place in good and not _lacks_other_side(event, run, good)}
    facts = any(event.place in stands and not event.opinion for event in known)
    return tuple(
        Statement(
            event.place,
            good[event.place] if event.place in stands and (facts or not event.opinion) else None,
            event.heading,
            event.opinion,
        )
        for event in known
        if run.draft is None or event.place in run.claims_by_place
    )


def _lacks_other_side(event: Claimed, run: Run, good: Mapping[int, Claim]) -> bool:
    """Whether a claim cites one side of a conflict, and no claim that passed cites the other yet."""
    if run.draft is None:
        return event.side
    cited = {key for claim in good.values() for key in claim.cites}
    sides = [{each.left, each.right} for each in _conflicts(run, run.draft)]
    return any(each & set(good[event.place].cites) and not each <= cited for each in sides)


def whole_claims(draft: Drafted) -> list[Claimed]:
    """The claims of a draft, without headings that state something: those rest on their whole block."""
    sides = {key for each in draft.conflicts for key in (each.left, each.right)}
    titles = stated_headings(draft)
    written = enumerate((block, claim) for block in draft.blocks for claim in block.claims)
    return [
        Claimed(
            place,
            claim,
            "" if _has_stated_heading(block) else block.heading,
            block.opinion,
            not sides.isdisjoint(claim.cites),
        )
        for place, (block, claim) in written
        if place not in titles
    ]
