"""The sentences that stand for a document, in its own words: what it is about, and what it found or decided. They are
ranked by their place, by the headings they stand under, and by the answer model; one that leans on its neighbour brings it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePosixPath

import numpy as np

from assay.agent.context import RunContext
from assay.answer.extracts import log_odds
from assay.core.blocks import BlockKind, TextBlock, find_blocks
from assay.core.tables import table_rows
from assay.core.types import BETWEEN, Document, Quote
from assay.language.dates import DATED
from assay.language.facts import lowercase_stems, names
from assay.language.injection import is_command, is_suspicious
from assay.language.sentences import is_statement, is_table_row, is_unspaced_script, split_sentences
from assay.language.terms import content_terms, word_list

WORDS = 140  # of the title, the authors, the headings and the sentences of a document
FEWEST, SHORT, LONGEST = 5, 8, 80  # words of a sentence: at least, of one that leans on another, at most
TITLE = 30  # words of a first line that is a title
ROWS, CELLS, MOST_ROWS = 3, 8, 5_000  # quoted of a document that is only a table; rows of it that are looked at
READ = 24  # sentences that the answer model reads: half of them the best by place, half spread over the rest
EARLY = 12  # sentences of a text without an abstract that count as its beginning
HEADINGS = 80  # that are compared with `ROLES`
ALIKE = 0.8  # share of the words of the shorter of two sentences that say the same
QUESTIONS = ("What is the conclusion?", "What was found?", "What was decided?", "What is the main point?")
# Examples of headings under which documents say what they found or decided, and under which they say nothing of themselves,
# and how near to one of them a heading is if it is of the same kind.
ROLES = (
    "Results", "Findings", "Conclusions", "Decisions", "Recommendations", "Summary", "Ergebnisse", "Fazit", "Beschlüsse",
    "Zusammenfassung", "Résultats", "Décisions", "Résumé", "Resultados", "Conclusiones", "Conclusioni", "Resultaten",
)  # fmt: skip
ASIDES = (
    "References", "Bibliography", "Acknowledgments", "Funding", "Contents", "External links", "Notes", "Imprint",
    "Main outcome measures", "Literatur", "Danksagung", "Références", "Remerciements", "Bibliografía", "Attendance",
)  # fmt: skip
LIKE_ROLE, LIKE_ASIDE = 0.42, 0.58
# What a sentence is worth; the last is what the answer model says of it.
IN_ABSTRACT, LATE, AT_FIRST, OPENS, FIGURE, ROLE, SAID = 0.8, 0.7, 0.4, 0.4, 0.4, 0.6, 1.2
# What it loses: under such a heading, as an imprint, for each word that it has too little, and for each that it has.
ASIDE, IMPRINT, THIN, LONG = 1.5, 1.0, 0.1, 0.012
# It is worth less if its section was quoted, more beside one that is, less for each sentence that it brings.
AGAIN, BESIDE, BROUGHT = 0.2, 0.2, 0.1
SAYS, LEAST = 5, 2  # words that a sentence has beyond those of title, authors and dates
ENOUGH = 0.25  # of what the best is worth, if a sentence is told because there is room
BODY = frozenset({BlockKind.paragraph, BlockKind.item, BlockKind.key_value})
ENDS = re.compile(r"[.!…。！؟۔][\"'”’»)\]]*(?:\s?\[[\d,–\- ]+\]|\d)*$")
ITEM = re.compile(r"(?:[-*•‣▪–]|\(?\d{1,3}(?:\.\d{1,3})*[.)]?|\(?[a-z]\))\s+(?=\S)")
MARKED = re.compile(r"©|https?:|www\.|\w@\w|\bdoi\b", re.I)  # an address or an imprint
LABEL = re.compile(  # of a part of an abstract: "RESULTS Of the 32 samples", "Conclusions We found"
    r"([A-Z][A-Z/&, ]{3,40}[A-Z])(?=:|\.? [A-Z\d])|([A-Z][a-z]{5,}(?: (?:and )?[A-Z][a-z]{5,})?):? (?=[A-Z][a-z]* )"
)
NUMBERED = re.compile(r"^[\dA-Z]{0,3}(?:\.\d+)*\.?\s+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a document: what it stands under, whether it can be chosen by itself, how many before it it leans on
    (-1 if they are not there), and what its place is worth."""

    start: int
    end: int
    section: int  # where its section begins, or its paragraph, if it stands under no heading
    under: str
    label: str  # of the part of an abstract that it is in
    usable: bool
    needs: int
    prior: float
    leads: bool  # it is of the document's own abstract, or of a text of one paragraph
    opens: bool  # it is the first under its heading


