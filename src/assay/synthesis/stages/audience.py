"""Translates the narrative for other audiences: the same claims and citations in other words, with readability
scores. A model rewrites a few claims at a time; `rewrite.py` decides which of its sentences are kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass

from assay.agent.context import RunContext, mark
from assay.answer.checking.model_rulings import JudgeRequest
from assay.core.account import EXECUTIVE, EXPERT, PLAIN, TranslatedParagraph, TranslatedSentence, Translation
from assay.core.events import RULES, Event, Translated
from assay.core.events.maker import BY_RULES, Maker, combine_makers, stand_in
from assay.core.run import Run
from assay.core.types import Claim
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.synthesis import state
from assay.synthesis.writing import rewrite
from assay.synthesis.writing.readability import readability
from assay.synthesis.writing.rewrite import Tried, VerifiedNarrative

NO_MODEL = "there is no model to write it anew"
CHECKED = 6  # sentences that are checked in one request


@dataclass(frozen=True, slots=True)
class TranslatedGroup:
    """The translation of one group of claims. Claims that no sentence covers are omitted."""

    sentences: tuple[TranslatedSentence, ...]
    analogy: str = ""
    maker: Maker = BY_RULES


async def translate(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Yield one translation for each audience that has none yet, in the requested order."""
    done = state.translations(run)
    wanted = [each for each in dict.fromkeys(state.brief(run).audiences) if each != EXPERT and each not in done]
    narrative = rewrite.verified_narrative(run, context.sources(run))
    async for event in state.run_in_order(_translated(run, context, narrative, audience) for audience in wanted):
        yield event


async def _translated(run: Run, context: RunContext, narrative: VerifiedNarrative, audience: str) -> Translated:
    cut = list(rewrite.groups(narrative, small=context.small(Role.write)))
    parts = [
        each
        async for each in state.run_in_order(
            _translate_group(run, context, narrative, audience, group) for group in cut
        )
    ]
    sentences = [each for part in parts for each in part.sentences]
    sentences += rewrite.owed_sentences(narrative, frozenset(place for each in sentences for place in each.claims))
    heard = {place for each in sentences for place in each.claims}
    analogies = [(group[0], part.analogy) for group, part in zip(cut, parts, strict=True) if part.analogy]
    paragraphs: list[TranslatedParagraph] = []
    for block in narrative.blocks:
        if own := sorted((each for each in sentences if each.claims[0] in block), key=lambda each: each.claims[0]):
            paragraphs.append(
                TranslatedParagraph(tuple(own), next((analogy for first, analogy in analogies if first in block), ""))
            )
    maker = combine_makers(part.maker for part in parts)
    translation = Translation(
        audience,
        tuple(paragraphs),
        before=readability(_text(claim.words for claim in narrative.claims.values())),
        after=readability(_text(each.text for part in paragraphs for each in part.sentences)),
        left_out=tuple(place for place in narrative.claims if place not in heard),
        by=maker.label,
    )
    return Translated(translation, tuple(_cited_documents(narrative, narrative.claims)), maker.fallback)


def _text(sentences: Iterable[str]) -> str:
    return "\n\n".join(sentences)  # separate paragraphs, because a quotation may lack a full stop


async def _translate_group(
    run: Run, context: RunContext, narrative: VerifiedNarrative, audience: str, group: Sequence[int]
) -> TranslatedGroup:
    """Rewrite one group. If the plain text is harder to read than the original, it is requested once more."""
    if not run.asked.has_model:
        return TranslatedGroup(tuple(rewrite.keep_claim(narrative, place, NO_MODEL) for place in group))
    first = await _rewrite_group(run, context, narrative, audience, group)
    if audience != PLAIN or context.small(Role.write) or first.maker.by == RULES:
        return first
    before = readability(_text(narrative.claims[place].words for place in group)).grade
    after = _grade(first)
    if after <= before:
        return first
    note = f"Your last text was harder to read (grade {after}) than the claims (grade {before}): shorter sentences, please."
    second = await _rewrite_group(run, context, narrative, audience, group, note)
    return second if _grade(second) < after and _kept_count(second) <= _kept_count(first) else first


def _grade(part: TranslatedGroup) -> float:
    return readability(_text(each.text for each in part.sentences)).grade


def _kept_count(part: TranslatedGroup) -> int:
    return sum(each.kept for each in part.sentences)


async def _rewrite_group(
    run: Run, context: RunContext, narrative: VerifiedNarrative, audience: str, group: Sequence[int], note: str = ""
) -> TranslatedGroup:
    spares = audience == EXECUTIVE
    reply = await context.ask(
        Role.write,
        "translate",
        rewrite.TranslationReply,
        lambda room: rewrite.build_prompt(narrative, audience, group, mark(run), room, note),
        schema=rewrite.schema(len(group), spares=spares),
        documents=_cited_documents(narrative, group),
        max_tokens=150 + 110 * len(group),
    )
    if isinstance(reply, NoReply):
        why = f"it could not be written anew ({reply.why})"
        return TranslatedGroup(
            tuple(rewrite.keep_claim(narrative, place, why) for place in group), maker=stand_in(reply.why)
        )
    reply_value, by = reply
    ruled = await _judge_sentences(run, context, narrative, rewrite.read(reply_value, narrative, group))
    analogy = "" if spares else rewrite.analogy(reply_value.analogy)
    return TranslatedGroup(rewrite.settle_group(ruled, narrative, group, spares=spares), analogy, Maker(by))


async def _judge_sentences(
    run: Run, context: RunContext, narrative: VerifiedNarrative, tried: Sequence[Tried]
) -> list[Tried]:
    """Each sentence with its verdict: by rule, and by a model where the rules leave it open, unless the model is
    small."""
    ruled = [(rewrite.judge_by_rule(each, narrative), each[1]) for each in tried]
    asks = not context.small(Role.check)
    open_ = [at for at, (claim, _) in enumerate(ruled) if asks and context.judge.needs_model(claim)]
    for batch in state.batches(open_, CHECKED):
        for at, claim in zip(
            batch, await _judge_by_model(run, context, narrative, [ruled[at] for at in batch]), strict=True
        ):
            ruled[at] = claim, ruled[at][1]
    return ruled


async def _judge_by_model(
    run: Run, context: RunContext, narrative: VerifiedNarrative, batch: Sequence[Tried]
) -> Sequence[Claim]:
    claims = [claim for claim, _ in batch]
    places = sorted({place for _, own in batch for place in own})
    shown = [narrative.pieces[place] for place in places]
    judgement = await context.judge.by_model(
        JudgeRequest(tuple(claims)),
        shown,
        narrative.sources,
        context.ask,
        mark=mark(run),
        documents=_cited_documents(narrative, places),
    )
    return judgement.claims


def _cited_documents(narrative: VerifiedNarrative, places: Iterable[int]) -> list[str]:
    return sorted({doc for place in places for doc in narrative.documents[place]})
