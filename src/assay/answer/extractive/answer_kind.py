"""Whether what a sentence gives is of the kind that the question asks for: a number, a date, a name, one of several. Pure."""

from __future__ import annotations

import calendar
import re

from assay.language.names import find_names
from assay.language.quantities import numbers
from assay.language.question_kind import KINDS
from assay.language.terms import content_terms, fold_case

PERIOD_ASKED = re.compile(r"\b(?:which|what) (?:month|quarter|year)s?\b", re.I)
ROLE = re.compile(
    r"\bwho(?: is|'s| was| are| were) (?:the |our |its |their )([a-z][a-z -]*?)(?: (?:of|at|in|for|on)\b|\W*$)", re.I
)
WHOLE = 12  # words of a span that is no value any more
CHOSEN = re.compile(r"^\W*(?:(?:in|at|on|for|of|by|to|from|with) )?(?:which|who|whom|whose)\b", re.I)
AMOUNT = re.compile(r"[^\w]{0,3}\d[\d.,:%]{0,30}(?: [a-zé%°/²³]{1,30}){0,4}")
COUNTABLE = re.compile(
    r"\b(?:which|what) (?:\w+ )?(?:year|month|day|date|time|hour|age|number|version|release|page|percentage|share|rate|size"
    r"|price|amount|level|figure|value|decade|century|room|line|temperature|period|quarter|voltage|current|pressure|speed|height"
    r"|depth|length|width|weight|mass|volume|concentration|frequency|power|capacity|dose|distance|ratio|threshold|limit|score"
    r"|interval|altitude|density|angle|cost|fee|budget)s?\b",
    re.I,
)
# What has a name of its own: "the company that repaired it" does not say which.
NAMED = re.compile(
    r"\b(?:which|what) (?:company|firm|supplier|city|town|village|country|county|person|team|band)\b", re.I
)
NUMBER_WORD = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|once|twice|single|half|dozen|hundred|thousand"
    r"|million|no|none|every|daily|weekly|monthly|yearly)\b",
    re.I,
)


# What is only ever given as a number, asked for as "what is the …".
NUMBERED = re.compile(
    r"\bwhat(?: is|'s| was| are| were)? (?:the |its |their )?(?:[\w-]+ ){0,2}(?:number|price|cost|fee|salary|wage|rent|budget"
    r"|height|length|width|depth|weight|speed|age|size|area|volume|temperature|population|percentage|share|rate|code"
    r"|turnover|revenue|profit|income|distance|duration)(?: |$|\?)(?!of (?:what|which))"
    r"|\bwhat (?:do|does|did|will|would) .{1,80} (?:cost|weigh|measure)\b",
    re.I,
)
MONEY_ASKED = re.compile(
    r"\bwhat(?: is|'s| was| are| were)? (?:the |its |their )?(?:[\w-]+ ){0,2}(?:price|cost|fee|salary|wage|rent|budget|turnover"
    r"|revenue|profit|income)(?: |$|\?)|\bwhat (?:do|does|did|will|would) .{1,80} cost\b",
    re.I,
)
MONEY_GIVEN = re.compile(r"\d|[$€£¥]|\b(?:euro|pound|dollar|franc|cent|penn|free|nothing|no charge|charge)", re.I)
# "10,000 employees" is no amount of money.
COUNTED_THINGS = re.compile(
    r"[\d.,]+ (?!(?:dollar|euro|pound|franc|cent|pence|million|billion|thousand|crore)s?\b)[a-z]+s\b"
)
QUARTER = re.compile(r"\b(?:Q[1-4]|(?:first|second|third|fourth|last) quarter)\b", re.I)
PHONE, DIALLED = (
    re.compile(r"\b(?:tele)?(?:phone|fax) number\b", re.I),
    re.compile(r"(?:\+|\b0|\(\d|\b\d{1,6}[ ()/.-]{1,3}\d)(?:[ ()/.-]{0,3}\d){3,}"),
)
ISO_DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b")
AMOUNT_ASKED = re.compile(r"\bhow (?:much|high|tall|deep|wide|heavy|far)\b", re.I)
PERIOD = re.compile(r"\b(?:second|minute|hour|day|week|month|year|decade|time)s?\b", re.I)
DURATION = re.compile(
    r"\W{0,3}(?:about |some |within |after |up to )?(?:[\d.,]{1,20}|[a-z]{1,20})(?: working| calendar)? "
    r"(?:second|minute|hour|day|week|month|year|decade)s?\W{0,3}",
    re.I,
)


