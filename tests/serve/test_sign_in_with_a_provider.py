"""Signing in with an OpenID provider: the way there and back with one from PyPI, and what a hostile one, or somebody between,
cannot bring about."""

from __future__ import annotations

import hmac
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from joserfc.jwk import RSAKey
from oidc_provider_mock import User, run_server_in_thread
from provider import CLIENT, SECRET, Claims, StrictProvider, strict_provider
from serving import served
from team import PASSWORD, Team, team

from assay.core.errors import UserError
from assay.core.settings import Settings
from assay.serve.oidc import DENIED, NOT_THROUGH, groups_of, provider_of
from assay.serve.routes.sign_in import TOO_LATE
from assay.serve.state import ServeOptions
from assay.store.access import grants, identities, members, offers
from assay.store.runs.records import workspace_log
from assay.store.schema import sign_ins

SET = {"oidc_client_id": CLIENT, "oidc_client_secret": SECRET, "oidc_name": "Guildhall"}


@pytest.fixture
def guild() -> Iterator[StrictProvider]:
    with strict_provider() as made:
        yield made


@pytest.fixture
def desk(folder: Path, guild: StrictProvider) -> Iterator[Team]:
    with team(folder, oidc_issuer=guild.url, **SET) as made:
        sets(made)
        yield made


def sets(desk: Team, **changed: Any) -> None:
    server = desk.at.server
    server.workspace = server.workspace.with_settings(oidc_address=desk.at.url, **changed)


def begins(browser: httpx.Client, path: str = "/api/session/provider") -> str:
    begun = browser.post(path)
    assert begun.status_code == 200, begun.text
    return begun.json()["address"]


def comes_back(browser: httpx.Client, answer: dict[str, str]) -> str:
    """The browser is back: where it is led, and which problem the page then says."""
    back = browser.get("/api/session/provider", params=answer)
    assert back.status_code == 303, back.text
    assert back.headers["Location"] in {"/", "/#/keys"}
    return browser.get("/api/session").json()["problem"]


def signs_in(browser: httpx.Client, guild: StrictProvider) -> str:
    return comes_back(browser, guild.agrees(begins(browser)))


def name_in(browser: httpx.Client) -> str:
    me = browser.get("/api/me")
    return me.json()["name"] if me.status_code == 200 else ""


# --- with a provider from PyPI --------------------------------------------------------------------------------------


def test_somebody_signs_in_with_a_provider_and_out_again(folder: Path):
    known = User(sub="s-77", claims={"preferred_username": "iris", "groups": ["keepers", "others"]})
    with run_server_in_thread(user_claims=[known]) as server:
        issuer = f"http://localhost:{server.server_port}"
        groups = {"oidc_groups_claim": "groups", "oidc_groups": "keepers=desk, press"}
        with team(
            folder, oidc_issuer=issuer, oidc_new_people=True, **SET | {"oidc_client_id": "assay"} | groups
        ) as desk:
            sets(desk)
            with desk.at.client() as browser:
                ways = browser.get("/api/session").json()
                assert ways == {"passwords": True, "provider": "Guildhall", "problem": ""}
                agreed = httpx.post(begins(browser), data={"sub": "s-77"})
                back = browser.get(agreed.headers["Location"])
                assert (back.status_code, back.headers["Location"]) == (303, "/")
                me = browser.get("/api/me").json()
                assert (me["name"], me["groups"], me["admin"], me["auth"]) == ("iris", ["desk"], False, "keys")
                browser.headers["X-CSRF-Token"] = me["csrf"]
                assert browser.delete("/api/session").status_code == 204 and name_in(browser) == ""
                out = browser.get("/api/session/provider/end")
                assert out.status_code == 303 and out.headers["Location"].startswith(f"{issuer}/oauth2/end_session?")
                denied = httpx.post(begins(browser), data={"action": "deny"})
                assert browser.get(denied.headers["Location"]).status_code == 303
                assert browser.get("/api/session").json()["problem"] == NOT_THROUGH


# --- who it is ------------------------------------------------------------------------------------------------------


