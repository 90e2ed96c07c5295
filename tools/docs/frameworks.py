"""The page about frameworks of other projects, from what `tests/cluster/live.py` kept."""

import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from allocator.policies import POLICIES

KEPT = Path(__file__).resolve().parent / "data" / "frameworks.jsonl"

INTRODUCTION = """\
# Frameworks of other projects

<!-- `make docs` writes this file. -->

This page shows which frameworks of other projects ran on a real Mesos master with the module, which
settings they need, and how they ran after the sidecar was killed. Each framework is a process with
its own Mesos library. Frameworks that run together share the cluster. Each subscribes once, but
each job of Spark is a framework of its own.

For each policy and mode a sidecar is started, and decides until each framework has finished {tasks}
tasks. Then the sidecar is killed (SIGKILL), and the module decides until each framework has
finished {tasks} more. The numbers of offers and tasks come from the master's counters for each
framework. An offer is counted when the framework declines it, or accepts it and launches tasks.
"""

CONDITIONS = """\
Measured on 27 November 2026 with clusterd `5ce2c80b`, which reports itself as Mesos 1.11.0. There
were two agents with 4 CPUs and 4 GiB, an allocation interval of 1 s, and `fallback_after_ms=500`.
The sidecar's loops were not compiled (`NUMBA_DISABLE_JIT=1`), which changes no decision. Tasks need
half a CPU and 64 MiB, and sleep for 1 s. Each framework begins with two tasks, and queues another
one when a task ends.

On 28 November 2026 pymesos and tfmesos2 ran again, briefly, with the present module and a new build
of the same clusterd: each finished tasks with the sidecar, and after it was killed.

Spark ran on 29 November 2026 in the same way, with that build and its Java bindings, which were
built separately, and with Debian's OpenJDK 17, at load averages from 11 to 53. One driver ran one
job after another. Each job was a framework with three executors, which are its tasks in Mesos, and
computed twelve Spark tasks; the driver checked its result. A job declines both agents when it has
its executors, and again after each executor's end, because it then revives its offers. With
Mesos's own allocator two such jobs each accepted two offers and declined eight. In a separate test
the sidecar was killed while a job ran, and started again while the next one ran; both ended well.
"""

REPEAT = """\
## How to repeat the test

Each framework is installed in a virtual environment of its own. `http-parser`, which pymesos needs,
compiles with Python 3.10. With 3.11 it compiles after `cython http_parser/parser.pyx` (Cython 0.29)
in its sources. tfmesos2 needs `six` and does not declare it.

{install}

    KEPT=tools/docs/data/frameworks.jsonl
    export MESOS_FRAMEWORKS=/opt/frameworks MESOS_ROOT=/usr/src/mesos/build NUMBA_DISABLE_JIT=1
    export MESOS_ALLOCATOR_MODULE=/usr/lib/mesos/modules/libmesos_allocator-1.11.0.so
    export MESOS_NATIVE_JAVA_LIBRARY=/usr/src/mesos/build/src/libmesos-java.so
{runs}

`tests/cluster/test_frameworks.py` runs each framework briefly, and `test_spark.py` runs jobs of
Spark. They are skipped without a Mesos or without the framework's package.
"""


class Framework(NamedTuple):
    """A published framework: what runs it, and what its users must know."""

    title: str
    python: str
    packages: str
    settings: str


FRAMEWORKS = {
    "pymesos": Framework(
        "pymesos 0.3.15",
        "python3.10",
        "pymesos==0.3.15",
        "No setting. The library always subscribes with `GPU_RESOURCES`, so it is also offered"
        " agents with GPUs. It cannot subscribe to a master whose version has a part that is no"
        " number, such as 1.12.0-dev.",
    ),
    "tfmesos2": Framework(
        "tfmesos2 0.4.0",
        "python3.11",
        "tfmesos2==0.4.0 six",
        "`MESOS_MASTER` and `MESOS_FRAMEWORK_ROLE`. It declines offers with `Filters` where its"
        " library (avmesos 0.4.2) reads `filters`, so its 120 s never reach the master, which"
        " filters for 5 s. It launches one task per offer: an agent for many tasks is offered"
        " again for each.",
    ),
    "airflow": Framework(
        "avmesos-airflow-provider 0.4.0",
        "python3.11",
        "avmesos-airflow-provider==0.4.0 apache-airflow==3.3.2",
        "Its `[mesos]` section, with `mesos_attributes` and all `docker_` options but"
        " `docker_environment` and `docker_network_mode`, and `jwt_algorithm`, `jwt_audience` and"
        " `jwt_secret` of `[api_auth]`. It declines and launches as tfmesos2 does."
        " With an empty queue it suppresses its offers at the next"
        " heartbeat of the master (15 s), and revives them at the one after a task was queued.",
    ),
    "spark": Framework(
        "Spark 3.5.8",
        "python3.11",
        "pyspark==3.5.8",
        "Java, and `MESOS_NATIVE_JAVA_LIBRARY`, the native library; `spark.executor.cores=1` and"
        " `spark.cores.max=3`, so that a job has three executors of one size;"
        " `spark.executor.memory=512m`, which with Spark's overhead is 896 MiB;"
        " `spark.mesos.executor.home`, as Spark is installed on the agents;"
        " `spark.mesos.role`; `spark.mesos.coarse.shutdownTimeout=60s`, because executors that take"
        " longer than this to end are killed. Executors must be able to resolve the host name of"
        " their agent.",
    ),
}

