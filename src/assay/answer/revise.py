"""Revises a claim that failed its check, once: it is rewritten, hedged, replaced by a quotation, or dropped. Pure.

The result is checked again like every claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from assay.answer import claims
from assay.answer.checking import facts
from assay.answer.checking.claim_rules import HEDGE
from assay.answer.checking.judge import JUDGE, Judge
from assay.answer.checking.source import claim_terms
from assay.answer.evidence_text import Sources, quotations
from assay.answer.statements import is_statement, split_statements
from assay.core.events import RULES, Revised
from assay.core.run import Run
from assay.core.types import Claim, Evidence, Verdict
from assay.evidence.weigh import quote
from assay.language.injection import is_command
from assay.language.terms import content_terms
from assay.language.words import stop_words
from assay.models.token_estimate import estimate_tokens, fit_to_tokens
from assay.prompts.fence import fence

OTHER_EVIDENCE = 5  # pieces of evidence shown in addition to the claim's citations
MIN_NEW_TERMS = 2  # words that an additional piece of evidence must add
CLOSE_WITH_FACTS = 0.6  # the same, if the sentence also has all names and numbers
CLOSE = 0.5  # share of a claim's words that a sentence must have to replace it


class Revision(BaseModel):
    """What is to become of the claim."""

    model_config = ConfigDict(strict=True, extra="forbid")

    action: Literal["rewrite", "hedge", "drop"]
    text: str = ""
    cites: list[str] = []


def schema(keys: Sequence[str]) -> dict[str, Any]:
    """The JSON schema of a reply, in which only shown evidence can be cited."""
    return {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["rewrite", "hedge", "drop"]},
            "text": {"type": "string"},
            "cites": {"type": "array", "items": {"type": "string", "enum": list(keys)}, "minItems": 0, "maxItems": 4},
        },
        "required": ["action", "text", "cites"],
        "additionalProperties": False,
    }


def relevant_evidence(claim: Claim, evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The evidence to revise a claim from: its citations, then the most similar evidence, including what was found since."""
    cited = [each for each in evidence if each.key in claim.cites]
    terms = claim_terms(claim.words)
    others = [each for each in evidence if each.key not in claim.cites]
    others.sort(key=lambda each: (-len(terms & frozenset(content_terms(each.passage.text))), -each.score, each.key))
    return (*cited, *others[:OTHER_EVIDENCE])


def correct_citations(
    claim: Claim, evidence: Sequence[Evidence], sources: Sources, judge: Judge = JUDGE
) -> Claim | None:
    """The same claim citing the evidence that does support it, if the writer cited the wrong piece or one too few."""
    if claim.quote is not None or not claim.words.strip():
        return None
    for each in relevant_evidence(claim, evidence):
        tried = replace(claim, cites=(each.key,), verdict=None, why="")
        if each.key not in claim.cites and judge.by_rule(tried, evidence, sources).verdict is Verdict.supported:
            return tried
    more = add_citation(claim, evidence, sources, judge)
    return replace(more, verdict=None, why="") if more else None


def add_citation(claim: Claim, evidence: Sequence[Evidence], sources: Sources, judge: Judge = JUDGE) -> Claim | None:
    """The same claim with one more citation, if the two together support what one supports in part: the second must
    cover at least two words that the first does not."""
    cited = "\n".join(each.passage.text for each in evidence if each.key in claim.cites)
    lacking = claim_terms(claim.words) - frozenset(content_terms(cited))
    for each in relevant_evidence(claim, evidence):
        if each.key not in claim.cites and len(lacking & frozenset(content_terms(each.passage.text))) >= MIN_NEW_TERMS:
            tried = judge.by_rule(replace(claim, cites=(*claim.cites, each.key)), evidence, sources)
            if tried.verdict is Verdict.supported:
                return tried
    return None


