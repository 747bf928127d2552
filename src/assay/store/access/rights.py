"""Rights by the record: who may read what, and who is a member, as the workspace's own records say, compared with what the
store holds. Every change of a right is recorded with it, so a right without a record was written by somebody else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, select

from assay.core.access import LOCAL
from assay.core.events import WORKSPACE, AccountChange, AccountChanged, Granted
from assay.core.events.upgrade import SALT
from assay.store import facts
from assay.store.database import Store
from assay.store.dialect import insert_or_replace
from assay.store.runs import records
from assay.store.schema import RIGHTS_RECORDED, SAME_RECORD, bases, documents, grants, lists, members, payloads, threads
from assay.store.schema import facts as fact_rows
from assay.store.schema import records as recorded_rows

OPERATOR = f"user:{LOCAL.id}"  # whoever can open the workspace's files; no record is needed for their rights
FOUND = "found when rights were first recorded"  # the reason in the record of rights that are older

Right = tuple[str, str]  # a label or a document, and `user:…` or `group:…`


@dataclass
class Rights:
    """By the record: whether each right was given or taken last, and in which record; and the groups of each member, with
    whether they are an administrator."""

    given: dict[Right, tuple[int, bool | None]] = field(default_factory=dict)  # None: it may have ended with its person
    members: dict[str, tuple[frozenset[str], bool]] = field(default_factory=dict)
    gifts: dict[Right, int] = field(default_factory=dict)  # the last record that gave it, whatever came later
    places: dict[str, str] = field(default_factory=dict)  # of lists for patterns of locations: label → base and pattern

    def last_gift(self, name: str, places: set[str]) -> int:
        """The last record that gave a person something at one of these places; 0 if there is none."""
        return max((n for (what, who), n in self.gifts.items() if who == name and what in places), default=0)


def recorded(connection: Connection) -> Rights:
    """The rights that the records say there are. Records that were erased say nothing."""
    rows = connection.execute(
        select(recorded_rows.c.n, recorded_rows.c.kind, payloads.c.body)
        .join(payloads, SAME_RECORD)
        .where(recorded_rows.c.run == WORKSPACE, recorded_rows.c.kind.in_(("Granted", "AccountChanged")))
        .order_by(recorded_rows.c.seq)
    )
    rights = Rights()
    for n, kind, body in rows:
        try:
            said = json.loads(body)
            if kind == "Granted":
                rights.given[said["what"], said["name"]] = (n, said["may"] is True)
                if where := said.get("where", ""):
                    rights.places[said["what"]] = where
                if said["may"] is True:
                    rights.gifts[said["what"], said["name"]] = n
            else:
                _replay(rights, n, said["name"], said["change"], said.get("detail", ""))
        except (ValueError, KeyError, TypeError, AttributeError):  # it was tampered with, and its digest says so
            continue
    return rights


def _replay(rights: Rights, n: int, who: str, change: str, detail: str) -> None:
    name = who.removeprefix("user:")
    groups, admin = rights.members.get(name, (frozenset[str](), False))
    match change:
        case AccountChange.added:
            rights.members[name] = (frozenset(), False)
        case AccountChange.removed:
            rights.members.pop(name, None)
            _pass_on(rights, n, who, who)
        case AccountChange.groups if name in rights.members:
            rights.members[name] = (frozenset(detail.split(", ")) - {""}, admin)
        case AccountChange.administrator if name in rights.members:
            rights.members[name] = (groups, detail == "yes")
        case AccountChange.handed_over:
            _pass_on(rights, n, who, f"user:{detail}")
        case _:
            pass


def _pass_on(rights: Rights, n: int, old: str, new: str) -> None:
    """What a person could read goes to another, or goes with them, as it is theirs or not."""
    passed = {what for (what, who), (_, may) in rights.given.items() if who == old and may is not False}
    if old != new:
        passed |= {what for (what, who), (_, may) in rights.given.items() if who == new and may is False}
        passed -= {what for (what, who), (_, may) in rights.given.items() if who == new and may}
        rights.given = {each: given for each, given in rights.given.items() if each[1] != old}
        rights.gifts |= {(what, new): n for what, who in rights.gifts if who == old}
    rights.given |= {(what, new): (n, None) for what in passed}


def differences(connection: Connection) -> Iterator[str]:
    """Where the store has other rights than the record says, a sentence each."""
    if connection.scalar(select(fact_rows.c.value).where(fact_rows.c.name == RIGHTS_RECORDED)) is None:
        yield "the workspace does not say since when rights are recorded"
    rights = recorded(connection)
    yield from _members(connection, rights.members)
    yield from _grants(connection, rights)


def _members(connection: Connection, said: Mapping[str, tuple[frozenset[str], bool]]) -> Iterator[str]:
    there = {row.name: (frozenset(row.groups), bool(row.admin)) for row in connection.execute(select(members))}
    for name in sorted(there.keys() - said.keys()):
        yield f"user:{name} is a member"
    for name in sorted(said.keys() - there.keys()):
        yield f"user:{name} is no member"
    for name in sorted(there.keys() & said.keys()):
        (groups, admin), (said_groups, said_admin) = there[name], said[name]
        if groups != said_groups:
            yield f"user:{name} is in the groups {', '.join(sorted(groups)) or '–'}"
        if admin != said_admin:
            yield f"user:{name} is {'an' if admin else 'no'} administrator"


def _grants(connection: Connection, rights: Rights) -> Iterator[str]:
    there = {(row.label, row.name) for row in connection.execute(select(grants))}
    own_lists = connection.execute(select(lists).where(lists.c.label != lists.c.base)).all()
    base_of_list = {row.label: row.base for row in own_lists}
    base_ids, thread_ids = (set(connection.scalars(select(table.c.id))) for table in (bases, threads))
    base_of_document, label_of = {}, {}
    for row in connection.execute(select(documents.c.id, documents.c.base, documents.c.label)):
        base_of_document[row.id], label_of[row.id] = row.base, row.label
    known = base_ids | thread_ids | base_of_list.keys() | base_of_document.keys()
    gone = {what for what, _ in rights.given} - known  # such as documents that were erased
    for label, name in sorted(there):
        _, may = rights.given.get((label, name), (0, False))
        if name == OPERATOR or may is not False:
            continue
        if base := base_of_list.get(label):
            # A list begins with the readers of its base, or of the list that was at another place.
            own = {label, *(each for each, its in label_of.items() if its == label)}
            last = max((rights.given.get((each, name), (0, False)) for each in own), default=(0, False))
            others = {base, *gone, *(each for each, its in (base_of_list | base_of_document).items() if its == base)}
            if last[1] is not False or rights.last_gift(name, others) > last[0]:
                continue
        yield f"{name} may read {label}"
    for (label, name), (_, may) in sorted(rights.given.items()):
        if may and label in base_ids and (label, name) not in there:
            yield f"{name} may not read {label}"
    restricted = {(row.place, row.label) for row in own_lists}
    for label, place in sorted(rights.places.items()):
        is_set = any(may is not False for (what, _), (_, may) in rights.given.items() if what == label)
        if is_set and place.partition("/")[0] in base_ids and (place, label) not in restricted:
            yield f"{place} is not restricted"


# Rights whose records are missing


def note_found(store: Store) -> None:
    """Record the rights that are there in a workspace from before rights were recorded as a whole. Not where somebody only took
    away the fact that they are: what was forged would be recorded as found."""
    if facts.remembered(store, RIGHTS_RECORDED) is not None:
        return
    with store.write() as connection:
        if _since_recorded(connection):
            return
        rows = connection.execute(select(grants).where(grants.c.name != OPERATOR)).all()
        own = set(connection.scalars(select(bases.c.id)))
        given = {each: said for each, said in recorded(connection).given.items() if each[0] not in own}
        given |= {(row.label, row.name): (0, True) for row in rows}
        people = connection.execute(select(members)).all()
        found = Rights(given, {row.name: (frozenset(row.groups), bool(row.admin)) for row in people})
        note_again(connection, store, found, FOUND)
        connection.execute(insert_or_replace(fact_rows).values(name=RIGHTS_RECORDED, value=store.now()))


def _since_recorded(connection: Connection) -> bool:
    """Whether a record is from a version that records all rights: only those have a salt. A record cannot be taken away unseen,
    as a fact can."""
    bodies = connection.scalars(select(payloads.c.body).where(payloads.c.body.contains(f'"{SALT}":')))
    return any(SALT in json.loads(body) for body in bodies)


def note_again(connection: Connection, store: Store, wanted: Rights, by: str) -> None:
    """Record what of these rights no record says (any more), such as after the records of a person were erased."""
    said = recorded(connection)
    there = {(row.label, row.name) for row in connection.execute(select(grants))}
    label_of = {row.id: row.label for row in connection.execute(select(documents.c.id, documents.c.label))}
    for (what, name), (_, may) in wanted.given.items():
        is_given = (label_of.get(what, what), name) in there if may is None else may
        if (may is not None or is_given) and said.given.get((what, name), (0, None))[1] is not is_given:
            records.note(connection, store, Granted(what, name, is_given, by, wanted.places.get(what, "")))
    for what, name in [each for each, (_, may) in said.given.items() if may and each not in wanted.given]:
        records.note(connection, store, Granted(what, name, False, by))  # the record that took it is gone
    for name, (groups, admin) in wanted.members.items():
        if said.members.get(name) != (groups, admin):
            about = (AccountChange.added, ""), (AccountChange.groups, ", ".join(sorted(groups)))
            for change, detail in (*about, (AccountChange.administrator, "yes" if admin else "no")):
                records.note(connection, store, AccountChanged(f"user:{name}", change, by, detail))
