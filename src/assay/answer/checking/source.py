"""The text a claim cites, and how much of a claim's wording is in it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from assay.answer.evidence_text import Sources
from assay.core.types import Evidence
from assay.language import facts
from assay.language.injection import is_command
from assay.language.sentences import split_sentences
from assay.language.terms import content_terms, stem_word

# Words that say who reports something and how, not what.
REPORTING_STEMS = frozenset(
    stem_word(word)
    for word in (
        "accord also author claim conclude describe document evidence explain find found indicate mention note overall "
        "passage quotation quote report respectively say said show source specifically state stated study suggest text "
        "therefore thus use"
    ).split()
)


def cited_texts(cited: Sequence[Evidence], sources: Sources) -> dict[str, str]:
    """Everything that is shown of each cited passage, by key. Sentences that instruct a model are left out: they are not
    statements of the document."""
    return {each.key: f"{label_of(each, sources)}\n{body_of(each)}" for each in cited}


def label_of(evidence: Evidence, sources: Sources) -> str:
    """Title, headings and date: they say what a passage is about, and state nothing."""
    doc, passage = evidence.passage.doc_id, evidence.passage
    return "\n".join(part for part in (sources.titles.get(doc, ""), passage.above, sources.dates.get(doc, "")) if part)


def body_of(evidence: Evidence) -> str:
    """The passage with the caption, header and units of its table, without sentences that instruct a model."""
    return f"{evidence.passage.context}\n{remove_commands(evidence.passage.text)}".strip()


def remove_commands(passage: str) -> str:
    """A passage without the sentences that instruct a model."""
    if not is_command(passage):
        return passage
    sentences = (passage[slice(*span)] for span in split_sentences(passage))
    return "\n\n".join(sentence for sentence in sentences if not is_command(sentence))


@lru_cache(maxsize=4096)
def instructions_in(passage: str) -> tuple[str, ...]:
    """The sentences that instruct a model."""
    if not is_command(passage):
        return ()
    sentences = (passage[slice(*span)] for span in split_sentences(passage))
    return tuple(sentence for sentence in sentences if is_command(sentence))


@lru_cache(maxsize=4096)
def text_terms(words: str) -> frozenset[str]:
    """The stems of a text."""
    return frozenset(content_terms(words))


@lru_cache(maxsize=4096)
def claim_terms(words: str) -> frozenset[str]:
    """The stems of a claim without reporting words, numbers and dates; numbers and dates are checked separately."""
    return (
        frozenset(term for term in content_terms(facts.remove_numbers_and_dates(words)) if len(term) > 1)
        - REPORTING_STEMS
    )


def missing_terms(terms: frozenset[str], there: frozenset[str]) -> frozenset[str]:
    """The members of `terms` that are missing from `there`."""
    return frozenset(term for term in terms if not _has_term(term, there))


def _has_term(term: str, there: frozenset[str]) -> bool:
    """Also matches other forms: leakage for leaks."""
    if term in there or term.isdigit():
        return term in there
    return len(term) >= 5 and any(
        len(other) >= 4 and (term.startswith(other) or other.startswith(term)) for other in there
    )
