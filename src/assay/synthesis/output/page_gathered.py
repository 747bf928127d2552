"""The lower part of the page: coverage, comparison, questions, documents, quotations, diagnostics and method. Pure."""

from __future__ import annotations

from assay.core.account import Account, Coverage, Portrait, Question
from assay.synthesis.output import rows
from assay.synthesis.output.footnotes import Footnotes, abstract, in_order
from assay.synthesis.output.typeset import label, labels, links, listed, quotation, section, table, words

OPEN = 12  # questions up to which each stands open


def coverage(notes: Footnotes) -> str:
    heads, ledger = rows.coverage(notes.account)
    silent = sum(not row.claims for row, _ in ledger)
    lead = (
        f"{rows.plural(silent, 'document')} of {len(ledger)} {'has' if silent == 1 else 'have'} no claim in the account; "
        "the reason stands in the last column."
        if silent
        else "Every document has at least one claim in the account."
    )
    told = [_covered(notes, row, figures) for row, figures in ledger]
    return section(
        "coverage", "Coverage", table(heads, told, kind="ledger", caption="Coverage") if told else "", lead=lead
    )


def _covered(notes: Footnotes, row: Coverage, figures: list[int]) -> list[str]:
    return [
        f"{label(notes, row.doc_id)} <bdi>{words(notes.title(row.doc_id))}</bdi>",
        *(f'<span class="{"figure" if row.claims or figure else "none"}">{figure}</span>' for figure in figures),
        words(row.reason),
    ]


def compared(notes: Footnotes) -> str:
    """Questions × documents; with many documents it scrolls under its heads."""
    found = rows.comparison(notes)
    documents = [doc for doc in notes.account.brief.documents if any(doc in cells for _, cells in found.rows)]
    heads = [
        "Question",
        *(f'{label(notes, doc)}<br><bdi class="short">{words(notes.title(doc))}</bdi>' for doc in documents),
    ]
    told = [
        [
            _asked(notes, question),
            *(_cell(cells.get(doc)) for doc in documents),
        ]
        for question, cells in found.rows
    ]
    lead = "What each document says to each question; an empty cell means that nothing was found."
    if found.left:
        lead += f" {rows.plural(found.left, 'question')} that one document alone answers: see under Questions."
    broad = " broad" if len(documents) > rows.MANY else ""
    laid = table(heads, told, kind=f"compare{broad}", caption="Comparison") if told else ""
    paper = '<p class="paper">This table is too wide for paper; it stands on the page on a screen.</p>'
    return section("comparison", "Comparison", laid, paper if laid and broad else "", lead=lead)


def _asked(notes: Footnotes, question: Question) -> str:
    """A question that leads to its evidence."""
    there = f'<a href="#{_place(notes.account, question)}">{words(question.text)}</a>'
    return f"{there}<br><small>{rows.KINDS[question.kind]}</small>"


def _cell(cell: rows.Cell | None) -> str:
    if cell is None:
        return ""
    said = f'<q dir="auto">{words(cell.words)}</q>' if cell.quoted else words(cell.words)
    return f"{said} {links(cell.citations)}"


def _place(account: Account, question: Question) -> str:
    """The anchor of a question: by its place, whatever its id is."""
    return f"q{account.questions.index(question) + 1}"


def questions(notes: Footnotes) -> str:
    """Every question with its evidence, best first."""
    account = notes.account
    opened = " open" if len(account.questions) <= OPEN else ""
    asked = []
    for question in account.questions:
        found = notes.of_keys(account.answers.get(question.id, ()))
        evidence = "".join(f"<li>{links([each])}{quotation(notes, each)}</li>" for each in found)
        asked.append(
            f'<details class="group" id="{_place(account, question)}"{opened}><summary>'
            f'<b dir="auto">{words(question.text)}</b> '
            f"<small>{rows.KINDS[question.kind]} · {rows.plural(len(found), 'quotation')}</small></summary>"
            f"<p><small>Comes from {labels(notes, question.documents)}</small></p>"
            + (f'<ul class="evidence">{evidence}</ul>' if found else "<p>Nothing was found that bears on it.</p>")
            + "</details>"
        )
    return section("questions", f"Questions ({len(asked)})", *asked)


def documents(notes: Footnotes) -> str:
    """Every document of the brief, described or not."""
    made = [
        _document(notes, doc, notes.portraits.get(doc) or Portrait(doc, "")) for doc in notes.account.brief.documents
    ]
    return section("documents", f"Documents ({len(made)})", *made)


def _document(notes: Footnotes, doc: str, portrait: Portrait) -> str:
    who = " · ".join(filter(None, (", ".join(map(words, portrait.authors)), words(portrait.year))))
    said = f'<p dir="auto">{words(abstract(portrait))}</p>' if portrait.abstract else ""
    marked = f"<p><small>{words(rows.MADE.capitalize())}.</small></p>" if portrait.made and said else ""
    empty = f'<p class="warn">Nothing could be read in it: {words(portrait.empty)}</p>' if portrait.empty else ""
    return (
        f'<article class="document" id="{notes.label(doc)}"><h3>{notes.label(doc)} <bdi>{words(notes.title(doc))}</bdi></h3>'
        f"{f'<p><small>{who}</small></p>' if who else ''}{said}{marked}{empty}</article>"
    )


def quotations(notes: Footnotes) -> str:
    """All that is cited, by number: on paper this is where a number leads."""
    cited = in_order(notes.cited.values())
    items = "".join(f'<li id="c{each.number}" value="{each.number}">{quotation(notes, each)}</li>' for each in cited)
    return section("quotations", f"Quotations ({len(cited)})", f"<ol>{items}</ol>" if items else "")


def diagnostics(notes: Footnotes) -> str:
    account = notes.account
    found = account.diagnostics
    counted = rows.types(account)
    most = max(counted.values(), default=0)
    bars = [
        [kind, str(count), f'<span class="bar" style="width:{100 * count // max(1, most)}%"></span>']
        for kind, count in counted.items()
    ]
    shape = (
        table(["Type of relation", "Count", "Share"], bars, kind="types", caption="Types of relations") if most else ""
    )
    chosen = [[words(each.reranker), str(each.chosen), str(each.shared)] for each in found.rerankers]
    rerankers = (
        "<h3>Rerankers compared</h3>"
        + table(["Reranker", "Passages chosen", "Shared with the one in use"], chosen, caption="Rerankers compared")
        if chosen
        else ""
    )
    dropped = (
        f"<details><summary>{rows.plural(len(found.dropped), 'relation')} proposed and not printed</summary>"
        f"{listed(map(words, found.dropped))}</details>"
        if found.dropped
        else ""
    )
    return section(
        "diagnostics",
        "Diagnostics",
        shape,
        f"<p>{words(found.reading)}</p>" if found.reading else "",
        dropped,
        rerankers,
    )


def how_made(notes: Footnotes) -> str:
    lines = "".join(f"<dt>{words(term)}</dt><dd>{words(said)}</dd>" for term, said in rows.method(notes.account))
    said = listed(map(words, notes.account.notes), kind="notes")
    return section("method", "Method and cost", f"<dl>{lines}</dl>", f'<h3 id="notes">Notes</h3>{said}' if said else "")