def test_an_account_with_the_same_name_is_not_given_to_whom_the_provider_calls_so(desk: Team, guild: StrictProvider):
    for newcomers in (False, True):
        sets(desk, oidc_new_people=newcomers)
        guild.claims = {"sub": "s-9", "preferred_username": "editor", "email": "editor@example.org"}
        with desk.at.client() as browser:
            problem = signs_in(browser, guild)
            assert name_in(browser) == "" and "assay_session" not in browser.cookies
            assert "link Guildhall to your account" in problem and problem.endswith("s-9")
            assert browser.get("/api/session").json()["problem"] == "", "it is said once"
    assert {each.name for each in members.listing(desk.at.server.workspace.store)} == {"editor", "reader"}


@pytest.mark.parametrize("owns", ["a base", "a grant", "an offer that was declined"])
def test_a_name_that_owns_or_may_read_something_is_nobodys_to_take(desk: Team, guild: StrictProvider, owns: str):
    """Behind a proxy people are named who are no members: what is theirs does not go to a namesake."""
    opened, store = desk.at.server.workspace, desk.at.server.workspace.store
    base = grants.every_base(store)[0]
    if owns == "a base":
        members.transfer_ownership(store, opened.context.cache, "editor", "iris")
    elif owns == "a grant":
        grants.share(store, base, "user:iris")
    else:
        with store.write() as connection:
            offers.record(connection, base.id, "user:iris", False)
    sets(desk, oidc_new_people=True)
    with desk.at.client() as browser:
        assert "The name iris is taken here" in signs_in(browser, guild)
    assert members.named(store, "iris") is None


@pytest.mark.parametrize(
    ("claims", "claim", "name"),
    [
        ({"preferred_username": "iris"}, "preferred_username", "iris"),
        ({"email": "iris@example.org"}, "email", ""),
        ({"email": "iris@example.org", "email_verified": "true"}, "email", ""),
        ({"email": "iris@example.org", "email_verified": True}, "email", "iris@example.org"),
        ({"preferred_username": "local"}, "preferred_username", ""),
        ({"preferred_username": "user:editor"}, "preferred_username", ""),
        ({"preferred_username": ["editor"]}, "preferred_username", ""),
        ({}, "preferred_username", ""),
    ],
)
def test_a_new_account_has_the_name_that_the_provider_vouches_for(
    desk: Team, guild: StrictProvider, claims: Claims, claim: str, name: str
):
    sets(desk, oidc_new_people=True, oidc_name_claim=claim)
    guild.claims = {"sub": "s-1"} | claims
    with desk.at.client() as browser:
        problem = signs_in(browser, guild)
        assert name_in(browser) == name and bool(problem) is not bool(name)


def test_a_person_is_known_by_the_subject_whatever_else_changes(desk: Team, guild: StrictProvider):
    sets(desk, oidc_new_people=True)
    with desk.at.client() as browser:
        assert signs_in(browser, guild) == "" and name_in(browser) == "iris"
    guild.claims = {"sub": "s-1", "preferred_username": "reader"}
    with desk.at.client() as browser:
        assert signs_in(browser, guild) == "" and name_in(browser) == "iris"
    guild.claims = {"sub": "s-2", "preferred_username": "iris"}
    with desk.at.client() as browser:
        assert "The name iris is taken here" in signs_in(browser, guild)


def test_groups_are_those_that_the_provider_says_at_each_sign_in_and_others_stay(desk: Team, guild: StrictProvider):
    store = desk.at.server.workspace.store
    identities.link(store, "reader", guild.url, "s-1")
    members.set_groups(store, "reader", ["night", "desk"])
    sets(desk, oidc_groups_claim="roles", oidc_groups="7f3a=board, desk")
    for said, groups in (
        (["7f3a", "board", "wheel"], ["board", "night"]),
        ("desk", ["desk", "night"]),
        (None, ["night"]),
    ):
        guild.claims = {"sub": "s-1", "roles": said}
        with desk.at.client() as browser:
            assert signs_in(browser, guild) == "" and browser.get("/api/me").json()["groups"] == groups
    changed = [each for _, each in workspace_log(store) if getattr(each, "change", "") == "groups"]
    assert changed[-1].by == guild.url, "the record says who took the group away"


