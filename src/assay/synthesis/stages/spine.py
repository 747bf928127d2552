"""Theme and spine: a few sentences that sum up the synthesis and name every document with an insight. A model writes
them if there is one; each sentence is checked against its citations, and gaps are filled from verified insights."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ConfigDict

from assay.agent.context import RunContext, mark
from assay.agent.steps.check import judge_window
from assay.answer import claims
from assay.answer.checking.model_rulings import JudgeRequest, batches
from assay.core.account import SpineSentence, Theme
from assay.core.events import Event, SpineWritten
from assay.core.events.maker import BY_RULES, Maker, combine_makers, stand_in
from assay.core.run import Run
from assay.core.types import Claim, Verdict
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.models.schemas import list_schema, object_schema
from assay.models.token_estimate import estimate_tokens, fit_to_tokens
from assay.prompts.fence import fence
from assay.synthesis import state, titles
from assay.synthesis.writing import spine_by_rule as beats
from assay.synthesis.writing import themes
from assay.synthesis.writing.material import Material, gather_material, render_relations, with_related
from assay.synthesis.writing.small_models import is_close_to_a_sentence

FIRST = 3  # insights per document in the prompt, if they fit
SENTENCES = 5  # in a spine
EMBEDDED = 4  # insights per document that are embedded to group documents into themes
REPRESENTED = 24  # themes that the opening covers


class SpineSentenceReply(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    text: str
    cites: list[str] = []


class SpineReply(BaseModel):
    """A spine as it was written."""

    model_config = ConfigDict(strict=True, extra="forbid")

    theme: str = ""
    sentences: list[SpineSentenceReply]


@dataclass(frozen=True, slots=True)
class _SpinePart:
    """The spine sentences of one group of documents."""

    beats: tuple[SpineSentence, ...]
    theme: str = ""
    maker: Maker = BY_RULES


async def write_spine(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Write theme, spine and themes once all relations are known. Request size does not grow with the number of
    documents."""
    of = gather_material(run, context)
    docs = [doc for doc in state.brief(run).documents if of.insights.get(doc)]
    words_of = {doc: of.words(doc) for doc in docs}
    parts = await _group_documents(of, docs, context)
    named_by_rule = themes.name_by_rule(parts, words_of)
    if not run.asked.has_model or not docs:
        yield SpineWritten(themes.overall_theme("", words_of), beats.write_by_rule(of, named_by_rule), named_by_rule)
        return
    named, who = await _name_themes(run, context, of, named_by_rule) if len(named_by_rule) > 1 else (named_by_rule, [])
    work = (_write_part(run, context, of, theme.documents, alone=len(named_by_rule) == 1) for theme in named)
    parts_written = [part async for part in state.run_in_order(work)]
    if len(named) > 1:
        parts_written.insert(0, await _write_opening(run, context, of, named))
    maker = combine_makers([*(part.maker for part in parts_written), *who])
    yield SpineWritten(
        themes.overall_theme(parts_written[0].theme, words_of),
        tuple({(beat.claim.words, beat.documents): beat for part in parts_written for beat in part.beats}.values()),
        named,
        maker.by,
        maker.fallback,
    )


async def _group_documents(of: Material, docs: Sequence[str], context: RunContext) -> list[tuple[str, ...]]:
    """Group documents into themes by the meaning of their insights."""
    if len(docs) <= themes.ALONE:
        return [tuple(docs)] if docs else []
    import numpy as np

    first = {doc: [insight.claim.words for insight in of.insights[doc][:EMBEDDED]] for doc in docs}
    vectors = await context.tool_context.search_context.embedder.queries(
        [words for own in first.values() for words in own]
    )
    at = 0
    means: list[Any] = []
    for own in first.values():
        means.append(vectors[at : at + len(own)].mean(axis=0))
        at += len(own)
    return [tuple(docs[row] for row in rows) for rows in themes.groups(np.stack(means))]


