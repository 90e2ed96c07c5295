"""`warm`: compile all loops ahead, in processes side by side."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from typing import Annotated, NoReturn

import typer

from allocator.cli.exits import Exit, fail
from allocator.cli.tree import choose
from allocator.server.system import loop_cache

_PR_SET_PDEATHSIG = 1


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(warm)


def warm(
    part: Annotated[str, typer.Option(hidden=True)] = "",
    aside: Annotated[bool, typer.Option("--aside", hidden=True)] = False,
) -> None:
    """Compile all loops ahead, so that `serve` starts with them.

    They are kept under NUMBA_CACHE_DIR; without it, in the user's directory for caches.
    """
    note = loop_cache.prepare()
    if aside:
        os.nice(5)
    if part:
        _compile_part(part)
        return
    directory = os.environ["NUMBA_CACHE_DIR"]
    if loop_cache.is_complete():
        typer.echo(f"compiled already: {directory}")
        return
    if note:
        fail(Exit.FAILURE, note)
    from allocator.server.system.compilation import PARTS, command

    begun_s = time.monotonic()
    typer.echo(f"compiling the loops into {directory}: {', '.join(PARTS)} (about a minute)")
    children = {
        each: subprocess.Popen(command(each))  # noqa: S603 - our own
        for each in PARTS
    }
    try:
        _await(children, begun_s)
    except KeyboardInterrupt:
        _end(children, Exit.FAILURE)
    loop_cache.mark_complete()
    typer.echo(f"all loops are compiled, after {time.monotonic() - begun_s:.0f} s")


def _await(children: dict[str, "subprocess.Popen[bytes]"], begun_s: float) -> None:
    waiting = dict(children)
    while waiting:
        time.sleep(0.1)
        for name, child in list(waiting.items()):
            code = child.poll()
            if code is None:
                continue
            del waiting[name]
            if code:
                sys.stderr.write(f"error: {name} could not be compiled (exit code {code})\n")
                _end(children, Exit.FAILURE)
            typer.echo(f"{name}: compiled after {time.monotonic() - begun_s:.0f} s")


def _end(children: dict[str, "subprocess.Popen[bytes]"], code: Exit) -> NoReturn:
    for child in children.values():
        child.kill()
        child.wait()
    raise typer.Exit(code)


def _compile_part(part: str) -> None:
    """Compile in this process, which ends with the one that started it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    from allocator.server.system.compilation import PARTS, load

    if part not in PARTS:
        raise typer.BadParameter(f"there is no part {part!r}; {choose([part], PARTS)}")
    load(part)
