"""`mesos-allocator top`: a live view of waiting frameworks, shares and outstanding offers."""

import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from google.protobuf.message import Message

from allocator.cli.remote.connection import Sidecar, named_by, remote
from allocator.cli.remote.options import RoleBelow
from allocator.plain import counted

if TYPE_CHECKING:
    import grpc
    from rich.console import ConsoleDimensions, Group

HEAD_LINES = 6


def register(app: typer.Typer) -> None:
    remote(app, "top", _show, names=named_by("frameworks"))(top)


def top(
    sidecar: Sidecar,
    role: RoleBelow = "",
    interval: Annotated[
        float,
        typer.Option(min=0.2, max=3600.0, help="Seconds between two requests."),
    ] = 2.0,
) -> Message | None:
    """Watch waiting frameworks, shares and outstanding offers, until q or Ctrl-C.

    Without a terminal, or with --output, print them once.
    """
    shares, status = _look(sidecar, role)
    if sidecar.form or not sys.stdout.isatty():
        return shares
    _watch(sidecar, role, interval, shares, status)
    return None


def _look(sidecar: Sidecar, role: str) -> tuple[Message, Message]:
    return sidecar.ask("GetShares", role=role), sidecar.ask("GetStatus")


def _show(data: dict[str, Any]) -> None:
    from allocator.cli.render.share_tables import WATCHED, WATCHED_LEFT_OUT, watched
    from allocator.cli.render.terminal import print_rows

    print_rows(WATCHED, watched(data), "no frameworks", WATCHED_LEFT_OUT)


def _watch(
    sidecar: Sidecar, role: str, interval_s: float, shares: Message, status: Message
) -> None:
    import grpc
    from rich.live import Live

    from allocator.cli.remote.output import plain

    problem = ""
    before: tuple[float, int] | None = None
    with _keys() as pressed, Live(screen=True, auto_refresh=False) as live:
        try:
            while True:
                now = time.monotonic(), plain(status)["cycles"]
                text = _rate(before, now)
                view = _view(plain(shares), plain(status), text, problem, live.console.size)
                live.update(view, refresh=True)
                before = now
                if pressed(interval_s):
                    return
                try:
                    shares, status = _look(sidecar, role)
                    problem = ""
                except grpc.RpcError as error:
                    code = cast("grpc.Call", error).code().name.lower()
                    problem = f"no answer ({code}); last known:"
        except KeyboardInterrupt:
            return


def _rate(before: tuple[float, int] | None, now: tuple[float, int]) -> str:
    if before is None or now[0] == before[0]:
        return ""
    return f" ({(now[1] - before[1]) / (now[0] - before[0]):.1f}/s)"


def _view(
    shares: dict[str, Any],
    status: dict[str, Any],
    rate: str,
    problem: str,
    size: "ConsoleDimensions",
) -> "Group":
    from rich.console import Group

    from allocator.cli.render.fitting import joined
    from allocator.cli.render.share_tables import WATCHED, WATCHED_LEFT_OUT, watched
    from allocator.cli.render.terminal import as_text, cells, table_of

    found = watched(shares)
    room = max(1, size.height - HEAD_LINES)
    more = f"and {len(found) - room} more" if len(found) > room else ""
    rows = (cells(WATCHED, each) for each in found[:room])
    table = table_of(WATCHED, rows, WATCHED_LEFT_OUT, size.width)
    head = (joined(parts, size.width) for parts in _head(shares, status, rate, problem))
    return Group(*map(as_text, head), table, as_text(more))


def _head(
    shares: dict[str, Any], status: dict[str, Any], rate: str, problem: str
) -> Iterator[list[str]]:
    """Yield the lines above the table, each as a list of parts, the most important first."""
    policy = status["policy"]
    waiting = len({each["framework_id"] for each in shares["clients"] if each["waited_cycles"]})
    yield [
        *([problem] if problem else []),
        *([] if status["in_session"] else ["no session"]),
        f"{policy['name']} {policy['mode']}",
        f"{status['active_agents']} of {counted(status['agents'], 'agent')}",
        f"{status['active_frameworks']} of {counted(status['frameworks'], 'framework')}",
        f"{waiting} waiting",
        *([f"master {status['master_id']}"] if status["in_session"] else []),
    ]
    median, p99 = status["cycle_p50_ms"], status["cycle_p99_ms"]
    yield [
        f"{counted(status['cycles'], 'cycle')}{rate}",
        *([] if median is None else [f"median {median:.1f} ms", f"p99 {p99:.1f} ms"]),
        f"Jain index {shares['jain_index']:.3f}",
        f"{counted(status['outstanding_decisions'], 'decision')} in flight",
    ]
    yield [
        f"{use['name']} {100 * use['held'] / use['total']:.0f} %"
        for use in status["resources"]
        if use["total"]
    ]


@contextmanager
def _keys() -> "Iterator[Any]":
    """Read single keys without echo; yield a function that waits and returns whether to end."""
    if not sys.stdin.isatty():
        yield _sleep
        return
    import termios
    import tty

    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    tty.setcbreak(number)
    try:
        yield _pressed
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


def _sleep(within_s: float) -> bool:
    time.sleep(within_s)
    return False


def _pressed(within_s: float) -> bool:
    """Wait for a key; return whether the user pressed one that ends the view."""
    until_s = time.monotonic() + within_s
    while (left_s := until_s - time.monotonic()) > 0:
        ready, _, _ = select.select([sys.stdin], [], [], left_s)
        # `sys.stdin` would read ahead into a buffer, which `select` does not see.
        if ready and os.read(sys.stdin.fileno(), 1) in {b"q", b"Q", b"\x03", b""}:
            return True
    return False
