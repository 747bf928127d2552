"""From questions to evidence: a diverse search over all documents, reranked to a few passages, assessed and quoted
as in any run; or, by setting, a short agent run for each question."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace

from assay.agent import loop
from assay.agent.context import RunContext, mark
from assay.agent.hops.scoring import HOP_SETTINGS
from assay.agent.limits import ROUNDS
from assay.core.account import Approach, Brief, Question, QuestionKind
from assay.core.errors import ModelError
from assay.core.events import (
    Eagerness,
    Event,
    Failed,
    Found,
    Gathered,
    Mode,
    ModelReplied,
    PassagesChosen,
    Route,
    SearchFilters,
    Stopped,
)
from assay.core.events.maker import BY_RULES, Maker, combine_makers, stand_in
from assay.core.run import Run
from assay.core.types import Evidence, Hit
from assay.evidence import assess
from assay.evidence.assess import Weighed
from assay.evidence.weigh import best_sentence, quote, rarity
from assay.index.filters import In
from assay.index.fusion import capped
from assay.index.retrieve import retrieve
from assay.language.injection import is_suspicious
from assay.language.sentences import is_statement, is_table_row, split_sentences, split_statements
from assay.language.terms import content_terms
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.models.reranker import Reranker, late_interaction
from assay.models.token_estimate import estimate_tokens
from assay.prompts.fence import fence
from assay.synthesis import state

DIVERSITY = 0.3  # penalty for similarity to a better passage when the pool is selected
OF_ONE = 2  # passages per document; comparative questions take one each from twice as many documents
SCORED = 4  # factor: a model that selects passages is shown this many times more
SENTENCES = 2  # per quotation
AT_ONCE = 4  # concurrent searches; each keeps a pool of passages with their vectors in memory


async def search(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Yield the passages to assess for each question that has not been searched yet."""
    known, brief = state.chosen_passages(run), state.brief(run)
    open_ = [question for question in state.questions(run) if question.id not in known]
    if brief.approach is Approach.agent and run.asked.has_model:
        async for events in state.run_in_order(_research_question(run, context, question) for question in open_):
            for event in events:
                yield event
        return
    async for event in state.run_in_order((_search_question(context, brief, question) for question in open_), AT_ONCE):
        yield event


async def _search_question(context: RunContext, brief: Brief, question: Question) -> PassagesChosen:
    within = question.documents if question.kind is QuestionKind.follow_up else brief.documents
    search_context = replace(
        context.tool_context.search_context,
        reranker=None,
        diversity=DIVERSITY,
        per_document=0,
        pool=max(context.tool_context.search_context.pool, brief.pool),
    )
    hits = await retrieve(search_context, question.text, brief.pool, context.tool_context.scope(), In("doc", within))
    ranked = {
        name: await _select_passages(context, brief, question, hits, name)
        for name in dict.fromkeys((brief.reranker, *brief.compare))
    }
    found = tuple(
        Found(hit.passage, rank, hit.scores.get("fused", 0.0)) for rank, hit in enumerate(ranked[brief.reranker], 1)
    )
    others = {name: tuple(hit.passage.id for hit in few) for name, few in ranked.items() if name != brief.reranker}
    return PassagesChosen(question.id, found, len(hits), brief.reranker, others)


async def _select_passages(
    context: RunContext, brief: Brief, question: Question, hits: Sequence[Hit], name: str
) -> list[Hit]:
    """The best passages of a pool by one reranker. If the pool contains the document the question comes from, one of
    its passages is kept."""
    reranker = _reranker(context, name)
    ranked = await reranker.rerank(question.text, hits) if reranker and hits else _by_fused_score(hits)
    comparative = question.kind is QuestionKind.comparative
    most = brief.top * (SCORED if name == "llm" else 2 if comparative else 1)
    few = capped(ranked, 1 if comparative else OF_ONE if len(brief.documents) > 1 else 0)[:most]
    own = frozenset(question.documents)
    if few and not comparative and not any(hit.passage.doc_id in own for hit in few):
        few[-1:] = [hit for hit in ranked if hit.passage.doc_id in own][:1] or few[-1:]
    return few


