"""What a small model may say: what one sentence of its sources says in nearly the same words. Pure.

Seen of one: it dates an inspection by the year of a rebuilding, and makes a cause of two facts; the rules that are made for
larger models let some of that pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assay.answer import revise
from assay.answer.checking.source import claim_terms, share
from assay.answer.evidence_text import Sources
from assay.answer.statements import split_statements
from assay.core.types import Block, Claim, Evidence
from assay.language.terms import content_terms

NEARLY = 0.8  # of its words


def is_close_to_a_sentence(words: str, cites: Sequence[str], evidence: Sequence[Evidence]) -> bool:
    """Whether a single sentence of what is cited has nearly all of these words."""
    terms = claim_terms(words)
    sentences = (
        each.passage.text[slice(*span)]
        for each in evidence
        if each.key in cites
        for span in split_statements(each.passage.text)
    )
    return any(share(terms, frozenset(content_terms(sentence))) >= NEARLY for sentence in sentences)


def keep_close_claims(blocks: Sequence[Block], evidence: Sequence[Evidence]) -> tuple[Block, ...]:
    """The blocks with only such claims; of the others the sentence that was meant is quoted, where there is one."""
    found = (replace(block, claims=tuple(_said(block.claims, evidence))) for block in blocks)
    return tuple(block for block in found if block.claims)


def _said(claims: Sequence[Claim], evidence: Sequence[Evidence]) -> list[Claim]:
    said: list[Claim] = []
    for claim in claims:
        if claim.quote is not None or is_close_to_a_sentence(claim.text, claim.cites, evidence):
            said.append(claim)
            continue
        cited = [each for each in evidence if each.key in claim.cites]
        if meant := revise.closest_sentence(claim, cited, claim.text, Sources()):
            said.append(meant)
    return said
