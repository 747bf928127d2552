"""`assay doctor`: checks whether this machine is suitable and whether any data leaves it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.follow import price_of
from assay.cli.options import Json, Workspace, console, plain, print_json

if TYPE_CHECKING:
    from assay.answer.checking.trial import JudgeTrial
    from assay.core.settings import Settings
    from assay.models.capability import Capability


def doctor(
    workspace: Workspace = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Do the whole round with every outgoing connection refused.")
    ] = False,
    json: Json = False,
) -> None:
    """Check this machine: processor, parsers, limits, endpoints, models; and try a whole round in a throw-away workspace."""
    from assay.workspace.facade import default_workspace

    folder = (workspace or default_workspace()).expanduser()
    with _refused(offline) as attempts:
        lines = list(_checks(folder, offline=offline))
    if offline:
        lines.append(_leaves(folder, attempts))
    if json:
        print_json(lines)
    else:
        for line in lines:
            mark, style = {True: ("ok  ", ""), False: ("FAIL", "red"), None: ("note", "yellow")}[line["ok"]]
            console().print(plain(f"{mark}  {line['check']}: {line['found']}"), style=style, markup=False)
    raise typer.Exit(1 if any(line["ok"] is False for line in lines) else 0)


def _line(check: str, ok: bool | None, found: str) -> dict[str, Any]:
    from assay.core.settings import masked

    return {"check": check, "ok": ok, "found": masked(found)}


def _leaves(folder: Path, attempts: Sequence[str]) -> dict[str, Any]:
    """Whether text leaves this machine under these settings: attempted just now, or consented to."""
    from assay.cli.config import not_agreed
    from assay.core.settings import load_settings
    from assay.models.factory import reached, receives

    settings = load_settings(folder)
    hosts = reached(settings)
    refused = not_agreed(folder, hosts)
    sent = [f"to {host} goes {'; '.join(receives(settings, host))}" for host in hosts if host not in refused]
    found = [*attempts, *sent]
    waiting = f"; nothing is sent to {', '.join(refused)} before you agree" if refused else ""
    return _line(
        "nothing leaves this machine", not found, ("; ".join(found) or "no connection was attempted") + waiting
    )


def _checks(folder: Path, *, offline: bool = False) -> Iterator[dict[str, Any]]:
    import platform
    import shutil

    from assay.cli.config import not_agreed
    from assay.core.settings import load_settings, secret
    from assay.models.factory import embedder_setting, endpoints, reached
    from assay.workspace.facade import has_workspace

    settings = load_settings(folder)
    yield _line(
        "system",
        sys.platform == "linux" or None,
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    )
    yield _guards(settings.sandbox == "require")
    addresses = [*endpoints(settings), *providers(settings)]
    yield _line("endpoints", True, ", ".join(addresses) or "none: everything is done on this machine")
    yield _line("embedder", True, embedder_setting(settings))
    tesseract = shutil.which("tesseract")
    yield _line("OCR", bool(tesseract) or None, tesseract or "tesseract is not installed; scanned pages cannot be read")
    if secret(settings.state):
        yield _line("state", *_server(secret(settings.state)))
    yield _line("index", *_index(settings, folder, offline=offline))
    if settings.blobs:
        yield _line("blobs", *_blobs(settings.blobs, folder, offline=offline))
    if has_workspace(folder):
        yield _line("permissions", *_permissions(folder))
        yield _line("documents", *_documents(folder))
    free = shutil.disk_usage(folder if folder.exists() else Path.home()).free
    yield _line("disk", free > 1_000_000_000, f"{free / 1e9:.1f} GB free")
    for found in checks(folder, settings, not_agreed(folder, reached(settings)), offline=offline):
        yield _line(*found)
    hosts = sorted(reached(settings, model=False))  # the trial run uses rules only, and costs nothing
    refused = not_agreed(folder, hosts)
    if refused:
        note = f"left out: nothing was agreed to be sent to {', '.join(refused)} (`assay config agree`)"
        yield _line("a whole round", None, note)
    else:
        yield _round(settings, hosts)


def _guards(required: bool) -> dict[str, Any]:
    """What a parser that was taken over could do here, found out by trying."""
    from assay.ingest.sandbox.process import describe_missing
    from assay.ingest.sandbox.runner import try_guards

    missing, tried = try_guards()
    done = [name for name, refused in tried.items() if not refused]
    succeeded = [f"A parser that was taken over could {', '.join(done)}."] if done else []
    found = " ".join([*describe_missing(missing), *succeeded])
    good = f"{len(tried)} things that no parser may do were tried from inside one, and all were refused"
    return _line("reading files", (False if required else None) if found else True, found or good)


def _permissions(folder: Path) -> tuple[bool | None, str]:
    """Whether other users of this machine can read the workspace."""
    from assay.core.private_files import readable_by

    who = readable_by(folder)
    if not who:
        return True, f"only you can read {folder}"
    others = "everybody on this machine" if who == "everybody" else "the group of its folder"
    return (False if who == "everybody" else None), f"{others} can read {folder}: `chmod -R go= {folder}`"


def _documents(folder: Path) -> tuple[bool | None, str]:
    """Whether the documents were read and split as they would be now."""
    from assay.core.errors import AssayError
    from assay.workspace.facade import open_workspace

    try:
        with open_workspace(folder) as opened:
            outdated = opened.documents.outdated_of_all()
    except AssayError as error:
        return False, str(error)
    return (None if outdated else True), outdated or "all were read and split as it is done now"


def _index(settings: Settings, folder: Path, *, offline: bool) -> tuple[bool | None, str]:
    """Whether the search index can be reached and written to, the versions of its parts, and what it does not promise."""
    from assay.core.errors import AssayError
    from assay.index.factory import index_engine
    from assay.workspace.stored import SCHEME

    if offline and SCHEME in settings.index:
        return None, f"{settings.index} was not tried: --offline"
    try:
        engine = index_engine(settings, folder)
        parts = [f"{name} {version}" for name, version in asyncio.run(engine.versions()).items()]
        limits = engine.limits()
    except AssayError as error:
        return False, str(error)
    return (None if limits else True), " ".join([", ".join(parts) + ".", *limits] if parts else limits)


def _blobs(place: str, folder: Path, *, offline: bool) -> tuple[bool | None, str]:
    """Whether originals can be kept there, and what the place does not promise."""
    from assay.core.errors import AssayError
    from assay.workspace.stored import is_bucket, open_blobs

    if offline and is_bucket(place):
        return None, f"{place} was not tried: --offline"
    try:
        limits = open_blobs(place, folder).check()
    except AssayError as error:
        return False, str(error)
    return (None if limits else True), " ".join([f"originals are kept in {place}.", *limits])


def _server(address: str) -> tuple[bool, str]:
    """Whether the database server can be used, and its version."""
    from assay.core.errors import AssayError
    from assay.workspace.stored import open_store

    try:
        store = open_store(address, create=False)
        with store.read() as connection:
            version = ".".join(map(str, connection.dialect.server_version_info or ()))
            name = f"PostgreSQL {version} at {connection.engine.url.host or 'this machine'}"
        store.close()
    except AssayError as error:
        return False, str(error)
    return True, name


def _round(settings: Any, agreed: Sequence[str]) -> dict[str, Any]:
    """Add a document, search it, ask about it; without a model, which is checked separately."""
    import tempfile
    import time

    from assay.models.factory import NO_MODEL
    from assay.workspace.facade import open_workspace
    from assay.workspace.stored import facts

    own = {"llm_model": NO_MODEL, "state": "", "index": "lance", "blobs": ""}  # in a place of its own

    async def tried(folder: Path) -> str:
        (folder / "note.md").write_text("# Kettle\n\nThe kettle in the pump house holds seven litres of water.\n")
        with open_workspace(folder / "workspace", create=True, **settings.model_dump() | own) as opened:
            for host in agreed:
                facts.agree(opened.store, host)
            await opened.add([folder / "note.md"])
            runs = [run async for run, _ in opened.ask("How many litres does the kettle hold?")]
        answer = runs[-1].answer
        assert answer is not None
        return answer.claims[0].words if answer.claims else ""

    began = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory() as place:
            round_trip = asyncio.run(tried(Path(place)))
    except Exception as error:  # any failure here is what the user wants to know
        return _line("a whole round", False, f"{type(error).__name__}: {error}")
    return _line(
        "a whole round", "seven litres" in round_trip, f"add, search and ask took {time.perf_counter() - began:.1f} s"
    )


@contextmanager
def _refused(wanted: bool) -> Iterator[list[str]]:
    """Refuse all connections to other machines, and record the attempts."""
    from assay.models.factory import remote_hosts

    attempts: list[str] = []
    active = wanted

    def is_local(address: Any) -> bool:
        host = address[0] if isinstance(address, tuple) else address
        named = f"[{host}]" if ":" in str(host) else host
        return isinstance(host, str) and not remote_hosts(f"http://{named}")

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if active and event in {"socket.connect", "socket.getaddrinfo", "socket.sendto"}:
            if is_local(arguments[0] if event == "socket.getaddrinfo" else arguments[1]):
                return
            attempts.append(f"{event} {arguments[1:] if event != 'socket.getaddrinfo' else arguments[:2]}")
            raise OSError("refused by assay doctor --offline")

    if wanted:
        sys.addaudithook(watch)
    try:
        yield attempts
    finally:
        active = False


CheckResult = tuple[str, bool | None, str]  # (what was checked, whether it is fine (None: a remark), the finding)


def checks(folder: Path, settings: Settings, refused: Sequence[str], *, offline: bool) -> Iterator[CheckResult]:
    """The findings for every model. `refused` are the hosts that nothing may be sent to."""
    from assay.models.factory import has_model, model_hosts, models_by_role

    if not has_model(settings):
        yield "language model", True, "none is set: answers are quotations (`assay init` sets a model)"
        return
    away = model_hosts(settings)
    for name in dict.fromkeys(name for names in models_by_role(settings).values() for name in names):
        if left_out := [host for host in away if host in refused]:
            yield f"model {name}", None, f"not tried: nothing was agreed to be sent to {', '.join(left_out)}"
        elif offline and away:
            yield f"model {name}", None, f"not tried: {', '.join(away)} is not this machine"
        else:
            yield from _asked(folder, settings, name)
        yield _priced(settings, name)
    yield "limits", True, limits(settings)


def _asked(folder: Path, settings: Settings, name: str) -> Iterator[CheckResult]:
    from assay.answer.checking.trial import describe_trial
    from assay.core.errors import AssayError
    from assay.models.capability import describe_capability
    from assay.models.factory import models_by_role
    from assay.models.llm import Role

    try:
        can, trial = asyncio.run(_found(folder, settings, name))
    except AssayError as error:
        yield f"model {name}", False, str(error)
        return
    yield f"model {name}", True, f"answers at {settings.llm_base_url}" if settings.llm_base_url else "answers"
    lines = describe_capability(can)
    if trial is not None:
        lines += describe_trial(trial)
    elif name in models_by_role(settings)[Role.check]:
        lines.append(f"As a judge: not measured, because `llm_size` says {settings.llm_size}.")
    for words in lines:
        yield f"model {name}", None if words.startswith("Note:") else True, words


async def _found(folder: Path, settings: Settings, name: str) -> tuple[Capability, JudgeTrial | None]:
    """Detect the model's capabilities again, and measure it again as a judge; stored if there is a workspace."""
    from assay.answer.checking.trial import measure_judge
    from assay.models.capability import probe
    from assay.models.factory import is_measured_as_judge, llm_for
    from assay.workspace.facade import has_workspace, open_workspace

    llm, measured = llm_for(settings, name), is_measured_as_judge(settings, name)
    if not has_workspace(folder):
        can = await probe(llm, settings.llm_timeout)
        return can, await measure_judge(llm, settings.llm_timeout, can) if measured else None
    with open_workspace(folder) as opened:
        can = await opened.models.capability(llm, name, anew=True)
        return can, await opened.models.judge_trial(llm, name, can, anew=True) if measured else None


