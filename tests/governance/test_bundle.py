"""A bundle is checked by a script that has nothing but Python; whatever is done to it is found."""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from ledger import ask

from assay.core.access import Principal
from assay.core.errors import Missing, UserError
from assay.core.events import Decision, Reviewed, Stakes
from assay.governance.audit import check
from assay.governance.audit.export import export_bundle
from assay.governance.audit.witness import load_signer
from assay.store.access import grants
from assay.store.runs import records
from assay.workspace.facade import Workspace

# RFC 8032, section 7.1: key, message, signature.
VECTORS = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]


def made(opened: Workspace, run: str) -> bytes:
    return export_bundle(opened.store, opened.path, opened.settings, opened.questions.run(run), opened.scope())


def opened_up(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def verdict(files: dict[str, bytes], key: str = "") -> str:
    """What is wrong with a bundle; nothing where it is whole."""
    try:
        list(check.check(files, key))
    except check.InvalidBundle as bad:
        return str(bad)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        return f"{type(error).__name__}"
    return ""


@pytest.mark.parametrize(("key", "message", "signature"), VECTORS)
def test_signatures_are_checked_as_the_standard_says(key: str, message: str, signature: str):
    parts = bytes.fromhex(key), bytes.fromhex(signature), bytes.fromhex(message)
    assert check.verify_signature(*parts)
    assert not check.verify_signature(parts[0], parts[1], parts[2] + b"\x00")
    assert not check.verify_signature(parts[0], parts[1][:32] + bytes(32), parts[2])


def test_a_signature_has_one_spelling_only(tmp_path: Path):
    signer = load_signer(tmp_path / "key")
    message, key = b"words", bytes.fromhex(signer.public)
    good = bytes.fromhex(signer.sign(message))
    assert check.verify_signature(key, good, message)
    larger = int.from_bytes(good[32:], "little") + check.L  # the same modulo the order of the group
    assert not check.verify_signature(key, good[:32] + larger.to_bytes(32, "little"), message)
    assert not check.verify_signature(key, good[:-1], message) and not check.verify_signature(
        key + b"\x00", good, message
    )
    assert not check.verify_signature((check.P + 1).to_bytes(32, "little"), good, message)


def test_a_bundle_is_checked_with_nothing_but_python(opened: Workspace, run: str, tmp_path: Path):
    data = made(opened, run)
    file, folder = tmp_path / "bundle.zip", tmp_path / "unpacked"
    file.write_bytes(data)
    with zipfile.ZipFile(file) as packed:
        packed.extractall(folder)
    script = tmp_path / "check.py"
    script.write_bytes((folder / "check.py").read_bytes())
    bare = {"PATH": os.environ["PATH"]}
    for place in (file, folder):
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(script), str(place)],
            capture_output=True,
            text=True,
            env=bare,
            cwd=tmp_path,
        )
        assert done.returncode == 0 and "The bundle is whole." in done.stdout, done.stdout + done.stderr
        assert "records of run" in done.stdout and "quotations" in done.stdout and "signed at" in done.stdout
    quotations = folder / "quotations.jsonl"
    quotations.write_text(quotations.read_text().replace("hall 3", "hall 4"))
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(script), str(folder)], capture_output=True, text=True, env=bare
    )
    assert done.returncode == 1 and "BAD: quotations.jsonl was changed" in done.stdout


