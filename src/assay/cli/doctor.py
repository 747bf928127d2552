"""`assay doctor`: checks whether this machine is suitable and whether any data leaves it."""

from __future__ import annotations

import asyncio
import functools
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli.acting import open_workspace
from assay.cli.config import not_agreed
from assay.cli.follow import price_of
from assay.cli.options import Json, Workspace, workspace_folder
from assay.cli.terminal import console, plain, print_json
from assay.core.errors import AssayError
from assay.core.private_files import readable_by
from assay.core.settings import Settings, load_settings, masked, secret
from assay.index.factory import index_engine
from assay.ingest.sandbox.process import describe_missing
from assay.ingest.sandbox.runner import try_guards
from assay.models.capability import Capability, Checkable, describe_capability, probe
from assay.models.factory import (
    BUNDLED,
    NO_MODEL,
    embedder_setting,
    endpoints,
    has_model,
    is_measured_as_judge,
    is_provider,
    llm_for,
    model_hosts,
    models_by_role,
    reached,
    receives,
    remote_hosts,
)
from assay.models.llm import Role
from assay.workspace.facade import has_workspace
from assay.workspace.judge_trial import JudgeTrial, describe_trial, is_small, measure_judge
from assay.workspace.stored import SCHEME, is_bucket, open_blobs, open_store

ON_WINDOWS = "here files are not closed to other accounts, and work of a process that died waits until its lease ends"


def doctor(
    workspace: Workspace = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Do the whole round with every outgoing connection refused.")
    ] = False,
    json: Json = False,
) -> None:
    """Check this machine: processor, parsers, limits, endpoints, models; and try a whole round in a throw-away workspace."""
    folder = workspace_folder(workspace)
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
    return {"check": check, "ok": ok, "found": masked(found)}


def _leaves(folder: Path, attempts: Sequence[str]) -> dict[str, Any]:
    """Whether text leaves this machine under these settings: attempted just now, or consented to."""
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
    settings = load_settings(folder)
    yield _line("system", *_system())
    yield _guards(settings.sandbox == "require")
    addresses = [*endpoints(settings), *providers(settings)]
    yield _line("endpoints", True, ", ".join(addresses) or "none: everything is done on this machine")
    yield _line("embedder", True, embedder_setting(settings) + _gpu(settings))
    yield _line("OCR", *_ocr(settings.ocr_languages))
    if secret(settings.state):
        yield _line("state", *_server(secret(settings.state)))
    yield _line("index", *_index(settings, folder, offline=offline))
    if settings.blobs:
        yield _line("blobs", *_blobs(settings.blobs, folder, offline=offline))
    if has_workspace(folder):
        yield _line("permissions", *_permissions(folder))
        yield _line("documents", *_documents(folder))
        yield _line("originals", *_originals(folder, settings, offline=offline))
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


def _gpu(settings: Settings) -> str:
    if settings.embedder not in BUNDLED:
        return ""
    from assay.models.local.bert_torch import torch_on_gpu

    torch = torch_on_gpu()
    return f", passages on {torch.cuda.get_device_name()}" if torch else ""


def _ocr(languages: str) -> tuple[bool | None, str]:
    from assay.ingest.pdf.ocr import find_engine

    if engine := find_engine(languages):
        return True, engine
    return None, "not installed: pip install 'assay[ocr]'; pages that are pictures are not read"


def _system() -> Finding:
    found = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    if sys.platform == "linux":
        return True, found
    return None, f"{found}: Assay is tested on Linux only{'; ' + ON_WINDOWS if sys.platform == 'win32' else ''}"


def _guards(required: bool) -> dict[str, Any]:
    """What a parser that was taken over could do here, found out by trying."""
    missing, tried = try_guards()
    done = [name for name, refused in tried.items() if not refused]
    succeeded = [f"A parser that was taken over could {', '.join(done)}."] if done else []
    found = " ".join([*describe_missing(missing), *succeeded])
    good = f"{len(tried)} things that no parser may do were tried from inside one, and all were refused"
    return _line("reading files", (False if required else None) if found else True, found or good)


def _permissions(folder: Path) -> Finding:
    """Whether other users of this machine can read the workspace."""
    if sys.platform == "win32":
        return None, f"not tried: who can read {folder} is in its properties"
    who = readable_by(folder)
    if not who:
        return True, f"only you can read {folder}"
    others = "everybody on this machine" if who == "everybody" else "the group of its folder"
    return (False if who == "everybody" else None), f"{others} can read {folder}: `chmod -R go= {folder}`"


Finding = tuple[bool | None, str]  # whether it is fine (None: a remark), and the words


