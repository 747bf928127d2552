"""Revises claims that failed their check, once: each is rewritten, kept with an argument, hedged, or dropped. Pure.

The result is checked again like every claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel

from assay.answer import claims
from assay.answer.checking import repetition
from assay.answer.checking.cells import NO_CELL
from assay.answer.checking.claim_rules import HEDGES, claim_terms, unhedged
from assay.answer.claims import Sources, quotations
from assay.answer.draft import (
    CITES,
    Stated,
    calculation_schema,
    cells_schema,
    has_tables,
    how_to,
    proof_fields,
    with_proofs,
)
from assay.core.events import RULES, Revised, RevisionCause
from assay.core.run import Run
from assay.core.types import Claim, Evidence
from assay.language import facts
from assay.language.dates import YEAR
from assay.language.quantities import numbers
from assay.language.terms import content_terms, stop_words
from assay.models.cost import estimate_tokens, fit_to_tokens
from assay.models.replies import list_schema, object_schema
from assay.prompts import fence

LEANS = "it referred to a claim that did not hold"
OTHER_EVIDENCE = 5  # pieces of evidence shown in addition to the claim's citations


class Revision(Stated):
    """What is to become of a claim, by its number in the request."""

    claim: int
    action: Literal["rewrite", "keep", "hedge", "drop"]
    text: str = ""
    argument: str = ""


class Revisions(BaseModel, extra="forbid"):
    revisions: list[Revision]


def schema(count: int, keys: Sequence[str], standing: int = 0, *, cells: bool = False) -> dict[str, Any]:
    """The JSON schema of a reply about `count` claims, and perhaps about those that stand, in which only shown evidence can
    be cited."""
    key = {"type": "string", "enum": list(keys)}
    revision = object_schema(
        claim={"type": "integer", "enum": list(range(1, count + standing + 1))},
        action={"type": "string", "enum": ["rewrite", "keep", "hedge", "drop"]},
        text={"type": "string"},
        cites=list_schema(key, 0, CITES),
        argument={"type": "string"},
        calculation=calculation_schema(key),
        **({"cells": cells_schema(key)} if cells else {}),
    )
    return object_schema(revisions=list_schema(revision, count, count + standing))


def relevant_evidence(claims: Sequence[Claim], evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The evidence to revise claims from: their citations, then what is most similar, including what was found since."""
    keys = {key for claim in claims for key in claim.cites}
    terms = frozenset(term for claim in claims for term in claim_terms(claim.words))
    others = [each for each in evidence if each.key not in keys]
    others.sort(key=lambda each: (-len(terms & frozenset(content_terms(each.passage.text))), -each.score, each.key))
    return (*(each for each in evidence if each.key in keys), *others[: OTHER_EVIDENCE + len(claims)])


def correct_citations(claim: Claim, evidence: Sequence[Evidence]) -> Claim | None:
    """The same claim citing the evidence that it repeats, if the writer cited another piece."""
    if claim.quote is not None or not claim.words.strip():
        return None
    for each in relevant_evidence([claim], evidence):
        if each.key not in claim.cites and repetition.stands_in(claim.words, each.passage.text):
            return replace(claim, cites=(each.key,), verdict=None, why="", by="")
    return None


