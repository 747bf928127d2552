"""Administrators, and people who come and go: every change of an account is on record, and nobody gains what is not theirs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import pytest
from starlette.exceptions import HTTPException
from worlds import EDITOR, READER, World, asked, world

from assay.core.access import Principal
from assay.core.errors import Missing, UserError
from assay.core.events import AccountChanged, Withheld
from assay.governance.audit.verify import verify
from assay.serve.limits import FREE_ATTEMPTS, PasswordAttempts
from assay.store import threads
from assay.store.access import grants, members, tokens
from assay.store.runs import history, records

PASSWORD = "a lamp on the pier"


@pytest.fixture
async def made(tmp_path: Path):
    with patch.object(members, "COST", 2**10):
        async with world(tmp_path / "workspace") as one:
            yield one


def changes(made: World) -> list[tuple[str, str, str, str]]:
    log = [event for _, event in records.workspace_log(made.workspace.store)]
    return [(each.name, each.change, each.by, each.detail) for each in log if isinstance(each, AccountChanged)]


async def test_whatever_an_administrator_does_to_people_is_on_record(made: World):
    before = len(changes(made))
    guest = {"name": "guest", "groups": ["press"], "password": PASSWORD, "admin": True}
    assert (await made.ask("POST", "/api/people", "editor", json=guest)).status_code == 201
    join = {"groups": ["desk", "press"], "admin": False, "password": PASSWORD + "!"}
    assert (await made.ask("PATCH", "/api/people/guest", "editor", json=join)).status_code == 200
    key = (await made.ask("POST", "/api/keys", "reader", json={"label": "notebook"})).json()["id"]
    assert (await made.ask("DELETE", f"/api/keys/{key}", "reader")).status_code == 204
    assert (await made.ask("DELETE", "/api/people/guest", "editor")).status_code == 204
    told = changes(made)[before:]
    assert told[:-1] == [
        ("user:guest", "added", "editor", ""),
        ("user:guest", "groups", "editor", "press"),
        ("user:guest", "administrator", "editor", "yes"),
        ("user:guest", "groups", "editor", "desk, press"),
        ("user:guest", "password", "editor", ""),
        ("user:guest", "administrator", "editor", "no"),
        ("user:reader", "key added", "reader", key),
        ("user:reader", "key removed", "reader", key),
        ("user:guest", "removed", "editor", ""),
    ]
    assert told[-1][1] == "handed over" and PASSWORD not in str(told)
    assert verify(made.workspace.store, None).whole


async def test_a_password_that_is_reset_ends_keys_and_sessions(made: World):
    store = made.workspace.store
    token, _ = tokens.begin_session(store, "reader", 3600)
    assert (await made.ask("GET", "/api/me", "reader")).status_code == 200
    reset = await made.ask("PATCH", "/api/people/reader", "editor", json={"password": PASSWORD})
    assert reset.status_code == 200
    assert (await made.ask("GET", "/api/me", "reader")).status_code == 401
    assert tokens.find_session(store, token) is None and tokens.listing(store, "reader") == []


@pytest.mark.parametrize("name", ["local", "LOCAL", "ｌｏｃａｌ", "ＬＯＣＡＬ", "lосаl", "Iocal", "loca1"])
async def test_nobody_is_added_under_what_reads_like_the_name_of_the_command_line(made: World, name: str):
    refused = await made.ask("POST", "/api/people", "editor", json={"name": name, "password": PASSWORD})
    assert refused.status_code == 400 and "reserved" in refused.json()["detail"]
    with pytest.raises(UserError, match="reserved"):
        members.add(made.workspace.store, name)
    members.add(made.workspace.store, f"{name}e")


async def test_who_is_added_under_the_name_of_somebody_who_left_inherits_nothing(made: World):
    store, again = made.workspace.store, Principal("reader")
    run = await asked(made.as_(READER))
    thread = threads.begin(store, "reader", "Why?")
    base = next(base for base in made.as_(EDITOR).scope().bases if base.name == "shared")
    grants.share(store, base, "user:reader")
    assert (await made.ask("DELETE", "/api/people/reader", "editor")).status_code == 204
    members.add(store, "reader")
    assert made.as_(again).scope().bases == () and made.as_(again).documents.listing() == []
    assert history.history(store, "reader", made.as_(again).scope()) == [] and threads.listing(store, "reader") == []
    with pytest.raises(Missing):
        made.as_(again).questions.run(run)
    with pytest.raises(Missing):
        threads.named(store, thread.id, "reader")
    (former,) = members.former_names(store, "reader")
    assert [base.name for base in made.as_(Principal(former)).scope().bases] == ["own"]
    with pytest.raises(UserError, match="cannot be the name"):
        members.add(store, former)


async def test_who_left_can_still_be_erased_by_the_name_they_had(made: World):
    store = made.workspace.store
    await asked(made.as_(READER))
    members.remove_member(store, made.workspace.context.cache, "reader")
    await made.workspace.records.erase_person("reader", with_documents=True)
    assert members.former_names(store, "reader") == []
    log = [event for _, event in records.workspace_log(store)]
    assert not any(isinstance(event, AccountChanged) and "reader" in f"{event.name} {event.detail}" for event in log)
    assert any(isinstance(event, Withheld) for event in log)
    assert verify(store, None).whole


def test_wrong_passwords_from_elsewhere_keep_nobody_from_signing_in():
    tries = PasswordAttempts(lambda: 0.0)
    for _ in range(3 * FREE_ATTEMPTS["name"]):
        with suppress(HTTPException):
            tries.begin("reader", "203.0.113.9")
    with pytest.raises(HTTPException):
        tries.begin("reader", "203.0.113.9")
    tries.begin("reader", "10.0.0.1")
