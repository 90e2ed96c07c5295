"""Third-party frameworks by their own libraries: ``PYTHON live_frameworks.py NAME MASTER``.

Runs in the interpreter of the framework's packages, so it imports nothing of ours. Each keeps two
tasks of half a CPU and 64 MiB wanted or running, which sleep a second, until it is killed. Spark
runs one job after another, each with executors of one CPU.
"""

import functools
import getpass
import importlib
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid
from typing import Any

CPUS, MEM_MIB, AT_ONCE = 0.5, 64.0, 2
COMMAND = "sleep 1"
EXECUTORS, PARTITIONS = 3, 12
"""Of a Spark job."""

AIRFLOW_API = "http://127.0.0.1:11000/v0/queue_command"


def pymesos(master: str) -> None:
    """Schedule with pymesos, whose user writes the scheduler."""
    library = importlib.import_module("pymesos")

    class Scheduler(library.Scheduler):  # type: ignore[misc, name-defined]
        wanted = AT_ONCE

        def resourceOffers(self, driver: Any, offers: Any) -> None:  # noqa: N802
            for offer in offers:
                if self.wanted and _fits(offer):
                    self.wanted -= 1
                    driver.launchTasks(offer["id"], [_task(offer)])
                else:
                    driver.declineOffer(offer["id"])

        def statusUpdate(self, _driver: Any, update: Any) -> None:  # noqa: N802
            self.wanted += update["state"] not in {"TASK_STARTING", "TASK_RUNNING", "TASK_STAGING"}

    framework = {"user": getpass.getuser(), "name": "pymesos", "role": "pymesos"}
    library.MesosSchedulerDriver(Scheduler(), framework, master).run()


def _fits(offer: Any) -> bool:
    free = {each["name"]: each.get("scalar", {}).get("value", 0) for each in offer["resources"]}
    return bool(free.get("cpus", 0) >= CPUS and free.get("mem", 0) >= MEM_MIB)


def _task(offer: Any) -> dict[str, object]:
    amounts = (("cpus", CPUS), ("mem", MEM_MIB))
    return {
        "task_id": {"value": str(uuid.uuid4())},
        "name": "live",
        "agent_id": offer["agent_id"],
        "command": {"value": COMMAND},
        "resources": [
            {"name": name, "type": "SCALAR", "scalar": {"value": amount}}
            for name, amount in amounts
        ],
    }


def tfmesos2(master: str) -> None:
    """Run workers of tfmesos2; when one has ended another is queued, as after a failure."""
    os.environ["MESOS_MASTER"] = master
    os.environ["MESOS_FRAMEWORK_ROLE"] = "tfmesos2"
    _without_images(COMMAND)
    library = importlib.import_module("tfmesos2.scheduler")
    job = library.Job("worker", AT_ONCE, cpus=CPUS, mem=MEM_MIB)
    scheduler = library.TensorflowMesos([job], client_ip="127.0.0.1")

    def again(update: Any) -> None:
        if update["status"]["state"] == "TASK_FINISHED":
            task = library.Task(str(uuid.uuid4()), "worker", 0, cpus=CPUS, mem=MEM_MIB)
            scheduler.tasks[task.mesos_task_id] = task
            scheduler.task_queue.put(task)

    scheduler.client.on(library.MesosClient.UPDATE, again)
    scheduler.start()
    scheduler.join()


def airflow(master: str) -> None:
    """Run Airflow's Mesos executor, with commands through its HTTP interface."""
    settings = {
        "MASTER": master,
        "FRAMEWORK_NAME": "airflow",
        "AUTHENTICATE": "False",
        "CHECKPOINT": "False",
        "FAILOVER_TIMEOUT": "60",
        "TASK_CPU": str(CPUS),
        "TASK_MEMORY": str(MEM_MIB),
        "TASK_DISK": "32",
        **{f"DOCKER_VOLUME_{name}_NAME": name for name in ("DAG", "LOGS")},
        **{f"DOCKER_VOLUME_{name}_CONTAINER_PATH": f"/{name}" for name in ("DAG", "LOGS")},
        "MESOS_ATTRIBUTES": "[]",
        "DOCKER_VOLUME_DRIVER": "local",
        "DOCKER_IMAGE_SLA" + "VE": "none",
        "DOCKER_USER_GROUP_ID": "0",
        "DOCKER_SOCK": "/var/run/docker.sock",
    }
    os.environ.update({f"AIRFLOW__MESOS__{key}": value for key, value in settings.items()})
    os.environ["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] = "http://127.0.0.1:8080/execution/"
    jwt = {"ALGORITHM": "HS512", "AUDIENCE": "live", "SECRET": uuid.uuid4().hex}
    os.environ.update({f"AIRFLOW__API_AUTH__JWT_{key}": value for key, value in jwt.items()})
    _without_images()
    library = importlib.import_module("avmesos_airflow_provider.executors.mesos_executor")
    executor = library.MesosExecutor()
    executor.start()
    client = library.MesosClient

    known = set()

    def ended(update: Any) -> None:
        identity = update["status"]["task_id"]["value"]
        # If acknowledgements are late, agents send updates again.
        if update["status"]["state"] == "TASK_FINISHED" and identity not in known:
            known.add(identity)
            _queue()

    executor.client.on(client.UPDATE, ended)
    for _ in range(AT_ONCE):
        _queue()
    executor.mesos_framework.join()


def _queue() -> None:
    identity = str(uuid.uuid4())
    body = {"command": [COMMAND], "airflow_task_id": identity, "cpus": CPUS, "mem_limit": "64m"}
    kind = {"Content-Type": "application/json"}
    request = urllib.request.Request(AIRFLOW_API, json.dumps(body).encode(), kind)
    for _ in range(100):
        try:
            urllib.request.urlopen(request, timeout=10).close()
        except urllib.error.HTTPError:
            raise
        except urllib.error.URLError:
            time.sleep(0.5)  # It starts its server in a thread.
        else:
            return


def spark(master: str) -> None:
    """Run jobs of Spark one after another; each is a framework of its own, in one JVM.

    A line for each job that computed the right result goes to standard output.
    """
    library = importlib.import_module("pyspark")
    settings = {
        "spark.mesos.role": "spark",
        "spark.mesos.executor.home": library.__path__[0],
        "spark.cores.max": str(EXECUTORS),
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.mesos.coarse.shutdownTimeout": "60s",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        **dict(word.split("=", 1) for word in sys.argv[3:]),
    }
    os.environ |= {"LIBPROCESS_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    while True:
        conf = library.SparkConf().setMaster(f"mesos://{master}").setAppName("spark")
        context = library.SparkContext(conf=conf.setAll(settings.items()))
        numbers = context.parallelize(range(PARTITIONS), PARTITIONS)
        seen = numbers.map(_slowly).collect()
        context.stop()
        assert seen == list(range(PARTITIONS))
        print("job", len(seen), flush=True)  # noqa: T201


def _slowly(number: int) -> int:
    time.sleep(0.5)
    return number


def _without_images(command: str | None = None) -> None:
    """Launch avmesos's tasks without their containers, as no images are available here."""
    offer = importlib.import_module("avmesos.offers").Offer
    accept = offer.accept

    @functools.wraps(accept)
    def plain(self: Any, tasks: Any, options: Any = None) -> Any:
        for task in tasks:
            task.pop("container", None)
            task["command"]["shell"] = True
            task["command"]["value"] = command or task["command"]["value"]
        return accept(self, tasks, options)

    offer.accept = plain


if __name__ == "__main__":
    {each.__name__: each for each in (pymesos, tfmesos2, airflow, spark)}[sys.argv[1]](sys.argv[2])
