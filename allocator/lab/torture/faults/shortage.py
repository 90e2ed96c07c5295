"""Something runs out: the disk, or descriptors."""

import resource
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import ClassVar

import grpc

from allocator.core import MILLI
from allocator.lab.links.sidecar_process import lowest_free_descriptor
from allocator.lab.torture.faults.base import Anywhere, Scene
from allocator.lab.torture.faults.operators import set_limit
from allocator.lab.torture.proxy import dial_tcp

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
        if not _limit_for_a_while(scene, resource.RLIMIT_FSIZE, FULL_BYTES):
            return
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

        def room() -> None:
            rig.short = False

        try:
            lowest = lowest_free_descriptor(rig.sidecar.pid)
        except OSError:
            return  # the process is gone
        if not _limit_for_a_while(scene, resource.RLIMIT_NOFILE, lowest, room):
            return
        rig.short = True
        # Where the queue of those who wait is full, the next one would wait for long.
        with ExitStack() as stack, suppress(OSError):
            for _ in range(CONNECTIONS):
                stack.enter_context(self._knock(rig.ports.http))

    @staticmethod
    def _knock(port: int) -> socket.socket:
        connection = dial_tcp(port)()
        connection.settimeout(1.0)
        return connection


def _limit_for_a_while(
    scene: Scene, which: int, soft: int, then: Callable[[], None] = lambda: None
) -> bool:
    """Limit the process, and lift that later, and do something more then; False: it is gone."""
    sidecar = scene.rig.sidecar
    pid = sidecar.pid
    if not sidecar.limit(which, soft):
        return False

    def lift() -> None:
        if sidecar.pid == pid:
            sidecar.limit(which, None)
        then()

    scene.later(scene.soon(*LASTS_MS), lift)
    return True
