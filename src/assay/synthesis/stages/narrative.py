"""The narrative. The spine opens it, then a model writes the items part by part and the parts are joined. Items that
no claim covers are requested once more, then quoted. Revision and delivery work as for any answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from assay.agent.context import RunContext, mark
from assay.agent.steps import deliver as deliver_module
from assay.agent.steps import revise as revise_module
from assay.answer import compose
from assay.answer import draft as drafting
from assay.answer.checking.judge import JUDGE, unchanged_evidence
from assay.core.account import Pipeline, SpineSentence
from assay.core.events import RULES, Drafted, Event, Failed, Revised
from assay.core.events.maker import BY_RULES, Maker, combine_makers
from assay.core.run import Run
from assay.core.types import Block, Claim, Conflict, Evidence, Outcome, Shape, Verdict
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.models.token_estimate import fit_to_tokens
from assay.synthesis import state, titles
from assay.synthesis.writing import items as telling
from assay.synthesis.writing import narrate as narrating
from assay.synthesis.writing import small_models, spine_by_rule
from assay.synthesis.writing.items import NarrativeItem
from assay.synthesis.writing.material import Material, gather_material, is_repeatable, window, with_related

FEW = 4  # insights per request for a small model
REPLY, LONGEST = 60, 2600  # reply tokens per item, and the maximum

Themes = Mapping[int, tuple[Block, ...]]  # theme → its paragraphs


@dataclass(frozen=True, slots=True)
class _Opening:
    """The spine as the opening of the narrative: claims about several themes first, then the claims of each theme."""

    all_: tuple[Claim, ...]
    of_theme: Mapping[int, tuple[Claim, ...]]

    def claims(self, of: Material) -> list[Claim]:
        """The claims of the spine about one document. Naming several documents together does not count as covering
        any of them."""
        both = (*self.all_, *(claim for own in self.of_theme.values() for claim in own))
        return [claim for claim in both if len(of.of(claim.cites)) == 1]


async def narrate(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Yield one draft that uses every insight or, in a summary, every question and every document."""
    of = gather_material(run, context)
    items = telling.items(run, of)
    opening = _spine_opening(run, of)
    themes: Themes = {item.theme: () for item in items}
    conflicts: list[Conflict] = []
    makers = [BY_RULES]
    if items and run.asked.has_model:
        drafts = await _write_parts(run, context, of, items, opening)
        for theme, drafted in drafts:
            themes = {**themes, theme: (*themes[theme], *drafted.blocks)}
            conflicts += drafted.conflicts
        left = telling.missing_items(run, items, [*_deliverable_claims(of, themes, context), *opening.claims(of)])
        more = await _write_parts(run, context, of, left, opening, again=True) if left else []
        for theme, drafted in more:
            for claim in (claim for block in drafted.blocks for claim in block.claims):
                themes = _with_item(themes, NarrativeItem(of.of(claim.cites)[0], claim.cites, claim, theme), of)
        makers = [Maker(each.by, each.fallback) for _, each in (*drafts, *more)]
    elif items:
        themes = {**themes, **_quote_items(run, of, telling.missing_items(run, items, opening.claims(of)))}
    themes = _with_missing_items(run, context, of, items, themes, opening)
    for conflict, sides in telling.conflicts(of):
        themes = _with_both_sides(of, sides, items, themes, opening)
        conflicts.append(conflict)
    maker = combine_makers(makers)
    yield Drafted(
        _join_blocks(run, of, opening, themes),
        Shape.prose,
        tuple(dict.fromkeys(conflicts)),
        by=maker.by,
        fallback=maker.fallback,
    )


def _spine_opening(run: Run, of: Material) -> _Opening:
    """The beats of the spine as claims, each under its theme. Beats that only list documents are left out: they
    state nothing."""
    spine = state.spine(run)
    if spine is None:
        return _Opening((), {})
    all_: list[Claim] = []
    of_theme: dict[int, tuple[Claim, ...]] = {}
    for beat in (beat for beat in spine.spine if not beat.lists):
        number = _theme_of(beat, [frozenset(theme.documents) for theme in spine.themes])
        if number is None:
            all_.append(spine_by_rule.as_claim(of, beat))
        else:
            of_theme[number] = (*of_theme.get(number, ()), spine_by_rule.as_claim(of, beat))
    return _Opening(tuple(all_), of_theme)


def _theme_of(beat: SpineSentence, themes: Sequence[frozenset[str]]) -> int | None:
    """The theme of a beat; None if there is only one theme or the beat covers several."""
    if len(themes) < 2 or not beat.documents:
        return None
    return next((number for number, docs in enumerate(themes) if set(beat.documents) <= docs), None)


def _claims(themes: Themes) -> list[Claim]:
    return [claim for blocks in themes.values() for block in blocks for claim in block.claims]


def _with_item(themes: Themes, item: NarrativeItem, of: Material) -> Themes:
    return {**themes, item.theme: telling.insert_item(themes[item.theme], item, of)}


