"""`assay verify`, `assay export` and `assay audit`, as they are typed."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from terminal import Typed

from assay.governance.audit import check
from assay.workspace.facade import Workspace


@pytest.fixture
def asked(typed: Typed, noted: Workspace) -> str:
    """A run, and a second place."""
    typed("ask", "How tall is the tower at Carrow Point?")
    return json.loads(typed("runs", "--json").out)[0]["run"]


def test_a_record_without_faults_is_called_whole_up_to_its_last_seal_alone(typed: Typed, asked: str):
    done = typed("verify")
    assert done.code == 0 and "whole" not in done.out.splitlines()[-1]
    assert done.out.splitlines()[-1].startswith("No fault was found. The record is unsealed since 20")
    assert "finds accidents only" in done.out and "Records since the last seal" in done.out


def test_sealed_verified_changed_and_found(
    typed: Typed, asked: str, noted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "second").mkdir()
    monkeypatch.setenv("ASSAY_AUDIT_COPY", str(tmp_path / "second"))
    assert "and in" in typed("audit", "seal").out
    key = typed("audit", "key").out.strip()
    assert len(key) == 64 and typed("verify", "--key", key).code == 0 and typed("verify", asked).code == 0
    with noted.store.write() as connection:
        connection.exec_driver_sql("UPDATE payloads SET body = '{}' WHERE run = ? AND seq = 1", (asked,))
    done = typed("verify", "--json")
    told = json.loads(done.out)
    assert done.code == 1 and not told["whole"] and told["second_place"]
    assert (told["faults"][0]["record"], told["faults"][0]["what"]) == (f"{asked}/1", "payload changed")
    assert f"{asked}/1: the payload of record 1 was changed." in typed("verify").out


def test_a_second_place_can_be_named_whatever_the_settings_say(typed: Typed, asked: str, tmp_path: Path):
    """Whoever can write the workspace can write its settings too."""
    (tmp_path / "second").mkdir()
    done = typed("verify", "--copy", tmp_path / "second")
    assert done.code == 0 and "since the last seal" in done.out
    done = typed("verify", "--copy", tmp_path / "nowhere")
    assert done.code == 2 and "not mounted" in done.err


@pytest.mark.long
def test_a_run_is_exported_once_and_can_be_checked(typed: Typed, asked: str, tmp_path: Path):
    done = typed("export", asked, "-o", tmp_path / "run.zip")
    assert done.code == 0 and "check.py" in done.out
    assert check.main([str(tmp_path / "run.zip")]) == 0
    assert typed("export", asked, "-o", tmp_path / "run.zip").code == 2
    assert typed("export", asked, "-o", tmp_path / "no" / "run.zip").code == 2
    assert typed("export", "r0000000000000000").code == 2
    assert zipfile.ZipFile(tmp_path / "run.zip").testzip() is None


def test_retention_erases_only_what_is_old_and_not_too_early(typed: Typed, asked: str):
    assert "Nothing was erased" in typed("audit", "retention").out
    done = typed("audit", "retention", "--days", "30")
    assert done.code == 2 and "--shorter" in done.err
    assert json.loads(typed("audit", "retention", "--days", "30", "--shorter", "--json").out)["payloads"] == 0
    assert "Everything is kept" in typed("audit", "retention", "--days", "0").out


def test_the_key_of_the_audit_leaves_with_its_workspace(typed: Typed, asked: str, noted: Workspace):
    typed("audit", "key")
    assert (noted.path / "audit.key").exists()
    assert typed("workspace", "delete", "--yes").code == 0
    assert not noted.path.exists()
