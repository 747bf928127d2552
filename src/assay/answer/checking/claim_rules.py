"""Rules that decide whether a claim follows from its citations. Thresholds are measured:
docs/decisions/0007-grounding.md. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from assay.answer.checking import facts
from assay.answer.checking.source import Grounding, Source, claim_terms, instruction_terms, missing_terms, share
from assay.answer.evidence_text import Sources
from assay.core.types import Claim, Evidence, Verdict
from assay.language.injection import is_suspicious, note_taint
from assay.language.negation import find_denial, find_reversal, find_unclear_direction
from assay.language.terms import content_terms

HEDGE = "The documents suggest, but do not state, that "

MIN_WORDS = 4  # minimum words of a statement without names or numbers


DEFAULT = Grounding()


def by_rule(
    claim: Claim,
    evidence: Sequence[Evidence],
    sources: Sources | None = None,
    *,
    opinion: bool = False,
    by: Grounding = DEFAULT,
) -> Claim:
    """The claim with its verdict. The reason mentions it if everything cited reads like an instruction to a model."""
    return note_taint(_judge(claim, evidence, sources, opinion=opinion, by=by), evidence)


def _judge(
    claim: Claim,
    evidence: Sequence[Evidence],
    sources: Sources | None,
    *,
    opinion: bool,
    by: Grounding,
) -> Claim:
    """The claim with its verdict. To pass, its keys must be evidence of this run; its numbers, dates and names must
    occur in its citations; its negations and directions must match them; and it must add little wording of its own.
    Opinions and hedged claims need less matching wording."""
    cited = [each for each in evidence if each.key in claim.cites]
    if not claim.cites:
        return replace(claim, verdict=Verdict.uncited, why="it cites nothing")
    if {each.key for each in cited} != set(claim.cites):
        return _unsupported(claim, "it cites evidence that this run did not gather")
    words = claim.text.removeprefix(HEDGE)
    source = Source.of(cited, sources or Sources())
    strange = _missing_facts(words, source.words, evidence)
    if wrong := [each for each in strange if not _counts_citations(each, claim)]:
        return _unsupported(claim, f"“{wrong[0]}” is not in what it cites")
    terms = claim_terms(words)
    if len(terms) + sum(sign.isdigit() for sign in words) < 2:
        return _unsupported(claim, "it says nothing that could be checked")
    if len(words.split()) < MIN_WORDS and not facts.names(words) and not any(sign.isdigit() for sign in words):
        return _unsupported(claim, "it is no statement")
    if words.rstrip(" ”’\"')").endswith(("?", "？")):
        return _unsupported(claim, "it asks, and states nothing")
    if is_suspicious(words):
        return _unsupported(claim, "it reads like an instruction")
    if _is_instructed(missing_terms(terms, source.terms), [each.passage.text for each in evidence]):
        return _unsupported(claim, "a passage tells its reader to say so, and nothing that it cites does")
    whole, hedged = share(terms, source.terms), words != claim.text
    if whole < (by.hedged if hedged else by.least):
        return _unsupported(claim, f"only {whole:.0%} of its words are in what it cites")
    near, aligned = source.nearest(terms, by)
    denied, turned = find_denial(words, aligned), find_reversal(words, aligned)
    if bool(denied) != bool(turned):
        why = f"it says “{turned}” the other way round" if turned else f"one of the two denies “{denied}”"
        return replace(claim, verdict=Verdict.contradicted, why=why)
    if opinion:
        return replace(claim, verdict=Verdict.supported, why="an opinion; the facts in it are in what it cites")
    common = _common_terms(evidence, len(cited)) if len(cited) > 1 else frozenset()
    doubt = _reason_for_doubt(words, source, aligned, near, denied, "".join(strange[:1]), common, by)
    if doubt and any(each.flagged for each in cited):  # no model can settle that
        return _unsupported(claim, f"it rests on a passage that reads like an instruction, and {doubt}")
    if not doubt or hedged:
        return replace(claim, verdict=Verdict.supported, why="its words and facts are in what it cites")
    return replace(claim, verdict=Verdict.partial, why=doubt)


def _reason_for_doubt(
    words: str,
    source: Source,
    aligned: str,
    near: float,
    denied: str,
    counted: str,
    common: frozenset[str],
    by: Grounding,
) -> str:
    """Why the rules leave a claim open; empty if they do not."""
    terms = claim_terms(words)
    if denied:
        return f"it turns “{denied}” round twice"
    if counted:
        return f"“{counted}” is counted, not quoted"
    if source.untied(words, terms, common, by):
        return "each piece says a part of it, and nothing that both name ties them together"
    if near < by.near:
        return f"{near:.0%} of its words are in the sentences it is nearest to"
    if cause := source.unreasoned(words, terms):
        return f"it says “{cause}”, and nothing that it cites says why"
    if source.miscounted(words, terms):
        return "it denies more or less than the sentence that it repeats"
    if pointing := find_unclear_direction(words, aligned):
        return f"what it cites points both ways, and it says “{pointing}”"
    return source.apart(words, terms, near * by.beside)


def _common_terms(evidence: Sequence[Evidence], cited: int) -> frozenset[str]:
    """Words that occur in more pieces of this run's evidence than the claim cites: they do not relate pieces to each
    other."""
    counts = Counter(term for each in evidence for term in _terms(each.passage.text))
    return frozenset(term for term, count in counts.items() if count > cited)


def _missing_facts(words: str, cited: str, evidence: Sequence[Evidence]) -> list[str]:
    """Facts of the claim that are missing from its citations. The rest of the evidence tells names from words that only
    start a sentence; it is read only if needed."""
    if not facts.missing_facts(words, cited):
        return []
    ordinary = frozenset[str]().union(*(_lowercase_stems(each.passage.text) for each in evidence))
    return facts.missing_facts(words, cited, ordinary)


# Cached: every claim of a long text is compared with all evidence, so each passage is read once.
_lowercase_stems = lru_cache(maxsize=4096)(facts.lowercase_stems)


@lru_cache(maxsize=4096)
def _terms(passage: str) -> frozenset[str]:
    return frozenset(content_terms(passage))


def _is_instructed(added: frozenset[str], passages: Iterable[str]) -> bool:
    """Whether what a claim adds to its sources is what some passage instructs a model to say."""
    return bool(added) and any(added <= order for each in passages for order in instruction_terms(each))


def follows_instruction(claim: Claim, evidence: Sequence[Evidence], sources: Sources, passages: Iterable[str]) -> bool:
    """Whether a claim adds something that one of these passages instructs a model to say. A model has read the passage,
    kept as evidence or not, so no model's verdict settles such a claim."""
    source = Source.of([each for each in evidence if each.key in claim.cites], sources)
    return _is_instructed(missing_terms(claim_terms(claim.text.removeprefix(HEDGE)), source.terms), passages)


def _unsupported(claim: Claim, why: str) -> Claim:
    return replace(claim, verdict=Verdict.unsupported, why=why)


def _counts_citations(strange: str, claim: Claim) -> bool:
    """Whether a number merely counts the citations: "Three suppliers …" with three pieces of evidence."""
    (number, *others) = facts.numbers(strange) or [None]
    return number is not None and not others and len(set(claim.cites)) > 1 and len(set(claim.cites)) in number.values