def test_what_the_token_leaves_out_is_asked_for_and_another_persons_is_not_taken(desk: Team, guild: StrictProvider):
    sets(desk, oidc_new_people=True, oidc_groups_claim="groups", oidc_groups="desk")
    guild.claims = {"sub": "s-1", "preferred_username": "iris"}
    guild.userinfo = {"sub": "s-2", "groups": ["desk"]}
    with desk.at.client() as browser:
        assert signs_in(browser, guild) == "" and browser.get("/api/me").json()["groups"] == []
    guild.userinfo = {"sub": "s-1", "groups": ["desk"], "preferred_username": "editor"}
    with desk.at.client() as browser:
        assert signs_in(browser, guild) == "" and browser.get("/api/me").json()["groups"] == ["desk"]


# --- linking --------------------------------------------------------------------------------------------------------


def test_who_is_signed_in_links_a_sign_in_and_unlinks_it(desk: Team, guild: StrictProvider):
    with desk.signed_in("reader") as browser:
        assert browser.get("/api/me").json()["provider"] == "Guildhall"
        back = browser.get("/api/session/provider", params=guild.agrees(begins(browser, "/api/identities")))
        assert back.headers["Location"] == "/#/keys"
        (own,) = browser.get("/api/identities").json()
        assert (own["issuer"], own["subject"]) == (guild.url, "s-1")
        with desk.at.client() as other:
            assert signs_in(other, guild) == "" and name_in(other) == "reader"
            assert browser.delete(f"/api/identities/{own['id']}").status_code == 204
            assert name_in(other) == name_in(browser) == "", "whoever came in by it is out"
            assert "No account here" in signs_in(other, guild)


def test_only_the_person_and_administrators_link_and_nobody_links_what_is_anothers(desk: Team, guild: StrictProvider):
    store = desk.at.server.workspace.store
    with desk.as_("editor") as program:
        assert program.post("/api/identities").status_code == 400, "not with a key: linking begins in a browser"
        sent = {"json": {"subject": "s-1"}}
        assert program.post("/api/people/reader/identities", **sent).status_code == 404
        assert program.get("/api/people/reader/identities").status_code == 404
        members.set_admin(store, "editor", True)
        (linked,) = program.post("/api/people/reader/identities", **sent).json()
        taken = program.post("/api/people/editor/identities", **sent)
        assert (taken.status_code, taken.json()["detail"]) == (
            400,
            "That sign-in belongs to another account. Unlink it there first.",
        )
        with desk.signed_in("editor") as browser:
            assert "belongs to another account" in comes_back(browser, guild.agrees(begins(browser, "/api/identities")))
            assert browser.delete(f"/api/identities/{linked['id']}").status_code == 404
        with desk.at.client() as browser:
            assert signs_in(browser, guild) == "" and name_in(browser) == "reader"
        assert program.delete(f"/api/people/reader/identities/{linked['id']}").status_code == 204
    said = [(each.name, each.change, each.by, each.detail) for _, each in workspace_log(store)
            if getattr(each, "change", "").startswith("sign-in")]  # fmt: skip
    assert said == [
        ("user:reader", "sign-in linked", "editor", f"s-1 of {guild.url}"),
        ("user:reader", "sign-in unlinked", "editor", f"s-1 of {guild.url}"),
    ]


def test_a_link_that_was_begun_as_one_person_is_not_made_as_another(desk: Team, guild: StrictProvider):
    with desk.signed_in("reader") as browser:
        answer = guild.agrees(begins(browser, "/api/identities"))
        me = browser.post("/api/session", json={"name": "editor", "password": PASSWORD})
        assert me.status_code == 200
        assert "not signed in any more" in comes_back(browser, answer)
    assert identities.listing(desk.at.server.workspace.store) == []


def test_a_new_password_ends_linked_sign_ins_too(desk: Team, guild: StrictProvider):
    store = desk.at.server.workspace.store
    identities.link(store, "reader", guild.url, "s-1")
    members.set_password(store, "reader", "another lamp on the pier")
    assert identities.listing(store) == []


def test_a_person_who_is_removed_signs_in_no_more(desk: Team, guild: StrictProvider):
    workspace = desk.at.server.workspace
    identities.link(workspace.store, "reader", guild.url, "s-1")
    members.remove_member(workspace.store, workspace.context.cache, "reader")
    with desk.at.client() as browser:
        assert "No account here" in signs_in(browser, guild) and name_in(browser) == ""


# --- between here and there -----------------------------------------------------------------------------------------


