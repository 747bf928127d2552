"""Members of a shared workspace: names, groups and passwords, and the transfer of all that somebody owns. Passwords are
stored as scrypt hashes only."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

from sqlalchemy import Connection, Engine, delete, insert, select, union, update

from assay.core.access import LOCAL, Principal, looks_local
from assay.core.errors import Missing, UserError
from assay.core.events import AccountChange, AccountChanged, Granted
from assay.store import embedding_cache
from assay.store.access import offers
from assay.store.database import Store
from assay.store.dialect import insert_new
from assay.store.runs import records
from assay.store.schema import OWNED, bases, grants, identities, keys, lists, members, sessions

# scrypt with 32 MB and about 0.1 s per attempt: negligible for a legitimate sign-in, expensive for guessing.
COST, BLOCK, LANES = 2**15, 8, 1
MEMORY = 64 * 1024 * 1024
SHORTEST = 10  # characters of a password


@dataclass(frozen=True, slots=True)
class Member:
    """A user who may sign in, and their groups."""

    name: str
    groups: tuple[str, ...]
    admin: bool
    created: str

    @property
    def principal(self) -> Principal:
        return Principal(self.name, frozenset(self.groups))


MEMBERS = select(members.c.name, members.c.groups, members.c.admin, members.c.created)


def is_valid_name(name: str) -> bool:
    """Whether a user or group may have this name: grants are written as `user:` or `group:` plus the name."""
    return 0 < len(name) <= 100 and name == name.strip() and ":" not in name and name.isprintable()


def is_valid_group_name(name: str) -> bool:
    """Whether a group may have this name: groups are also written as comma-separated lists."""
    return is_valid_name(name) and "," not in name


def check_unused(store: Store, name: str) -> None:
    """Raise `UserError` if the name is invalid, reserved or in use."""
    if not is_valid_name(name):
        raise UserError(f"{name!r} cannot be the name of a user. Use up to 100 printable characters, and no colon.")
    if looks_local(name):
        raise UserError(f"The name {name!r} is reserved for the command line of the workspace. Choose another.")
    if named(store, name) is not None:
        raise UserError(f"There is a user called {name!r} already. `assay user change` changes them.")


def add(
    store: Store,
    name: str,
    groups: Iterable[str] = (),
    *,
    admin: bool = False,
    password: str | None = None,
    by: str = LOCAL.id,
) -> Member:
    """Add a member. Without a password they can use API keys only."""
    check_unused(store, name)
    hashed = "" if password is None else _hash_password(_check_length(password))
    member = Member(name, tuple(_valid_groups(groups)), admin, store.now())
    with store.write() as connection:
        row = {"name": name, "groups": list(member.groups), "admin": admin, "created": member.created}
        connection.execute(insert(members).values(**row, password=hashed))
        note(connection, store, name, AccountChange.added, by)
        if member.groups:
            note(connection, store, name, AccountChange.groups, by, ", ".join(member.groups))
        if admin:
            note(connection, store, name, AccountChange.administrator, by, "yes")
    return member


def listing(store: Store) -> list[Member]:
    return [member_of(row) for row in store.rows(MEMBERS.order_by(members.c.name))]


def named(store: Store, name: str) -> Member | None:
    row = store.first(MEMBERS.where(members.c.name == name))
    return member_of(row) if row else None


def known(store: Store, name: str) -> Member:
    """The member with that name. Raises `Missing` if there is none."""
    with store.read() as connection:
        return _known(connection, name)


def set_groups(store: Store, name: str, groups: Iterable[str], by: str = LOCAL.id) -> None:
    """Set the groups of a member, effective from their next request."""
    names = _valid_groups(groups)
    _change(store, name, AccountChange.groups, by, ", ".join(names), groups=names)


def set_admin(store: Store, name: str, admin: bool, by: str = LOCAL.id) -> None:
    _change(store, name, AccountChange.administrator, by, "yes" if admin else "no", admin=admin)


def set_password(store: Store, name: str, password: str, by: str = LOCAL.id) -> None:
    """Change the password. All sessions, API keys and linked sign-ins of the member end: whoever had the account before is out
    of it."""
    _change(store, name, AccountChange.password, by, password=_hash_password(_check_length(password)))


def remove(connection: Connection, store: Store, name: str, by: str) -> None:
    """Remove a member: their keys and sessions end at once, and grants to them are deleted. What they own stays theirs: see
    `remove_member`."""
    _known(connection, name)
    _end_access(connection, name)
    owned = select(bases.c.id).where(bases.c.owner == name)
    own = owned.union(select(lists.c.label).where(lists.c.base.in_(owned)))
    connection.execute(delete(grants).where(grants.c.name == f"user:{name}", grants.c.label.not_in(own)))
    connection.execute(delete(members).where(members.c.name == name))
    note(connection, store, name, AccountChange.removed, by)


def note(connection: Connection, store: Store, name: str, change: AccountChange, by: str, detail: str = "") -> None:
    """Record a change of an account, in the transaction in which it happens."""
    records.note(connection, store, AccountChanged(f"user:{name}", change, by, detail))


def end_all_credentials(store: Store, why: str, by: str = LOCAL.id) -> int:
    """End every password, API key, linked sign-in and session. Returns how many people had any. They stay members, with their
    rights."""
    with store.write() as connection:
        holders = set(connection.scalars(select(members.c.name).where(members.c.password != "")))
        for table in _CREDENTIALS:
            holders |= set(connection.scalars(select(table.c.who)))
            connection.execute(delete(table))
        connection.execute(update(members).values(password=""))
        for name in sorted(holders):
            note(connection, store, name, AccountChange.password, by, why)
    return len(holders)


_CREDENTIALS = (keys, sessions, identities)  # beside the password


def _end_access(connection: Connection, name: str) -> None:
    for table in _CREDENTIALS:
        connection.execute(delete(table).where(table.c.who == name))


def end_sessions(connection: Connection, name: str) -> None:
    connection.execute(delete(sessions).where(sessions.c.who == name))


def check_password(store: Store, name: str, password: str) -> Member | None:
    """The member if the password is correct, else None. Takes equally long for unknown names."""
    hashed = store.scalar(select(members.c.password).where(members.c.name == name)) or ""
    right = _matches(password, hashed or _DUMMY) and bool(hashed)
    return named(store, name) if right else None


def _change(store: Store, name: str, change: AccountChange, by: str, detail: str = "", **new: Any) -> None:
    """Change a member and record it."""
    with store.write() as connection:
        _known(connection, name)
        connection.execute(update(members).where(members.c.name == name).values(new))
        if change is AccountChange.password:
            _end_access(connection, name)
        note(connection, store, name, change, by, detail)


def _known(connection: Connection, name: str) -> Member:
    row = connection.execute(MEMBERS.where(members.c.name == name)).first()
    if row is None:
        raise Missing(f"There is no user called {name!r}. `assay user list` shows them.")
    return member_of(row)


def member_of(row: Any) -> Member:
    return Member(row.name, tuple(row.groups), row.admin, row.created)


def _valid_groups(groups: Iterable[str]) -> list[str]:
    names = sorted(set(groups))
    for group in names:
        if not is_valid_group_name(group):
            raise UserError(
                f"{group!r} cannot be the name of a group. Use up to 100 printable characters, and no colon or comma."
            )
    return names


def _check_length(password: str) -> str:
    if len(password) < SHORTEST:
        raise UserError(f"A password needs at least {SHORTEST} characters.")
    return password


def _derive_key(password: str, salt: bytes, cost: int, block: int, lanes: int) -> bytes:
    return hashlib.scrypt(password.encode(errors="replace"), salt=salt, n=cost, r=block, p=lanes, maxmem=MEMORY)


def _hash_password(password: str) -> str:
    salt = secrets.token_bytes(16)
    return f"scrypt${COST}${BLOCK}${LANES}${salt.hex()}${_derive_key(password, salt, COST, BLOCK, LANES).hex()}"


_DUMMY = f"scrypt${COST}${BLOCK}${LANES}${'00' * 16}${'00' * 64}"  # matches no password


def _matches(password: str, hashed: str) -> bool:
    _, cost, block, lanes, salt, wanted = hashed.split("$")
    found = _derive_key(password, bytes.fromhex(salt), int(cost), int(block), int(lanes))
    return hmac.compare_digest(found, bytes.fromhex(wanted))


FORMER = "removed:"  # prefix of the name under which the things of a removed person stay: nobody can sign in with it


def transfer_ownership(store: Store, cache: Engine, old: str, new: str, by: str = LOCAL.id) -> int:
    """Transfer bases, runs, threads and jobs in one transaction. Returns the number of bases."""
    with store.write() as connection:
        moved = _transfer(connection, store, old, new, by)
    embedding_cache.transfer(cache, old, new)
    return moved


def remove_member(store: Store, cache: Engine, name: str, heir: str = "", by: str = LOCAL.id) -> tuple[int, str]:
    """Remove a member. What they own goes to the heir, or stays under a name that nobody has or can get: whoever is added
    under the old name inherits nothing. Returns the number of bases, and the name under which they are now."""
    new = heir or f"{FORMER}{name}:{store.new_id()}"
    with store.write() as connection:
        remove(connection, store, name, by)
        moved = _transfer(connection, store, name, new, by)
    embedding_cache.transfer(cache, name, new)
    return moved, new


def former_names(store: Store, name: str) -> list[str]:
    """The names under which the things of removed people of this name are."""
    columns, like = (bases.c.owner, *(table.c.who for table in OWNED)), f"{FORMER}{name}:"
    own = (select(column).where(column.startswith(like, autoescape=True)) for column in columns)
    return sorted(store.scalars(union(*own)))


def _transfer(connection: Connection, store: Store, old: str, new: str, by: str) -> int:
    gained = connection.scalars(select(grants.c.label).where(grants.c.name == f"user:{old}")).all()
    moved = _bases(connection, old, new)
    for table in OWNED:
        connection.execute(update(table).where(table.c.who == old).values(who=new))
    note(connection, store, old, AccountChange.handed_over, by, new)
    if old == LOCAL.id:  # no record gave the operator their rights, so none can pass on
        for label in gained:
            records.note(connection, store, Granted(label, f"user:{new}", True, by))
    return moved


def _bases(connection: Connection, old: str, new: str) -> int:
    taken = set(connection.scalars(select(bases.c.name).where(bases.c.owner == new)))
    owned = connection.execute(select(bases.c.id, bases.c.name).where(bases.c.owner == old)).all()
    for row in owned:
        name = row.name if row.name not in taken else _free(row.name, old, taken)
        taken.add(name)
        connection.execute(update(bases).where(bases.c.id == row.id).values(owner=new, name=name))
    for label in connection.scalars(select(grants.c.label).where(grants.c.name == f"user:{old}")).all():
        connection.execute(insert_new(grants).values(label=label, name=f"user:{new}"))
    connection.execute(delete(grants).where(grants.c.name == f"user:{old}"))
    offers.transfer(connection, old, new)
    return len(owned)


def _free(name: str, old: str, taken: set[str]) -> str:
    """A name that the new owner does not use yet."""
    numbered = (f"{name} ({old} {n})" for n in count(2))
    return next(each for each in chain([f"{name} ({old})"], numbered) if each not in taken)
