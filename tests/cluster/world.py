"""A small cluster on this machine: a real master, real agents, and optionally a sidecar."""

import json
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from tests.cluster import books
from tests.cluster.api import CallFailedError, Operator
from tests.cluster.framework import Framework, Manner
from tests.cluster.mesos import MODULE_NAME, Mesos
from tests.cluster.processes import Child, Patience, end_all_below, until
from tests.cluster.sidecar import Sidecar
from tests.server.processes import free_port

START_S = 60.0
RESOURCES = "cpus:4;mem:4096;disk:8192;ports:[31000-31099]"
FATAL = re.compile(r"^F\d{4} .*|.*Check failed.*|\*\*\* Aborted.*", re.MULTILINE)
PARAMETERS = {"fallback_after_ms": "500", "answer_deadline_ms": "3000"}
WORKERS = {"LIBPROCESS_NUM_WORKER_THREADS": "3"}


def leads(operator: Operator) -> bool:
    """Whether the master is elected, and has read its registry."""
    try:
        elected = bool(operator.metrics().get("master/elected"))
    except (OSError, CallFailedError):
        return False
    return elected and operator.try_call("GET_AGENTS") == 200


class Agent:
    """One agent; a restart keeps its identity, because its work directory stays."""

    def __init__(self, world: "World", name: str, flags: Mapping[str, str]) -> None:
        self.name, self._world = name, world
        self.directory = world.directory / name
        self.directory.mkdir()
        self.address = f"127.0.0.1:{free_port()}"
        self.child: Child | None = None
        self.flags = {
            "master": world.master_url,
            "ip": "127.0.0.1",
            "advertise_ip": "127.0.0.1",
            "port": self.address.partition(":")[2],
            "hostname": name,
            "work_dir": str(self.directory / "work"),
            "runtime_dir": str(self.directory / "run"),
            "launcher_dir": str(world.mesos.launcher),
            "launcher": "posix",
            "isolation": "posix/cpu,posix/mem",
            "containerizers": "mesos",
            "systemd_enable_support": "false",
            "hostname_lookup": "false",
            "switch_user": "false",
            "resources": RESOURCES,
            "registration_backoff_factor": "200ms",
            "executor_shutdown_grace_period": "1secs",
            "executor_registration_timeout": "3mins",
            **flags,
        }

    def start(self) -> Self:
        """Start the process; `World.wait_for_agents` waits until it is registered."""
        command: list[object] = [*_without_cgroup2_aside(), self._world.mesos.agent]
        command += [f"--{key}={value}" for key, value in self.flags.items()]
        self.child = Child(command, self.directory.with_suffix(".log"), WORKERS)
        return self

    def crash(self) -> None:
        assert self.child is not None
        self.child.kill()

    def signal(self, number: int) -> None:
        assert self.child is not None
        self.child.signal(number)

    def id(self) -> str:
        """The agent's id, by its hostname."""
        for agent in self._world.operator.call("GET_AGENTS").get("agents", []):
            if agent["agent_info"]["hostname"] == self.name:
                return agent["agent_info"]["id"]["value"]
        raise AssertionError(f"{self.name} is not registered")


