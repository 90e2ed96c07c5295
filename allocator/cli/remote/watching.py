"""Redraws a view of a sidecar on the terminal, until q or Ctrl-C."""

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

import typer

if TYPE_CHECKING:
    import grpc
    from rich.console import ConsoleDimensions, RenderableType

Interval: TypeAlias = Annotated[
    float, typer.Option(min=0.2, max=3600.0, help="Seconds between two requests.")
]

INTERVAL_S = 2.0


def watch(
    look: Callable[[], Any],
    draw: "Callable[[Any, str, ConsoleDimensions], RenderableType]",
    interval_s: float,
) -> None:
    """Draw an answer, and the next one after each interval.

    `look`: asks the sidecar. If its first call fails, the command ends with the error.
    `draw`: draws an answer of `look`, with the reason why it is not up to date, if any, for a size.
    """
    import grpc
    from rich.live import Live

    seen, problem = look(), ""
    with _keys() as pressed, Live(screen=True, auto_refresh=False) as live:
        try:
            while True:
                live.update(draw(seen, problem, live.console.size), refresh=True)
                if pressed(interval_s):
                    return
                try:
                    seen, problem = look(), ""
                except grpc.RpcError as error:
                    code = cast("grpc.Call", error).code().name.lower()
                    problem = f"no answer ({code}); last known:"
        except KeyboardInterrupt:
            return


@contextmanager
def _keys() -> Iterator[Callable[[float], bool]]:
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
