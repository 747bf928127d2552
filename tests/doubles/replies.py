"""Replies for a `Script`, in the form that each prompt of Assay asks for. The only place that spells out these forms.

Replies that depend on what the request shows (which passage has these words, which key it has) are functions of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from doubles.protocol import keys_in, passages_in, quoted_in
from doubles.script import ReplyWriter

Json = dict[str, Any]
Schema = Mapping[str, Any] | None

# --- route, plan ----------------------------------------------------------------------------------------------------


def research(why: str = "it needs several searches", *, every: bool = False, readings: Sequence[str] = ()) -> Json:
    """route: the question is researched."""
    return {"route": "research", "every": every, "readings": list(readings), "why": why}


def lookup(why: str = "one search can find it") -> Json:
    """route: the question is looked up with one search."""
    return {"route": "lookup", "every": False, "readings": [], "why": why}


def direct(why: str = "it needs no document") -> Json:
    """route: the question is answered without the documents."""
    return {"route": "direct", "every": False, "readings": [], "why": why}


def one_step(question: str, query: str = "") -> Json:
    """plan: the question is one step, searched with `query`, or verbatim."""
    return steps((question, query or question))


def steps(*questions: str | tuple[str, str]) -> Json:
    """plan: steps s1, s2, … in order, each a question or a (question, query) pair. One that contains `{s1}` needs step s1."""
    pairs = [(each, each) if isinstance(each, str) else each for each in questions]
    return {"steps": [_step(number, *pair) for number, pair in enumerate(pairs, 1)]}


def _step(number: int, question: str, query: str) -> Json:
    needs = list(dict.fromkeys(re.findall(r"\{(s\d)\}", f"{question} {query}")))
    return {"id": f"s{number}", "question": question, "query": query, "needs": needs, "binds": f"found {number}"}


# --- weigh, judge ---------------------------------------------------------------------------------------------------


def keeps(*quotes: str, score: int = 9, note: str = "it says so") -> ReplyWriter:
    """weigh: keep the passages that contain one of these quotes, for that quote; reject the others."""

    def write(text: str, schema: Schema) -> Json:
        found = [(place, quote) for place, words in passages_in(text).items() if (quote := _first_in(words, quotes))]
        return {"passages": [{"id": place, "score": score, "note": note, "quote": quote} for place, quote in found]}

    return write


def enough(**answers: str) -> ReplyWriter:
    """judge: the evidence is enough. `s1="Paris"` is what step s1 found: it must occur in the evidence shown."""
    return lambda text, schema: _judged(text, answers, enough=True)


def missing(*what: str, surprise: bool = False, searches: Sequence[str] = (), **answers: str) -> ReplyWriter:
    """judge: this is missing, and `searches` may find it. `s1="Paris"` is what step s1 found nevertheless."""
    lacking = {"missing": list(what), "searches": list(searches), "surprise": surprise}
    return lambda text, schema: _judged(text, answers, enough=False) | lacking


def _judged(text: str, answers: Mapping[str, str], *, enough: bool) -> Json:
    found = [{"step": step, "value": value, "key": _key(text, value)} for step, value in answers.items()]
    return {"answers": found, "enough": enough, "missing": [], "searches": [], "surprise": False}


# --- write, check ---------------------------------------------------------------------------------------------------


def writes(*claims: str, shape: str = "prose", lacking: Sequence[str] = ()) -> ReplyWriter:
    """write: these claims, each with its citations in brackets at its end: `[{0}]` is the first piece of evidence
    shown, `[{lowers fever}]` the one that contains these words, `[{0}, {1}]` are two; anything else is literal."""

    def write(text: str, schema: Schema) -> Json:
        stated = [_claim(text, claim) for claim in claims]
        blocks = [{"heading": "", "opinion": False, "claims": stated}] if stated else []
        return {"shape": shape, "conflicts": [], "blocks": blocks, "missing": list(lacking)}

    return write


def says(words: str) -> Json:
    """direct: an answer that is not from the documents."""
    return {"text": words}


def supported(why: str = "the passages say so", *, missing: Sequence[str] = (), search: str = "") -> ReplyWriter:
    """check: every claim is supported. `missing` is what the claims leave out, `search` what to search for."""
    return lambda text, schema: _rulings(text, "supported", why=why, missing=missing, search=search)


def verdicts(*each: str, why: str = "as scripted", missing: Sequence[str] = (), search: str = "") -> ReplyWriter:
    """check: a verdict for each claim in the order shown; the last one is used for the rest."""
    return lambda text, schema: _rulings(text, *each, why=why, missing=missing, search=search)


def beside_the_point(why: str = "the passages say so") -> ReplyWriter:
    """check: every claim is supported, and none answers the question."""
    return lambda text, schema: _rulings(text, "supported", why=why) | {"answers": False}


def _rulings(text: str, *verdicts: str, why: str, missing: Sequence[str] = (), search: str = "") -> Json:
    shown = passages_in(text)
    rulings = [
        {
            "claim": number,
            "words": [shown[key] for key in keys if key in shown],
            "why": why,
            "verdict": verdicts[min(place, len(verdicts) - 1)],
        }
        for place, (number, keys) in enumerate(_claims_in(text))
    ]
    asks = re.search(r"^Question: ", text, re.MULTILINE)
    return {"rulings": rulings} | ({"answers": True, "missing": list(missing), "search": search} if asks else {})


def rewrites(claim: str) -> ReplyWriter:
    """revise: each claim is rewritten like this; it cites as in `writes`."""
    return lambda text, schema: _revisions(text, {"action": "rewrite"} | _claim(text, claim))


def hedges(claim: str) -> ReplyWriter:
    """revise: each claim is only suggested."""
    return lambda text, schema: _revisions(text, {"action": "hedge"} | _claim(text, claim))


def argues(argument: str) -> ReplyWriter:
    """revise: each claim is kept, with this argument."""
    return lambda text, schema: _revisions(text, {"action": "keep", "argument": argument})


def drops() -> ReplyWriter:
    """revise: each claim is dropped."""
    return lambda text, schema: _revisions(text, {"action": "drop"})


def _revisions(text: str, each: Json) -> Json:
    empty = {"text": "", "cites": [], "argument": "", "calculation": None}
    return {"revisions": [{"claim": number} | empty | each for number, _ in _claims_in(text)]}


# --- reading the request --------------------------------------------------------------------------------------------


def _claim(text: str, claim: str) -> Json:
    words = re.sub(r"\s*\[[^\]]*\]", "", claim)
    cited = [each.strip() for inside in re.findall(r"\[([^\]]*)\]", claim) for each in inside.split(",")]
    return {"text": words, "cites": [_cited(text, each) for each in cited if each]}


def _cited(text: str, cite: str) -> str:
    if not (place := re.fullmatch(r"\{(.*)\}", cite)):
        return cite
    if not place[1].isdigit():
        return _key(text, place[1])
    keys = keys_in(text)
    assert int(place[1]) < len(keys), f"{cite} is asked for and {len(keys)} pieces of evidence are shown"
    return keys[int(place[1])]


def _key(text: str, words: str) -> str:
    """The key of the first piece of evidence that contains these words."""
    found = next((key for key, shown in passages_in(text).items() if _first_in(shown, (words,))), None)
    assert found is not None, f"{words!r} stands in no evidence that is shown"
    return found


def _first_in(shown: str, quotes: Sequence[str]) -> str:
    flat = " ".join(shown.split())
    return next((quote for quote in quotes if " ".join(quote.split()) in flat), "")


def _claims_in(text: str) -> list[tuple[int, list[str]]]:
    """The claims of a request: number, and keys."""
    claims = "\n".join(words for label, words in quoted_in(text) if label == "claims")
    found = re.findall(r"^Claim (\d+) \((?:opinion, |heading, )?cites ([^)]*)\): ", claims, re.MULTILINE)
    return [(int(number), keys.split(", ")) for number, keys in found]