def _deliverable_claims(of: Material, themes: Themes, context: RunContext) -> list[Claim]:
    """The claims that the rules expect to be deliverable; others do not count as covering an item. With a small
    model, claims that the rules leave open are excluded too, because nothing verifies them later."""
    judged = not context.small(Role.check)

    def fine(claim: Claim) -> bool:
        ruled = JUDGE.by_rule(claim, of.evidence, of.sources)
        open_ = judged and ruled.verdict is Verdict.partial and not ruled.hints
        return ruled.verdict is Verdict.supported or open_

    return [claim for claim in _claims(themes) if claim.quote or fine(claim)]


def _with_missing_items(
    run: Run, context: RunContext, of: Material, items: Sequence[NarrativeItem], themes: Themes, opening: _Opening
) -> Themes:
    """Quote every item that no claim covers, and make sure that each document has a claim of its own."""
    for item in telling.missing_items(run, items, [*_deliverable_claims(of, themes, context), *opening.claims(of)]):
        themes = _with_item(themes, item, of)
    for item in telling.documents_without_own_claim(
        of, items, [*_deliverable_claims(of, themes, context), *opening.claims(of)]
    ):
        themes = _with_item(themes, item, of)
    return themes


def _with_both_sides(
    of: Material, sides: Sequence[NarrativeItem], items: Sequence[NarrativeItem], themes: Themes, opening: _Opening
) -> Themes:
    """Make sure that both sides of a contradiction are stated, each by a claim that cites its words."""
    where = {item.doc_id: item.theme for item in items}
    cited = {key for claim in (*_claims(themes), *opening.claims(of)) for key in claim.cites}
    for side in sides:
        if side.doc_id in where and side.keys[0] not in cited and is_repeatable(side.claim):
            themes = _with_item(themes, replace(side, theme=where[side.doc_id]), of)
    return themes


def _join_blocks(run: Run, of: Material, opening: _Opening, themes: Themes) -> tuple[Block, ...]:
    """The opening, then each theme, under its name if there are several. Duplicate claims are dropped. A summary has
    no headings."""
    spine = state.spine(run)
    first = {_claim_identity(claim, of): claim for claim in opening.all_}
    found = [Block(tuple(first.values()))] if first else []
    known = set(first)
    for number, blocks in sorted(themes.items()):
        head = opening.of_theme.get(number, ())
        own: list[Block] = []
        for block in (Block(head), *blocks):
            new = {
                _claim_identity(claim, of): claim for claim in block.claims if _claim_identity(claim, of) not in known
            }
            known |= new.keys()
            own += [replace(block, claims=tuple(new.values()))] if new else []
        name = spine.themes[number].name if spine and len(spine.themes) > 1 else ""
        if own and name and not own[0].heading:
            own[0] = replace(own[0], heading=name)
        found += own
    return tuple(found)


def _claim_identity(claim: Claim, of: Material) -> tuple[str, frozenset[str]]:
    """Two claims with the same words about the same documents are duplicates."""
    return " ".join(titles.without_title(claim.words).split()), frozenset(of.of(claim.cites))


# --- by rule --------------------------------------------------------------------------------------------------------


def _quote_items(run: Run, of: Material, items: Sequence[NarrativeItem]) -> Themes:
    """Without a model: quotations by document, under its title; in a summary by question. No span is quoted twice."""
    synthesis = state.brief(run).pipeline is Pipeline.synthesis
    found: dict[int, dict[str, list[Claim]]] = {}
    for item in items:
        own = found.setdefault(item.theme, {}).setdefault(item.doc_id if synthesis else item.question, [])
        if all(claim.words != item.claim.words for claim in own):
            own.append(item.claim)
    return {
        theme: tuple(Block(tuple(claims), of.called.get(name, "") if synthesis else "") for name, claims in own.items())
        for theme, own in found.items()
    }


# --- by a model -----------------------------------------------------------------------------------------------------


async def _write_parts(
    run: Run,
    context: RunContext,
    of: Material,
    items: Sequence[NarrativeItem],
    opening: _Opening,
    *,
    again: bool = False,
) -> list[tuple[int, Drafted]]:
    """The written parts in order, each with its theme."""
    parts = telling.split_into_parts(items, window(run), FEW if context.small(Role.write) else 0)
    work = (
        _write_part(run, context, of, part, opening, _instructions(run, place, len(parts), again))
        for place, part in enumerate(parts)
    )
    drafts = [each async for each in state.run_in_order(work)]
    return [(part[0].theme, drafted) for part, drafted in zip(parts, drafts, strict=True)]


def _instructions(run: Run, place: int, count: int, again: bool) -> str:
    focus = state.brief(run).focus
    lines = [f"The reader wants to know: {fit_to_tokens(' '.join(focus.split()), 80)}"] if focus.strip() else []
    if again:
        lines.append("These were left out. Tell each of them in a sentence of its own.")
    elif count > 1:
        lines.append(f"This is part {place + 1} of {count} of the account. Tell all that is shown here, and only that.")
    else:
        lines.append("Tell all that is shown here.")
    return "\n".join(lines)


