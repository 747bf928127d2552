"""What code settles about a claim: wording and arithmetic. Whether anything else follows is for a judge. Pure.

A claim that is proved wrong here fails, whatever a model says. One that is neither proved nor refuted stays open.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from functools import lru_cache
from itertools import repeat

from assay.answer.checking import cells, working
from assay.answer.checking.repetition import repeats, stands_in
from assay.answer.claims import Sources
from assay.core.types import Claim, Evidence, Verdict
from assay.language import facts
from assay.language.injection import is_command, is_suspicious, note_taint
from assay.language.quantities import figures, numbers
from assay.language.sentences import split_sentences
from assay.language.terms import content_terms, data_lines, fold_case, missing_terms, stem_word

HEDGES = {code: f"{words.strip()} " for code, _, words in map(str.partition, data_lines("hedges"), repeat(":"))}
SCANNED = "OCR read figures that it cites"
OPEN = "it does not repeat what it cites, and no capable model has judged it"
UNSEEN = "it is read from a figure, and no model that sees it has judged it"
WORD = re.compile(r"[^\W_]+(?:[.,]\d+)*")
QUOTED = re.compile(r"“([^“”]+)”|\"([^\"]+)\"")
LEFT_OUT = re.compile(r"\.\.\.|…|\[[^\[\]]{0,200}\]")
QUOTATION = 5  # words in quotation marks that are more than a term
COUNTABLE = 20  # numbers up to this may be counted from what is cited
DIGITS = re.compile(r"\d[\d.,’'\u00a0\u202f ]*")


def unhedged(text: str) -> str:
    """The sentence without the hedge that a revision put before it."""
    return next((text.removeprefix(hedge) for hedge in HEDGES.values() if text.startswith(hedge)), text)


def by_rule(claim: Claim, evidence: Sequence[Evidence], sources: Sources | None = None) -> Claim:
    """The claim with its verdict: supported if it is proved, partial if it is open, otherwise why it fails. The reason
    mentions it if everything cited reads like an instruction to a model."""
    return note_taint(_settle(claim, evidence, sources or Sources()), evidence)


def _settle(claim: Claim, evidence: Sequence[Evidence], sources: Sources) -> Claim:
    cited = [each for each in evidence if each.key in claim.cites]
    if not claim.cites:
        return replace(claim, verdict=Verdict.uncited, why="it cites nothing")
    if {each.key for each in cited} != set(claim.cites):
        return unsupported(claim, "it cites evidence that this run did not gather")
    words = unhedged(claim.text)
    texts = cited_texts(cited, sources)
    if claim.working is not None:
        proof = working.prove(words, claim.working, texts)
        if proof.refuted:
            return unsupported(claim, proof.why)
        unproven = proof.why or (SCANNED if any(each.passage.doc_id in sources.scanned for each in cited) else "")
        claim = replace(claim, working=replace(claim.working, unproven=unproven))
        if proof.why and proof.value and (unknown := unfounded_number(words, (*texts.values(), proof.value))):
            return unsupported(claim, f"“{unknown}” is in no passage that it cites, and it computes to {proof.value}")
    claim, differs = cells.check(claim, evidence, sources.tables)
    if differs:
        return unsupported(claim, differs)
    if fault := _fault(claim, words, texts, [each.passage.text for each in evidence]):
        return unsupported(claim, fault)
    if repeated := [each.key for each in cited if repeats(words, each.passage)]:
        cites = tuple(key for key in claim.cites if key in repeated)  # the others carry nothing of it
        return replace(claim, cites=cites, verdict=Verdict.supported, why="it repeats what it cites", figure=None)
    if all(each.flagged for each in cited) and not any(stands_in(words, each.passage.text) for each in cited):
        # No model can settle that.
        return unsupported(claim, "it rests on a passage that reads like an instruction, and does not repeat it")
    return replace(claim, verdict=Verdict.partial, why=UNSEEN if claim.figure else OPEN)


def _fault(claim: Claim, words: str, texts: Mapping[str, str], passages: Iterable[str]) -> str:
    """Why a claim fails whatever a model says of it; empty otherwise."""
    if not any(map(str.isalnum, words)):
        return "it says nothing that could be checked"
    if words.rstrip(" ”’\"')").endswith(("?", "？")):
        return "it asks, and states nothing"
    if is_suspicious(words):
        return "it reads like an instruction"
    if _is_instructed(words, texts.values(), passages):
        return "a passage tells its reader to say so, and nothing that it cites does"
    if altered := altered_quotation(words, texts.values()):
        return f"“{altered}” is quoted, and is in no passage that it cites"
    if claim.working is None and claim.figure is None and (unknown := unfounded_number(words, texts.values())):
        return f"“{unknown}” is in no passage that it cites, and no calculation gives it"
    return ""


# --- wording --------------------------------------------------------------------------------------------------------


def altered_quotation(words: str, texts: Collection[str]) -> str:
    """Words in quotation marks that no cited passage or title has; empty if there are none. Quoted terms and names of works
    are left to the judge. Case and punctuation may differ; what is left out or put in brackets is not compared."""
    quoted = (found[1] or found[2] for found in QUOTED.finditer(words))
    spans = [each for each in quoted if len(WORD.findall(each)) >= QUOTATION and not _names_work(each)]
    sources = [_folded_words(text) for text in texts] if spans else []
    return next((each for each in spans if not any(_says(source, _quoted_pieces(each)) for source in sources)), "")


def _folded_words(text: str) -> str:
    return f" {' '.join(WORD.findall(fold_case(text)))} "


def _quoted_pieces(quoted: str) -> list[str]:
    whole = re.sub(r"\[(\w)\](?=\w)", r"\1", quoted)  # "[t]he"
    return [_folded_words(piece) for piece in LEFT_OUT.split(whole) if WORD.search(piece)]


def _says(source: str, pieces: Sequence[str]) -> bool:
    """Whether a text has the pieces in this order."""
    place = 0
    for piece in pieces:
        found = source.find(piece, place)
        if found < 0:
            return False
        place = found + len(piece) - 1
    return True


def _names_work(quoted: str) -> bool:
    long = [word for word in WORD.findall(quoted) if len(word) > 3]
    return bool(long) and all(word[0].isupper() or word[0].isdigit() for word in long)


# --- numbers --------------------------------------------------------------------------------------------------------


def unfounded_number(words: str, texts: Collection[str]) -> str:
    """A figure of the claim that no cited passage contains, in whatever scale or rounding; empty if there is none.
    Years and small whole numbers are left to the judge: they may be counted, or follow from a header."""
    known = {value for text in texts for number in facts.facts_of(text).numbers for value in number.values}
    known |= {figure.value for text in texts for figure in figures(text)}  # cells side by side: "435 901"
    for number in numbers(words):
        digits = DIGITS.search(number.text)
        if digits is None or all(_is_common(value) for value in number.values):
            continue
        if not any(_is_rounded(value, abs(other)) for value in number.values for other in known):
            return number.text
    return ""


def _is_common(value: Decimal) -> bool:
    return value == value.to_integral() and (abs(value) <= COUNTABLE or 1900 <= value <= 2100)


def _is_rounded(value: Decimal, other: Decimal) -> bool:
    """Whether one is the other in some scale, rounded or cut to the digits that it shows."""
    value = abs(value).normalize()
    if not value or not other:
        return value == other
    shift = other.adjusted() - value.adjusted()
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    for power in {shift - shift % 3, shift - shift % 3 + 3}:
        moved = other.scaleb(-power)
        if any(moved.quantize(Decimal(1).scaleb(exponent), how) == value for how in (ROUND_HALF_UP, ROUND_DOWN)):
            return True
    return False


# --- instructions ---------------------------------------------------------------------------------------------------


def _is_instructed(words: str, texts: Iterable[str], passages: Iterable[str]) -> bool:
    """Whether what a claim adds to its sources is what some passage instructs a model to say: words that mean something, or
    else small ones, which can turn a sentence round. A claim that adds no word is for the judge: a document that orders what
    is true must not suppress it."""
    orders = [order for each in passages for order in instructions_in(each)]
    if not orders:
        return False
    texts = list(texts)
    if added := missing_terms(claim_terms(words), frozenset[str]().union(*map(text_terms, texts))):
        return any(added <= text_terms(order) for order in orders)
    small = _words(words).difference(*map(_words, texts))
    return bool(small) and any(small <= _words(order) for order in orders)


def _words(text: str) -> frozenset[str]:
    return frozenset(WORD.findall(fold_case(text)))


def follows_instruction(claim: Claim, cited: Sequence[Evidence], sources: Sources, passages: Iterable[str]) -> bool:
    """Whether a claim adds something that one of these passages instructs a model to say. A model has read the passage,
    kept as evidence or not, so no model's verdict settles such a claim."""
    return _is_instructed(unhedged(claim.text), cited_texts(cited, sources).values(), passages)


