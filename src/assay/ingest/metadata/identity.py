"""The identity of a document: its organisation, its kind and the period it covers. By rule; what is unknown stays empty."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from assay.core.identity import KIND, ORGANISATION, PERIOD, file_words
from assay.ingest.metadata.dates import ANY, find_date_in_file_name, to_iso
from assay.ingest.metadata.file_fields import is_organisation, is_spelled_as_name

NEAR = 4_000  # characters of the first page
WITHIN = 200_000  # characters in which the spelling of a name is looked for
LINES = 60

FORM = re.compile(
    r"^(?:[^\w\n]|_)*+form\s{1,5}\w{1,4}(?:-\w{1,3})?(?:/a)?(?:[^\w\n]|_)*+$", re.IGNORECASE | re.MULTILINE
)


def own_title(title: str, text: str) -> str:
    """The title, unless the text is a printed form: its cover has labels, but no title."""
    return "" if FORM.search(text[:NEAR]) else title


LEGAL_FORM = (
    r"(?:incorporated|inc|corporation|corp|company|co|plc|p\.l\.c|limited|ltd|llc|l\.l\.c|llp|l\.p|lp|gmbh|ag|kgaa|kg|se"
    r"|s\.?a|s\.?p\.?a|n\.?v|b\.?v|a/s|asa|ab|oyj?|pty|holdings?|group|trust|foundation|e\.?\s?v|bank)"
)
LEGAL_NAME = re.compile(rf"[^\W_][^\n\t|:;(]{{0,70}}?[\s,]{LEGAL_FORM}\b\.?(?:,? {LEGAL_FORM}\b\.?)?", re.IGNORECASE)
NAME_LABEL = re.compile(
    r"\(?(?:exact|full|legal|registered)?\s{0,5}name of (?:the )?(?:registrant|company|issuer|organi[sz]ation|applicant)",
    re.IGNORECASE,
)
HEADLINE = re.compile(
    r"(?P<name>[^\W_a-z][^,:;]{1,50}?) (?:reports|announces|releases|publishes|posts|delivers|appoints|launches|to acquire)\b"
)


def find_organisation(text: str, title: str, authors: Sequence[str]) -> str:
    """The organisation that a document is of: named by a label, as its author, on a line of its own, or in the headline."""
    page = text[:NEAR]
    found = (
        *_labelled(page),
        *(authors[-1:] if any(map(is_organisation, authors)) else ()),
        *_alone(page),
        *([headline["name"]] if (headline := HEADLINE.match(title)) else ()),
    )
    return _as_written(next((name for each in found if (name := _tidy(each))), ""), text)


def _as_written(name: str, text: str) -> str:
    """A name in capitals as the running text spells it; unchanged if that never names it."""
    if not name.isupper():
        return name
    found = Counter(match[0] for match in re.finditer(re.escape(name), text[:WITHIN], re.IGNORECASE))
    spelled = [each for each, _ in found.most_common() if not each.isupper() and not each.islower()]
    return spelled[0] if spelled else name


def _labelled(page: str) -> Iterator[str]:
    """The name above `(Exact name of registrant …)`."""
    if label := NAME_LABEL.search(page):
        above = [line for line in page[: label.start()].split("\n") if any(map(str.isalnum, line))]
        yield from above[-1:]


def _alone(page: str) -> Iterator[str]:
    """Lines that are a name with its legal form."""
    for line in page.split("\n")[:LINES]:
        words = line.strip(" \t_*#-–—|")
        if LEGAL_NAME.fullmatch(words) and is_spelled_as_name(words.rpartition(" ")[0]):
            yield words


def _tidy(name: str) -> str:
    bare = re.sub(r"\s+", " ", name).strip(" \t_*#-–—|,;:()").replace(" .", ".")
    fits = 2 <= len(bare) <= 80 and len(bare.split()) <= 9 and any(map(str.isalpha, bare))
    return "" if not fits or bare.lower() in {"the company", "company", "group"} else bare


KINDS = (
    ("annual report", r"annual report|(?:form )?(?:10-?k|20-?f)\b|geschäftsbericht|rapport annuel|informe anual"),
    ("quarterly report", r"quarterly report|(?:form )?10-?q\b|quartalsbericht"),
    ("current report", r"current report|(?:form )?(?:8-?k|6-?k)\b"),
    ("proxy statement", r"proxy statement|def 14a"),
    ("press release", r"(?:press|news|media|earnings) release|for immediate release|pressemitteilung|earnings$"),
    ("press release", r"^.{2,60} (?:reports|announces) .{0,80}\b(?:results|earnings)\b"),
    ("minutes", r"minutes\b|protokoll|procès-verbal"),
    ("agenda", r"^agenda\b|\bagenda (?:of|for)"),
    ("invoice", r"\binvoice\b|rechnung\b|facture\b"),
    ("receipt", r"\breceipt\b|quittung"),
    ("contract", r"\b(?:agreement|contract|lease)\b|vertrag\b"),
    ("policy", r"\bpolicy\b|richtlinie"),
    ("manual", r"\b(?:manual|handbook|user guide|operating instructions)\b|handbuch|bedienungsanleitung"),
    ("newsletter", r"\bnewsletter\b"),
    ("memo", r"\bmemo(?:randum)?\b"),
    ("report", r"\breports?\b|bericht\b|rapport\b"),
)  # fmt: skip
KIND_PATTERNS = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in KINDS)


def find_kind(text: str, title: str, name: str) -> str:
    """What kind of document this is: from its title, its file name, or a short line near its top."""
    page = text[:NEAR]
    lines = (line.strip() for line in page.split("\n")[:15])
    labels = (line for line in lines if len(line) <= 90 and (line.isupper() or len(line.split()) <= 3))
    sources = [title, " ".join(file_words(name)), *labels]
    return next((kind for source in sources for kind, pattern in KIND_PATTERNS if pattern.search(source)), "")


ENDED = re.compile(
    r"\b(?:for|of) (?:the )?(?:fiscal |financial |transition )?(?P<span>year|quarterly period|quarter|month|period"
    r"|(?:three|six|nine|twelve) months|half[- ]year)(?: period)? end(?:ed|ing):?\s+",
    re.IGNORECASE,
)
QUARTERS = {"first": 1, "second": 2, "third": 3, "fourth": 4}
QUARTER = re.compile(r"\bq([1-4])\b|\b(first|second|third|fourth)[- ](?:fiscal )?quarter\b", re.IGNORECASE)
FISCAL = re.compile(r"\bfiscal (?:year )?((?:19|20)\d\d)\b|\bFY ?((?:19|20)\d\d)\b", re.IGNORECASE)
YEAR = re.compile(r"(?<![\d.,$€£-])((?:19|20)\d\d)(?![\d.,]*\d|-\d)")


def find_period(text: str, title: str, name: str, kind: str) -> str:
    """The period that a document covers: `FY2023 (year ended 2023-06-30)`, `Q2 FY2023 (quarter ended 2022-12-31)`, `2021`."""
    page, named = text[:NEAR], " ".join(file_words(name))
    if (match := ENDED.search(page)) and (dated := ANY.match(page, match.end())) and (end := to_iso(dated)):
        words = match["span"].lower()
        span = "year" if words.startswith(("year", "twelve")) else "quarter" if "quarter" in words else "period"
        year = _fiscal_year(text, f"{named} {title}", int(end[:4]))
        quarter = _quarter(f"{named}\n{title}")
        return f"{f'Q{quarter} ' if quarter and span != 'year' else ''}FY{year} ({span} ended {end})"
    if month := find_date_in_file_name(name) or _month_alone(title):
        return month[:7]
    for source in (named, title):
        years = {*YEAR.findall(source)}
        quarter = _quarter(source)
        fiscal = {first or second for first, second in FISCAL.findall(source)}
        if len(fiscal or years) == 1 and (kind or quarter or fiscal or source is named):
            return f"{f'Q{quarter} ' if quarter else ''}{'FY' if fiscal else ''}{(fiscal or years).pop()}"
    return ""


def _month_alone(title: str) -> str:
    """The month in a title that names one, and no day."""
    found = [iso for match in ANY.finditer(title) if (iso := to_iso(match))]
    return found[0] if len(found) == 1 and len(found[0]) == 7 else ""


def _fiscal_year(text: str, name: str, ended: int) -> int:
    """The year that the document calls its own: one that ends in January may be called after the year before."""
    near = (ended, ended - 1, ended + 1)
    if len(named := {int(year) for year in YEAR.findall(name)} & {*near}) == 1:
        return named.pop()
    counts = Counter(int(first or second) for first, second in FISCAL.findall(text))
    best = max(near, key=lambda year: counts[year])
    return best if counts[best] > 2 * counts[ended] else ended


def _quarter(words: str) -> int:
    match = QUARTER.search(words)
    return 0 if match is None else int(match[1]) if match[1] else QUARTERS[match[2].lower()]


def find_identity(text: str, title: str, name: str, authors: Sequence[str], *, has_abstract: bool) -> dict[str, str]:
    """Organisation, kind and period, without those that are unknown."""
    kind = find_kind(text, title, name) or ("paper" if has_abstract else "")
    facts = {
        ORGANISATION: find_organisation(text, title, authors),
        KIND: kind,
        PERIOD: find_period(text, title, PurePath(name).name, kind),
    }
    return {key: value for key, value in facts.items() if value}
