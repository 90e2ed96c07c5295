"""`mesos-allocator top`: a live view of waiting frameworks, shares and outstanding offers."""

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer
from google.protobuf.message import Message

from allocator.cli.remote.connection import Sidecar, named_by, remote
from allocator.cli.remote.options import RoleBelow
from allocator.cli.remote.watching import INTERVAL_S, Interval, watch
from allocator.plain import counted

if TYPE_CHECKING:
    from rich.console import ConsoleDimensions, Group


def register(app: typer.Typer) -> None:
    remote(app, "top", _show, names=named_by("names", "clients", "framework_id"))(top)


def top(sidecar: Sidecar, role: RoleBelow = "", interval: Interval = INTERVAL_S) -> Message | None:
    """Watch waiting frameworks, shares and outstanding offers, until q or Ctrl-C.

    Without a terminal, or with --output, print them once.
    """
    if sidecar.form or not sys.stdout.isatty():
        shares: Message = sidecar.ask("GetShares", role=role)
        return shares
    from allocator.cli.remote.output import plain

    def look() -> tuple[dict[str, Any], dict[str, Any]]:
        return plain(sidecar.ask("GetShares", role=role)), plain(sidecar.ask("GetStatus"))

    watch(look, _View().draw, interval)
    return None


def _show(data: dict[str, Any]) -> None:
    from allocator.cli.render.share_tables import WATCHED, WATCHED_LEFT_OUT, watched
    from allocator.cli.render.terminal import print_rows

    print_rows(WATCHED, watched(data), "no frameworks", WATCHED_LEFT_OUT)


class _View:
    """Draws the shares and the status; remembers the number of cycles, to show their rate."""

    def __init__(self) -> None:
        self._before: tuple[float, int] | None = None

    def draw(
        self,
        seen: tuple[dict[str, Any], dict[str, Any]],
        problem: str,
        size: "ConsoleDimensions",
    ) -> "Group":
        from allocator.cli.render.fitting import joined
        from allocator.cli.render.share_tables import WATCHED, WATCHED_LEFT_OUT, watched
        from allocator.cli.render.terminal import screen

        shares, status = seen
        lines = _head(shares, status, self._rate(status["cycles"]), problem)
        head = [joined(parts, size.width) for parts in lines]
        return screen(head, WATCHED, watched(shares), WATCHED_LEFT_OUT, size)

    def _rate(self, cycles: int) -> str:
        now = time.monotonic(), cycles
        before, self._before = self._before, now
        if before is None or now[0] == before[0]:
            return ""
        return f" ({(now[1] - before[1]) / (now[0] - before[0]):.1f}/s)"


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
