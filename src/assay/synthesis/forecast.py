"""Forecast of a synthesis: questions, searches, requests, tokens, money and time, by stage. Pure.

An estimate from the average figures below; `bench synthesis` compares them with real runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from assay.agent.forecast import Speed
from assay.answer.checking.model_rulings import TOGETHER
from assay.core.account import EXPERT, Approach, Brief, Pipeline
from assay.store.runs.forecasts import WorkEstimate
from assay.synthesis.relating import pairs
from assay.synthesis.stages import answers, insights
from assay.synthesis.writing import rewrite, themes

# Average tokens.
CHARACTERS = 4  # per token
TASK = 280  # instructions and fences in every request
HEAD = 900  # maximum for the beginning of a document
ABSTRACT = 150
PASSAGE = 220  # a passage to assess, with its title
WEIGHED = 70  # the reply about it: score, quotation, note
QUOTED = 70  # a quotation, with its key
COUPLE = 400  # a pair of insights with the quotations of both
SENTENCE = 50  # an insight, a claim or a reason, as written
RULED_ON = 80  # a verdict with its words and reason
ASKED = 30  # a question

# Shares.
INCOMPLETE = 0.7  # documents without title, authors and year from ingestion
MERGED = 0.1  # questions that are merged as duplicates
THIN = 0.15  # documents that get follow-up questions
KEPT = 0.85  # assessed passages that are relevant to the question
APART = 0.95  # documents per quotation of a question: some contribute two
REVISED = 0.05  # claims that a large model rewrites, all in one request
TWICE = 0.5  # work that is requested or checked a second time

COMPARATIVE = 4  # comparative questions
COMPARED = 20  # abstracts per comparative request
PAIRED = 0.8  # pairs per insight
BATCH = 9  # passages per assessment request; one for a small model
ITEMS_PER_REQUEST, ITEMS_PER_SMALL_REQUEST = 25, 4  # items per narrative request, in a window of common size
ROUNDS = 5  # requests of a short agent run, including assessment
SEARCH = 0.25  # seconds per search over all documents, with reranking
RULED = 0.15  # seconds of rule-based work per document and question: reading, pairing, checking

MOST_CALLS, MOST_SECONDS, MOST_MONEY = 150, 600.0, 0.50  # a forecast above any of these is large


@dataclass(frozen=True, slots=True)
class StageForecast:
    """The model usage of one stage."""

    stage: str
    calls: int
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, slots=True)
class SynthesisForecast:
    """What a synthesis is likely to take. Without a model there are no parts, calls, tokens or money."""

    documents: int
    questions: int
    searches: int
    calls: int
    tokens_in: int
    tokens_out: int
    money: float | None  # USD; None if the price is unknown
    seconds: float
    parts: tuple[StageForecast, ...] = ()
    foreseen: WorkEstimate | None = None  # the same as ranges, corrected by earlier runs
    notes: tuple[str, ...] = ()  # ranges as text, accuracy of earlier forecasts, limits it may reach today


def forecast(
    brief: Brief,
    *,
    lengths: Sequence[int],
    small: bool,
    has_model: bool,
    price: Callable[[int, int], float | None],
    speed: Speed,
) -> SynthesisForecast:
    """Forecast a synthesis. `lengths` are the characters of each document; `price` gives the price of tokens in and
    out. The result is monotonic: asking for more never lowers it."""
    documents, questions = len(lengths), _questions(brief, len(lengths))
    parts = tuple(part for part in _parts(brief, lengths, questions, small) if part.calls) if has_model else ()
    tokens_in, tokens_out = sum(part.tokens_in for part in parts), sum(part.tokens_out for part in parts)
    asking = (tokens_in / speed.read + tokens_out / speed.write) / speed.at_once
    return SynthesisForecast(
        documents,
        questions,
        questions * (3 if brief.approach is Approach.agent and has_model else 1),
        sum(part.calls for part in parts),
        tokens_in,
        tokens_out,
        price(tokens_in, tokens_out) if has_model else 0.0,
        asking + SEARCH * questions + RULED * (documents + questions),
        parts,
    )


def is_large(found: SynthesisForecast) -> bool:
    """Whether to ask the user first. Work by rule costs only time and can be interrupted, so it never counts as
    large."""
    dear = found.money is not None and found.money > MOST_MONEY
    return found.calls > 0 and (found.calls > MOST_CALLS or found.seconds > MOST_SECONDS or dear)


def in_words(found: SynthesisForecast) -> str:
    """The forecast in one line. Figures are rounded, since they are estimates."""
    asked = f"about {counted(rounded(found.questions), 'question')}"
    looked = counted(rounded(found.searches), "search", "searches")
    model = "" if found.calls else "no model, "
    return f"{counted(found.documents, 'document')}, {asked}, {looked}, {model}{cost_in_words(found)}."


def cost_in_words(found: SynthesisForecast) -> str:
    """Requests, tokens, money and time."""
    tokens = f"{rounded(found.tokens_in + found.tokens_out):,} tokens"
    asked = [counted(rounded(found.calls), "request"), tokens, charge(found.money)] if found.calls else []
    return ", ".join([*asked, lasting(found.seconds)])


def charge(money: float | None) -> str:
    if money is None:
        return "price not known"
    return "no charge" if not money else f"${money:.2f}" if money >= 0.01 else "less than $0.01"


def lasting(seconds: float) -> str:
    """A duration in words."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"