def _or_error(find: Callable[..., Finding]) -> Callable[..., Finding]:
    """An error is what was found, too."""

    @functools.wraps(find)
    def found(*given: Any, **more: Any) -> Finding:
        try:
            return find(*given, **more)
        except AssayError as error:
            return False, str(error)

    return found


@_or_error
def _documents(folder: Path) -> Finding:
    """Whether the documents were read and split as they would be now."""
    with open_workspace(folder) as opened:
        outdated = opened.documents.outdated_of_all()
    return (None if outdated else True), outdated or "all were read and split as it is done now"


@_or_error
def _index(settings: Settings, folder: Path, *, offline: bool) -> Finding:
    """Whether the search index can be reached and written to, the versions of its parts, and what it does not promise."""
    if offline and SCHEME in settings.index:
        return None, f"{settings.index} was not tried: --offline"
    engine = index_engine(settings, folder)
    parts = [f"{name} {version}" for name, version in asyncio.run(engine.versions()).items()]
    limits = engine.limits()
    return (None if limits else True), " ".join([", ".join(parts) + ".", *limits] if parts else limits)


@_or_error
def _blobs(place: str, folder: Path, *, offline: bool) -> Finding:
    """Whether originals can be kept there, and what the place does not promise."""
    if offline and is_bucket(place):
        return None, f"{place} was not tried: --offline"
    if has_workspace(folder):
        with open_workspace(folder) as opened:
            limits = opened.context.blobs.check()
    else:
        limits = open_blobs(place, folder).check()
    return (None if limits else True), " ".join([f"originals are kept in {place}.", *limits])


@_or_error
def _originals(folder: Path, settings: Settings, *, offline: bool) -> Finding:
    """Whether the stored bytes of every document are there."""
    if offline and is_bucket(settings.blobs):
        return None, f"not looked for in {settings.blobs}: --offline"
    with open_workspace(folder) as opened:
        missing = opened.records.missing_originals()
    if not missing:
        return True, "the stored bytes of every document are there"
    return (
        False,
        f"{len(missing)} are missing, of {', '.join(missing[:3])}. Add these files again, or restore a backup.",
    )


@_or_error
def _server(address: str) -> Finding:
    """Whether the database server can be used, and its version."""
    store = open_store(address, create=False)
    with store.read() as connection:
        version = ".".join(map(str, connection.dialect.server_version_info or ()))
        name = f"PostgreSQL {version} at {connection.engine.url.host or 'this machine'}"
    store.close()
    return True, name


def _round(settings: Any, agreed: Sequence[str]) -> dict[str, Any]:
    """Add a document, search it, ask about it; without a model, which is checked separately."""
    own = {"llm_model": NO_MODEL, "state": "", "index": "lance", "blobs": ""}  # in a place of its own

    async def tried(folder: Path) -> str:
        (folder / "note.md").write_text("# Kettle\n\nThe kettle in the pump house holds seven litres of water.\n")
        with open_workspace(folder / "workspace", create=True, **settings.model_dump() | own) as opened:
            for host in agreed:
                opened.setup.agree(host)
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
    if name in models_by_role(settings)[Role.write] and is_small(settings.llm_size, Role.write, can, trial):
        lines.append("Note: it is too small to write answers. Rules choose quotations, as without a model.")
    for words in lines:
        yield f"model {name}", None if words.startswith("Note:") else True, words


async def _found(folder: Path, settings: Settings, name: str) -> tuple[Capability, JudgeTrial | None]:
    """Detect the model's capabilities again, and measure it again as a judge; stored if there is a workspace."""
    llm, measured = llm_for(settings, name), is_measured_as_judge(settings, name)
    if isinstance(llm, Checkable):
        await llm.check()
    if not has_workspace(folder):
        can = await probe(llm, settings.llm_timeout)
        return can, await measure_judge(llm, settings.llm_timeout, can) if measured else None
    with open_workspace(folder) as opened:
        can = await opened.models.capability(llm, name, anew=True)
        return can, await opened.models.judge_trial(llm, name, can, anew=True) if measured else None


def providers(settings: Settings) -> list[str]:
    """Providers in use that are referred to by name, without an address in the settings."""
    names = {name for named in models_by_role(settings).values() for name in named}
    return sorted({name.partition(":")[0] for name in names if is_provider(settings, name)})


def _priced(settings: Settings, name: str) -> CheckResult:
    price = price_of(settings, name)
    unknown = "not known: it counts by its tokens alone. Set `llm_prices` to count money as well"
    words = f"${price[0]:g} in, ${price[1]:g} out, per million tokens" if price else unknown
    return f"price of {name}", True if price else None, words


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
    a_question, a_day = (", ".join(filter(None, parts)) for parts in (question, day))
    return f"a question: {a_question}; a day: {a_day or 'no ceiling'}"