def test_an_answer_counts_once_and_in_the_browser_that_set_out_alone(desk: Team, guild: StrictProvider):
    identities.link(desk.at.server.workspace.store, "reader", guild.url, "s-1")
    with desk.at.client() as browser, desk.at.client() as victim:
        answer = guild.agrees(begins(browser))
        assert comes_back(victim, answer) == TOO_LATE, "nobody is signed in as somebody else by a link"
        begins(victim)
        assert comes_back(victim, answer) == TOO_LATE
        token = browser.cookies["assay_sign_in"]
        assert comes_back(browser, answer) == "" and name_in(browser) == "reader"
        for again in (answer, {"code": answer["code"]}, answer | {"state": ""}):
            browser.cookies.set("assay_sign_in", token, domain="127.0.0.1", path="/api/session")
            assert comes_back(browser, again) == TOO_LATE


def test_a_sign_in_that_takes_too_long_is_over_and_leaves_nothing(desk: Team, guild: StrictProvider):
    store = desk.at.server.workspace.store
    with desk.at.client() as browser:
        answer = guild.agrees(begins(browser))
        store.execute(sign_ins.update().values(expires="2020-01-01T00:00:00.000Z"))
        assert comes_back(browser, answer) == TOO_LATE
    assert store.rows(sign_ins.select()) == []


def test_a_sign_in_sends_people_nowhere_but_to_the_page(desk: Team, guild: StrictProvider):
    identities.link(desk.at.server.workspace.store, "reader", guild.url, "s-1")
    with desk.at.client() as browser:
        address = begins(browser)
        assert httpx.URL(address).params["redirect_uri"] == f"{desk.at.url}/api/session/provider"
        elsewhere = {"next": "https://evil.example/", "redirect_uri": "https://evil.example/", "to": "//evil.example"}
        assert comes_back(browser, guild.agrees(address) | elsewhere) == ""


def test_a_sign_in_begins_on_the_page_of_this_server_alone(desk: Team, guild: StrictProvider):
    with desk.at.client() as browser:
        for header in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            assert browser.post("/api/session/provider", headers=header).status_code == 403
        desk.at.server.workspace = desk.at.server.workspace.with_settings(oidc_address="https://desk.example.org")
        refused = browser.post("/api/session/provider", headers={"Origin": desk.at.url})
        assert refused.status_code == 400 and "Open https://desk.example.org/ for that" in refused.json()["detail"]


def test_the_cookie_of_a_sign_in_is_out_of_reach_and_goes_nowhere_else(desk: Team, guild: StrictProvider):
    desk.at.server.workspace = desk.at.server.workspace.with_settings(oidc_address="https://desk.example.org")
    with desk.at.client() as browser:
        cookie = browser.post("/api/session/provider").headers["Set-Cookie"].lower()
    for each in ("httponly", "samesite=lax", "path=/api/session", "; secure", "max-age=600"):
        assert each in cookie, each


def test_another_providers_answer_is_not_taken(desk: Team, guild: StrictProvider):
    identities.link(desk.at.server.workspace.store, "reader", guild.url, "s-1")
    with desk.at.client() as browser:
        answer = guild.agrees(begins(browser)) | {"iss": "https://other.example"}
        assert comes_back(browser, answer) == "That answer does not come from Guildhall. Begin again."
        assert "/token" not in guild.asked, "the code is not sent anywhere"
        assert comes_back(browser, guild.agrees(begins(browser)) | {"iss": guild.url}) == ""


def test_a_refusal_of_the_provider_is_said_and_none_of_its_words(desk: Team, guild: StrictProvider, caplog: Any):
    with desk.at.client() as browser:
        for error, said in ((DENIED, NOT_THROUGH), ("call 555\nnow", "Guildhall refused. The server's log says why;")):
            answer = guild.agrees(begins(browser)) | {"error": error, "error_description": "call 555 now"}
            problem = comes_back(browser, answer)
            assert problem.startswith(said) and "555" not in problem
    assert "'call 555\\nnow'" in caplog.text


def test_a_provider_that_signs_its_answers_is_held_to_it(desk: Team, guild: StrictProvider):
    guild.about = {"authorization_response_iss_parameter_supported": True}
    with desk.at.client() as browser:
        assert signs_in(browser, guild) == "That answer does not come from Guildhall. Begin again."


# --- what it says ---------------------------------------------------------------------------------------------------

NOW = int(time.time())


