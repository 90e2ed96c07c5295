"""Options that commands of the laboratory share, what spreads runs, and whom they play on."""

import signal
import sys
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
        help="Names, joined by commas: drf, ps-dsf, rps-dsf, tsf, bf-drf, ...",
        autocompletion=completing.joined(completing.policies),
    ),
]
Modes = Annotated[
    str,
    typer.Option(
        help="oblivious, characterised, or both joined by a comma.",
        autocompletion=completing.joined(completing.among(*Mode)),
    ),
]
Jobs = Annotated[int, typer.Option(help="Processes; -1: one for each core.", min=-1)]
Backend = Annotated[
    str,
    typer.Option(
        help="loky: processes of this machine; dask, ray, spark: the workers of an existing "
        "cluster of that engine."
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        help="Of dask the scheduler, as in tcp://host:8786; of ray the head, as in host:6379 "
        "or ray://host:10001; of spark the master, as in spark://host:7077."
    ),
]


def chosen(text: str, known: Sequence[str], option: str) -> list[str]:
    """Read names that commas join, each once; end where one is not known, or none is there."""
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
    """Give what calls a function with each argument there; end where the options are wrong.

    `plugins`: files with users' policies, which workers load as well.
    """
    from allocator.lab.experiments.spread import BACKENDS, ENGINES, LOCAL, BackendError, spread
    from allocator.lab.links.base import PolicyFailedError

    expect("--backend", backend, BACKENDS)
    if cluster is not None and backend == LOCAL:
        engines = ", ".join(ENGINES)
        fail(Exit.USAGE, f"--cluster: of which engine? Give --backend, one of {engines}, too")
    if jobs == 0:
        fail(Exit.USAGE, f"{option}: 0 processes do nothing; give a number, or -1 for all cores")

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
    """Call a function in a worker, with the loops that its machine keeps, and users' policies."""
    loop_cache.prepare()
    load_in_worker(plugins)
    return function(argument)


# Playing on a sidecar that is named by --target, and given back as it was; or on one's own.


Target = Annotated[
    str | None,
    typer.Option(
        help="A sidecar that runs already (host:port or unix:/path); else one starts."
        " MESOS_ALLOCATOR_SESSION_TOKEN_FILE and MESOS_ALLOCATOR_TOKEN_FILE name files with"
        " its tokens for masters and operators."
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Take the sidecar of --target from the master that it serves."),
]

_told: list[int] = []
"""Signals that came."""


@contextmanager
def on_sidecar(target: str | None, *, force: bool) -> Iterator[int]:
    """Play here: on one's own sidecars, or on one that is given back as it was.

    Says in one line why nothing can be played, and ends. SIGTERM ends as Ctrl-C does; whoever plays
    calls `end_if_told` now and then.

    Yields when our master began to lead, in microseconds.
    """
    from allocator.lab.experiments.runs import WorkerFailedError
    from allocator.lab.links.base import LinkDownError
    from allocator.lab.links.borrowed import SidecarBusyError, SidecarRefusedError, borrowed
    from allocator.lab.links.sidecar_process import SidecarFailedError
    from allocator.lab.module_protocol import SessionEndedError

    if target:
        _check_tokens(target)
    _told.clear()
    for number in (signal.SIGINT, signal.SIGTERM):
        # A shell that starts us in the background may want us to go on whatever happens to it.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    try:
        note = partial(typer.echo, err=True)
        lent = borrowed(target, force=force, note=note) if target else nullcontext(1)
        with lent as started_us:
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
    """End where a token cannot be read, or would pass in clear over a network."""
    from allocator.lab.links.sidecar_process import SESSION_TOKEN_FILE, TOKEN_FILE, read_token
    from allocator.server.system.addresses import is_local

    for variable in (SESSION_TOKEN_FILE, TOKEN_FILE):
        try:
            token = read_token(variable)
        except OSError as error:
            fail(Exit.USAGE, f"{variable}: {error.filename}: {error.strerror}")
        if token and not is_local(target):
            text = f"the token of {variable} would pass there in clear; name a sidecar on this"
            fail(Exit.USAGE, f"--target {target}: {text} machine, or unset the variable")


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    """End in order, with the code that a shell gives for a signal."""
    _told.append(number)
    sys.exit(128 + number)


def end_if_told() -> None:
    """End where a signal said so in vain: within a callback of C code an exception is lost."""
    if _told:
        sys.exit(128 + _told[0])