async def _write_part(
    run: Run, context: RunContext, of: Material, part: Sequence[NarrativeItem], opening: _Opening, wanted: str
) -> Drafted:
    spine = (*opening.all_, *opening.of_theme.get(part[0].theme, ()))
    keys = list(dict.fromkeys(key for item in part for key in item.keys))
    reply = await context.ask(
        Role.write,
        "narrate",
        drafting.Writing,
        lambda room: narrating.build_prompt(of, part, spine, wanted, mark(run), room),
        schema=narrating.schema(keys),
        documents=sorted(
            with_related(of, [*(item.doc_id for item in part), *(doc for claim in spine for doc in of.of(claim.cites))])
        ),
        max_tokens=min(LONGEST, 160 + REPLY * len(part)),
    )
    if isinstance(reply, NoReply):
        own = dict.fromkeys(item.claim for item in part)
        return Drafted((Block(tuple(own)),), Shape.prose, fallback=(reply.why,))
    drafted = narrating.read(reply[0], part, run.question, of, reply[1])
    return (
        replace(drafted, blocks=small_models.keep_close_claims(drafted.blocks, of.evidence))
        if context.small(Role.write)
        else drafted
    )


# --- revision and delivery ------------------------------------------------------------------------------------------


async def revise(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Revise unsupported claims as in any answer. If a document would then no longer appear, the claim is replaced
    by a quotation of that document instead of a model's rewrite."""
    for event in _quote_missing_documents(run, context):
        yield event
        run = run.then(event)
    async for event in revise_module.revise(run, context):
        kept = (
            _quote_instead_of_dropping(run, event, context)
            if isinstance(event, Revised) and event.claim is None
            else event
        )
        run = run.then(kept)
        yield kept


def _quote_instead_of_dropping(run: Run, dropped: Revised, context: RunContext) -> Revised:
    """Replace a dropped claim by a quotation if no other claim cites its evidence, so that no finding is lost."""
    failed = dict(run.unsupported)
    others = [claim for place, claim in run.claims_by_place.items() if place not in failed]
    cited = {key for claim in others for key in claim.cites}
    quoted = {claim.quote for claim in others}
    cites = failed[dropped.place].cites
    alone = [each for each in run.evidence if each.key in cites and each.key not in cited and each.quote not in quoted]
    for each in unchanged_evidence(alone, cache(context.document)):
        claim = Claim("", (each.key,), quote=each.quote)
        if is_repeatable(claim) and each.quote != failed[dropped.place].quote:
            return Revised(dropped.place, claim, f"the document's own words, since {failed[dropped.place].why}", RULES)
    return dropped


def _quote_missing_documents(run: Run, context: RunContext) -> list[Revised]:
    """A quotation for each document without a supported claim, in place of the claim that is most specific to it."""
    evidence = unchanged_evidence(run.evidence, cache(context.document))
    own: dict[str, list[Evidence]] = {}
    for each in evidence:
        own.setdefault(each.quote.doc_id, []).append(each)
    where = {each.key: each.quote.doc_id for each in evidence}
    failed = dict(run.unsupported)
    spoken = {
        where[key]
        for place, claim in run.claims_by_place.items()
        if place not in failed
        for key in claim.cites
        if key in where
    }
    found: list[Revised] = []
    for place, claim in sorted(
        failed.items(), key=lambda each: (len({where.get(key) for key in each[1].cites}), each[0])
    ):
        lost = [where[key] for key in claim.cites if key in where and where[key] not in spoken]
        for doc in lost[:1]:
            words = [each for each in own[doc] if each.key in claim.cites] + own[doc]
            quotes = (Claim("", (each.key,), quote=each.quote) for each in words)
            best = next((each for each in quotes if is_repeatable(each) and each.quote != claim.quote), None)
            if best is not None:
                spoken.add(doc)
                found.append(Revised(place, best, f"the document's own words, since {claim.why}"))
    return found


async def deliver(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Deliver the narrative; if any claim is still unsupported, deliver none. A document with evidence that the
    narrative does not cover is listed as a gap, and any uncovered document makes the outcome partial."""
    answer = compose.answer(run, context.document, context.titles(run), context.unreadable())
    where = {each.key: each.quote.doc_id for each in run.evidence}
    cited_documents = {where[key] for claim in answer.claims for key in claim.cites}
    called = titles.document_titles(run, context.titles(run))
    silent = [doc for doc in state.brief(run).documents if doc in set(where.values()) - cited_documents]
    gaps = tuple(f"nothing that “{called.get(doc, '')}” says could be told" for doc in silent)
    whole = answer.outcome is not Outcome.answered or cited_documents.issuperset(state.brief(run).documents)
    answer = replace(answer, gaps=(*answer.gaps, *gaps), outcome=answer.outcome if whole else Outcome.partial)
    if wrong := compose.find_faults(answer, run, context.document):
        yield Failed("Unverified", f"Nothing is delivered, since not everything in it holds: {'; '.join(wrong)}.")
        return
    yield deliver_module.release(run, context, answer)