def counted(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def rounded(number: int) -> int:
    """Round to two significant digits: more would suggest false precision."""
    step = 10 ** max(0, len(str(number)) - 2)
    return round(number / step) * step


def _questions(brief: Brief, documents: int) -> int:
    own = ceil(documents * brief.questions * (1 - MERGED))
    again = ceil(documents * THIN) if documents > 1 else 0
    return own + again + (COMPARATIVE if documents > 1 else 0)


def _parts(brief: Brief, lengths: Sequence[int], questions: int, small: bool) -> list[StageForecast]:
    """Every stage in pipeline order. A small model gets one item per request and does not verify."""
    documents, deep = len(lengths), brief.pipeline is Pipeline.synthesis
    head = sum(min(HEAD, ceil(length / CHARACTERS)) for length in lengths) / max(1, documents)
    evidence = ceil(questions * brief.top * KEPT)
    items = ceil(evidence * APART) if deep and documents > 1 else evidence  # insights or, in a summary, quotations
    drawn = _requests_for_insights(items, documents) if deep else 0  # each is judged once it is written
    checked, judged = (0, 0) if small else (ceil(items / TOGETHER) + drawn, items * (2 if deep else 1))
    revised = 0 if small else ceil(items * REVISED)
    return [
        _part("describe", ceil(documents * INCOMPLETE), each=(head, 60)),
        _part("question", documents, each=(ABSTRACT, ASKED * brief.questions)),
        _part("comparative", ceil(documents / COMPARED) if documents > 1 else 0, documents, (ABSTRACT, ASKED)),
        *_weighing(brief, questions, small),
        *(_relating(items, documents, small) if deep else ()),
        _part(
            "narrate",
            ceil(items / (ITEMS_PER_SMALL_REQUEST if small else ITEMS_PER_REQUEST)),
            items,
            (QUOTED + SENTENCE, SENTENCE),
        ),
        _part("check", checked, judged, (SENTENCE + PASSAGE, RULED_ON)),
        _part("revise", min(revised, 1), revised, (SENTENCE + 4 * QUOTED, SENTENCE)),
        *_translating(brief, items, small),
    ]


def _weighing(brief: Brief, questions: int, small: bool) -> tuple[StageForecast, ...]:
    if brief.approach is Approach.agent:
        return (_part("research", questions * ROUNDS, each=(2 * PASSAGE, WEIGHED)),)
    shown = brief.top * (answers.SCORED if brief.reranker == "llm" else 1)  # per question
    calls = questions * ceil(shown / (1 if small else BATCH))
    return (_part("weigh", calls, questions * shown, (PASSAGE, WEIGHED)),)


def _relating(drawn: int, documents: int, small: bool) -> tuple[StageForecast, ...]:
    """The stages that only the deep pipeline has. Pairs grow linearly with the documents."""
    couples = min(documents * (documents - 1) // 2, documents * pairs.PARTNERS // 2)
    compared = min(ceil(drawn * PAIRED), couples * pairs.OF_DOCUMENTS)
    own = _requests_for_insights(drawn, documents)
    themed = ceil(documents / themes.MOST) + 1 if documents > themes.ALONE else 0
    parts = max(1, themed)
    return (
        _part("insights", drawn if small else own, drawn, (ASKED + 2 * QUOTED, SENTENCE)),
        _part("relate", compared if small else min(couples, compared), compared, (COUPLE, 2 * SENTENCE)),
        _part("spine", ceil(parts * (1 + TWICE)) + ceil(themed / themes.TOGETHER), documents, (3 * QUOTED, SENTENCE)),
    )


def _requests_for_insights(drawn: int, documents: int) -> int:
    """Requests of a large model. Each covers one document."""
    return documents * ceil(drawn / max(1, documents) / insights.TOGETHER)


def _translating(brief: Brief, claims: int, small: bool) -> tuple[StageForecast, ...]:
    """Translations. A large model also verifies what it has written."""
    wanted = len(set(brief.audiences) - {EXPERT})
    groups = ceil(claims / (rewrite.FEW if small else rewrite.TOGETHER)) * wanted
    retold = _part("translate", groups, claims * wanted, (SENTENCE, SENTENCE))
    if small:
        return (retold,)
    again = _part("recheck", ceil(groups * (1 + TWICE)), claims * wanted, (SENTENCE + QUOTED, RULED_ON))
    return (retold, again)


def _part(stage: str, calls: int, items: int = 0, each: tuple[float, float] = (0, 0)) -> StageForecast:
    """`each` is the tokens in and out per item or, without items, per request."""
    if not calls:
        return StageForecast(stage, 0, 0, 0)
    many = items or calls
    return StageForecast(stage, calls, ceil(calls * TASK + many * each[0]), ceil(many * each[1]))