def unsupported(claim: Claim, why: str) -> Claim:
    return replace(claim, verdict=Verdict.unsupported, why=why)


# Words that say who reports something and how, not what.
REPORTING_STEMS = frozenset(
    stem_word(word)
    for word in (
        "accord also author claim conclude describe document evidence explain find found indicate mention note overall "
        "passage quotation quote report respectively say said show source specifically state stated study suggest text "
        "therefore thus use"
    ).split()
)


def cited_texts(cited: Sequence[Evidence], sources: Sources) -> dict[str, str]:
    """Everything that is shown of each cited passage, by key. Sentences that instruct a model are left out: they are not
    statements of the document."""
    texts: dict[str, str] = {}
    for each in cited:
        doc, passage = each.passage.doc_id, each.passage
        label = "\n".join(filter(None, (sources.titles.get(doc), passage.above, sources.dates.get(doc))))
        body = f"{passage.context}\n{remove_commands(passage.text)}".strip()
        texts[each.key] = f"{label}\n{body}"
    return texts


def remove_commands(passage: str) -> str:
    """A passage without the sentences that instruct a model."""
    if not is_command(passage):
        return passage
    sentences = (passage[slice(*span)] for span in split_sentences(passage))
    return "\n\n".join(sentence for sentence in sentences if not is_command(sentence))


@lru_cache(maxsize=4096)
def instructions_in(passage: str) -> tuple[str, ...]:
    """The sentences that instruct a model."""
    if not is_command(passage):
        return ()
    sentences = (passage[slice(*span)] for span in split_sentences(passage))
    return tuple(sentence for sentence in sentences if is_command(sentence))


@lru_cache(maxsize=4096)
def text_terms(words: str) -> frozenset[str]:
    """The stems of a text."""
    return frozenset(content_terms(words))


@lru_cache(maxsize=4096)
def claim_terms(words: str) -> frozenset[str]:
    """The stems of a claim without reporting words, numbers and dates; numbers and dates are checked separately."""
    return (
        frozenset(term for term in content_terms(facts.remove_numbers_and_dates(words)) if len(term) > 1)
        - REPORTING_STEMS
    )
