"""What rules find between documents: sentences that contradict each other. Both are quoted; nothing is said in their place."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations

import numpy as np

from assay.agent.context import RunContext
from assay.core.events import Event, Gathered, InsightsDrawn, Paired, Related
from assay.core.events.describe import count_of
from assay.core.run import Run
from assay.core.synthesis import Insight, Relation, RelationSide, RelationType
from assay.core.types import Claim, Document, Evidence, Quote, Verdict
from assay.language.disputes import ALIKE, Dispute, Statement, between
from assay.language.injection import is_suspicious
from assay.language.quotation import lies_in, stands
from assay.language.sentences import split_sentences
from assay.language.terms import content_terms, fold_case, stem_word
from assay.synthesis import state
from assay.synthesis.key_sentences import is_sentence
from assay.synthesis.read import SCORE, readable


async def compare(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Yield the contradictions, with both sentences as evidence and insights, and what was compared, in words."""
    documents = [found for doc in readable(run) if (found := context.document(doc)) is not None]
    found, how = await contradictions(context, documents)
    book = _Book(run, {each.id: each for each in documents})
    relations: list[Relation] = []
    for each in found:
        left, right = [await book.side(context, words) for words in (each.left, each.right)]
        if left is not None and right is not None:
            reason = contradiction_reason(each, state.labels(run), book.documents)
            relations.append(Relation(left, right, RelationType.contradiction, reason, about=each.about))
    for event in state.unrecorded(run, (*book.events(), Related(0, tuple(relations)))):
        yield event
    yield Paired((), how)


class _Book:
    """What the comparison adds to the run: evidence, and insights for sentences that were not noted yet."""

    def __init__(self, run: Run, documents: Mapping[str, Document]):
        self.run = run
        self.documents = documents
        self.points = list(state.points(run))
        self.known = {each.key: each for each in run.evidence}
        self.passages = [each.passage for each in run.found]
        self.evidence: dict[str, Evidence] = {}
        self.drawn: dict[str, list[Insight]] = {}

    async def place(self, context: RunContext, words: Quote) -> str:
        """The key of a passage that has these words, as evidence of this run; empty if there is none."""
        passage = next((each for each in self.passages if lies_in(words, each)), None)
        if passage is None:
            hits = await context.tool_context.passages(words.doc_id)
            passage = next((hit.passage for hit in hits if lies_in(words, hit.passage)), None)
        if passage is None or not stands(words, self.documents[words.doc_id]):
            return ""
        key = state.evidence_key(passage)
        if key not in self.known:
            flagged = is_suspicious(passage.text)
            self.evidence.setdefault(key, Evidence(key, passage, words, SCORE, "", flagged=flagged))
        return key

    async def side(self, context: RunContext, words: Quote) -> RelationSide | None:
        """A sentence as a side of a relation: with the insight that quotes it; if there is none, one is drawn."""
        key = await self.place(context, words)
        if not key:
            return None
        own = [each for each in self.points if each.doc_id == words.doc_id]
        quoting = (each for each in own if (q := each.claim.quote) and q.start <= words.start < words.end <= q.end)
        insight = next(quoting, None)
        if insight is None:
            label = state.labels(self.run)[words.doc_id]
            claim = Claim("", (key,), Verdict.supported, "found word for word in the document", words)
            insight = Insight(f"{label}-{len(own) + 1}", "", words.doc_id, claim)
            self.points.append(insight)
            self.drawn.setdefault(words.doc_id, []).append(insight)
        return RelationSide(insight.id, words.doc_id, key, words)

    def events(self) -> list[Event]:
        gathered = [Gathered(tuple(self.evidence.values()))] if self.evidence else []
        return [*gathered, *(InsightsDrawn("", tuple(own), doc_id=doc) for doc, own in self.drawn.items())]