def build_prompt(
    question: str,
    failed: Sequence[Claim],
    evidence: Sequence[Evidence],
    sources: Sources,
    mark: str,
    room: int,
    standing: Sequence[Claim] = (),
) -> dict[str, str]:
    """The values of the prompt `revise`, in at most `room` tokens. What stands may lean on what failed."""
    lines = [
        f"Claim {number} (cites {', '.join(claim.cites)}): {fit_to_tokens(' '.join(claim.words.split()), 120)}\n"
        f"  wrong with it: {fit_to_tokens(' '.join(claim.why.split()) or 'nobody can tell where it comes from', 80)}"
        for number, claim in enumerate(failed, 1)
    ]
    stands = [
        f"Stands {number}: {fit_to_tokens(' '.join(claim.words.split()), 120)}"
        for number, claim in enumerate(standing, len(failed) + 1)
    ]
    cells = has_tables(evidence, sources)
    how = how_to(room, cells=cells)
    values = {
        "question": fit_to_tokens(" ".join(question.split()), max(room // 6, 16)),
        "claims": fence(mark, "claims", fit_to_tokens("\n".join(lines), max(room // 2, 64))),
        "standing": fence(mark, "standing", fit_to_tokens("\n".join(stands), max(room // 6, 32))) if stands else "none",
        "calculations": how,
        "fields": proof_fields(how, cells=cells),
    }
    left = room - sum(estimate_tokens(words) for words in values.values())
    return {**values, "evidence": quotations(evidence, sources, mark, left, cells=cells)}


def read(
    reply: Revisions, failed: Sequence[tuple[int, Claim]], evidence: Sequence[Evidence], by: str, language: str = "en"
) -> list[Revised]:
    """What becomes of each claim; of one that the reply leaves out, nothing. `language` is that of the answer."""
    revisions = {each.claim: each for each in reversed(reply.revisions)}
    none = Revision(claim=0, action="drop")
    return [
        _read_one(revisions.get(number, none), place, claim, evidence, by, language)
        for number, (place, claim) in enumerate(failed, 1)
    ]


def read_standing(
    reply: Revisions, failed: int, standing: Sequence[tuple[int, Claim]], evidence: Sequence[Evidence], by: str
) -> list[Revised]:
    """What becomes of claims that leaned on one that failed: each says by itself what it referred to, or is dropped."""
    revisions = {each.claim: each for each in reversed(reply.revisions)}
    known = {each.key for each in evidence}
    found: list[Revised] = []
    for number, (place, claim) in enumerate(standing, failed + 1):
        revision = revisions.get(number)
        if revision is None or revision.action not in ("rewrite", "drop"):
            continue
        words, _ = claims.split_claims(revision.text, revision.cites, known, whole=True)
        if revision.action == "drop":
            found.append(Revised(place, None, LEANS, by))
        elif words and words[0].text != claim.text:
            cites = tuple(dict.fromkeys((*claim.cites, *words[0].cites)))[:CITES]
            itself = replace(claim, text=words[0].text, cites=cites, verdict=None, why="", by="", carried_by=())
            found.append(Revised(place, itself, LEANS, by))
    return found


def _read_one(
    revision: Revision, place: int, claim: Claim, evidence: Sequence[Evidence], by: str, language: str
) -> Revised:
    """The revised claim. It must cite evidence of this run. A repetition counts as kept, unless it
    is hedged."""
    if revision.action == "drop":
        return Revised(place, None, claim.why, by)
    as_it_was = replace(claim, verdict=None, why="", by="", carried_by=())
    known = {each.key for each in evidence}
    found, _ = claims.split_claims(unhedged(revision.text), revision.cites, known, whole=True)
    repeated = revision.action == "rewrite" and found and found[0].text == claim.text
    if revision.action == "keep" or not found or repeated:
        more = tuple(dict.fromkeys((*claim.cites, *(key for key in revision.cites if key in known))))[:CITES]
        kept = with_proofs(replace(as_it_was, cites=more), revision, known)
        argument = " ".join(revision.argument.split())[:400]
        changed = kept != as_it_was or argument or _is_open(claim)
        why = argument if changed else claim.why  # what was wrong with it is no argument for it
        return Revised(place, kept if changed else None, why, by, RevisionCause.kept)
    if not found[0].cites:
        return Revised(place, None, "what was written instead cites nothing", by)
    if revision.action == "hedge":
        return Revised(place, Claim(_hedge(found[0].text, language), found[0].cites), "only suggested", by)
    # Without cells of its own, the same figures are still those of the cells that were named for them.
    same = _amounts(found[0].text) == _amounts(claim.text)
    rewritten = replace(found[0], cells=claim.cells if same else ())
    return Revised(place, with_proofs(rewritten, revision, known), claim.why, by)


def _is_open(claim: Claim) -> bool:
    """Whether a claim that nobody puts right is not lost: its cells are delivered, or it lacks a cell and nothing else."""
    return not claim.by and (bool(claim.cells) or claim.why.endswith(NO_CELL))


def _amounts(words: str) -> frozenset[str]:
    return frozenset(each.text for each in numbers(words) if not YEAR.fullmatch(each.text))


def _hedge(words: str, language: str) -> str:
    """The sentence with a hedge in front; in English its first word keeps its capital if it is a name."""
    first, hedge = words.split(maxsplit=1)[0].lower(), HEDGES.get(language, HEDGES["en"])
    plain = hedge == HEDGES["en"] and (first in stop_words() or facts.is_plain(first))
    return hedge + (words[:1].lower() + words[1:] if plain else words)


def quote_instead(place: int, claim: Claim, run: Run) -> Revised:
    """The quotation that a claim was evidently taken from, in its place; dropped if there is none. A claim without
    citations is compared with all evidence."""
    if _is_open(claim):
        return Revised(place, replace(claim, verdict=None, why=""), claim.why, RULES)
    known = [each for each in run.evidence if each.key in claim.cites] or run.evidence
    quoted = {other.quote for own, other in run.claims_by_place.items() if own != place and other.quote}
    best = None if claim.quote else repetition.quote_source(claim.words, known)
    if best is None or best.quote in quoted:
        return Revised(place, None, claim.why, RULES)
    return Revised(place, best, f"the document's own words, since {claim.why}", RULES)