def answer_fits(question: str, span: str) -> bool:
    """Whether the answer that a model marks in a sentence is of the kind that the question asks for."""
    kind = next((kind for kind, pattern in KINDS.items() if pattern.search(question)), None)
    if PHONE.search(question):
        return DIALLED.search(ISO_DAY.sub(" ", span)) is not None
    if PERIOD_ASKED.search(question):
        return bool(CALENDAR.search(span) or DATE.search(span) or QUARTER.search(span))
    if MONEY_ASKED.search(question):
        return MONEY_GIVEN.search(span) is not None
    if kind == "number" or NUMBERED.search(question):
        lasts = DURATION.fullmatch(span.strip()) and AMOUNT_ASKED.search(question) and not PERIOD.search(question)
        return bool(NUMBER_WORD.search(span) or numbers(span)) and not lasts
    if kind == "date":
        in_words = WHEN.search(question) and not NAME_ALONE.fullmatch(
            span.strip()
        )  # "at noon", "when the soup is ready"
        return bool(NUMBER_WORD.search(span) or CALENDAR.search(span) or in_words)
    if kind == "name" and LONE_WORD.fullmatch(span.strip(" .,;:!?")):
        return False  # "noon" is nobody and nowhere; "the keeper" and "Halden" may be
    if not CHOSEN.search(question):
        return True
    if (several := PLURAL_ASKED.search(question)) and _describes(several[1], span):
        return False
    amount = AMOUNT.fullmatch(span.strip()) and not COUNTABLE.search(question)
    unnamed = NAMED.search(question) and not re.search(
        r"[A-Z\d]", span.strip()[1:] if span.startswith("The ") else span
    )
    return len(span.split()) < WHOLE and not amount and not unnamed


PLURAL_ASKED = re.compile(r"\bwhich (?:of (?:the|our|my|these|those) )?(?:[a-z-]+ )?([a-z-]+[^su]s)\b", re.I)


def _describes(noun: str, span: str) -> bool:
    """Whether a span says of what kind things are, and does not say which: "older pumps", "pumps built later than 2010"."""
    return span.islower() and (fold_case(span).strip(" .,;:").endswith(fold_case(noun)) or " than " in span)


LONE_WORD = re.compile(r"[a-z]+")
WHEN = re.compile(r"\bwhen\b", re.I)
NAME_ALONE = re.compile(r"[A-Z][\w’'.-]*(?:\s+[A-Z][\w’'.-]*)*\s*")
CALENDAR = re.compile(r"\b(?:" + "|".join([*calendar.month_name[1:], *calendar.day_name]) + r")\b")
NUMBER = re.compile(r"\d[\d,.]*")
DATE = re.compile(r"\b(?:1[0-9]|20)\d\d\b|\b\d{1,2}[:.]\d{2}\b")


def has_answer_kind(question: str, sentence: str) -> bool:
    """Whether a sentence contains the requested kind of value, beyond what the question already contains."""
    kind = next((kind for kind, pattern in KINDS.items() if pattern.search(question)), None)
    known = fold_case(question)
    match kind:
        case "number":
            return any(number not in known for number in NUMBER.findall(sentence))
        case "date":
            return any(date not in known for date in DATE.findall(sentence))
        case "name":
            return any(fold_case(name.text) not in known for name in find_names(sentence))
        case _:
            return False


WHY = re.compile(r"\bwhy\b|\bfor what reason\b|\bhow come\b", re.I)
REASON = re.compile(
    r"\b(?:because|due to|owing to|since|so that|in order|reasons?|caus\w+|therefore|thus|result\w*|avoid\w*|prevent\w*"
    r"|fear\w*|concern\w*|led to|thanks to|after|when|as)\b",
    re.I,
)


def gives_reason(question: str, span: str) -> bool:
    """False if a reason is asked for and the span only says again what it is asked for."""
    asked = frozenset(content_terms(question))
    repeated = 2 * len(asked & frozenset(content_terms(span))) >= len(asked)
    return not (WHY.search(question) and repeated and not REASON.search(span))


def fits_role(question: str, sentence: str) -> bool:
    """Whether a sentence may say who has the role that is asked for: it has a word of the role, and does not leave the
    holder without a name, as "a permit from the keeper" and "Present: the keeper; the clerk" do."""
    role = ROLE.search(question)
    if role is None:
        return True
    unnamed = rf"\b(?:from|by|with|to|for|of) (?:the|a|an|our) {re.escape(role[1])}\b(?!,? [A-Z])"
    listed = rf"(?:[;:]|\b[a-z]+,|^)\s*(?:the|a|an|our) {re.escape(role[1])}\s*(?:[;,.]|$)(?!\s*[A-Z])"
    said = frozenset(content_terms(sentence))
    return bool(said & frozenset(content_terms(role[1]))) and not re.search(f"{unnamed}|{listed}", sentence, re.M)
