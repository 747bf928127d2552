"""What a synthesis will take, before it starts: questions, searches, requests, tokens, money, time; stage by stage. Pure.

An estimate. The figures below say what one request of each stage is like; `bench synthesis` sets them beside real runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from assay.agent.forecast import Speed
from assay.agent.steps.check import TOGETHER
from assay.core.account import EXPERT, Approach, Brief, Pipeline
from assay.store.runs.forecasts import WorkEstimate
from assay.synthesis.relating import pairs
from assay.synthesis.stages import answers, insights
from assay.synthesis.writing import rewrite, themes

# Tokens, as they are on average.
CHARACTERS = 4  # of a token
TASK = 280  # that say what is to be done, in every request, and the marks around quotations
HEAD = 900  # of a document's beginning, at most
ABSTRACT = 150
PASSAGE = 220  # that is weighed, with its title
WEIGHED = 70  # of what is said about it: score, quotation, note
QUOTED = 70  # of a quotation, with its key
COUPLE = 400  # of a pair of insights with the quotations of both
SENTENCE = 50  # of an insight, a claim or a reason, as it is written
ASKED = 30  # of a question

# How often things are so: shares.
INCOMPLETE = 0.7  # of documents that do not show title, authors and year by themselves
MERGED = 0.1  # of questions that say the same as others
THIN = 0.15  # of documents that are asked about once more
KEPT = 0.85  # of the passages weighed, that bear on the question
APART = 0.95  # documents that speak for each quotation of a question: some give two
OPEN = 0.25  # of claims that the rules leave open, so that a large model is asked
REVISED = 0.05  # of claims that are written anew, by a large model
TWICE = 0.5  # of what was asked for, that is asked for or checked once more

COMPARATIVE = 4  # questions from all abstracts together
COMPARED = 20  # abstracts that are shown together
PAIRED = 0.8  # pairs for each insight
BATCH = 9  # passages that are weighed in one request; of a small model one
TOLD, TOLD_BY_SMALL = 25, 4  # things that are told in one request, in a window of common size
ROUNDS = 5  # requests of a short run of the agent, with its weighing
SEARCH = 0.25  # seconds of a search over all documents, reranked
RULED = 0.15  # seconds by rule for each document and each question: reading, pairing, checking

MOST_CALLS, MOST_SECONDS, MOST_MONEY = 150, 600.0, 0.50  # above any of these a forecast is large


@dataclass(frozen=True, slots=True)
class StageForecast:
    """What one stage asks of models."""

    stage: str
    calls: int
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, slots=True)
class SynthesisForecast:
    """What a synthesis is likely to take. Without a model there are no parts, and no calls, tokens or money."""

    documents: int
    questions: int
    searches: int
    calls: int
    tokens_in: int
    tokens_out: int
    money: float | None  # USD; None where nobody knows the price
    seconds: float
    parts: tuple[StageForecast, ...] = ()
    foreseen: WorkEstimate | None = None  # the same as ranges, put right by what earlier ones took
    notes: tuple[str, ...] = ()  # the ranges in words, how good forecasts were, what of today's ceilings is in the way


def forecast(
    brief: Brief,
    *,
    lengths: Sequence[int],
    small: bool,
    has_model: bool,
    price: Callable[[int, int], float | None],
    speed: Speed,
) -> SynthesisForecast:
    """`lengths` are the characters of each document; `price` says what tokens in and out cost. More of anything that is
    asked for never makes it less."""
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
    """Whether a person should be asked first. What goes by rule costs nothing but time, and can be stopped."""
    dear = found.money is not None and found.money > MOST_MONEY
    return found.calls > 0 and (found.calls > MOST_CALLS or found.seconds > MOST_SECONDS or dear)


def in_words(found: SynthesisForecast) -> str:
    """The forecast in a line; every figure is rounded, since it is a guess."""
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
    """A stretch of time as somebody would say it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"