class World:
    """A master, agents and other processes; all of them end with the context.

    built_in: true: Mesos's own allocator, and no sidecar.
    interval: allocation interval, such as ``1secs``.
    parameters: more of the module's.
    configuration: more of the sidecar's.
    flags: more of the master's; ``{directory}`` is the directory of the cluster.
    """

    def __init__(
        self,
        mesos: Mesos,
        *,
        built_in: bool = False,
        agents: int = 2,
        interval: str = "1secs",
        parameters: Mapping[str, str] | None = None,
        flags: Mapping[str, str] | None = None,
        agent_flags: Mapping[str, str] | None = None,
        sidecar: bool = True,
        configuration: str = "",
    ) -> None:
        self.mesos, self.built_in = mesos, built_in
        # Short, for a Unix socket's path has about 100 characters.
        self.directory = Path(tempfile.mkdtemp(prefix="cluster-"))
        self.address = f"127.0.0.1:{free_port()}"
        self.master_url = self.address
        self.operator = Operator(self.address)
        self.sidecar = Sidecar(self.directory, configuration)
        self.agents: list[Agent] = []
        self.frameworks: list[Framework] = []
        self._wanted = agents, sidecar and not built_in
        self._parameters = {**PARAMETERS, "target": self.sidecar.target, **(parameters or {})}
        self._agent_flags = dict(agent_flags or {})
        self._flags = {
            "ip": "127.0.0.1",
            "advertise_ip": "127.0.0.1",
            "port": self.address.partition(":")[2],
            "hostname": "127.0.0.1",
            "work_dir": str(self.directory / "master"),
            "webui_dir": str(self.directory),
            "registry": "in_memory",
            "allocation_interval": interval,
            **{key: value.format(directory=self.directory) for key, value in (flags or {}).items()},
        }
        self.master: Child | None = None
        self.fine = False

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: object, *_error: object) -> None:
        self.fine = kind is None
        self.close()

    def _start(self) -> None:
        agents, sidecar = self._wanted
        if sidecar:
            self.sidecar.start()
        self.start_master()
        for number in range(agents):
            attributes = f"rack:r{number % 2};disk:{'ssd' if number % 2 else 'hdd'}"
            self.add_agent(f"agent-{number}", attributes=attributes)
        self.wait_for_agents(agents)
        if sidecar:
            self.wait_connected()

    def start_master(self) -> None:
        """Start the master, and wait until it is elected."""
        self.master = self.start_process(self._flags, "master.log")
        until(self._elected, START_S, "the master is elected")

    def start_process(
        self, flags: Mapping[str, str], log: str, *, few_threads: bool = True
    ) -> Child:
        """Start the process of a master."""
        flags = dict(flags)
        if not self.built_in:
            manifest = self.directory / "modules.json"
            pairs = [{"key": key, "value": value} for key, value in self._parameters.items()]
            module = {"name": MODULE_NAME, "parameters": pairs}
            library = {"file": str(self.mesos.module), "modules": [module]}
            manifest.write_text(json.dumps({"libraries": [library]}))
            flags |= {"modules": f"file://{manifest}", "allocator": MODULE_NAME}
        command: list[object] = [self.mesos.master]
        command += [f"--{key}={value}" for key, value in flags.items()]
        return Child(command, self.directory / log, WORKERS if few_threads else {})

    def _elected(self) -> bool:
        assert self.master is not None
        assert self.master.alive, f"the master ended:\n{self.master.said()[-3000:]}"
        return leads(self.operator)

    def add_agent(self, name: str, **flags: str) -> Agent:
        """Start an agent with further flags of Mesos."""
        agent = Agent(self, name, {**self._agent_flags, **flags}).start()
        self.agents.append(agent)
        return agent

    def wait_for_agents(self, count: int, within_s: float = START_S) -> None:
        """Wait until this number of agents is active."""

        def active() -> bool:
            self.check_master()
            rows = self.operator.call("GET_AGENTS").get("agents", [])
            return sum(row["active"] for row in rows) == count

        until(active, within_s, f"{count} agents are active")

    def wait_connected(self, within_s: float = 60.0) -> float:
        """Wait until the module has a session; returns how long that took, in seconds."""
        begun_s = time.monotonic()
        until(
            lambda: self.operator.metrics()["allocator/sidecar/connected"] == 1,
            within_s,
            "the module has a session",
            0.05,
        )
        return time.monotonic() - begun_s

    def framework(
        self, name: str, *roles: str, manner: Manner | None = None, **more: Any
    ) -> Framework:
        """Subscribe a framework."""
        framework = Framework(self.address, name, roles or ("*",), manner, **more)
        self.frameworks.append(framework)
        return framework.start()

    def execute(self, name: str, command: str, **flags: str) -> Child:
        """Start `mesos-execute`."""
        words: list[object] = [self.mesos.execute, f"--master={self.address}", f"--name={name}"]
        words += [f"--command={command}"]
        words += [f"--{key}={value}" for key, value in flags.items()]
        return Child(words, self.directory / f"{name}.log", {"LIBPROCESS_IP": "127.0.0.1"})

    def check_master(self) -> None:
        """Fail if the master is gone, or logged a fatal error."""
        assert self.master is not None
        said = self.master.said()
        bad = FATAL.findall(said)
        assert self.master.alive, f"the master ended: {bad or said[-2000:]}"
        assert not bad, bad

    def differences(self) -> list[str]:
        """Compare the books of master and sidecar; see `books.all_differences`."""
        return books.all_differences(self.operator, self.sidecar)

    def wait_for_agreement(self, within_s: float = 20.0) -> None:
        """Wait until all books agree."""
        patience = Patience(within_s)
        while found := self.differences():
            self.check_master()
            assert not patience.over, "\n".join(found)
            time.sleep(0.2)

    def close(self) -> None:
        """End everything; the directory stays if something went wrong."""
        for framework in self.frameworks:
            framework.disconnect()
        for agent in self.agents:
            if agent.child is not None:
                agent.child.kill()
        if self.master is not None:
            self.master.stop()
        self.sidecar.stop()
        while end_all_below(self.directory):
            time.sleep(0.1)
        if self.fine:
            shutil.rmtree(self.directory, ignore_errors=True)


class Sampler:
    """Polls the master, and records violations.

    found: agents whose offers and tasks exceed their total.
    """

    def __init__(self, operator: Operator, every_s: float = 0.2) -> None:
        self._operator, self._every_s = operator, every_s
        self.samples = 0
        self.found: list[str] = []
        self.failures: list[str] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            try:
                state = self._operator.state()
            except (OSError, CallFailedError) as error:
                self.failures.append(repr(error))
                continue
            self.samples += 1
            self.found += books.over_committed(state)


def _without_cgroup2_aside() -> list[str]:
    """Wrapper command for agents on machines with cgroups v2 mounted beside v1.

    Agents from 1.12 on refuse such a machine, although ours use no cgroups: they get a mount
    namespace without that mount.
    """
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    aside = [each[1] for each in mounts if each[2] == "cgroup2" and each[1] != "/sys/fs/cgroup"]
    if not aside:
        return []
    script = f'umount {" ".join(aside)} && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "agent"]


def run(child: Child, within_s: float = 120.0) -> str:
    """Wait for a command to succeed; returns its output."""
    try:
        code = child.wait(within_s)
    except AssertionError:
        child.kill()
        code = -1
    assert code == 0, child.said()[-3000:]
    return child.said()
