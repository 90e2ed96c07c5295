"""`drain set`: what still runs on the agents, and waiting until nothing does."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any

import typer
from google.protobuf.message import Message

from allocator.cli.remote.connection import Arguments, Sidecar
from allocator.cli.tree import Exit, fail

LOOK_S = 2.0
"""From one look at the agents to the next."""

NAMED_MAX = 5
"""Agents that are named where waiting ends too early."""

Wait = Annotated[
    bool, typer.Option("--wait", help="Wait until nothing is held on these agents any more.")
]
Timeout = Annotated[
    float | None,
    typer.Option(
        min=0.001,
        max=1e6,
        show_default=False,
        help="Seconds to wait for an answer, by default 10; with --wait: until nothing is held, by"
        " default without an end.",
    ),
]

OPTIONS: dict[str, tuple[Any, Any]] = {"wait": (Wait, False), "timeout": (Timeout, None)}
"""Those of `drain set` alone."""


def set_and_tell(
    set_drains: Callable[[Sidecar, Arguments], Message],
) -> Callable[[Sidecar, Arguments], dict[str, Any]]:
    """Make the command of what drains agents: it also tells what is held there."""

    def work(sidecar: Sidecar, given: Arguments) -> dict[str, Any]:
        import grpc

        from allocator.cli.remote.output import plain

        wait, timeout_s = given.pop("wait"), given.pop("timeout")
        if wait and given["dry_run"]:
            raise typer.BadParameter("--wait does not go with --dry-run, which drains nothing")
        if timeout_s is not None and not wait:
            sidecar.connection = replace(sidecar.connection, timeout=timeout_s)
        answer = plain(set_drains(sidecar, given))
        if given["dry_run"]:
            return answer
        if wait:
            return {**answer, "agents": _wait(sidecar, given["agents"], timeout_s)}
        try:
            return {**answer, "agents": _held(sidecar, given["agents"])}
        except grpc.RpcError:  # the drain counts all the same
            typer.echo("warning: drained; `drain list` says what is held there", err=True)
            return answer

    return work


def _held(sidecar: Sidecar, names: Sequence[str]) -> list[dict[str, Any]]:
    """The drained agents of these names on which something is held."""
    from allocator.cli.remote.output import plain

    found = plain(sidecar.ask("ListDrains"))["agents"]
    wanted = set(names)
    return [
        each for each in found if each["holders"] and {each["agent_id"], each["hostname"]} & wanted
    ]


def _wait(sidecar: Sidecar, names: Sequence[str], timeout_s: float | None) -> list[dict[str, Any]]:
    """Look again until nothing is held; ends the process where that takes too long."""
    from allocator.cli.render.terminal import progress

    end_s = None if timeout_s is None else time.monotonic() + timeout_s
    names = list(dict.fromkeys(names))
    with progress("waiting until nothing is held on", "agents", len(names)) as tell:
        while agents := _look(sidecar, names):
            left_s = LOOK_S if end_s is None else min(LOOK_S, end_s - time.monotonic())
            if left_s <= 0:
                break
            tell(len(names) - len(agents))
            time.sleep(left_s)
    if agents:
        fail(Exit.FAILURE, _too_late(agents, timeout_s or 0.0))
    return []


def _look(sidecar: Sidecar, names: Sequence[str]) -> list[dict[str, Any]]:
    """Look once; a sidecar that does not answer for a while is asked again by the next look."""
    import grpc

    for _ in range(3):
        with suppress(grpc.RpcError):
            return _held(sidecar, names)
        time.sleep(LOOK_S)
    return _held(sidecar, names)


def _too_late(agents: Sequence[dict[str, Any]], timeout_s: float) -> str:
    named = []
    for each in agents[:NAMED_MAX]:
        holders = ", ".join(dict.fromkeys(one["framework"] for one in each["holders"]))
        named.append(f"{each['hostname'] or each['agent_id']} ({holders})")
    if len(agents) > NAMED_MAX:
        named.append(f"{len(agents) - NAMED_MAX} more")
    held = f"after {timeout_s:g} s something is still held on {', '.join(named)}"
    return f"{held}; the drain stays, and a longer --timeout waits longer"
