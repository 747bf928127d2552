"""Whether a question is self-contained: it is about things, not about texts and their authors. Pure."""

from __future__ import annotations

import re

from assay.language.names import find_names
from assay.language.terms import content_terms

BEFORE = 3  # content words after which "this" may refer back into the question itself

# Words for a text or its authors: without the text, a reader cannot know which one is meant.
TEXTS = re.compile(
    r"\b(?:the|this|that|these|those|said|given|provided|each|both|its)\s+(?:\w+\s+)?"
    r"(?:passages?|texts?|excerpts?|quotations?|quotes?|snippets?|authors?|writers?|researchers|papers?|articles?|documents?"
    r"|abstracts?|manuscripts?|publications?|preprints?)\b",
    re.I,
)
# Words that may also denote a subject: "the study of proteins" is self-contained, "the study" is not.
WORKS = re.compile(
    r"\b(?:(?:this|these|those|the (?:present|current|above|following|given|provided))\s+(?:\w+\s+)?"
    r"(?:stud(?:y|ies)|works?|research|reports?|surveys?|reviews?|sections?|chapters?|pages?|books?|sources?|analys[ie]s)"
    r"|the\s+(?:stud(?:y|ies)|work|research|report|survey|review|section|chapter|page|book|source)s?"
    r"(?!\s+(?:of|on|about|into|by|for|from|in|at|that|which|who)\b))\b",
    re.I,
)
LABEL = re.compile(r"\b(?:D\d{1,3}|documents?\s+\d+)\b|⟦|⟧")
LOOSE = re.compile(
    r"^(?:(?:and|but|so)\s+)?(?:(?:what|how|why|when|where|which|who|whom)\b\s*)?(?:(?:\w+\s+){0,2}?"
    r"(?:do|does|did|is|are|was|were|has|have|had|can|could|would|will|should|must|may|might)\s+)?"
    r"(?:it|they|he|she|its|their|his|her|them|we|you|i|our|your|my)\b",
    re.I,
)
BACK = re.compile(r"\b(?:this|these|those)\b", re.I)
ELSEWHERE = re.compile(
    r"\b(?:mentioned|described|discussed|shown|listed|presented)\s+(?:above|below|here|earlier)\b"
    r"|\babove[- ]mentioned\b|\baforementioned\b|\bas follows\b",
    re.I,
)


def stands_alone(question: str) -> bool:
    """Whether a question names what it asks about. "The passage", "the authors", "this study", a document label or a
    pronoun without an antecedent all need a text beside them."""
    text = " ".join(question.split())
    if len(content_terms(text)) < 2 - (len(find_names(text)) > 0):
        return False
    if LOOSE.match(text) or any(needs.search(text) for needs in (TEXTS, WORKS, LABEL, ELSEWHERE)):
        return False
    back = BACK.search(text)
    return back is None or len(content_terms(text[: back.start()])) >= BEFORE