def by_a_public_key(own: StrictProvider, claims: Claims) -> str:
    return by_hand({"alg": "HS256", "kid": "one"}, claims, own.key.as_pem(private=False))


def unsigned(own: StrictProvider, claims: Claims) -> str:
    return by_hand({"alg": "none"}, claims).rpartition(".")[0] + "."


def by_hand(header: dict[str, str], claims: Claims, key: bytes = b"") -> str:
    """What no library makes."""
    parts = [urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=") for each in (header, claims)]
    signature = urlsafe_b64encode(hmac.digest(key, b".".join(parts), "sha256")).rstrip(b"=")
    return b".".join([*parts, signature]).decode()


FORGED: dict[str, Callable[[StrictProvider, Claims], str]] = {
    "another nonce": lambda own, claims: own.signed(claims | {"nonce": "other"}),
    "no nonce": lambda own, claims: own.signed({name: each for name, each in claims.items() if name != "nonce"}),
    "for somebody else": lambda own, claims: own.signed(claims | {"aud": "other"}),
    "for others too": lambda own, claims: own.signed(claims | {"aud": [CLIENT, "other"], "azp": "other"}),
    "by another issuer": lambda own, claims: own.signed(claims | {"iss": "https://other.example"}),
    "run out": lambda own, claims: own.signed(claims | {"exp": NOW - 3600, "iat": NOW - 7200}),
    "without an end": lambda own, claims: own.signed({name: each for name, each in claims.items() if name != "exp"}),
    "from the future": lambda own, claims: own.signed(claims | {"iat": NOW + 7200, "exp": NOW + 9000}),
    "of nobody": lambda own, claims: own.signed({name: each for name, each in claims.items() if name != "sub"}),
    "of a number": lambda own, claims: own.signed(claims | {"sub": 1}),
    "of an empty name": lambda own, claims: own.signed(claims | {"sub": ""}),
    "of another access token": lambda own, claims: own.signed(claims | {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}),
    "by another key": lambda own, claims: own.signed(claims, RSAKey.generate_key(2048)),
    "by the public key": by_a_public_key,
    "unsigned": unsigned,
    "no token": lambda own, claims: "",
    "not a token": lambda own, claims: "a.b.c",
}


@pytest.mark.parametrize("forged", FORGED)
def test_a_token_that_does_not_hold_signs_nobody_in(desk: Team, guild: StrictProvider, forged: str):
    sets(desk, oidc_new_people=True)
    guild.sign = FORGED[forged]
    guild.about = {"id_token_signing_alg_values_supported": ["none", "HS256", "RS256"]}
    with desk.at.client() as browser:
        assert signs_in(browser, guild).startswith(("What Guildhall said of you", "That is no subject"))
        assert name_in(browser) == "" and "assay_session" not in browser.cookies
    assert members.named(desk.at.server.workspace.store, "iris") is None


def test_a_provider_may_sign_with_a_new_key(desk: Team, guild: StrictProvider):
    sets(desk, oidc_new_people=True)
    for kid in ("one", "two", "two"):
        guild.key = RSAKey.generate_key(2048, {"kid": kid})
        guild.sign = lambda own, claims, kid=kid: own.signed(claims, kid=kid)
        with desk.at.client() as browser:
            assert signs_in(browser, guild) == "" and name_in(browser) == "iris"


@pytest.mark.parametrize(
    "about",
    [
        {"issuer": "https://other.example"},
        {"token_endpoint": "http://other.example/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"jwks_uri": None},
    ],
)
def test_a_provider_that_names_unsafe_places_is_not_used(desk: Team, guild: StrictProvider, about: Claims):
    guild.about = about
    with desk.at.client() as browser:
        begun = browser.post("/api/session/provider")
        said = begun.json()["detail"] if begun.status_code == 504 else ""
        assert "Guildhall cannot be used. Sign in with your password" in (
            said or comes_back(browser, guild.agrees(begun.json()["address"]))
        )


def test_a_provider_that_leads_elsewhere_is_not_followed(desk: Team, guild: StrictProvider):
    with desk.at.client() as browser:
        answer = guild.agrees(begins(browser))
        own = guild.reply
        guild.reply = lambda method, path, body, headers: (
            (307, {"to": f"{guild.url}/elsewhere"}) if path == "/token" else own(method, path, body, headers)
        )
        assert "cannot be used" in comes_back(browser, answer)
        assert "/elsewhere" not in guild.asked


# --- when it is not there -------------------------------------------------------------------------------------------


def test_while_the_provider_is_down_passwords_go_on_working(desk: Team, guild: StrictProvider):
    guild.broken = 503
    with desk.at.client() as browser:
        refused = browser.post("/api/session/provider")
        assert (refused.status_code, refused.json()) == (
            504,
            {
                "error": "provider",
                "detail": "Guildhall cannot be reached now. Sign in with your password, or try again in a moment.",
            },
        )
        asked = len(guild.asked)
        assert browser.post("/api/session/provider").status_code == 504
        assert len(guild.asked) == asked, "it is left alone for a moment"
        assert browser.get("/api/session/provider/end").headers["Location"] == "/"
    with desk.signed_in("reader") as browser:
        assert name_in(browser) == "reader"


def test_a_provider_that_goes_down_on_the_way_is_said(desk: Team, guild: StrictProvider):
    with desk.at.client() as browser:
        answer = guild.agrees(begins(browser))
        guild.broken = 502
        assert "cannot be reached now" in comes_back(browser, answer)


def test_a_wrong_secret_is_the_operators_to_mend_and_is_not_shown(desk: Team, guild: StrictProvider, caplog: Any):
    sets(desk, oidc_client_secret="the wrong secret")
    with desk.at.client() as browser:
        assert "the server's log says what to mend" in signs_in(browser, guild)
    assert "401 'invalid_client'" in caplog.text and "the wrong secret" not in caplog.text


# --- how it is set --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"oidc_client_id": ""}, "but not `oidc_client_id`"),
        ({"oidc_address": ""}, "but not `oidc_address`"),
        ({"oidc_issuer": "http://id.example.org"}, "`oidc_issuer` must be an https address"),
        ({"oidc_issuer": "https://user@id.example.org"}, "`oidc_issuer` must be an https address"),
        ({"oidc_address": "desk.example.org"}, "`oidc_address` must be an https address"),
        ({"oidc_groups_claim": "groups"}, "set both, or neither"),
        ({"oidc_groups": "desk"}, "set both, or neither"),
        ({"oidc_client_secret": "file:/no/such/file"}, "/no/such/file cannot be read"),
    ],
)
def test_settings_that_do_not_go_together_are_said(changed: dict[str, str], words: str):
    whole = {
        "oidc_issuer": "https://id.example.org",
        "oidc_client_id": "a",
        "oidc_address": "https://desk.example.org/",
    }
    provider = provider_of(Settings(**whole))
    assert provider and (provider.name, provider.redirect) == (
        "id.example.org",
        "https://desk.example.org/api/session/provider",
    )
    with pytest.raises(UserError, match=words):
        provider_of(Settings(**whole | changed))


