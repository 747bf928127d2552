"""First stage: a portrait of each document. Title, authors and year come from ingestion; a model fills gaps, only
with words found in the document. A missing abstract is extracted from the document's sentences."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from assay.agent.context import RunContext, mark
from assay.core.account import Portrait
from assay.core.events import Described, Event
from assay.core.events.maker import stand_in
from assay.core.run import Run
from assay.core.types import Document
from assay.evidence.quotation import locate_quote, stands
from assay.ingest.metadata.authors import is_name, is_organisation
from assay.language.injection import is_suspicious
from assay.language.sentences import is_table_row
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.models.token_estimate import fit_to_tokens
from assay.prompts.fence import fence
from assay.synthesis import state
from assay.synthesis.questioning import abstracts

AT_ONCE = 8  # documents in memory at a time
BEGINNING = 4000  # characters at the start of a document in which it identifies itself
SHOWN, SHOWN_SMALL = 900, 450  # tokens of the beginning that a prompt shows
AUTHORS = 12
GONE = "it can no longer be read"
SILENT = "it has no sentences that can be read"
YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
# What may surround a title, and what may surround an author. Names in running text are not accepted as authors: a small
# model mistakes the towns and makers that a document mentions for its authors.
LINE = re.compile(r"^[\s#*\"“'‘]*(?:title\s*:\s*)?$", re.I), re.compile(r"[\"”'’.*:\s]{0,40}(?:\n|$)")
BYLINE = (
    re.compile(r"(?:^|[,;&]|\band|\bby|\bauthors?\s*:?|^from\s*:|\d|[*†‡])\s*$", re.I),
    re.compile(r"[\s*†‡\d]{0,40}(?:\n|$|[,;&(.<]|and\b)"),
)

Short = Annotated[str, Field(max_length=300)]


class IdentityReply(BaseModel):
    """What a document says of itself, as a model reads it; empty where it does not say."""

    model_config = ConfigDict(strict=True, extra="forbid")

    title: Short = ""
    authors: list[Short] = Field(default_factory=list, max_length=40)
    year: Annotated[str, Field(max_length=20)] = ""


async def describe(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Yield a portrait of each document that has none yet, in the order of the brief."""
    known = state.portraits(run)
    missing = [doc for doc in state.brief(run).documents if doc not in known]
    for block in state.batches(missing, AT_ONCE):
        async for event in state.run_in_order(_describe_document(run, context, doc) for doc in block):
            yield event


async def _describe_document(run: Run, context: RunContext, doc_id: str) -> Described:
    document = context.document(doc_id)
    if document is None:
        return Described(Portrait(doc_id, "", empty=GONE))
    described = Described(portrait_by_rule(document))
    if run.asked.has_model and is_incomplete(described.portrait, document):
        described = await _fill_by_model(run, context, document, described.portrait)
    return replace(described, portrait=await _with_abstract(context, document, described.portrait))


async def _with_abstract(context: RunContext, document: Document, portrait: Portrait) -> Portrait:
    if abstract := abstracts.own_abstract(document):
        return _assert_quoted(replace(portrait, abstract=abstract), document)
    spans = abstracts.candidates(document)
    if not spans:
        return replace(portrait, empty=SILENT)
    vectors = await context.tool_context.search_context.embedder.queries(
        [document.text[slice(*span)] for span in spans]
    )
    return _assert_quoted(
        replace(portrait, abstract=abstracts.make_abstract(document, spans, vectors), made=True), document
    )


def _assert_quoted(portrait: Portrait, document: Document) -> Portrait:
    assert all(stands(each, document) for each in portrait.abstract), "an abstract is quoted"
    return portrait


# --- title, authors, year -------------------------------------------------------------------------------------------


def portrait_by_rule(document: Document) -> Portrait:
    """The metadata from ingestion, with the file name if there is no title."""
    found = YEAR.match(document.date or "")
    return Portrait(
        document.id, document.title.strip() or _file_name(document), document.authors, found[0] if found else ""
    )


def is_incomplete(portrait: Portrait, document: Document) -> bool:
    return _has_no_title(document) or not portrait.authors or not portrait.year


def _has_no_title(document: Document) -> bool:
    """Whether the title is only the file name."""
    return document.title.strip() in ("", _file_name(document), PurePosixPath(_file_name(document)).stem)


def _file_name(document: Document) -> str:
    return re.split(r"[/\\]", document.uri.rstrip("/\\"))[-1] or document.uri


async def _fill_by_model(run: Run, context: RunContext, document: Document, portrait: Portrait) -> Described:
    most = SHOWN_SMALL if context.small(Role.judge) else SHOWN
    label = state.labels(run)[document.id]
    reply = await context.ask(
        Role.judge,
        "describe",
        IdentityReply,
        lambda room: build_prompt(document, label, mark(run), min(room, most)),
        schema=schema(),
        documents=[document.id],
        max_tokens=200,
    )
    if isinstance(reply, NoReply):
        maker = stand_in(reply.why)
        return Described(replace(portrait, by=maker.label), maker.fallback)
    return Described(fill_from_reply(*reply, document, portrait))


def build_prompt(document: Document, label: str, mark: str, room: int) -> Mapping[str, str]:
    """The values of the prompt `describe`: the beginning of the document."""
    frame = 60  # tokens of the fence around it
    return {
        "beginning": fence(
            mark, f"{label}, how it begins", fit_to_tokens(document.text[:BEGINNING], max(8, room - frame))
        )
    }


def schema() -> dict[str, Any]:
    text = {"type": "string"}
    properties = {"title": text, "authors": {"type": "array", "items": text, "maxItems": AUTHORS}, "year": text}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def fill_from_reply(identity: IdentityReply, by: str, document: Document, portrait: Portrait) -> Portrait:
    """The portrait with its gaps filled, as far as the values occur in the beginning of the document."""
    beginning = document.text[:BEGINNING]
    title, authors, year = "", (), ""
    if _has_no_title(document):
        title = _find_in_document(identity.title, beginning, LINE)
    if not portrait.authors:
        named = (_find_in_document(each, beginning, BYLINE) for each in identity.authors[:AUTHORS])
        authors = tuple(dict.fromkeys(each for each in named if is_name(each) or is_organisation(each)))
    if not portrait.year and (found := YEAR.fullmatch(identity.year.strip())):
        year = found[0] if re.search(rf"(?<!\d){found[0]}(?!\d)", beginning) else ""
    if not (title or authors or year):
        return portrait
    return replace(
        portrait,
        title=title or portrait.title,
        authors=authors or portrait.authors,
        year=year or portrait.year,
        by=by,
    )


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
