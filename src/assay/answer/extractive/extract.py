"""Extractive answers without a model: sentences verbatim, nothing but quotations. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from assay.answer import polar
from assay.answer.conflicts.pair import MONTHS
from assay.answer.derived import derive
from assay.answer.extractive.selection import (
    Candidate,
    Extraction,
    Field,
    choose,
    clash,
    field,
    in_order,
    with_readings,
)
from assay.answer.polar import Polar
from assay.core.events import Drafted
from assay.core.types import Block, Claim, Conflict, Derivation, Evidence, Quote, Shape
from assay.evidence.weigh import quote
from assay.language.injection import is_command
from assay.language.names import find_names
from assay.language.sentences import is_statement, split_statements
from assay.language.terms import asking_stems, content_terms, fold_case, stem_word
from assay.models.answer_model import Reading

DEFAULT = Extraction()
NEAR = 2  # sentences shown if none is an answer
SENTENCE = re.compile(r"[^\W\d_]\w*(?: [\w’'-]+){2,}[.!]")
BEFORE = 800  # characters before a sentence that may name what it is about
DECIDING = 6  # sentences that may decide a question


def candidates(
    evidence: Sequence[Evidence],
    ties: Sequence[tuple[str, str, str]],
    titles: Mapping[str, str] | None = None,
    by: Extraction = DEFAULT,
    headers: Mapping[str, Sequence[tuple[int, int]]] | None = None,
    plain: Mapping[str, str] | None = None,
) -> list[Candidate]:
    """The sentences of the best passages. `ties` are (passage, passage it was reached from, name); `titles` and
    `headers`, the spans of the headers of tables, by document: a header says nothing. `plain` are titles without what
    else identifies a document: an answer model takes a file name or an organisation for an answer.

    Overlapping passages of a document share sentences; each is kept once, from the passage where it scores best.
    """
    best = best_passages(evidence, by)
    top = max((_worth(each) for each in best), default=0.0) or 1.0
    found: dict[tuple[str, int], Candidate] = {}
    for each in best:
        came = {source: name for passage, source, name in ties if passage == each.passage.id}
        title = (titles or {}).get(each.passage.doc_id, "")
        heading = each.passage.heading
        label = heading if heading.startswith(title) else " › ".join(part for part in (title, heading) if part)
        above = (plain or {}).get(each.passage.doc_id, title)
        read_under = " › ".join(dict.fromkeys(part for part in (above, *heading.split(" › ")) if part))
        opens = each.passage.start == 0
        said = [span for span in split_statements(each.passage.text) if _is_quotable(each.passage.text[slice(*span)])]
        for number, (start, end) in enumerate(said):
            words = quote(each.passage, start, end)
            if any(first <= words.start and words.end <= last for first, last in (headers or {}).get(words.doc_id, ())):
                continue
            before = each.passage.text[max(0, start - BEFORE) : start]
            candidate = Candidate(
                words,
                each.key,
                each.passage.id,
                _worth(each) / top,
                opens and number == 0,
                label,
                before,
                came,
                read_under,
            )
            found.setdefault((words.doc_id, words.start), candidate)
    return list(found.values())


def best_passages(evidence: Sequence[Evidence], by: Extraction = DEFAULT) -> list[Evidence]:
    """The best passages, and the best one of each further document, so that one document does not speak for all."""
    best = list(evidence[: by.passages])
    for each in evidence[by.passages :]:
        if len(best) < by.passages + by.others and each.passage.doc_id not in {one.passage.doc_id for one in best}:
            best.append(each)
    return best


def _worth(evidence: Evidence) -> float:
    """The retrieval score of a passage on its original scale: the score stored on evidence is flat at its upper end."""
    return -math.log(max(1e-4, 1 - evidence.score / 10))


def _is_quotable(sentence: str) -> bool:
    """False for a fragment, and for text that a document addresses to a model: it is never an answer."""
    short = SENTENCE.fullmatch(sentence.strip()) is not None  # "Boats are not allowed."
    return (short or is_statement(sentence)) and not is_command(sentence)


def draft(
    question: str,
    found: Sequence[Candidate],
    vectors: np.ndarray,
    by: Extraction = DEFAULT,
    readings: Mapping[int, Reading] | None = None,
) -> Drafted:
    """The draft: quotations that answer, or the closest ones if they are too weak. A question to decide is decided, or
    not answered.

    `vectors` are those of the question and of each candidate; `readings` what an answer model says of the best ones, by
    place.
    """
    if not found:
        return Drafted((), Shape.list)
    of = field(question, found, vectors, by)
    of = of if readings is None else with_readings(question, of, readings, by)
    chosen = choose(question, of, by)
    near = tuple(_claim(found[place]) for place in chosen[:NEAR])
    if asked := polar.parse(question):
        decided = _decide(question, asked, of, chosen, by)
        return Drafted(decided, Shape.sentence) if decided else Drafted((), Shape.list, near=near)
    if strength(question, of, chosen, by) < 0:
        return Drafted((), Shape.list, near=near)
    ordered = [found[place] for place in chosen] if of.readings else in_order([found[place] for place in chosen])
    claims = tuple(_claim(each) for each in ordered)
    return Drafted(
        (Block(claims),), Shape.list if len(claims) > 1 else Shape.sentence, _conflicts(question, of, chosen)
    )


def _decide(question: str, asked: Polar, of: Field, chosen: Sequence[int], by: Extraction) -> tuple[Block, ...]:
    """The answer to a question to decide, and the sentence that decides it; empty if none does."""
    best = [int(place) for place in np.argsort(-of.score, kind="stable")[:DECIDING]]
    if asked.alternatives:
        for each in asked.alternatives:  # a sentence that answers says one of them
            question = question.replace(each, "")
        for place in best:
            sentence = of.found[place]
            span = polar.chosen_alternative(asked, sentence.quote.text) or _marked_alternative(
                asked, sentence, of, place
            )
            if span and strength(question, of, [place], by) >= 0:
                return _decided(Derivation.choice, sentence, span)
        return ()
    for place in best:
        found = of.found[place]
        if of.readings is not None and of.answers(place) < by.decides:
            continue
        if rule := polar.decide_by_rule(asked, found.quote, found.label, found.before):
            return _decided(rule, found)
    return ()


def _marked_alternative(asked: Polar, sentence: Candidate, of: Field, place: int) -> tuple[int, int] | None:
    """The alternative that the answer model marks in a sentence which has both."""
    reading = (of.readings or {}).get(place)
    start = len(sentence.in_context) - len(sentence.quote.text)
    if reading is None or reading.span[0] < start:
        return None
    first = reading.span[0] - start
    span = polar.chosen_alternative(asked, sentence.quote.text[first : reading.span[1] - start])
    return (first + span[0], first + span[1]) if span else None


def _decided(rule: Derivation, sentence: Candidate, span: tuple[int, int] | None = None) -> tuple[Block, ...]:
    """The decision, and the sentence under it."""
    words = sentence.quote
    if span:
        start, end = words.start + span[0], words.start + span[1]
        operand = Quote(words.doc_id, start, end, words.text[slice(*span)])
    else:
        operand = words
    claim = derive(rule, [operand], [sentence.key], lambda _: None)
    return Block((claim,)), Block((_claim(sentence),))


def require_complete(draft: Drafted, question: str, evidence: Sequence[Evidence], titles: Mapping[str, str]) -> Drafted:
    """The draft if it covers the whole question; otherwise its sentences become the closest quotations. Used after a
    model has tried and failed: a partial answer is then more likely to miss the point."""
    claims = [claim for block in draft.blocks for claim in block.claims]
    if not claims or not missing_words(question, evidence, claims, titles):
        return draft
    return replace(draft, blocks=(), conflicts=(), near=tuple(claims[:NEAR]))


def name_answer(
    question: str,
    found: Sequence[Candidate],
    vectors: np.ndarray,
    readings: Mapping[int, Reading] | None,
    by: Extraction = DEFAULT,
) -> tuple[str, Candidate] | None:
    """The name that answers a question, and the sentence that says it; None if there is none. Needs an answer model,
    which marks the name."""
    if not readings:
        return None
    of = with_readings(question, field(question, found, vectors, by), readings, by)
    best = int(np.argmax(of.score))
    if strength(question, of, [best], by) < 0 or of.readings is None:
        return None
    sentence, known = of.found[best], fold_case(question)
    begins = len(sentence.in_context) - len(sentence.quote.text)
    start, end = (place - begins for place in of.readings[best].span)
    for name in find_names(sentence.quote.text):
        if name.start < end and start < name.end and fold_case(name.text) not in known:
            return name.text, sentence
    return None


def is_called(name: str, noun: str, found: Sequence[Candidate]) -> bool:
    """Whether some sentence, under its title and headings, has the name and what the thing is said to be."""
    wanted = frozenset(content_terms(noun))
    return any(
        fold_case(name) in fold_case(each.in_context) and wanted <= frozenset(content_terms(each.in_context))
        for each in found
    )


def sentence_with(name: str, question: str, evidence: Sequence[Evidence]) -> Claim | None:
    """The quotable sentence of the evidence that has a name and most words of a question."""
    asked = frozenset(content_terms(question))
    best: tuple[int, Claim] | None = None
    for each in evidence:
        for start, end in split_statements(each.passage.text):
            words = each.passage.text[start:end]
            held = len(asked & frozenset(content_terms(words)))
            if fold_case(name) in fold_case(words) and _is_quotable(words) and (best is None or held > best[0]):
                best = held, Claim("", (each.key,), quote=quote(each.passage, start, end))
    return best[1] if best else None


def join_chain(drafted: Drafted, led: Claim | None, name: str, found: Sequence[Candidate]) -> Drafted:
    """The draft of a second question under the sentence that led to it. Its first sentence must be about the name that the
    first question found; otherwise nothing is answered."""
    claims = [claim for block in drafted.blocks for claim in block.claims]
    quoted = next((claim.quote for claim in claims if claim.quote), None)
    label = next((each.label for each in found if each.quote == quoted), "")
    said = _all_terms([label, quoted.text if quoted else ""])
    about = all(_has_term(term, said) for term in content_terms(name))
    if led is None or not quoted or not about:
        return replace(drafted, blocks=(), conflicts=(), near=tuple([led] if led else [])[:NEAR])
    further = () if any(claim.quote == led.quote for claim in claims) else (Block((led,)),)
    return replace(drafted, blocks=(*drafted.blocks, *further), shape=Shape.list)


def _claim(candidate: Candidate) -> Claim:
    return Claim("", (candidate.key,), quote=candidate.quote)


def strength(question: str, of: Field, chosen: Sequence[int], by: Extraction = DEFAULT) -> float:
    """How likely the chosen sentences are an answer, independent of other results: positive if they are.

    Three features: the similarity of the nearest sentence, the share of the question they cover, and whether they
    contain the names in the question.
    """
    if of.readings is not None:
        if missing_names(question, [of.found[place] for place in chosen[:1]]):
            return -1.0
        return max((of.answers(place) for place in chosen), default=0.0) - by.answers
    near = max((float(of.near[place]) for place in chosen), default=0.0)
    return (
        by.bias
        + by.of_nearness * near
        + by.of_words * of.spoken(chosen)
        + by.of_names * named_share(question, [of.found[place] for place in chosen])
    )


def missing_names(question: str, chosen: Sequence[Candidate]) -> list[str]:
    """The months, years and designations of the question that neither the sentences nor their headings contain: a reading
    from March does not answer a question about January. And the names of which the passage, up to the sentence, has no word."""
    said = _all_terms(f"{each.label} {each.quote.text}" for each in chosen)
    around = said | _all_terms(each.before for each in chosen)
    exact = (word for word in question_names(question) if word.lower() in MONTHS or any(map(str.isdigit, word)))
    missing = [word for word in exact if not all(_has_term(term, said) for term in content_terms(word))]
    names = ((name.text, content_terms(name.text)) for name in find_names(question))
    return missing + [name for name, own in names if own and not any(_has_term(term, around) for term in own)]


def named_share(question: str, chosen: Sequence[Candidate]) -> float:
    """The share of the question's names that the chosen sentences contain; 1 if it has none."""
    wanted = [own for name in find_names(question) if (own := frozenset(content_terms(name.text)))]
    said = [frozenset(content_terms(f"{each.label} {each.quote.text}")) for each in chosen]
    shares = [max((len(own & words) / len(own) for words in said), default=0.0) for own in wanted]
    return sum(shares) / len(shares) if shares else 1.0


