"""Tables of agents, frameworks and roles, and their names for use in other commands."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from allocator.cli.render.terminal import (
    Columns,
    amounts,
    figure,
    holders_of,
    host_of,
    if_any,
    in_words,
    percent,
    print_rows,
    say,
    screen,
)
from allocator.plain import counted

if TYPE_CHECKING:
    from rich.console import ConsoleDimensions, Group


def show(data: dict[str, Any], what: str, *, wide: bool = False, **_options: object) -> None:
    """Print a list; `what`: its name in the answer and in `LISTS`."""
    columns, drop = LISTS[what].table(wide=wide)
    print_rows(columns, data[what], f"no {what}", drop, whole=wide)
    if data["left_out"]:
        say(_left_out(data, what))


def names(data: dict[str, Any], what: str) -> Iterator[str]:
    """Yield names that other commands accept.

    Warns on standard error if some are missing, because a script may read the names.
    """
    yield from (each[LISTS[what].name] for each in data[what])
    if data["left_out"]:
        typer.echo(f"warning: {_left_out(data, what)}", err=True)


def watched(
    data: dict[str, Any], problem: str, size: "ConsoleDimensions", *, what: str, wide: bool
) -> "Group":
    """Make a screen of a list; `problem`: why it is not up to date, if so."""
    left_out = [_left_out(data, what)] if data["left_out"] else []
    columns, drop = LISTS[what].table(wide=wide)
    return screen([*filter(None, [problem]), *left_out], columns, data[what], drop, size)


def _left_out(data: dict[str, Any], what: str) -> str:
    return f"not shown: {counted(data['left_out'], what[:-1])}; --limit shows more"


def _states(each: dict[str, Any]) -> str:
    return ",".join(each["states"])


def _attributes(agent: dict[str, Any]) -> str:
    places = {name: agent[name] for name in ("region", "zone") if agent[name]}
    pairs = {**places, **agent["attributes"]}.items()
    return ";".join(f"{name}={value}" if value else name for name, value in pairs)


def _role_paths(framework: dict[str, Any]) -> str:
    more = framework["role_count"] - len(framework["roles"])
    paths = [each["role"] for each in framework["roles"]]
    return ", ".join([*paths, f"and {more} more"] if more else paths)


def _needs(framework: dict[str, Any]) -> str:
    found = (in_words(each["demand"]) or "unknown" for each in framework["roles"])
    return ", ".join(dict.fromkeys(found))


def _name(framework: dict[str, Any]) -> str:
    return str(framework["name"] or framework["framework_id"])


def _paused(role: dict[str, Any]) -> str:
    return "paused" if role["paused"] else ""


class Listed(NamedTuple):
    """How a list is shown.

    `drop`: columns that a narrow terminal omits, the least important first.
    `name`: the field with the name that other commands accept.
    """

    name: str
    columns: Columns
    every_column: Columns
    drop: tuple[str, ...]

    def table(self, *, wide: bool) -> tuple[Columns, tuple[str, ...]]:
        return (self.every_column, ()) if wide else (self.columns, self.drop)


_AGENTS: Columns = {
    "=agent": host_of,
    "state": _states,
    ">held": percent("held_share"),
    "free": amounts("free"),
    ">frameworks": "frameworks",
}

_AGENTS_WIDE: Columns = {
    "id": "agent_id",
    "host": "hostname",
    "attributes": _attributes,
    "state": _states,
    ">held": percent("held_share"),
    "total": amounts("total"),
    "free": amounts("free"),
    "offered": amounts("offered"),
    "used": amounts("used"),
    ">frameworks": "frameworks",
    "held by": holders_of,
}

_FRAMEWORKS: Columns = {
    "framework": _name,
    "roles": _role_paths,
    "state": _states,
    "held": amounts("held"),
    ">waited": if_any("waited_cycles"),
    "one task": _needs,
}

_FRAMEWORKS_WIDE: Columns = {
    "id": "framework_id",
    "name": "name",
    "user": "user",
    "principal": "principal",
    "roles": _role_paths,
    "state": _states,
    "held": amounts("held"),
    "offered": amounts("offered"),
    ">waited": "waited_cycles",
    "one task": _needs,
}

_ROLES: Columns = {
    "role": "role",
    ">weight": figure("weight", "g"),
    ">share": figure("share", ".3f"),
    "guarantee": amounts("guarantee"),
    "limit": amounts("limit"),
    "held": amounts("held"),
    ">frameworks": "frameworks",
    ">waiting": if_any("frameworks_waiting"),
    "state": _paused,
}

_ROLES_WIDE: Columns = {
    "role": "role",
    ">weight": figure("weight", "g"),
    ">share": figure("share", ".4f"),
    "guarantee": amounts("guarantee"),
    "limit": amounts("limit"),
    "consumed": amounts("consumed"),
    "held": amounts("held"),
    "offered": amounts("offered"),
    ">frameworks": "frameworks",
    ">waiting": "frameworks_waiting",
    "state": _paused,
}

LISTS: Mapping[str, Listed] = {
    "agents": Listed("agent_id", _AGENTS, _AGENTS_WIDE, ("state", "free")),
    "frameworks": Listed(
        "framework_id", _FRAMEWORKS, _FRAMEWORKS_WIDE, ("one task", "held", "roles")
    ),
    "roles": Listed("role", _ROLES, _ROLES_WIDE, ("weight", "guarantee", "share", "limit")),
}
