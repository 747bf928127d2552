"""`assay init` asks, tests the endpoint, and writes only at the end; and `assay doctor` says what the models can do."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from doubles import ChatServer
from terminal import NOTES, Typed, looked_up

from assay.cli import doctor
from assay.core.settings import load_settings, with_settings
from assay.models import endpoint
from assay.store import facts
from assay.workspace.facade import Workspace, open_workspace


@pytest.fixture
def server():
    with ChatServer(looked_up().answer, window=16_000) as running:
        yield running


def settings_in(folder: Path) -> dict:
    return tomllib.loads((folder / "workspace" / "assay.toml").read_text())


# --- by flag --------------------------------------------------------------------------------------------------------


def test_everything_goes_by_flag(typed: Typed, tmp_path: Path, server: ChatServer):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "lamp.md").write_text(NOTES["lamp"])
    done = typed(
        "init", "--yes", "--endpoint", server.url, "--model", "scripted", "--key", "file:/run/key", "--add", "notes",
        "--search", "per-base", "--eagerness", "eager", "--checkpoint", "sources", "--checkpoint", "nothing",
        "--max-cost", "0.5", "--max-tokens", "90000", "--max-seconds", "60",
    )  # fmt: skip
    assert settings_in(tmp_path) == {
        "search_per_base": True,
        "llm_base_url": server.url,
        "llm_model": "scripted",
        "llm_api_key": "file:/run/key",
        "eagerness": "eager",
        "checkpoints": "sources, nothing",
        "budget_run_money": 0.5,
        "budget_run_tokens": 90000,
        "budget_run_seconds": 60.0,
    }
    assert done.code == 1 and "key file /run/key cannot be read" in done.err  # it is written, and what is wrong is said
    assert "1 of 1 file ready" in done.out
    mode = (tmp_path / "workspace" / "assay.toml").stat().st_mode
    assert not mode & (stat.S_IRGRP | stat.S_IROTH)


def test_the_endpoint_is_tried_and_what_was_found_is_said(typed: Typed, tmp_path: Path, server: ChatServer):
    done = typed("init", "--yes", "--endpoint", server.url, "--model", "scripted")
    assert done.code == 0 and "Tool calls: yes." in done.err and "Context: 16000 tokens" in done.err
    assert "price of scripted: not known" in done.err and "a question: 200 requests" in done.err
    seen = len(server.requests)
    with open_workspace(tmp_path / "workspace") as opened:
        assert facts.remembered(opened.store, f"probe:{server.url.split('/')[2]}/scripted")
    assert seen


def test_an_endpoint_that_does_not_answer_is_said_and_the_settings_stay(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ASSAY_LLM_TIMEOUT", "2")
    done = typed("init", "--yes", "--endpoint", "http://127.0.0.1:9/v1", "--model", "gone")
    assert done.code == 1 and "could not be reached" in done.err and "Traceback" not in done.err
    assert settings_in(tmp_path)["llm_model"] == "gone"


def test_a_key_itself_is_never_written(typed: Typed, tmp_path: Path):
    done = typed("init", "--yes", "--key", "sk-very-secret", "--model", "x")
    assert done.code == 2 and "sk-very-secret" not in done.err and not (tmp_path / "workspace").exists()


def test_without_anybody_to_ask_flags_are_needed(typed: Typed, tmp_path: Path):
    done = typed("init")
    assert done.code == 2 and "--yes" in done.err and not (tmp_path / "workspace").exists()


def test_a_machine_elsewhere_is_not_asked_anything_before_somebody_agrees(typed: Typed, tmp_path: Path):
    flags = ("init", "--yes", "--endpoint", "https://models.example/v1", "--model", "big")
    done = typed(*flags)
    assert done.code == 0 and "not tried: nothing was agreed to be sent to models.example" in done.err
    assert "`assay config agree models.example`" in done.err
    with open_workspace(tmp_path / "workspace") as opened:
        assert not facts.agreed(opened.store, "models.example")


def test_the_rest_of_the_settings_file_stays(typed: Typed, empty: Workspace):
    place = empty.path / "assay.toml"
    place.write_text("# mine\npool = 50  # less\neagerness = 'eager'\n")
    assert typed("init", "--yes", "--eagerness", "normal", "--max-tokens", "5").code == 0
    assert place.read_text() == "# mine\npool = 50  # less\nbudget_run_tokens = 5\n"


def test_a_setting_over_several_lines_is_no_trap():
    text = 'llm_prices = """\nllm_model = 1/2,\nother=3/4"""\n'
    changed = with_settings(text, {"llm_model": 'a "b"', "pool": 7})
    assert tomllib.loads(changed) == {"llm_prices": "llm_model = 1/2,\nother=3/4", "llm_model": 'a "b"', "pool": 7}


# --- the dialogue ---------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def nobody_here(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(endpoint, "LOCAL_SERVERS", {})


def test_the_dialogue_offers_a_model_that_runs_on_this_machine(
    typed: Typed, tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
):
    port = urlsplit(server.url).port
    monkeypatch.setattr(endpoint, "LOCAL_SERVERS", {"Ollama": port})
    done = typed("init", keys="none\n" + "\n" * 9 + "y\n")
    assert done.code == 0, done.err
    assert f"On this machine: Ollama at http://127.0.0.1:{port}/v1 with scripted." in done.err
    assert settings_in(tmp_path) == {"llm_base_url": f"http://127.0.0.1:{port}/v1", "llm_model": "scripted"}


def test_the_dialogue_asks_what_no_flag_has_said_and_offers_what_is_there(
    typed: Typed, tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ASSAY_LLM_API_KEY", "sk-very-secret")
    keys = [
        "nowhere", "none", f"ftp://{server.url}", server.url, "scripted", "sk-typed-key", "environment", "", "eager",
        "a lot", "0.25", "", "120", "somewhere", "sources, 2", "y",
    ]  # fmt: skip
    done = typed("init", keys="\n".join(keys) + "\n")
    assert done.code == 0, done.err
    assert settings_in(tmp_path) == {
        "llm_base_url": server.url,
        "llm_model": "scripted",
        "eagerness": "eager",
        "budget_run_money": 0.25,
        "budget_run_seconds": 120.0,
        "checkpoints": "sources, nothing",
    }
    assert (
        "no file or folder 'nowhere'" in done.err
        and "begins with http://" in done.err
        and "Write a number." in done.err
    )
    assert "sk-typed-key" not in done.err and "sk-very-secret" not in done.err
    before = (tmp_path / "workspace" / "assay.toml").read_bytes()
    again = typed("init", keys="\n" * 11)
    assert (
        again.code == 0
        and f"[{server.url}]" in again.err
        and "[0.25]" in again.err
        and "Nothing to change" in again.err
    )
    assert (tmp_path / "workspace" / "assay.toml").read_bytes() == before


def test_without_a_model_there_is_little_to_ask(typed: Typed, tmp_path: Path):
    done = typed("init", keys="\n\nnone\ny\n")
    assert done.code == 0 and "Nothing leaves this machine." in done.err
    assert (
        not (tmp_path / "workspace" / "assay.toml").exists() and load_settings(tmp_path / "workspace").llm_model == ""
    )


@pytest.mark.parametrize("keys", ["", "\n\n", "\nhttp://127.0.0.1:9/v1\nx\n\n\n\n\n\n\n\n", "\n\nnone\nn\n"])
def test_stopping_writes_nothing(typed: Typed, tmp_path: Path, keys: str):
    done = typed("init", keys=keys)
    assert done.code == 130 and "Nothing was written." in done.err and not (tmp_path / "workspace").exists()


def test_ctrl_c_writes_nothing(typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def pressed(prompt: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("assay.cli.terminal.line", pressed)
    done = typed("init", keys="")
    assert done.code == 130 and "Nothing was written." in done.err and not (tmp_path / "workspace").exists()


def test_before_anything_leaves_it_is_said_what_and_where_to(typed: Typed, tmp_path: Path):
    keys = "\nhttps://models.example/v1\nbig\n\n\n\n\n\n\n\nn\ny\n"
    done = typed("init", keys=keys)
    assert done.code == 0 and "To models.example would be sent: your questions, and the passages" in done.err
    assert "not tried" in done.err
    with open_workspace(tmp_path / "workspace") as opened:
        assert not facts.agreed(opened.store, "models.example")


def test_a_key_that_somebody_wrote_into_the_file_is_left_alone(typed: Typed, empty: Workspace, server: ChatServer):
    place = empty.path / "assay.toml"
    place.write_text(f"llm_api_key = 'hunter2'\nllm_base_url = '{server.url}'\nllm_model = 'scripted'\n")
    done = typed("init", keys="\n" * 11)
    assert done.code == 0 and "The key itself stands in assay.toml" in done.err and "hunter2" not in done.err
    assert "hunter2" in place.read_text()


# --- doctor ---------------------------------------------------------------------------------------------------------


def named(server: ChatServer, monkeypatch: pytest.MonkeyPatch, **other: str) -> None:
    for name, value in {"base_url": server.url, "model": "scripted", "api_key": "k", **other}.items():
        monkeypatch.setenv(f"ASSAY_LLM_{name.upper()}", value)


def checks(folder: Path, monkeypatch: pytest.MonkeyPatch, *, offline: bool = False) -> list[dict]:
    monkeypatch.setattr(doctor, "_round", lambda settings, agreed: doctor._line("a whole round", True, ""))
    return list(doctor._checks(folder, offline=offline))


def found(lines: list[dict], check: str) -> str:
    return " ".join(line["found"] for line in lines if line["check"] == check)


def test_doctor_says_what_each_model_can_do_and_what_that_means(empty: Workspace, monkeypatch: pytest.MonkeyPatch):
    with ChatServer(looked_up().answer, lacks=("tools", "schema")) as server:
        named(server, monkeypatch, prices="scripted=0.5/1.5", weigh_model="other")
        lines = checks(empty.path, monkeypatch)
        before = len(server.requests)
        checks(empty.path, monkeypatch)
    assert f"answers at {server.url}" in found(lines, "model scripted")
    assert "Tool calls: no. The model names its next step in a JSON object" in found(lines, "model scripted")
    assert "JSON schema: no, but JSON mode: yes." in found(lines, "model other")
    assert "$0.5 in, $1.5 out" in found(lines, "price of scripted") and "not known" in found(lines, "price of other")
    assert "400,000 tokens, no ceiling on money, 900 s; a day: no ceiling" in found(lines, "limits")
    assert len(server.requests) == 2 * before  # it is found out anew each time


def test_doctor_says_how_well_the_model_judges_and_what_that_means(empty: Workspace, monkeypatch: pytest.MonkeyPatch):
    with ChatServer(looked_up().answer) as server:
        named(server, monkeypatch, check_model="careful")
        lines = checks(empty.path, monkeypatch)
    said = found(lines, "model careful")
    assert (
        "refuses 0% of true claims and passes 0% of false ones (24 claims" in said
        and "Its word settles whether" in said
    )
    assert "As a judge" not in found(lines, "model scripted")
    assert facts.remembered(empty.store, f"trial:{server.url.split('/')[2]}/careful")


def test_doctor_says_that_a_poor_judge_settles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with ChatServer(looked_up().answer, lacks=("tools",)) as server:
        named(server, monkeypatch)
        said = found(checks(tmp_path, monkeypatch), "model scripted")
    assert "passes 100% of false ones" in said and "Its word settles nothing" in said and "Note: wrong about: " in said
    assert "too small to write answers" in said


def test_doctor_measures_no_judge_whose_size_is_set(empty: Workspace, monkeypatch: pytest.MonkeyPatch):
    with ChatServer(looked_up().answer) as server:
        named(server, monkeypatch, size="large")
        said = found(checks(empty.path, monkeypatch), "model scripted")
    assert "As a judge: not measured, because `llm_size` says large." in said


def test_doctor_fails_for_a_model_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ASSAY_LLM_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("ASSAY_LLM_MODEL", "gone")
    monkeypatch.setenv("ASSAY_LLM_TIMEOUT", "2")
    (line,) = [line for line in checks(tmp_path, monkeypatch) if line["check"] == "model gone"]
    assert line["ok"] is False and "could not be reached" in line["found"]


def test_offline_an_endpoint_on_this_machine_is_asked_and_nothing_leaves(
    empty: Workspace, server: ChatServer, monkeypatch: pytest.MonkeyPatch
):
    named(server, monkeypatch)
    with doctor._refused(True) as attempts:
        lines = checks(empty.path, monkeypatch, offline=True)
    assert server.requests and "answers at" in found(lines, "model scripted") and not attempts
    assert doctor._leaves(empty.path, attempts)["ok"] is True


def test_offline_a_machine_elsewhere_is_not_asked_and_what_would_leave_is_said(
    empty: Workspace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ASSAY_LLM_BASE_URL", "https://models.example/v1")
    monkeypatch.setenv("ASSAY_LLM_MODEL", "big")
    waits = doctor._leaves(empty.path, [])
    assert waits["ok"] is True and "nothing is sent to models.example before you agree" in waits["found"]
    facts.agree(empty.store, "models.example")
    with doctor._refused(True) as attempts:
        lines = checks(empty.path, monkeypatch, offline=True)
    assert "models.example is not this machine" in found(lines, "model big") and not attempts
    leaves = doctor._leaves(empty.path, attempts)
    assert leaves["ok"] is False and "to models.example goes your questions, and the passages" in leaves["found"]


def test_offline_whatever_leaves_is_refused():
    import socket

    with doctor._refused(True) as attempts:
        with pytest.raises(OSError, match="refused"):
            socket.getaddrinfo("models.example", 443)
        with pytest.raises(OSError, match="refused"), socket.socket() as leaving:
            leaving.connect(("192.0.2.1", 443))
    assert len(attempts) == 2


def test_the_settings_file_is_whole_or_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from assay.core.private_files import write_private

    (tmp_path / "assay.toml").write_text("pool = 50\n")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_private(tmp_path / "assay.toml", b"pool = 60\n")
    assert (tmp_path / "assay.toml").read_text() == "pool = 50\n"
