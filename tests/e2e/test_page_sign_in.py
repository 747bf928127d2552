"""Signing in with a provider, in front of the page: there and back, linking, signing out, and when the provider is gone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pytest
from browser_session import Desk, Reader, desk
from oidc_provider_mock import run_server_in_thread
from playwright.sync_api import Page, expect

from assay.serve import oidc
from assay.serve.state import ServeOptions
from assay.store.access import members
from assay.workspace.facade import open_workspace

PASSWORD = "a lamp on the pier"
Reads = Callable[..., Reader]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory, _plain_environment: None) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("sign-in")
    with open_workspace(folder / "workspace", create=True) as opened, patch.object(members, "COST", 2**10):
        for name in ("editor", "reader"):
            members.add(opened.store, name, password=PASSWORD, admin=name == "editor")
    set_up = {"oidc_client_id": "assay", "oidc_client_secret": "ours", "oidc_name": "Guildhall"}
    with desk(folder / "workspace", serving=ServeOptions(auth="keys"), **set_up) as served:
        yield served


def sits(reads: Reads, team: Desk, issuer: str) -> Reader:
    reader = reads(team)
    reader.context.route(re.compile(re.escape(issuer)), lambda route: route.continue_())
    reader.context.route(re.compile("^https://cdn"), lambda route: route.fulfill(body=""))  # the provider's own style
    reader.foresees("401", "favicon")
    return reader


def agrees(page: Page, subject: str, issuer: str) -> None:
    """At the provider, as this subject."""
    page.wait_for_url(re.compile(re.escape(issuer)))
    page.get_by_placeholder("sub").fill(subject)
    page.get_by_role("button", name="Authorize", exact=True).click()


def with_a_password(page: Page, name: str) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.locator(".whoami")).to_contain_text(name)


def sets(team: Desk, server: Any) -> str:
    issuer = f"http://localhost:{server.server_port}"
    served = team.served
    served.workspace = served.workspace.with_settings(oidc_issuer=issuer, oidc_address=team.url)
    return issuer


def test_a_person_links_a_provider_and_signs_in_with_it_and_without_it(team: Desk, reads: Reads):
    with run_server_in_thread() as server:
        issuer = sets(team, server)
        reader = sits(reads, team, issuer)
        page = reader.goes()
        button = page.get_by_role("button", name="Sign in with Guildhall")
        expect(button).to_be_visible()
        reader.accessible("the sign-in page with a provider")
        reader.pictures("sign-in")
        button.press("Enter")
        agrees(page, "s-7", issuer)
        refused = page.get_by_role("alert")
        expect(refused).to_contain_text("No account here belongs to this sign-in")
        expect(refused).to_contain_text("s-7")
        reader.accessible("a sign-in without an account")
        reader.pictures("sign-in-unknown")
        page.reload()
        expect(button).to_be_visible()
        expect(refused).to_be_empty()
        with_a_password(page, "reader")
        page.get_by_role("link", name="Your API keys").click()
        page.get_by_role("button", name="Link Guildhall").click()
        agrees(page, "s-7", issuer)
        linked = page.get_by_role("list", name="Linked sign-ins")
        expect(linked).to_contain_text("s-7")
        reader.accessible("linked sign-ins")
        reader.pictures("linked")
        page.get_by_role("button", name="Sign out").click()
        page.get_by_role("dialog").get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("link", name="Sign out at Guildhall too")).to_be_visible()
        reader.pictures("signed-out")
        button.click()
        agrees(page, "s-7", issuer)
        expect(page.locator(".whoami")).to_contain_text("reader")
        # an administrator links another, and takes the first away
        editor = sits(reads, team, issuer)
        desk = editor.goes()
        with_a_password(desk, "editor")
        desk.goto(f"{team.url}/#/people")
        desk.get_by_role("button", name="Sign-ins of reader").click()
        dialog = desk.get_by_role("dialog")
        expect(dialog.get_by_role("list", name="Linked sign-ins")).to_contain_text("s-7")
        dialog.get_by_label("Subject").fill("s-8")
        dialog.get_by_role("button", name="Link", exact=True).click()
        expect(dialog.get_by_role("listitem")).to_have_count(2)
        editor.accessible("sign-ins of a person")
        editor.pictures("sign-ins-of-a-person")
        dialog.get_by_role("button", name="Unlink s-7").click()
        expect(dialog.get_by_role("listitem")).to_have_count(1)
        page.get_by_role("link", name="Documents").first.click()
        expect(button).to_be_visible()  # the session that began with it has ended
    reader.foresees("504")
    with patch.object(oidc, "KEPT", 0.0):
        button.click()
        expect(refused).to_contain_text("Guildhall cannot be reached now. Sign in with your password")
    reader.pictures("provider-down")
    with_a_password(page, "reader")
