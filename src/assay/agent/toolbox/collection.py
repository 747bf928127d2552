"""`catalogue`: the documents that a question about the collection is about. Only the rules use it.

A question is parsed into what is asked (`Wanted`) and which documents it is asked of. It is about the collection only
if the whole question is understood this way; everything else is searched for in the texts.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from assay.agent.tool import Query, Result, ToolContext, as_found, built_in
from assay.agent.toolbox.documents import some
from assay.core.formats import formats_by_label, formats_by_noun
from assay.core.types import Hit, file_name
from assay.language.dates import MONTHS
from assay.language.terms import content_terms, fold_case
from assay.store.documents import Traits
from assay.tables.derive import LISTED

DEEP = 400  # passages read in search of a mention
LAST = 100  # of them that must have none: else there may be more


@built_in()
async def catalogue(context: ToolContext, question: Query) -> Result:
    """Find the documents that a question about the collection is about.

    question: the question
    """
    asked = parse(question)
    if asked is None:
        return Result((), "it is not about the collection")
    listed = sorted(context.traits(), key=lambda each: each.uri)
    mentioning = await _mentioning(context, asked)
    selected = select(asked, listed, list(mentioning or ()))
    if mentioning is None or not selected:
        return Result((), some(len(selected), "document") if mentioning is not None else "there may be more mentions")
    named = selected[:LISTED]
    hits = await asyncio.gather(*(_opening(context, each.id, mentioning) for each in named))
    found = [hit for hit in hits if hit is not None]
    if len(found) < len(named):
        return Result((), "some of the documents have no text")
    note = f"{asked.wanted} of {some(len(selected), 'document')}"
    return Result(as_found(found), note, tuple(each.id for each in named), left=len(selected) - len(named))


async def _mentioning(context: ToolContext, asked: CatalogueQuestion) -> dict[str, Hit] | None:
    """The first passage of each document that contains the words; None if not all of them may have been found."""
    if asked.limit not in {Limit.mention, Limit.about}:
        return {}
    hits = await context.retrieve(asked.words, DEEP, deep=True)
    having = [(place, hit) for place, hit in enumerate(hits) if mentions(hit.passage.text, asked.words)]
    if having and having[-1][0] >= DEEP - LAST:
        return None
    found: dict[str, Hit] = {}
    for _, hit in having:
        found.setdefault(hit.passage.doc_id, hit)
    return found


async def _opening(context: ToolContext, document: str, mentioning: dict[str, Hit]) -> Hit | None:
    if document in mentioning:
        return mentioning[document]
    passages = await context.passages(document)
    return passages[0] if passages else None


class Wanted(StrEnum):
    number = "number"
    documents = "documents"
    date = "date"
    authors = "authors"
    titled = "title"


class Limit(StrEnum):
    """How documents are selected."""

    everything = "everything"
    mention = "mention"  # the text contains the words
    about = "about"  # the title contains the words, or the text does
    author = "author"
    dated = "dated"
    named = "named"  # title or file name contain the words
    newest = "newest"
    oldest = "oldest"


@dataclass(frozen=True, slots=True)
class CatalogueQuestion:
    """What is asked, and of which documents. `kinds` are formats; `words` go with `limit`."""

    wanted: Wanted
    limit: Limit
    words: str = ""
    kinds: tuple[str, ...] = ()


KINDS, LABELS = formats_by_noun(), formats_by_label()  # words that name a format select it
PLAIN = "document|file|source|text|paper|article|item|publication|record"
NOUN = (
    rf"(?:(?P<label>{'|'.join(map(re.escape, LABELS))}) (?={PLAIN}|{'|'.join(map(re.escape, KINDS))}))?"
    rf"(?P<noun>{PLAIN}|{'|'.join(map(re.escape, KINDS))})s?"
)
PLACE = (
    r"(?: (?:are|is|were)(?: there| here| available| indexed| stored| known)?"
    r"| (?:do|can|did) (?:you|we|i) (?:have|know|see|hold)| have (?:you|we|i)(?: got)?| exist)?"
    r"(?: (?:in|of) (?:the|this|my|our|your) (?:\w+ )?(?:collection|library|base|workspace|folder|corpus|set))?"
)
OPEN = (
    r"(?:(?:please )?(?:list|show me|show|name|give me)(?: (?:all|every|each))?(?: of)?(?: the| my| our)?"
    r"|which(?: of (?:the|my|our))?|what|(?:are there|do you have|do we have|is there)(?: any| a| an)?)"
)
SPEAK = (
    r"(?:mention(?:s|ed|ing)?|discuss(?:es)?|refer(?:s)? to|talk(?:s)? about|speak(?:s)? (?:of|about)|contain(?:s)?"
    r"|name(?:s)?)"
)
TOPIC = r"(?:(?:are|is|were) )?(?:about|on|concerning|dealing with|deal with|cover(?:ing)?)"
CREATED = r"(?:(?:were|was|are|is|have been) )?(?:written|authored|sent|published|issued|prepared|created)"
YEAR = r"(?P<day>(?:[a-z]+ )?(?:19|20)\d\d(?:-\d\d(?:-\d\d)?)?)"
THIS = r"(?:the |that |this |our |my )?(?P<about>.+)"
WRITE = r"(?:written|published|issued|dated|sent|created|released|prepared)"
CALLED = re.compile(rf"\b{NOUN}\b", re.I)
LEAD = rf"(?:(?P<count>how many)|{OPEN})"
DATED = rf"(?:(?:{CREATED} |(?:are |were )?dated )(?:in |from )?|(?:are |were |date )?(?:from|in|of) ){YEAR}"
END = r"(?:(?P<newest>newest|latest|most recent|youngest)|oldest|earliest|first)"
WHO = r"who (?:wrote|authored|sent|prepared|published|issued|(?:is|are|was|were) the (?:authors?|writers?|senders?) of)"
FORMS = tuple(  # of a question about the collection
    (re.compile(rf"{pattern}\W*", re.I), wanted, limit)
    for pattern, wanted, limit in (
        (rf"{LEAD} {NOUN} (?:that )?{SPEAK} (?P<words>.+)", Wanted.documents, Limit.mention),
        (rf"{LEAD} {NOUN}(?: do (?:you|we) have)? {TOPIC} (?P<words>.+)", Wanted.documents, Limit.about),
        (rf"{LEAD} {NOUN} (?:{CREATED} by {THIS}|(?:by|from) (?P<by>(?!\d).+))", Wanted.documents, Limit.author),
        (rf"(?:what|which {NOUN}) did (?P<about>.+) (?:write|author|send|publish)", Wanted.documents, Limit.author),
        (rf"{LEAD} {NOUN} {DATED}", Wanted.documents, Limit.dated),
        (rf"{LEAD} (?:are |is )?(?:the )?{NOUN}{PLACE}", Wanted.documents, Limit.everything),
        (
            rf"(?:what|which)(?: is|'s)? (?:the |our |my )?{END} {NOUN}(?: is this)?{PLACE}",
            Wanted.documents,
            Limit.oldest,
        ),
        (rf"which {NOUN} is (?:the )?{END}", Wanted.documents, Limit.oldest),
        (rf"{WHO} {THIS}", Wanted.authors, Limit.named),
        (rf"by whom (?:is|was|were) {THIS} (?:written|sent|published)", Wanted.authors, Limit.named),
        (rf"when (?:was|were|is) {THIS} {WRITE}", Wanted.date, Limit.named),
        (rf"(?:(?:what|which) (?:is|was) the date of|how old is) {THIS}", Wanted.date, Limit.named),
        (rf"(?:what|which) date (?:is|was|does) {THIS}(?: {WRITE}| have| bear| carry)", Wanted.date, Limit.named),
        (rf"what (?:is|was) the (?:full |exact )?title of {THIS}", Wanted.titled, Limit.named),
        (rf"what is {THIS} (?:called|titled|entitled)", Wanted.titled, Limit.named),
    )
)
PRONOUNS = frozenset("it they them this that these those".split())


def parse(question: str) -> CatalogueQuestion | None:
    """The question as one about the collection; None if it is not wholly of a known form."""
    plain = " ".join(question.strip().rstrip("?.! ").split())
    for pattern, wanted, limit in FORMS:
        match = pattern.fullmatch(plain)
        if match is None:
            continue
        parts = match.groupdict()
        said = (parts.get(each) for each in ("words", "about", "by", "day"))
        words = next(filter(None, said), "").strip(" \"“”'‘’")
        names_something = bool(content_terms(words)) and fold_case(words) not in PRONOUNS
        if limit in {Limit.mention, Limit.about, Limit.author, Limit.named} and not names_something:
            continue
        if limit in {Limit.mention, Limit.about} and re.search(r"\b(?:and|or|but|not|which|that|who)\b", words):
            continue  # more than one condition
        wanted = Wanted.number if parts.get("count") else wanted
        limit = Limit.newest if parts.get("newest") else limit
        return CatalogueQuestion(wanted, limit, words, _kinds(match))
    return None


def _kinds(match: re.Match[str]) -> tuple[str, ...]:
    """The formats that a noun, or the label before it, names; empty if it may be any."""
    parts = {name: fold_case(words or "") for name, words in match.groupdict().items()}
    return LABELS.get(parts.get("label", "")) or KINDS.get(parts.get("noun", ""), ())


# --- selecting ------------------------------------------------------------------------------------------------------


def select(asked: CatalogueQuestion, documents: Sequence[Traits], mentioning: Sequence[str] = ()) -> list[Traits]:
    """The documents that the question is about, oldest first where dates matter; `mentioning` are the ids of those whose
    text contains its words. Empty if it names none, or a single one is asked for and several fit."""
    among = [each for each in documents if not asked.kinds or each.kind in asked.kinds]
    match asked.limit:
        case Limit.everything:
            return among
        case Limit.mention:
            return [each for each in among if each.id in mentioning]
        case Limit.about:
            titled = [each for each in among if _has_all(f"{each.title} {_spaced(each.uri)}", asked.words)]
            return titled or [each for each in among if each.id in mentioning]
        case Limit.author:
            return [each for each in among if any(_has_all(author, asked.words) for author in each.authors)]
        case Limit.dated:
            return [each for each in among if (each.date or "").startswith(_iso(asked.words))]
        case Limit.newest | Limit.oldest:
            dated = sorted(
                (each for each in among if each.date), key=lambda each: (each.date or "", file_name(each.uri))
            )
            return dated[-1:] if asked.limit is Limit.newest else dated[:1]
        case Limit.named:
            return _named(asked, documents)


def _named(asked: CatalogueQuestion, documents: Sequence[Traits]) -> list[Traits]:
    """The one document that the words name by its title and file name, best of all; empty if two fit as well."""
    kinds = next((found for match in CALLED.finditer(asked.words) if (found := _kinds(match))), ())
    plain = CALLED.sub(" ", asked.words)
    wanted = set(
        content_terms(re.sub(r"\b(?:about|entitled|titled|called|named|with the (?:title|subject))\b", " ", plain))
    )
    if not wanted:
        return []
    fitting: list[tuple[float, Traits]] = []
    for each in documents:
        if kinds and each.kind not in kinds:
            continue
        title, name = set(content_terms(each.title)), set(content_terms(_spaced(each.uri)))
        if wanted <= title | name:
            fitting.append((len(wanted) / max(1, len(title)), each))
    fitting.sort(key=lambda pair: -pair[0])
    if len(fitting) > 1 and fitting[0][0] < 1.2 * fitting[1][0]:
        return []
    valued = [each for _, each in fitting[:1]]
    if asked.wanted is Wanted.date:
        return [each for each in valued if each.date]
    return [each for each in valued if asked.wanted is not Wanted.authors or each.authors]


def _spaced(uri: str) -> str:
    return re.sub(r"[-_.]+", " ", file_name(uri))


def _has_all(text: str, words: str) -> bool:
    wanted = set(content_terms(words))
    return bool(wanted) and wanted <= set(content_terms(text))


def _iso(words: str) -> str:
    """2022, 2022-05 or "May 2022" as the beginning of a date."""
    plain = fold_case(words)
    month, _, year = plain.rpartition(" ")
    return f"{year}-{MONTHS[month]:02}" if month in MONTHS else year


def mentions(text: str, words: str) -> bool:
    """Whether a text contains the words as a phrase, whatever their case and form."""
    wanted, there = content_terms(words), content_terms(text)
    return any(there[place : place + len(wanted)] == wanted for place in range(len(there) - len(wanted) + 1))
