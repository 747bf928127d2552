"""The sentences that stand for a document, in its own words: what it is about, and what it found or decided. They are
ranked by their place, by the headings they stand under, and by the answer model; nothing is left out by its words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from assay.agent.context import RunContext
from assay.answer.extracts import log_odds
from assay.core.blocks import BlockKind, find_blocks
from assay.core.types import BETWEEN, Document, Quote
from assay.language.injection import is_command, is_suspicious
from assay.language.sentences import is_statement, is_table_row, is_unspaced_script, split_sentences
from assay.language.terms import content_terms, word_list

WORDS = 115  # of all that is chosen; with title, authors and year a document takes at most 150
BEGINNING = 35  # words of the first sentence of an abstract, if it is to be told whatever it says
FEWEST, SHORT, LONGEST = 5, 8, 80  # words of a sentence: at least, of one that leans on another, at most
ROWS = 3  # quoted of a document that is only a table
READ = 24  # sentences that the answer model reads: half of them the best by place, half spread over the rest
EARLY = 12  # sentences of a text without an abstract that count as its beginning
HEADINGS = 80  # that are compared with `ROLES`
ALIKE = 0.8  # share of the words of the shorter of two sentences that say the same
QUESTIONS = ("What is the conclusion?", "What was found?", "What is the main point?")
# Examples of headings under which documents say what they found or decided, and under which they say nothing of themselves.
ROLES = (
    "Results", "Findings", "Conclusions", "Decisions", "Recommendations", "Summary", "Ergebnisse", "Fazit", "Beschlüsse",
    "Zusammenfassung", "Résultats", "Décisions", "Résumé", "Resultados", "Conclusiones", "Conclusioni", "Resultaten",
)  # fmt: skip
ASIDES = (
    "References", "Bibliography", "Acknowledgements", "Funding", "Contents", "External links", "Notes", "Imprint",
    "Literatur", "Danksagung", "Références", "Remerciements", "Bibliografía", "Attendance",
)  # fmt: skip
# What a sentence is worth, beside what the answer model says of it (at most 1).
IN_ABSTRACT, LATE, AT_FIRST, LABELLED, ROLE, ASIDE, IMPRINT, AGAIN = 0.5, 0.6, 0.3, 0.3, 0.8, 1.5, 1.0, 0.1
BODY = frozenset({BlockKind.paragraph, BlockKind.item})
ENDS = re.compile(r"[.!…。！؟۔][\"'”’»)\]]*(?:\s?\[[\d,–\- ]+\])*$")
ITEM = re.compile(r"(?:[-*•‣▪–]|\(?\d{1,3}(?:\.\d{1,3})*[.)]?|\(?[a-z]\))\s+(?=\S)")
MARKED = re.compile(r"©|https?:|www\.|\w@\w|\bdoi\b", re.I)  # an address or an imprint
LABEL = re.compile(  # of a part of an abstract: "RESULTS Of the 32 samples", "Conclusions We found"
    r"([A-Z][A-Z/&, ]{3,40}[A-Z])(?=:|\.? [A-Z\d])|([A-Z][a-z]{5,}(?: (?:and )?[A-Z][a-z]{5,})?):? (?=[A-Z][a-z]* )"
)
# A sentence that opens with one of these may lean on the one before. Those taken out open sentences that stand alone.
FREE = (
    "a an we i our in on at by for from with after during as when while if although all each some many most no thus here also"
    " moreover furthermore"
).split()
REFERS = re.compile(r"\S+ (?:(?:it|its|they|their|them|he|she)\b|[a-z]+,)")
OWN = re.compile(
    r"th(?:is|ese) (?:stud|paper|review|report|article|work|analys|trial|survey|result|finding|data)", re.I
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a document: what it stands under, whether it can be chosen by itself, how many before it it leans on
    (-1 if they are not there), and what its place is worth."""

    start: int
    end: int
    block: int
    under: str
    usable: bool
    needs: int
    prior: float
    leads: bool  # it is of the document's own abstract, or of a text of one paragraph


