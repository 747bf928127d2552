"""Questions without a model: about what a document speaks of, and about what several of them speak of. Pure.

The forms are such that anything may be put into them, one thing or many, and that what comes out stands alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise

from assay.core.account import Pipeline
from assay.core.types import Document
from assay.language.injection import is_suspicious
from assay.language.sentences import split_sentences
from assay.language.terms import content_terms
from assay.synthesis.questioning.standalone import stands_alone
from assay.synthesis.questioning.subjects import (
    ASKS,
    Subject,
    beside,
    body_of,
    own,
    phrases,
    spread,
    subjects,
    with_article,
)

THEME = (
    "What is said about {}?",
    "What was found or decided about {}?",
    "What is the background to {}?",
    "Which facts and figures are given for {}?",
    "Which aims and methods are named for {}?",
)
WORKINGS = (
    "Which steps or rules apply to {}?",
    "Which choices were made about {}, and for what reasons?",
    "What influences {}, and in what way?",
    "Which consequences are named for {}?",
    "What explains {}?",
)
PART = "What part does {} play, and why?"  # for something that has a name
CONNECTED = "How are {} and {} connected?"
FOLLOW_UP = ("What is said about {}?", "Which details are given on {}?", "What is reported on {}?")
SENTENCES = 40  # of a document, that a question may be in the words of
CLAUSE = re.compile(r"[^,;:.!?…،؛؟。，、；：！？\n]{4,120}")
COMPARED = (
    "Where do statements about {} agree, and where do they differ?",
    "How do the facts and figures given for {} compare?",
    "How do accounts of {} complete or contradict each other?",
    "How do the rules and methods described for {} compare?",
    "Which explanations given for {} are shared, and which are not?",
)


def document_questions(
    document: Document, others: Sequence[str], pipeline: Pipeline, focus: str, count: int, known: Sequence[str] = ()
) -> tuple[str, ...]:
    """So many questions about a document, different from each other and from those `known`; where there is a focus, it is the
    first of them, and what the document says beside it comes next."""
    asked = _questions_about(subjects(document, others), pipeline)
    if focus:
        near = () if _is_question(focus) else beside(focus, document, others)
        joined = (CONNECTED.format(each.words, focus.strip(" .")) for each in near)
        asked = chain((as_question(focus),), joined, asked)
    return _first_usable(asked, count, known) or _first_usable(_from_sentences(document), count, known)


def _from_sentences(document: Document) -> Iterator[str]:
    """Where no name and no term can be told apart, as in a script that puts no space between words: the beginnings of its
    sentences. So every document that can be read is asked about."""
    body = body_of(document)
    for span in split_sentences(body)[:SENTENCES]:
        words = CLAUSE.match(body[slice(*span)])
        if words and not is_suspicious(body[slice(*span)]):
            yield THEME[0].format(words[0].strip())


def follow_ups(
    sentences: Sequence[str], body: str, others: Sequence[str], count: int, known: Sequence[str]
) -> tuple[str, ...]:
    """So many questions that these sentences of a text answer: each about what one of them speaks of and the other documents
    do not."""
    common = spread(others)
    found = [things for sentence in sentences if (things := _distinct_subjects(sentence, body, common, len(others)))]
    found.sort(key=lambda things: " and " not in things)  # two things lead to their sentence, one may lead anywhere
    return _first_usable((form.format(things) for form in FOLLOW_UP for things in found), count, known)


def comparative_questions(abstracts: Sequence[str], count: int, known: Sequence[str] = ()) -> tuple[str, ...]:
    """So many questions about what most documents speak of; where they share too little, about what one and another do."""
    body = "\n".join(abstracts)
    found = [phrases(words, 1, body) for words in abstracts]
    held = Counter(key for each in found for key in each)
    spelled = {key: with_article(form, body) for each in reversed(found) for key, (form, _) in each.items()}
    shared: list[str] = []
    used: set[str] = set()
    said = Counter({key: sum(each[key][1] for each in found if key in each) for key in held})
    for key in sorted(held, key=lambda key: (-held[key] - 0.5 * len(key), -said[key], key)):
        if held[key] > 1 and not used & set(key):
            shared.append(spelled[key])
            used |= set(key)
    alone = [spelled[max(each, key=lambda key: (each[key][1] + 0.5 * len(key), key))] for each in found if each]
    asked = [COMPARED[place % len(COMPARED)].format(words) for place, words in enumerate(shared)]
    asked += [CONNECTED.format(left, right) for left, right in pairwise(alone) if left != right]
    asked += [form.format(words) for form in COMPARED for words in dict.fromkeys((*shared, *alone))]
    return _first_usable(asked, count, known)


def as_question(focus: str) -> str:
    """What the reader wants to know, as a question."""
    focus = " ".join(focus.split())
    return f"{focus.rstrip('?. ')}?" if _is_question(focus) else f"What is said about {focus.rstrip('. ')}?"


@lru_cache(maxsize=1 << 14)  # each question is held against all others
def question_key(question: str) -> tuple[str, ...]:
    """What makes two questions the same, however they are spelled: their words of meaning, in any order."""
    return tuple(sorted(set(content_terms(question))))


def _is_question(focus: str) -> bool:
    return focus.rstrip().endswith("?") or ASKS.match(focus.lstrip()) is not None


def _questions_about(found: Sequence[Subject], pipeline: Pipeline) -> Iterator[str]:
    forms = WORKINGS if pipeline is Pipeline.synthesis else THEME
    plain = [each for each in found if not each.asks]
    for each in found:  # the same thing is asked about in the same words, whichever document speaks of it
        yield each.asks or _form(each.words, forms).format(each.words)
    if pipeline is Pipeline.synthesis:
        yield from (CONNECTED.format(left.words, right.words) for left, right in pairwise(plain))
    yield from (form.format(each.words) for form in (*forms, *THEME, *WORKINGS) for each in plain)


def _form(words: str, forms: Sequence[str]) -> str:
    if forms is WORKINGS and words[0].isupper() and " and " not in words:
        return PART
    return forms[len(words) % 2]


def _distinct_subjects(sentence: str, body: str, common: Mapping[str, int], count: int) -> str:
    """The two things that a sentence speaks of and the other documents speak of least."""
    found = phrases(sentence, 1, body)
    chosen: list[str] = []
    used: set[str] = set()
    for key in sorted(found, key=lambda key: (-own(key, common, count) * len(key), key)):
        if len(chosen) < 2 and not used & set(key):
            chosen.append(found[key][0])
            used |= set(key)
    return " and ".join(with_article(words, sentence) for words in sorted(chosen, key=sentence.find))


def _first_usable(asked: Iterable[str], count: int, known: Sequence[str]) -> tuple[str, ...]:
    """The first so many that stand alone, each once."""
    seen = {question_key(each) for each in known}
    chosen: list[str] = []
    for question in asked:
        if len(chosen) == count:
            break
        if (key := question_key(question)) not in seen and stands_alone(question):
            chosen.append(question)
            seen.add(key)
    return tuple(chosen)
