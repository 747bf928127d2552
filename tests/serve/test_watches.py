"""Places that a server watches: allowed by the settings, chosen by an administrator, told to who may read the base."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest
from serving import Served, served, until
from team import PASSWORD, team

from assay.store.access import members
from assay.workspace.facade import open_workspace

Serve = Callable[..., AbstractContextManager[Served]]


@pytest.fixture
def minutes(tmp_path: Path) -> Path:
    folder = tmp_path / "minutes"
    folder.mkdir()
    (folder / "gate.txt").write_text("The gate opens at six.\n")
    return folder


def names(client: httpx.Client) -> set[str]:
    return {each["name"] for each in client.get("/api/documents").json()["documents"] if each["state"] == "ready"}


def only(client: httpx.Client) -> dict[str, object]:
    (found,) = client.get("/api/watches").json()["watches"]
    return found


def test_a_folder_that_is_chosen_is_read_and_followed(serve: Serve, minutes: Path):
    with serve(sources_allowed=str(minutes), watch_grace=5) as at, at.client() as client:
        assert client.get("/api/watches").json() == {"watches": [], "allowed": [str(minutes)]}
        made = client.post("/api/watches", json={"place": str(minutes), "base": "default"})
        assert made.status_code == 201 and made.json()["looked"] == ""
        until(lambda: "gate.txt" in names(client), 60)
        until(lambda: only(client)["changed"])
        assert only(client)["problem"] == "" and only(client)["files"] == 1
        (minutes / "lamp.txt").write_text("The lamp of the gate is red.\n")
        until(lambda: "lamp.txt" in names(client), 30)
        until(lambda: only(client)["files"] == 2)
        (minutes / "gate.txt").unlink()
        until(lambda: "gate.txt" not in names(client), 60)
        assert client.delete(f"/api/watches/{made.json()['id']}").status_code == 204
        (minutes / "late.txt").write_text("Too late.\n")
        assert client.get("/api/watches").json()["watches"] == []
        assert "lamp.txt" in names(client), "what was read stays"


def test_a_watch_goes_on_after_a_restart_and_says_what_is_wrong(serve: Serve, minutes: Path):
    with serve(sources_allowed=str(minutes)) as at, at.client() as client:
        client.post("/api/watches", json={"place": str(minutes), "base": "default"})
        until(lambda: "gate.txt" in names(client), 60)
    minutes.rename(minutes.with_name("elsewhere"))
    with serve(sources_allowed=str(minutes)) as at, at.client() as client:
        until(lambda: "no folder" in str(only(client)["problem"]), 60)
        assert "gate.txt" in names(client), "a folder that is not there takes nothing away"
    with serve(sources_allowed="/somewhere/else") as at, at.client() as client:
        until(lambda: "sources_allowed" in str(only(client)["problem"]), 60)


def test_only_what_the_settings_allow_is_watched(serve: Serve, minutes: Path, tmp_path: Path):
    with serve(sources_allowed=f"{minutes},s3://reports/2025") as at, at.client() as client:
        for place in (
            str(tmp_path), "/etc", f"{minutes}/../other", f"{minutes}er", "s3://reports/2024", "http://127.0.0.1:9/x",
        ):  # fmt: skip
            reply = client.post("/api/watches", json={"place": place, "base": "default"})
            assert reply.status_code == 400 and "sources_allowed" in reply.json()["detail"], reply.text
        link = minutes / "link"
        link.symlink_to("/etc")
        assert client.post("/api/watches", json={"place": str(link), "base": "default"}).status_code == 400


def test_who_is_no_administrator_chooses_nothing_and_sees_what_they_may_read(folder: Path, minutes: Path):
    with team(folder, sources_allowed=str(minutes)) as made, open_workspace(folder) as opened:
        members.add(opened.store, "root", password=PASSWORD, admin=True)
        with made.as_("editor") as editor, made.as_("reader") as reader, made.signed_in("root") as root:
            wanted = {"place": str(minutes), "base": "default"}
            assert editor.post("/api/watches", json=wanted).status_code == 404
            assert editor.get("/api/watches").json() == {"watches": [], "allowed": []}
            mine = root.post("/api/bases", json={"name": "minutes"}).json()
            assert root.post("/api/watches", json={**wanted, "base": "minutes"}).status_code == 201
            assert reader.get("/api/watches").json()["watches"] == []
            root.post(f"/api/bases/{mine['id']}/access", json={"name": "user:reader", "may": True})
            reader.post(f"/api/offers/{mine['id']}", json={"accept": True})
            assert only(reader)["yours"] is False
            assert reader.delete(f"/api/watches/{only(reader)['id']}").status_code == 400
            assert editor.delete(f"/api/watches/{only(reader)['id']}").status_code == 404


def test_two_processes_do_not_read_the_same_place(folder: Path, minutes: Path):
    allowed = {"sources_allowed": str(minutes)}
    with served(folder, process="one 1", shared=True, **allowed) as one, one.client() as client:
        client.post("/api/watches", json={"place": str(minutes), "base": "default"})
        until(lambda: "gate.txt" in names(client), 60)
        with served(folder, process=f"{one.server.watcher._process}2", shared=True, **allowed) as two:
            with two.client() as other:
                until(lambda: only(other)["files"] == 1)
            assert not two.server.watcher._tasks


def test_a_deleted_base_follows_nothing(serve: Serve, minutes: Path):
    with serve(sources_allowed=str(minutes)) as at, at.client() as client:
        client.post("/api/bases", json={"name": "minutes"})
        client.post("/api/watches", json={"place": str(minutes), "base": "minutes"})
        until(lambda: "gate.txt" in names(client), 60)
        until(lambda: only(client)["looked"])
        assert client.delete("/api/bases/minutes").status_code == 204
        assert client.get("/api/watches").json()["watches"] == []
        assert [each["name"] for each in client.get("/api/bases").json()] == ["default"]
