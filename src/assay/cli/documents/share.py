"""`assay base share`: read access to a knowledge base. Reading needs a grant, adding documents ownership."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import Json, Workspace, console, plain, print_json, whole
from assay.cli.view.dialogue import say

if TYPE_CHECKING:
    from assay.core.access import Principal
    from assay.store.database import Store


def share(
    name: Annotated[str, typer.Argument(help="The knowledge base's name.")],
    with_: Annotated[
        list[str] | None, typer.Option("--with", metavar="WHO", help="user:NAME or group:NAME. May be repeated.")
    ] = None,
    stop: Annotated[bool, typer.Option("--stop", help="Share it with them no longer.")] = False,
    owner: Annotated[
        str, typer.Option("--owner", metavar="WHO", help="Whose base: a user's name, or group:NAME. Default: your own.")
    ] = "",
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Let people or groups read a knowledge base; without --with, say who does."""
    from assay.cli.acting import check_owner_option, open_workspace
    from assay.core.errors import UserError
    from assay.store.access import grants

    check_owner_option(owner)
    with open_workspace(workspace) as opened:
        seen = opened.for_principal(owner_named(whole(owner))) if owner else opened
        base = seen.scope().named(whole(name))
        if not seen.principal.owns(base):
            raise UserError(f"The knowledge base {base.name!r} is not yours to change.")
        if stop and not with_:
            raise UserError("Say with whom it is no longer shared: --with user:NAME or --with group:NAME.")
        for who in map(whole, with_ or ()):
            seen.people.share_base(base.name, who, not stop, opened.principal.id)
            if not stop:
                warn_if_unknown(opened.store, who)
        readers = grants.shared_with(opened.store, base)
    if json:
        print_json({"base": base.name, "owner": base.owner, "read_by": readers})
        return
    for who in readers:
        console().print(plain(f"{who}{' (owner)' if who == grants.grant_of(base) else ''}"), markup=False)


def owner_named(owner: str) -> Principal:
    from assay.core.access import Principal
    from assay.store.access.grants import GROUP

    return Principal("", frozenset({owner.removeprefix(GROUP)})) if owner.startswith(GROUP) else Principal(owner)


def warn_if_unknown(store: Store, who: str) -> None:
    """Warn about an unknown name: it may be a typo, or a user that a proxy will name later. What names nobody is refused."""
    from assay.core.access import LOCAL
    from assay.store.access import grants, members

    grants.check_grantee(who)
    kind, _, name = who.partition(":")
    everybody = members.listing(store)
    groups = {group for each in everybody for group in each.groups}
    known = groups if kind == "group" else {LOCAL.id, *(each.name for each in everybody)}
    if name not in known:
        say(f"Note: there is no {kind} called {name} here yet.")
