"""Something runs out: the disk, or descriptors."""

import resource
import socket
from contextlib import ExitStack, suppress
from typing import ClassVar

import grpc

from allocator.core import MILLI
from allocator.sim.torture.faults.base import Anywhere, Scene
from allocator.sim.torture.faults.operators import set_limit
from allocator.sim.torture.proxy import dial_tcp

LASTS_MS = (500, 6_000)
CONNECTIONS = 40
FULL_BYTES = 1
"""No file may grow beyond this: so a disk is full for one process, and for no other."""


class DiskFull(Anywhere):
    """Not a byte more for journal and state; then there is room again."""

    name: ClassVar[str] = "disk full"
    weight: ClassVar[int] = 3

    def strike(self, scene: Scene) -> None:
        """Fill it; an operator's change must be refused then, or said to be kept."""
        rig = scene.rig
        pid = rig.sidecar.pid
        before = rig.sidecar.limit(resource.RLIMIT_FSIZE, FULL_BYTES)
        if before == -1 and rig.sidecar.died() is not None:
            return

        def room() -> None:
            if rig.sidecar.pid == pid:
                rig.sidecar.limit(resource.RLIMIT_FSIZE, resource.RLIM_INFINITY)

        scene.later(scene.soon(*LASTS_MS), room)
        wrong = []
        try:
            set_limit(scene, "torture/full", 7 * MILLI)
        except grpc.RpcError as error:
            text = f"{error.code()}: {error.details()}"
            if error.code() in {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL}:
                wrong.append(f"with a full disk a change was answered by {text}")
        rig.findings.check("a full disk stops nothing", wrong)


class NoDescriptors(Anywhere):
    """Not a connection more; then there is room again."""

    name: ClassVar[str] = "descriptors exhausted"
    weight: ClassVar[int] = 3

    def strike(self, scene: Scene) -> None:
        """Take away what is not in use, and knock."""
        rig = scene.rig
        pid = rig.sidecar.pid
        _, _, used = rig.sidecar.status()
        before = rig.sidecar.limit(resource.RLIMIT_NOFILE, max(used, 1))
        if before == -1:
            return
        rig.short = True

        def room() -> None:
            rig.short = False
            if rig.sidecar.pid == pid:
                rig.sidecar.limit(resource.RLIMIT_NOFILE, before)

        scene.later(scene.soon(*LASTS_MS), room)
        with ExitStack() as stack:
            for _ in range(CONNECTIONS):
                with suppress(OSError):
                    stack.enter_context(self._knock(rig.ports.http))

    @staticmethod
    def _knock(port: int) -> socket.socket:
        connection = dial_tcp(port)()
        connection.settimeout(1.0)
        return connection
