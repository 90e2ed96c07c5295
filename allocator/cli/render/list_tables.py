"""Tables of agents, frameworks and roles, and their names for use in other commands."""

from collections.abc import Iterator
from typing import Any

import typer

from allocator.cli.render.terminal import (
    Columns,
    amounts,
    as_text,
    console,
    figure,
    in_words,
    print_rows,
)


def as_it_is(data: dict[str, Any], **_options: object) -> dict[str, Any]:
    """Return the whole answer: the sidecar has already selected and ordered it."""
    return data


def agents(data: dict[str, Any], *, wide: bool = False, **_options: object) -> None:
    _print(_AGENTS, _AGENTS_WIDE, data["agents"], "no agents", ("state", "free"), wide=wide)
    _tell_left_out(data, "agents")


def frameworks(data: dict[str, Any], *, wide: bool = False, **_options: object) -> None:
    drop = ("one task", "held", "roles")
    _print(_FRAMEWORKS, _FRAMEWORKS_WIDE, data["frameworks"], "no frameworks", drop, wide=wide)
    _tell_left_out(data, "frameworks")


def roles(data: dict[str, Any], *, wide: bool = False, **_options: object) -> None:
    drop = ("weight", "share", "held")
    _print(_ROLES, _ROLES_WIDE, data["roles"], "no roles", drop, wide=wide)
    _tell_left_out(data, "roles")


def agent_ids(data: dict[str, Any]) -> Iterator[str]:
    yield from (each["agent_id"] for each in data["agents"])
    _warn_of_left_out(data, "agents")


def framework_ids(data: dict[str, Any]) -> Iterator[str]:
    yield from (each["framework_id"] for each in data["frameworks"])
    _warn_of_left_out(data, "frameworks")


def role_paths(data: dict[str, Any]) -> Iterator[str]:
    yield from (each["role"] for each in data["roles"])
    _warn_of_left_out(data, "roles")


def _print(
    narrow: Columns,
    every: Columns,
    found: list[dict[str, Any]],
    empty: str,
    drop: tuple[str, ...],
    *,
    wide: bool,
) -> None:
    print_rows(every if wide else narrow, found, empty, drop, whole=wide)


def _left_out(data: dict[str, Any], what: str) -> str:
    count = data["left_out"]
    if not count:
        return ""
    return f"not shown: {count:,} {what if count != 1 else what[:-1]}; --limit shows more"


def _tell_left_out(data: dict[str, Any], what: str) -> None:
    if text := _left_out(data, what):
        console().print(as_text(text))


def _warn_of_left_out(data: dict[str, Any], what: str) -> None:
    """Warn on standard error that the list of names is incomplete, because a script may read it."""
    if text := _left_out(data, what):
        typer.echo(f"warning: {text}", err=True)


def _states(each: dict[str, Any]) -> str:
    return ",".join(each["states"])


def _attributes(agent: dict[str, Any]) -> str:
    places = {name: agent[name] for name in ("region", "zone") if agent[name]}
    pairs = {**places, **agent["attributes"]}.items()
    return ";".join(f"{name}={value}" if value else name for name, value in pairs)


def _holders(agent: dict[str, Any]) -> str:
    return ", ".join(dict.fromkeys(each["framework"] for each in agent["holders"]))


def _role_paths(framework: dict[str, Any]) -> str:
    more = framework["role_count"] - len(framework["roles"])
    paths = [each["role"] for each in framework["roles"]]
    return ", ".join([*paths, f"and {more} more"] if more else paths)


def _needs(framework: dict[str, Any]) -> str:
    found = (in_words(each["demand"]) or "unknown" for each in framework["roles"])
    return ", ".join(dict.fromkeys(found))


def _name(framework: dict[str, Any]) -> str:
    return str(framework["name"] or framework["framework_id"])


def _percent(each: dict[str, Any]) -> str:
    return f"{100 * each['held_share']:.0f} %"


_AGENTS: Columns = {
    "=agent": lambda each: each["hostname"] or each["agent_id"],
    "state": _states,
    ">held": _percent,
    "free": amounts("free"),
    ">frameworks": "frameworks",
}

_AGENTS_WIDE: Columns = {
    "id": "agent_id",
    "host": "hostname",
    "attributes": _attributes,
    "state": _states,
    ">held": _percent,
    "total": amounts("total"),
    "free": amounts("free"),
    "offered": amounts("offered"),
    "used": amounts("used"),
    ">frameworks": "frameworks",
    "held by": _holders,
}

_FRAMEWORKS: Columns = {
    "framework": _name,
    "roles": _role_paths,
    "state": _states,
    "held": amounts("held"),
    ">waited": lambda each: each["waited_cycles"] or "",
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
    ">waiting": lambda each: each["frameworks_waiting"] or "",
    "state": lambda each: "paused" if each["paused"] else "",
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
}
