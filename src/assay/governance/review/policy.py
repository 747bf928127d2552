"""Which answers must be reviewed before they are delivered, and why. Text from models or documents can add a reason, never
remove one. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from assay.core.errors import UserError
from assay.core.events import Drafted, Stakes
from assay.core.printable import clean_text
from assay.core.run import Run
from assay.core.settings import Settings
from assay.core.types import Answer, Verdict
from assay.language.terms import fold_case

WORD = "word:"  # prefix of a custom word in the setting

# A short list of words that a careful reader would stop at; plurals count as well. Ambiguous words (fire, treatment,
# share, redundant) are left out.
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
    support: float = 0.0  # minimum share of supported claims in a draft
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
    """Why this answer must be reviewed before delivery, in words that reveal nothing of the draft; empty if it need
    not be. `marked` returns the knowledge bases of these documents whose answers require review."""
    evidence = run.evidence
    used = {each.passage.doc_id for each in evidence}
    used |= {claim.quote.doc_id for claim in (*answer.claims, *answer.near) if claim.quote}
    used |= set(run.asked.brief.documents if run.asked.brief else ())
    found = [STAKES] if run.asked.stakes is Stakes.high else []
    found += [ALWAYS] if policy.always else []
    found += [MARKED] if marked(used) else []  # the base is not named: the reader of the reason may not know of it
    found += _topic_reasons(run, answer, policy)
    if policy.flagged and any(each.flagged for each in evidence):  # its reader may obey it and cite another
        found.append(FLAGGED)
    found += _support(run, answer, policy.support)
    drafts = [event for event in run.events if isinstance(event, Drafted)]  # a conflict in an earlier draft counts too
    if policy.conflicts and (answer.conflicts or any(each.conflicts for each in drafts)):
        found.append(CONFLICTS)
    return tuple(found)


def _topic_reasons(run: Run, answer: Answer, policy: Policy) -> list[str]:
    """The configured topics and words that the question or the answer mentions. Reasons do not say which word of the
    answer matched, because they are visible before the answer is."""
    if not policy.classes and not policy.words:
        return []
    headings = [block.heading for block in answer.blocks]
    claims = [claim.words for claim in (*answer.claims, *answer.near)]
    texts = [run.asked.question, run.question, answer.said, *answer.gaps, *headings, *claims]
    words = normalise_words("\n".join(texts))
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
    """A reason if any draft had too few supported claims. Dropped claims and abandoned drafts count too."""
    worst = min(_shares(run, answer), default=None, key=lambda each: each[0] / each[1])
    if worst is None or worst[0] / worst[1] >= least:
        return []
    return [f"only {worst[0]} of the {worst[1]} claims of its draft held"]


def _shares(run: Run, answer: Answer) -> Iterator[tuple[int, int]]:
    """For each draft with claims: the number of supported claims and the total. For the last draft, the delivered
    claims count as supported."""
    drafts = [place for place, event in enumerate(run.events) if isinstance(event, Drafted)]
    for place, end in pairwise([*drafts, len(run.events)]):
        draft = run.events[place]
        claims = sum(len(block.claims) for block in draft.blocks) if isinstance(draft, Drafted) else 0
        if not claims:
            continue
        verdicts = Run(run.id, (run.events[0], *run.events[place:end])).checked.values()
        good = sum(claim.verdict is Verdict.supported for claim in verdicts)
        yield (len(answer.claims) if place == drafts[-1] else good, claims)
