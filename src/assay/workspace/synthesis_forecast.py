"""Forecast of a synthesis: questions, searches, requests, tokens, money and time, by stage. Pure.

An estimate from the average figures below; `bench synthesis` compares them with real runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from assay.answer.checking.judge import TOGETHER
from assay.core.synthesis import EXPERT, Approach, Brief, Pipeline
from assay.store.runs.forecasts import WorkEstimate
from assay.synthesis import audience, narrate, plan
from assay.synthesis.plan import RELATIONS
from assay.synthesis.read import A_POINT, DOCUMENTS, FEWEST_POINTS, MOST, MOST_POINTS, PARTS, REPLY, SHARE
from assay.workspace.forecast import Speed, charge, counted, lasting, rounded

# Average tokens.
CHARACTERS = 4  # per token
TASK = 450  # instructions and fences in every request
POINT = 170  # a point in a prompt, with its passage
LINE = 110  # a point by itself: what was noted, and the words it is about
NOTED = 110  # a point as it is noted: words, text, key
SENTENCE = 50  # a sentence of the text, or the reason of a relation
RULED_ON = 80  # a verdict with its words and reason
PASSAGE = 240  # a passage that a judge is shown

# Shares and counts.
DRAWN = 1 / A_POINT  # points per token of a document
RELATED = 0.4  # relations per point, at most `RELATIONS` per request
PER_POINT = 0.85  # sentences per point
UNEVEN = 1.25  # requests that a division by meaning or by paragraph adds
REVISED = 0.06  # sentences that are written anew
WINDOW = 32_000  # tokens of a window, if the model's is not known
ROUNDS = 5  # requests of a short agent run
SEARCH = 0.25  # seconds per search
RULED = 2.0  # seconds of work by rule per document: reading, comparing, checking

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
    window: int = 0,
) -> SynthesisForecast:
    """Forecast a synthesis. `lengths` are the characters of each document; `price` gives the price of tokens in and
    out; `window` is that of the model."""
    tokens = [length / CHARACTERS for length in lengths]
    questions = len(lengths) * brief.questions if has_model and not small else 0
    too_long = any(each > _room(window) * PARTS for each in tokens)  # to be read whole
    searched = questions if brief.approach is Approach.agent or brief.compare or too_long else 0
    parts = tuple(part for part in _parts(brief, tokens, searched, small, window) if part.calls) if has_model else ()
    tokens_in, tokens_out = sum(part.tokens_in for part in parts), sum(part.tokens_out for part in parts)
    asking = (tokens_in / speed.read + tokens_out / speed.write) / speed.at_once
    return SynthesisForecast(
        len(lengths),
        questions,
        searched * (3 if brief.approach is Approach.agent else 1),
        sum(part.calls for part in parts),
        tokens_in,
        tokens_out,
        price(tokens_in, tokens_out) if has_model else 0.0,
        asking + SEARCH * searched + RULED * len(lengths),
        parts,
    )


def is_large(found: SynthesisForecast) -> bool:
    """Whether to ask the user first. Work by rule costs only time and can be interrupted, so it never counts as
    large."""
    dear = found.money is not None and found.money > MOST_MONEY
    return found.calls > 0 and (found.calls > MOST_CALLS or found.seconds > MOST_SECONDS or dear)


def in_words(found: SynthesisForecast) -> str:
    """The forecast in one line. Figures are rounded, since they are estimates."""
    looked = [counted(rounded(found.searches), "search", "searches")] if found.searches else []
    model = [] if found.calls else ["no model"]
    return f"{', '.join([counted(found.documents, 'document'), *looked, *model, cost_in_words(found)])}."


def cost_in_words(found: SynthesisForecast) -> str:
    """Requests, tokens, money and time."""
    tokens = f"{rounded(found.tokens_in + found.tokens_out):,} tokens"
    asked = [counted(rounded(found.calls), "request"), tokens, charge(found.money)] if found.calls else []
    return ", ".join([*asked, lasting(found.seconds)])


def _room(window: int) -> int:
    return max(400, min(MOST, int((window or WINDOW) * SHARE)))


def _parts(brief: Brief, tokens: Sequence[float], searched: int, small: bool, window: int) -> list[StageForecast]:
    """Every stage in pipeline order. A small model only writes, a paragraph for each document."""
    documents = len(tokens)
    if small:
        return [_part("narrate", documents, documents * FEWEST_POINTS, (POINT, SENTENCE))]
    room, deep = _room(window), brief.pipeline is Pipeline.synthesis
    shown = [min(each, room * PARTS) for each in tokens]
    points = sum(max(FEWEST_POINTS, min(MOST_POINTS, 2 + ceil(each * DRAWN))) for each in shown)
    whole = window or WINDOW
    together = max(1, min(DOCUMENTS, whole // 3 // REPLY))
    read = max(ceil(sum(shown) / room), ceil(documents / together)) + (1 if searched else 0)
    planned = _divided(points * LINE, min(plan.MOST, whole * plan.SHARE)) if deep and documents > 1 else 0
    relations = min(ceil(points * RELATED), RELATIONS * planned)
    redone = min(planned, 1)  # requests that put reasons of relations right, and that judge them again
    written = _divided(points * LINE, min(narrate.MOST, whole * narrate.SHARE) / 2)
    judged = max(1, min(TOGETHER, int(whole / 2 / (PASSAGE + SENTENCE))))  # claims in one request
    claims = ceil(points * PER_POINT)
    revised = ceil(claims * REVISED)
    again = ceil(revised / judged)
    research = searched if brief.approach is Approach.agent else 0
    others = len(set(brief.audiences) - {EXPERT})
    return [
        _part("read", read, points, (sum(shown) / max(1, points), NOTED)),
        _part("research", research * ROUNDS, each=(2 * PASSAGE, RULED_ON)),
        _part("relate", planned, points, (POINT / 2, SENTENCE / 2)),
        _part("narrate", written, points, (POINT, SENTENCE)),
        _part("polish", written, claims, (SENTENCE, SENTENCE)),
        _part(
            "check",
            ceil(claims / judged) + ceil(relations / judged) + redone + again,
            claims + relations + revised,
            (SENTENCE + PASSAGE / 2, RULED_ON),
        ),
        _part("revise", again + redone, revised, (SENTENCE + 2 * PASSAGE, SENTENCE)),
        _part("translate", ceil(claims / audience.TOGETHER) * others, claims * others, (SENTENCE, SENTENCE)),
        _part("recheck", ceil(claims / judged) * others, claims * others, (2 * SENTENCE, RULED_ON)),
    ]


def _divided(tokens: float, room: float) -> int:
    """Requests for so many tokens."""
    return max(1, ceil(tokens / room * (UNEVEN if tokens > room else 1)))


def _part(stage: str, calls: int, items: int = 0, each: tuple[float, float] = (0, 0)) -> StageForecast:
    """`each` is the tokens in and out per item or, without items, per request."""
    if not calls:
        return StageForecast(stage, 0, 0, 0)
    many = items or calls
    return StageForecast(stage, calls, ceil(calls * TASK + many * each[0]), ceil(many * each[1]))
