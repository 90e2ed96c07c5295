"""Options that commands of the laboratory share: policies, parallel runs, the sidecar to use."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from allocator.cli.local.plugins import load_in_worker
from allocator.cli.remote import completing
from allocator.cli.remote.completing import Mode
from allocator.cli.tree import Exit, choose, expect, fail
from allocator.server.system import loop_cache

Policies = Annotated[
    str,
    typer.Option(
        help="Comma-separated names: drf, ps-dsf, rps-dsf, tsf, bf-drf, ...",
        autocompletion=completing.joined(completing.policies),
    ),
]
Modes = Annotated[
    str,
    typer.Option(
        help="oblivious, characterised, or both separated by a comma.",
        autocompletion=completing.joined(completing.among(*Mode)),
    ),
]
Jobs = Annotated[int, typer.Option(help="Number of processes; -1: one per core.", min=-1)]
Backend = Annotated[
    str,
    typer.Option(
        help="loky: processes on this machine; dask, ray, spark: workers of an existing cluster "
        "of that engine."
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        help="Address of the cluster. dask: the scheduler, as in tcp://host:8786; ray: the head, "
        "as in host:6379 or ray://host:10001; spark: the master, as in spark://host:7077."
    ),
]


def chosen(text: str, known: Sequence[str], option: str) -> list[str]:
    """Read comma-separated names, without duplicates; end if one is unknown or there is none."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        fail(Exit.USAGE, f"{option}: {text!r}; {choose(unknown, known)}")
    return list(dict.fromkeys(names))


def spread_over(
    jobs: int,
    backend: str,
    cluster: str | None,
    option: str = "--jobs",
    plugins: tuple[str, ...] = (),
) -> Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]:
    """Return a function that maps another one over arguments on the chosen backend.

    `plugins`: files with users' policies, which the workers load as well.

    Ends the command if the options are wrong.
    """
    from laboratory.experiments.spread import BACKENDS, ENGINES, LOCAL, BackendError, spread
    from laboratory.links.base import PolicyFailedError

    expect("--backend", backend, BACKENDS)
    if cluster is not None and backend == LOCAL:
        engines = ", ".join(ENGINES)
        fail(Exit.USAGE, f"--cluster: needs --backend with one of {engines}")
    if jobs == 0:
        fail(Exit.USAGE, f"{option}: must not be 0; give a number, or -1 for all cores")

    def over(function: Callable[[Any], Any], arguments: Sequence[Any]) -> Iterator[Any]:
        call = partial(with_kept_loops, plugins, function)
        try:
            yield from spread(call, arguments, jobs=jobs, backend=backend, cluster=cluster)
        except BackendError as error:
            fail(Exit.FAILURE, f"--backend {backend}: {error}")
        except PolicyFailedError as error:
            fail(Exit.FAILURE, str(error))

    return over


def with_kept_loops(
    plugins: tuple[str, ...],
    function: Callable[[Any], Any],
    argument: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Call a function in a worker, with that machine's compiled loops and users' policies."""
    loop_cache.prepare()
    load_in_worker(plugins)
    return function(argument)


# Playing on our own sidecar, or on the one that --target names, restored afterwards.


Target = Annotated[
    str | None,
    typer.Option(
        help="A running sidecar (host:port or unix:/path); default: start one."
        " MESOS_ALLOCATOR_SESSION_TOKEN_FILE and MESOS_ALLOCATOR_TOKEN_FILE name files with"
        " its tokens for masters and operators."
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Use the sidecar of --target even if it serves a master."),
]

_told: list[int] = []
"""Signals received."""


@contextmanager
def on_sidecar(target: str | None, *, force: bool) -> Iterator[int]:
    """Context for playing on our own sidecars, or on a borrowed one, which is restored at the end.

    Ends the command with a one-line reason if nothing can be played. SIGTERM has the effect of
    Ctrl-C; the code inside must call `end_if_told` regularly.

    Yields the time at which our master claims to have been elected, in microseconds.
    """
    from laboratory.experiments.runs import WorkerFailedError
    from laboratory.links.base import LinkDownError
    from laboratory.links.borrowed import SidecarBusyError, SidecarRefusedError, borrowed
    from laboratory.links.sidecar_process import SidecarFailedError
    from laboratory.module_protocol import SessionEndedError

    if target:
        _check_tokens(target)
    _told.clear()
    for number in (signal.SIGINT, signal.SIGTERM):
        # A shell may have started us in the background with signals ignored, as nohup does.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    try:
        note = partial(typer.echo, err=True)
        lent = borrowed(target, force=force, note=note) if target else nullcontext(1)
        with lent as started_us, _as_told():
            yield started_us
    except LinkDownError as error:
        fail(Exit.UNREACHABLE if target else Exit.FAILURE, str(error))
    except (SidecarBusyError, SidecarRefusedError) as error:
        fail(Exit.REFUSED, str(error))
    except SessionEndedError as error:
        fail(Exit.REFUSED, f"the sidecar ended the session: {error}")
    except (SidecarFailedError, WorkerFailedError) as error:
        fail(Exit.FAILURE, str(error))


def _check_tokens(target: str) -> None:
    """End if a token cannot be read, or would be sent unencrypted over a network."""
    from allocator.server.system.addresses import is_local
    from laboratory.links.sidecar_process import SESSION_TOKEN_FILE, TOKEN_FILE, read_token

    for variable in (SESSION_TOKEN_FILE, TOKEN_FILE):
        try:
            token = read_token(variable)
        except OSError as error:
            fail(Exit.USAGE, f"{variable}: {error.filename}: {error.strerror}")
        if token and not is_local(target):
            text = f"the token of {variable} would be sent unencrypted; name a sidecar on this"
            fail(Exit.USAGE, f"--target {target}: {text} machine, or unset the variable")


@contextmanager
def _as_told() -> Iterator[None]:
    """Exit if an error follows a signal: in the code of a lock, `_end` causes another exception."""
    try:
        yield
    except Exception:
        end_if_told()
        raise


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    """Exit cleanly, with the code that a shell reports for a signal."""
    _told.append(number)
    # Exiting inside gRPC's bookkeeping of calls can make its thread fail when the channel closes.
    threading.excepthook = lambda _error: None
    sys.exit(128 + number)


def end_if_told() -> None:
    """Exit if a signal was received but a C callback swallowed the exception that `_end` raised."""
    if _told:
        sys.exit(128 + _told[0])
