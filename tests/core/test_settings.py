from __future__ import annotations

from pathlib import Path

import pytest

from assay.core.errors import UserError
from assay.core.settings import keys_written_in, load_settings, secret, show_settings


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert load_settings(tmp_path).pool == 100
    (tmp_path / "assay.toml").write_text("pool = 50\n")
    assert load_settings(tmp_path).pool == 50
    monkeypatch.setenv("ASSAY_POOL", "60")
    assert load_settings(tmp_path).pool == 60
    assert load_settings(tmp_path, {"pool": 70}).pool == 70


def test_every_value_says_where_it_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "assay.toml").write_text("pool = 50\n")
    monkeypatch.setenv("ASSAY_OCR", "true")
    origins = {line.name: line.origin for line in show_settings(tmp_path)}
    assert origins["pool"] == str(tmp_path / "assay.toml")
    assert origins["ocr"] == "environment ASSAY_OCR"
    assert origins["embedder"] == "default"
    assert all(line.about for line in show_settings(tmp_path))


def test_a_secret_is_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ASSAY_EMBEDDER_API_KEY", "hunter2")
    settings = load_settings(tmp_path)
    assert "hunter2" not in repr(settings) + str(show_settings(tmp_path))
    assert secret(settings.embedder_api_key) == "hunter2"


def test_a_secret_may_come_from_a_file(tmp_path: Path):
    (tmp_path / "key").write_text("from-the-file\n")
    assert (
        secret(load_settings(tmp_path, {"embedder_api_key": f"file:{tmp_path / 'key'}"}).embedder_api_key)
        == "from-the-file"
    )
    with pytest.raises(UserError, match="cannot be read"):
        secret(load_settings(tmp_path, {"embedder_api_key": "file:/nowhere"}).embedder_api_key)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("pool = 1", "pool"),
        ("pol = 100", "no setting called 'pol'"),
        ("pool = [", "not valid TOML"),
        ("pool = 'many'", "pool"),
    ],
)
def test_a_setting_that_cannot_be_used_is_one_line_that_says_which(tmp_path: Path, content: str, said: str):
    (tmp_path / "assay.toml").write_text(content)
    with pytest.raises(UserError, match=said):
        load_settings(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("proxy", "http://me:hunter2@proxy.example:8080", "http://***@proxy.example:8080"),
        ("proxy", "me:hunter2@proxy.example:8080", "***@proxy.example:8080"),
        ("embedder", "https://hunter2@host/v1", "https://***@host/v1"),
        ("reranker", "https://me:hunt@er2@host/rerank?x=1", "https://***@host/rerank?x=1"),
        ("reranker", "https://host/models@v1", "https://host/models@v1"),
        ("embedder", "/models/e5@v2", "/models/e5@v2"),
    ],
)
def test_a_password_in_an_address_is_never_shown(tmp_path: Path, name: str, value: str, shown: str):
    lines = {line.name: line.value for line in show_settings(tmp_path, {name: value})}
    assert lines[name] == shown


def test_a_key_that_stands_in_the_file_is_known_by_its_name(tmp_path: Path):
    assert keys_written_in(tmp_path) == []
    (tmp_path / "assay.toml").write_text("embedder_api_key = 'hunter2'\nreranker_api_key = 'keyring:a/b'\n")
    assert keys_written_in(tmp_path) == ["embedder_api_key"]
