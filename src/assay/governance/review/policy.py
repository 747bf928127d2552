"""Which answers must be reviewed before they are delivered, and why. Text from models or documents can add a reason, never
remove one. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from assay.core.errors import UserError
from assay.core.events import Drafted, Stakes
from assay.core.run import Run
from assay.core.settings import Settings
from assay.core.types import Answer, Verdict
from assay.language.clean import clean_text
from assay.language.terms import fold_case

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
MARKED = "it draws on a knowledge base whose answers are reviewed"
FLAGGED = "a passage that reads like an instruction to a model is among its evidence"
CONFLICTS = "its sources disagree"
BEGUN = "it was begun where answers are looked at"


@dataclass(frozen=True, slots=True)
class Policy:
    """What must be reviewed. `classes` are names of `CLASSES`, `words` are the words that the setting adds."""

    always: bool = False
    classes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    support: float = 0.0  # of the draft's claims, the share that has to hold
    conflicts: bool = False
    flagged: bool = False

    @property
    def idle(self) -> bool:
        """Whether the policy can never require a review."""
        return self == Policy()


def parse_policy(settings: Settings) -> Policy:
    """The policy that the settings name. An unknown class is an error."""
    named = [each.strip() for each in settings.review_classes.split(",") if each.strip()]
    own = tuple(each[len(WORD) :].strip() for each in named if each.lower().startswith(WORD))
    classes = tuple(dict.fromkeys(each.lower() for each in named if not each.lower().startswith(WORD)))
    if strange := [each for each in classes if each not in CLASSES]:
        raise UserError(
            f"`review_classes` names {strange[0]!r}, which is no kind of question. There is: {', '.join(CLASSES)}, or "
            "word: and a word of your own."
        )
    if any(not fold_case(clean_text(each)).strip() for each in own):
        raise UserError("`review_classes` has a `word:` without a word.")
    return Policy(
        always=settings.review_always,
        classes=classes,
        words=tuple(dict.fromkeys(own)),
        support=settings.review_support,
        conflicts=settings.review_conflicts,
        flagged=settings.review_flagged,
    )


def review_reasons(
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
    found += [MARKED] if marked(used) else []  # which one is not told: a reviewer, or a webhook, may not know of it
    found += _topic_reasons(run, answer, policy)
    if policy.flagged and any(each.flagged for each in evidence):  # who has read it may follow it and cite another
        found.append(FLAGGED)
    found += _support(run, answer, policy.support)
    drafts = [
        event for event in run.events if isinstance(event, Drafted)
    ]  # what a later one leaves out was found all the same
    if policy.conflicts and (answer.conflicts or any(each.conflicts for each in drafts)):
        found.append(CONFLICTS)
    return tuple(found)


def _topic_reasons(run: Run, answer: Answer, policy: Policy) -> list[str]:
    """The kinds and the words that the question, or the answer, speaks of. Which word of the answer it was is not told: the
    reason is seen before the answer is."""
    if not policy.classes and not policy.words:
        return []
    headings = [block.heading for block in answer.blocks]
    claims = [claim.words for claim in (*answer.claims, *answer.near)]
    said = [run.asked.question, run.question, answer.said, *answer.gaps, *headings, *claims]
    words = normalise_words("\n".join(said))
    found = [f"it is about a {name} matter" for name in policy.classes if mentions_any(words, CLASSES[name])]
    return found + [f"it speaks of {word!r}" for word in policy.words if mentions_any(words, (word,))]


def normalise_words(text: str) -> str:
    """Text for comparison: words in lower case, without accents and invisible characters, separated by single spaces."""
    return " " + " ".join(re.findall(r"[^\W_]+", fold_case(clean_text(text)))) + " "


def mentions_any(words: str, listed: Sequence[str]) -> bool:
    """Whether the text contains any of the listed words, as a whole word or in the plural."""
    spelt = (normalise_words(each).strip() for each in listed)
    return any(f" {each}{ending} " in words for each in spelt for ending in ("", "s", "es"))


def _support(run: Run, answer: Answer, least: float) -> list[str]:
    """A draft of which too little held, whatever became of the rest: dropped claims count, as they were written, and so does
    a draft that was given up for another."""
    worst = min(_shares(run, answer), default=None, key=lambda each: each[0] / each[1])
    if worst is None or worst[0] / worst[1] >= least:
        return []
    return [f"only {worst[0]} of the {worst[1]} claims of its draft held"]


def _shares(run: Run, answer: Answer) -> Iterator[tuple[int, int]]:
    """Of each draft that has claims: how many held, and how many there were. Of the last one, those that are delivered."""
    drafts = [place for place, event in enumerate(run.events) if isinstance(event, Drafted)]
    for place, end in pairwise([*drafts, len(run.events)]):
        draft = run.events[place]
        claims = sum(len(block.claims) for block in draft.blocks) if isinstance(draft, Drafted) else 0
        if not claims:
            continue
        verdicts = Run(run.id, (run.events[0], *run.events[place:end])).checked.values()
        good = sum(claim.verdict is Verdict.supported for claim in verdicts)
        yield (len(answer.claims) if place == drafts[-1] else good, claims)