def own_title(document: Document) -> str:
    """The title; if that is only the name of the file, the heading or the line that the text begins with."""
    title = document.title.strip()
    if not is_file_name(title, document):
        return title
    line, _, rest = document.text.lstrip().partition("\n")
    headed = document.sections and document.sections[0].title == line.strip()
    alone = not rest.partition("\n")[0].strip() and len(rest) > len(line) and len(split_sentences(line)) == 1
    fits = 2 <= len(line.split()) <= TITLE or (is_unspaced_script(line) and len(line) <= 3 * TITLE)
    other = is_table_row(line) or is_suspicious(line) or re.search(r"[,:;，：；]\s*$", line)
    return line.strip().removesuffix(".") if fits and (headed or alone) and not other else title or _file(document)


def is_file_name(title: str, document: Document) -> bool:
    """Whether a title is only the name of the file."""
    return title in ("", _file(document), PurePosixPath(_file(document)).stem)


def _file(document: Document) -> str:
    return re.split(r"[/\\]", document.uri.rstrip("/\\"))[-1] or document.uri


def own_abstract(document: Document) -> tuple[Quote, ...]:
    """The document's own abstract, verbatim; if part of it addresses a model, the sentences without that part."""
    start, end = document.abstract or (0, 0)
    whole = _quote(document, start, end)
    if not is_suspicious(whole.text):
        return (whole,) if whole.text.strip() else ()
    parts = (_quote(document, start + left, start + right) for left, right in split_sentences(whole.text))
    return tuple(each for each in parts if not is_suspicious(each.text))


def _quote(document: Document, start: int, end: int) -> Quote:
    return Quote(document.id, start, end, document.text[start:end])


