"""Sweeps on clusters of Dask, Ray and Spark: the same results, by several processes of the engine.

Dask is always tested. Ray and Spark are large, and are tested if installed: `make engines` installs
them, and fails if one is missing.
"""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from laboratory.cli.options import spread_over
from laboratory.experiments import spread as engines
from laboratory.experiments.spread import BACKENDS, BackendError, spread
from laboratory.scenarios import sweep_report
from laboratory.scenarios.running import ScenarioCell, run
from laboratory.scenarios.schema import check

ROOT = Path(__file__).parents[3]

# Workers import the modules of the functions that they call, including this file.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}

SCENARIO = {
    "about": "A small one.",
    "agents": [{"name": "agent", "capacity": "cpus:4;mem:8192"}],
    "frameworks": [
        {
            "name": "job",
            "role": "r",
            "tasks": 4,
            "task": "cpus:1;mem:512",
            "duration": {"law": "exponential", "mean_s": 5.0},
        }
    ],
}


def library(name):
    """Import an engine's package, or skip the test; `make engines` forbids skipping."""
    if "MESOS_ALLOCATOR_ENGINES" in os.environ:
        return import_module(name)
    return pytest.importorskip(name)


@contextmanager
def processes(log, *commands, ready):
    """Processes that write to a file, each started when the previous one is ready."""
    begun: list[subprocess.Popen[bytes]] = []
    try:
        with log.open("wb") as out:
            for command in commands:
                begun.append(
                    subprocess.Popen(
                        command, cwd=log.parent, env=ENVIRONMENT, stdout=out, stderr=out
                    )
                )
                while not ready():
                    assert begun[0].poll() is None, log.read_text()
                    time.sleep(0.1)
            yield
    finally:
        for process in reversed(begun):
            process.terminate()
            process.wait(timeout=60)


@contextmanager
def dask_cluster(directory):
    """A scheduler and two worker processes; returns the scheduler's address."""
    note = directory / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    common = ["--no-dashboard", "--scheduler-file", str(note)]
    scheduler = [*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", *common]
    worker = [*dask, "worker", "--nthreads", "1", "--no-nanny", "--host", "127.0.0.1", *common]
    with processes(directory / "log", scheduler, worker, worker, ready=note.exists):
        from distributed import Client

        address = json.loads(note.read_text())["address"]
        with Client(address) as client:
            client.wait_for_workers(2, timeout=120)
        yield address


@contextmanager
def ray_cluster(_directory):
    """A head of two processors; returns its address."""
    cluster_utils = library("ray.cluster_utils")
    head = {"num_cpus": 2, "include_dashboard": False, "env_vars": {"PYTHONPATH": str(ROOT)}}
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
    try:
        yield cluster.address
    finally:
        cluster.shutdown()


@contextmanager
def spark_cluster(directory):
    """A master and a worker of two processors, each a process; returns the master's address."""
    home = Path(library("pyspark").__file__).parent
    start = [str(home / "bin" / "spark-class")]
    deploy, here = "org.apache.spark.deploy.", ["--host", "127.0.0.1"]
    log = directory / "master"

    def address():
        _, found, rest = log.read_text().partition("Starting Spark master at ")
        return rest.split()[0] if found else ""

    master = [*start, f"{deploy}master.Master", *here, "--port", "0", "--webui-port", "0"]
    with processes(log, master, ready=address):
        worker = [*start, f"{deploy}worker.Worker", *here, "--cores", "2", "--memory", "2g"]
        worker += ["--webui-port", "0", "--work-dir", str(directory / "work"), address()]
        with processes(directory / "worker", worker, ready=lambda: True):
            yield address()


def process_of(_argument):
    """The process that runs a call, and its directory of compiled loops."""
    time.sleep(0.2)
    return os.getpid(), os.environ["NUMBA_CACHE_DIR"]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # of other libraries
@pytest.mark.parametrize("backend", list(engines.ENGINES))
def test_a_cluster_gives_what_this_process_gives(tmp_path, monkeypatch, backend):
    # The workers do not know which directory of loops belongs to these sources.
    loops = ENVIRONMENT["NUMBA_CACHE_DIR"]
    monkeypatch.setitem(ENVIRONMENT, "NUMBA_CACHE_DIR", str(Path(loops).parent))
    for name in ("NUMBA_CACHE_DIR", "PYTHONPATH", "PYSPARK_PYTHON"):
        monkeypatch.setenv(name, ENVIRONMENT[name])
    clusters = {"dask": dask_cluster, "ray": ray_cluster, "spark": spark_cluster}
    scenario = check(SCENARIO, "test")
    cells = [
        ScenarioCell("drf", mode, seed)
        for mode in ("oblivious", "characterised")
        for seed in (0, 1)
    ]
    here = [run(scenario, cell) for cell in cells]
    with clusters[backend](tmp_path) as address:
        over = spread_over(-1, backend, address)
        there = list(over(partial(run, scenario), cells))
        by, kept = map(set, zip(*over(process_of, range(8)), strict=True))
    assert sweep_report.run_rows(there) == sweep_report.run_rows(here)
    assert len(by) >= 2
    assert os.getpid() not in by
    assert kept == {loops}


def test_a_cluster_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(engines, "CONNECT_S", 1)  # how long Dask retries
    with pytest.raises(BackendError, match=r"tcp://127\.0\.0\.1:9: no Dask scheduler answers"):
        list(spread(len, ["a"], backend="dask", cluster="tcp://127.0.0.1:9"))
    # An address is checked before the engine's library connects.
    monkeypatch.setattr(engines, "_library", lambda *_: None)
    for backend, address, error in (
        ("ray", "127.0.0.1:9", "127.0.0.1:9: no Ray head answers: .*refused"),
        ("ray", "nowhere", "nowhere: not an address of a Ray head; it needs a host and a port"),
        ("spark", "spark://127.0.0.1:9", "spark://127.0.0.1:9: no Spark master answers"),
        ("spark", "spark://h:port", "spark://h:port: not an address of a Spark master: .*port"),
    ):
        with pytest.raises(BackendError, match=error):
            list(spread(len, ["a"], backend=backend, cluster=address))


@pytest.mark.parametrize("backend", list(engines.ENGINES))
def test_missing_libraries_and_addresses_are_reported(monkeypatch, backend):
    assert backend in BACKENDS
    with pytest.raises(BackendError, match=f"{backend} needs the address of its "):
        list(spread(len, ["a"], backend=backend))
    # As if the engine's client were not installed.
    for name in ("distributed", "ray", "pyspark", "pyspark.sql"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(BackendError, match=rf"install 'mesos-allocator\[{backend}\]' brings it"):
        list(spread(len, ["a"], backend=backend, cluster="spark://127.0.0.1:9"))
