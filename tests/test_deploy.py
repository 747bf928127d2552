"""The files in `deploy/` are read, not run: what they say of Assay and of each other must be so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from assay.cli.main import app
from assay.core.settings import PREFIX, Settings

DEPLOY = Path(__file__).parent.parent / "deploy"
COMMANDS: Any = typer.main.get_command(app)


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")))


def pods() -> list[dict[str, Any]]:
    return [each["spec"]["template"]["spec"] for each in manifests() if each["kind"] == "Deployment"]


def command_lines() -> Iterator[list[str]]:
    for service in compose()["services"].values():
        if service["image"] == "assay":
            yield service["command"]
    for pod in pods():
        yield pod["containers"][0]["args"]
    yield json.loads(re.findall(r"^CMD (.*)$", (DEPLOY / "Containerfile").read_text(encoding="utf-8"), re.M)[0])


@pytest.mark.parametrize("line", list(command_lines()), ids=" ".join)
def test_every_command_can_be_typed(line: list[str]):
    COMMANDS.commands[line[0]].make_context(line[0], list(line[1:]))


def test_every_variable_is_a_setting():
    named = {name for service in compose()["services"].values() for name in service.get("environment", {})}
    named |= {each["name"] for pod in pods() for each in pod["containers"][0]["env"]}
    own = {name.removeprefix(PREFIX).lower() for name in named if name.startswith(PREFIX)}
    assert own and own <= set(Settings.model_fields)


def test_services_volumes_and_files_that_are_named_are_there():
    whole = compose()
    services, volumes = whole["services"], whole["volumes"]
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
        assert set(service.get("secrets", ())) <= set(whole["secrets"])
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            assert (DEPLOY / source).is_file() if source.startswith(".") else source in volumes, mount
    prometheus = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text(encoding="utf-8"))
    [scraped] = prometheus["scrape_configs"]
    assert set(scraped["dns_sd_configs"][0]["names"]) <= set(services)
    assert yaml.safe_load((DEPLOY / "grafana.yaml").read_text(encoding="utf-8"))["datasources"]
    assert yaml.safe_load((DEPLOY / "grafana-dashboards.yaml").read_text(encoding="utf-8"))["providers"]


def test_servers_and_workers_come_in_twos_and_know_people_the_same_way():
    services = compose()["services"]
    assert [services[name]["deploy"]["replicas"] for name in ("serve", "worker")] == [2, 2]
    assert [each["spec"]["replicas"] for each in manifests() if each["kind"] == "Deployment"] == [2, 2]
    assert all("--auth" in line for line in command_lines())


def test_every_pod_mounts_a_claim_that_there_is():
    claims = {each["metadata"]["name"] for each in manifests() if each["kind"] == "PersistentVolumeClaim"}
    for pod in pods():
        volumes = {each["name"]: each["persistentVolumeClaim"]["claimName"] for each in pod["volumes"]}
        assert set(volumes.values()) <= claims
        assert {mount["name"] for mount in pod["containers"][0]["volumeMounts"]} == set(volumes)
