"""The sandbox attacked from inside, by system calls that native code would make: as whoever runs the tests and, where that is
root, as an ordinary user too. And a system without some of the guards, which says so and refuses if it must."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from assay.core.errors import UserError
from assay.ingest.parsed import FileLimits, Parsed, Status, Unreadable
from assay.ingest.sandbox import process
from assay.ingest.sandbox.process import package_root
from assay.ingest.sandbox.restrictions import (
    ALLOW,
    CALLS,
    LANDLOCK,
    NAMESPACES,
    NEWER,
    REFUSE,
    SECCOMP,
    UNKNOWN,
    filter_program,
)
from assay.ingest.sandbox.runner import Sandbox, missing_guards, try_guards
from assay.workspace.facade import open_workspace

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the guards are those of Linux")
ATTACK = """
import json, sys
from assay.ingest.sandbox.runner import try_guards
print(json.dumps(try_guards()))
"""
OF_LANDLOCK = {"read a file", "list a folder"}
ANYWAY = {  # refused without a filter of system calls: by Landlock, the user namespace or the lack of capabilities
    "read a file", "list a folder", "read the memory of its parent", "read the memory of its parent as a file",
    "read the environment of its parent", "trace its parent", "write a file", "make a file",
    "empty a file that it opens to read", "empty a file by its name", "remove a file", "signal its parent",
}  # fmt: skip


@pytest.fixture(scope="module")
def guarded() -> None:
    if missing := missing_guards():
        pytest.skip(f"this kernel lacks guards: {'; '.join(missing)}")


def without(monkeypatch: pytest.MonkeyPatch, *guards: str) -> None:
    monkeypatch.setattr(process, "WITHOUT", guards)


def test_whatever_a_parser_that_was_taken_over_tries_is_refused(guarded: None) -> None:
    missing, tried = try_guards()
    assert not missing and len(tried) > 20
    assert {name for name, refused in tried.items() if not refused} == set()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else; the test above ran as one")
def test_the_same_for_an_ordinary_user(guarded: None, request: pytest.FixtureRequest) -> None:
    python = next(
        (each for each in (sys.executable, shutil.which("python3", path="/usr/bin")) if each and usable(each)), ""
    )
    if not python:
        pytest.skip("no interpreter of this version that an ordinary user may run")
    place = Path(tempfile.mkdtemp(prefix="package-"))  # where an ordinary user may read it
    request.addfinalizer(lambda: shutil.rmtree(place))
    place.chmod(0o755)
    shutil.copytree(package_root() + "/assay", place / "assay", ignore=shutil.ignore_patterns("web", "__pycache__"))
    boot = f"import sys; sys.path.insert(0, {str(place)!r})"
    done = subprocess.run(
        [python, "-I", "-B", "-c", boot + ATTACK],
        capture_output=True, text=True, user=65534, group=65534, extra_groups=[], cwd="/", env={"TMPDIR": "/tmp"}, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    missing, tried = json.loads(done.stdout)
    assert not missing and {name for name, refused in tried.items() if not refused} == set()


def usable(python: str) -> bool:
    """Whether an ordinary user can run this interpreter, and it is of the version of this one."""
    shown = "import sys; print(*sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", shown], capture_output=True, text=True, user=65534, group=65534, cwd="/")
    except OSError:
        return False
    return done.stdout.split() == [str(each) for each in sys.version_info[:2]]


@pytest.mark.parametrize(
    ("gone", "open_now"),
    [((LANDLOCK,), OF_LANDLOCK), ((NAMESPACES,), set()), ((LANDLOCK, NAMESPACES), OF_LANDLOCK)],
)
def test_a_missing_guard_is_named_and_the_others_still_hold(
    guarded: None, monkeypatch: pytest.MonkeyPatch, gone: tuple[str, ...], open_now: set[str]
) -> None:
    without(monkeypatch, *gone)
    missing, tried = try_guards()
    assert len(missing) == len(gone)
    assert {name for name, refused in tried.items() if not refused} == open_now


def test_without_the_filter_files_and_processes_are_still_out_of_reach(
    guarded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, SECCOMP)
    missing, tried = try_guards()
    assert len(missing) == 1 and "seccomp" in missing[0]
    assert {name for name in ANYWAY if not tried[name]} == set()


async def test_where_guards_are_missing_adding_says_so_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, LANDLOCK, NAMESPACES)
    (tmp_path / "one.txt").write_text("The kettle holds seven litres.")
    (tmp_path / "two.txt").write_text("The lamp was lit at dusk.")
    with open_workspace(tmp_path / "workspace", create=True) as opened:
        report = await opened.add([tmp_path / "one.txt", tmp_path / "two.txt"])
    [said] = [warning for warning in report.warnings if "closed off" in warning]
    assert "Landlock" in said and "user namespace" in said and said.count(". ") == 0
    assert report.readable == 2


async def test_where_guards_are_required_and_missing_nothing_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, LANDLOCK, NAMESPACES)
    (tmp_path / "one.txt").write_text("The kettle holds seven litres.")
    with open_workspace(tmp_path / "workspace", create=True, sandbox="require") as opened:
        with pytest.raises(UserError, match=r'Landlock.*set `sandbox = "available"`'):
            await opened.add([tmp_path / "one.txt"])
        assert not opened.documents.listing()


async def test_the_process_itself_gets_no_byte_where_guards_are_required(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, LANDLOCK)
    with Sandbox(FileLimits(require_guards=True)) as sandbox:
        answer = await sandbox.read(b"The kettle holds seven litres.", "one.txt")
    assert isinstance(answer, Unreadable) and answer.status is Status.unreadable and "Landlock" in answer.why


async def test_where_all_guards_are_there_they_may_be_required(guarded: None) -> None:
    with Sandbox(FileLimits(require_guards=True)) as sandbox:
        await sandbox.check_guards()
        assert isinstance(await sandbox.read(b"The kettle holds seven litres.", "one.txt"), Parsed)


def test_a_server_says_what_is_missing_and_does_not_start_if_it_is_required(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from assay.cli.serve import check_guards

    without(monkeypatch, LANDLOCK)
    with open_workspace(tmp_path / "workspace", create=True) as opened:
        [said] = check_guards(opened)
        assert "Landlock" in said
    with (
        open_workspace(tmp_path / "workspace", sandbox="require") as opened,
        pytest.raises(UserError, match="Landlock"),
    ):
        check_guards(opened)


def test_the_doctor_says_what_a_parser_could_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.cli.doctor import _guards

    without(monkeypatch, LANDLOCK)
    for required, ok in ((False, None), (True, False)):
        line = _guards(required)
        assert line["ok"] is ok and "Landlock" in line["found"] and "could read a file, list a folder" in line["found"]


# --- the process that has the file, seen from outside ---------------------------------------------------------------


def process_with_file(sandbox: Sandbox) -> int:
    [parser] = sandbox._idle
    forks = parser._process.pid  # type: ignore[union-attr]
    return int(Path(f"/proc/{forks}/task/{forks}/children").read_text())


async def test_it_has_no_capabilities_and_a_user_namespace_of_its_own(guarded: None) -> None:
    with Sandbox() as sandbox:
        await sandbox.read(b"The kettle holds seven litres.", "one.txt")
        pid = process_with_file(sandbox)
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        if os.geteuid() == 0:  # others may not look
            for kind in ("user", "net"):
                assert Path(f"/proc/{pid}/ns/{kind}").readlink() != Path(f"/proc/self/ns/{kind}").readlink()
            shown = {str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir()}
            assert {each.split(":")[0] for each in shown} == {"/dev/null", "socket"}


async def test_pages_of_one_file_come_from_one_process_for_one_owner_only(guarded: None) -> None:
    original = Path(__file__).parents[2] / "samples/corpus/incident-report-pellam.pdf"
    used: list[int] = []
    with Sandbox() as sandbox:
        for owner in ("one", "one", "other"):
            assert isinstance(await sandbox.page_image(original, 1, width=200, owner=owner), bytes)
            used.append(process_with_file(sandbox))
    assert used[0] == used[1] != used[2]


# --- the filter itself, for both architectures ----------------------------------------------------------------------


def ruled(machine: str, number: int, *arguments: int, arch: int | None = None) -> int:
    """What the filter returns for a system call: its instructions, interpreted."""
    from assay.ingest.sandbox.restrictions import ANY_BIT, AT_LEAST, EQUAL, LOAD, MACHINES

    seen = {0: number, 4: MACHINES[machine] if arch is None else arch}
    seen |= {16 + 8 * place: value & 0xFFFFFFFF for place, value in enumerate((*arguments, *[0] * 6))}
    steps, at, held = filter_program(machine, own_pid=77), 0, 0
    while True:
        code, yes, no, value = steps[at]
        if code == LOAD:
            held, at = seen[value], at + 1
        elif code in (EQUAL, AT_LEAST, ANY_BIT):
            true = {EQUAL: held == value, AT_LEAST: held >= value, ANY_BIT: bool(held & value)}[code]
            at += 1 + (yes if true else no)
        else:
            return value


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_allows_what_is_listed_and_nothing_else(machine: str) -> None:
    numbers = {"x86_64": (257, 72, 16, 302, 234), "aarch64": (56, 25, 29, 261, 131)}[machine]
    openat, fcntl, ioctl, prlimit, tgkill = numbers
    special = {*numbers, *((2,) if machine == "x86_64" else ())}
    for number in {*range(600), 0x40000000 + 1, 0x7FFFFFFF} - special:
        wanted = ALLOW if number in CALLS[machine].values() else UNKNOWN if number in NEWER else REFUSE
        assert ruled(machine, number) == wanted, number
    reading = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY
    assert ruled(machine, openat, 0, 0, reading) == ALLOW
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, os.O_TRUNC | os.O_CLOEXEC, 0o20000000):
        assert ruled(machine, openat, 0, 0, flags) == REFUSE, flags
        assert machine != "x86_64" or ruled(machine, 2, 0, flags) == REFUSE, flags
    assert ruled(machine, fcntl, 0, 2) == ALLOW and ruled(machine, fcntl, 0, 8) == REFUSE  # 8: F_SETOWN
    assert ruled(machine, ioctl, 0, 0x5401) == ALLOW and ruled(machine, ioctl, 0, 0x5412) == REFUSE  # 0x5412: TIOCSTI
    assert ruled(machine, prlimit, 0) == ALLOW and ruled(machine, prlimit, 1) == REFUSE
    assert ruled(machine, tgkill, 77) == ALLOW and ruled(machine, tgkill, 1) == REFUSE
    assert ruled(machine, 0, arch=0x40000003) not in (
        ALLOW,
        REFUSE,
    )  # 32-bit calls have other numbers: the process is killed


def test_the_numbers_are_those_of_this_machine(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if platform.machine() not in CALLS or compiler is None:
        pytest.skip("no C compiler here, which knows the numbers")
    names = sorted(CALLS[platform.machine()])
    lines = "".join(f"{name}=SYS_{name}\n" for name in names)
    source = tmp_path / "numbers.c"
    source.write_text(f"#include <sys/syscall.h>\n{lines}")
    shown = subprocess.run([compiler, "-E", "-P", str(source)], capture_output=True, text=True, check=True).stdout
    found = {}
    for name, words in (line.split("=") for line in shown.split("\n") if line.count("=") == 1):
        found[name] = int(words) if words.strip().isdigit() else None
    assert found == CALLS[platform.machine()]
