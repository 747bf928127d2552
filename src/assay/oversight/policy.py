"""Which answers a person has to look at before they are delivered, and why. Whatever a model or a document says can add a
reason; nothing takes one away. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from assay.errors import UserError
from assay.run import Run
from assay.settings import Settings
from assay.text import clean, fold
from assay.trust import Stakes
from assay.types import Answer

WORD = "word:"  # before a word of one's own in the setting

# Few words, each of which a careful reader would stop at; a plural counts as the word. What is spelt alike and means something
# else (fire, treatment, share, redundant) is left out.
CLASSES: Mapping[str, tuple[str, ...]] = {
    "medical": (
        "antibiotic", "cancer", "chemotherapy", "clinical", "contraindicated", "contraindication", "diagnose", "diagnosed",
        "diagnoses", "diagnosis", "dosage", "dose", "insulin", "medical", "medication", "medicine", "overdose", "patient",
        "pregnancy", "pregnant", "prescribe", "prescribed", "prescription", "side effect", "surgery", "symptom", "tumor",
        "tumour", "vaccine",
    ),
    "legal": (
        "attorney", "breach of contract", "copyright", "court", "defendant", "illegal", "indemnity", "jurisdiction", "lawsuit",
        "lawyer", "legal", "liable", "liability", "liabilities", "litigation", "negligence", "plaintiff", "statute", "sue",
        "sued", "subpoena", "unlawful",
    ),
    "financial": (
        "bankrupt", "bankruptcy", "credit score", "dividend", "financial", "insolvency", "insolvent", "interest rate", "invest",
        "investment", "investor", "loan", "mortgage", "pension", "securities", "share price", "stock price", "tax", "taxation",
    ),
    "employment": (
        "disciplinary", "dismissal", "employee", "employment", "hire", "hiring", "job applicant", "job interview", "laid off",
        "layoff", "payroll", "performance review", "recruitment", "redundancies", "redundancy", "salaries", "salary",
        "severance", "wage",
    ),
    "safety": (
        "asphyxiation", "casualties", "casualty", "electrocution", "emergencies", "emergency", "evacuate", "evacuation",
        "explosion", "explosive", "fatal", "fatalities", "fatality", "hazard", "hazardous", "injured", "injuries", "injury",
        "poison", "poisonous", "radiation", "self-harm", "suicide", "toxic", "weapon",
    ),
}  # fmt: skip

ALWAYS = "every answer is looked at here"
STAKES = "whoever asked says that much depends on it"
FLAGGED = "a passage that reads like an instruction to a model was used for it"
CONFLICTS = "its sources disagree"
BEGUN = "it was begun where answers are looked at"


@dataclass(frozen=True, slots=True)
class Policy:
    """What has to be looked at. `classes` are names of `CLASSES`, `words` are one's own."""

    always: bool = False
    classes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    support: float = 0.0  # of the draft's claims, the share that has to hold
    conflicts: bool = False
    flagged: bool = False

    @property
    def idle(self) -> bool:
        """Whether nothing that an answer says can make it wait."""
        return self == Policy()


def policy_of(settings: Settings) -> Policy:
    """The policy that the settings name; a class that nobody knows is an error, and not a gap in it."""
    named = [each.strip() for each in settings.review_classes.split(",") if each.strip()]
    own = tuple(each[len(WORD) :].strip() for each in named if each.lower().startswith(WORD))
    classes = tuple(dict.fromkeys(each.lower() for each in named if not each.lower().startswith(WORD)))
    if strange := [each for each in classes if each not in CLASSES]:
        raise UserError(
            f"`review_classes` names {strange[0]!r}, which is no kind of question. There is: {', '.join(CLASSES)}, or "
            "word: and a word of your own."
        )
    if any(not fold(clean(each)).strip() for each in own):
        raise UserError("`review_classes` has a `word:` without a word.")
    return Policy(
        always=settings.review_always,
        classes=classes,
        words=tuple(dict.fromkeys(own)),
        support=settings.review_support,
        conflicts=settings.review_conflicts,
        flagged=settings.review_flagged,
    )


def reasons(
    run: Run, answer: Answer, policy: Policy, marked: Callable[[Collection[str]], Sequence[str]]
) -> tuple[str, ...]:
    """Why a person has to look at this answer before it is delivered, in words that hold nothing of the draft; none where
    nobody has to. `marked` names those knowledge bases of these documents whose answers wait for a reviewer."""
    evidence = run.evidence
    used = {each.passage.doc_id for each in evidence}
    used |= {claim.quote.doc_id for claim in (*answer.claims, *answer.near) if claim.quote}
    used |= set(run.asked.brief.documents if run.asked.brief else ())
    found = [STAKES] if run.asked.stakes is Stakes.high else []
    found += [ALWAYS] if policy.always else []
    found += [f"it draws on the knowledge base {name!r}" for name in marked(used)]
    found += _spoken_of(run, answer, policy)
    read = run.asked.has_model  # a model that has read such a passage may follow it and cite another
    if policy.flagged and any(each.flagged for each in evidence if read or each.key in answer.cited_keys):
        found.append(FLAGGED)
    found += _support(run, answer, policy.support)
    if policy.conflicts and (answer.conflicts or (run.draft and run.draft.conflicts)):
        found.append(CONFLICTS)
    return tuple(found)


def _spoken_of(run: Run, answer: Answer, policy: Policy) -> list[str]:
    """The kinds and the words that the question, or the answer, speaks of. Which word of the answer it was is not told: the
    reason is seen before the answer is."""
    if not policy.classes and not policy.words:
        return []
    headings = [block.heading for block in answer.blocks]
    claims = [claim.words for claim in (*answer.claims, *answer.near)]
    said = [run.asked.question, run.question, answer.said, *answer.gaps, *headings, *claims]
    words = spoken("\n".join(said))
    found = [f"it is about a {name} matter" for name in policy.classes if speaks_of(words, CLASSES[name])]
    return found + [f"it speaks of {word!r}" for word in policy.words if speaks_of(words, (word,))]


def spoken(text: str) -> str:
    """Words as they are compared: one space between them, no accents, no capitals, nothing that cannot be seen."""
    return " " + " ".join(re.findall(r"[^\W_]+", fold(clean(text)))) + " "


def speaks_of(words: str, listed: Sequence[str]) -> bool:
    """Whether any of these stands there as a whole word, or as its plural."""
    spelt = (spoken(each).strip() for each in listed)
    return any(f" {each}{ending} " in words for each in spelt for ending in ("", "s", "es"))


def _support(run: Run, answer: Answer, least: float) -> list[str]:
    """A draft of which too little held, whatever became of the rest: dropped claims count, as they were written."""
    claims = sum(len(block.claims) for block in run.draft.blocks) if run.draft else 0
    held = len(answer.claims)
    if not claims or held / claims >= least:
        return []
    return [f"only {held} of the {claims} claims of the draft held"]