def test_the_checker_imports_nothing_but_the_standard_library():
    import ast

    tree = ast.parse(Path(check.__file__).read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


def test_a_bundle_says_what_took_part_and_shows_the_words(opened: Workspace, run: str):
    files = opened_up(made(opened, run))
    manifest = json.loads(files["manifest.json"])
    assert manifest["question"] == "Where does pump P-7 stand?" and manifest["withheld"] == []
    assert any(each["file"] == "pumps.md" and len(each["digest"]) == 64 for each in manifest["documents"])
    words = [json.loads(line)["text"] for line in files["quotations.jsonl"].splitlines()]
    assert any("Pump P-7 stands in hall 3." in each for each in words) and b"hall 3" in files["answer.md"]
    assert verdict(files, manifest["key"]) == ""
    assert "not by the key that you named" in verdict(files, "00" * 32)


def test_whatever_is_done_to_a_bundle_is_found(opened: Workspace, run: str):
    files = opened_up(made(opened, run))
    chance = random.Random(3)
    for name in files:
        assert verdict({each: data for each, data in files.items() if each != name}), f"without {name}"
        for _ in range(3):
            at = chance.randrange(len(files[name]))
            changed = files[name][:at] + bytes([files[name][at] ^ 1 << chance.randrange(7)]) + files[name][at + 1 :]
            assert verdict(files | {name: changed}), f"{name} changed at {at}"
    assert verdict(files | {"more.txt": b"more"})
    assert verdict(files | {"manifest.sig": files["manifest.sig"].upper()}), "there is one spelling"


def test_a_forger_with_a_key_of_their_own_cannot_change_what_was_recorded(opened: Workspace, run: str, tmp_path: Path):
    """Everything in the bundle is made to agree again, and signed: only that the head is of other records gives it away."""
    files = opened_up(made(opened, run))
    forger = load_signer(tmp_path / "forged.key")

    def signed(changed: dict[str, bytes]) -> dict[str, bytes]:
        manifest = json.loads(files["manifest.json"]) | {"key": forger.public}
        manifest["files"] = {
            name: check.sha(data) for name, data in changed.items() if not name.startswith("manifest.")
        }
        body = json.dumps(manifest).encode()
        return changed | {"manifest.json": body, "manifest.sig": forger.sign(body).encode() + b"\n"}

    assert "head was not signed" in verdict(signed(files))
    quotations = files["quotations.jsonl"].replace(b"hall 3", b"hall 4")
    assert "were changed" in verdict(signed(files | {"quotations.jsonl": quotations}))
    name = next(each for each in files if each.endswith("-Answered.json"))
    assert "payload of record" in verdict(signed(files | {name: files[name].replace(b"answered", b"abstained")}))
    lines = files["records.jsonl"].splitlines(keepends=True)
    assert "record 1" in verdict(signed(files | {"records.jsonl": b"".join(lines[:1] + lines[2:])}))
    later = lines[1].replace(b'"at":"2', b'"at":"3')
    assert verdict(signed(files | {"records.jsonl": b"".join([lines[0], later, *lines[2:]])})) == "record 1 was changed"
    assert "not in the signed head" in verdict(signed(files | {"records.jsonl": b"".join(lines[:-1])}))


def test_two_files_of_one_name_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as packed:
        packed.writestr("manifest.json", "{}")
        with pytest.warns(UserWarning):
            packed.writestr("manifest.json", "[]")
    assert check.main([str(tmp_path / "b.zip")]) == 1 and "two files of one name" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name",
    [
        "x\nThe bundle is whole.",
        "x\r\x1b[2K\x1b[1AThe bundle is whole.\x1b[8m",
        "x\u2028The bundle is whole.\x85\x9b2K",
        "\u202e.elohw si eldnub ehT\u2066",
        "x" + " " * 300 + "The bundle is whole.",
        "x" * 5000,
    ],
)
def test_no_name_in_a_bundle_writes_a_line_of_its_own(
    opened: Workspace, run: str, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "b.zip"
    file.write_bytes(made(opened, run))
    with zipfile.ZipFile(file, "a") as packed:
        packed.writestr(name, b"more")
    assert check.main([str(file)]) == 1
    printed = capsys.readouterr().out
    lines = printed.removesuffix("\n").split("\n")
    assert len(lines) == 1 and lines[0].startswith("BAD: ") and lines[0].isprintable()
    assert "   " not in printed and len(printed) < 500


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 no zip", b"\xff" * 50])
def test_what_is_no_bundle_is_said_to_be_none(tmp_path: Path, data: bytes, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "b.zip").write_bytes(data)
    assert check.main([str(tmp_path / "b.zip")]) == 1 and capsys.readouterr().out.startswith("BAD: ")
    assert check.main([]) == 2


def test_the_proof_leads_through_the_records_of_others_and_tells_nothing_of_them(opened: Workspace, run: str):
    first = opened_up(made(opened, run))
    later = asyncio.run(ask(opened, "How many cranes has hall 3?"))
    files = opened_up(made(opened, later.id))
    proof = json.loads(files["proof.json"])
    last = json.loads(files["records.jsonl"].splitlines()[-1])
    assert proof["head"]["n"] == last["n"] + len(proof["after"]) and verdict(files) == ""
    whole = b"".join(data for name, data in files.items() if name != "check.py")
    assert run.encode() not in whole and b"P-7" not in files["proof.json"]
    assert json.loads(first["proof.json"])["after"], "the other question of this workspace came after it"


def test_nobody_gets_words_in_a_bundle_that_they_may_not_read_any_more(opened: Workspace):
    reader = Principal("reader")
    base = opened.scope().named("default")
    grants.share(opened.store, base, "user:reader")
    theirs = opened.for_principal(reader)
    run = asyncio.run(ask(theirs))
    assert b"hall 3" in opened_up(made(theirs, run.id))["quotations.jsonl"]
    grants.stop_sharing(opened.store, base, "user:reader")
    files = opened_up(made(theirs, run.id))
    told = b"".join(data for name, data in files.items() if name != "check.py")
    assert b"stands in hall" not in told and b"pumps.md" not in told and files["quotations.jsonl"] == b""
    assert json.loads(files["manifest.json"])["withheld"] and verdict(files) == ""


def test_the_runs_of_others_cannot_be_exported(opened: Workspace, run: str):
    with pytest.raises(Missing):
        made(opened.for_principal(Principal("somebody")), run)


def test_a_draft_that_waits_for_a_reviewer_is_not_exported_and_a_decision_is(opened: Workspace):
    run = asyncio.run(ask(opened, stakes=Stakes.high))
    assert run.held is not None
    with pytest.raises(UserError, match="reviewer"):
        made(opened, run.id)
    records.append(
        opened.store, run.id, len(run.events), Reviewed(Decision.approve, run.held.seal, "reviewer-1", "Good.")
    )

    async def carried() -> None:
        async for _ in opened.resume(run.id):
            pass

    asyncio.run(carried())
    files = opened_up(made(opened, run.id))
    manifest = json.loads(files["manifest.json"])
    assert [(each["decision"], each["by"]) for each in manifest["decisions"]] == [("approve", "reviewer-1")]
    assert "the answer was delivered under a reviewer's approval of exactly that" in list(check.check(files))
