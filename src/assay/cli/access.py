"""`assay access`: read access to a knowledge base or a single document. Reading needs a grant, changing grants
ownership."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.cli.acting import check_owner_option, open_workspace
from assay.cli.options import Json, Workspace
from assay.cli.terminal import picked, print_result, say, wait_for, whole
from assay.core.access import LOCAL, Principal
from assay.core.errors import UserError
from assay.workspace.facade import Workspace as Opened
from assay.workspace.stored import GROUP, USER, check_grantee, grant_of
from assay.workspace.types import Access

app = typer.Typer(no_args_is_help=True)
Of = Annotated[str, typer.Argument(help="A document, as `assay sources` names it; none: the whole of --base.")]
What = Annotated[
    list[str],
    typer.Argument(
        metavar="[SOURCE] WHO...", help="A document, or none for the whole of --base; then user:NAME or group:NAME."
    ),
]
Within = Annotated[
    str, typer.Option("--base", "-b", help="A knowledge base: the whole of it, or where the document is.")
]
Owner = Annotated[
    str, typer.Option("--owner", metavar="WHO", help="Whose it is: a user's name, or group:NAME. Default: your own.")
]


@app.command()
def show(
    source: Of = "", base: Within = "", owner: Owner = "", workspace: Workspace = None, json: Json = False
) -> None:
    """Say who may read a knowledge base or a document."""
    with open_workspace(workspace) as opened:
        seen = _seen(opened, owner)
        document = _document(seen, source, base) if source else ""
        found = seen.people.document_access(document) if document else seen.people.base_access(_base(base))
    _print_access(found, json)


@app.command()
def give(what: What, base: Within = "", owner: Owner = "", workspace: Workspace = None, json: Json = False) -> None:
    """Let people or groups read a knowledge base or a document. It holds at once."""
    _changed(what, base, owner, workspace, json, may=True)


@app.command()
def take(what: What, base: Within = "", owner: Owner = "", workspace: Workspace = None, json: Json = False) -> None:
    """Take access away: from searches, from runs that are under way, and from old runs. It holds at once."""
    _changed(what, base, owner, workspace, json, may=False)


@app.command()
def reset(
    source: Annotated[str, typer.Argument(help="A document, as `assay sources` names it.")],
    base: Within = "",
    owner: Owner = "",
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Have a document read by whoever reads its knowledge base, and by nobody else."""
    with open_workspace(workspace) as opened:
        seen = _seen(opened, owner)
        found = wait_for(seen.people.reset_document_access(_document(seen, source, base), opened.principal.id))
    _print_access(found, json)


def _changed(what: list[str], base: str, owner: str, workspace: Workspace, json: bool, *, may: bool) -> None:
    words = [whole(each) for each in what]
    names = [each for each in words if each.startswith((USER, GROUP))]
    sources = [each for each in words if each not in names]
    if not names or len(sources) > 1:
        raise UserError("Name one document, or --base, and whoever it is for: user:NAME or group:NAME.")
    with open_workspace(workspace) as opened:
        seen, by = _seen(opened, owner), opened.principal.id
        found: Access | None = None
        for name in names:
            if sources:
                document = _document(seen, sources[0], base)
                found = wait_for(seen.people.share_document(document, name, may, by))
            else:
                found = seen.people.share_base(_base(base), name, may, by)
            if may:
                warn_if_unknown(opened, name)
    assert found is not None
    _print_access(found, json)


def _seen(opened: Opened, owner: str) -> Opened:
    """The workspace as the owner sees it."""
    check_owner_option(owner)
    name = whole(owner)
    group = Principal("", frozenset({name.removeprefix(GROUP)}))
    return opened.for_principal(group if name.startswith(GROUP) else Principal(name)) if owner else opened


def _base(name: str) -> str:
    if not name:
        raise UserError("Name a document, or a knowledge base with --base.")
    return whole(name)


def _document(seen: Opened, source: str, base: str) -> str:
    """A single document: an ambiguous name is rejected, since access would change for several."""
    found = seen.documents.named(whole(source), seen.scope([whole(base)] if base else []))
    if len(found) > 1:
        raise UserError(
            f"{len(found)} documents go by the name {source!r}. Give the id of one: `assay sources --json` has them."
        )
    return found[0].id


def _print_access(access: Access, json: bool) -> None:
    words = "It has a list of its own." if access.own else "Whoever may read its knowledge base may read it."
    owner, *others = access.readers
    print_result(
        json,
        {access.what: access.name, **picked(access, "id owner own"), "read_by": access.readers},
        [*([words] if access.what == "document" else []), f"{owner} (owner)", *others],
    )


def share(
    name: Annotated[str, typer.Argument(help="The knowledge base's name.")],
    with_: Annotated[
        list[str] | None, typer.Option("--with", metavar="WHO", help="user:NAME or group:NAME. May be repeated.")
    ] = None,
    stop: Annotated[bool, typer.Option("--stop", help="Share it with them no longer.")] = False,
    owner: Owner = "",
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Let people or groups read a knowledge base; without --with, say who does."""
    with open_workspace(workspace) as opened:
        seen = _seen(opened, owner)
        base = seen.scope().named(whole(name))
        if not seen.principal.owns(base):
            raise UserError(f"The knowledge base {base.name!r} is not yours to change.")
        if stop and not with_:
            raise UserError("Say with whom it is no longer shared: --with user:NAME or --with group:NAME.")
        for who in map(whole, with_ or ()):
            seen.people.share_base(base.name, who, not stop, opened.principal.id)
            if not stop:
                warn_if_unknown(opened, who)
        readers = opened.people.readers_of_base(base)
    lines = (f"{who}{' (owner)' if who == grant_of(base) else ''}" for who in readers)
    print_result(json, {"base": base.name, "owner": base.owner, "read_by": readers}, lines)


def warn_if_unknown(opened: Opened, who: str) -> None:
    """Warn about an unknown name: it may be a typo, or a user that a proxy will name later. What names nobody is refused."""
    check_grantee(who)
    kind, _, name = who.partition(":")
    everybody = opened.people.listing()
    groups = {group for each in everybody for group in each.groups}
    known = groups if kind == "group" else {LOCAL.id, *(each.name for each in everybody)}
    if name not in known:
        say(f"Note: there is no {kind} called {name} here yet.")
