"""Calls distributed over processes: of this machine, or of an existing cluster.

The result of a call depends on its arguments only, so neither the number of processes nor the order
of calls changes a result.
"""

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar
from urllib.parse import urlsplit

from joblib import Parallel, delayed, parallel_config

T = TypeVar("T")
R = TypeVar("R")

# Existing clusters of Dask, Ray and Spark.
#
# Each engine is reached by its own client, so that its errors are reported. Its workers need this
# package and the same version of Python.

CONNECT_S = 10

Spread = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]
"""Maps a function over arguments; yields the results in order."""


class BackendError(RuntimeError):
    """The requested processes are not available; the message has the reason and the remedy."""


@contextmanager
def dask(cluster: str) -> Iterator[Spread]:
    """Use all workers of a Dask cluster, given its scheduler (``tcp://host:8786``)."""
    distributed = _library("distributed", "dask")
    try:
        client: Any = distributed.Client(cluster, timeout=CONNECT_S, set_as_default=True)
    except (OSError, ValueError) as error:
        raise BackendError(f"{cluster}: no Dask scheduler answers: {error}") from None

    def spread(function: Callable[[Any], Any], arguments: Sequence[Any]) -> Iterator[Any]:
        for future in client.map(function, arguments, pure=False):
            yield future.result()

    with client:
        if not client.scheduler_info()["workers"]:
            raise BackendError(f"{cluster}: the Dask cluster has no workers; start some")
        yield spread


@contextmanager
def ray(cluster: str) -> Iterator[Spread]:
    """Use a Ray cluster, given its head (``host:6379``) or client port (``ray://``)."""
    library = _library("ray", "ray")
    _answers(cluster, "Ray head")
    try:
        library.init(address=cluster, log_to_driver=False, logging_level="error")
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise BackendError(f"{cluster}: no Ray cluster answers: {error}") from None

    def spread(function: Callable[[Any], Any], arguments: Sequence[Any]) -> Iterator[Any]:
        remote = library.remote(_called).options(num_cpus=1)
        shared = library.put(function)  # sent once, not with each call
        for future in [remote.remote(shared, each) for each in arguments]:
            yield library.get(future)

    try:
        yield spread
    finally:
        library.shutdown()


def _called(function: Callable[[T], R], argument: T) -> R:
    return function(argument)


@contextmanager
def spark(cluster: str) -> Iterator[Spread]:
    """Use a Spark cluster, given its master (``spark://host:7077``).

    Results arrive all at once, when the last call has ended.
    """
    library = _library("pyspark.sql", "spark")
    if urlsplit(cluster).netloc:  # Spark itself would try for a minute
        _answers(cluster, "Spark master")
    failures = _library("py4j.protocol", "spark").Py4JError, OSError, RuntimeError
    builder = library.SparkSession.builder.master(cluster).appName("mesos-allocator")
    try:
        session = builder.config("spark.ui.enabled", "false").getOrCreate()
    except failures as error:
        first = str(error).strip().split("\n", maxsplit=1)[0]
        raise BackendError(f"{cluster}: no Spark cluster answers: {first}") from None

    def spread(function: Callable[[Any], Any], arguments: Sequence[Any]) -> Iterator[Any]:
        each = session.sparkContext.parallelize(list(arguments), max(len(arguments), 1))
        yield from each.map(function).collect()

    try:
        yield spread
    finally:
        session.stop()


ENGINES: Mapping[str, tuple[Callable[[str], AbstractContextManager[Spread]], str]] = {
    "dask": (dask, "its scheduler, as in tcp://host:8786"),
    "ray": (ray, "its head, as in host:6379 or ray://host:10001"),
    "spark": (spark, "its master, as in spark://host:7077"),
}
"""By name of the backend: the context manager that connects, and the address it needs."""


def _library(name: str, extra: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        package = name.partition(".")[0]
        message = f"{package} is not installed; pip install 'mesos-allocator[{extra}]' brings it"
        raise BackendError(message) from None


def _answers(cluster: str, what: str) -> None:
    """Fail early if an address does not answer; clients would retry for long."""
    try:
        parts = urlsplit(cluster if "://" in cluster else f"//{cluster}")
        where = parts.hostname, parts.port
    except ValueError as error:
        raise BackendError(f"{cluster}: not an address of a {what}: {error}") from None
    if where[0] is None or where[1] is None:
        raise BackendError(f"{cluster}: not an address of a {what}; it needs a host and a port")
    try:
        socket.create_connection((where[0], where[1]), timeout=CONNECT_S).close()
    except OSError as error:
        raise BackendError(f"{cluster}: no {what} answers: {error}") from None


LOCAL = "loky"

BACKENDS = (LOCAL, *ENGINES)
"""loky: processes of this machine, by joblib; the others are clusters."""


def spread(
    function: Callable[[T], R],
    arguments: Sequence[T],
    *,
    jobs: int = -1,
    backend: str = LOCAL,
    cluster: str | None = None,
) -> Iterator[R]:
    """Call a function with each of the arguments, and yield the results in order.

    function: it, its arguments and its results are pickled.
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
