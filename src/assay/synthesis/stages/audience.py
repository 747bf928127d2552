"""Translates the text for other audiences: the same claims and citations in other words, with readability scores. A
capable model retells it, and each sentence is judged by the claims it tells; without one the claims keep their words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass

from assay.agent.context import RunContext, mark
from assay.agent.steps.check import judge_window
from assay.answer.checking.judge import JudgeRequest, batches
from assay.answer.claims import Sources
from assay.core.events import Event, Translated
from assay.core.events.synthesis import BY_RULES, Maker, combine_makers, stand_in
from assay.core.run import Run
from assay.core.synthesis import EXECUTIVE, EXPERT, TranslatedParagraph, TranslatedSentence, Translation
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.synthesis import state
from assay.synthesis.writing import rewrite
from assay.synthesis.writing.material import document_names
from assay.synthesis.writing.readability import readability
from assay.synthesis.writing.rewrite import Tried, VerifiedNarrative

NO_MODEL = "there is no capable model to write it anew"


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
    narrative = rewrite.verified_narrative(run, document_names(run))
    async for event in state.run_in_order(_translated(run, context, narrative, audience) for audience in wanted):
        yield event


async def _translated(run: Run, context: RunContext, narrative: VerifiedNarrative, audience: str) -> Translated:
    cut = rewrite.groups(narrative)
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
    if not state.is_capable(run):
        return TranslatedGroup(tuple(rewrite.keep_claim(narrative, place, NO_MODEL) for place in group))
    spares = audience == EXECUTIVE
    reply = await context.ask(
        Role.write,
        "translate",
        rewrite.TranslationReply,
        lambda room: rewrite.build_prompt(narrative, audience, group, mark(run), room),
        schema=rewrite.schema(len(group), spares=spares),
        documents=_cited_documents(narrative, group),
        max_tokens=min(150 + 90 * len(group), max(500, state.window(run) // 3)),
    )
    if isinstance(reply, NoReply):
        why = f"it could not be written anew ({reply.why})"
        return TranslatedGroup(
            tuple(rewrite.keep_claim(narrative, place, why) for place in group), maker=stand_in(reply.why)
        )
    retold, by = reply
    ruled = await _judge_sentences(run, context, narrative, rewrite.read(retold, group))
    analogy = "" if spares else rewrite.analogy(retold.analogy)
    return TranslatedGroup(rewrite.settle_group(ruled, narrative, group, spares=spares), analogy, Maker(by))


async def _judge_sentences(
    run: Run, context: RunContext, narrative: VerifiedNarrative, tried: Sequence[Tried]
) -> list[Tried]:
    """Each sentence with its verdict: by the judge of all claims, with the claims that it tells as its sources."""
    evidence = tuple(narrative.sources.values())
    ruled = [(context.judge.by_rule(claim, evidence), places) for claim, places in tried]
    open_ = [at for at, (claim, _) in enumerate(ruled) if context.judge.needs_model(claim)]
    asked = [ruled[at][0] for at in open_]
    for batch in batches(asked, evidence, judge_window(run)):
        own = open_[batch.start : batch.stop]
        documents = _cited_documents(narrative, {place for at in own for place in ruled[at][1]})
        request = JudgeRequest(tuple(ruled[at][0] for at in own))
        judgement = await context.judge.by_model(
            request, evidence, Sources(), context.ask, mark=mark(run), documents=documents
        )
        for at, claim in zip(own, judgement.claims, strict=True):
            ruled[at] = claim, ruled[at][1]
    return ruled


def _cited_documents(narrative: VerifiedNarrative, places: Iterable[int]) -> list[str]:
    return sorted({doc for place in places for doc in narrative.documents[place]})