def contradiction_reason(
    found: Contradiction, labels: Mapping[str, str], documents: Mapping[str, Document] | None = None
) -> str:
    """What two sentences disagree about, in the words that they share, and of when the documents are."""
    dated = {doc: f" ({own.date})" for doc, own in (documents or {}).items() if own.date}
    ours, theirs = (f"{labels[each.doc_id]}{dated.get(each.doc_id, '')}" for each in (found.left, found.right))
    mine, parted, other = found.about.partition(" / ")
    if not parted:
        return f"One of {ours} and {theirs} denies what the other says."
    words = shared_words(found.left.text, found.right.text, found.about)
    return f"{f'“{words}”: ' if words else ''}{ours} says {mine}, {theirs} says {other}."


def shared_words(left: str, right: str, values: str) -> str:
    """The words of the one sentence that the other has too, in order and without the values; empty if they are too few."""
    given = frozenset(fold_case(values).split())
    ours, theirs = (re.findall(r"[^\W_]+(?:['’.,-][^\W_]+)*", each) for each in (left, right))
    alike = SequenceMatcher(None, [*map(fold_case, ours)], [*map(fold_case, theirs)], autojunk=False)
    runs: list[list[str]] = []
    end = -1
    for at, _, size in alike.get_matching_blocks():
        words = [word for word in ours[at : at + size] if fold_case(word) not in given]
        if at == end and runs:
            runs[-1] += words
        else:
            runs.append(words)
        end = at + size
    told = " … ".join(" ".join(run) for run in runs if content_terms(" ".join(run)))
    return told if len(content_terms(told)) > 1 else ""


# --- contradictions --------------------------------------------------------------------------------------------------
# Sentences of different documents that are similar in meaning and differ in a number, a date or a name.

OF_ONE, OF_ALL = 40, 4000  # sentences to compare, per document and in total
LONGEST = 40  # maximum words of such a sentence
NEAR = 0.6  # cosine similarity
MOST, OF_PAIR = 24, 3  # contradictions, in all and of two documents
MOULD = 0.6  # share of the smaller passage's words above which two passages follow one template
BESIDE, COMPARED = 3, 2000  # candidate pairs, per sentence and in total
SHARED = 3  # words that sentences which count the same thing have in common
COUNTED = re.compile(r"\d ([^\W\d_]++)")  # what a sentence counts: the word behind a number
CITED = re.compile(r"\[\d{1,3}(?:[,–\s-]+\d{1,3})*\]")  # the number of a reference
BLOCK = 512  # sentences compared with all others at a time


