"""Drafts an answer with a model: the prompt, the reply's schema, and parsing the reply. Pure.

Nothing here is delivered: every claim of a draft is checked first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel
from pydantic_core import from_json

from assay import prompts
from assay.answer import claims
from assay.answer.checking.repetition import quotation, quote_source, stands_in
from assay.answer.claims import Sources, quotations
from assay.core.events import Drafted
from assay.core.printable import clean_text
from assay.core.types import Block, Claim, ClaimedCell, Evidence, Operand, Picture, Quote, Shape, Working
from assay.language.dates import with_weekday
from assay.language.terms import content_terms
from assay.models import replies
from assay.models.cost import estimate_tokens, fit_to_tokens
from assay.models.replies import list_schema, object_schema
from assay.prompts import fence
from assay.tables.cells import ROW_MARK

BLOCKS, CLAIMS, CITES, OPERANDS, CELLS = 8, 24, 6, 40, 16  # most that a reply may contain
LONGEST_FIELD = 200  # characters of a field of a cell


NO_FIGURES: Mapping[str, Picture] = {}


class Read(BaseModel, extra="forbid"):
    """A figure, date or item, and the evidence it is read from."""

    words: str
    cite: str


class Calculation(BaseModel, extra="forbid"):
    """The working of a claim: an expression over what was read, and its result."""

    expression: str
    operands: list[Read]
    result: str
    unit: str = ""


class Cell(BaseModel, extra="forbid"):
    """A figure from a table: its cell, by the ids that were shown, and what it is."""

    cite: str
    cell: str
    measure: str = ""
    period: str = ""
    organisation: str = ""
    value: str = ""
    direction: str = ""


class Stated(BaseModel, extra="forbid"):
    """A claim as it was written."""

    text: str
    cites: list[str] = []
    calculation: Calculation | None = None
    cells: list[Cell] = []
    picture: str = ""  # the key of the caption of the figure that it is read from


class Part(BaseModel, extra="forbid"):
    heading: str = ""
    claims: list[Stated]
    opinion: bool = False


class Writing(BaseModel, extra="forbid"):
    """A whole draft as it was written. The shape is a plain word: one that is not known is no reason to lose the draft."""

    shape: str = ""
    blocks: list[Part]
    conflicts: list[claims.Disputed] = []
    missing: list[str] = []

    @property
    def stated(self) -> int:
        """How many claims were written, as the reply counts them."""
        return sum(len(part.claims[:CLAIMS]) for part in self.blocks[:BLOCKS])


class Direct(BaseModel, extra="forbid"):
    """An answer that is not from the documents."""

    text: str


# --- what the model is shown ----------------------------------------------------------------------------------------


def schema(keys: Sequence[str], *, cells: bool = False, figures: Sequence[str] = ()) -> dict[str, Any]:
    """The JSON schema of a reply, in which only shown evidence can be cited; `figures` are the keys of those whose pictures
    are shown."""
    key = {"type": "string", "enum": list(keys)}
    more = {"calculation": calculation_schema(key)}
    more |= {"cells": cells_schema(key)} if cells else {}
    more |= {"picture": {"type": "string", "enum": ["", *figures]}} if figures else {}
    claim = object_schema(text={"type": "string"}, cites=list_schema(key, 1, CITES), **more)
    block = object_schema(heading={"type": "string"}, opinion={"type": "boolean"}, claims=list_schema(claim, 1, CLAIMS))
    disputed = object_schema(left=key, right=key, about={"type": "string"})
    return object_schema(
        shape={"type": "string", "enum": [each.value for each in Shape]},
        conflicts=list_schema(disputed, 0, 4),
        blocks=list_schema(block, 0, BLOCKS),
        missing=list_schema({"type": "string"}, 0, claims.GAPS),
    )


def calculation_schema(key: Mapping[str, Any]) -> dict[str, Any]:
    text = {"type": "string"}
    operand = object_schema(words=text, cite=key)
    whole = object_schema(expression=text, operands=list_schema(operand, 1, OPERANDS), result=text, unit=text)
    return {"anyOf": [whole, {"type": "null"}]}


def cells_schema(key: Mapping[str, Any]) -> dict[str, Any]:
    text = {"type": "string"}
    way = {"type": "string", "enum": ["", "up", "down", "same"]}
    cell = object_schema(cite=key, cell=text, measure=text, period=text, organisation=text, value=text, direction=way)
    return list_schema(cell, 0, CELLS)


def has_tables(evidence: Sequence[Evidence], sources: Sources) -> bool:
    """Whether a prompt with this evidence shows ids of cells."""
    return any(tables.rows for each in evidence if (tables := sources.tables(each.passage)))


def build_prompt(
    question: str,
    evidence: Sequence[Evidence],
    sources: Sources,
    mark: str,
    room: int,
    readings: Sequence[str] = (),
    missing: Sequence[str] = (),
    *,
    objections: Sequence[Claim] = (),
    definitions: str = "",
    today: str = "",
    pictures: bool = False,
) -> dict[str, str]:
    """The values of the prompt `write`, in at most `room` tokens: the question first, then as much evidence as fits."""
    asked = fit_to_tokens(" ".join(question.split()), max(room // 4, 16))
    notes = _note(
        "It may mean each of these; answer for each:", "readings", [fit_to_tokens(each, 40) for each in readings], mark
    )
    notes += _note("Not found so far:", "missing", [fit_to_tokens(each, 30) for each in missing[:4]], mark)
    failed = [f"{fit_to_tokens(claim.words, 60)} — {fit_to_tokens(claim.why, 60)}" for claim in objections]
    notes += _note("An earlier draft said this, and it did not hold:", "objections", failed, mark)
    notes += f"Usual definitions, unless the question gives its own: {definitions}.\n" if definitions else ""
    notes = notes if estimate_tokens(notes) <= max(room // 6, 8) else ""  # a truncated fence would not be closed
    about = prompts.template("write_pictures") if pictures else ""
    shown = _evidence(evidence, sources, mark, room, (asked, notes, about))
    if about:
        shown |= {"evidence": f"{about}\n{shown['evidence']}", "fields": f'{shown["fields"]}, "picture": ""'}
    return {"question": asked, "notes": notes, "today": with_weekday(today), **shown}


def build_rework_prompt(
    wish: str,
    question: str,
    blocks: Sequence[Block],
    evidence: Sequence[Evidence],
    sources: Sources,
    mark: str,
    room: int,
    *,
    today: str = "",
) -> dict[str, str]:
    """The values of the prompt `rework`, in at most `room` tokens: what is wanted, the claims of the last answer, and as
    much of its evidence as fits."""
    asked, wanted = (fit_to_tokens(" ".join(each.split()), max(room // 8, 16)) for each in (question, wish))
    lines = [
        f"{'Opinion' if block.opinion else 'Claim'} (cites {', '.join(claim.cites)}): {' '.join(claim.words.split())}"
        for block in blocks
        for claim in block.claims
    ]
    stated = fence(mark, "the last answer", fit_to_tokens("\n".join(lines), max(room // 3, 32)))
    shown = _evidence(evidence, sources, mark, room, (asked, wanted, stated))
    return {"wish": wanted, "question": asked, "claims": stated, "today": with_weekday(today), **shown}


def _evidence(
    evidence: Sequence[Evidence], sources: Sources, mark: str, room: int, beside: Sequence[str]
) -> dict[str, str]:
    """The evidence in the room that is left beside other values, and how calculations with it are given."""
    cells = has_tables(evidence, sources)
    how = how_to(room, cells=cells)
    left = room - sum(map(estimate_tokens, (*beside, how)))
    return {
        "evidence": quotations(evidence, sources, mark, left, cells=cells),
        "calculations": how,
        "fields": proof_fields(how, cells=cells),
    }


def how_to(room: int, *, cells: bool) -> str:
    """How calculations are given, and cells of tables, if there is room to say so."""
    note = prompts.template("calculations") + (prompts.template("cells") if cells else "")
    return note if estimate_tokens(note) <= room // 3 else ""


def proof_fields(how: str, *, cells: bool) -> str:
    """The fields of a claim's proofs in the example of a reply, where they are explained."""
    return ', "calculation": null' + (', "cells": []' if cells else "") if how else ""


