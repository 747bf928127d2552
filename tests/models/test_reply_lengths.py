"""Maximal lengths are not sent to endpoints, and longer text is cut, not refused."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import BaseModel, Field

from assay.agent.steps.plan import Planning
from assay.answer import weigh
from assay.models import replies


class Note(BaseModel):
    text: Annotated[str, Field(max_length=5)]


class Notes(BaseModel):
    notes: list[Note]
    names: list[Annotated[str, Field(max_length=3)]]


def test_no_schema_that_is_sent_has_a_maximal_length():
    sent = [replies.schema_of(Planning), replies.standalone_schema(weigh.schema(3))]
    assert not any("maxLength" in json.dumps(schema) for schema in sent)


def test_text_that_is_too_long_is_cut_wherever_it_stands():
    reply = json.dumps({"notes": [{"text": "a long note"}, {"text": "short"}], "names": ["Anna", "Bo"]})
    read = replies.read(Notes, reply)
    assert [note.text for note in read.notes] == ["a lon", "short"] and read.names == ["Ann", "Bo"]
