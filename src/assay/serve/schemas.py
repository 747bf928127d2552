"""What the HTTP schemas of all routes share, and how a question is asked. The OpenAPI document is generated from them."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal, Self

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from assay.core.errors import UserError
from assay.core.events import Checkpoint, Eagerness, Mode, Route, SearchFilters, Stakes
from assay.index.search_filter import parse_document_types
from assay.language.dates import first_day, last_day
from assay.workspace.types import AskOptions


class RequestModel(BaseModel):
    """What a client sends: nothing that is not known is let through unsaid."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ResponseModel(BaseModel):
    """What a client is told."""

    model_config = ConfigDict(frozen=True, from_attributes=True, json_schema_serialization_defaults_required=True)

    @classmethod
    def made_from(cls, *sources: object, **given: Any) -> Self:
        """A response with these fields; each of the others is the attribute of that name of the first source that has it."""
        for name in cls.model_fields.keys() - given.keys():
            if (source := next((each for each in sources if hasattr(each, name)), None)) is not None:
                given[name] = getattr(source, name)
        return cls.model_validate(given)


def require_number(value: object) -> object:
    """Require a JSON number, as documented; other types are not coerced."""
    if isinstance(value, bool | str):
        raise ValueError("a number is wanted")
    return value


NOT_BLANK = r"\S"  # not only whitespace
# How long a question may be is said by whoever is asked, with what to do about it.
QuestionText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, pattern=NOT_BLANK)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100, pattern=NOT_BLANK)]
Names = Annotated[tuple[Name, ...], Field(max_length=200)]  # each is looked up
Source = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000, pattern=NOT_BLANK)]
Date = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?$")]
PathId = Annotated[str, Path(max_length=100)]  # in the path of a route: the id of a run or document, or a name
BaseName = Annotated[str, Path(max_length=100, description="The name of a knowledge base.")]
PageSize = Annotated[int, Field(ge=1, le=200)]
Id = Annotated[str, StringConstraints(max_length=100)]
StrictFlag = Annotated[bool, Field(strict=True)]  # true or false; numbers and strings are not coerced


class ErrorResponse(ResponseModel):
    """Every error has this form: what is wrong and what to do, in a line a person can read."""

    error: str
    detail: str


def error_responses(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of a router, for the OpenAPI document."""
    return {code: {"model": ErrorResponse} for code in (400, 401, 403, 404, 422, 429, 503, *codes)}


class SearchLimits(RequestModel):
    """What a search or a question is limited to."""

    bases: Names = ()
    sources: Annotated[tuple[Source, ...], Field(max_length=200)] = ()
    documents: Annotated[tuple[Id, ...], Field(max_length=2000)] = ()  # ids: only these
    types: Names = ()
    since: Date | None = None
    until: Date | None = None
    undated: StrictFlag = False  # with `since` or `until`, also documents without a known date
    meta: Annotated[dict[Name, Name], Field(max_length=20)] = Field(default_factory=dict)  # author, tag, … → its value


class AskRequest(SearchLimits):
    """A question and how it is to be dealt with. `thread` goes on with a conversation, `talk` begins one; `instead_of` is a
    turn of it that is asked again: what that and later turns said is not known to the new one."""

    question: QuestionText
    mode: Mode = Mode.balanced
    eagerness: Eagerness | None = None
    checkpoints: tuple[Checkpoint, ...] | None = None
    route: Literal[Route.lookup, Route.research, Route.one_shot] | None = None  # the direct route cannot be requested
    model: StrictFlag = True
    named: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)] = ""  # one of the connected models
    stakes: Stakes = Stakes.normal  # high: a person reviews the answer before delivery
    thread: Id = ""
    talk: StrictFlag = False
    instead_of: Id = ""


def search_filters(limited: SearchLimits) -> SearchFilters:
    """The search filters. A year or month stands for its first or last day."""
    today = date.today().isoformat()
    first = first_day(limited.since, today) if limited.since else None
    last = last_day(limited.until, today) if limited.until else None
    if first and last and first > last:
        raise UserError(f"`since` ({first}) is later than `until` ({last}): no document can be dated so.")
    rest = limited.model_dump(include={"bases", "sources", "undated", "meta"})
    types = parse_document_types(limited.types)
    return SearchFilters(types=types, since=first, until=last, picked=limited.documents, **rest)


def ask_options(request: AskRequest) -> AskOptions:
    chosen = request.model_dump(include={"mode", "eagerness", "checkpoints", "route", "model", "named", "stakes"})
    return AskOptions(where=search_filters(request), **chosen)
