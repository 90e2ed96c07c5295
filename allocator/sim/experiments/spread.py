"""Calls spread over processes: those of this machine, or of a Dask cluster.

What a call gives depends on its arguments alone, so neither the number of processes nor the order
in which they are done changes a result.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from joblib import Parallel, delayed, parallel_config

T = TypeVar("T")
R = TypeVar("R")

BACKENDS = ("loky", "dask")
"""loky: processes of this machine, by joblib. dask: a Dask cluster, by its own client."""

CONNECT_S = 10


class BackendError(RuntimeError):
    """The processes that were asked for are not there: which, and the mend."""


def spread(
    function: Callable[[T], R],
    arguments: Sequence[T],
    *,
    jobs: int = -1,
    backend: str = "loky",
    cluster: str | None = None,
) -> Iterator[R]:
    """Call a function with each of the arguments, and yield the results in their order.

    Parameters
    ----------
    function : callable
        It and its arguments and results are pickled.
    arguments : sequence
    jobs : int
        Processes of this machine; -1: one for each core. A Dask cluster uses all its workers.
    backend : str
        One of `BACKENDS`.
    cluster : str or None
        Address of the Dask scheduler, such as ``tcp://host:8786``.

    Raises
    ------
    BackendError
    """
    if backend == "dask":
        with _dask(cluster) as client:
            for future in client.map(function, arguments, pure=False):
                yield future.result()
        return
    with parallel_config(backend=backend):
        calls = Parallel(n_jobs=jobs, return_as="generator")
        yield from calls(delayed(function)(each) for each in arguments)


@contextmanager
def _dask(cluster: str | None) -> Iterator[Any]:
    if cluster is None:
        raise BackendError("dask needs the address of its scheduler, as in tcp://host:8786")
    try:
        from distributed import Client
    except ModuleNotFoundError:
        message = "distributed is not installed; pip install 'mesos-allocator[dask]' brings it"
        raise BackendError(message) from None
    try:
        client: Any = Client(  # type: ignore[no-untyped-call]
            cluster, timeout=CONNECT_S, set_as_default=True
        )
    except (OSError, ValueError) as error:
        raise BackendError(f"{cluster}: no Dask scheduler answers: {error}") from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise BackendError(f"{cluster}: the Dask cluster has no workers; start some")
        yield client