CONTAINERS = """\
tfmesos2 and the Airflow provider wrap each task in a container image. The agents here had neither
Docker nor images, so the driver (`tests/cluster/live_frameworks.py`) launches their tasks without
the container, and tfmesos2's with `sleep` instead of TensorFlow. Their schedulers are unchanged.
"""

MISSING = """\
## What did not run

Marathon and Aurora have no packages that could be installed here.
"""

Row = Mapping[str, Any]
STRETCHES = ("alive", "dead")


def page(kept: Path = KEPT) -> str:
    """The whole page, from the rows that are kept."""
    rows = [json.loads(line) for line in kept.read_text("utf-8").splitlines()]
    names = list(dict.fromkeys(name for row in rows for name in row["alive"]))
    tasks = min(
        each["finished"] for row in rows for kind in STRETCHES for each in row[kind].values()
    )
    return "\n".join(
        [
            INTRODUCTION.format(tasks=tasks),
            CONDITIONS,
            *_summary(rows, names),
            *_settings(names),
            *_ways(rows, names),
            REPEAT.format(install="\n".join(_installs(names)), runs="\n".join(_runs(rows))),
            MISSING,
        ]
    )


def total(rows: Sequence[Row], name: str, stretch: str) -> Counter[str]:
    """What a framework did over all rows, with a sidecar (`alive`) or without (`dead`)."""
    counted: Counter[str] = Counter()
    for row in rows:
        counted.update(row[stretch].get(name, {}))
    return counted


def offers_per_task(counted: Mapping[str, int]) -> str:
    """Answered offers by launched tasks. In rows without their number, each accepted offer was one.

    Offers that were sent would not do, for some are answered in the next stretch.
    """
    launched = counted.get("launched", counted["accepted"])
    return f"{(counted['accepted'] + counted['declined']) / launched:.1f}"


def _item(text: str) -> str:
    return textwrap.fill(f"- {text}", 100, subsequent_indent="  ", break_on_hyphens=False)


def _summary(rows: Sequence[Row], names: Sequence[str]) -> Iterator[str]:
    yield "## Summary\n"
    columns = ["framework", "combinations", "tasks, with sidecar", "tasks, without", "not finished"]
    columns += ["offers per task, with sidecar", "without", "resubscriptions"]
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for name in names:
        ways = sum(name in row["alive"] for row in rows)
        both = [total(rows, name, stretch) for stretch in STRETCHES]
        cells = [
            FRAMEWORKS[name].title,
            str(ways),
            *(str(each["finished"]) for each in both),
            str(sum(each["otherwise"] for each in both)),
            *map(offers_per_task, both),
            str(sum(each["subscribed"] for each in both)),
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield "A *combination* is a policy in a mode. *Without*: after the sidecar was killed. *Not"
    yield "finished*: tasks that failed, were killed or were lost.\n"


def _settings(names: Sequence[str]) -> Iterator[str]:
    yield "## Required settings and special behaviour\n"
    for name in names:
        yield _item(f"*{FRAMEWORKS[name].title}*: {FRAMEWORKS[name].settings}")
    yield ""
    if {"tfmesos2", "airflow"} & set(names):
        yield CONTAINERS


def _ways(rows: Sequence[Row], names: Sequence[str]) -> Iterator[str]:
    yield "## By policy and mode\n"
    yield "Tasks finished / offers per launched task, with the sidecar; then after it was killed.\n"
    yield f"| policy, mode | {' | '.join(names)} |"
    yield "|---" * (len(names) + 1) + "|"
    for way in dict.fromkeys((row["policy"], row["mode"]) for row in rows):
        its = [row for row in rows if (row["policy"], row["mode"]) == way]
        cells = (_cell(its, name) for name in names)
        yield f"| `{way[0]}`, {way[1]} | {' | '.join(cells)} |"
    yield ""


def _cell(rows: Sequence[Row], name: str) -> str:
    both = [total(rows, name, stretch) for stretch in STRETCHES]
    return "; ".join(f"{each['finished']} / {offers_per_task(each)}" for each in both if each)


def _installs(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        framework = FRAMEWORKS[name]
        yield f"    {framework.python} -m venv /opt/frameworks/{name}"
        yield f"    /opt/frameworks/{name}/bin/pip install {framework.packages}"


def _runs(rows: Sequence[Row]) -> Iterator[str]:
    """The commands that kept these rows, one for each set of frameworks that ran together."""
    for names in dict.fromkeys(tuple(row["alive"]) for row in rows):
        policies = dict.fromkeys(row["policy"] for row in rows if tuple(row["alive"]) == names)
        chosen = [] if len(policies) == len(POLICIES) else ["--policies", *policies]
        yield f"    python -m tests.cluster.live {' '.join([*names, *chosen])} >> $KEPT"
