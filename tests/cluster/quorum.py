"""Several masters that elect their leader through a real ZooKeeper."""

import shutil
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.cluster.api import Operator
from tests.cluster.framework import Framework
from tests.cluster.mesos import Mesos, NotFoundError
from tests.cluster.processes import Child, until
from tests.cluster.world import START_S, World, leads
from tests.server.processes import free_port

JAR = Path("/usr/share/java/zookeeper.jar")
"""Debian's package `zookeeper` installs it here; its manifest names all its dependencies."""

SESSION_S = 4.0
"""ZooKeeper's session timeout, after which a silent master or agent counts as gone."""


def find_zookeeper() -> str:
    """The path of Java, if ZooKeeper is installed, too.

    Raises NotFoundError if one of them is missing.
    """
    java = shutil.which("java")
    if java is None or not JAR.is_file():
        raise NotFoundError("no ZooKeeper: apt-get install default-jre-headless zookeeper")
    return java


class ZooKeeper:
    """A ZooKeeper of one server on this machine."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        config = directory / "zoo.cfg"
        settings = {
            "tickTime": "500",
            "dataDir": directory / "zookeeper",
            "clientPort": self.port,
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
        }
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self.child = Child(
            [find_zookeeper(), "-cp", JAR, main, config], directory / "zookeeper.log"
        )
        until(self._listens, START_S, "ZooKeeper listens")

    def _listens(self) -> bool:
        assert self.child.alive, self.child.said()[-2000:]
        try:
            socket.create_connection(("127.0.0.1", self.port), 1.0).close()
        except OSError:
            return False
        return True


class Quorum(World):
    """Three masters with a replicated registry; `address`, `operator`, `master` are the leader's.

    One sidecar serves the leading master.
    """

    MASTERS = 3

    def __init__(self, mesos: Mesos, **options: Any) -> None:
        super().__init__(mesos, **options)
        self.zookeeper: ZooKeeper | None = None
        self._addresses = [f"127.0.0.1:{free_port()}" for _ in range(self.MASTERS)]
        self._masters: dict[str, Child] = {}
        self.stopped: set[str] = set()

    def start_master(self) -> None:
        """Start ZooKeeper and all masters, and wait for a leader."""
        self.zookeeper = ZooKeeper(self.directory)
        self.master_url = f"zk://127.0.0.1:{self.zookeeper.port}/mesos"
        for address in self._addresses:
            self.restart(address)
        self.wait_for_leader()

    def restart(self, address: str) -> None:
        """Start the master with this address; it is a standby if another one leads."""
        number = self._addresses.index(address)
        flags: Mapping[str, str] = {
            **self._flags,
            "port": address.partition(":")[2],
            "work_dir": str(self.directory / f"master-{number}"),
            "zk": self.master_url,
            "zk_session_timeout": f"{SESSION_S:g}secs",
            "registry": "replicated_log",
            "quorum": str(self.MASTERS // 2 + 1),
        }
        # With few threads a master would wait forever for its connections to ZooKeeper.
        self._masters[address] = self.start_process(
            flags, f"master-{number}.log", few_threads=False
        )

    def _leaders(self) -> list[str]:
        return [each for each in self._masters.keys() - self.stopped if leads(Operator(each))]

    def wait_for_leader(self) -> float:
        """Wait until a master leads; returns how long that took, in seconds."""
        begun_s = time.monotonic()
        (self.address,) = until(self._leaders, START_S, "a master leads")
        self.operator = Operator(self.address)
        self.master = self._masters[self.address]
        return time.monotonic() - begun_s

    @property
    def leader(self) -> Child:
        """The process of the leading master."""
        return self._masters[self.address]

    def successor(self, framework: Framework) -> Framework:
        """Resubscribe a framework with the current leader; its tasks continue."""
        framework.disconnect()
        heir = Framework(
            self.address,
            framework.name,
            framework.roles,
            framework.manner,
            framework_id=framework.framework_id,
        )
        heir.tasks = framework.tasks
        self.frameworks.append(heir)
        return heir.start()

    def close(self) -> None:
        """End everything."""
        for child in self._masters.values():
            child.kill()
        if self.zookeeper is not None:
            self.zookeeper.child.kill()
        super().close()
