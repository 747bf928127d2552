"""Revises claims that failed their check, once: each is rewritten, kept with an argument, hedged, or dropped. Pure.

The result is checked again like every claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from assay.answer import claims
from assay.answer.checking.claim_rules import HEDGE
from assay.answer.checking.judge import JUDGE, Judge
from assay.answer.checking.source import claim_terms
from assay.answer.draft import (
    CITES,
    Stated,
    calculation_note,
    calculation_schema,
    with_working,
)
from assay.answer.evidence_text import Sources, quotations
from assay.core.events import RULES, Revised, RevisionCause
from assay.core.run import Run
from assay.core.types import Claim, Evidence, Verdict
from assay.evidence.weigh import quote
from assay.language import facts
from assay.language.injection import is_command
from assay.language.sentences import is_statement, split_statements
from assay.language.terms import content_terms
from assay.language.words import stop_words
from assay.models.schemas import list_schema, object_schema
from assay.models.token_estimate import estimate_tokens, fit_to_tokens
from assay.prompts.fence import fence

OTHER_EVIDENCE = 5  # pieces of evidence shown in addition to the claim's citations
CLOSE_WITH_FACTS = 0.6  # the same, if the sentence also has all names and numbers
CLOSE = 0.5  # share of a claim's words that a sentence must have to replace it


class Revision(Stated):
    """What is to become of a claim, by its number in the request."""

    claim: int
    action: Literal["rewrite", "keep", "hedge", "drop"]
    text: str = ""
    argument: str = ""


class Revisions(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    revisions: list[Revision]


def schema(count: int, keys: Sequence[str]) -> dict[str, Any]:
    """The JSON schema of a reply about `count` claims, in which only shown evidence can be cited."""
    key = {"type": "string", "enum": list(keys)}
    revision = object_schema(
        claim={"type": "integer", "enum": list(range(1, count + 1))},
        action={"type": "string", "enum": ["rewrite", "keep", "hedge", "drop"]},
        text={"type": "string"},
        cites=list_schema(key, 0, CITES),
        argument={"type": "string"},
        calculation=calculation_schema(key),
    )
    return object_schema(revisions=list_schema(revision, count, count))


def relevant_evidence(claims: Sequence[Claim], evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The evidence to revise claims from: their citations, then what is most similar, including what was found since."""
    keys = {key for claim in claims for key in claim.cites}
    terms = frozenset(term for claim in claims for term in claim_terms(claim.words))
    others = [each for each in evidence if each.key not in keys]
    others.sort(key=lambda each: (-len(terms & frozenset(content_terms(each.passage.text))), -each.score, each.key))
    return (*(each for each in evidence if each.key in keys), *others[: OTHER_EVIDENCE + len(claims)])


def correct_citations(
    claim: Claim, evidence: Sequence[Evidence], sources: Sources, judge: Judge = JUDGE
) -> Claim | None:
    """The same claim citing the evidence that it repeats, if the writer cited another piece."""
    if claim.quote is not None or not claim.words.strip():
        return None
    for each in relevant_evidence([claim], evidence):
        tried = replace(claim, cites=(each.key,), verdict=None, why="", hints=(), by="")
        if each.key not in claim.cites and judge.by_rule(tried, evidence, sources).verdict is Verdict.supported:
            return tried
    return None


def build_prompt(
    question: str, failed: Sequence[Claim], evidence: Sequence[Evidence], sources: Sources, mark: str, room: int
) -> dict[str, str]:
    """The values of the prompt `revise`, in at most `room` tokens."""
    lines = [
        f"Claim {number} (cites {', '.join(claim.cites)}): {fit_to_tokens(' '.join(claim.words.split()), 120)}\n"
        f"  wrong with it: {fit_to_tokens(' '.join(claim.why.split()) or 'nobody can tell where it comes from', 80)}"
        for number, claim in enumerate(failed, 1)
    ]
    values = {
        "question": fit_to_tokens(" ".join(question.split()), max(room // 6, 16)),
        "claims": fence(mark, "claims", fit_to_tokens("\n".join(lines), max(room // 2, 64))),
        "calculations": calculation_note(room),
    }
    left = room - sum(estimate_tokens(words) for words in values.values())
    return {**values, "evidence": quotations(evidence, sources, mark, left)[0]}


def read(reply: Revisions, failed: Sequence[tuple[int, Claim]], evidence: Sequence[Evidence], by: str) -> list[Revised]:
    """What becomes of each claim; of one that the reply leaves out, nothing."""
    revisions = {each.claim: each for each in reversed(reply.revisions)}
    none = Revision(claim=0, action="drop")
    return [
        _read_one(revisions.get(number, none), place, claim, evidence, by)
        for number, (place, claim) in enumerate(failed, 1)
    ]


def _read_one(revision: Revision, place: int, claim: Claim, evidence: Sequence[Evidence], by: str) -> Revised:
    """The revised claim. It must be one sentence that cites evidence of this run. A repetition counts as kept, unless it
    is hedged."""
    if revision.action == "drop":
        return Revised(place, None, claim.why, by)
    as_it_was = replace(claim, verdict=None, why="", hints=(), by="", carried_by=())
    known = {each.key for each in evidence}
    found, _ = claims.split_claims(revision.text.removeprefix(HEDGE), revision.cites, known)
    repeated = revision.action == "rewrite" and found and found[0].text == claim.text
    if revision.action == "keep" or not found or repeated:
        more = tuple(dict.fromkeys((*claim.cites, *(key for key in revision.cites if key in known))))[:CITES]
        kept = with_working(replace(as_it_was, cites=more), revision.calculation, known)
        argument = " ".join(revision.argument.split())[:400]
        changed = kept != as_it_was or argument
        return Revised(place, kept if changed else None, argument or claim.why, by, RevisionCause.kept)
    if not found[0].cites:
        return Revised(place, None, "what was written instead cites nothing", by)
    if revision.action == "hedge":
        return Revised(place, Claim(_hedge(found[0].text), found[0].cites), "only suggested", by)
    return Revised(place, with_working(found[0], revision.calculation, known), claim.why, by)


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
    quoted = {other.quote for own, other in run.claims_by_place.items() if own != place and other.quote}
    best = closest_sentence(claim, known, run.question, sources)
    if best is None or best.quote in quoted:
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
