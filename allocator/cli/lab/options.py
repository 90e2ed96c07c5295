"""Options that commands of the laboratory share, and what spreads their runs over processes."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Annotated, Any

import typer

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
    jobs: int, backend: str, cluster: str | None, option: str = "--jobs"
) -> Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]:
    """Give what calls a function with each argument there; end where the options are wrong."""
    from allocator.lab.experiments.spread import BACKENDS, ENGINES, LOCAL, BackendError, spread

    expect("--backend", backend, BACKENDS)
    if cluster is not None and backend == LOCAL:
        engines = ", ".join(ENGINES)
        fail(Exit.USAGE, f"--cluster: of which engine? Give --backend, one of {engines}, too")
    if jobs == 0:
        fail(Exit.USAGE, f"{option}: 0 processes do nothing; give a number, or -1 for all cores")

    def over(function: Callable[[Any], Any], arguments: Sequence[Any]) -> Iterator[Any]:
        call = partial(with_kept_loops, function)
        try:
            yield from spread(call, arguments, jobs=jobs, backend=backend, cluster=cluster)
        except BackendError as error:
            fail(Exit.FAILURE, f"--backend {backend}: {error}")

    return over


def with_kept_loops(function: Callable[[Any], Any], argument: Any) -> Any:  # noqa: ANN401
    """Call a function in a worker, with the compiled loops that its machine keeps."""
    loop_cache.prepare()
    return function(argument)
