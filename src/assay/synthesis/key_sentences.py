"""The sentences that stand for a document: an abstract where it has none, and key sentences for a digest without a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from assay.agent.context import RunContext
from assay.answer.weigh import quote
from assay.core.types import Document, Passage, Quote
from assay.language.injection import is_command, is_suspicious
from assay.language.sentences import (
    Span,
    is_statement,
    is_table_row,
    is_unspaced_script,
    split_sentences,
    split_statements,
)
from assay.language.terms import fold_case, stop_words

EMBEDDED = 60  # sentences per document that are embedded, however long it is
OPENING, SECTION, CLOSING = 6000, 700, 2500  # characters read of a long document: at the start, per section, at the end
WHOLE = 20_000  # characters up to which a document is read completely
SECTIONS = 60  # sections read of a long document, spread evenly
FEWEST, MOST = 3, 5  # sentences that stand for a document
LONGEST = 420  # maximum characters of a sentence
LENGTH = 900  # characters after which no further sentence is added
ALIKE = 0.85  # similarity from which two sentences say the same
SAME_SECTION = 0.1  # penalty for each sentence already taken from the same section
ROWS = 3  # rows quoted of a document that is only a table

BOILERPLATE = re.compile(
    r"©|\(c\) ?\d{4}|\bcopyright\b|\ball rights reserved\b|\blicen[cs]ed? under\b|\bdoi:|\bdoi\.org\b|https?://|www\."
    r"|(?<![\w.+-])[\w.+-]++@[\w-]+\.\w|\bISSN\b|\bISBN\b|\barxiv:|\bcookies?\b|\bprivacy policy\b|\bterms of (?:use|service)\b"
    r"|\bsubscribe\b|\bclick (?:here|on|the)\b|\bsign up\b|\bnewsletter\b|\bdownloaded from\b|\[ ?edit ?\]"
    r"|^(?:figure|fig\.|table|page|keywords?|key words|cc|from|to|subject|date|sent|dear|best regards|kind regards)\b[\s:]"
    r"|^(?:notes?:|present:|see also\b|\[\d+\] ?[A-Z]|attachment\b)|\bcorresponding author\b|\bet al\.,? ?\(?\d{4}\)?\.?$"
    r"|\bthe authors declare\b|\bconflicts? of interest\b|(?:^|\n)>",
    re.I,
)
ASIDE = re.compile(
    r"\b(?:references|bibliography|acknowledge?ments?|literature|contents|index|author contributions|funding|imprint"
    r"|declarations?|further reading|external links|see also|works cited|competing interests)\b\W*$",
    re.I,
)
BULLETS = "•‣▪-*–"
DANGLING = re.compile(
    r"^(?:it|its|they|their|he|she|his|her|we both|this(?! \w+ (?:says?|explains?|describes?|covers?|report|paper))|that|these"
    r"|those|such|there|here|however|but|and|or|so|then|thus|therefore|moreover|furthermore|also|still|yet|instead|otherwise"
    r"|both|neither|the (?:latter|former|same|other|second|third))\b"
    r"|^(?:\w+ ){1,4}(?:it|its|they|their|them|this|these)\b(?! \w+ (?:that|which))",
    re.I,
)
ADDRESSES = re.compile(
    r"^(?:please|you|your|if you|use|see|call|ask|thank)\b|\bplease\b|\b(?:ask|tell|remind) you\b"
    r"|^the (?:table|figure|list|appendix)\b|\bminutes\b.* approved\b",
    re.I,
)
ENDS = re.compile(r"[.!?…。！？][\"'”’»)\]]*(?:\s?\[[\d,–\- ]+\])*$")
NUMBERED = re.compile(r"(?:\d{1,9}(?:\.\d{1,9}){1,9}+\.?|\d{1,9}[.)]|\(?[a-z]\)|[-*•–])\s+(?=\S)")


def _quote(document: Document, start: int, end: int) -> Quote:
    return Quote(document.id, start, end, document.text[start:end])


def own_abstract(document: Document) -> tuple[Quote, ...]:
    """The document's own abstract, verbatim; if part of it addresses a model, the sentences without that part."""
    if document.abstract is None:
        return ()
    start, end = document.abstract
    words = document.text[start:end]
    if not words.strip():
        return ()
    if not is_suspicious(words):
        return (_quote(document, start, end),)
    spans = ((start + left, start + right) for left, right in split_sentences(words))
    return tuple(_quote(document, *span) for span in spans if not is_suspicious(document.text[slice(*span)]))


# --- candidates -----------------------------------------------------------------------------------------------------


