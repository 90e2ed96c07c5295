"""`warm`: compiles all loops ahead of time, in parallel processes; other commands also use this."""

import ctypes
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, NoReturn

import typer

from allocator.cli.tree import Exit, choose, fail
from allocator.server.system import loop_cache
from allocator.server.system.priority import give_way

_PR_SET_PDEATHSIG = 1


def register(app: typer.Typer) -> None:
    app.command()(warm)


def warm(
    part: Annotated[str, typer.Option(hidden=True)] = "",
    aside: Annotated[bool, typer.Option("--aside", hidden=True)] = False,
) -> None:
    """Compile all loops ahead of time, so that `serve` need not compile them.

    They are stored under NUMBA_CACHE_DIR. By default, a checkout stores them in .cache/numba; an
    installed package stores them beside its bytecode or, if it may not write there, in the user's
    cache directory.
    """
    if loop_cache.is_off():
        typer.echo("NUMBA_DISABLE_JIT is set: loops run as plain Python, and none is compiled")
        return
    note = loop_cache.prepare()
    if aside:
        give_way(5)
    if part:
        _compile_part(part, aside=aside)
        return
    if loop_cache.is_complete():
        typer.echo(f"already compiled: {os.environ['NUMBA_CACHE_DIR']}")
        return
    if note:
        fail(Exit.FAILURE, note)
    _compile_all(typer.echo)


def compile_ahead() -> None:
    """Compile all loops, so that the processes of a run need not; reports to standard error."""
    if not loop_cache.is_complete():
        _compile_all(partial(typer.echo, err=True))


def _compile_all(say: Callable[[str], None]) -> None:
    from allocator.server.system.compilation import PARTS, RUN_IN, command

    begun_s = time.monotonic()
    directory = os.environ["NUMBA_CACHE_DIR"]
    say(f"compiling the loops into {directory}: {', '.join(PARTS)} (about a minute)")
    children = {
        each: subprocess.Popen(command(each), cwd=RUN_IN)  # noqa: S603 - our own
        for each in PARTS
    }
    try:
        _await(children, begun_s, say)
    except KeyboardInterrupt:
        _end(children, Exit.FAILURE)
    loop_cache.mark_complete()
    say(f"all loops are compiled, after {time.monotonic() - begun_s:.0f} s")


def _await(
    children: dict[str, "subprocess.Popen[bytes]"], begun_s: float, say: Callable[[str], None]
) -> None:
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
            say(f"{name}: compiled after {time.monotonic() - begun_s:.0f} s")


def _end(children: dict[str, "subprocess.Popen[bytes]"], code: Exit) -> NoReturn:
    for child in children.values():
        child.kill()
        child.wait()
    raise typer.Exit(code)


def _compile_part(part: str, *, aside: bool) -> None:
    """Compile one part in this process, which is killed when its parent ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    from allocator.server.system.compilation import PARTS, load

    if not aside:
        # Garbage collection takes a seventh of the time and saves about 100 MB, which is only worth
        # it beside a master (--aside).
        gc.freeze()
        gc.set_threshold(100_000, 50, 1000)
    if part not in PARTS:
        raise typer.BadParameter(f"unknown part {part!r}; {choose([part], PARTS)}")
    load(part)