async def _name_themes(
    run: Run, context: RunContext, of: Material, named_by_rule: Sequence[Theme]
) -> tuple[tuple[Theme, ...], list[Maker]]:
    """The themes with names from a model, and the makers of the names."""
    first = {doc: own[0].claim.words for doc, own in of.insights.items()}
    evidence = {doc: [of.known[key] for each in own for key in each.claim.cites] for doc, own in of.insights.items()}
    found: list[Theme] = []
    who: list[Maker] = []
    for block in state.batches(named_by_rule, themes.TOGETHER):

        def build_prompt(room: int, block: Sequence[Theme] = block) -> Mapping[str, str]:
            return themes.build_prompt(block, first, mark(run), room)

        reply = await context.ask(
            Role.write,
            "themes",
            themes.ThemeNames,
            build_prompt,
            schema=themes.schema(len(block)),
            documents=[doc for theme in block for doc in theme.documents],
            max_tokens=60 + 30 * len(block),
        )
        found += block if isinstance(reply, NoReply) else themes.read(reply[0], block, evidence)
        who.append(stand_in(reply.why) if isinstance(reply, NoReply) else Maker(reply[1]))
    return tuple(found), who


# --- by a model -----------------------------------------------------------------------------------------------------


async def _write_part(run: Run, context: RunContext, of: Material, docs: Sequence[str], *, alone: bool) -> _SpinePart:
    """The supported sentences of a model. Documents that they do not name are requested once more, then covered by
    rule."""
    each = context.small(Role.write)  # a small model cannot write about several documents at once
    count = "Write a sentence for each document" if each else _wanted_sentences(alone)
    first = await _ask_model(
        run, context, of, docs, f"{count}: {_label_list(of, docs)}.", len(docs) if each else SENTENCES
    )
    if isinstance(first, NoReply):
        return _SpinePart(beats.name_documents(of, docs), maker=stand_in(first.why))
    reply, by = first
    held = await _supported_sentences(run, context, of, reply.sentences[: len(docs) if each else SENTENCES])
    who = [Maker(by)]
    if missing := _unnamed_documents(docs, held):
        wanted = f"Not named yet: {_label_list(of, missing)}. Write a sentence for each of them."
        again = await _ask_model(run, context, of, missing, wanted, len(missing))
        if isinstance(again, NoReply):
            who.append(stand_in(again.why))
        else:
            held += await _supported_sentences(run, context, of, again[0].sentences[: len(missing)])
    rest = _unnamed_documents(docs, held)
    return _SpinePart((*held, *(beats.name_documents(of, rest) if rest else ())), reply.theme, combine_makers(who))


def _wanted_sentences(alone: bool) -> str:
    return f"Write {f'3 to {SENTENCES}' if alone else '1 to 3'} sentences that name every document"


