"""Citations that were altered are caught, every one, and good ones are kept: over the sentences of the sample corpus."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from assay.answer.checking.judge import verify
from assay.answer.checking.repetition import quote_source
from assay.answer.weigh import evidence_key, quote
from assay.core.printable import clean_text
from assay.core.types import Claim, Document, Evidence, Passage, Quote, Verdict
from assay.language.injection import is_suspicious
from assay.language.names import find_names
from assay.language.quotation import locate_quote
from assay.language.sentences import is_table_row, split_sentences
from assay.language.terms import content_terms

CORPUS = Path(__file__).parents[2] / "samples" / "corpus"
MANY = 1000 if os.environ.get("ASSAY_SOAK") else 100
SEED = 20260101


@lru_cache(maxsize=1)
def library() -> tuple[dict[str, Document], tuple[Evidence, ...]]:
    """The corpus's plain texts as documents, and a piece of evidence for each paragraph that says something."""
    documents: dict[str, Document] = {}
    found: list[Evidence] = []
    for number, path in enumerate(sorted(CORPUS.rglob("*.md")) + sorted(CORPUS.rglob("*.txt"))):
        words = clean_text(path.read_text(encoding="utf-8"))
        doc = Document(f"d{number}", "b1", path.name, str(number), path.stem, words)
        documents[doc.id] = doc
        for match in re.finditer(r"\S[^\n]*(?:\n(?!\s*\n)[^\n]*)*", words):
            if len(match[0].split()) < 12 or is_table_row(match[0]) or is_suspicious(match[0]):
                continue
            passage = Passage(f"{doc.id}-{match.start()}", doc.id, match[0], match.start(), match.end())
            for start, end in split_sentences(match[0]):
                if 6 <= len(match[0][start:end].split()) <= 40 and match[0][start:end][-1] in ".!":
                    found.append(Evidence(evidence_key(passage), passage, quote(passage, start, end), 9.0, ""))
    return documents, tuple(found)


def said(piece: Evidence) -> Claim:
    """The sentence as a model would write it: word for word, and citing its passage."""
    return Claim(" ".join(piece.quote.text.split()), (piece.key,))


def quoted(piece: Evidence) -> Claim:
    return Claim("", (piece.key,), quote=piece.quote)


def verdict(claim: Claim, evidence: tuple[Evidence, ...], documents: dict[str, Document]) -> Verdict | None:
    return verify(claim, evidence, documents.get).verdict


# --- how citations go wrong -----------------------------------------------------------------------------------------

Alter = Callable[[Evidence, random.Random], Claim | None]


def _in(piece: Evidence, words: str, other: str) -> Claim | None:
    claim = said(piece)
    changed = claim.text.replace(words, other, 1)
    return replace(claim, text=changed) if changed != claim.text else None


def another_number(piece: Evidence, chance: random.Random) -> Claim | None:
    numbers = [each for each in re.findall(r"(?<![\w.,-])\d+(?:\.\d+)?(?![\w,.-])", piece.quote.text) if len(each) < 7]
    if not numbers:
        return None
    number = chance.choice(numbers)
    other = (
        str(int(float(number)) + chance.choice([1, 7, 13, 100])) if "." not in number else f"{float(number) + 1.3:.1f}"
    )
    return None if other in piece.passage.text else _in(piece, number, other)


def another_name(piece: Evidence, chance: random.Random) -> Claim | None:
    names = [each.text for each in find_names(piece.quote.text) if piece.quote.text.index(each.text) > 0]
    return (
        _in(piece, chance.choice(names), chance.choice(("Orla Venn", "Tobias Kree", "Halmstrand"))) if names else None
    )


def denied(piece: Evidence, chance: random.Random) -> Claim | None:
    """Not said where it was said, or said where it was not."""
    words = piece.quote.text
    if re.search(r"\b(?:not|no|never|none|nothing|nobody|neither|nor|without|n't)\b", words, re.I):
        return None
    verb = re.search(r"\b(?:is|are|was|were|has|have|can|may|must|will)\b", words)
    return _in(piece, verb[0], f"{verb[0]} not") if verb else None


def no_key(piece: Evidence, chance: random.Random) -> Claim:
    return replace(said(piece), cites=())


def invented_key(piece: Evidence, chance: random.Random) -> Claim:
    return replace(said(piece), cites=(f"{chance.getrandbits(32):08x}",))


def key_of_another_document(piece: Evidence, chance: random.Random) -> Claim | None:
    others = [each for each in library()[1] if each.passage.doc_id != piece.passage.doc_id]
    other = chance.choice(others)
    mine = frozenset(content_terms(piece.quote.text))
    if len(mine & frozenset(content_terms(other.passage.text))) > 0.3 * len(mine):
        return None  # it may well say the same
    return replace(said(piece), cites=(other.key,))


def moved(piece: Evidence, chance: random.Random) -> Claim:
    """The words are right, and the place is not."""
    by = chance.choice([-3, 1, 2, 5])
    mine = piece.quote
    return replace(quoted(piece), quote=Quote(mine.doc_id, mine.start + by, mine.end + by, mine.text))


