"""Translates the text for other audiences: the same claims and citations in other words, with readability scores. A
capable model retells it, and each sentence is judged by the claims it tells; without one the claims keep their words."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from pydantic import BaseModel

from assay.agent.context import RunContext, mark, run_in_order
from assay.agent.steps.check import judge_claims
from assay.answer import claims as stating
from assay.answer import compose
from assay.answer.claims import Sources
from assay.core.events import Event, Translated
from assay.core.events.synthesis import BY_RULES, Maker, combine_makers, stand_in
from assay.core.printable import clean_text
from assay.core.run import Run
from assay.core.synthesis import (
    EXECUTIVE,
    EXPERT,
    PLAIN,
    TranslatedParagraph,
    TranslatedSentence,
    Translation,
)
from assay.core.types import Claim, Conflict, Evidence, Passage, Quote, Verdict
from assay.language import facts
from assay.language.dates import dates
from assay.language.injection import is_suspicious
from assay.language.quantities import numbers
from assay.language.readability import measure_readability
from assay.language.sentences import split_sentences
from assay.language.terms import stem_word
from assay.models.cost import estimate_tokens, fit_to_tokens, pack
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.models.replies import list_schema, object_schema
from assay.prompts import fence
from assay.synthesis import state
from assay.synthesis.material import document_names

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
    narrative = verified_narrative(run, document_names(run))
    async for event in run_in_order(_translated(run, context, narrative, audience) for audience in wanted):
        yield event


async def _translated(run: Run, context: RunContext, narrative: VerifiedNarrative, audience: str) -> Translated:
    cut = narrative_groups(narrative)
    work = (_translate_group(run, context, narrative, audience, group) for group in cut)
    parts = [each async for each in run_in_order(work)]
    sentences = [each for part in parts for each in part.sentences]
    sentences += owed_sentences(narrative, frozenset(place for each in sentences for place in each.claims))
    heard = {place for each in sentences for place in each.claims}
    analogies = [(group[0], part.analogy) for group, part in zip(cut, parts, strict=True) if part.analogy]
    sentences.sort(key=lambda each: each.claims[0])
    paragraphs: list[TranslatedParagraph] = []
    for block in narrative.blocks:
        if own := tuple(each for each in sentences if each.claims[0] in block):
            analogy = next((analogy for first, analogy in analogies if first in block), "")
            paragraphs.append(TranslatedParagraph(own, analogy))
    maker = combine_makers(part.maker for part in parts)
    translation = Translation(
        audience,
        tuple(paragraphs),
        before=measure_readability(_text(claim.words for claim in narrative.claims.values())),
        after=measure_readability(_text(each.text for part in paragraphs for each in part.sentences)),
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
        return TranslatedGroup(tuple(keep_claim(narrative, place, NO_MODEL) for place in group))
    spares = audience == EXECUTIVE
    reply = await context.ask(
        Role.write,
        "translate",
        TranslationReply,
        lambda room: translation_prompt(narrative, audience, group, mark(run), room),
        schema=translation_schema(len(group), spares=spares),
        documents=_cited_documents(narrative, group),
        max_tokens=min(150 + 90 * len(group), max(500, state.window(run) // 3)),
    )
    if isinstance(reply, NoReply):
        why = f"it could not be written anew ({reply.why})"
        return TranslatedGroup(tuple(keep_claim(narrative, place, why) for place in group), maker=stand_in(reply.why))
    retold, by = reply
    tried = read_sentences(retold, group)
    shown = {_key(place): documents for place, documents in narrative.documents.items()}
    verdicts = await judge_claims(
        run,
        context,
        [claim for claim, _ in tried],
        tuple(narrative.sources.values()),
        Sources(),
        lambda claim: (doc for key in claim.cites for doc in shown[key]),
    )
    ruled = [(claim, places) for claim, (_, places) in zip(verdicts, tried, strict=True)]
    analogy = "" if spares else usable_analogy(retold.analogy)
    return TranslatedGroup(settle_group(ruled, narrative, group, spares=spares), analogy, Maker(by))


def _cited_documents(narrative: VerifiedNarrative, places: Iterable[int]) -> list[str]:
    return sorted({doc for place in places for doc in narrative.documents[place]})


TOGETHER, SHOWN = 40, 6000  # claims per request, and their tokens
SENTENCES = 3  # maximum sentences per claim
DESCRIBED = 300  # characters of the description of an audience
ANALOGY = 300  # characters
READER_GUIDANCE = {
    PLAIN: "has no background. Keep the order of the argument and each document distinguishable. Short sentences of one "
    "thought each, in the active voice and in everyday words; explain what is abstract. One analogy may help.",
    EXECUTIVE: "has to decide. Say briefly what matters for a decision. Claims may be merged, and those that make no "
    "difference left out. No analogy.",
}
COMPARES = re.compile(
    r"\b(?:like|as if|as though|imagine|think of|picture|similar to|much as|just as|resembles?)\b", re.I
)
BEGINS = frozenset(map(stem_word, "imagine think picture consider suppose much".split()))  # typical for analogies


class TranslationSentenceReply(BaseModel, extra="forbid"):
    """A sentence as it was written, and the numbers of the claims that it tells."""

    text: str
    claims: list[int]


class TranslationReply(BaseModel, extra="forbid"):
    sentences: list[TranslationSentenceReply]
    analogy: str = ""


# --- input ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VerifiedNarrative:
    """The checked text: its claims by position, each also as a source that sentences are judged by."""

    blocks: tuple[tuple[int, ...], ...]
    claims: Mapping[int, Claim]
    documents: Mapping[int, tuple[str, ...]]  # documents that a claim cites
    sources: Mapping[int, Evidence]
    conflicts: tuple[Conflict, ...]


def verified_narrative(run: Run, names: Mapping[str, str]) -> VerifiedNarrative:
    """The text for the expert audience. Opinions are labelled there and are not retold. `names` are those of documents."""
    opinions, checked = compose.opinions(run), sorted(run.checked.items())
    good = {at: each for at, each in checked if each.verdict is Verdict.supported and at not in opinions}
    places = count()
    drafted = [[next(places) for _ in block.claims] for block in (run.draft.blocks if run.draft else ())]
    parts = [tuple(place for place in own if place in good) for own in drafted]
    by_key = {each.key: each for each in run.evidence}
    cited = {place: [by_key[key] for key in claim.cites if key in by_key] for place, claim in good.items()}
    documents = {place: tuple(dict.fromkeys(each.quote.doc_id for each in own)) for place, own in cited.items()}
    sources = {place: _source(place, claim, cited[place], names) for place, claim in good.items()}
    conflicts = run.draft.conflicts if run.draft else ()
    return VerifiedNarrative(tuple(filter(None, parts)), good, documents, sources, conflicts)


def _source(place: int, claim: Claim, cited: Sequence[Evidence], names: Mapping[str, str]) -> Evidence:
    """A checked claim as a source, under the names of the documents it cites."""
    words = claim.words.strip()
    doc = cited[0].quote.doc_id if cited else ""
    above = ", ".join(dict.fromkeys(names.get(each.quote.doc_id, "") for each in cited))
    passage = Passage(_key(place), doc, words, 0, len(words), above)
    flagged = any(each.flagged for each in cited)
    return Evidence(_key(place), passage, Quote(doc, 0, len(words), words), 10.0, "", flagged=flagged)


def _key(place: int) -> str:
    return f"told-{place}"


def narrative_groups(narrative: VerifiedNarrative) -> list[tuple[int, ...]]:
    """Claims that share a request: all, if they fit; otherwise whole blocks as far as possible."""
    places = (place for block in narrative.blocks for place in block)
    return list(map(tuple, pack(places, lambda place: estimate_tokens(narrative.claims[place].words), SHOWN, TOGETHER)))


# --- prompt ---------------------------------------------------------------------------------------------------------


def translation_schema(count: int, *, spares: bool) -> dict[str, Any]:
    """JSON schema of a reply about `count` claims; no other claim can be referenced."""
    number = {"type": "integer", "enum": list(range(1, count + 1))}
    sentence = object_schema(text={"type": "string"}, claims=list_schema(number, 1, count))
    fewest = 0 if spares else 1
    return object_schema(sentences=list_schema(sentence, fewest, SENTENCES * count), analogy={"type": "string"})


def translation_prompt(
    narrative: VerifiedNarrative, audience: str, group: Sequence[int], mark: str, room: int
) -> dict[str, str]:
    """The values of the prompt `translate`, in at most `room` tokens: the claims, numbered, by paragraph. The description
    of the audience is user input, so it is fenced and limited to `DESCRIBED` characters."""
    described = " ".join(clean_text(audience).split())[:DESCRIBED]
    reader = READER_GUIDANCE.get(audience) or "\n" + fence(mark, "who the reader is", described)
    each = max((room - estimate_tokens(reader) - 40) // len(group) - 12, 8)
    firsts = {block[0] for block in narrative.blocks}
    lines: list[str] = []
    for number, place in enumerate(group, 1):
        lines += [""] if place in firsts and lines else []
        lines.append(f"{number}: {fit_to_tokens(' '.join(narrative.claims[place].words.split()), each)}")
    return {"claims": fence(mark, "claims", "\n".join(lines)), "reader": reader}


# --- reply ----------------------------------------------------------------------------------------------------------

Tried = tuple[Claim, tuple[int, ...]]  # a sentence as a claim, and the positions of the claims it tells


def read_sentences(reply: TranslationReply, group: Sequence[int]) -> tuple[Tried, ...]:
    """The sentences, each citing the claims it tells. A sentence that tells none is dropped."""
    found: dict[str, Tried] = {}
    for sentence in reply.sentences[: SENTENCES * len(group)]:
        places = tuple(sorted({group[number - 1] for number in sentence.claims if 0 < number <= len(group)}))
        for claim in stating.split_claims(sentence.text, (), ())[0] if places else ():
            found.setdefault(claim.text, (Claim(claim.text, tuple(map(_key, places))), places))
    return tuple(found.values())


def settle_group(
    ruled: Sequence[Tried], narrative: VerifiedNarrative, group: Sequence[int], *, spares: bool
) -> tuple[TranslatedSentence, ...]:
    """The translation of a group: the supported sentences, and the original words of each claim that they do not tell.
    With `spares`, claims that no sentence tried to tell are left out."""
    sentences: list[TranslatedSentence] = []
    failed: dict[int, str] = {}
    for claim, places in ruled:
        if claim.verdict is not Verdict.supported:
            failed |= {place: claim.why for place in places if place not in failed}
            continue
        cites = dict.fromkeys(key for place in places for key in narrative.claims[place].cites)
        sentences.append(TranslatedSentence(claim.text, places, tuple(cites)))
    heard = {place for each in sentences for place in each.claims}
    for place in group:
        if place not in heard and (place in failed or not spares):
            sentences.append(keep_claim(narrative, place, failed.get(place, "what was written does not tell it")))
    return tuple(sentences)


def keep_claim(narrative: VerifiedNarrative, place: int, why: str) -> TranslatedSentence:
    """The claim as in the expert text; a quotation is marked as one."""
    claim = narrative.claims[place]
    words = f"“{claim.words.strip()}”" if claim.quote else claim.words
    return TranslatedSentence(words, (place,), claim.cites, kept=True, why=why)


def owed_sentences(narrative: VerifiedNarrative, heard: frozenset[int]) -> tuple[TranslatedSentence, ...]:
    """Claims that are never left out: one of each document, and the other side of a conflict whose first side is told."""
    more: dict[int, str] = {}
    known = {doc for place in heard for doc in narrative.documents[place]}
    for place, docs in narrative.documents.items():
        if place not in heard and not known.issuperset(docs):
            more[place] = "no document is left out"
            known.update(docs)
    for conflict in narrative.conflicts:
        keys = (conflict.left, conflict.right)
        sides = [[place for place, claim in narrative.claims.items() if key in claim.cites] for key in keys]
        lost = [side for side in sides if not (heard | more.keys()).intersection(side)]
        if len(lost) == 1 and lost[0]:
            more[lost[0][0]] = "it is the other side of a conflict"
    return tuple(keep_claim(narrative, place, why) for place, why in more.items())


def usable_analogy(words: str) -> str:
    """An analogy that states no fact: one or two sentences without a name, number or date; otherwise empty."""
    text = " ".join(stating.extract_citations(clean_text(words), ()).words.split())
    if not text or len(text) > ANALOGY or len(split_sentences(text)) > 2 or not COMPARES.search(text):
        return ""
    if numbers(text) or dates(text) or facts.names(text, BEGINS | facts.lowercase_stems(text)):
        return ""
    return "" if is_suspicious(text) else text


# --- delivery -------------------------------------------------------------------------------------------------------


def align_with_answer(made: Translation, run: Run) -> Translation:
    """A translation aligned with the delivered text: positions are changed from those of the draft to those of the
    answer. Sentences about claims that were not delivered are dropped."""
    delivered = run.answer.claims if run.answer else ()
    at: dict[int, int] = {}
    for place, claim in sorted(run.checked.items()):
        if len(at) < len(delivered) and delivered[len(at)] == claim:
            at[place] = len(at)
    paragraphs: list[TranslatedParagraph] = []
    for part in made.paragraphs:
        kept = (each for each in part.sentences if at.keys() >= set(each.claims))
        if own := tuple(replace(each, claims=tuple(at[place] for place in each.claims)) for each in kept):
            paragraphs.append(replace(part, sentences=own))
    left_out = tuple(at[place] for place in made.left_out if place in at)
    return replace(made, paragraphs=tuple(paragraphs), left_out=left_out)
