"""People, keys and access over HTTP: administrators manage people, owners manage access, everybody their own keys."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

from team import team

from assay.store.access import members


def test_administrators_manage_people_owners_access_and_everybody_their_keys(folder: Path):
    with patch.object(members, "COST", 2**10), team(folder) as tool_context:
        store = tool_context.at.server.workspace.store
        with tool_context.as_("editor") as editor, tool_context.as_("reader") as reader:
            unknown = reader.get("/api/nothing-there")
            for method, path in (("GET", "/api/people"), ("DELETE", "/api/people/editor")):
                refused = reader.request(method, path)
                assert (refused.status_code, refused.json()) == (404, unknown.json()), path
            assert editor.get("/api/people").status_code == 404, "owning documents is no such right"
            members.set_admin(store, "editor", True)
            made = editor.post(
                "/api/people", json={"name": "guest", "groups": ["desk"], "password": "a lamp on the pier"}
            )
            assert made.status_code == 201 and made.json()["groups"] == ["desk"]
            assert [each["name"] for each in editor.get("/api/people").json()["people"]] == [
                "editor",
                "guest",
                "reader",
            ]
            assert editor.patch("/api/people/guest", json={"groups": [], "admin": True}).json()["admin"]
            assert editor.patch("/api/people/editor", json={"admin": False}).status_code == 400
            assert editor.delete("/api/people/editor").status_code == 400
            with tool_context.signed_in("guest") as guest:
                assert guest.get("/api/people").status_code == 200
                assert editor.delete("/api/people/guest").status_code == 204
                assert guest.get("/api/me").status_code == 401

            key = reader.post("/api/keys", json={"label": "notebook"}).json()
            assert [each["label"] for each in reader.get("/api/keys").json()["keys"]] == ["", "notebook"]
            assert key["key"] not in reader.get("/api/keys").text
            assert editor.delete(f"/api/keys/{key['id']}").status_code == 404, "a key of somebody else's is not there"
            with tool_context.at.client(Authorization=f"Bearer {key['key']}") as other:
                assert other.get("/api/me").json()["name"] == "reader"
                assert reader.delete(f"/api/keys/{key['id']}").status_code == 204
                assert other.get("/api/me").status_code == 401

            names = {each["name"]: each["id"] for each in editor.get("/api/documents").json()["documents"]}
            lamp = f"/api/documents/{names['lamp.txt']}/access"
            shared = editor.post("/api/bases/default/access", json={"name": "user:reader", "may": True})
            assert shared.json()["readers"] == ["user:editor", "user:reader"] and shared.json()["own"]
            assert shared.json()["accepted"] == [], "its owner sees who has not accepted it yet"
            (offer,) = reader.get("/api/offers").json()
            assert (offer["name"], offer["owner"], offer["declined"]) == ("default", "editor", False)
            assert reader.get("/api/documents").json()["total"] == 0, "it is offered, and not accepted yet"
            assert reader.post(f"/api/offers/{offer['id']}", json={"accept": True}).status_code == 204
            assert editor.get("/api/bases/default/access").json()["accepted"] == ["user:reader"]
            assert reader.get("/api/documents").json()["total"] == 3 and reader.get("/api/offers").json() == []
            assert reader.get("/api/bases/default/access").status_code == 404, "who reads it is its owner's to know"
            assert reader.get(lamp).status_code == 404
            assert editor.get(lamp).json()["own"] is False
            assert editor.post(lamp, json={"name": "user:reader", "may": False}).json()["readers"] == ["user:editor"]
            assert reader.get("/api/documents").json()["total"] == 2
            assert editor.get(lamp).json() == {
                "what": "document",
                "id": names["lamp.txt"],
                "owner": "editor",
                "own": True,
                "readers": ["user:editor"],
                "mine": True,
                "patterns": [],
                "accepted": [],
                "held": "",
            }
            assert editor.delete(lamp).json()["own"] is False
            assert reader.get("/api/documents").json()["total"] == 3
            restrictions, wanted = "/api/bases/default/restrictions", {"pattern": "lamp.*", "only_for": ["group:desk"]}
            assert reader.post(restrictions, json=wanted).status_code == 404
            assert editor.post(restrictions, json=wanted).json()["readers"] == ["user:editor", "group:desk"]
            assert reader.get("/api/documents").json()["total"] == 2
            assert editor.get(lamp).json()["patterns"] == editor.get("/api/bases/default/access").json()["patterns"]
            assert editor.get(restrictions, params={"pattern": "lamp.*"}).json()["own"]
            assert editor.post(restrictions, json=wanted | {"pattern": "lamp"}).status_code == 400
            assert editor.post(lamp.replace("/access", "/held"), json={"keep": True}).status_code == 400
            assert editor.delete(restrictions, params={"pattern": "lamp.*"}).json()["own"] is False
            assert reader.get("/api/documents").json()["total"] == 3
            assert reader.post(f"/api/documents/{names['lamp.txt']}/erase").status_code == 404
            gone = editor.post(f"/api/documents/{names['lamp.txt']}/erase")
            assert gone.json() == {"records": 0, "backups": []}
            assert reader.get("/api/documents").json()["total"] == 2