def candidates(document: Document) -> tuple[Span, ...]:
    """The sentences that could be in an abstract, in reading order: at most `EMBEDDED`, from the opening, the
    beginnings of sections and the end. If there are none, informative fragments; for a table, some of its rows."""
    spans = [span for stretch in _stretches(document) for span in _sentences(document, stretch)]
    unlike = _distinct(document, spans)
    whole = [span for span in unlike if is_sentence(document.text[slice(*span)])]
    if whole:
        return tuple(_sample(document, whole))
    loose = [span for span in unlike if _is_informative(document.text[slice(*span)])]
    rows = [span for span in loose if is_table_row(document.text[slice(*span)])]
    return tuple(spread(rows, ROWS) if rows else loose[:EMBEDDED])


def stands_alone(words: str) -> bool:
    """Whether these words are a sentence that needs no other: no item of a list, and no pronoun without its noun."""
    return words[:1] not in BULLETS and is_sentence(words) and not DANGLING.match(words)


def is_sentence(words: str) -> bool:
    """Whether this is a self-contained sentence: not a heading, row, imprint, fragment or line of names and dates."""
    if not ENDS.search(words) or not _is_informative(words) or is_table_row(words) or len(words) > LONGEST:
        return False
    if words[0].islower() or sum(sign.isalpha() or sign.isspace() for sign in words) < 0.75 * len(words):
        return False
    meant = [word for word in re.findall(r"[^\W_]+", words) if word.lower() not in stop_words()]
    named = sum(word[0].isupper() or word[0].isdigit() for word in meant)
    return is_unspaced_script(words) or (len(meant) >= 3 and named < 0.7 * len(meant))


def _is_informative(words: str) -> bool:
    return is_statement(words) and not is_suspicious(words) and not BOILERPLATE.search(words)


