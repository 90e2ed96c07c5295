"""Calls spread over processes: those of this machine, or of an existing cluster.

What a call gives depends on its arguments alone, so neither the number of processes nor the order
in which they are done changes a result.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from joblib import Parallel, delayed, parallel_config

from allocator.lab.experiments.engines import ENGINES, BackendError

T = TypeVar("T")
R = TypeVar("R")

LOCAL = "loky"

BACKENDS = (LOCAL, *ENGINES)
"""loky: processes of this machine, by joblib; the others are clusters of engines."""


def spread(
    function: Callable[[T], R],
    arguments: Sequence[T],
    *,
    jobs: int = -1,
    backend: str = LOCAL,
    cluster: str | None = None,
) -> Iterator[R]:
    """Call a function with each of the arguments, and yield the results in their order.

    function: it and its arguments and results are pickled.
    jobs: processes of this machine; -1: one for each core. A cluster uses all its workers.
    backend: one of `BACKENDS`.
    cluster: address of the engine's cluster.
    Raises BackendError.
    """
    if backend in ENGINES:
        connected, needs = ENGINES[backend]
        if cluster is None:
            raise BackendError(f"{backend} needs the address of {needs}")
        with connected(cluster) as over_workers:
            yield from over_workers(function, arguments)
        return
    with parallel_config(backend=backend):
        calls = Parallel(n_jobs=jobs, return_as="generator")
        yield from calls(delayed(function)(each) for each in arguments)