def _conflicts(question: str, of: Field, chosen: Sequence[int]) -> tuple[Conflict, ...]:
    return tuple(
        Conflict(of.found[one].key, of.found[other].key, about)
        for place, one in enumerate(chosen)
        for other in chosen[place + 1 :]
        if (about := clash(question, of, one, other))
    )


# --- gaps -----------------------------------------------------------------------------------------------------------

WORD = re.compile(r"[^\W_]+(?:[-'’.][^\W_]+)*")
FORM = re.compile(r"(?:ed|ing|ly|est|[gd]er|ier|nger)$")


def missing_words(
    question: str, evidence: Sequence[Evidence], claims: Sequence[Claim] = (), titles: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """What the question mentions and none of the best evidence does: its names, numbers and nouns, not its verbs.

    An answer must meet more: its passages must contain each name of the question, and its sentences (or the headings
    above them) each month, since a reading from March does not answer a question about January.
    """
    cited = [each for each in evidence if any(each.key in claim.cites for claim in claims)]
    above = {each.key: f"{(titles or {}).get(each.passage.doc_id, '')} {each.passage.heading}" for each in evidence}
    found = _all_terms(f"{above[each.key]} {each.passage.text}" for each in evidence[: DEFAULT.passages])
    quoted = _all_terms(f"{above[each.key]} {each.passage.text}" for each in cited) if claims else found
    stated = _all_terms([claim.words for claim in claims] + [above[each.key] for each in cited]) if claims else found
    names = question_names(question)

    def spoken(word: str) -> bool:
        where = stated if word.lower() in MONTHS else quoted if word in names else found
        return any(_has_term(term, where) for term in content_terms(word))

    asked = (word for word in WORD.findall(question) if content_terms(word) and (word in names or _is_searchable(word)))
    return tuple(dict.fromkeys(word for word in asked if not spoken(word)))


def question_names(question: str) -> frozenset[str]:
    """The naming words of the question: names, designations, months and years. Initials do not count, nor does the word
    that only starts the question."""
    words = WORD.findall(question)
    names = {word for name in find_names(question) for word in WORD.findall(name.text)}
    dated = {word for word in words if word[0].isupper() and word.lower() in MONTHS}
    names |= {word for word in words if any(sign.isdigit() for sign in word)} | dated
    names -= {word for word in words[:1] if stem_word(word.lower()) in asking_stems()}
    return frozenset(word for word in names if word[0].isdigit() or (word[0].isupper() and len(word) > 1))


def is_partial(question: str, gaps: Sequence[str]) -> bool:
    """Whether so much is missing that the answer is only partial: anything named, or a quarter of the question."""
    names = question_names(question)
    return any(gap in names for gap in gaps) or len(gaps) * 4 >= max(4, len(set(content_terms(question))))


def _all_terms(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(term for each in texts for term in content_terms(each))


def _is_searchable(word: str) -> bool:
    """Whether the word is worth searching for. Words that end like a verb, an adverb or a comparative only shape the
    question."""
    return len(word) > 1 and stem_word(word.lower()) not in asking_stems() and not FORM.search(word)


def _has_term(term: str, spoken: frozenset[str]) -> bool:
    """Also matches other forms: leakage for leaks."""
    if term in spoken or len(term) < 4 or term.isdigit():
        return term in spoken
    return any(len(other) >= 4 and (term.startswith(other) or other.startswith(term)) for other in spoken)
