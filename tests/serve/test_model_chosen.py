"""An administrator who may read nothing chooses the model: consent, a list of the operator's, and everybody is told."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from doubles import ChatServer, HttpReply, Script
from team import Team, team

from assay.core.events import SettingChanged
from assay.core.settings import write_settings
from assay.models.http import SAID
from assay.store.access import members
from assay.store.runs import records

INTERNAL = "orders of the harbour master: the vault opens at nine"


def administrator(made: Team) -> httpx.Client:
    members.set_admin(made.at.server.workspace.store, "editor", True, "test")
    return made.as_("editor")


def test_where_people_sign_in_an_address_on_this_machine_needs_consent_with_its_port(folder: Path):
    with ChatServer(Script().answer) as model, team(folder) as made, administrator(made) as client:
        wanted, place = {"address": model.url, "model": "scripted"}, model.url.split("/")[2]
        for method, path in (("POST", "/api/model/test"), ("PUT", "/api/model")):
            reply = client.request(method, path, json=wanted)
            assert reply.status_code == 400 and f"Nothing is sent to {place} before" in reply.json()["detail"]
            assert client.request(method, path, json=wanted | {"agree": ["127.0.0.1"]}).status_code == 400
        assert not model.requests
        (said,) = client.post("/api/model/preview", json=wanted).json()["recipients"]
        assert said["host"] == place and "passages found" in said["receives"][0] and not said["agreed"]
        assert client.put("/api/model", json=wanted | {"agree": [place]}).status_code == 200


def test_everybody_is_told_which_model_writes_since_when_and_who_chose_it(folder: Path):
    with team(folder) as made, administrator(made) as client, made.as_("reader") as reader:
        assert reader.get("/api/me").json()["written_by"] == ""
        wanted = {"address": "http://127.0.0.1:9/v1", "model": "near", "agree": ["127.0.0.1:9"]}
        assert client.put("/api/model", json=wanted).status_code == 200
        told = reader.get("/api/me").json()["written_by"]
        assert told.startswith("Answers are written and checked by near at 127.0.0.1:9 since 20") and told.endswith(
            "set by editor."
        )
        client.patch("/api/settings", json={"values": {"reranker": "late"}})  # is another matter
        assert reader.get("/api/me").json()["written_by"] == told


def test_a_model_that_was_set_in_the_file_is_recorded_when_a_server_starts(folder: Path):
    write_settings(folder, {"llm_base_url": "http://127.0.0.1:9/v1", "llm_model": "slipped-in"})
    with team(folder) as made, made.as_("reader") as reader:
        assert reader.get("/api/me").json()["written_by"].endswith("set by the configuration.")
        log = [event for _, event in records.workspace_log(made.at.server.workspace.store)]
    assert SettingChanged("llm_model", "", "slipped-in", "the configuration") in log


def test_no_model_can_be_connected_that_the_operator_does_not_list(folder: Path):
    listed = "https://models.example/v1/, mistral"
    with team(folder, endpoints_allowed=listed) as made, administrator(made) as client:
        near = {"address": "http://127.0.0.1:9/v1", "model": "near", "agree": ["127.0.0.1:9"]}
        provider = {
            "address": "https://models.example/v1",
            "model": "openai:big",
            "agree": ["openai", "models.example"],
        }
        for wrong in (near, provider):
            for method, path in (("POST", "/api/model/test"), ("PUT", "/api/model")):
                reply = client.request(method, path, json=wrong)
                assert reply.status_code == 400 and "endpoints_allowed" in reply.json()["detail"], reply.text
        assert client.patch("/api/settings", json={"values": {"endpoints_allowed": ""}}).status_code == 400
        right = {"address": "https://models.example/v1", "model": "big", "agree": ["models.example"]}
        assert client.put("/api/model", json=right).status_code == 200


@pytest.mark.parametrize("form", ["page", "error", "object"])
@pytest.mark.parametrize("status", [200, 403, 404])
def test_trying_an_address_tells_nothing_of_a_service_that_is_no_model(folder: Path, form: str, status: int):
    bodies = {
        "page": f"<h1>{INTERNAL}</h1>",
        "error": f'{{"error": "{INTERNAL}"}}',
        "object": f'{{"vault": "{INTERNAL}"}}',
    }
    reply = HttpReply(status, bodies[form])
    with ChatServer(lambda _: reply) as service, team(folder, llm_timeout=5.0) as made, administrator(made) as client:
        wanted = {"address": service.url, "model": "x", "agree": [service.url.split("/")[2]]}
        told = client.post("/api/model/test", json=wanted)
        assert told.status_code == 502 and "vault" not in told.text and SAID.strip() not in told.text, told.text
