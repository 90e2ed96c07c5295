"""Commands that list agents, frameworks and roles."""

from typing import Annotated, TypeAlias

import typer
from google.protobuf.message import Message

from allocator.cli.remote import completing
from allocator.cli.remote.connection import Sidecar, printed_by, remote
from allocator.cli.remote.options import RoleBelow

LIMIT = 100
LIMIT_MAX = 10_000

Limit: TypeAlias = Annotated[
    int,
    typer.Option(min=1, max=LIMIT_MAX, help="Maximum number of rows; the rest is only counted."),
]
Wide: TypeAlias = Annotated[bool, typer.Option("--wide", help="All columns.")]

_LISTS = "allocator.cli.render.list_tables"


def register(app: typer.Typer) -> None:
    listed = ((agents, "agent_ids"), (frameworks, "framework_ids"), (roles, "role_paths"))
    for function, names in listed:
        name = function.__name__
        # `as_it_is` selects nothing, but with an `arrange` the printing function gets the options.
        show, keep = printed_by(_LISTS, name), printed_by(_LISTS, "as_it_is")
        remote(app, name, show, keep, printed_by(_LISTS, names))(function)


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
) -> Message:
    """List agents: their free, offered and used resources, and the frameworks that hold them."""
    del wide  # only affects printing
    return sidecar.ask(
        "ListAgents",
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
) -> Message:
    """List frameworks: their roles, what they hold, and what one task needs."""
    del wide  # only affects printing
    return sidecar.ask(
        "ListFrameworks", names=names or (), role=role, agent=agent, state=state, limit=limit
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
) -> Message:
    """List roles: weight, guarantee, limit, and what their frameworks hold."""
    del wide  # only affects printing
    return sidecar.ask("ListRoles", names=names or (), role=role, limit=limit)