def own_abstract(document: Document) -> tuple[Quote, ...]:
    """The document's own abstract, verbatim; if part of it addresses a model, the sentences without that part."""
    if document.abstract is None or not document.text[slice(*document.abstract)].strip():
        return ()
    if not is_suspicious(document.text[slice(*document.abstract)]):
        return (_quote(document, *document.abstract),)
    start, end = document.abstract
    spans = ((start + left, start + right) for left, right in split_sentences(document.text[start:end]))
    return tuple(_quote(document, *span) for span in spans if not is_suspicious(document.text[slice(*span)]))


def _quote(document: Document, start: int, end: int) -> Quote:
    return Quote(document.id, start, end, document.text[start:end])


async def pick(context: RunContext, document: Document, focus: str = "") -> tuple[Quote, ...]:
    """What stands for a document, in reading order: how it begins, and the sentences that best say what it found or decided,
    or answer the focus. Of a document without sentences, a few of its rows or lines."""
    found = sentences(document)
    usable = [at for at, each in enumerate(found) if each.usable and each.needs >= 0]
    if not usable:
        return rows(document)
    search = context.tool_context.search_context
    near = await _roles(search.embedder.queries, [found[at].under for at in usable])
    worth = {at: found[at].prior + near[found[at].under] for at in usable}
    best = sorted(worth, key=lambda at: (-worth[at], at))[: READ // 2]
    rest = [at for at in usable if at not in best]
    read = [*best, *rest[:: max(1, -(-len(rest) // (READ // 2)))]]
    if search.answer_model is not None:
        texts = [document.text[found[at].start : found[at].end] for at in read]
        answers = [await search.answer_model.read(asked, texts) for asked in (focus, *QUESTIONS) if asked]
        said = np.array([max(log_odds(each.answers) for each in own) for own in zip(*answers, strict=True)])
        said = (said - said.min()) / max(
            1e-6, said.max() - said.min()
        )  # which of them answers best, however little they do
        worth |= {at: worth[at] + float(more) for at, more in zip(read, said, strict=True)}
    first = usable[:1] if found[usable[0]].leads else []
    chosen = _choose(document, found, first, {at: round(worth[at], 4) for at in read})
    return tuple(_quote(document, found[at].start, found[at].end) for at in chosen)


async def _roles(embed: Callable[[list[str]], Awaitable[np.ndarray]], under: Iterable[str]) -> dict[str, float]:
    """What it is worth to stand under each heading."""
    heads = list(dict.fromkeys(under))
    known = [each for each in heads if each][:HEADINGS]
    if not known:
        return dict.fromkeys(heads, 0.0)
    vectors = np.asarray(await embed([*ROLES, *ASIDES, *known]))
    near = vectors[len(ROLES) + len(ASIDES) :] @ vectors[: len(ROLES) + len(ASIDES)].T
    role, aside = near[:, : len(ROLES)].max(axis=1), near[:, len(ROLES) :].max(axis=1)
    worth = np.where(role >= aside, ROLE * role, -ASIDE * np.maximum(aside, 0))
    return dict.fromkeys(heads, 0.0) | dict(zip(known, worth.tolist(), strict=True))


def _choose(
    document: Document, found: Sequence[Sentence], first: Sequence[int], worth: Mapping[int, float]
) -> list[int]:
    """The beginning and the best that differ from each other, with what they lean on, as far as there is room. A paragraph
    that has been quoted is worth less."""
    words = {at: document.text[found[at].start : found[at].end] for at in range(len(found))}
    chosen = {at for at in first if _length(words[at]) <= BEGINNING}
    left = set(worth) - chosen
    while left:
        taken = Counter(found[at].block for at in chosen)
        at = max(left, key=lambda at: (worth[at] - AGAIN * taken[found[at].block], -at))
        left.remove(at)
        terms = frozenset(content_terms(words[at]))
        told = (frozenset(content_terms(words[one])) for one in chosen)
        same = any(len(terms & one) > ALIKE * max(1, min(len(terms), len(one))) for one in told)
        more = chosen | set(range(at - found[at].needs, at + 1))
        if not same and sum(_length(words[one]) for one in more) <= WORDS:
            chosen = more
    return sorted(chosen)


def _length(words: str) -> int:
    return len(words) // 3 if is_unspaced_script(words) else len(words.split())


# --- the sentences of a document -------------------------------------------------------------------------------------


def sentences(document: Document) -> list[Sentence]:
    """The sentences of paragraphs and items, in reading order."""
    found: list[Sentence] = []
    seen = {document.title.rstrip(".")}
    early = EARLY
    blocks = [each for each in find_blocks(document.text, document.sections, document.tables) if each.kind in BODY]
    longest = max(blocks, key=lambda each: each.end - each.start, default=None)
    alone = longest is not None and 2 * (longest.end - longest.start) > len(document.text)
    first, last = document.abstract or ((longest.start, longest.end) if longest and alone else (0, 0))
    for block in blocks:
        item = ITEM.match(document.text, block.start, block.end)
        start = item.end() if item else block.start
        under = document.heading_at(start).rpartition(BETWEEN)[2]
        needs = 0
        for at, (left, right) in enumerate(split_sentences(document.text[start : block.end])):
            left, right = start + left, start + right
            words = document.text[left:right]
            label = LABEL.match(words)
            under = label[0] if label else under
            needs = (needs + 1 if at and needs in (0, 1) else -1) if leans(words, opens=not at) else 0
            usable = words.rstrip(".") not in seen and is_sentence(words)
            prior = LABELLED * bool(label and label[1]) - IMPRINT * bool(MARKED.search(words))
            if (
                first <= left and right <= last
            ):  # what came out stands late in an abstract, or in a text of one paragraph
                prior += (IN_ABSTRACT if document.abstract else 0.0) + LATE * (left - first) / (last - first)
            elif not last:
                prior += AT_FIRST * max(0, early) / EARLY
                early -= usable
            found.append(
                Sentence(left, right, block.start, under, usable, needs, prior, first <= left and right <= last)
            )
            seen.add(words.rstrip("."))
    return found


def leans(words: str, *, opens: bool = False) -> bool:
    """Whether a sentence may need the one before it: it is short, or opens with a function word, a pronoun after another
    word, or a few words before a comma. At the beginning of a paragraph an article needs nothing."""
    first, _, rest = words.partition(" ")
    opener = re.sub(r"\W", "", first).lower()
    if OWN.match(words):
        return False
    if opens:
        return opener in OPENERS - IN_PLACE
    short = len(words.split()) < SHORT and not is_unspaced_script(words)
    return short or (opener in OPENERS | IN_PLACE and rest != "") or REFERS.match(words) is not None


OPENERS = word_list("sentence_openers") - frozenset(FREE)
IN_PLACE = (word_list("opening_words") - frozenset(FREE)) | frozenset("the there here other another both".split())


def is_sentence(words: str) -> bool:
    """Whether this is a sentence, by its form: not a question, heading, row, fragment, command, or line of names."""
    if not ENDS.search(words) or not is_statement(words) or is_table_row(words) or words[0].islower():
        return False
    if is_suspicious(words) or is_command(words):
        return False
    parts = re.findall(r"[^\W_]+", words)
    named = sum(part[0].isupper() for part in parts)
    return is_unspaced_script(words) or (FEWEST <= len(parts) <= LONGEST and named < 0.5 * len(parts))


def rows(document: Document) -> tuple[Quote, ...]:
    """A few rows of a document without sentences, spread evenly; without rows, its first lines that say something."""
    lines = [
        (match.start(), match.end())
        for match in re.finditer(r"\S[^\n]*", document.text[:100_000])
        if is_statement(match[0]) and not is_suspicious(match[0]) and len(match[0].split()) <= LONGEST
    ]
    tabular = [span for span in lines if is_table_row(document.text[slice(*span)])]
    few = [tabular[place * len(tabular) // ROWS] for place in range(min(ROWS, len(tabular)))] or lines[:ROWS]
    return tuple(_quote(document, *span) for span in dict.fromkeys(few))
