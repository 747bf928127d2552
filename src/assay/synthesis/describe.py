"""First stage: a portrait of each document. Title, authors and year come from ingestion; the model that reads the document
fills gaps, only with words found in it. A missing abstract is extracted from the document's sentences."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Protocol

from assay.agent.context import RunContext, run_in_order
from assay.answer.claims import STATES
from assay.core.events import Described, Event
from assay.core.printable import clean_text
from assay.core.run import Run
from assay.core.synthesis import Portrait
from assay.core.types import Document
from assay.ingest.metadata.file_fields import is_name, is_organisation
from assay.language.injection import is_suspicious
from assay.language.quotation import locate_quote
from assay.language.sentences import is_table_row
from assay.synthesis import key_sentences, state

BEGINNING = 4000  # characters at the start of a document in which it identifies itself
NAME, NAME_WORDS = 60, 7  # characters and words of the name of a document
AUTHORS = 12
GONE = "it can no longer be read"
SILENT = "it has no sentences that can be read"
YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
# What may surround a title (behind it a page number, too), and what may surround an author. Names in running text are not
# accepted as authors: a small model mistakes the towns and makers that a document mentions for its authors.
LINE = re.compile(r"^[\s#*\"“'‘]*(?:title\s*:\s*)?$", re.I), re.compile(r"[\"”'’.*:\s\d]{0,40}(?:\n|$)")
BYLINE = (
    re.compile(r"(?:^|[,;&]|\band|\bby|\bauthors?\s*:?|^from\s*:|\d|[*†‡])\s*$", re.I),
    re.compile(r"[\s*†‡\d]{0,40}(?:\n|$|[,;&(.<]|and\b)"),
)

LABEL = re.compile(r"\bD[1-9][0-9]{0,3}\b")


class Identity(Protocol):
    """What a document says of itself, as a model reads it; empty where it does not say."""

    name: str
    title: str
    authors: list[str]
    year: str


async def describe(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Yield a portrait of each document that has none yet, in the order of the brief."""
    known = state.portraits(run)
    missing = [doc for doc in state.brief(run).documents if doc not in known]
    focus = state.brief(run).focus
    async for event in run_in_order(_describe_document(context, doc, focus) for doc in missing):
        yield event


async def _describe_document(context: RunContext, doc_id: str, focus: str) -> Described:
    document = context.document(doc_id)
    if document is None:
        return Described(Portrait(doc_id, "", empty=GONE))
    portrait = portrait_by_rule(document)
    if abstract := key_sentences.own_abstract(document):
        return Described(replace(portrait, abstract=abstract))
    made = await key_sentences.pick(context, document, focus)
    return Described(replace(portrait, abstract=made, made=True) if made else replace(portrait, empty=SILENT))


# --- title, authors, year -------------------------------------------------------------------------------------------


def portrait_by_rule(document: Document) -> Portrait:
    """The metadata from ingestion; if the title is only the name of the file, the title that the text begins with."""
    found = YEAR.match(document.date or "")
    return Portrait(document.id, key_sentences.own_title(document), document.authors, found[0] if found else "")


def fill_identity(identity: Identity, by: str, document: Document, portrait: Portrait) -> Portrait:
    """The portrait with its gaps filled from a model's reading, as far as the values occur in the beginning of the
    document, and with the name that sentences call it by."""
    beginning = document.text[:BEGINNING]
    own: dict[str, Any] = {}
    if key_sentences.is_file_name(portrait.title, document):
        own["title"] = _find_in_document(identity.title, beginning, LINE)
    if not portrait.authors:
        named = (_find_in_document(each, beginning, BYLINE) for each in identity.authors[:AUTHORS])
        own["authors"] = tuple(dict.fromkeys(each for each in named if is_name(each) or is_organisation(each)))
    if not portrait.year and (found := YEAR.fullmatch(identity.year.strip())):
        own["year"] = found[0] if re.search(rf"(?<!\d){found[0]}(?!\d)", beginning) else ""
    own = {key: value for key, value in own.items() if value}
    return replace(portrait, name=_usable_name(identity.name), **own, by=by if own else portrait.by)


def _usable_name(words: str) -> str:
    """The name, if it only names: a few words without a verb, and no instruction."""
    name = " ".join(clean_text(words).split()).strip("“”\"' .")
    long = len(name) > NAME or len(name.split()) > NAME_WORDS
    return "" if long or STATES.search(name) or LABEL.search(name) or is_suspicious(name) else name


def _find_in_document(words: str, beginning: str, where: tuple[re.Pattern[str], re.Pattern[str]]) -> str:
    """The words as the document spells them, on one line; empty if they do not occur in such a place."""
    span = locate_quote(words, beginning) if len(words.strip()) > 2 else None
    if span is None or is_suspicious(words):
        return ""
    before, after = where
    line = beginning[beginning.rfind("\n", 0, span[0]) + 1 : span[0]]
    if not before.search(line) or not after.match(beginning, span[1]) or is_table_row(line + beginning[slice(*span)]):
        return ""
    return " ".join(beginning[slice(*span)].split())
