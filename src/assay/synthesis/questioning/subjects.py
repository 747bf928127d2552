"""What a document is about, by rule: its headings and the names and terms it repeats, worded for a question. Pure.

Titles are not used: a title may be wrong, and questions must lead to what the text says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from assay.core.formats import format_named
from assay.core.types import Document
from assay.language.injection import is_suspicious
from assay.language.names import find_names
from assay.language.sentences import split_sentences
from assay.language.terms import asking_stems, content_terms, stem_word
from assay.language.words import stop_words
from assay.synthesis.questioning.abstracts import ASIDE

READ = 30_000  # characters of a document in which names and terms are counted
HEADINGS = 80  # headings per document, from its beginning
WORDS = 8  # maximum words of a heading that a question can be about
OFTEN = 2  # occurrences that make a name or a term a subject of the document
KEYED = 4  # maximum content words of a name or a term

# Headings without a subject of their own.
GENERIC = frozenset(
    stem_word(word)
    for word in (
        "introduction background abstract summary overview method methodology material result finding discussion conclusion "
        "outlook purpose objective aim scope term definition glossary reference appendix note general other miscellaneous "
        "contents preface foreword detail document measure what happened exception remark attachment example related work "
        "experiment evaluation analysis data limitation future recommendation section chapter part item page release version "
        "update figure table untitled sheet slide minutes meeting last next previous recommendations question answer txt"
    ).split()
)
WHEN = re.compile(r"(?:while|after|before|during|when|if|until|since|unless)\b", re.I)
MOVES = re.compile(r"(?:from|between|inside|within|behind|along|across|towards?|under)\b", re.I)
ASKS = re.compile(r"(?:why|how|what|who|whom|whose|which|whether|where)\b", re.I)
SUBJECT_ASKED = re.compile(r"(?:what|who)\s+(?!the\b|a\b|an\b|we\b|you\b|i\b|it\b|they\b|to\b|if\b)\w+", re.I)
POINTING = re.compile(r"\b(?:here|there|this|these|it|its|they|them|we|us|our|you|your|i|my|me)\b", re.I)
NUMBER = re.compile(
    r"^(?:(?:chapter|section|part|item|annex|appendix)\s+)?(?:\d+(?:\.\d+)*|[IVXLC]+|[A-Z])[.):]?\s+(?=\S)", re.I
)
LEADS = frozenset(
    "the a an of in at for from by with on into its their our his her between over under through about and or against during "
    "after before each every some any all both".split()
)
QUALIFIES = frozenset(
    "early late new old high higher highest low large small long short main full general recent specific worst".split()
)
PASSING = frozenset("today tomorrow yesterday otherwise instead again later sooner".split())
LINE = re.compile(r"\n\n([^\n]{3,60}[^\s.!?,;:])[ \t]*\n(?=\S)")  # a heading-like line above a paragraph
TOKEN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|\d[\d.,]*|[^\w\s]|\n")
FILE = re.compile(r"\.\w{2,4}$")
ASIDES = re.compile(r"(?<!\s)\s*+\([^)]{0,400}\)")
# Verb forms that follow a noun and do not look like verbs. Forms in -ed are recognised by their ending, and the most
# common verbs say nothing about the subject.
VERBS = frozenset(
    "allow apply appl appear arrive belong carry carri close come consist contain deliver depend differ draw drop enter "
    "exceed fall feed fell flow follow gave goe grow hang increas join lay lie lose lost lies occupi offer pass pay produc "
    "ran receiv reduc remain requir rise rose run seem sell sit smell speak stand stood suppli tend travel treat turn visit "
    "wait wear went wore stay lift rest drift give keep put make let get got became begun".split()
)

Key = tuple[str, ...]  # the stems of a name or a term


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject of a document, worded for a question. `asks` is the complete question if a heading can only be asked
    about in its own words."""

    words: str
    weight: float
    asks: str = ""

    @property
    def terms(self) -> frozenset[str]:
        return frozenset(content_terms(self.words))


