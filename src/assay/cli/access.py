"""`assay access`: read access to a knowledge base, a folder or pattern of locations in it, or a single document. Reading needs
a grant, changing grants ownership."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.cli.acting import check_owner_option, open_workspace
from assay.cli.options import Json, Workspace
from assay.cli.terminal import picked, print_result, say, wait_for, whole
from assay.core.access import LOCAL, Principal
from assay.core.errors import UserError
from assay.workspace.facade import Workspace as Opened
from assay.workspace.stored import GROUP, USER, check_grantee, grant_of, is_pattern
from assay.workspace.types import DEFAULT_BASE, Access

app = typer.Typer(no_args_is_help=True)
SOURCE = "A document, as `assay sources` names it, or a pattern such as 'hr/**' or '*.xlsx'"
Of = Annotated[str, typer.Argument(help=f"{SOURCE}; none: the whole of --base.")]
What = Annotated[
    list[str],
    typer.Argument(
        metavar="[SOURCE] WHO...", help=f"{SOURCE}; none: the whole of --base. Then user:NAME or group:NAME."
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
        if is_pattern(source):
            found = seen.people.pattern_access(_pattern_base(base), whole(source))
        elif source:
            found = seen.people.document_access(_document(seen, source, base))
        else:
            found = seen.people.base_access(_base(base))
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
def only(
    what: Annotated[
        list[str],
        typer.Argument(metavar="PATTERN WHO...", help="Such as 'hr/**' or '*.xlsx'; then user:NAME or group:NAME."),
    ],
    base: Within = "",
    owner: Owner = "",
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Let only these people or groups, and the owner, read what fits a pattern of locations, now and later."""
    pattern, names = _names_apart(what)
    if not is_pattern(pattern):
        raise UserError(
            "Name a pattern of locations, such as 'hr/**'. For one document there are `take` and `add --only-for`."
        )
    with open_workspace(workspace) as opened:
        seen = _seen(opened, owner)
        found = wait_for(seen.people.restrict(_pattern_base(base), pattern, names, opened.principal.id))
        for name in names:
            warn_if_unknown(opened, name)
    _print_access(found, json)


@app.command()
def held(
    sources: Annotated[
        list[str] | None, typer.Argument(help="Documents, as `assay sources` names them. Default: all that are held.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="They stay restricted.")] = False,
    open_: Annotated[bool, typer.Option("--open", help="Whoever may read their knowledge base may read them.")] = False,
    base: Within = "",
    owner: Owner = "",
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """List documents that may be a restricted one in another form, and are restricted until you decide; or decide."""
    if keep and open_:
        raise UserError("Decide for one of the two: --keep or --open.")
    with open_workspace(workspace) as opened:
        seen = _seen(opened, owner)
        scope = seen.scope([whole(base)] if base else [])
        named = [each for name in sources or () for each in seen.documents.named(whole(name), scope)]
        entries = named if sources else seen.documents.listing([whole(base)] if base else [])
        why = seen.people.held(entries)
        for document in why if keep or open_ else ():
            wait_for(seen.people.decide(document, keep, opened.principal.id))
    decided = {"decided": "kept" if keep else "opened"} if keep or open_ else {}
    lines = [{"id": each.id, "name": each.name, "why": why[each.id], **decided} for each in entries if each.id in why]
    words = "stays restricted." if keep else "is open to the readers of its knowledge base."
    said = (f"{each['name']} {words}" if decided else f"{each['name']}: {each['why']}" for each in lines)
    print_result(json, lines, said if lines else ["No document is held."])


@app.command()
def reset(
    source: Annotated[str, typer.Argument(help=f"{SOURCE}.")],
    base: Within = "",
    owner: Owner = "",
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Have a document, or what fits a pattern, read by whoever reads its knowledge base, and by nobody else."""
    with open_workspace(workspace) as opened:
        seen, by = _seen(opened, owner), opened.principal.id
        if is_pattern(source):
            found = wait_for(seen.people.lift(_pattern_base(base), whole(source), by))
        else:
            found = wait_for(seen.people.reset_document_access(_document(seen, source, base), by))
    _print_access(found, json)


def _changed(what: list[str], base: str, owner: str, workspace: Workspace, json: bool, *, may: bool) -> None:
    source, names = _names_apart(what)
    with open_workspace(workspace) as opened:
        seen, by = _seen(opened, owner), opened.principal.id
        found: Access | None = None
        for name in names:
            if is_pattern(source):
                before = seen.people.pattern_access(_pattern_base(base), source).readers
                readers = [*before, name] if may else [each for each in before if each != name]
                found = wait_for(seen.people.restrict(_pattern_base(base), source, readers, by))
            elif source:
                document = _document(seen, source, base)
                found = wait_for(seen.people.share_document(document, name, may, by))
            else:
                found = seen.people.share_base(_base(base), name, may, by)
            if may:
                warn_if_unknown(opened, name)
    assert found is not None
    _print_access(found, json)


def _names_apart(what: list[str]) -> tuple[str, list[str]]:
    """A document or pattern, or nothing; and whom it is for."""
    words = [whole(each) for each in what]
    names = [each for each in words if each.startswith((USER, GROUP))]
    sources = [each for each in words if each not in names]
    if not names or len(sources) > 1:
        raise UserError("Name one document, or --base, and whoever it is for: user:NAME or group:NAME.")
    return next(iter(sources), ""), names


def _pattern_base(name: str) -> str:
    """The knowledge base of a pattern."""
    return whole(name) if name else DEFAULT_BASE


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
    under = f"It fits {access.patterns[0]}, which has a list of its own." if access.patterns else ""
    open_ = under or "Whoever may read its knowledge base may read it."
    words = "" if access.what == "base" else "It has a list of its own." if access.own else open_
    restricted = f"Restricted in it: {', '.join(access.patterns)}" if access.what == "base" and access.patterns else ""
    owner, *others = access.readers
    more = {name: value for name in ("patterns", "held") if (value := getattr(access, name))}
    print_result(
        json,
        {access.what: access.name, **picked(access, "id owner own"), "read_by": access.readers, **more},
        filter(None, [words, access.held, f"{owner} (owner)", *others, restricted]),
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