@dataclass(frozen=True, slots=True)
class DisputableSentence:
    """A sentence that could be disputed, and where it stands."""

    quote: Quote
    statement: Statement
    around: str


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two sentences of different documents, and what they disagree about: "30 days / 90 days", or a negated word."""

    left: Quote
    right: Quote
    about: str


async def contradictions(context: RunContext, documents: Sequence[Document]) -> tuple[list[Contradiction], str]:
    """The clearest contradictions, at most `OF_PAIR` for two documents, and what was compared, in words."""
    if len(documents) < 2:
        return [], "Nothing was compared: fewer than two documents could be read."
    each = max(6, min(OF_ONE, OF_ALL // len(documents)))
    sentences = [one for document in documents for one in disputable_sentences(document, each)]
    owners = [one.quote.doc_id for one in sentences]
    pairs: list[tuple[int, int, float]] = []
    if len(set(owners)) > 1:
        search_context = context.tool_context.search_context
        pairs += nearest(owners, await search_context.embedder.queries([one.statement.words for one in sentences]))
        pairs += same_measure(sentences, {pair[:2] for pair in pairs})
    found = await asyncio.to_thread(lambda: list(_disputes(sentences, pairs)))
    kept: list[Contradiction] = []
    couples: Counter[frozenset[str]] = Counter()
    for left, right, dispute in sorted(found, key=lambda one: -one[2].weight):
        couple = frozenset((left.quote.doc_id, right.quote.doc_id))
        told = {quote for one in kept for quote in (one.left, one.right)}
        if couples[couple] < OF_PAIR and not told & {left.quote, right.quote}:
            couples[couple] += 1
            kept.append(Contradiction(left.quote, right.quote, dispute.about))
    kept = kept[:MOST]
    return kept, (
        f"{len(sentences):,} sentences of {len(documents):,} documents that have a figure or a date were held against each "
        f"other by rule: {count_of(len(pairs), 'pair')} near in meaning, {len(kept):,} of them in contradiction."
    )


def disputable_sentences(document: Document, most: int) -> list[DisputableSentence]:
    """Sentences that contain a quantity or a date, sampled evenly over a long document."""
    title = fold_case(document.text[:200]).split("\n")[0]  # the title in the text itself, whatever label is stored
    found = [
        DisputableSentence(
            Quote(document.id, start, end, words),
            Statement(" ".join(CITED.sub("", words).split()), "", title),
            document.text[max(0, start - 400) : end + 400],
        )
        for start, end in split_sentences(document.text)
        if _disputable(words := document.text[start:end])
    ]
    step = max(1.0, len(found) / most)
    return [found[int(place * step)] for place in range(min(most, len(found)))]


def _disputable(words: str) -> bool:
    """Whether this is a short sentence with a figure, beside the numbers of references."""
    return len(words.split()) <= LONGEST and is_sentence(words) and re.search(r"\d", CITED.sub("", words)) is not None


def _disputes(
    sentences: Sequence[DisputableSentence], pairs: Sequence[tuple[int, int, float]]
) -> Iterable[tuple[DisputableSentence, DisputableSentence, Dispute]]:
    for one, other, alike in pairs:
        found = between(sentences[one].statement, sentences[other].statement, alike)
        if found is not None and not are_same_template(sentences[one].around, sentences[other].around):
            yield sentences[one], sentences[other], found


def nearest(owners: Sequence[str], vectors: np.ndarray) -> list[tuple[int, int, float]]:
    """Each sentence with the few most similar ones of other documents, most similar pairs first. The number of pairs
    is capped at about a minute of work, however similar the documents are."""
    number = {owner: place for place, owner in enumerate(dict.fromkeys(owners))}
    own = np.array([number[owner] for owner in owners])
    pairs: dict[tuple[int, int], float] = {}
    for at in range(0, len(own), BLOCK):
        alike = vectors[at : at + BLOCK] @ vectors.T
        alike[own[at : at + BLOCK, None] == own[None, :]] = -1.0
        few = min(BESIDE, alike.shape[1] - 1)
        best = np.argpartition(-alike, few, axis=1)[:, : few + 1]
        for row, columns in enumerate(best):
            for column in columns:
                if (near := float(alike[row, column])) >= NEAR:
                    pairs[(min(at + row, int(column)), max(at + row, int(column)))] = near
    ranked = sorted(pairs.items(), key=lambda pair: (-pair[1], pair[0]))[:COMPARED]
    return [(one, other, near) for (one, other), near in ranked]


def same_measure(
    sentences: Sequence[DisputableSentence], known: Collection[tuple[int, int]]
) -> list[tuple[int, int, float]]:
    """Further pairs: sentences of two documents that count the same thing in mostly different words."""
    by_unit: dict[str, list[int]] = {}
    for place, one in enumerate(sentences):
        for unit in {stem_word(each) for each in COUNTED.findall(fold_case(one.statement.words))}:
            by_unit.setdefault(unit, []).append(place)
    terms = [frozenset(content_terms(one.statement.words)) for one in sentences]
    found = {
        (one, other): len(terms[one] & terms[other])
        for places in by_unit.values()
        for one, other in combinations(places, 2)
        if sentences[one].quote.doc_id != sentences[other].quote.doc_id and (one, other) not in known
    }
    ranked = sorted((pair for pair, shared in found.items() if shared >= SHARED), key=lambda pair: (-found[pair], pair))
    return [(one, other, ALIKE) for one, other in ranked[:COMPARED]]


def are_same_template(ours: str, theirs: str) -> bool:
    """Whether two passages are nearly the same throughout. Then a difference may be due to their subject (two towns,
    each with its census). Independently written texts that share one sentence are about the same thing there."""
    mine, other = frozenset(content_terms(ours)), frozenset(content_terms(theirs))
    return len(mine & other) > MOULD * max(1, min(len(mine), len(other)))
