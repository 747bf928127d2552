"""Who is let in: keys, sessions, the header of a proxy, and guessing."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest
from serving import served
from team import PASSWORD, Team, team

from assay.core.access import LOCAL, Principal
from assay.core.errors import Missing
from assay.serve.limits import FREE_ATTEMPTS, PasswordAttempts
from assay.serve.state import ServeOptions
from assay.store import facts
from assay.store.access import grants, members, tokens
from assay.workspace.facade import Workspace

SIGN_IN = {"name": "reader", "password": PASSWORD}


def remove(workspace: Workspace, name: str) -> None:
    members.remove_member(workspace.store, workspace.context.cache, name)


@pytest.fixture
def tool_context(folder: Path):
    with team(folder) as made:
        yield made


# --- one person on a laptop -----------------------------------------------------------------------------------------


def test_on_a_laptop_there_is_one_person_who_need_not_sign_in(serve):
    with serve() as at, at.client() as client:
        me = client.get("/api/me").json()
        assert (me["name"], me["admin"], me["auth"], me["csrf"]) == ("local", True, "off", "")
        assert me["modes"] == ["quick", "balanced", "thorough"] and me["model"] == ""
        assert client.post("/api/session", json=SIGN_IN).status_code == 400


def test_a_person_is_told_where_words_would_go_until_somebody_has_agreed(folder: Path):
    with served(folder, llm_base_url="https://models.example/v1", llm_model="m") as at, at.client() as client:
        assert client.get("/api/me").json()["leaves"] == ["models.example"]
        facts.agree(at.server.workspace.store, "models.example")
        me = client.get("/api/me").json()
        assert (me["leaves"], me["model"]) == ([], "m")


# --- keys -----------------------------------------------------------------------------------------------------------


def test_a_key_lets_its_owner_in(tool_context: Team):
    with tool_context.as_("reader") as client:
        me = client.get("/api/me").json()
        assert (me["name"], me["admin"], me["auth"], me["csrf"]) == ("reader", False, "keys", "")


@pytest.mark.long
@pytest.mark.parametrize(
    "given",
    ["", "Bearer", "Bearer assay_" + "A" * 43, "Bearer x y", "Basic cmVhZGVyOnB3", "assay_x"],
)
def test_without_a_right_key_nothing_is_told(tool_context: Team, given: str):
    with tool_context.at.client(Authorization=given) as client:
        for path in ("/api/me", "/api/bases", "/v1/models", "/mcp", "/api/no/such/route", "/docs"):
            reply = client.get(path)
            assert reply.status_code == 401, path
            assert reply.headers["WWW-Authenticate"].startswith("Bearer")
            error = reply.json()["error"]
            assert set(reply.json()) <= {"error", "detail"}
            assert (error["type"] == "authentication_error") if path == "/v1/models" else (error == "sign-in")


def test_a_key_that_is_taken_back_between_two_requests_opens_nothing_at_the_second(tool_context: Team):
    store = tool_context.at.server.workspace.store
    with tool_context.as_("reader") as client:
        assert client.get("/api/bases").status_code == 200
        tokens.revoke(store, tokens.listing(store, "reader")[0].id)
        assert client.get("/api/bases").status_code == 401


def test_a_member_who_is_removed_is_out_at_the_next_request(tool_context: Team):
    with tool_context.as_("reader") as client, tool_context.signed_in("reader") as browser:
        assert client.get("/api/me").status_code == browser.get("/api/me").status_code == 200
        remove(tool_context.at.server.workspace, "reader")
        assert client.get("/api/me").status_code == browser.get("/api/me").status_code == 401


def test_what_everybody_may_see_needs_no_key(tool_context: Team):
    with tool_context.at.client() as client:
        for path in ("/health", "/", "/static/app.js", "/openapi.json"):
            assert client.get(path).status_code == 200, path


# --- sessions -------------------------------------------------------------------------------------------------------


def test_who_signs_in_is_in_until_they_sign_out(tool_context: Team):
    with tool_context.signed_in("reader") as browser:
        assert browser.get("/api/me").json()["name"] == "reader"
        token = browser.cookies["assay_session"]
        assert browser.delete("/api/session").status_code == 204
        assert "assay_session" not in browser.cookies
        assert browser.get("/api/me", headers={"Cookie": f"assay_session={token}"}).status_code == 401


def test_a_sessions_cookie_is_out_of_reach_of_scripts_and_of_other_sites(tool_context: Team):
    with tool_context.at.client() as client:
        cookie = client.post("/api/session", json=SIGN_IN).headers["Set-Cookie"].lower()
    assert "httponly" in cookie and "samesite=lax" in cookie and "path=/" in cookie and "; secure" not in cookie


def test_a_cookie_is_kept_to_https_where_that_is_spoken(folder: Path):
    with (
        team(folder, serving=ServeOptions(auth="keys", secure=True)) as tool_context,
        tool_context.at.client() as client,
    ):
        assert "; secure" in client.post("/api/session", json=SIGN_IN).headers["Set-Cookie"].lower()


def test_a_change_with_a_cookie_needs_the_token_that_only_the_page_has(tool_context: Team):
    with tool_context.signed_in("reader") as browser:
        for wrong in ("", "guess"):
            reply = browser.post("/api/bases", json={"name": "notes"}, headers={"X-CSRF-Token": wrong})
            assert (reply.status_code, reply.json()["error"]) == (403, "forbidden")
        assert browser.get("/api/bases").json() == []
        assert browser.post("/api/bases", json={"name": "notes"}).status_code == 201


def test_the_token_of_one_session_is_no_good_in_another(tool_context: Team):
    with tool_context.signed_in("reader") as browser, tool_context.signed_in("editor") as other:
        stolen = other.headers["X-CSRF-Token"]
        assert browser.post("/api/bases", json={"name": "notes"}, headers={"X-CSRF-Token": stolen}).status_code == 403


def test_a_session_that_has_run_out_is_over(folder: Path):
    with team(folder, serve_session_hours=1 / 3600) as tool_context, tool_context.signed_in("reader") as browser:
        token = browser.cookies["assay_session"]
        time.sleep(1.1)
        assert browser.get("/api/me", headers={"Cookie": f"assay_session={token}"}).status_code == 401


def test_a_wrong_password_and_a_wrong_name_look_the_same(tool_context: Team):
    with tool_context.at.client() as client:
        replies = [
            client.post("/api/session", json={"name": name, "password": "wrong password"})
            for name in ("reader", "nobody")
        ]
    assert [reply.status_code for reply in replies] == [401, 401]
    assert replies[0].content == replies[1].content and "Set-Cookie" not in replies[0].headers


# --- guessing -------------------------------------------------------------------------------------------------------


def stop_the_clock(team: Team) -> None:
    """No wait ends during the test, however slow the machine."""
    team.at.server.limits.tries = PasswordAttempts(lambda: 0.0)


def test_guessing_is_slowed_until_it_is_useless_and_is_told_when_to_come_back(tool_context: Team):
    stop_the_clock(tool_context)
    with tool_context.at.client() as client:
        wrong = {"name": "reader", "password": "wrong password"}
        seen = [client.post("/api/session", json=wrong).status_code for _ in range(FREE_ATTEMPTS["name"] + 1)]
        assert seen == [401] * FREE_ATTEMPTS["name"] + [429]
        right = client.post("/api/session", json=SIGN_IN)
        assert right.status_code == 429 and int(right.headers["Retry-After"]) >= 1
        assert right.json()["error"] == "too-many"
        assert client.post("/api/session", json={"name": "editor", "password": PASSWORD}).status_code == 200
    with tool_context.as_("reader") as own:
        assert own.get("/api/me").status_code == 200, "who has a key is not shut out by somebody who guesses"


def test_behind_a_proxy_that_is_named_people_have_addresses_of_their_own(folder: Path):
    with (
        team(folder, serving=ServeOptions(auth="keys", proxies=("127.0.0.1",))) as behind,
        behind.at.client() as client,
    ):
        stop_the_clock(behind)
        wrong = [
            client.post(
                "/api/session", json={"name": f"n{n}", "password": "w"}, headers={"X-Forwarded-For": "203.0.113.9"}
            )
            for n in range(FREE_ATTEMPTS["address"] + 1)
        ]
        assert wrong[-1].status_code == 429
        assert client.post("/api/session", json=SIGN_IN, headers={"X-Forwarded-For": "198.51.100.7"}).status_code == 200


def test_a_proxy_that_is_not_named_is_remarked_on_once(tool_context: Team, caplog: pytest.LogCaptureFixture):
    with tool_context.at.client() as client:
        assert client.post("/api/session", json=SIGN_IN).status_code == 200 and not caplog.text
        for _ in range(2):
            client.post("/api/session", json=SIGN_IN, headers={"X-Forwarded-For": "203.0.113.9"})
    assert caplog.text.count("start with --trust-proxy 127.0.0.1") == 1


def test_many_guesses_at_once_are_no_way_around(tool_context: Team):
    from concurrent.futures import ThreadPoolExecutor

    def guess(n: int) -> int:
        return httpx.post(
            tool_context.at.url + "/api/session", json={"name": "reader", "password": f"guess {n}"}
        ).status_code

    stop_the_clock(tool_context)
    with ThreadPoolExecutor(16) as pool:
        seen = list(pool.map(guess, range(16)))
    assert seen.count(401) == FREE_ATTEMPTS["name"] and set(seen) == {401, 429}


def test_a_wait_doubles_up_to_a_minute_and_wrong_tries_are_forgotten():
    now = [0.0]
    tries, waits = PasswordAttempts(lambda: now[0]), []
    for _ in range(14):
        before = now[0]
        while True:
            try:
                tries.begin("reader", "10.0.0.9")
                break
            except Exception:
                now[0] += 0.5
        waits.append(now[0] - before)
    assert waits[: FREE_ATTEMPTS["name"]] == [0.0] * FREE_ATTEMPTS["name"]
    assert waits[-1] == 60.0 and waits == sorted(waits)
    now[0] += 1000
    tries.begin("reader", "10.0.0.9")
    tries.begin("reader", "10.0.0.9")


def test_a_right_password_of_ones_own_is_no_way_to_go_on_guessing():
    tries, refused = PasswordAttempts(lambda: 0.0), 0
    for n in range(100):
        try:
            tries.begin(f"victim {n}", "10.0.0.9")
        except Exception:
            refused += 1
        try:
            tries.begin("attacker", "10.0.0.9")
            tries.right("attacker", "10.0.0.9")
        except Exception:
            refused += 1
    assert refused > 100


def test_what_is_kept_in_mind_of_guesses_does_not_grow_without_end():
    tries = PasswordAttempts(lambda: 0.0, most=50)
    for n in range(500):
        tries.begin(f"name {n}", f"10.0.{n // 250}.{n % 250}")
    assert len(tries) <= 50


# --- the header of a proxy ------------------------------------------------------------------------------------------

BEHIND = ServeOptions(auth="header", user_header="X-User", groups_header="X-Groups", proxies=("127.0.0.0/8",))


def test_a_proxy_names_the_person_and_their_groups(folder: Path):
    with served(folder, serving=BEHIND) as at, at.client() as client:
        me = client.get("/api/me", headers={"X-User": "re\u00e4der".encode(), "X-Groups": "desk, night,,a:b"}).json()
        assert (me["name"], me["groups"], me["admin"]) == ("re\u00e4der", ["desk", "night"], False)


def test_a_header_from_a_strangers_address_is_not_believed(folder: Path):
    stranger = ServeOptions(auth="header", user_header="X-User", proxies=("10.0.0.1",))
    with served(folder, serving=stranger) as at, at.client() as client:
        for more in ({}, {"X-Forwarded-For": "10.0.0.1"}, {"Forwarded": "for=10.0.0.1"}, {"X-Real-IP": "10.0.0.1"}):
            assert client.get("/api/me", headers={"X-User": "editor"} | more).status_code == 401


@pytest.mark.long
@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("X-User", "")],
        [("X-User", "a:b")],
        [("X-User", "editor"), ("X-User", "reader")],
        [("X-User", "local")],
        [("X-User", "LOCAL")],
        [("X_User", "editor")],
    ],
)
def test_a_proxy_that_does_not_say_clearly_who_it_is_lets_nobody_in(folder: Path, headers: list[tuple[str, str]]):
    with served(folder, serving=BEHIND) as at, at.client() as client:
        assert client.get("/api/me", headers=headers).status_code == 401


def test_a_cookie_or_a_key_is_no_way_past_the_proxy(folder: Path):
    with team(folder, serving=BEHIND) as tool_context, tool_context.as_("editor") as client:
        assert client.get("/api/me").status_code == 401


def test_behind_a_proxy_a_member_keeps_the_rights_they_were_given(folder: Path):
    with team(
        folder, serving=ServeOptions(auth="header", user_header="X-User", proxies=("127.0.0.1",))
    ) as tool_context:
        store = tool_context.at.server.workspace.store
        members.set_admin(store, "editor", True)
        members.set_groups(store, "editor", ["desk"])
        with tool_context.at.client(**{"X-User": "editor"}) as client:
            me = client.get("/api/me").json()
            assert (me["admin"], me["groups"]) == (True, ["desk"])


# --- as they are now ------------------------------------------------------------------------------------------------


def test_what_is_carried_on_for_somebody_sees_what_they_may_see_now(tool_context: Team):
    server, store = tool_context.at.server, tool_context.at.server.workspace.store
    members.set_groups(store, "reader", ["press"])
    before = Principal("reader", frozenset({"desk", "press"}))
    assert server.current_workspace(before).principal == Principal("reader", frozenset({"press"}))
    remove(server.workspace, "reader")
    with pytest.raises(Missing, match="no user called 'reader' any more"):
        server.current_workspace(before)
    assert server.current_workspace(LOCAL).principal == LOCAL, (
        "whoever asks at a terminal is no member, and was not removed"
    )


def test_behind_a_proxy_that_names_no_groups_those_of_the_workspace_hold_as_they_are_now(folder: Path):
    before = Principal("reader", frozenset({"desk", "press"}))
    with team(
        folder, serving=ServeOptions(auth="header", user_header="X-User", proxies=("127.0.0.1",))
    ) as tool_context:
        members.set_groups(tool_context.at.server.workspace.store, "reader", ["press"])
        assert tool_context.at.server.present(before) == Principal("reader", frozenset({"press"}))
        remove(tool_context.at.server.workspace, "reader")
        assert tool_context.at.server.present(before) == Principal("reader"), (
            "whom the proxy lets in need not be a member"
        )
    with served(folder, serving=BEHIND) as at:
        assert at.server.present(before) == before, "the proxy has said so"


def test_access_that_is_taken_away_is_gone_at_the_next_call(tool_context: Team):
    store = tool_context.at.server.workspace.store
    (base,) = grants.scope_of(store, Principal("editor")).bases
    members.set_groups(store, "reader", ["desk"])
    grants.share(store, base, "group:desk")
    with tool_context.as_("reader") as client:
        (document, *_) = client.get("/api/documents").json()["documents"]
        assert client.get(f"/api/documents/{document['id']}/text").status_code == 200
        assert client.post("/api/search", json={"query": "tower"}).json()["hits"]
        members.set_groups(store, "reader", [])
        assert client.get("/api/documents").json()["documents"] == []
        assert client.get(f"/api/documents/{document['id']}/text").status_code == 404
        assert client.post("/api/search", json={"query": "tower"}).json()["hits"] == []


def test_a_shared_base_is_read_and_not_changed(tool_context: Team):
    store = tool_context.at.server.workspace.store
    (base,) = grants.scope_of(store, Principal("editor")).bases
    grants.share(store, base, "user:reader")
    with tool_context.as_("reader") as client:
        (line,) = client.get("/api/bases").json()
        assert (line["owner"], line["yours"]) == ("editor", False)
        document = client.get("/api/documents").json()["documents"][0]["id"]
        refused = [
            client.patch(f"/api/bases/{line['name']}", json={"description": "mine"}),
            client.delete(f"/api/bases/{line['name']}"),
            client.delete(f"/api/documents/{document}"),
            client.post(f"/api/bases/{line['name']}/documents", files={"files": ("a.txt", b"words")}),
        ]
        assert [reply.status_code for reply in refused] == [400] * 4, [reply.text for reply in refused]
        assert client.get(f"/api/documents/{document}").status_code == 200