def counted(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def rounded(number: int) -> int:
    """Two figures: more would say that more is known."""
    step = 10 ** max(0, len(str(number)) - 2)
    return round(number / step) * step


def _questions(brief: Brief, documents: int) -> int:
    own = ceil(documents * brief.questions * (1 - MERGED))
    again = ceil(documents * THIN) if documents > 1 else 0
    return own + again + (COMPARATIVE if documents > 1 else 0)


def _parts(brief: Brief, lengths: Sequence[int], questions: int, small: bool) -> list[StageForecast]:
    """Every stage, in the order of the pipeline. A small model is shown one thing at a time, and not asked to check."""
    documents, deep = len(lengths), brief.pipeline is Pipeline.synthesis
    head = sum(min(HEAD, ceil(length / CHARACTERS)) for length in lengths) / max(1, documents)
    evidence = ceil(questions * brief.top * KEPT)
    told = ceil(evidence * APART) if deep and documents > 1 else evidence  # insights, or quotations
    checked, revised = (0, 0) if small else (ceil(told * OPEN / TOGETHER), ceil(told * REVISED))
    return [
        _part("describe", ceil(documents * INCOMPLETE), each=(head, 60)),
        _part("question", documents, each=(ABSTRACT, ASKED * brief.questions)),
        _part("comparative", ceil(documents / COMPARED) if documents > 1 else 0, documents, (ABSTRACT, ASKED)),
        *_weighing(brief, questions, small),
        *(_relating(told, documents, small) if deep else ()),
        _part("narrate", ceil(told / (TOLD_BY_SMALL if small else TOLD)), told, (QUOTED + SENTENCE, SENTENCE)),
        _part("check", checked, ceil(told * OPEN), (SENTENCE + 2 * QUOTED, SENTENCE)),
        _part("revise", revised, each=(SENTENCE + 4 * QUOTED, SENTENCE)),
        *_translating(brief, told, small),
    ]


def _weighing(brief: Brief, questions: int, small: bool) -> tuple[StageForecast, ...]:
    if brief.approach is Approach.agent:
        return (_part("research", questions * ROUNDS, each=(2 * PASSAGE, WEIGHED)),)
    shown = brief.top * (answers.SCORED if brief.reranker == "llm" else 1)  # for one question
    calls = questions * ceil(shown / (1 if small else BATCH))
    return (_part("weigh", calls, questions * shown, (PASSAGE, WEIGHED)),)


def _relating(drawn: int, documents: int, small: bool) -> tuple[StageForecast, ...]:
    """What only the deep pipeline does. Pairs grow with the documents, not with their square."""
    couples = min(documents * (documents - 1) // 2, documents * pairs.PARTNERS // 2)
    compared = min(ceil(drawn * PAIRED), couples * pairs.OF_DOCUMENTS)
    own = documents * ceil(drawn / max(1, documents) / insights.TOGETHER)  # a request is about one document
    themed = ceil(documents / themes.MOST) + 1 if documents > themes.ALONE else 0
    parts = max(1, themed)
    return (
        _part("insights", drawn if small else own, drawn, (ASKED + 2 * QUOTED, SENTENCE)),
        _part("relate", compared if small else min(couples, compared), compared, (COUPLE, 2 * SENTENCE)),
        _part("spine", ceil(parts * (1 + TWICE)) + ceil(themed / themes.TOGETHER), documents, (3 * QUOTED, SENTENCE)),
    )


def _translating(brief: Brief, claims: int, small: bool) -> tuple[StageForecast, ...]:
    """What a large model has written for another audience it checks as well."""
    wanted = len(set(brief.audiences) - {EXPERT})
    groups = ceil(claims / (rewrite.FEW if small else rewrite.TOGETHER)) * wanted
    retold = _part("translate", groups, claims * wanted, (SENTENCE, SENTENCE))
    if small:
        return (retold,)
    again = _part("recheck", ceil(groups * TWICE), ceil(claims * wanted * TWICE), (SENTENCE + QUOTED, 20))
    return (retold, again)


def _part(stage: str, calls: int, items: int = 0, each: tuple[float, float] = (0, 0)) -> StageForecast:
    """`each` are the tokens in and out of one item; where no items are named, of one request."""
    if not calls:
        return StageForecast(stage, 0, 0, 0)
    many = items or calls
    return StageForecast(stage, calls, ceil(calls * TASK + many * each[0]), ceil(many * each[1]))