def subjects(document: Document, others: Sequence[str]) -> list[Subject]:
    """The subjects of a document, most specific first. `others` are the abstracts of other documents: a subject that
    they share ranks lower."""
    common = spread(others)
    body = body_of(document)
    found = [*_of_headings(document, body), *_of_terms(phrases(body, 1, body), body)]
    rated = [Subject(each.words, each.weight * own(each.terms, common, len(others)), each.asks) for each in found]
    makers = [frozenset(content_terms(each)) for each in document.authors]
    kept: list[Subject] = []
    for each in sorted(rated, key=lambda each: -each.weight):
        if each.terms in makers:  # authors are not subjects
            continue
        if each.terms and not any(each.terms <= other.terms or other.terms <= each.terms for other in kept):
            kept.append(each)
    return kept


def beside(focus: str, document: Document, others: Sequence[str]) -> list[Subject]:
    """The subjects that a document mentions together with the focus, most specific first; empty if it does not
    mention the focus."""
    wanted = frozenset(content_terms(focus))
    common = spread(others)
    body = body_of(document)
    sentences = (body[slice(*span)] for span in split_sentences(body))
    near = [each for each in sentences if len(wanted & frozenset(content_terms(each))) * 2 > len(wanted)]
    found = _of_terms(phrases("\n".join(near), 1, body), body)
    rated = [Subject(each.words, each.weight * own(each.terms, common, len(others))) for each in found]
    return sorted((each for each in rated if not each.terms & wanted), key=lambda each: -each.weight)


def body_of(document: Document) -> str:
    """The text in which subjects are counted: without the header lines of a letter."""
    body = document.text[:READ]
    return body.partition("\n\n")[2] or body if format_named(document.kind).message_header else body


def spread(others: Sequence[str]) -> Counter[str]:
    """In how many of these texts each term occurs."""
    return Counter(term for words in others for term in _terms_of(words))


@lru_cache(maxsize=512)  # every document is compared with the abstracts of all others
def _terms_of(words: str) -> frozenset[str]:
    return frozenset(content_terms(words))


def own(terms: frozenset[str] | Key, common: Mapping[str, int], count: int) -> float:
    """How specific terms are to one document: 1 if no other document mentions them."""
    if not count or not terms:
        return 1.0
    shared = sum(common.get(term, 0) for term in terms)  # integers, so that the sum does not depend on set order
    return 1 - 0.8 * shared / (count * len(terms))


def with_article(words: str, body: str) -> str:
    """A term with the article that the text uses for it."""
    if words[:1].isupper() or words.startswith(("the ", "a ", "an ")):
        return words
    for article in ("the", "a", "an"):
        if re.search(rf"\b{article} {re.escape(words)}\b", body, re.I):
            return f"{article} {words}"
    return words


# --- headings -------------------------------------------------------------------------------------------------------


def _of_headings(document: Document, body: str) -> Iterator[Subject]:
    found = [(section.title, section.end) for section in document.sections[:HEADINGS]]
    found = found or [(line[1], line.end(1)) for line in LINE.finditer(body)]
    for (title, start), end in zip(found, (*(place for _, place in found[1:]), len(document.text)), strict=False):
        heading = ASIDES.sub("", NUMBER.sub("", " ".join(title.split()))).strip(" .:")
        if _unfit(heading, document):
            continue
        weight = 2.0 + min(1.0, (end - start) / 800)  # longer sections weigh more
        words = " and ".join(_in_a_sentence(part, body) for part in heading.split(": ") if part)
        yield Subject(words, weight, _asked_by(words))


def _asked_by(words: str) -> str:
    if WHEN.match(words):
        return f"What applies {words}?"
    if MOVES.match(words):
        return f"What happens {words}?"
    if SUBJECT_ASKED.match(words):
        return f"{words[0].upper()}{words[1:]}?"
    if ASKS.match(words):
        return f"What explains {words}?" if words.lower().startswith("why") else f"What is said about {words}?"
    return ""


def _unfit(heading: str, document: Document) -> bool:
    """Whether nothing can be asked about a heading: it is generic, refers to something else, or repeats the title."""
    meant = content_terms(heading)
    if not meant or len(heading.split()) > WORDS or ASIDE.search(heading) or POINTING.search(heading):
        return True
    if is_suspicious(heading) or FILE.search(heading) or set(meant) == set(content_terms(document.title)):
        return True
    return all(term in GENERIC or any(sign.isdigit() for sign in term) for term in meant)


