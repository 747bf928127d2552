"""Which sentence of a passage a claim repeats or was taken from, and how much of its block says all that it says. By
layout and word for word, whatever the language: a label, an introduction or a neighbour can turn a sentence round.
Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from assay.answer.weigh import quote
from assay.core.blocks import BlockKind, TextBlock, find_blocks
from assay.core.types import Claim, Evidence, Passage
from assay.language.injection import is_command, is_suspicious
from assay.language.quotation import SAME
from assay.language.sentences import Span, is_statement, is_table_row, split_statements
from assay.language.terms import content_terms

LONGEST = 900  # characters of a quotation
TITLE = 100  # characters of a line that others may stand under
CLOSE = 0.5  # of a claim's words that the sentence has from which it was taken
REFERENCES = re.compile(r"(?<!\s)\s*+\[\d{1,3}(?:\s?[,;–-]\s?\d{1,3})*\]")
BROKEN = re.compile(r"(?<=[^\W\d_])-[ \t]*\n\s*(?=[^\W\d_])")
ENDED = re.compile(r"[.!?…。！？;；][\"'”’»)\]*_~]*$")
WIDE = re.compile(r"(?=([\u3040-\u30ff\u3400-\u9fff]{2}))")  # scripts without spaces: two signs are a word


@dataclass(frozen=True, slots=True)
class SourceSentence:
    """A sentence or row of a text, the block it is part of, and the lines above that it stands under."""

    start: int
    end: int
    block: Span
    intro: int  # where the lines begin that introduce its block; the start of the block if there are none
    title: int  # where the title above begins; `intro` if there is none
    plain: bool  # running text that nothing above, around or before it can turn round
    item: bool = False


# --- word for word --------------------------------------------------------------------------------------------------


def repeats(words: str, passage: Passage) -> bool:
    """Whether a claim is a whole sentence of running text, under no title, label or introduction."""
    if passage.above:
        return False
    return any(each.plain and _is_same(words, passage.text[each.start : each.end]) for each in sentences(passage.text))


def stands_in(words: str, text: str) -> SourceSentence | None:
    """The sentence that a claim is word for word, whatever it stands under."""
    return next((each for each in sentences(text) if _is_same(words, text[each.start : each.end])), None)


def _is_same(words: str, sentence: str) -> bool:
    """Whether both are the same but for references, white space, the form of quotation marks and dashes, hyphens at line
    ends, a full stop, and the case of the first letter."""
    own = _plain(words)
    return bool(own) and own in {_plain(BROKEN.sub(hyphen, sentence)) for hyphen in ("", "-")}


def _plain(words: str) -> str:
    plain = " ".join(REFERENCES.sub("", words).translate(SAME).split()).rstrip(".。 ")
    return plain[:1].casefold() + plain[1:]


# --- taken from -----------------------------------------------------------------------------------------------------


def quote_source(words: str, evidence: Sequence[Evidence]) -> Claim | None:
    """The quotation that a claim was evidently taken from: the sentence that has most of its words, with its block."""
    wanted = _terms(words)
    best: tuple[float, int] | None = None
    found: Claim | None = None
    for each in evidence:
        for sentence in sentences(each.passage.text):
            own = each.passage.text[sentence.start : sentence.end]
            share = len(wanted & _terms(own)) / len(wanted) if wanted else 0.0
            rank = (share, -len(own))
            if share < CLOSE or (best is not None and rank <= best) or not is_statement(own) or is_command(own):
                continue
            if quoted := quotation(each, sentence):
                best, found = rank, quoted
    return found


def quotation(evidence: Evidence, sentence: SourceSentence) -> Claim | None:
    """A sentence as a quotation, with its block and what introduces it; None if that is too long or outside the passage."""
    passage = evidence.passage
    cut_off = sentence.item and sentence.intro == sentence.block[0] and bool(passage.context)
    span = None if cut_off else _span(passage.text, sentence)
    if span and is_suspicious(passage.text[slice(*span)]):  # an order to a model is not part of it
        span = _window(passage.text, sentence) if sentence.intro == sentence.block[0] else None
    return Claim("", (evidence.key,), quote=quote(passage, *span)) if span else None


def _span(text: str, of: SourceSentence) -> Span | None:
    start, end = of.block
    for first, last in ((of.title, end), (of.intro, end), (of.intro, of.end)):
        if last - first <= LONGEST and (last == end or of.intro < start):
            return first, last
    return _window(text, of) if of.intro == start else None


def _window(text: str, of: SourceSentence) -> Span | None:
    """The sentence with those around it in its block, as far as there is room, up to an order to a model."""
    inside = [each for each in sentences(text) if each.block == of.block]
    first = last = inside.index(of)
    if of.end - of.start > LONGEST:
        return None
    while True:
        before = first, last
        for after, ahead in ((1, 0), (0, 1)):
            left, right = first - ahead, last + after
            inner = left >= 0 and right < len(inside) and inside[right].end - inside[left].start <= LONGEST
            if inner and not is_suspicious(text[inside[left].start : inside[right].end]):
                first, last = left, right
        if before == (first, last):
            break
    return inside[first].start, inside[last].end


@lru_cache(maxsize=8192)
def _terms(words: str) -> frozenset[str]:
    return frozenset((*content_terms(words), *WIDE.findall(words)))


# --- the sentences of a text ----------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)  # the same passages are read for every claim
def sentences(text: str) -> tuple[SourceSentence, ...]:
    """The sentences and rows of a text. What ends with a colon introduces the next block, and the items of a list; a line
    that ends without a mark is the title of what follows."""
    found: list[SourceSentence] = []
    title = intro = -1
    led = False  # the block before is a title or an introduction
    listed = False  # the block before is an item that the introduction reaches
    for block in _blocks(text):
        words = text[block.start : block.end]
        member = block.kind in {BlockKind.item, BlockKind.key_value, BlockKind.option} or bool(block.under)
        opens, colon = _is_title(block, words), _ends_with_colon(words)
        reached = led or (listed and member)
        above = intro if reached and intro >= 0 else block.start
        above = min([above, *(start for start, _ in block.under)])
        found += _within(text, block, above, title if title >= 0 else above)
        if colon:
            intro = above if led else block.start
        elif not reached:
            intro = -1
        if opens and not colon and not led:
            title = block.start
        led, listed = opens, reached and not opens
    return tuple(found)


def _blocks(text: str) -> list[TextBlock]:
    """The blocks of a text; labelled values on lines that follow each other are one."""
    found: list[TextBlock] = []
    for block in find_blocks(text):
        last = found[-1] if found else None
        labelled = last is not None and last.kind is block.kind is BlockKind.key_value
        if last is not None and labelled and text[last.end : block.start].count("\n") <= 1:
            found[-1] = replace(last, end=block.end)
        else:
            found.append(block)
    return found


def _is_title(block: TextBlock, words: str) -> bool:
    """Whether a block may be the title or the introduction of what follows."""
    line = "\n" not in words and len(words) <= TITLE and not ENDED.search(words)
    return _ends_with_colon(words) or block.kind is BlockKind.heading or (line and block.kind is BlockKind.paragraph)


def _ends_with_colon(words: str) -> bool:
    return words.rstrip("*_ ").endswith((":", "："))


def _within(text: str, block: TextBlock, intro: int, title: int) -> Iterator[SourceSentence]:
    words = text[block.start : block.end]
    whole = block.kind in {BlockKind.key_value, BlockKind.option, BlockKind.heading}
    spans = [(0, len(words))] if whole else split_statements(words)
    labelled = False  # by a line that ended without a mark
    for start, end in spans:
        own, before = words[start:end], words[:start]
        # Quotation marks, or marks of deletion.
        open_marks = before.translate(SAME).count('"') % 2 == 1 or before.count("~~") % 2 == 1
        plain = (
            block.kind is BlockKind.paragraph
            and title == intro == block.start
            and not _is_title(block, words)
            and not labelled
            and not is_table_row(own)
            and not open_marks
        )
        span = (block.start, block.end)
        item = block.kind is BlockKind.item
        labelled = labelled or not ENDED.search(own)
        yield SourceSentence(block.start + start, block.start + end, span, intro, min(title, intro), plain, item)
