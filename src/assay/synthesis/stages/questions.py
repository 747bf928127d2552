"""The second stage: K questions from each document, a few from all of them together, and near-duplicates made one.

A model proposes; what does not stand alone is sent back once; what is missing then comes by rule.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

from assay.agent.context import RunContext, mark
from assay.core.account import Portrait
from assay.core.events import RULES, Event, Merged, Questioned
from assay.core.events.maker import BY_RULES, Maker, combine_makers
from assay.core.run import Run
from assay.core.types import Document
from assay.language.injection import is_suspicious
from assay.language.terms import content_terms, uncovered_words
from assay.models.llm import Role
from assay.models.token_estimate import estimate_tokens, fit_to_tokens
from assay.prompts.fence import fence
from assay.synthesis import state
from assay.synthesis.questioning import abstracts
from assay.synthesis.questioning import duplicates as merging
from assay.synthesis.questioning import rule_questions as asking_by_rule
from assay.synthesis.questioning.propose import FRAME, QuestionRequest, one_line, propose_questions
from assay.synthesis.relating import disputes

AT_ONCE = 8  # documents that are held in memory together
LONG, SHORT = 1500, 500  # tokens that are shown of one document; a small model is lost in more
TOGETHER, TOGETHER_SMALL = 5000, 1200  # tokens of abstracts that are shown together
ABSTRACT, ABSTRACT_SMALL = 220, 90  # tokens of each of them
HEADINGS, SENTENCES = 14, 8  # that are shown
FEWEST, MOST = 3, 5  # comparative questions


def documents_without_questions(run: Run, pass_: int) -> tuple[str, ...]:
    """The documents that still have to be asked about in this pass, in the order of the brief; "" for all together."""
    readable = _readable(run)
    if pass_ == 1:
        wanted = (*readable, "") if len(readable) > 1 else readable
    else:
        thin = state.coverage_passes(run)[-1].thin if state.coverage_passes(run) else ()
        wanted = tuple(doc for doc in readable if doc in thin)
    done = state.questions_of_pass(run, pass_)
    return tuple(doc for doc in wanted if doc not in done)


def _readable(run: Run) -> tuple[str, ...]:
    portraits = state.portraits(run)
    return tuple(doc for doc in state.brief(run).documents if doc in portraits and not portraits[doc].empty)


async def question(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """The questions of each document that has none in this pass, and of all documents together."""
    pass_ = len(state.coverage_passes(run)) + 1
    for block in state.batches(documents_without_questions(run, pass_), AT_ONCE):
        async for event in state.run_in_order(_ask_about(run, context, doc, pass_) for doc in block):
            yield event


async def _ask_about(run: Run, context: RunContext, doc_id: str, pass_: int) -> Questioned:
    if not doc_id:
        return await _ask_comparative(run, context, pass_)
    document = context.document(doc_id)
    if document is None:  # taken away since it was described
        return Questioned((), doc_id, pass_)
    asking = _first_request(run, context, document) if pass_ == 1 else _follow_up_request(run, context, document)
    found, maker = await propose_questions(run, context, asking)
    missing = asking.count - len(found)
    if not missing:
        return Questioned(found, doc_id, pass_, maker.by, fallback=maker.fallback)
    more = asking.by_rule(missing, (*asking.known, *found))
    by = f"{maker.by}, {RULES}" if found and more else maker.by
    return Questioned((*found, *more), doc_id, pass_, by, fallback=maker.fallback)


# --- what is asked for ----------------------------------------------------------------------------------------------


def _first_request(run: Run, context: RunContext, document: Document) -> QuestionRequest:
    brief, portrait = state.brief(run), state.portraits(run)[document.id]
    label = state.labels(run)[document.id]
    most = SHORT if context.small(Role.plan) else LONG
    return QuestionRequest(
        "questions",
        "document",
        brief.questions,
        lambda room: _render_portrait(portrait, document, label, mark(run), min(room, most)),
        " ".join((portrait.title, abstract_of(portrait), *_headings(document))),
        (document.id,),
        by_rule=lambda count, known: asking_by_rule.document_questions(
            document, _others(run, document.id), brief.pipeline, brief.focus, count, known
        ),
    )


def _follow_up_request(run: Run, context: RunContext, document: Document) -> QuestionRequest:
    """A document that said little so far: what its own sentences answer, those first that nothing has quoted yet."""
    brief, label = state.brief(run), state.labels(run)[document.id]
    quoted = [each.quote for each in run.evidence if each.quote.doc_id == document.id]
    spans = abstracts.candidates(document)
    fresh = [span for span in spans if not any(span[0] < each.end and each.start < span[1] for each in quoted)] or spans
    sentences = [document.text[slice(*span)] for span in abstracts.spread(fresh, SENTENCES)]
    most = SHORT if context.small(Role.plan) else LONG
    others = _others(run, document.id)

    def by_rule(count: int, known: Sequence[str]) -> tuple[str, ...]:
        first = asking_by_rule.follow_ups(sentences, document.text, others, count, known)
        rest = (*known, *first)
        return (
            *first,
            *asking_by_rule.document_questions(document, others, brief.pipeline, "", count - len(first), rest),
        )

    def shows(room: int) -> str:
        words = fit_to_tokens("\n".join(f"- {one_line(each)}" for each in sentences), max(8, min(room, most) - FRAME))
        return fence(mark(run), f"{label}, sentences of it", words)

    known = tuple(each.text for each in state.questions(run))
    return QuestionRequest(
        "followup", "sentences", brief.questions, shows, " ".join(sentences), (document.id,), known, by_rule
    )


def _render_portrait(portrait: Portrait, document: Document, label: str, mark: str, room: int) -> str:
    """Title, headings and abstract of a document, fenced; the abstract has what room the others leave."""
    room = max(24, room - FRAME)
    title = "" if is_suspicious(portrait.title) else fit_to_tokens(one_line(portrait.title), room // 6)
    headings = fit_to_tokens(" · ".join(_headings(document)), room // 4)
    above = f"Title: {title}\nHeadings: {headings}\nAbstract: " if headings else f"Title: {title}\nAbstract: "
    return fence(mark, label, above + fit_to_tokens(abstract_of(portrait), max(8, room - estimate_tokens(above) - 2)))


def _headings(document: Document) -> tuple[str, ...]:
    titles = (one_line(section.title) for section in document.sections)
    return tuple(dict.fromkeys(each for each in titles if each and not is_suspicious(each)))[:HEADINGS]


def abstract_of(portrait: Portrait) -> str:
    return " ".join(one_line(quote.text) for quote in portrait.abstract)


def _others(run: Run, doc_id: str) -> list[str]:
    portraits = state.portraits(run)
    return [abstract_of(portraits[doc]) for doc in _readable(run) if doc != doc_id]


# --- all documents together -----------------------------------------------------------------------------------------


def comparative_count(documents: int) -> int:
    """How many comparative questions so many documents deserve."""
    return FEWEST if documents < 5 else FEWEST + 1 if documents < 10 else MOST


async def _ask_comparative(run: Run, context: RunContext, pass_: int) -> Questioned:
    portraits = state.portraits(run)
    documents = _readable(run)
    told = [abstract_of(portraits[doc]) for doc in documents]
    count = comparative_count(len(documents))
    found: list[str] = []
    made: list[Maker] = []
    blocks = _blocks(run, context, documents) if run.asked.has_model else []
    async for some, said in state.run_in_order(
        propose_questions(run, context, _comparative_request(run, context, block, count)) for block in blocks
    ):
        found += (each for each in some if each not in found)
        made.append(said)
    if len(found) > count:
        vectors = await context.tool_context.search_context.embedder.queries(found)
        found = [found[place] for place in merging.most_different(vectors, count)]
    more = asking_by_rule.comparative_questions(told, count - len(found), found)
    more += tuple(each for each in await disputes.questions(context, documents) if each not in (*found, *more))
    maker = combine_makers([*made, BY_RULES] if found and more else made)
    return Questioned((*found, *more), "", pass_, maker.by, documents, maker.fallback)


def _comparative_request(run: Run, context: RunContext, block: Sequence[str], count: int) -> QuestionRequest:
    portraits, labels = state.portraits(run), state.labels(run)
    most = ABSTRACT_SMALL if context.small(Role.plan) else ABSTRACT

    def shows(room: int) -> str:
        each = max(8, min(most, room // len(block) - FRAME))
        return "\n".join(
            fence(mark(run), labels[doc], fit_to_tokens(abstract_of(portraits[doc]), each)) for doc in block
        )

    words = " ".join(abstract_of(portraits[doc]) for doc in block)
    return QuestionRequest("comparative", "abstracts", count, shows, words, tuple(block))


def _blocks(run: Run, context: RunContext, documents: Sequence[str]) -> list[Sequence[str]]:
    """Documents whose abstracts fit into one request, none of them alone: so that no request grows with their number."""
    small = context.small(Role.plan)
    window = min((seat.window or 8192 for seat in run.asked.seats if seat.role == Role.plan.value), default=8192)
    room = min(TOGETHER_SMALL if small else TOGETHER, window // 2)
    size = max(2, room // ((ABSTRACT_SMALL if small else ABSTRACT) + FRAME))
    count = -(-len(documents) // size)
    at = [place * len(documents) // count for place in range(count + 1)]  # as even as can be
    return [documents[start:end] for start, end in pairwise(at)]


# --- near-duplicates ------------------------------------------------------------------------------------------------


async def merge(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """The questions of this pass, near-duplicates as one with all their origins; numbered on from those asked before."""
    pass_ = len(state.merges(run)) + 1
    questioned = state.questions_of_pass(run, pass_)
    asked = [
        merging.AskedQuestion(words, doc)
        for doc in (*state.brief(run).documents, "")
        for words in (questioned[doc].questions if doc in questioned else ())
    ]
    earlier = state.questions(run)
    if not asked:
        yield Merged((), pass_)
        return
    focus = frozenset(content_terms(state.brief(run).focus))  # in all of them: it would make any two seem alike
    words = [*(each.text for each in earlier), *(each.words for each in asked)]
    vectors = await context.tool_context.search_context.embedder.queries(
        [uncovered_words(each, focus) or each for each in words]
    )
    yield Merged(
        merging.merge_questions(asked, earlier, vectors, state.brief(run).pipeline, _readable(run), pass_), pass_
    )