def _note(head: str, label: str, lines: Sequence[str], mark: str) -> str:
    return f"{head}\n{fence(mark, label, chr(10).join(lines))}\n" if lines else ""


# --- what it wrote --------------------------------------------------------------------------------------------------


def read(
    reply: Writing,
    question: str,
    evidence: Sequence[Evidence],
    by: str,
    *,
    figures: Mapping[str, Picture] = NO_FIGURES,
) -> Drafted:
    """The draft as claims that cite only this run's evidence. A gap or
    conflict is kept only if it states nothing of its own; a heading that does is a claim."""
    known = {each.key for each in evidence}
    blocks: list[Block] = []
    stray: list[str] = []
    for part in reply.blocks[:BLOCKS]:
        own: list[Claim] = []
        for stated in part.claims[:CLAIMS]:
            sentences, strange = read_claim(stated, known, figures=figures)
            own += sentences
            stray += strange
        first = {claim.text: claim for claim in reversed(own)}
        own = [first[text] for text in dict.fromkeys(claim.text for claim in own)]  # drop repetitions
        if own:
            heading, stating = claims.read_heading(part.heading, question, evidence, own)
            blocks.append(Block((*stating, *own), heading, part.opinion))
    conflicts = [found for each in reply.conflicts if (found := claims.read_conflict(each, question, evidence))]
    known_words = claims.known_words(question, evidence)
    stated = [frozenset(content_terms(claim.text)) for block in blocks for claim in block.claims]
    if blocks:  # an answer followed by a repetition of the question names no gap
        stated.append(frozenset(content_terms(question)))
    gaps = (
        claims.accept_gap(each, known_words, known) or question
        for each in reply.missing[: claims.GAPS]
        if not any(frozenset(content_terms(each)) <= sentences for sentences in stated)  # a stated part is not missing
    )
    return Drafted(
        tuple(blocks),
        Shape(reply.shape) if reply.shape in set(Shape) else Shape.prose,
        tuple(conflicts),
        by=by,
        missing=tuple(dict.fromkeys(gaps)),
        stray=tuple(dict.fromkeys(stray)),
    )