def providers(settings: Settings) -> list[str]:
    """Providers in use that are referred to by name, without an address in the settings."""
    from assay.models.factory import is_provider, models_by_role

    names = {name for named in models_by_role(settings).values() for name in named}
    return sorted({name.partition(":")[0] for name in names if is_provider(settings, name)})


def _priced(settings: Settings, name: str) -> CheckResult:
    price = price_of(settings, name)
    if price is None:
        return (
            f"price of {name}",
            None,
            "not known: it counts by its tokens alone. Set `llm_prices` to count money as well",
        )
    return f"price of {name}", True, f"${price[0]:g} in, ${price[1]:g} out, per million tokens"


def limits(settings: Settings) -> str:
    """The budget as text; a ceiling of 0 means none."""
    question = [
        f"{settings.budget_run_calls:,} requests" if settings.budget_run_calls else "",
        f"{settings.budget_run_tokens:,} tokens" if settings.budget_run_tokens else "",
        f"${settings.budget_run_money:g}" if settings.budget_run_money else "no ceiling on money",
        f"{settings.budget_run_seconds:g} s",
    ]
    day = [
        f"{settings.budget_day_tokens:,} tokens" if settings.budget_day_tokens else "",
        f"${settings.budget_day_money:g}" if settings.budget_day_money else "",
    ]
    text = f"a question: {', '.join(part for part in question if part)}"
    return f"{text}; a day: {', '.join(part for part in day if part) or 'no ceiling'}"