async def _write_opening(run: Run, context: RunContext, of: Material, named: Sequence[Theme]) -> _SpinePart:
    """The sentences over all themes, written from one document of each. The sentences of each theme name its
    documents."""
    step = max(1, -(-len(named) // REPRESENTED))
    docs = [max(theme.documents, key=lambda doc: (_best_score(of, doc), doc)) for theme in named[::step]]
    wanted = f"Write 3 to {SENTENCES} sentences on what these documents come to together, and name those you speak of."
    reply = await _ask_model(run, context, of, docs, wanted, SENTENCES)
    if isinstance(reply, NoReply):
        return _SpinePart((), maker=stand_in(reply.why))
    return _SpinePart(
        await _supported_sentences(run, context, of, reply[0].sentences[:SENTENCES]), reply[0].theme, Maker(reply[1])
    )


def _best_score(of: Material, doc: str) -> float:
    return max(of.known[key].score for key in of.insights[doc][0].claim.cites)


def _label_list(of: Material, docs: Sequence[str]) -> str:
    return ", ".join(of.labels[doc] for doc in docs)


def _unnamed_documents(docs: Sequence[str], held: Sequence[SpineSentence]) -> list[str]:
    named = {doc for beat in held for doc in beat.documents}
    return [doc for doc in docs if doc not in named]


async def _ask_model(
    run: Run, context: RunContext, of: Material, docs: Sequence[str], wanted: str, sentences: int
) -> tuple[SpineReply, str] | NoReply:
    most = 1 if context.small(Role.write) else FIRST
    keys = [key for doc in docs for insight in of.insights[doc][:most] for key in insight.claim.cites]
    return await context.ask(
        Role.write,
        "spine",
        SpineReply,
        lambda room: build_prompt(of, docs, most, wanted, mark(run), room),
        schema=schema(list(dict.fromkeys(keys)), sentences),
        documents=sorted(with_related(of, docs)),
        max_tokens=300 + 50 * len(docs),
    )


def schema(keys: Sequence[str], most: int) -> dict[str, Any]:
    """JSON schema of the reply. Only keys that were shown can be cited."""
    text = {"type": "string"}
    sentence = object_schema(text=text, cites=list_schema({"type": "string", "enum": list(keys)}, 1, 12))
    return object_schema(theme=text, sentences=list_schema(sentence, 1, most))


def build_prompt(of: Material, docs: Sequence[str], most: int, wanted: str, mark: str, room: int) -> dict[str, str]:
    """The values of the prompt `spine`, in at most `room` tokens. Every document gets an equal share, its best
    insight first."""
    ties = render_relations(of, docs, mark, room // 5)
    left = room - estimate_tokens(ties) - estimate_tokens(wanted)
    shown: list[str] = []
    for place, doc in enumerate(docs):
        label = f"{of.labels[doc]} · {fit_to_tokens(of.called.get(doc, ''), 20)}"
        own = left // (len(docs) - place) - estimate_tokens(fence(mark, label, "")) - 2
        lines: list[str] = []
        for insight in of.insights[doc][:most]:
            keys = ", ".join(f"key {key}" for key in insight.claim.cites)
            space = own - estimate_tokens(keys) - 2
            if space < (8 if lines else 1):
                break
            lines.append(f"{keys}: {fit_to_tokens(' '.join(insight.claim.words.split()), min(space, 90))}")
            own -= estimate_tokens(lines[-1]) + 1
        shown.append(fence(mark, label, "\n".join(lines)))
        left -= estimate_tokens(shown[-1]) + 1
    return {"insights": "\n".join(shown), "relations": ties, "wanted": wanted}


async def _supported_sentences(
    run: Run, context: RunContext, of: Material, sentences: Sequence[SpineSentenceReply]
) -> tuple[SpineSentence, ...]:
    """The sentences that follow from what they cite: by rule, and by a model where the rules leave it open, unless
    it is small."""
    found: list[SpineSentence] = []
    for sentence in sentences:
        split, _ = claims.split_claims(sentence.text, sentence.cites, of.known.keys())
        for claim in split:
            titled_allowed = not context.small(Role.write) or is_close_to_a_sentence(
                titles.LABEL.sub("", claim.text), claim.cites, of.evidence
            )
            if (
                titled_allowed
                and (titled := titles.replace_labels(claim, of.documents, of.called, of.known)) is not None
            ):
                beat = _with_title(of, SpineSentence(*titled))
                found.append(replace(beat, claim=context.judge.by_rule(beat.claim, of.evidence, of.sources)))
    asks = [beat for beat in found if not context.small(Role.check) and context.judge.needs_model(beat.claim)]
    ruled = {beat.claim: claim for beat, claim in zip(asks, await _judge_by_model(run, context, of, asks), strict=True)}
    judged = [replace(beat, claim=ruled.get(beat.claim, beat.claim)) for beat in found]
    return tuple(beat for beat in judged if beat.claim.verdict is Verdict.supported)


def _with_title(of: Material, beat: SpineSentence) -> SpineSentence:
    """If a sentence names no document and cites only one, prefix it with the title of that document."""
    docs = of.of(beat.claim.cites)
    if beat.documents or len(docs) != 1 or not of.called.get(docs[0]):
        return beat
    return SpineSentence(replace(beat.claim, text=f"“{of.called[docs[0]]}”: {beat.claim.text}"), docs)


async def _judge_by_model(
    run: Run, context: RunContext, of: Material, asks: Sequence[SpineSentence]
) -> tuple[Claim, ...]:
    """Let a model judge the sentences that are not quotations."""
    open_ = tuple(beat.claim for beat in asks)
    judged: list[Claim] = []
    for batch in batches(open_, of.evidence, judge_window(run)):
        own = open_[batch.start : batch.stop]
        documents = sorted({doc for claim in own for doc in of.of(claim.cites)})
        judgement = await context.judge.by_model(
            JudgeRequest(own), of.evidence, of.sources, context.ask, mark=mark(run), documents=documents
        )
        judged += judgement.claims
    return tuple(judged)
