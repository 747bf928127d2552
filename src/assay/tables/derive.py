"""Statements that rules compute from quotations, and their check: the statement must come out the same again. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from assay.core.identity import title_by_identity
from assay.core.printable import clean_text
from assay.core.tables import table_rows, tables_within
from assay.core.types import Block, Claim, Derivation, Derived, Document, Evidence, Quote, TableRow, file_name
from assay.language.quantities import is_unit, names_unit
from assay.language.quotation import lies_in
from assay.tables.cells import cell_at
from assay.tables.lookup import ROWS, TableAnswer, as_number
from assay.tables.question import Operation

Documents = Callable[[str], Document | None]

LISTED = 25  # documents named in one statement
NAMED = 12  # things that are counted and named
QUOTED = 12  # quotations of rows below a statement


def statement(derived: Derived, document: Documents) -> str:
    """The statement that follows from the operands, as a sentence."""
    if derived.rule is Derivation.facts:
        return f"{'; '.join(_cell_line(each, document) for each in derived.operands)}."
    sources = [found for each in derived.operands if (found := document(each.doc_id))]
    values = [" ".join(clean_text(each.text).split()) for each in derived.operands]
    words = _words(derived, values, sources)
    return words if words.endswith(".") else f"{words}."


def _cell_line(quote: Quote, document: Documents) -> str:
    source = document(quote.doc_id)
    found = cell_at(source, quote.start) if source else None
    return found.facts.line if found else ""


def _words(derived: Derived, values: Sequence[str], sources: Sequence[Document]) -> str:
    """What a rule makes of the operands: of their words, or of what the catalogue says of their documents."""
    detail = derived.detail
    of = f" ({detail})" if detail else ""
    documents = len(sources) + (int(detail) if detail.isdigit() else 0)  # with those that are not named
    names = [_name(each) for each in sources[:LISTED]]
    names += [f"{documents - LISTED} more"] if documents > LISTED else []
    match derived.rule:
        case Derivation.yes | Derivation.no:
            return derived.rule.capitalize()
        case Derivation.extreme:
            measure = f"{detail}: " if detail else ""
            pairs = zip(values[::2], values[1::2], strict=False)
            return _these([f"{one} ({measure}{other})" for one, other in pairs])
        case Derivation.counted:
            count = f"There {_are(values)} {len(values)} in the table"
            return f"{count}: {_listed(values)}" if len(values) <= NAMED else count
        case Derivation.total:
            total = sum(as_number(each) or 0.0 for each in values)
            return f"The total is {f'{total:,.2f}'.removesuffix('.00')}{of}"
        case Derivation.number:
            plural = "" if documents == 1 else "s"
            return f"There {'are' if plural else 'is'} {documents} document{plural}: {_listed(names)}"
        case Derivation.documents:
            return _these(names)
        case Derivation.titled:
            return "; ".join(_title(each) for each in sources)
        case Derivation.date:
            return "; ".join(f"The date of {_name(each)} is {each.date or ''}" for each in sources)
        case Derivation.authors:
            return "; ".join(_authors(each) for each in sources)
        case _:
            return f"{_these(values)}{of}"


def _title(document: Document) -> str:
    if document.title and document.title == title_by_identity(document.meta):
        return f"{file_name(document.uri)} states no title; it is listed as “{document.title}”"
    return f"The title of {file_name(document.uri)} is “{document.title}”"


def _authors(document: Document) -> str:
    several = "s" if len(document.authors) != 1 else ""
    return f"The author{several} of {_name(document)} {_are(document.authors)} {_listed(document.authors)}"


def _these(names: Sequence[str]) -> str:
    return f"{'It is' if len(names) == 1 else 'They are'} {_listed(names)}"


def _are(several: Sequence[object]) -> str:
    return "is" if len(several) == 1 else "are"


def _listed(names: Sequence[str]) -> str:
    """`a, b and c`; with semicolons if some name has a comma."""
    comma = "; " if any("," in each for each in names) else ", "
    return f"{comma.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def _name(document: Document) -> str:
    name = file_name(document.uri)
    title = " ".join(clean_text(document.title).split())
    return f"{title} ({name})" if title and title != name and title not in name else name


def derive(
    rule: Derivation, operands: Sequence[Quote], cites: Sequence[str], document: Documents, detail: str = ""
) -> Claim:
    derived = Derived(rule, tuple(operands), detail, any(_is_scanned(each, document) for each in operands))
    return Claim(statement(derived, document), tuple(dict.fromkeys(cites)), derived=derived)


def _is_scanned(quote: Quote, document: Documents) -> bool:
    source = document(quote.doc_id)
    return source is not None and any(table.scanned for table in tables_within(source.tables, quote.start, quote.end))


def fault(claim: Claim, evidence: Sequence[Evidence], document: Documents) -> str:
    """Why a derived statement does not hold; empty if it does. Each operand must be in what is cited, and the statement
    must be what the rule makes of them."""
    assert claim.derived is not None
    cited = [each.passage for each in evidence if each.key in claim.cites]
    for quote in claim.derived.operands:
        source = document(quote.doc_id)
        if source is None or source.text[quote.start : quote.end] != quote.text:
            return "the document does not say this at that place"
        if not any(lies_in(quote, each) for each in cited):
            return "its words are not in the passage it cites"
    return "" if statement(claim.derived, document) == claim.text else "it does not follow from what it cites"


def table_claims(found: TableAnswer, evidence: Sequence[Evidence], document: Document) -> tuple[Block, ...]:
    """The answer that a table gives: the statement, carried by its cell or its rows, then the rows if there are several.
    Empty if some row is not in the evidence."""

    def key(*quotes: Quote) -> str:
        """The passage of the first quotation that lies in one: a row, or its cell where the row is cut."""
        return next((each.key for quote in quotes for each in evidence if lies_in(quote, each.passage)), "")

    operands = [_quote(document, each.start, each.end) for each in found.cells]
    rows = [_quote(document, row.start, row.end) for row in found.rows]
    around = [next((row for row in rows if row.start <= each.start and each.end <= row.end), each) for each in operands]
    keys = [key(row, each) for row, each in zip(around, operands, strict=True)]
    if not all(keys) or not operands:
        return ()
    extreme = found.operation in {Operation.largest, Operation.smallest}
    rule = Derivation.extreme if extreme else Derivation(found.operation)
    first = derive(rule, operands, keys, lambda _: document, _detail(found, document))
    shown = [row for row in rows if key(row)][:QUOTED]
    first = replace(first, carried_by=tuple(operands if len(operands) == 1 else shown or operands[:QUOTED]))
    quotes = tuple(Claim("", (key(row),), quote=row) for row in shown)
    return (Block((first,)), Block(quotes)) if len(quotes) > 1 else (Block((first,)),)


def _quote(document: Document, start: int, end: int) -> Quote:
    return Quote(document.id, start, end, document.text[start:end])


def _detail(found: TableAnswer, document: Document) -> str:
    """What the value is of: row, column, period and units, as far as neither the question nor the value says it."""
    rows: Sequence[TableRow] = found.rows
    one = found.operation is Operation.cell and len(rows) == 1
    label = rows[0].label if one and rows[0].label != found.cells[0].text else ""
    label = label if any(map(str.isalpha, label)) else ""  # the number of a row says nothing
    column = "" if found.operation in {Operation.rows, Operation.counted} else found.column
    units = "" if found.operation is Operation.counted or names_unit(column) else found.table.units
    units = (one and _unit_beside(found, document)) or units
    parts = (label, column, found.table.period, units)
    plain = (re.sub(r" ?\(([^()]*+)\)", r", \1", " ".join(each.split())) for each in parts)
    return ", ".join(each for each in plain if each)


def _unit_beside(found: TableAnswer, document: Document) -> str:
    """The unit that the row of a cell gives, in a column of units."""
    rows = table_rows(found.table, document.text)[:ROWS]
    for column in range(1, len(found.table.columns)):
        own = found.rows[0].cells[column]
        if own.text and own not in found.cells and all(is_unit(row.cells[column].text or own.text) for row in rows):
            return own.text
    return ""