def read_begun(text: str) -> tuple[Writing, int] | None:
    """The whole claims of a draft that is being written, and how many have begun. A claim is whole when the next one begins;
    what its block is must be known, and the conflicts, which a reader has to see together. None if there is nothing yet."""
    try:
        raw = from_json(text.strip(), allow_partial=True) if text.lstrip().startswith("{") else {}
    except ValueError:
        return None
    names = list(raw)
    listed = raw.get("blocks")
    if not isinstance(listed, list) or "conflicts" not in names[: names.index("blocks")]:
        return None
    blocks = [dict(each) for each in listed[:BLOCKS] if isinstance(each, dict) and isinstance(each.get("claims"), list)]
    begun = sum(len(each["claims"][:CLAIMS]) for each in blocks)
    if blocks and names[-1] == "blocks":
        last = list(blocks[-1])
        known = {"heading", "opinion"} <= set(last[: last.index("claims")])
        blocks[-1]["claims"] = blocks[-1]["claims"][:-1] if known else []
    raw |= {"blocks": [each for each in blocks if each["claims"]]}
    try:
        return replies.fit(Writing, raw), begun
    except replies.UnreadableReply:
        return None


def quote_sources(draft: Drafted, evidence: Sequence[Evidence]) -> Drafted:
    """A draft that no judge will read, in which each sentence that was copied or evidently taken from a cited passage is the
    quotation of its block: what stands beside a sentence may turn it round. The rest is checked, and fails."""
    blocks: list[Block] = []
    quoted: set[Quote] = set()
    for block in draft.blocks:
        own: list[Claim] = []
        for claim in block.claims:
            own_words = block.opinion or claim.quote or claim.text == block.heading
            made = claim if own_words else _quoted(claim, evidence)
            if made.quote is None or made.quote not in quoted:
                own.append(made)
            quoted |= {made.quote} if made.quote else set()
        blocks += [replace(block, claims=tuple(own))] if own else []
    return replace(draft, blocks=tuple(blocks))


def _quoted(claim: Claim, evidence: Sequence[Evidence]) -> Claim:
    """The quotation for a claim: of the sentence that it copies, wherever that stands, or was taken from; else itself."""
    cited = [each for each in evidence if each.key in claim.cites]
    for each in (*cited, *evidence):
        copied = stands_in(claim.text, each.passage.text)
        if copied is not None and (made := quotation(each, copied)):
            return made
    return quote_source(claim.text, cited) or claim


def read_claim(
    stated: Stated, known: Collection[str], *, figures: Mapping[str, Picture] = NO_FIGURES
) -> tuple[tuple[Claim, ...], tuple[str, ...]]:
    """One written claim, in sentences if it is very long, and the keys that were removed from it. Its calculation and
    its cells belong to the first sentence that states the result, or to the last."""
    sentences, stray = claims.split_claims(ROW_MARK.sub("", stated.text), stated.cites, known, whole=True)
    if figure := figures.get(
        stated.picture.strip().lower()
    ):  # every sentence of it: which one it is read from is unknown
        key = stated.picture.strip().lower()
        return tuple(
            replace(each, cites=tuple(dict.fromkeys((*each.cites, key))), figure=figure) for each in sentences
        ), stray
    result = stated.calculation.result.strip(" %$€£") if stated.calculation else ""
    place = next((at for at, claim in enumerate(sentences) if result and result in claim.text), len(sentences) - 1)
    return tuple(
        with_proofs(claim, stated, known) if at == place else claim for at, claim in enumerate(sentences)
    ), stray


def with_proofs(claim: Claim, stated: Stated, known: Collection[str]) -> Claim:
    """The claim with its working and its cells; it also cites what they are read from."""
    cells = tuple(_claimed(each) for each in stated.cells[:CELLS])
    working, operands = claim.working, ()
    if (own := stated.calculation) and own.expression.strip():
        operands = tuple(
            Operand(ROW_MARK.sub("", each.words), each.cite.strip().lower()) for each in own.operands[:OPERANDS]
        )
        working = Working(own.expression, operands, own.result, own.unit)
    read = (each.cite for each in (*operands, *cells) if each.cite in known)
    cites = tuple(dict.fromkeys((*claim.cites, *read)))
    return replace(claim, cites=cites, working=working, cells=cells or claim.cells)


def _claimed(cell: Cell) -> ClaimedCell:
    fields = (cell.measure, cell.period, cell.organisation, cell.value, cell.direction)
    measure, period, organisation, value, direction = (" ".join(each.split())[:LONGEST_FIELD] for each in fields)
    cite, place = cell.cite.strip().lower(), cell.cell.strip()[:LONGEST_FIELD]
    return ClaimedCell(cite, place, measure, period, organisation, value, direction)


def read_direct(reply: Direct, by: str) -> Drafted:
    """An answer that is not from the documents; any citation in it would be invented."""
    words = claims.extract_citations(clean_text(reply.text), ()).words.strip()
    return Drafted((), Shape.prose, by=by, said=words)
