"""Completes a draft that leaves something open: appends a quotation that continues it by a name. Pure.

Small models stop half-way: asked for the model of a sensor, they name the sensor. The name leads to the sentence with
the rest, as in the search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assay.answer.evidence_text import Sources
from assay.answer.extractive.extract import missing_words
from assay.core.events import Drafted
from assay.core.types import Block, Claim, Evidence
from assay.evidence.weigh import quote
from assay.language import facts
from assay.language.injection import is_command
from assay.language.sentences import is_statement, split_statements
from assay.language.terms import content_terms, fold_case


def complete_draft(draft: Drafted, question: str, evidence: Sequence[Evidence], sources: Sources) -> Drafted:
    """The draft with one more quotation, if one is needed and available."""
    claims = [claim for block in draft.blocks for claim in block.claims]
    further = continuation(question, claims, evidence, sources)
    return replace(draft, blocks=(*draft.blocks, Block((further,)))) if further else draft


def continuation(
    question: str, claims: Sequence[Claim], evidence: Sequence[Evidence], sources: Sources
) -> Claim | None:
    """The sentence that covers most of what the claims and their sources leave open, and contains a name they introduce."""
    cited = {key for claim in claims for key in claim.cites}
    own = [each for each in evidence if each.key in cited]
    if not own:
        return None
    open_ = {term for word in missing_words(question, own, (), sources.titles) for term in content_terms(word)}
    known = fold_case(question)
    led = [name for claim in claims for name in facts.names(claim.words) if fold_case(name) not in known]
    best: tuple[tuple[int, float], Claim] | None = None
    for each in evidence if open_ and led else ():
        for start, end in split_statements(each.passage.text):
            words = each.passage.text[start:end]
            holds = len(open_ & frozenset(content_terms(words)))
            linked = any(fold_case(name) in fold_case(words) for name in led)
            if holds and linked and each.key not in cited and is_statement(words) and not is_command(words):
                rank = (holds, each.score)
                if best is None or rank > best[0]:
                    best = rank, Claim("", (each.key,), quote=quote(each.passage, start, end))
    return best[1] if best else None
