"""`assay audit`: sign the record, print the public key, and erase records past retention."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.cli.options import Json, Workspace, plain, print_json

app = typer.Typer(help="The record of all runs: sealed, kept, erased when it is old.", no_args_is_help=True)


@app.command()
def seal(
    accept_erasures: Annotated[
        bool,
        typer.Option(
            "--accept-erasures", help="Also sign notes of erasures that an earlier version of Assay wrote unsigned."
        ),
    ] = False,
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Sign the head of all records, and write it to the second place where one is set.

    A server does so by itself, every `audit_minutes` and when it stops.
    """
    from assay.core.codec import to_json
    from assay.governance.audit.witness import audit_context
    from assay.governance.audit.witness import seal as sign
    from assay.workspace.facade import open_workspace

    with open_workspace(workspace) as opened:
        context = audit_context(opened.store, opened.path, opened.settings)
        made = sign(context, accept_erasures=accept_erasures)
    if json:
        print_json(to_json(made) if made else None)
        return
    if made is None:
        typer.echo("There are no records yet; nothing was signed.")
        return
    where = (
        f" and in {context.witness_file}"
        if context.witness_file
        else "; set `audit_copy`, for this alone finds accidents only"
    )
    typer.echo(plain(f"Signed up to record {made.n}, at {made.at}: in the workspace{where}."))


@app.command()
def key(workspace: Workspace = None) -> None:
    """Print the public key that seals and bundles are signed with. It is made when there is none."""
    from assay.governance.audit.witness import audit_context
    from assay.workspace.facade import open_workspace

    with open_workspace(workspace) as opened:
        typer.echo(audit_context(opened.store, opened.path, opened.settings).signer.public)


@app.command()
def log(workspace: Workspace = None, json: Json = False) -> None:
    """List who was given or denied access, changes of accounts, groups and keys, and what was erased."""
    from assay.core.codec import to_json
    from assay.core.events.describe import describe
    from assay.workspace.facade import open_workspace

    with open_workspace(workspace) as opened:
        found = opened.records.log()
    if json:
        print_json([{"at": at, "kind": type(event).__name__, **to_json(event)} for at, event in found])
        return
    if not found:
        typer.echo("No change of access or accounts is on record, and no erasure.")
    for at, event in found:
        line = describe(event)
        typer.echo(plain(f"{at[:16].replace('T', ' ')}  {line.title}: {line.line}"))


@app.command()
def retention(
    days: Annotated[
        int | None, typer.Option("--days", min=0, help="Keep so many days. Default: the setting `retention_days`.")
    ] = None,
    shorter: Annotated[bool, typer.Option("--shorter", help="Less than six months is meant.")] = False,
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Erase what runs recorded that are older than that. The chain stays, with a note on what went.

    A server does so by itself, once a day.
    """
    from assay.core.codec import to_json
    from assay.governance.audit.retention import erase_old
    from assay.governance.audit.witness import erasure_signer
    from assay.workspace.facade import open_workspace

    with open_workspace(workspace) as opened:
        kept = opened.settings.retention_days if days is None else days
        sign = erasure_signer(opened.path, opened.settings)
        gone = erase_old(opened.store, kept, opened.principal.id, sign, shorter=shorter)
    if json:
        print_json(to_json(gone))
        return
    if not kept:
        typer.echo("Everything is kept: 0 days is no limit.")
        return
    if not gone.runs:
        typer.echo(f"Nothing was erased: no run ended before {gone.before[:10]}.")
        return
    typer.echo(
        f"Erased what runs recorded that ended before {gone.before[:10]}: {gone.runs} runs, {gone.payloads} records."
    )
