"""Members of a shared workspace: names, groups and passwords. Passwords are stored as scrypt hashes only."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from assay.core.access import Principal
from assay.core.errors import Missing, UserError
from assay.store.database import Store
from assay.store.schema import bases, grants, keys, lists, members, sessions

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


_MEMBERS = select(members.c.name, members.c.groups, members.c.admin, members.c.created)


def is_valid_name(name: str) -> bool:
    """Whether a user or group may have this name: grants are written as `user:` or `group:` plus the name."""
    return 0 < len(name) <= 100 and name == name.strip() and ":" not in name and name.isprintable()


def is_valid_group_name(name: str) -> bool:
    """Whether a group may have this name: groups are also written as comma-separated lists."""
    return is_valid_name(name) and "," not in name


def check_unused(store: Store, name: str) -> None:
    """Raise `UserError` if the name is invalid or in use."""
    if not is_valid_name(name):
        raise UserError(f"{name!r} cannot be the name of a user. Use up to 100 printable characters, and no colon.")
    if named(store, name) is not None:
        raise UserError(f"There is a user called {name!r} already. `assay user change` changes them.")


def add(
    store: Store, name: str, groups: Iterable[str] = (), *, admin: bool = False, password: str | None = None
) -> Member:
    """Add a member. Without a password they can use API keys only."""
    check_unused(store, name)
    hashed = "" if password is None else _hash_password(_check_length(password))
    member = Member(name, tuple(_valid_groups(groups)), admin, store.now())
    with store.write() as connection:
        connection.execute(
            insert(members).values(
                name=name, groups=list(member.groups), admin=admin, password=hashed, created=member.created
            )
        )
    return member


def listing(store: Store) -> list[Member]:
    with store.read() as connection:
        return [_member(row) for row in connection.execute(_MEMBERS.order_by(members.c.name))]


def named(store: Store, name: str) -> Member | None:
    with store.read() as connection:
        return _find(connection, name)


def known(store: Store, name: str) -> Member:
    """The member with that name. Raises `Missing` if there is none."""
    member = named(store, name)
    if member is None:
        raise _no_such_user(name)
    return member


def set_groups(store: Store, name: str, groups: Iterable[str]) -> None:
    """Set the groups of a member, effective from their next request."""
    _change(store, name, {"groups": _valid_groups(groups)})


def set_admin(store: Store, name: str, admin: bool) -> None:
    _change(store, name, {"admin": admin})


def set_password(store: Store, name: str, password: str) -> None:
    """Change the password. Sessions started with the old one end."""
    _change(store, name, {"password": _hash_password(_check_length(password))})


def remove(store: Store, name: str) -> None:
    """Remove a member: their keys and sessions end at once, and grants to them are deleted. What they own stays."""
    with store.write() as connection:
        if _find(connection, name) is None:
            raise _no_such_user(name)
        connection.execute(delete(keys).where(keys.c.who == name))
        connection.execute(delete(sessions).where(sessions.c.who == name))
        owned = select(bases.c.id).where(bases.c.owner == name)
        own = owned.union(select(lists.c.label).where(lists.c.base.in_(owned)))
        connection.execute(delete(grants).where(grants.c.name == f"user:{name}", grants.c.label.not_in(own)))
        connection.execute(delete(members).where(members.c.name == name))


def check_password(store: Store, name: str, password: str) -> Member | None:
    """The member if the password is correct, else None. Takes equally long for unknown names."""
    with store.read() as connection:
        hashed = connection.scalar(select(members.c.password).where(members.c.name == name)) or ""
    right = _matches(password, hashed or _DUMMY) and bool(hashed)
    return named(store, name) if right else None


def _change(store: Store, name: str, values: Mapping[str, object]) -> None:
    with store.write() as connection:
        if _find(connection, name) is None:
            raise _no_such_user(name)
        connection.execute(update(members).where(members.c.name == name).values(dict(values)))
        if "password" in values:
            connection.execute(delete(sessions).where(sessions.c.who == name))


def _find(connection: Connection, name: str) -> Member | None:
    row = connection.execute(_MEMBERS.where(members.c.name == name)).first()
    return _member(row) if row else None


def _member(row: Row[Any, Any, Any, Any]) -> Member:
    return Member(row.name, tuple(row.groups), row.admin, row.created)


def _no_such_user(name: str) -> Missing:
    return Missing(f"There is no user called {name!r}. `assay user list` shows them.")


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


def _derive_key(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(errors="replace"), salt=salt, n=COST, r=BLOCK, p=LANES, maxmem=MEMORY)


def _hash_password(password: str) -> str:
    salt = secrets.token_bytes(16)
    return f"scrypt${COST}${BLOCK}${LANES}${salt.hex()}${_derive_key(password, salt).hex()}"


_DUMMY = f"scrypt${COST}${BLOCK}${LANES}${'00' * 16}${'00' * 64}"  # matches no password


def _matches(password: str, hashed: str) -> bool:
    _, cost, block, lanes, salt, wanted = hashed.split("$")
    found = hashlib.scrypt(
        password.encode(errors="replace"),
        salt=bytes.fromhex(salt),
        n=int(cost),
        r=int(block),
        p=int(lanes),
        maxmem=MEMORY,
    )
    return hmac.compare_digest(found, bytes.fromhex(wanted))