def _in_a_sentence(heading: str, body: str) -> str:
    """A heading worded for the middle of a sentence: capitals only where the text uses them too, with its article."""
    loud = heading.isupper() and len(heading) > 6
    words = [word.capitalize() if loud else word for word in heading.split()]
    phrase = " ".join(word if is_proper(word, body) else word.lower() for word in words)
    return f"the {phrase}" if re.match(r"[a-z-]*[a-rt-z] of ", phrase) else with_article(phrase, body)


def is_proper(word: str, body: str) -> bool:
    """Whether a word is capitalised as a name, not because it starts a line or a sentence."""
    if not word[:1].isupper() or word[1:] != word[1:].lower() or any(sign.isdigit() for sign in word):
        return True
    return re.search(rf"[a-z,] {re.escape(word)}(?!\w)", body) is not None


# --- names and terms ------------------------------------------------------------------------------------------------


def _of_terms(found: Mapping[Key, tuple[str, int]], body: str) -> Iterator[Subject]:
    for key, (words, count) in found.items():
        weight = 0.2 * count + 0.3 * len(key) + 0.4 * words[0].isupper()
        passing = count < OFTEN + (len(key) == 1 and words.islower())  # a single word needs one more occurrence
        yield Subject(with_article(words, body), 0.3 * weight if passing else min(2.4, 0.5 + weight))


def phrases(words: str, least: int, body: str) -> dict[Key, tuple[str, int]]:
    """Names and terms that occur at least `least` times, by stems, with spelling and count. Of a term and a longer
    one that contains it, the longer one counts if it occurs nearly as often. `body` is the surrounding text, which
    shows what is a name."""
    mentions: Counter[Key] = Counter()
    spelled: dict[Key, Counter[str]] = {}
    for form in (*_names(words, body), *_terms(words)):
        key = tuple(content_terms(form))
        if 0 < len(key) <= KEYED and not all(term.isdigit() for term in key):
            mentions[key] += 1
            spelled.setdefault(key, Counter())[form] += 1
    kept = {key: count for key, count in mentions.items() if count >= least}
    whole = [
        key
        for key in kept
        if not any(len(key) < len(other) and _holds(other, key) and kept[other] * 2 > kept[key] for other in kept)
    ]
    return {key: (min(spelled[key], key=lambda form: (-spelled[key][form], form)), kept[key]) for key in whole}


def _holds(longer: Key, shorter: Key) -> bool:
    return any(longer[at : at + len(shorter)] == shorter for at in range(len(longer) - len(shorter) + 1))


def _names(words: str, body: str) -> Iterator[str]:
    for name in find_names(words):
        unit = words[: name.start].rstrip()[-1:].isdigit()  # 1.3 NTU
        alone = " " not in name.text and not is_proper(name.text, body)  # may be any word that starts a sentence
        shouted = " " in name.text and name.text.isupper()  # a line in capitals
        if "\n" in name.text or unit or alone or shouted or POINTING.search(name.text):
            continue
        if 2 < len(name.text) < 60:
            yield name.text


def _terms(words: str) -> Iterator[str]:
    """Runs of one to three plain words after an article or a preposition, as nouns occur, up to what looks like a
    verb."""
    tokens = TOKEN.findall(words)
    for place, lead in enumerate(tokens):
        if lead.lower() not in LEADS:
            continue
        run: list[str] = []
        after = ""
        for after in tokens[place + 1 : place + 5]:
            if not _is_plain(after) or (run and _is_verbal(after)):
                break
            run.append(after)
        # Before a word that may be noun or verb, a single word may be an adjective: "a dirty saw", "the gateway takes".
        lone = (
            len(run) == 1
            and after.islower()
            and after not in stop_words()
            and not _is_verbal(after)
            and after != run[0]
        )
        if 0 < len(run) < 4 and not lone and not _is_verbal(run[-1]) and run[-1] not in QUALIFIES:
            yield " ".join(run)


def _is_plain(word: str) -> bool:
    common = word in stop_words() or word in PASSING or (stem_word(word) in asking_stems() and word not in QUALIFIES)
    return len(word) > 2 and word.islower() and word[0].isalpha() and not common


def _is_verbal(word: str) -> bool:
    return stem_word(word) in VERBS or (word.endswith(("ed", "ly")) and word not in QUALIFIES)
