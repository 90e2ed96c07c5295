"""`drain set`: shows what is still held on the agents, and waits until nothing is."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any

import typer

from allocator.cli.remote import schedules
from allocator.cli.remote.connection import Arguments, Sidecar
from allocator.cli.tree import Exit, fail
from allocator.rule_kinds import DRAIN

LOOK_S = 2.0

NAMED_MAX = 5

Wait = Annotated[bool, typer.Option("--wait", help="Wait until nothing is held on these agents.")]
Timeout = Annotated[
    float | None,
    typer.Option(
        min=0.001,
        max=1e6,
        show_default=False,
        help="Seconds to wait for an answer, by default 10; with --wait, seconds until nothing is"
        " held, by default unlimited.",
    ),
]

OPTIONS: dict[str, tuple[Any, Any]] = {"wait": (Wait, False), "timeout": (Timeout, None)}


def set_and_tell(
    set_drains: Callable[[Sidecar, Arguments], dict[str, Any]],
) -> Callable[[Sidecar, Arguments], dict[str, Any]]:
    """Extend a function that drains agents so that it also shows what is held on them."""

    def work(sidecar: Sidecar, given: Arguments) -> dict[str, Any]:
        import grpc

        wait, timeout_s = given.pop("wait"), given.pop("timeout")
        if wait and given["dry_run"]:
            raise typer.BadParameter("--wait cannot be used with --dry-run, which drains nothing")
        if wait and schedules.are_given(given):
            raise typer.BadParameter("--wait cannot be used with a schedule; leave it out")
        if timeout_s is not None and not wait:
            sidecar.connection = replace(sidecar.connection, timeout=timeout_s)
        answer = set_drains(sidecar, given)
        if given["dry_run"] or "drains" not in answer:  # or the drain is scheduled
            return answer
        if wait:
            return {**answer, "agents": _wait(sidecar, given["agents"], timeout_s)}
        try:
            return {**answer, "agents": _held(sidecar, given["agents"])}
        except grpc.RpcError:  # the drain is in force nevertheless
            typer.echo("warning: drained; `drain list` shows what is held there", err=True)
            return answer

    return work


def _held(sidecar: Sidecar, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return those of these agents that are drained and on which something is held."""
    from allocator.cli.remote.output import plain

    found = plain(sidecar.ask("ListRules", kind=DRAIN.name))["agents"]
    wanted = set(names)
    return [
        each for each in found if each["holders"] and {each["agent_id"], each["hostname"]} & wanted
    ]


def _wait(sidecar: Sidecar, names: Sequence[str], timeout_s: float | None) -> list[dict[str, Any]]:
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
    """Poll once, with up to three retries if the sidecar does not answer."""
    import grpc

    for _ in range(3):
        with suppress(grpc.RpcError):
            return _held(sidecar, names)
        time.sleep(LOOK_S)
    return _held(sidecar, names)


def _too_late(agents: Sequence[dict[str, Any]], timeout_s: float) -> str:
    from allocator.cli.render.terminal import holders_of, host_of

    named = [f"{host_of(each)} ({holders_of(each)})" for each in agents[:NAMED_MAX]]
    if len(agents) > NAMED_MAX:
        named.append(f"{len(agents) - NAMED_MAX} more")
    held = f"after {timeout_s:g} s something is still held on {', '.join(named)}"
    return f"{held}; the drain stays, and a longer --timeout waits longer"