async def pick(context: RunContext, document: Document, focus: str = "") -> tuple[Quote, ...]:
    """What stands for a document, in reading order: the sentences that best say what it found or decided, or answer the
    focus, from many of its sections. Of a document without sentences, a few of its rows or lines."""
    found = sentences(document)
    usable = [at for at, each in enumerate(found) if each.usable and each.needs >= 0]
    if not usable:
        return rows(document)
    search = context.tool_context.search_context
    near = await _roles(search.embedder.queries, (name for at in usable for name in (found[at].under, found[at].label)))
    if document.abstract:  # beyond it, only what its sections of results or decisions begin with
        usable = [at for at in usable if found[at].leads or (found[at].opens and near[found[at].under] > 0)] or usable
    worth = {at: found[at].prior + max(near[found[at].label], near[found[at].under], key=abs) for at in usable}
    best = sorted(worth, key=lambda at: (-worth[at], at))[: READ // 2]
    rest = [at for at in usable if at not in best]
    read = [*best, *rest[:: max(1, -(-len(rest) // (READ // 2)))]]
    if search.answer_model is not None:
        texts = [document.text[found[at].start : found[at].end] for at in read]
        asked = filter(None, (focus, own_title(document), *QUESTIONS))
        answers = [await search.answer_model.read(each, texts) for each in asked]
        said = np.array([[log_odds(each.answers) for each in own] for own in answers]).mean(axis=0)
        said = (said - said.min()) / max(1e-6, said.max() - said.min())  # which answers best, however little they do
        worth |= {at: worth[at] + SAID * float(more) for at, more in zip(read, said, strict=True)}
    chosen = _choose(document, found, {at: round(worth[at], 4) for at in read})
    return tuple(_quote(document, found[at].start, found[at].end) for at in chosen)


async def _roles(embed: Callable[[list[str]], Awaitable[np.ndarray]], under: Iterable[str]) -> dict[str, float]:
    """What it is worth to stand under each heading."""
    heads = list(dict.fromkeys(under))
    known = [each for each in heads if each][:HEADINGS]
    if not known:
        return dict.fromkeys(heads, 0.0)
    vectors = np.asarray(await embed([*ROLES, *ASIDES, *(NUMBERED.sub("", each) or each for each in known)]))
    near = vectors[len(ROLES) + len(ASIDES) :] @ vectors[: len(ROLES) + len(ASIDES)].T
    role, aside = near[:, : len(ROLES)].max(axis=1), near[:, len(ROLES) :].max(axis=1)
    worth = np.where((role >= LIKE_ROLE) & (role >= aside), ROLE, np.where(aside >= LIKE_ASIDE, -ASIDE, 0.0))
    return dict.fromkeys(heads, 0.0) | dict(zip(known, worth.tolist(), strict=True))


def _choose(document: Document, found: Sequence[Sentence], worth: Mapping[int, float]) -> list[int]:
    """The best that differ from each other, with what they lean on, as far as there is room. A section that has been
    quoted is worth less, but not an abstract."""
    words = {at: document.text[each.start : each.end] for at, each in enumerate(found)}
    room = WORDS - _length(" ".join((own_title(document), *document.authors[:3])))
    chosen: set[int] = set()
    left = set(worth)
    run = {at: set(range(at - found[at].needs, at + 1)) for at in worth}  # each with what it leans on

    def value(at: int) -> float:
        again = 0.0 if found[at].leads else AGAIN * quoted[found[at].section]
        beside = BESIDE / (1 + found[at].leads) * bool({at - 1, at + 1} & chosen)
        return worth[at] - again + beside - BROUGHT * (len(run[at] - chosen) - 1)

    while left:
        quoted = Counter(found[at].section for at in chosen)
        at = max(left, key=lambda at: (value(at), -at))
        if chosen and value(at) < ENOUGH * max(worth.values()):
            break
        left.remove(at)
        terms = frozenset(content_terms(words[at]))
        told = (frozenset(content_terms(words[one])) for one in chosen)
        same = any(len(terms & one) > ALIKE * max(1, min(len(terms), len(one))) for one in told)
        more = chosen | run[at]
        heads = {found[one].under for one in more}
        if not same and sum(map(_length, (*(words[one] for one in more), *heads))) <= room:
            chosen = more
    return sorted(chosen)


def _length(words: str) -> int:
    return len(words) // 3 if is_unspaced_script(words) else len(words.split())


# --- the sentences of a document -------------------------------------------------------------------------------------


def sentences(document: Document) -> list[Sentence]:
    """The sentences of paragraphs and items, in reading order."""
    found: list[Sentence] = []
    title = own_title(document)
    seen = {document.title.rstrip("."), title}
    blocks = [each for each in find_blocks(document.text, document.sections, document.tables) if each.kind in BODY]
    longest = max(_paragraphs(blocks), key=lambda span: span[1] - span[0], default=(0, 0))
    alone = 2 * (longest[1] - longest[0]) > len(document.text)
    first, last = document.abstract or (longest if alone else (0, 0))
    named = frozenset(content_terms(" ".join((title, *document.authors))))
    # German writes all nouns with capitals.
    ordinary = lowercase_stems(document.text) if document.language != "de" else None
    early, opened = EARLY, set[str]()
    begun = False  # nothing stands before the first sentence, so it leans on nothing
    for block in blocks:
        item = ITEM.match(document.text, block.start, block.end)
        start = item.end() if item else block.start
        above = document.heading_at(start).rpartition(BETWEEN)[2]
        under = "" if above == title else above
        section = max((each.start for each in document.sections if each.start <= start), default=0) if under else start
        known = named | frozenset(content_terms(under))
        label, needs, sound = document.text[slice(*block.label)] if block.label else "", 0, True
        for left, right in split_sentences(document.text[start : block.end]):
            opens, left, right = not left, start + left, start + right
            words = document.text[left:right]
            label = match[0] if (match := LABEL.match(words)) else label
            part = match is not None or (opens and block.label is not None)  # it speaks of the whole document
            news = sum(term.isalpha() for term in frozenset(content_terms(DATED.sub("", words))) - named)
            usable = words.rstrip(".") not in seen and is_sentence(words) and news >= LEAST
            leaning = leans(words, known, ordinary, opens=opens) if begun else ANAPHOR.match(words) is not None
            leaning = leaning and not part
            needs = (-1 if opens or needs < 0 or not sound else needs + 1) if leaning else 0
            begun, sound = begun or usable, not is_suspicious(words) and not is_command(words)
            leads, begins = first <= left and right <= last, False
            prior = FIGURE * (re.search(r"\d", DATED.sub("", words)) is not None) / (1 + leads)
            prior -= IMPRINT * (MARKED.search(words) is not None)
            prior -= THIN * max(0, SAYS - news) + LONG * _length(words)
            if leads:  # what came out stands late in an abstract, or in a text of one paragraph
                prior += (IN_ABSTRACT if document.abstract else 0.0) + LATE * (left - first) / (last - first)
            elif usable:
                begins = under not in opened if under else opens and not document.sections
                prior += OPENS * begins
                prior += AT_FIRST * max(0, early) / EARLY if not last else 0.0
                early -= 1
                opened.add(under)
            found.append(Sentence(left, right, section, under, label, usable, needs, prior, leads, begins))
            seen.add(words.rstrip("."))
    return found


def _paragraphs(blocks: Iterable[TextBlock]) -> Iterator[tuple[int, int]]:
    """Where paragraphs begin and end. Labelled lines below one another, as of a structured abstract, are one."""
    for labelled, some in groupby(blocks, key=lambda each: each.kind is BlockKind.key_value):
        spans = [(each.start, each.end) for each in some]
        yield from [(spans[0][0], spans[-1][1])] if labelled else spans


ANAPHOR = re.compile(
    r"(?:it|its|they|their|he|she|his|her|both|as such|such|that|another|other|but|and|or|so|then|thus|therefore|hence|however|"
    r"similarly|likewise|instead|in addition|moreover|furthermore|es|er|sie|dies\w*|beide\w*|aber|und|oder|daher|deshalb|"
    r"jedoch|ils?|elles?|cette|ces|mais|donc|cependant|ell[ao]s?|él|est[aeo]s?|es[aeo]s?|pero|sino|dit|deze|hij|zij|maar|dus)\b",
    re.I,
)
STARTS = 8  # words in which a sentence that stands alone names what it is about
REFERS = re.compile(
    r".*\bsuch an? |(?:\S+ ){0,4}(?:it|its|they|their|them|he|she|his|her|this|these|those)\b",
    re.I | re.S,
)
OWN = re.compile(r"(?:\w+ )?this (?:stud|paper|review|report|article|work|analys|trial|survey)", re.I)


def leans(words: str, known: frozenset[str], ordinary: frozenset[str] | None, *, opens: bool) -> bool:
    """Whether a sentence may need the one before it. Within a paragraph only one that begins with a name, a figure or a word
    of the title or the heading stands alone; the first stands alone unless it begins with a pronoun."""
    begins = " ".join(words.split()[:STARTS])
    if OWN.match(words):
        return False
    if ANAPHOR.match(words) or REFERS.match(words):
        return True
    if opens:
        return re.sub(r"\W", "", words.partition(" ")[0]).lower() in OPENERS
    named = ordinary is not None and names(begins, ordinary)
    return not named and not re.search(r"\d", begins) and not known & frozenset(content_terms(begins))


OPENERS = (word_list("sentence_openers") | word_list("opening_words")) - frozenset(
    "a an the der die das ein eine le la les un une el los las una de het een we wir nous in im am on at en".split()
)


def is_sentence(words: str) -> bool:
    """Whether this is a sentence, by its form: not a question, heading, row, fragment, command, or line of names."""
    if not ENDS.search(words) or not is_statement(words) or words[0].islower():
        return False
    if is_table_row(words) or words.count(";") > 2 or is_suspicious(words) or is_command(words):
        return False
    parts = re.findall(r"[^\W_]+", words)
    named = sum(part[0].isupper() for part in parts)
    return is_unspaced_script(words) or (FEWEST <= len(parts) <= LONGEST and named < 0.5 * len(parts))


def rows(document: Document) -> tuple[Quote, ...]:
    """What stands for a document without sentences: of its tables the cells that say something of their row, and the rows with
    the rarest values; without tables, its first lines that say something."""
    kept = [row for table in document.tables for row in table_rows(table, document.text)[:MOST_ROWS]]
    told = [
        (cell.start, cell.end)
        for row in kept
        for cell in row.cells[1:]
        if row.cells[0].text and row.cells[0].text in cell.text and is_sentence(cell.text)
    ]
    seen = Counter((at, cell.text) for row in kept for at, cell in enumerate(row.cells))
    repeated = {at for (at, _), count in seen.items() if count > 1}
    rare = [sum(1 / seen[at, cell.text] for at, cell in enumerate(row.cells) if at in repeated) for row in kept]
    best = sorted(range(len(kept)), key=lambda at: -rare[at])
    lines = [(kept[at].start, kept[at].end) for at in best]
    lines = lines or [match.span() for match in re.finditer(r"\S[^\n]*", document.text[:100_000])]
    few = [told[place * len(told) // CELLS] for place in range(CELLS)] if len(told) > CELLS else told
    spans = {*few, *lines[: ROWS if len(few) < ROWS else 0]}
    quotes = (_quote(document, *span) for span in sorted(spans))
    short = (each for each in quotes if len(each.text.split()) <= LONGEST)
    return tuple(each for each in short if is_statement(each.text) and not is_suspicious(each.text))