def build_prompt(
    question: str, claim: Claim, evidence: Sequence[Evidence], sources: Sources, mark: str, room: int
) -> dict[str, str]:
    """The values of the prompt `revise`, in at most `room` tokens."""
    said = fit_to_tokens(" ".join(claim.words.split()), max(room // 6, 16))
    why = fit_to_tokens(" ".join(claim.why.split()) or "nobody can tell where it comes from", max(room // 8, 16))
    told = {
        "question": fit_to_tokens(" ".join(question.split()), max(room // 6, 16)),
        "claim": fence(mark, "claim", f"Claim: {said}\nWrong with it: {why}"),
    }
    left = room - sum(estimate_tokens(words) for words in told.values())
    return {**told, "evidence": quotations(evidence, sources, mark, left)[0]}


def read(reply: Revision, place: int, claim: Claim, evidence: Sequence[Evidence], by: str) -> Revised:
    """The revised claim. It must be one sentence that cites evidence of this run; a repetition of the old claim is
    dropped."""
    if reply.action == "drop":
        return Revised(place, None, claim.why, by)
    found, _ = claims.split_claims(reply.text.removeprefix(HEDGE), reply.cites, {each.key for each in evidence})
    if not found or not found[0].cites:
        return Revised(place, None, "what was written instead cites nothing", by)
    new = claims.drop_redundant_citations(found[0], evidence, Sources())
    if reply.action == "hedge":
        return Revised(place, Claim(_hedge(new.text), new.cites), "only suggested", by)
    if new.text == claim.text and set(new.cites) == set(claim.cites):
        return Revised(place, None, claim.why, by)
    return Revised(place, new, claim.why, by)


def _hedge(words: str) -> str:
    """The sentence with a hedge in front; its first word keeps its capital if it is a name."""
    first = words.split(maxsplit=1)[0].lower()
    plain = first in stop_words() or facts.is_plain(first)
    return HEDGE + (words[:1].lower() + words[1:] if plain else words)


def without_model(place: int, claim: Claim, run: Run, sources: Sources) -> Revised:
    """The sentence of the evidence closest to the claim, verbatim; dropped if none is close. A claim without citations
    is compared with all evidence."""
    if claim.quote is not None:
        return Revised(place, None, claim.why, RULES)
    known = [each for each in run.evidence if each.key in claim.cites] or list(run.evidence)
    said = {other.quote for own, other in run.written.items() if own != place and other.quote}
    best = closest_sentence(claim, known, run.question, sources)
    if best is None or best.quote in said:
        return Revised(place, None, claim.why, RULES)
    return Revised(place, best, f"the document's own words, since {claim.why}", RULES)


def quote_closest_sentence(place: int, claim: Claim, run: Run, sources: Sources) -> Revised:
    """Replace a small model's claim with a quotation: a sentence with all names and numbers of the claim and most of
    its words. Asked to rewrite the claim, a small model would only repeat it."""
    best = closest_sentence(claim, run.evidence, run.question, sources, CLOSE_WITH_FACTS)
    if best is None or facts.missing_facts(claim.words, best.words):
        return Revised(place, None, claim.why, RULES)
    return Revised(place, best, f"the document's own words, since {claim.why}", RULES)


def closest_sentence(
    claim: Claim, evidence: Sequence[Evidence], question: str, sources: Sources, close: float = CLOSE
) -> Claim | None:
    """The closest sentence as a quotation; it must also be about the question."""
    terms, asked = claim_terms(claim.words), frozenset(content_terms(question))
    best: tuple[float, Claim] | None = None
    for each in evidence:
        above = f"{sources.titles.get(each.passage.doc_id, '')} {each.passage.above}"
        for start, end in split_statements(each.passage.text):
            words = each.passage.text[start:end]
            spoken = frozenset(content_terms(words))
            share = len(terms & spoken) / len(terms) if terms else 0.0
            if share < close or not asked & (spoken | frozenset(content_terms(above))):
                continue
            if not is_statement(words) or is_command(words):
                continue
            if best is None or share > best[0]:
                best = share, Claim("", (each.key,), quote=quote(each.passage, start, end))
    return best[1] if best else None
