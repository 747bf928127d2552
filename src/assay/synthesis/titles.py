"""How a document is named: by label (D1, D2, …) for models, by title for people. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from assay.core.run import Run
from assay.core.types import Claim, Evidence
from assay.language import facts
from assay.language.clean import clean_text
from assay.synthesis import state

LONGEST = 60  # characters of a title within a sentence
LABEL = re.compile(r"\bD[1-9][0-9]{0,3}\b")


def short_title(title: str) -> str:
    """A title for use in a sentence: on one line, without quotation marks of its own, cut between words."""
    tidy = " ".join(re.sub(r"[“”\"⟦⟧|]", " ", clean_text(title)).split())
    if len(tidy) <= LONGEST:
        return tidy
    return f"{tidy[: LONGEST - 1].rsplit(' ', 1)[0].rstrip(' ,;:.-–')}…"


def document_titles(run: Run, titles: Mapping[str, str]) -> dict[str, str]:
    """Document → its short title. A title extracted from the document is used only if it has the same names and
    numbers as the stored title; otherwise a sentence that uses it would fail verification against its citations."""
    found: dict[str, str] = {}
    for doc, portrait in state.portraits(run).items():
        filed, read = short_title(titles.get(doc, "")), short_title(portrait.title)
        found[doc] = filed if not read or facts.missing_facts(f"“{read}”", titles.get(doc, "")) else read
    return found


def replace_labels(
    claim: Claim, documents: Mapping[str, str], called: Mapping[str, str], known: Mapping[str, Evidence]
) -> tuple[Claim, tuple[str, ...]] | None:
    """Replace labels in a claim by titles. Returns the claim and the documents it names, or None if it names a document
    that it does not cite or that has no title, since the source of the words would be unclear.

    documents: label → document
    called: document → its short title
    known: the evidence by key
    """
    cited = [known[key] for key in claim.cites if key in known]
    own = {each.quote.doc_id for each in cited}
    there = frozenset(LABEL.findall(" ".join(each.passage.text for each in cited)))  # "vitamin D3" is no document label
    named: dict[str, None] = {}
    wrong: list[str] = []

    def title(match: re.Match[str]) -> str:
        if match[0] in there:
            return match[0]
        doc = documents.get(match[0], "")
        if doc not in own or not called.get(doc):
            wrong.append(match[0])
            return match[0]
        named[doc] = None
        return f"“{called[doc]}”"

    words = LABEL.sub(title, re.sub(r"\b[Dd]ocument (?=D[1-9])", "", claim.text))
    return None if wrong else (Claim(words, claim.cites), tuple(named))


def without_title(words: str) -> str:
    """A sentence without the title that was prefixed to it."""
    return re.sub(r"^“[^”]+”(?: says)?: ", "", words)
