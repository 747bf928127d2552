"""What a sync has to do: which files of a place are read, and whose documents go. Pure, but for what a watch remembers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from assay.core.codec import digest
from assay.ingest.parsed import Status
from assay.ingest.pipeline import current_parsers
from assay.ingest.places import YOUNG, Listed, is_below
from assay.store.access.document_access import has_own_list
from assay.store.documents import READY, UNREADABLE, Entry
from assay.store.fetched import Fetched

UNDECIDED = YOUNG + 1.0  # seconds in which a file that is gone is looked for under other names
PATIENCE = 30.0  # seconds after which a file that changes all the time is read as it is


@dataclass
class Watched:
    """What a watch remembers from one look to the next."""

    grace: float  # seconds that a file must be gone before its document is
    missed: dict[str, float] = field(default_factory=dict)  # locations, since when they are gone
    noted: set[str] = field(default_factory=set)  # those of restricted documents of which that is noted
    unopened: set[str] = field(default_factory=set)  # locations that could not be opened at the last look
    young: dict[str, float] = field(default_factory=dict)  # locations that wait to be read, since when


@dataclass(frozen=True, slots=True)
class Plan:
    """What one look at a place leads to."""

    read: list[str]  # locations, in order
    refused: set[str]  # of these, those that could not be read before, as now
    vanished: list[Entry]  # restricted documents that are gone now; what comes may be one of them
    remove: set[str]  # locations whose documents go, unless they have moved
    again: float = inf  # seconds after which something that waits now is due


def plan(
    address: str,
    files: Mapping[str, Listed],
    known: Mapping[str, Fetched],
    entries: Sequence[Entry],
    how: str,
    watched: Watched | None = None,
    now: float = 0.0,
) -> Plan:
    """What to do about the files of a place, by location.

    known: what was read before, by the digest of the location
    entries: the documents of the base
    how: what decides whether a file can be read, besides its content
    watched: without it everything is compared, and what is gone goes at once
    """
    at, contents = defaultdict[str, list[Entry]](list), defaultdict[str, list[Entry]](list)
    for entry in entries:
        at[entry.uri].append(entry)
        contents[entry.digest].append(entry)
    same = {uri for uri, each in files.items() if _as_before(each, known.get(digest(uri)))}
    refused = {uri for uri in same if known[digest(uri)].how == how}
    gone = [entry for entry in entries if is_below(address, entry.uri) and entry.uri not in files]
    if watched is None:
        return Plan(
            [*files], refused, [each for each in gone if has_own_list(each)], {each.uri for each in gone}, False
        )

    def settled(uri: str) -> bool:
        here = at[uri]
        if any(_too_large(entry, files[uri]) for entry in here):
            return True
        if uri not in same:
            return False
        sha = known[digest(uri)].sha
        if here:
            return any(entry.digest == sha and _is_done(entry, uri in refused) for entry in here)
        return any(
            twin.state == READY and (twin.uri in files or not is_below(address, twin.uri)) for twin in contents[sha]
        )

    changed = [uri for uri in files if not settled(uri)]
    watched.young = {uri: watched.young.get(uri, now) for uri in changed if files[uri].young}
    waiting = {uri for uri, since in watched.young.items() if now - since < PATIENCE}
    watched.missed = {entry.uri: watched.missed.get(entry.uri, now) for entry in gone}
    watched.noted &= watched.missed.keys()
    vanished = [each for each in gone if has_own_list(each) and each.uri not in watched.noted]
    read = [uri for uri in changed if uri not in waiting]
    if waiting and (open := {each.uri for each in vanished if now - watched.missed[each.uri] < UNDECIDED}):
        # What waits may be that document under another name: until it is read, nothing is read that is at a new place.
        read, vanished = [uri for uri in read if at[uri]], [each for each in vanished if each.uri not in open]
    watched.noted |= {each.uri for each in vanished}
    # A file that waits may be one that is gone, if it is as large.
    sizes = {files[uri].size for uri in set(changed).difference(read)}
    kept = {entry.uri for entry in gone if sizes & {entry.bytes, None}}
    remove = {uri for uri, since in watched.missed.items() if now - since >= watched.grace and uri not in kept}
    due = [max(YOUNG, since + watched.grace - now) for uri, since in watched.missed.items() if uri not in remove]
    return Plan(read, refused & set(read), vanished, remove, min([*due, *([YOUNG] if waiting else []), inf]))


def _as_before(listed: Listed, before: Fetched | None) -> bool:
    return before is not None and bool(listed.mark) and listed.mark == before.mark


def _is_done(entry: Entry, refused: bool) -> bool:
    """Whether reading the same content again would change nothing."""
    return entry.parser in current_parsers() if entry.state == READY else entry.state == UNREADABLE and refused


def _too_large(entry: Entry, listed: Listed) -> bool:
    """Whether it was too large to be fetched, and still is: it has no digest then."""
    return entry.status == Status.too_large and not entry.digest and entry.bytes == listed.size
