"""The files in `deploy/` are read, not run: what they say of Assay and of each other must be so."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import pytest
import typer
import yaml
from fastapi import FastAPI

from assay import __version__
from assay.cli.main import app
from assay.core.settings import PREFIX, Settings
from assay.serve.app import make_app
from assay.serve.state import ServeOptions, Server
from assay.store.access import members
from assay.workspace.facade import open_workspace

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
        if service["image"].startswith("assay:"):
            yield service["command"]
    for pod in pods():
        yield pod["containers"][0]["args"]
    yield json.loads(re.findall(r"^CMD (.*)$", (DEPLOY / "Containerfile").read_text(encoding="utf-8"), re.M)[0])


@pytest.mark.parametrize("line", list(command_lines()), ids=" ".join)
def test_every_command_can_be_typed(line: list[str]):
    COMMANDS.commands[line[0]].make_context(line[0], list(line[1:]))


def test_every_variable_is_a_setting():
    named = {name for service in compose()["services"].values() for name in service.get("environment", {})}
    named |= {name for each in manifests() if each["kind"] == "ConfigMap" for name in each["data"]}
    own = {name.removeprefix(PREFIX).lower() for name in named if name.startswith(PREFIX)}
    assert own and own <= {*Settings.model_fields, "cache_dir"}


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


def test_pods_share_no_folder_and_every_mount_has_a_volume():
    for pod in pods():
        volumes = {each["name"]: each for each in pod["volumes"]}
        assert {mount["name"] for mount in pod["containers"][0]["volumeMounts"]} == set(volumes)
        assert all({"emptyDir", "secret"} & set(each) for each in volumes.values())


def test_servers_and_workers_are_probed_limited_and_closed():
    for pod in pods():
        (container,) = pod["containers"]
        assert {"startupProbe", "livenessProbe"} <= set(container) and container["resources"]["limits"]["memory"]
        assert container["securityContext"]["readOnlyRootFilesystem"] and pod["securityContext"]["runAsNonRoot"]
    services = compose()["services"]
    for name in ("serve", "worker"):
        assert services[name]["healthcheck"] and services[name]["deploy"]["resources"]["limits"]["memory"]


def test_sign_in_behind_the_proxy_is_by_https_and_counts_each_address_by_itself():
    for line in command_lines():
        if line[0] == "serve" and "--no-work" in line:
            assert {"--https-cookies", "--trust-proxy", "--allow-host"} <= set(line)


def test_no_secret_is_written_in_a_file_and_every_image_has_its_version():
    assert all(set(each) == {"file"} for each in compose()["secrets"].values())
    images = [each["image"] for each in compose()["services"].values()] + [
        pod["containers"][0]["image"] for pod in pods()
    ]
    images += re.findall(r"^FROM (.*)$", (DEPLOY / "Containerfile").read_text(encoding="utf-8"), re.M)
    for image in images:
        name, _, version = image.rpartition(":")
        assert version.lstrip("v")[0].isdigit(), image
        assert version == __version__ or not name.endswith("assay")


def test_the_manifests_are_valid_for_kubernetes():
    kubernetes_validate = pytest.importorskip(
        "kubernetes_validate", reason="the package kubernetes-validate is not installed"
    )
    for each in manifests():
        kubernetes_validate.validate(each, "1.33", strict=True)


def test_the_compose_file_is_valid(tmp_path: Path):
    pytest.importorskip("check_jsonschema", reason="the package check-jsonschema is not installed")
    command = ["-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(DEPLOY / "compose.yaml")]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_one_persons_wrong_passwords_slow_nobody_else_behind_the_proxy_that_is_shipped(tmp_path: Path):
    """The proxy reaches the servers over a network that both share and nobody else, and the servers name it."""
    whole = compose()
    services = whole["services"]
    [between] = services["proxy"]["networks"]
    assert {name for name, each in services.items() if between in each.get("networks", ())} == {"proxy", "serve"}
    [place] = whole["networks"][between]["ipam"]["config"]
    proxy = str(next(ipaddress.ip_network(place["subnet"]).hosts()))
    given = COMMANDS.commands["serve"].make_context("serve", list(services["serve"]["command"][1:])).params
    serving = ServeOptions(auth="keys", proxies=tuple(given["trust_proxy"] or ()))
    with open_workspace(tmp_path, create=True) as opened, patch.object(members, "COST", 2**10):
        members.add(opened.store, "reader", password="a lamp on the pier")
        asyncio.run(_guesses_and_signs_in(make_app(Server(opened, serving)), proxy))


async def _guesses_and_signs_in(app: FastAPI, proxy: str) -> None:
    through = httpx.ASGITransport(app, client=(proxy, 40_000))
    async with httpx.AsyncClient(transport=through, base_url="http://desk.example.org") as client:

        async def tries(name: str, password: str, address: str) -> int:
            sent, seen = {"name": name, "password": password}, {"X-Forwarded-For": address}
            return (await client.post("/api/session", json=sent, headers=seen)).status_code

        guessed = [await tries(f"name {n}", "wrong password", "203.0.113.9") for n in range(25)]
        assert 429 in guessed, "who guesses is slowed"
        assert await tries("reader", "a lamp on the pier", "198.51.100.7") == 200


def test_the_cluster_names_its_proxy_or_does_not_start():
    [serve] = [pod["containers"][0] for pod in pods() if pod["containers"][0]["args"][0] == "serve"]
    named = serve["args"][serve["args"].index("--trust-proxy") + 1]
    known = {each["name"]: each for each in serve["env"]}
    assert known[named.strip("$()")]["valueFrom"]["secretKeyRef"].get("optional") is None
