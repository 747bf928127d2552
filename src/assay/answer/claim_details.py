"""What a reader can open on a claim: its basis, who gave the verdict, and the working. Pure except for `document`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from assay.answer.checking import working
from assay.answer.checking.claim_rules import cited_texts, unhedged
from assay.answer.checking.judge import DIFFER, Documents, sources_of
from assay.core.events import RULES, Checked, Event
from assay.core.printable import one_line
from assay.core.types import Answer, Basis, Block, CellFacts, Claim, Derivation, Evidence
from assay.language.quotation import find_words, line_at

CODE = "code"
BASIS_TEXT = {each: each.value for each in Basis} | {
    Basis.table: "from a table",
    Basis.catalogue: "from the catalogue",
    Basis.scan: "from a scan, read by OCR and not proven",
    Basis.figure: "read from a figure, and not proven",
}
DERIVED = {
    Derivation.cell: Basis.table,
    Derivation.facts: Basis.table,
    Derivation.rows: Basis.table,
    Derivation.extreme: Basis.comparison,
    Derivation.counted: Basis.counted,
    Derivation.number: Basis.counted,
    Derivation.total: Basis.calculation,
    Derivation.documents: Basis.catalogue,
    Derivation.date: Basis.catalogue,
    Derivation.authors: Basis.catalogue,
    Derivation.titled: Basis.catalogue,
}
Judges = Mapping[str, str]
NOBODY: Judges = {}


@dataclass(frozen=True, slots=True)
class OperandLine:
    """A figure or item of a working, the key of its evidence, and the line that it stands in."""

    words: str
    cite: str
    line: str


@dataclass(frozen=True, slots=True)
class ShownWorking:
    """`(480 − 340) / 340 × 100 = 41.18`, and where each operand stands."""

    expression: str
    operands: tuple[OperandLine, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        return (self.expression, *(f"{each.words}: “{each.line}”" for each in self.operands if each.line))


def basis(claim: Claim, *, opinion: bool = False) -> Basis:
    """What a claim rests on. Whether it is an opinion, its block says."""
    if opinion:
        return Basis.opinion
    if claim.quote is not None:
        return Basis.quotation
    if claim.figure is not None:
        return Basis.figure
    if claim.working is not None:
        return Basis.statement if claim.working.unproven else working.basis(claim.working)
    if claim.derived is None:
        return Basis.statement
    return Basis.scan if claim.derived.scanned else DERIVED.get(claim.derived.rule, Basis.statement)


def recorded_judges(events: Iterable[Event]) -> Judges:
    """Who gave each verdict, by the words of the claim. Claims of older versions do not say it themselves."""
    return {event.claim.words: event.by for event in events if isinstance(event, Checked)}


def judged_by(claim: Claim, recorded: Judges = NOBODY) -> str:
    """Who gave the verdict: `code`, or the name of a model; empty if there is none."""
    if claim.verdict is None:
        return ""
    by = claim.by or recorded.get(claim.words, RULES)
    return CODE if by == RULES else by.rpartition("@")[2]


def dispute(claim: Claim) -> str:
    """What another judgement says of a claim on which two differ; empty otherwise."""
    if not claim.disputed:
        return ""
    return f"{DIFFER}: {claim.objection}" if claim.objection else DIFFER


def show_working(claim: Claim, evidence: Sequence[Evidence], document: Documents) -> ShownWorking | None:
    """The working of a claim as far as its documents can be read."""
    own = claim.working
    if own is None:
        return None
    cited = [each for each in evidence if each.key in claim.cites]
    texts = cited_texts(cited, sources_of(cited, document))
    proof = working.prove(unhedged(claim.text), own, texts)
    expression = proof.steps[0] if proof.steps else f"{own.expression} = {own.result} {own.unit}".strip()
    if own.unproven:
        expression = f"{expression} (not checked by code: {own.unproven})"
    lines = (_line(each.words, texts.get(each.cite, "")) for each in own.operands)
    operands = zip(own.operands, lines, strict=True)
    return ShownWorking(expression, tuple(OperandLine(each.words, each.cite, line) for each, line in operands))


def _line(words: str, text: str) -> str:
    places = find_words(" ".join(words.split()), text)
    return " ".join(line_at(text, places[0])[:200].split()) if places else ""


def cell_lines(claim: Claim) -> tuple[str, ...]:
    """What the cells of a claim are, on a line for each row: `Net sales, 3M Company: 2022: $34,229; 2021: $35,355`."""
    rows: dict[CellFacts, list[CellFacts]] = {}
    for facts in dict.fromkeys(cell.found for cell in claim.cells if cell.found):
        rows.setdefault(replace(facts, column="", text=""), []).append(facts)
    lines: list[str] = []
    for row, own in rows.items():
        in_columns = "; ".join(f"{each.column}: {each.text}" if each.column else each.text for each in own)
        lines.append(one_line(own[0].line if len(own) == 1 else replace(row, text=in_columns).line))
    return tuple(lines)


def claim_lines(claim: Claim, basis: Basis, by: str, working: ShownWorking | None) -> list[str]:
    """Basis, who gave the verdict, its cells, the words that carry the claim, and its working."""
    return [
        f"{BASIS_TEXT[basis]}{f', judged by {by}' if by else ''}",
        *filter(None, [dispute(claim)]),
        *([f"figure: {claim.figure.place}"] if claim.figure else []),
        *(f"cell: {each}" for each in cell_lines(claim)),
        *(f"words: “{one_line(each.text)}”" for each in claim.carried_by if each.text),
        *(f"working: {each}" for each in (working.lines if working else ())),
    ]


Details = Mapping[Claim, Sequence[str]]  # what claims rest on, as lines
NO_DETAILS: Details = {}


def shown_details(
    answer: Answer, evidence: Sequence[Evidence], document: Documents, judges: Judges = NOBODY, *, every: bool = False
) -> Details:
    """What claims of an answer rest on, with their verdicts: of those with a working, or of every one."""
    found: dict[Claim, Sequence[str]] = {}
    for block in (*answer.blocks, Block(answer.near)):
        for claim in block.claims:
            verdict = [f"{claim.verdict}{f': {claim.why}' if claim.why else ''}"] if claim.verdict else []
            shown = show_working(claim, evidence, document)
            rests_on = claim_lines(claim, basis(claim, opinion=block.opinion), judged_by(claim, judges), shown)
            if every or shown:
                found[claim] = (*verdict, *rests_on)
    return found