def cut(piece: Evidence, chance: random.Random) -> Claim:
    mine = piece.quote
    at = chance.randint(1, len(mine.text) // 2)
    return replace(quoted(piece), quote=Quote(mine.doc_id, mine.start, mine.end, mine.text[:-at]))


def extended(piece: Evidence, chance: random.Random) -> Claim:
    mine = piece.quote
    more = chance.choice((" This is certain.", " Nobody doubts it.", " See above."))
    return replace(quoted(piece), quote=Quote(mine.doc_id, mine.start, mine.end + len(more), mine.text + more))


def swapped(piece: Evidence, chance: random.Random) -> Claim | None:
    """Two words of a quotation have changed places."""
    words = piece.quote.text.split(" ")
    one, other = chance.sample(range(len(words)), 2)
    words[one], words[other] = words[other], words[one]
    made = " ".join(words)
    mine = piece.quote
    return replace(quoted(piece), quote=Quote(mine.doc_id, mine.start, mine.end, made)) if made != mine.text else None


def of_another_document(piece: Evidence, chance: random.Random) -> Claim:
    other = chance.choice([each for each in library()[0].values() if each.id != piece.passage.doc_id])
    mine = piece.quote
    return replace(quoted(piece), quote=Quote(other.id, mine.start, mine.end, mine.text))


def outside_the_passage(piece: Evidence, chance: random.Random) -> Claim | None:
    """It stands in the document, but not in the passage that is cited."""
    others = [
        each
        for each in library()[1]
        if each.passage.doc_id == piece.passage.doc_id and each.passage.id != piece.passage.id
    ]
    return Claim("", (piece.key,), quote=chance.choice(others).quote) if others else None


ALTERED: tuple[Alter, ...] = (
    another_number,
    another_name,
    denied,
    no_key,
    invented_key,
    key_of_another_document,
    moved,
    cut,
    extended,
    swapped,
    of_another_document,
    outside_the_passage,
)


def altered(count: int) -> Iterator[tuple[str, Evidence, Claim]]:
    """As many altered claims, of every kind in turn."""
    chance = random.Random(SEED)
    pieces = list(library()[1])
    made = 0
    while made < count:
        alter = ALTERED[made % len(ALTERED)]
        piece = chance.choice(pieces)
        if (claim := alter(piece, chance)) is not None:
            made += 1
            yield alter.__name__, piece, claim


def test_every_altered_citation_is_caught():
    documents, evidence = library()
    missed = [
        (kind, piece.quote.text, claim.words)
        for kind, piece, claim in altered(MANY)
        if verdict(claim, evidence, documents) is Verdict.supported
    ]
    assert not missed, f"{len(missed)} of {MANY}: {Counter(kind for kind, *_ in missed)}: {missed[:3]}"


def test_no_good_citation_is_lost():
    """A sentence that stands under a title or an introduction, which may turn it round, is quoted with it instead."""
    documents, evidence = library()
    chance = random.Random(SEED)
    good = [make(chance.choice(evidence)) for number in range(MANY) for make in ((quoted, said)[number % 2],)]
    wrong = [
        (claim.words, verify(claim, evidence, documents.get).why)
        for claim in good
        if verdict(claim, evidence, documents) is not Verdict.supported and not is_quoted(claim, evidence)
    ]
    assert not wrong, f"{len(wrong)} of {MANY}: {wrong[:5]}"


def is_quoted(claim: Claim, evidence: tuple[Evidence, ...]) -> bool:
    own = tuple(each for each in evidence if each.key in claim.cites)
    found = quote_source(claim.words, own)
    return found is not None and found.quote is not None and claim.words in " ".join(found.quote.text.split())


def test_what_somebody_may_not_read_any_more_supports_nothing():
    documents, evidence = library()
    chance = random.Random(SEED)
    for piece in chance.sample(evidence, 20):
        rest = {key: each for key, each in documents.items() if key != piece.passage.doc_id}
        assert verdict(quoted(piece), evidence, rest) is not Verdict.supported
        assert verdict(said(piece), evidence, rest) is not Verdict.supported


def test_a_document_that_has_changed_since_supports_nothing():
    documents, evidence = library()
    chance = random.Random(SEED)
    for piece in chance.sample(evidence, 20):
        source = documents[piece.passage.doc_id]
        changed = documents | {
            source.id: replace(
                source, text=source.text[: piece.quote.start] + "X" + source.text[piece.quote.start + 1 :]
            )
        }
        assert verdict(quoted(piece), evidence, changed) is not Verdict.supported
        assert verdict(said(piece), evidence, changed) is not Verdict.supported


def test_a_quotation_that_a_model_altered_is_not_found_in_its_passage():
    """Before anything is evidence: what is not there, word for word, is not taken for a quotation."""
    chance = random.Random(SEED)
    pieces = [each for each in library()[1] if re.search(r"\d", each.quote.text)]
    for piece in chance.sample(pieces, min(40, len(pieces))):
        assert locate_quote(piece.quote.text, piece.passage.text) is not None
        changed = re.sub(r"\d", lambda match: str((int(match[0]) + 3) % 10), piece.quote.text)
        assert locate_quote(changed, piece.passage.text) is None
