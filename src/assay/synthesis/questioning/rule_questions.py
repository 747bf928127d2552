"""Questions without a model: about the subjects of one document, and about subjects that several share. Pure.

The templates accept any subject, singular or plural, and yield self-contained questions.
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
PART = "What part does {} play, and why?"  # for a named thing
CONNECTED = "How are {} and {} connected?"
FOLLOW_UP = ("What is said about {}?", "Which details are given on {}?", "What is reported on {}?")
SENTENCES = 40  # sentences of a document from which a question may take its words
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
    """Up to `count` questions about a document, distinct from each other and from `known`. If there is a focus, it
    comes first, followed by subjects that the document mentions together with it."""
    asked = _questions_about(subjects(document, others), pipeline)
    if focus:
        near = () if _is_question(focus) else beside(focus, document, others)
        joined = (CONNECTED.format(each.words, focus.strip(" .")) for each in near)
        asked = chain((as_question(focus),), joined, asked)
    return _first_usable(asked, count, known) or _first_usable(_from_sentences(document), count, known)


def _from_sentences(document: Document) -> Iterator[str]:
    """Questions from the beginnings of sentences, for text in which no names or terms are recognised, such as
    scripts without spaces. So every readable document gets questions."""
    body = body_of(document)
    for span in split_sentences(body)[:SENTENCES]:
        words = CLAUSE.match(body[slice(*span)])
        if words and not is_suspicious(body[slice(*span)]):
            yield THEME[0].format(words[0].strip())


def follow_ups(
    sentences: Sequence[str], body: str, others: Sequence[str], count: int, known: Sequence[str]
) -> tuple[str, ...]:
    """Up to `count` questions that these sentences answer, each about what one sentence mentions and the other
    documents do not."""
    common = spread(others)
    found = [things for sentence in sentences if (things := _distinct_subjects(sentence, body, common, len(others)))]
    found.sort(key=lambda things: " and " not in things)  # two subjects lead to their sentence, one may lead anywhere
    return _first_usable((form.format(things) for form in FOLLOW_UP for things in found), count, known)


def comparative_questions(abstracts: Sequence[str], count: int, known: Sequence[str] = ()) -> tuple[str, ...]:
    """Up to `count` questions about subjects that most documents share; if they share too little, about subjects of
    two documents."""
    body = "\n".join(abstracts)
    found = [phrases(words, 1, body) for words in abstracts]
    held = Counter(key for each in found for key in each)
    spelled = {key: with_article(form, body) for each in reversed(found) for key, (form, _) in each.items()}
    shared: list[str] = []
    used: set[str] = set()
    mentions = Counter({key: sum(each[key][1] for each in found if key in each) for key in held})
    for key in sorted(held, key=lambda key: (-held[key] - 0.5 * len(key), -mentions[key], key)):
        if held[key] > 1 and not used & set(key):
            shared.append(spelled[key])
            used |= set(key)
    alone = [spelled[max(each, key=lambda key: (each[key][1] + 0.5 * len(key), key))] for each in found if each]
    asked = [COMPARED[place % len(COMPARED)].format(words) for place, words in enumerate(shared)]
    asked += [CONNECTED.format(left, right) for left, right in pairwise(alone) if left != right]
    asked += [form.format(words) for form in COMPARED for words in dict.fromkeys((*shared, *alone))]
    return _first_usable(asked, count, known)


def as_question(focus: str) -> str:
    """The reader's focus as a question."""
    focus = " ".join(focus.split())
    return f"{focus.rstrip('?. ')}?" if _is_question(focus) else f"What is said about {focus.rstrip('. ')}?"


@lru_cache(maxsize=1 << 14)  # each question is compared with all others
def question_key(question: str) -> tuple[str, ...]:
    """A key that is equal for questions that differ only in spelling or order: their content words."""
    return tuple(sorted(set(content_terms(question))))


def _is_question(focus: str) -> bool:
    return focus.rstrip().endswith("?") or ASKS.match(focus.lstrip()) is not None


def _questions_about(found: Sequence[Subject], pipeline: Pipeline) -> Iterator[str]:
    forms = WORKINGS if pipeline is Pipeline.synthesis else THEME
    plain = [each for each in found if not each.asks]
    for each in found:  # the same subject is always asked about in the same words, whichever document mentions it
        yield each.asks or _form(each.words, forms).format(each.words)
    if pipeline is Pipeline.synthesis:
        yield from (CONNECTED.format(left.words, right.words) for left, right in pairwise(plain))
    yield from (form.format(each.words) for form in (*forms, *THEME, *WORKINGS) for each in plain)


def _form(words: str, forms: Sequence[str]) -> str:
    if forms is WORKINGS and words[0].isupper() and " and " not in words:
        return PART
    return forms[len(words) % 2]


def _distinct_subjects(sentence: str, body: str, common: Mapping[str, int], count: int) -> str:
    """The two subjects of a sentence that the other documents mention least."""
    found = phrases(sentence, 1, body)
    subjects: list[str] = []
    used: set[str] = set()
    for key in sorted(found, key=lambda key: (-own(key, common, count) * len(key), key)):
        if len(subjects) < 2 and not used & set(key):
            subjects.append(found[key][0])
            used |= set(key)
    return " and ".join(with_article(words, sentence) for words in sorted(subjects, key=sentence.find))


def _first_usable(asked: Iterable[str], count: int, known: Sequence[str]) -> tuple[str, ...]:
    """The first `count` self-contained questions, without duplicates."""
    seen = {question_key(each) for each in known}
    selected: list[str] = []
    for question in asked:
        if len(selected) == count:
            break
        if (key := question_key(question)) not in seen and stands_alone(question):
            selected.append(question)
            seen.add(key)
    return tuple(selected)
