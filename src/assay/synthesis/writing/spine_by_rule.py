"""The spine by rule: a document by its title and its most telling insight, or several by the words that they share. Each beat
holds against what it cites. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from assay.answer.checking.judge import JUDGE
from assay.core.account import SpineSentence, Theme
from assay.core.types import Claim, Verdict
from assay.language.injection import is_suspicious
from assay.language.sentences import split_sentences
from assay.synthesis.writing import themes
from assay.synthesis.writing.material import Material

FEW = 5  # documents that have a sentence each
LEAST = 3  # sentences of a spine
SHARED = 3  # words that stand for documents which are named together
LISTED = "each of these documents uses these words"
WORDS = 240  # characters of an insight; of what is longer, its first sentence


def write_by_rule(of: Material, parts: Sequence[Theme]) -> tuple[SpineSentence, ...]:
    """The spine without a model; every document that has an insight is named. Where there would be but one sentence, or two,
    some documents have more, so that there is something to tell."""
    if len(parts) == 1 and len(parts[0].documents) < LEAST:
        docs = parts[0].documents
        each = -(-LEAST // len(docs))
        return tuple(
            single_document(of, doc, place) for doc in docs for place in range(min(each, len(of.insights[doc])))
        )
    found = [beat for theme in parts for beat in name_documents(of, theme.documents, few=FEW if len(parts) == 1 else 1)]
    listed = [doc for beat in found if len(beat.documents) > 1 for doc in beat.documents]
    return (*found, *(single_document(of, doc) for doc in listed[: max(0, LEAST - len(found))]))


def name_documents(of: Material, docs: Sequence[str], few: int = FEW) -> tuple[SpineSentence, ...]:
    """Beats that name these documents: one each for few; of more, those together that share a word."""
    if len(docs) <= few:
        return tuple(single_document(of, doc) for doc in docs)
    found: list[SpineSentence] = []
    left = list(docs)
    while len(left) > 1 and (beat := _several_documents(of, left)) is not None:
        found.append(beat)
        left = [doc for doc in left if doc not in beat.documents]
    return (*found, *(single_document(of, doc) for doc in left))


def single_document(of: Material, doc: str, place: int = 0) -> SpineSentence:
    """What one document says, under its title; or, where its title says what nobody can vouch for, its words alone."""
    insight = of.insights[doc][place]
    words = " ".join(insight.claim.words.split())
    if len(words) > WORDS:
        words = words[slice(*split_sentences(words)[0])]
    if called := of.called.get(doc):
        claim = JUDGE.by_rule(Claim(f"“{called}”: {words}", insight.claim.cites), of.evidence, of.sources)
        if claim.verdict is Verdict.supported:
            return SpineSentence(claim, (doc,))
    return SpineSentence(insight.claim, (doc,))


def _several_documents(of: Material, docs: Sequence[str]) -> SpineSentence | None:
    """One line for as many of these documents as use the same words, the rarer elsewhere the better. It states no more than
    that: each word stands in what is cited of each document."""
    where: dict[str, dict[str, str]] = {}  # stem → document → the key that has it
    for doc in (doc for doc in docs if of.called.get(doc) and not is_suspicious(of.called[doc])):
        for insight in of.insights[doc]:
            for key in insight.claim.cites:
                for stem in themes.subject_stems(of.known[key].quote.text):
                    where.setdefault(stem, {}).setdefault(doc, key)
    spread = Counter(stem for doc in of.insights for stem in themes.subject_stems(of.said(doc)))

    def rank(stem: str) -> tuple[float, str]:
        return -(len(where[stem]) ** 2) / max(spread[stem], len(where[stem])), stem

    ranked = sorted((stem for stem in where if len(where[stem]) > 1), key=rank)
    if not ranked:
        return None
    own = tuple(where[ranked[0]])
    alike = [stem for stem in ranked if where[stem].keys() >= set(own)][:SHARED]
    keys = tuple(dict.fromkeys(where[stem][doc] for doc in own for stem in alike))
    words = [themes.spell_stem(stem, [of.known[key].quote.text for key in keys]) for stem in alike]
    names = themes.join_words([f"“{of.called[doc]}”" for doc in own])
    return SpineSentence(Claim(f"{names}: {themes.join_words(words)}.", keys, Verdict.supported, LISTED), own)


def as_claim(of: Material, beat: SpineSentence) -> Claim:
    """A beat as the narrative has it. One that only puts a title before a quotation is that quotation: words of a document stay
    a quotation, and go with it when it is erased."""
    for doc in beat.documents[:1]:
        words = beat.claim.text.removeprefix(f"“{of.called.get(doc, '')}”: ")
        for claim in (insight.claim for insight in of.insights.get(doc, ())):
            if claim.quote and claim.cites == beat.claim.cites and " ".join(claim.words.split()).startswith(words):
                return without_verdict(claim)
    return without_verdict(beat.claim)


def without_verdict(claim: Claim) -> Claim:
    """The claim as a draft has it: what was found of it before is found again when the draft is checked."""
    return replace(claim, verdict=None, why="")
