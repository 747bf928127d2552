"""An account as Markdown that also reads well as it stands: the same content as the page, quotations as footnotes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from assay.answer.render import MARKDOWN, OPINION, SAID, Citation, words_of
from assay.core.account import Account, Pipeline, Readability, Relation, Retold, Side, Translation
from assay.core.types import Block, Claim, Shape
from assay.synthesis.output import rows
from assay.synthesis.output.footnotes import Footnotes, abstract, footnotes, in_order, shown

WIDE = 6  # documents up to which the comparison is a table; a wider one cannot be read
LEADS = re.compile(r"^(?:[-+=]|\d+[.)](?=\s|$))")  # what would make a list or a heading of a line


def markdown(account: Account) -> str:
    """The whole account in one file. What documents and models say formats nothing."""
    notes = footnotes(account)
    deep = account.brief.pipeline is Pipeline.synthesis
    lines = [
        f"# {md(rows.title(account))}",
        "",
        f"*{md(rows.subtitle(account))}*",
        "",
        *_bullets(map(md, account.notes)),
        *_told(notes),
        *_spine(notes),
        *_coverage(notes),
        *_comparison(notes),
        *(_contradictions(notes) if deep else []),
        *(_relations(notes) if deep else []),
        *_questions(notes),
        *_documents(notes),
        *_diagnostics(notes),
        *_method(notes),
        *_quotations(notes),
    ]
    return "\n".join(lines).rstrip() + "\n"


def md(said: str) -> str:
    """Words that format nothing, wherever on a line they stand."""
    safe = MARKDOWN.sub(r"\\\1", shown(said))
    lead = LEADS.match(safe)
    return f"{safe[: lead.end() - 1]}\\{safe[lead.end() - 1 :]}" if lead else safe


def _cites(citations: Iterable[Citation]) -> str:
    return "".join(f"[^{each.number}]" for each in citations)


def _claim(notes: Footnotes, claim: Claim) -> str:
    said = md(words_of(claim))
    own = f"{notes.label(claim.quote.doc_id)}: “{said}”" if claim.quote else said
    return f"{own}{_cites(notes.of_claim(claim))}"


def _bullets(items: Iterable[str]) -> list[str]:
    made = [f"- {item}" for item in items]
    return [*made, ""] if made else []


def _table(heads: Sequence[str], told: Iterable[Sequence[str]]) -> list[str]:
    line = [f"| {' | '.join(row)} |" for row in told]
    return [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *line, ""] if line else []


def _told(notes: Footnotes) -> list[str]:
    """The account for each reader."""
    lines = ["## The account", ""]
    several = len(rows.readers(notes.account)) > 1
    for audience, made in rows.readers(notes.account):
        lines += [f"### For this reader: {md(audience)}", ""] if several else []
        lines += _translated(notes, made) if made else _narrative(notes)
    return lines


def _narrative(notes: Footnotes) -> list[str]:
    answer = notes.account.narrative
    lines = [f"*{SAID[answer.outcome]}*", ""] if SAID[answer.outcome] else []
    for block in answer.blocks:
        lines += _block(notes, block, answer.shape)
    lines += ["The nearest that was found:", ""] if answer.near else []
    lines += _bullets(_claim(notes, claim) for claim in answer.near)
    for remark in rows.said_beside(notes):
        lines += [md(remark), ""]
    return [*lines, f"*Readability: {_measured(notes.account.readability)}.*", ""]


def _block(notes: Footnotes, block: Block, shape: Shape) -> list[str]:
    above = [f"#### {md(block.heading)}", ""] if block.heading else []
    told = [_claim(notes, claim) for claim in block.claims]
    if block.opinion:
        return [*above, f"*{OPINION}:* {' '.join(told)}", ""]
    if shape is Shape.prose and not any(claim.quote for claim in block.claims):
        return [*above, " ".join(told), ""]
    return [*above, *_bullets(told)]


def _translated(notes: Footnotes, made: Translation) -> list[str]:
    lines: list[str] = []
    for part in made.paragraphs:
        lines += [" ".join(_sentence(notes, each) for each in part.sentences), ""]
        lines += [f"> *Analogy (an illustration; it states no fact):* {md(part.analogy)}", ""] if part.analogy else []
    kept = any(each.kept for part in made.paragraphs for each in part.sentences)
    lines += [f"† {md(rows.KEPT)}.", ""] if kept else []
    lines += [f"{rows.plural(len(made.left_out), 'claim')} left out for this reader.", ""] if made.left_out else []
    measured = f"*Readability before: {_measured(made.before)}; after: {_measured(made.after)}.*"
    return [*lines, measured, ""]


def _sentence(notes: Footnotes, sentence: Retold) -> str:
    return f"{md(sentence.text)}{'†' if sentence.kept else ''}{_cites(notes.of_keys(sentence.cites))}"


def _measured(found: Readability) -> str:
    return (
        f"{rows.plural(found.words, 'word')}, {found.sentence:.1f} to a sentence, "
        f"reading ease {found.ease:.0f}, grade {found.grade:.1f}"
    )


def _labels(notes: Footnotes, documents: Iterable[str]) -> str:
    return ", ".join(notes.label(doc) for doc in documents)


def _spine(notes: Footnotes) -> list[str]:
    account = notes.account
    if not account.theme and not account.spine:
        return []
    lines = ["## Theme and spine", ""]
    lines += [f"**{md(account.theme)}**", ""] if account.theme else []
    lines += [
        f"{place}. {_claim(notes, beat.claim)} ({_labels(notes, beat.documents)})"
        for place, beat in enumerate(account.spine, 1)
    ]
    lines += [""] if account.spine else []
    return lines + _bullets(
        f"{md(each.name)}: {_labels(notes, each.documents)}" for each in account.themes if each.name
    )


def _coverage(notes: Footnotes) -> list[str]:
    heads, ledger = rows.coverage(notes.account)
    told = [
        [f"{notes.label(row.doc_id)} {md(notes.title(row.doc_id))}", *map(str, figures), md(row.reason)]
        for row, figures in ledger
    ]
    return ["## Coverage", "", *_table(heads, told)] if told else []


def _comparison(notes: Footnotes) -> list[str]:
    """Questions × documents: a table of few documents, a list of many."""
    found = rows.comparison(notes)
    documents = [doc for doc in notes.account.brief.documents if any(doc in cells for _, cells in found.rows)]

    def cell(each: rows.Cell | None) -> str:
        if each is None:
            return ""
        return f"{f'“{md(each.words)}”' if each.quoted else md(each.words)}{_cites(each.citations)}"

    if not found.rows:
        return []
    lines = ["## Comparison", ""]
    if len(documents) <= WIDE:
        heads = ["Question", *map(notes.label, documents)]
        lines += _table(
            heads, ([md(asked.text), *(cell(own.get(doc)) for doc in documents)] for asked, own in found.rows)
        )
    else:
        for asked, own in found.rows:
            lines += [f"**{md(asked.text)}** ({rows.KINDS[asked.kind]})", ""]
            lines += _bullets(f"{notes.label(doc)}: {cell(own[doc])}" for doc in documents if doc in own)
    if found.left:
        lines += [f"{rows.plural(found.left, 'question')} that one document alone answers: see under Questions.", ""]
    return lines


def _contradictions(notes: Footnotes) -> list[str]:
    found = rows.contradictions(notes.account)
    lines = [f"## Contradictions ({len(found)})", ""]
    for _, relation in found:
        lines += [f"### {_tie(notes, relation)}", ""]
        lines += [f"{md(about)}", ""] if (about := notes.about(relation.left.insight)) else []
        lines += [md(relation.reason), ""] if relation.reason else []
        lines += [f"> {_side(notes, relation.left)}", ">", f"> {_side(notes, relation.right)}", ""]
    return lines if found else [*lines, rows.NO_CONTRADICTIONS, ""]


def _relations(notes: Footnotes) -> list[str]:
    found = rows.other_relations(notes.account)
    lines = [f"## Other relations ({sum(map(len, found.values()))})", ""]
    for tie, own in found.items():
        lines += [f"### {tie.value.capitalize()} ({len(own)})", ""]
        for _, relation in own:
            lines += [f"- {_tie(notes, relation)}: {md(relation.reason)}"]
            lines += [f"  - {_side(notes, side)}" for side in (relation.left, relation.right)]
        lines.append("")
    return lines if found else [*lines, rows.NO_OTHERS, ""]


def _tie(notes: Footnotes, relation: Relation) -> str:
    left, right = (notes.label(side.doc_id) for side in (relation.left, relation.right))
    return f"{left} and {right}"


def _side(notes: Footnotes, side: Side) -> str:
    return f"{notes.label(side.doc_id)}: “{md(side.quote.text)}”{_cites(notes.of_side(side))}"


def _questions(notes: Footnotes) -> list[str]:
    account = notes.account
    lines = [f"## Questions ({len(account.questions)})", ""]
    for place, each in enumerate(account.questions, 1):
        found = notes.of_keys(account.answers.get(each.id, ()))
        origin = f"{rows.KINDS[each.kind]}, from {_labels(notes, each.documents)}"
        held = " ".join(f"{notes.label(cite.document)}{_cites([cite])}" for cite in found) or "nothing was found"
        lines.append(f"{place}. {md(each.text)} ({origin}): {held}")
    return [*lines, ""] if account.questions else []


def _documents(notes: Footnotes) -> list[str]:
    lines = [f"## Documents ({len(notes.account.brief.documents)})", ""]
    for doc in notes.account.brief.documents:
        lines += [f"### {notes.label(doc)} {md(notes.title(doc))}", ""]
        portrait = notes.portraits.get(doc)
        if portrait is None:
            continue
        who = " · ".join(filter(None, (", ".join(map(md, portrait.authors)), md(portrait.year))))
        lines += [who, ""] if who else []
        lines += [md(abstract(portrait)), ""] if portrait.abstract else []
        lines += [f"*{rows.MADE.capitalize()}.*", ""] if portrait.made and portrait.abstract else []
        lines += [f"*Nothing could be read in it: {md(portrait.empty)}*", ""] if portrait.empty else []
    return lines


def _diagnostics(notes: Footnotes) -> list[str]:
    found = notes.account.diagnostics
    counted = rows.types(notes.account)
    lines = (
        _table(["Type of relation", "Count"], ([kind, str(n)] for kind, n in counted.items()))
        if any(counted.values())
        else []
    )
    lines += [md(found.reading), ""] if found.reading else []
    lines += ["Proposed and not printed:", "", *_bullets(map(md, found.dropped))] if found.dropped else []
    heads = ["Reranker", "Passages chosen", "Shared with the one in use"]
    lines += _table(heads, ([md(each.reranker), str(each.chosen), str(each.shared)] for each in found.rerankers))
    return ["## Diagnostics", "", *lines] if lines else []


def _method(notes: Footnotes) -> list[str]:
    return ["## Method and cost", "", *_bullets(f"**{term}**: {md(said)}" for term, said in rows.method(notes.account))]


def _quotations(notes: Footnotes) -> list[str]:
    """One footnote for each number."""
    lines = [
        f"[^{each.number}]: {_source(notes, each)}: “{md(each.quote.text)}”" for each in in_order(notes.cited.values())
    ]
    return ["## Quotations", "", *lines] if lines else []


def _source(notes: Footnotes, citation: Citation) -> str:
    where = notes.where(citation)
    warned = " (this passage reads like an instruction)" if citation.flagged else ""
    return f"{notes.label(citation.document)} {md(citation.title)}{f', {md(where)}' if where else ''}{warned}"