def _reranker(context: RunContext, name: str) -> Reranker | None:
    search = context.tool_context.search_context
    return late_interaction(search.embedder) if name == "late" else search.reranker if name == "set" else None


def _by_fused_score(hits: Sequence[Hit]) -> list[Hit]:
    """Order by fused search score. The pool itself is ordered by diversity."""
    return sorted(hits, key=lambda hit: (-hit.scores.get("fused", 0.0), hit.passage.id))


# --- assessment -----------------------------------------------------------------------------------------------------


async def weigh(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Yield the evidence for each question from its passages, each quoted and scored once."""
    done, found = state.gathered_evidence(run), state.chosen_passages(run)
    titles = dict(context.titles(run))
    open_ = [question for question in state.questions(run) if question.id not in done]
    work = (_weigh_question(run, context, question, found[question.id].found, titles) for question in open_)
    async for event in state.run_in_order(
        work, 2 * context.meter.concurrency.limit if context.meter else state.AT_ONCE
    ):
        yield event


async def _weigh_question(
    run: Run, context: RunContext, question: Question, found: Sequence[Found], titles: Mapping[str, str]
) -> Gathered:
    if not run.asked.has_model or not found:
        return _gathered_event(question, _weigh_by_words(question, found, context.cutoff), BY_RULES)
    width = replace(context.width, together=context.width.alone) if context.small(Role.weigh) else context.width
    parts: list[Weighed] = []
    made: list[Maker] = []
    for batch in assess.batches(found, context.window(Role.weigh), width):
        weighed, maker = await _weigh_by_model(run, context, question, batch, titles)
        parts.append(weighed)
        made.append(maker)
    evidence = sorted((each for part in parts for each in part.evidence), key=lambda each: (-each.score, each.key))
    few = evidence[: state.brief(run).top * (2 if question.kind is QuestionKind.comparative else 1)]
    passed_over = tuple(each.passage.id for each in evidence[len(few) :])
    together = Weighed(
        tuple(few),
        (*(each for part in parts for each in part.dropped), *passed_over),
        tuple(each for part in parts for each in part.inexact),
    )
    return _gathered_event(question, together, combine_makers(made))


async def _weigh_by_model(
    run: Run, context: RunContext, question: Question, batch: Sequence[Found], titles: Mapping[str, str]
) -> tuple[Weighed, Maker]:
    shown = {f"P{place}": each.passage for place, each in enumerate(batch, 1)}
    reply = await context.ask(
        Role.weigh,
        "weigh",
        assess.Weights,
        lambda room: build_weigh_prompt(question.text, batch, titles, mark(run), room),
        schema=assess.schema(len(batch)),
        documents=sorted({each.passage.doc_id for each in batch}),
        max_tokens=150 + assess.REPLY * len(batch),
    )
    if isinstance(reply, NoReply):
        return _weigh_by_words(question, batch, context.cutoff), stand_in(reply.why)
    weights, by = reply
    return assess.read(weights.passages, shown, question.text, context.cutoff), Maker(by)


def build_weigh_prompt(
    question: str, batch: Sequence[Found], titles: Mapping[str, str], mark: str, room: int
) -> dict[str, str]:
    """The usual prompt, but the question is fenced as well, since it may use the words of a document."""
    asked = fence(mark, "question", question)
    left = room - estimate_tokens(asked) + estimate_tokens(question)
    return {**assess.build_prompt(question, (), batch, titles, mark, left), "question": asked}


def _weigh_by_words(question: Question, found: Sequence[Found], cutoff: float) -> Weighed:
    """Score by the words of the question that occur in some passage. Words that only frame the question ("how do
    they compare") would otherwise weigh most, since they are the rarest."""
    passage_terms = frozenset(term for each in found for term in content_terms(each.passage.text))
    asked = " ".join(word for word in question.text.split() if passage_terms.intersection(content_terms(word)))
    weighed = assess.weigh_by_words(asked, (), found, cutoff)
    evidence = tuple(replace(each, question=question.text) for each in weighed.evidence)
    return Weighed(evidence, weighed.dropped, ())


def _gathered_event(question: Question, weighed: Weighed, maker: Maker) -> Gathered:
    """The evidence under keys derived from spans. A quotation that contains an instruction to a model is replaced by
    another sentence of its passage, or dropped."""
    kept: dict[str, Evidence] = {}
    dropped = list(weighed.dropped)
    renamed: dict[str, str] = {}
    for each in weighed.evidence:
        sound = _without_instructions(_shorten(each, question))
        if sound is None:
            dropped.append(each.passage.id)
            continue
        key = state.evidence_key(sound.quote)
        renamed[each.key] = key
        kept.setdefault(key, replace(sound, key=key))
    inexact = tuple(renamed[key] for key in weighed.inexact if key in renamed)
    return Gathered(
        tuple(kept.values()),
        tuple(dict.fromkeys(dropped)),
        maker.by,
        inexact=inexact,
        question=question.id,
        fallback=maker.fallback,
    )


def _shorten(evidence: Evidence, question: Question) -> Evidence:
    """Shorten a long quotation to the sentence closest to the question. Small models quote whole passages, which
    cannot be compared with anything."""
    words, passage = evidence.quote, evidence.passage
    at = words.start - passage.start
    if len(split_sentences(words.text)) <= SENTENCES or is_table_row(words.text):
        return evidence
    part = replace(passage, text=words.text, start=passage.start + at, end=passage.start + at + len(words.text))
    rare = rarity(question.text, [passage.text[slice(*span)] for span in split_sentences(passage.text)])
    return replace(evidence, quote=best_sentence(part, rare))


def _without_instructions(evidence: Evidence) -> Evidence | None:
    words = evidence.quote.text
    if is_statement(words) and not is_suspicious(words):
        return evidence
    passage = evidence.passage
    others = [span for span in split_statements(passage.text) if is_statement(passage.text[slice(*span)])]
    sound = [span for span in others if not is_suspicious(passage.text[slice(*span)])]
    return replace(evidence, quote=quote(passage, *sound[0])) if sound else None


# --- by the agent ---------------------------------------------------------------------------------------------------


async def _research_question(run: Run, context: RunContext, question: Question) -> list[Event]:
    """Run the agent briefly for one question, in memory; its model replies are recorded in the synthesis. After a
    resume the same steps are taken again, and no recorded request is repeated."""
    assert context.meter is not None
    within = question.documents if question.kind is QuestionKind.follow_up else state.brief(run).documents
    asked = replace(
        run.asked,
        question=question.text,
        brief=None,
        mode=Mode.quick,
        eagerness=Eagerness.sparing,
        route=Route.research,
        where=SearchFilters(bases=run.asked.where.bases, documents=within),
    )
    own = replace(
        context,
        record=_record_replies(context),
        limits=replace(context.limits, rounds=ROUNDS[Mode.quick]),
        hops=HOP_SETTINGS[Mode.quick],
    )
    child = Run(run.id, (asked,))
    async for event in loop.carry_on(child, own):
        child = child.then(event)
        if isinstance(event, Failed):
            raise ModelError(event.detail)
        if isinstance(event, Stopped):
            break
    kept = {each.passage.id for each in child.evidence}
    found = tuple({each.passage.id: each for each in child.found if each.passage.id in kept}.values())
    passages = {each.passage.id for each in child.found}
    gathered = _gathered_event(question, Weighed(child.evidence, tuple(sorted(passages - kept)), ()), Maker("agent"))
    looked = PassagesChosen(question.id, found, len(passages), "agent", searched=child.searched)
    return [gathered, looked]  # in this order: a run killed in between is repeated from recorded replies


def _record_replies(context: RunContext) -> Callable[[Run, Event], Run]:
    """Records only the model replies of a short run in the synthesis; its other events are represented by what it
    found."""
    meter = context.meter
    assert meter is not None

    def record(run: Run, event: Event) -> Run:
        if isinstance(event, ModelReplied):
            meter.record(event)
        return run.then(event)

    return record