def _stretches(document: Document) -> Iterator[Span]:
    """The ranges of a document that are read: all of it, or its opening, the beginning of each section, and its end."""
    length = len(document.text)
    if length <= WHOLE:
        yield 0, length
        return
    reached = _line_end(document.text, OPENING)
    yield 0, reached
    every = max(1, -(-len(document.sections) // SECTIONS))
    closing = document.text.find("\n", length - CLOSING)
    closing = closing if closing >= 0 else length
    for section in document.sections[::every]:
        end = min(_line_end(document.text, section.end + SECTION), closing)
        if section.end >= reached and section.end < end:
            yield section.end, end
            reached = end
    yield max(reached, closing), length


def _line_end(body: str, at: int) -> int:
    """The end of the line at this position, or of the sentence if the line is long."""
    line = body.find("\n", at, at + 2000)
    return line if line >= 0 else min(len(body), at)


def _sentences(document: Document, stretch: Span) -> Iterator[Span]:
    start, end = stretch
    headings = {(section.start, section.end) for section in document.sections}
    for left, right in split_statements(document.text[start:end]):
        number = NUMBERED.match(document.text, start + left, start + right)
        span = number.end() if number else start + left, start + right
        if span not in headings and not ASIDE.search(document.heading_at(span[0])):
            yield span


def _distinct(document: Document, spans: Sequence[Span]) -> list[Span]:
    """The spans without repeated wordings: running heads and repeated notices count once."""
    first: dict[str, Span] = {}
    for span in spans:
        first.setdefault(" ".join(fold_case(document.text[slice(*span)]).split()), span)
    return list(first.values())


def _sample(document: Document, spans: list[Span]) -> list[Span]:
    if len(spans) <= EMBEDDED:
        return spans
    heads = [section.end for section in document.sections]
    openers: list[Span] = []
    at = 0
    for head in heads:
        while at < len(spans) and spans[at][0] < head:
            at += 1
        openers += spans[at : at + 1]
    opening, closing = spans[: EMBEDDED * 2 // 5], spans[-EMBEDDED // 5 :]
    selected = dict.fromkeys((*opening, *closing))
    for more in (openers, spans):
        rest = [span for span in dict.fromkeys(more) if span not in selected]
        selected |= dict.fromkeys(spread(rest, EMBEDDED - len(selected)))
    return sorted(selected)


def spread(spans: Sequence[Span], most: int) -> list[Span]:
    """`most` of the spans, spread evenly."""
    if len(spans) <= most:
        return list(spans)
    return [spans[place * len(spans) // most] for place in range(most)]


# --- selection ------------------------------------------------------------------------------------------------------


def make_abstract(document: Document, spans: Sequence[Span], vectors: np.ndarray) -> tuple[Quote, ...]:
    """Three to five sentences, verbatim and in reading order: close to the topic of the whole document, early,
    self-contained, and different from each other. `vectors` are those of the sentences."""
    worth = scores(document, spans, vectors)
    under = [document.heading_at(start) for start, _ in spans]
    wanted = min(MOST, max(FEWEST, len(spans) // 4))
    left = list(range(len(spans)))
    selected: list[int] = []
    while left and len(selected) < wanted:
        if len(selected) >= FEWEST and sum(spans[place][1] - spans[place][0] for place in selected) > LENGTH:
            break
        taken = [under[place] for place in selected]
        best = max(left, key=lambda place: (worth[place] - SAME_SECTION * taken.count(under[place]), -place))
        selected.append(best)
        near = vectors @ vectors[best]
        left = [
            place for place in left if place != best and (float(near[place]) < ALIKE or _is_row(document, spans[place]))
        ]
    return tuple(_quote(document, *spans[place]) for place in sorted(selected))


def _is_row(document: Document, span: Span) -> bool:
    return is_table_row(document.text[slice(*span)])


def scores(document: Document, spans: Sequence[Span], vectors: np.ndarray) -> list[float]:
    """What sentences are worth: their nearness to the whole document, and more for the first ones."""
    middle = vectors.mean(axis=0)
    central = vectors @ (middle / (float((middle**2).sum()) ** 0.5 or 1.0))
    early = [0.25 * max(0.0, 1 - place / min(len(spans), 12)) for place in range(len(spans))]
    return [round(float(near) + first, 6) for near, first in zip(central, early, strict=True)]


# --- with the answer model -------------------------------------------------------------------------------------------
# For a digest without a language model: a document's own words, picked as in an answer without a model.

READ = 16  # sentences that the answer model reads
QUESTIONS = (
    "What is the main point?",
    "What happened or was found, and why?",
    "What was decided, required or recommended?",
)
ANSWERS = 0.3  # weight of what the answer model says of a sentence, beside what its place and meaning say
SUMS_UP, DECIDES = 0.4, 0.2  # for a sentence of the document's own abstract, and for one that decides or explains
DECIDING = re.compile(
    r"\b(?:decided|resolved|agreed|approved|must|shall|required?|found|shows?|concluded|recommends?|because|caused|therefore)\b",
    re.I,
)


async def pick(
    context: RunContext, document: Document, passages: Mapping[str, Passage], focus: str = ""
) -> list[tuple[str, Quote]]:
    """Three to five sentences with the keys of their passages, in reading order. With a focus, those that answer it come
    first."""
    found = {
        (words.start, words.end): (key, words)
        for key, passage in reversed(list(passages.items()))
        for span in split_sentences(passage.text)
        if _is_key_sentence((words := quote(passage, *span)).text)
    }
    own = [found[span] for span in sorted(found)]
    if not own:
        return []
    texts = [f"{document.title}: {words.text}" for _, words in own]  # "It was founded in 1901" means nothing alone
    vectors = np.asarray(await context.tool_context.search_context.embedder.queries(texts))
    quotes = [words for _, words in own]
    worth = await _worth(context, document, quotes, texts, vectors, (focus, *QUESTIONS) if focus else QUESTIONS)
    return [own[place] for place in _choose(vectors, worth)]


def _is_key_sentence(words: str) -> bool:
    """Whether a sentence stands on its own: no heading, row, imprint or address, and no pronoun without its noun."""
    asks = words.rstrip("”\"' ").endswith("?")
    return stands_alone(words) and not ADDRESSES.search(words) and not is_command(words) and not asks


async def _worth(
    context: RunContext,
    document: Document,
    quotes: Sequence[Quote],
    texts: Sequence[str],
    vectors: np.ndarray,
    questions: Sequence[str],
) -> list[float]:
    """What a sentence is worth: by its nearness to the whole document, its place and form, and by how far it answers what
    is asked of any document."""
    spans = [(each.start, each.end) for each in quotes]
    first, last = document.abstract or (0, 0)
    worth = np.array(scores(document, spans, vectors))
    worth += SUMS_UP * np.array([first <= start and end <= last for start, end in spans])
    worth += DECIDES * np.array([bool(DECIDING.search(each.text)) for each in quotes])
    model = context.tool_context.search_context.answer_model
    if model is None:
        return [float(each) for each in worth]
    best_first: list[int] = sorted(np.argsort(-worth, kind="stable")[:READ].tolist())
    best = np.zeros(len(quotes))
    for question in questions:
        readings = await model.read(question, [texts[place] for place in best_first])
        for place, reading in zip(best_first, readings, strict=True):
            best[place] = max(best[place], reading.answers)
    return [round(float(each), 4) for each in worth + ANSWERS * best]


def _choose(vectors: np.ndarray, worth: Sequence[float]) -> list[int]:
    """The places of the best sentences that differ from each other, in reading order."""
    wanted = min(MOST, max(FEWEST, len(worth) // 4))
    chosen: list[int] = []
    for place in sorted(range(len(worth)), key=lambda at: (-worth[at], at)):
        if len(chosen) < wanted and all(float(vectors[place] @ vectors[other]) < ALIKE for other in chosen):
            chosen.append(place)
    return sorted(chosen)
