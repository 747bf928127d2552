"""Restricts small models to sentences that nearly repeat a single sentence of their sources. Pure.

Observed: a small model dates an inspection by the year of a reconstruction, or turns two facts into a cause. The
rules for larger models let some of that pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assay.answer import revise
from assay.answer.checking.source import claim_terms, share
from assay.answer.evidence_text import Sources
from assay.core.types import Block, Claim, Evidence
from assay.language.sentences import split_statements
from assay.language.terms import content_terms

NEARLY = 0.8  # share of the words


def is_close_to_a_sentence(words: str, cites: Sequence[str], evidence: Sequence[Evidence]) -> bool:
    """Whether a single sentence of the cited evidence contains nearly all of these words."""
    terms = claim_terms(words)
    sentences = (
        each.passage.text[slice(*span)]
        for each in evidence
        if each.key in cites
        for span in split_statements(each.passage.text)
    )
    return any(share(terms, frozenset(content_terms(sentence))) >= NEARLY for sentence in sentences)


def keep_close_claims(blocks: Sequence[Block], evidence: Sequence[Evidence]) -> tuple[Block, ...]:
    """The blocks with only such claims. Other claims are replaced by a quotation of the sentence they are based on,
    if there is one."""
    found = (replace(block, claims=tuple(_closest_claims(block.claims, evidence))) for block in blocks)
    return tuple(block for block in found if block.claims)


def _closest_claims(claims: Sequence[Claim], evidence: Sequence[Evidence]) -> list[Claim]:
    claims_kept: list[Claim] = []
    for claim in claims:
        if claim.quote is not None or is_close_to_a_sentence(claim.text, claim.cites, evidence):
            claims_kept.append(claim)
            continue
        cited = [each for each in evidence if each.key in claim.cites]
        if meant := revise.closest_sentence(claim, cited, claim.text, Sources()):
            claims_kept.append(meant)
    return claims_kept
