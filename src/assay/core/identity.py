"""What a document is known by: title, organisation, kind, period and file name. Pure; the facts are in `Document.meta`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath

from assay.core.types import file_name

ORGANISATION, KIND, PERIOD = "organisation", "kind_of_document", "period"

_YEAR = r"(?:19|20)\d\d"
_PARTS = re.compile(
    rf"[^A-Za-z0-9À-ɏ]+|(?<=[a-zß-ÿ])(?=[A-Z])|(?<=[A-Za-z])(?={_YEAR}(?!\d))|(?<=(?<!\d)(?:19|20)\d\d)(?=[A-Za-z])"
)
# A word, a year, or a short code (`3M`, `10K`, `Q2`, `X200`). Other numbers and digests identify nothing to a reader.
_WORD = re.compile(rf"[A-Za-zÀ-ɏ]{{2,}}|{_YEAR}|\d{{1,3}}[A-Za-z]{{1,2}}|[A-Z]{{1,4}}\d{{1,4}}")


def file_words(uri: str) -> list[str]:
    """The words of a file's name: `AMCOR_2023Q2_10Q.pdf` → AMCOR, 2023, Q2, 10Q."""
    stem = re.sub(r"^[a-z]{2,}:|\.[A-Za-z]\w{0,4}$", "", file_name(uri))
    words = [part for part in _PARTS.split(stem) if _WORD.fullmatch(part)]
    return words if any(part.isalpha() and len(part) >= 2 for part in words) else []


def describe(meta: Mapping[str, str]) -> str:
    """Organisation, kind and period in one line, as far as they are known."""
    return ", ".join(value for key in (ORGANISATION, KIND, PERIOD) if (value := meta.get(key, "")))


def unsaid_identity(title: str, meta: Mapping[str, str]) -> str:
    """Organisation, kind and period as far as the title does not have their words."""
    known = set(_words(title))
    return ", ".join(
        each for key in (ORGANISATION, KIND, PERIOD) if not known.issuperset(_words(each := meta.get(key, "")))
    )


def _words(text: str) -> list[str]:
    return [word.casefold() for word in re.findall(r"[^\W_]+", text)]


def title_by_identity(meta: Mapping[str, str]) -> str:
    """`Harrow Tides plc — annual report 2021`, to list a document by that states no title; empty unless all of it is known."""
    organisation, kind, period = (meta.get(key, "") for key in (ORGANISATION, KIND, PERIOD))
    return f"{organisation} — {kind} {_short_period(period)}" if organisation and kind and period else ""


def _short_period(period: str) -> str:
    """`FY2023` of `FY2023 (year ended 2023-05-31)`; a year that ends with the calendar's needs no more than its number."""
    calendar = re.fullmatch(rf"FY({_YEAR}) \(year ended \1-12-31\)", period)
    return calendar[1] if calendar else re.sub(r" \([^()]*\)$", "", period)


def searched_identity(title: str, uri: str, meta: Mapping[str, str]) -> str:
    """The words of an identity that the title does not have: searched with every passage of the document."""
    words = re.findall(r"[^\W_]+(?:[.&'’-][^\W_]+)*", describe(meta)) + file_words(uri)
    known = set(_words(title))
    return " ".join(word for word in words if not (word.casefold() in known or known.add(word.casefold())))


def identified_title(title: str, uri: str, meta: Mapping[str, str]) -> str:
    """The title with what else identifies the document, for prompts and checks: `Results (acme_q2.pdf; Acme, minutes)`."""
    name = file_name(uri)
    plain = {re.sub(r"[-_\s]+", " ", each).casefold() for each in (title, PurePath(name).stem)}
    known = meta.get(PERIOD, "") if title == title_by_identity(meta) else describe(meta)
    beside = "; ".join(part for part in (name if len(plain) > 1 and file_words(uri) else "", known) if part)
    return f"{title} ({beside})" if beside else title