def test_the_secret_comes_from_a_file_and_is_in_no_repr(tmp_path: Path):
    (tmp_path / "secret").write_text("whispered\n")
    issuer = {
        "oidc_issuer": "https://id.example.org",
        "oidc_client_id": "a",
        "oidc_address": "https://desk.example.org",
    }
    provider = provider_of(Settings(**issuer, oidc_client_secret=f"file:{tmp_path / 'secret'}"))
    assert provider and provider.secret == "whispered" and "whispered" not in repr(provider)


def test_groups_there_are_groups_here():
    settings = Settings(oidc_groups="desk, 7f3a = board,,cn=night=press")
    assert groups_of(settings) == {"desk": "desk", "7f3a": "board", "cn=night": "press"}


def test_without_a_provider_there_is_none(folder: Path):
    with team(folder) as plain, plain.at.client() as browser:
        assert browser.get("/api/session").json() == {"passwords": True, "provider": "", "problem": ""}
        assert browser.post("/api/session/provider").status_code == 404
        assert browser.get("/api/session/provider").status_code == 404
    behind = ServeOptions(auth="header", user_header="X-User", proxies=("127.0.0.1",))
    with served(folder, serving=behind, oidc_issuer="https://id.example.org") as at:
        with at.client() as stranger:
            assert stranger.post("/api/session/provider").status_code == 401
        with at.client(**{"X-User": "iris"}) as browser:
            assert browser.get("/api/session").json() == {"passwords": False, "provider": "", "problem": ""}
            assert browser.post("/api/session/provider").status_code == 404
