"""Settings in the browser: for administrators, validated like the file, recorded, and never a key or an address."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from serving import Served
from team import team

from assay.core.access import LOCAL
from assay.core.events import SettingChanged
from assay.core.settings import load_settings
from assay.store.access import members
from assay.store.runs import records

Serve = Callable[..., AbstractContextManager[Served]]


def values_of(reply: dict) -> dict[str, object]:
    return {each["name"]: each["value"] for group in reply["groups"] for each in group["settings"]}


def changes(at: Served) -> list[SettingChanged]:
    return [event for _, event in records.workspace_log(at.server.workspace.store) if isinstance(event, SettingChanged)]


def test_a_change_is_written_holds_at_once_and_is_recorded(serve: Serve, folder: Path):
    with serve() as at, at.client() as client:
        wanted = {"retention_days": 365, "review_always": True, "budget_run_money": 0.5, "per_document": 3}
        assert values_of(client.patch("/api/settings", json={"values": wanted}).json()).items() >= wanted.items()
        assert at.server.workspace.settings.review_always
        log = changes(at)
    assert [(each.name, each.before, each.after, each.by) for each in log] == [
        ("retention_days", "200", "365", LOCAL.id),
        ("review_always", "False", "True", LOCAL.id),
        ("budget_run_money", "0.0", "0.5", LOCAL.id),
    ]  # what was not changed is not recorded
    stored = load_settings(folder)
    assert (stored.retention_days, stored.review_always, stored.budget_run_money) == (365, True, 0.5)


@pytest.mark.parametrize(
    "wanted",
    [
        {"retention_days": -1},
        {"retention_days": "soon"},
        {"budget_run_money": "inf"},
        {"eagerness": "wild"},
        {"review_classes": "gardening"},
        {"reviewers": "anna"},
        {"checkpoints": "always"},
        {"reranker": "https://elsewhere.example/rerank"},
        {"llm_api_key": "sk-0123456789"},
        {"own_tools": "os:system"},
        {"audit_key": "/etc/passwd"},
        {"colour": "red"},
    ],
)
def test_a_wrong_value_or_another_setting_changes_nothing(serve: Serve, folder: Path, wanted: dict[str, object]):
    with serve() as at, at.client() as client:
        reply = client.patch("/api/settings", json={"values": {"per_document": 5} | wanted})
        assert reply.status_code == 400 and reply.json()["detail"].count(".")
        assert values_of(client.get("/api/settings").json())["per_document"] == 3
    assert load_settings(folder).per_document == 3


def test_only_an_administrator_sees_and_changes_settings(folder: Path):
    with team(folder) as made:
        with made.as_("reader") as reader:
            assert reader.get("/api/settings").status_code == 404
            assert reader.patch("/api/settings", json={"values": {"per_document": 5}}).status_code == 404
        members.set_admin(made.at.server.workspace.store, "editor", True, "test")
        with made.as_("editor") as editor:
            assert editor.patch("/api/settings", json={"values": {"per_document": 5}}).status_code == 200
        assert changes(made.at) == [SettingChanged("per_document", "3", "5", "editor")]


def test_what_the_environment_or_a_flag_sets_is_shown_and_stays(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ASSAY_RETENTION_DAYS", "400")
    with serve() as at, at.client() as client:
        at.server.workspace = at.server.workspace.with_settings(
            review_four_eyes=True
        )  # as `assay serve --four-eyes` does
        shown = {
            each["name"]: each for group in client.get("/api/settings").json()["groups"] for each in group["settings"]
        }
        assert "ASSAY_RETENTION_DAYS" in shown["retention_days"]["fixed"] and shown["review_four_eyes"]["fixed"]
        for wanted in ({"retention_days": 300}, {"review_four_eyes": False}):
            assert client.patch("/api/settings", json={"values": wanted}).status_code == 400
        assert at.server.workspace.settings.review_four_eyes


def test_a_connected_model_is_recorded_without_its_key(serve: Serve):
    with serve() as at, at.client() as client:
        near = {"address": "http://127.0.0.1:9/v1", "model": "near", "key": "sk-orpiment-0123456789"}
        assert client.put("/api/model", json=near).status_code == 200
        assert client.delete("/api/model").status_code == 200
        found = [(each.name, each.before, each.after) for each in changes(at)]
    assert found == [
        ("llm_base_url", "", "http://127.0.0.1:9/v1"),
        ("llm_model", "", "near"),
        ("llm_api_key", "", "(set)"),
        ("llm_base_url", "http://127.0.0.1:9/v1", ""),
        ("llm_model", "near", ""),
        ("llm_api_key", "(set)", ""),
    ]


def test_no_offered_setting_is_a_secret_or_comes_with_a_password(serve: Serve):
    with serve() as at, at.client() as client:
        at.server.workspace = at.server.workspace.with_settings(reranker="https://me:hunter2hunter2@far.example/rerank")
        reply = client.get("/api/settings")
        assert reply.status_code == 200 and "hunter2" not in reply.text
        assert not {name for name in values_of(reply.json()) if "key" in name or "secret" in name}
