"""The spine by rule: one document by its title and best insight, or several by the words they share. Each beat is
verified against its citations. Pure."""

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

FEW = 5  # up to this many documents, each gets its own sentence
LEAST = 3  # minimum sentences of a spine
SHARED = 3  # words that represent documents named together
WORDS = 240  # maximum characters of an insight; a longer one is cut to its first sentence


def write_by_rule(of: Material, parts: Sequence[Theme]) -> tuple[SpineSentence, ...]:
    """The spine without a model. Every document with an insight is named. With fewer than three documents, some get
    several sentences, so that the spine has at least `LEAST`."""
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
    """Beats that name these documents: one each if there are few; otherwise those that share a word are named
    together."""
    if len(docs) <= few:
        return tuple(single_document(of, doc) for doc in docs)
    found: list[SpineSentence] = []
    left = list(docs)
    while len(left) > 1 and (beat := _several_documents(of, left)) is not None:
        found.append(beat)
        left = [doc for doc in left if doc not in beat.documents]
    return (*found, *(single_document(of, doc) for doc in left))


def single_document(of: Material, doc: str, place: int = 0) -> SpineSentence:
    """The insight of one document, prefixed with its title; without the title if the prefixed sentence is not
    supported."""
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
    """One sentence for as many of these documents as share words, preferring words that are rare elsewhere. It
    states only that: each word occurs in the cited evidence of each document."""
    where: dict[str, dict[str, str]] = {}  # stem → document → key of the evidence that contains it
    for doc in (doc for doc in docs if of.called.get(doc) and not is_suspicious(of.called[doc])):
        for insight in of.insights[doc]:
            for key in insight.claim.cites:
                for stem in themes.subject_stems(of.known[key].quote.text):
                    where.setdefault(stem, {}).setdefault(doc, key)
    spread = Counter(stem for doc in of.insights for stem in themes.subject_stems(of.words(doc)))

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
    why = "each of these documents uses these words"
    return SpineSentence(Claim(f"{names}: {themes.join_words(words)}.", keys, Verdict.supported, why), own, lists=True)


def as_claim(of: Material, beat: SpineSentence) -> Claim:
    """A beat as a claim of the narrative. A beat that only prefixes a quotation with a title becomes that quotation,
    so that a document's words stay a quotation and are erased with the document."""
    for doc in beat.documents[:1]:
        words = beat.claim.text.removeprefix(f"“{of.called.get(doc, '')}”: ")
        for claim in (insight.claim for insight in of.insights.get(doc, ())):
            if claim.quote and claim.cites == beat.claim.cites and " ".join(claim.words.split()).startswith(words):
                return without_verdict(claim)
    return without_verdict(beat.claim)


def without_verdict(claim: Claim) -> Claim:
    """The claim as in a draft: its earlier verdict is removed, since drafts are checked again."""
    return replace(claim, verdict=None, why="")
