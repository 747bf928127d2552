"""Review of answers: which need it and why, who may review, what the person who asked sees meanwhile, and whom it is told.

A reviewer may read everything the answer cites and, with four eyes, did not ask the question. That is checked when reviews
are listed and shown, and in the transaction that decides. Text from models or documents can add a reason, never remove one.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection

from assay.core import events
from assay.core.access import LOCAL, Principal
from assay.core.errors import Missing, UserError
from assay.core.events import RULES, Event
from assay.core.events.describe import count_of
from assay.core.printable import clean_text
from assay.core.run import Run
from assay.core.settings import Settings, secret
from assay.core.types import Answer, Claim, Outcome, Verdict
from assay.language.terms import fold_case
from assay.models.http import EndpointClient, EndpointNames
from assay.store.access import grants, members
from assay.store.database import Store
from assay.store.runs import reviews

OWN = "Whoever asked cannot review the answer: somebody else has to look at it."


@dataclass(frozen=True, slots=True)
class Reviewer:
    """A person who wants to review. `names` are the reviewers in the settings; if there are none, administrators
    review."""

    principal: Principal
    admin: bool
    names: frozenset[str] = frozenset()

    @property
    def may_review(self) -> bool:
        return bool(self.names & self.principal.names) if self.names else self.admin


def parse_reviewers(setting: str) -> frozenset[str]:
    """The reviewers listed in the setting."""
    named = [each.strip() for each in setting.split(",") if each.strip()]
    for each in named:
        if not any(each.startswith(kind) and len(each) > len(kind) for kind in (grants.USER, grants.GROUP)):
            raise UserError(f"`reviewers` names user:NAME or group:NAME, not {each!r}.")
    return frozenset(named)


def has_no_members(store: Store) -> bool:
    """Without members there is no sign-in, so the user of the command line is the administrator."""
    return not members.listing(store)


def current_principal(store: Store, who: str) -> Principal:
    """The principal with this name, in its current groups."""
    member = members.named(store, who)
    return member.principal if member else Principal(who)


def missing(run: str) -> Missing:
    """The same error whether there is no such run, nothing of it waits, or the person may not see it."""
    return Missing(f"There is no run called {run!r} for you to review. `assay review` lists them.")


def cited_documents(run: Run, answer: Answer) -> frozenset[str]:
    keys = answer.cited_keys
    quoted = {claim.quote.doc_id for claim in (*answer.claims, *answer.near) if claim.quote}
    return frozenset(quoted | {each.passage.doc_id for each in run.evidence if each.key in keys})


def check_still_allowed(connection: Connection, reviewer: Reviewer, run: str, documents: Collection[str]) -> None:
    """In the transaction of a decision: raise unless the person is still a reviewer and may still read all these
    documents."""
    who = reviewer.principal
    admin = reviewer.admin and (who.id == LOCAL.id or reviews.is_admin(connection, who.id))
    now = Reviewer(who, admin, reviewer.names)
    if not now.may_review or reviews.unreadable(connection, who.names, documents):
        raise missing(run)


def review_requirement(store: Store, settings: Settings) -> Callable[[Run, Answer], tuple[str, ...]]:
    """A function that returns the reasons why an answer must be reviewed, by the current settings and marked bases.
    A run that was once gated stays gated."""
    policy = parse_policy(settings)

    def reasons(run: Run, answer: Answer) -> tuple[str, ...]:
        found = review_reasons(run, answer, policy, lambda ids: reviews.reviewed_bases_of(store, ids))
        return found or ((BEGUN,) if reviews.is_gated(store, run.id) else ())

    return reasons


def may_need_review(store: Store, settings: Settings, run: str) -> bool:
    """Whether the answer of a run waits for a reviewer, or may still have to. If so, the person who asked does not
    see the draft."""
    return reviews.may_need_review(store, run, by_rule=not parse_policy(settings).idle)


def any_review(store: Store, settings: Settings) -> bool:
    """Whether any rule may have an answer reviewed, besides what the person who asks says."""
    return not parse_policy(settings).idle or bool(reviews.bases_with_review(store))


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
    found = [STAKES] if run.asked.stakes is events.Stakes.high else []
    found += [ALWAYS] if policy.always else []
    found += [MARKED] if marked(used) else []  # the base is not named: the reader of the reason may not know of it
    found += _topic_reasons(run, answer, policy)
    if policy.flagged and any(each.flagged for each in evidence):  # its reader may obey it and cite another
        found.append(FLAGGED)
    found += _support(run, answer, policy.support)
    drafts = [event for event in run.events if isinstance(event, events.Drafted)]  # an earlier one counts too
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
    drafts = [place for place, event in enumerate(run.events) if isinstance(event, events.Drafted)]
    for place, end in pairwise([*drafts, len(run.events)]):
        draft = run.events[place]
        claims = sum(len(block.claims) for block in draft.blocks) if isinstance(draft, events.Drafted) else 0
        if not claims:
            continue
        since = max((at + 1 for at in drafts if at < place), default=1)  # some verdicts come before the draft is whole
        verdicts = Run(run.id, (run.events[0], *run.events[since:end])).checked.values()
        good = sum(claim.verdict is Verdict.supported for claim in verdicts)
        yield (len(answer.claims) if place == drafts[-1] else good, claims)


DRAFT = "A reviewer looks at it before you do."
UNVERIFIED = "Unverified"  # such a failure quotes unsupported claims


def redact_event(event: Event) -> Event:
    """The event as the person who asked may see it before delivery. Whatever is not listed here is not shown."""
    match event:
        case events.Asked() | events.Resumed() | events.Narrowed() | events.Withheld():
            return event
        case events.Granted() | events.AccountChanged() | events.SettingChanged():
            return event
        case events.Rephrased(by=by) if by == RULES:
            return replace(event, why="")
        case events.Routed():
            return events.Routed(event.route, "", event.since, event.until, event.every, by=event.by)
        case events.ModelReplied():
            return replace(event, text="", calls=())  # what it cost is shown
        case events.Stopped():
            return replace(event, why="")
        case events.Paused(at=at):
            return replace(event, options=(events.EACH,)) if at is events.Checkpoint.reading else event
        case events.AwaitingReview():
            return replace(event, answer=Answer("", (), Outcome.abstained))
        case events.Reviewed(decision=decision):
            return event if decision is events.Decision.reject else replace(event, note="", edits=())
        case events.Failed(error=error):
            hidden = replace(event, detail="Nothing is delivered, since not everything in it holds.")
            return hidden if error == UNVERIFIED else event
        case _:
            return events.Withheld(type(event).__name__, DRAFT, _progress(event))


ANSWERING = frozenset(
    {"write", "rework", "revise", "check", "direct"}
)  # prompts whose replies have words of the answer


def hide_unchecked(event: Event) -> Event:
    """The event as it is shown before delivery: without words of a model that are not checked, or that may still be replaced.
    What passed its check is told by `compose.statements`."""
    match event:
        case events.ModelReplied(prompt=prompt) if prompt in ANSWERING:
            return replace(event, text="", calls=())
        case events.Claimed() | events.Checked():
            return replace(event, claim=_unsaid(event.claim))
        case events.Drafted(blocks=blocks, by=by) if by != RULES:
            unsaid = (replace(block, claims=tuple(map(_unsaid, block.claims)), heading="") for block in blocks)
            return replace(event, blocks=tuple(unsaid), conflicts=(), near=(), said="", missing=(), stray=())
        case events.Revised(claim=claim):
            return replace(event, claim=_unsaid(claim) if claim else None, why="")
        case events.Failed(error=error) if error == UNVERIFIED:
            return redact_event(event)
        case _:
            return event


def _unsaid(claim: Claim) -> Claim:
    return Claim("", (), verdict=claim.verdict, by=claim.by)


def _progress(event: Event) -> str:
    """What may be said of an event that is not shown: how much was done."""
    match event:
        case events.Decided(calls=calls) if calls:
            return "Searching" if len(calls) == 1 else f"Searching, {len(calls)} times at once"
        case events.ToolRan(found=found) | events.PassagesChosen(found=found):
            return f"{count_of(len(found), 'passage')} found"
        case events.Gathered():
            return f"{count_of(len(event.evidence) + len(event.dropped), 'passage')} weighed"
        case _:
            return ""


def redact_run(run: Run, *, watched: bool) -> Run:
    """A run as the person who asked may see it. `watched` is whether its answer may still have to be reviewed."""
    if run.delivered:
        return run
    if watched or run.gated:
        return Run(run.id, tuple(map(redact_event, run.events)))
    return Run(run.id, tuple(map(hide_unchecked, run.events))) if shows_statements(run.asked) else run


def shows_statements(asked: events.Asked) -> bool:
    """Whether a model writes statements of which only those that passed are shown before delivery."""
    return asked.has_model and asked.brief is None


def progress_line(run: Run) -> str:
    """How far a run is, in numbers alone: `Searched 3 times, 12 passages weighed.`"""
    searches = len(run.results) + sum(isinstance(event, events.PassagesChosen) for event in run.events)
    weighed = {
        passage
        for event in run.events
        if isinstance(event, events.Gathered)
        for passage in (*event.dropped, *(each.passage.id for each in event.evidence))
    }
    times = "once" if searches == 1 else f"{searches:,} times"
    return f"Searched {times}, {count_of(len(weighed), 'passage')} weighed."


HEADER = "X-Assay-Signature"
EVENT = "review.waiting"


def signature(secret: str, moment: int, body: bytes) -> str:
    """`t=SECONDS,v1=HEX`: the HMAC-SHA256, under the secret, of the Unix time, a dot and the body. The time is
    included to prevent replay of old messages."""
    signed = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={moment},v1={signed}"


def build_message(run: str, seal: str, since: str, reasons: Sequence[str]) -> dict[str, Any]:
    """The message: which run waits, why, and since when. `id` is the same if it is sent again."""
    return {"event": EVENT, "id": f"{run}:{seal[:16]}", "run": run, "since": since, "reasons": list(reasons)}


async def tell_webhook(settings: Settings, body: Mapping[str, Any], seconds: float) -> None:
    """Deliver the message, with retries while there is time. Raises if it was not accepted. Signed if there is a secret."""
    key = secret(settings.review_webhook_secret)

    def sign(content: bytes) -> Mapping[str, str]:
        return {HEADER: signature(key, int(time.time()), content)} if key else {}

    named = EndpointNames("webhook", "review_webhook", "review_webhook_secret", "review_webhook")
    proxy, certificates = settings.proxy, settings.ca_bundle
    client = EndpointClient(settings.review_webhook, named, "", proxy, certificates, connect_attempts=2, sign=sign)
    try:
        response = await client.post(body, seconds)
    finally:
        await client.close()
    if not 200 <= response.status < 300:
        raise client.refused(response)
