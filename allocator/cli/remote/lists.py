"""Commands that list agents, frameworks and roles."""

import sys
from functools import partial
from typing import Annotated, TypeAlias

import typer
from google.protobuf.message import Message

from allocator.cli.remote import completing, watching
from allocator.cli.remote.connection import Sidecar, printed_by, remote
from allocator.cli.remote.options import RoleBelow
from allocator.cli.remote.output import Form, plain
from allocator.cli.remote.watching import INTERVAL_S, Interval

LIMIT = 100
LIMIT_MAX = 10_000

Limit: TypeAlias = Annotated[
    int,
    typer.Option(min=1, max=LIMIT_MAX, help="Maximum number of rows; the rest is only counted."),
]
Wide: TypeAlias = Annotated[bool, typer.Option("--wide", help="All columns.")]
Watch: TypeAlias = Annotated[
    bool,
    typer.Option("--watch", "-w", help="Redraw the list repeatedly, until q or Ctrl-C."),
]

_LISTS = "allocator.cli.render.list_tables"


def register(app: typer.Typer) -> None:
    for function in (agents, frameworks, roles):
        name = function.__name__
        show, names = (printed_by(_LISTS, each, name) for each in ("show", "names"))
        remote(app, name, show, names=names)(function)


def agents(
    sidecar: Sidecar,
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Ids or hosts; default: all.", autocompletion=completing.agents),
    ] = None,
    role: Annotated[
        str,
        typer.Option(
            help="Only agents on which this role, or a descendant, holds resources.",
            autocompletion=completing.roles,
        ),
    ] = "",
    framework: Annotated[
        str,
        typer.Option(
            help="Only agents on which this framework (id or name) holds resources.",
            autocompletion=completing.frameworks,
        ),
    ] = "",
    attributes: Annotated[
        str, typer.Option(help="Only agents that match these clauses, as in 'zone=a|b; ssd'.")
    ] = "",
    state: Annotated[
        str,
        typer.Option(
            help="Only agents in this state: active, inactive, unlisted, drained, or maintenance"
            " (scheduled).",
            autocompletion=completing.among(
                "active", "inactive", "unlisted", "drained", "maintenance"
            ),
        ),
    ] = "",
    limit: Limit = LIMIT,
    wide: Wide = False,
    watch: Watch = False,
    interval: Interval = INTERVAL_S,
) -> Message | None:
    """List agents: their free, offered and used resources, and the frameworks that hold them."""
    return _listed(
        sidecar,
        "agents",
        wide,
        interval if watch else None,
        names=names or (),
        role=role,
        framework=framework,
        attributes=attributes,
        state=state,
        limit=limit,
    )


def frameworks(
    sidecar: Sidecar,
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Ids or names; default: all.", autocompletion=completing.frameworks),
    ] = None,
    role: RoleBelow = "",
    agent: Annotated[
        str,
        typer.Option(
            help="Only frameworks that hold resources on this agent (id or host).",
            autocompletion=completing.agents,
        ),
    ] = "",
    state: Annotated[
        str,
        typer.Option(
            help="Only frameworks in this state: active, inactive, suppressed, paused or waiting.",
            autocompletion=completing.among(
                "active", "inactive", "suppressed", "paused", "waiting"
            ),
        ),
    ] = "",
    limit: Limit = LIMIT,
    wide: Wide = False,
    watch: Watch = False,
    interval: Interval = INTERVAL_S,
) -> Message | None:
    """List frameworks: their roles, what they hold, and what one task needs."""
    return _listed(
        sidecar,
        "frameworks",
        wide,
        interval if watch else None,
        names=names or (),
        role=role,
        agent=agent,
        state=state,
        limit=limit,
    )


def roles(
    sidecar: Sidecar,
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Paths; default: all.", autocompletion=completing.roles),
    ] = None,
    role: RoleBelow = "",
    limit: Limit = LIMIT,
    wide: Wide = False,
    watch: Watch = False,
    interval: Interval = INTERVAL_S,
) -> Message | None:
    """List roles: weight, guarantee, limit, and what their frameworks hold."""
    every_s = interval if watch else None
    return _listed(sidecar, "roles", wide, every_s, names=names or (), role=role, limit=limit)


def _listed(
    sidecar: Sidecar, what: str, wide: bool, every_s: float | None, **selected: object
) -> Message | None:
    """Ask for a list; with `every_s`, the seconds between two requests, draw it repeatedly."""

    def look() -> Message:
        response: Message = sidecar.ask(f"List{what.capitalize()}", **selected)
        return response

    if every_s is None:
        found = look()
        if not getattr(found, what) and not sidecar.ask("GetStatus").in_session:
            text = "no master has a session with this sidecar, which therefore knows no cluster"
            typer.echo(f"note: {text}", err=True)
        return found
    if sidecar.form not in {None, Form.WIDE} or not sys.stdout.isatty():
        text = "--watch draws a table on a terminal; leave it out, and repeat the command"
        raise typer.BadParameter(text)
    from allocator.cli.render.list_tables import watched

    watching.watch(lambda: plain(look()), partial(watched, what=what, wide=wide), every_s)
    return None
