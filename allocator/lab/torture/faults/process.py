"""What happens to the process, and what it runs short of."""

import resource
import signal
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import ClassVar

import grpc

from allocator.core import MILLI
from allocator.lab.links.sidecar_process import lowest_free_descriptor
from allocator.lab.torture.faults.base import Anywhere, Scene
from allocator.lab.torture.faults.operators import set_limit
from allocator.lab.torture.proxy import dial_tcp
from allocator.lab.torture.rig import Rig
from allocator.lab.torture.sidecar import SidecarGoneError

# What happens to the process.

FREEZE_S = (0.05, 2.5)
ABSENCE_S = (0.0, 1.0)
AHEAD_S = (-40 * 86_400.0, -7_200.0, -90.0, -0.5, 0.5, 90.0, 7_200.0, 40 * 86_400.0)
LASTS_MS = (500, 8_000)


class Kill(Anywhere):
    """SIGKILL: it is gone between two instructions, and starts again after a while."""

    name: ClassVar[str] = "kill -9"
    weight: ClassVar[int] = 2

    def strike(self, scene: Scene) -> None:
        """Kill it; the world goes on without it."""
        scene.rig.sidecar.kill()
        restart(scene)


class Terminate(Anywhere):
    """SIGTERM: it takes leave in order, with exit code 0, and starts again."""

    name: ClassVar[str] = "terminate and restart"
    weight: ClassVar[int] = 2

    def strike(self, scene: Scene) -> None:
        """Have it end, and look how."""
        code = scene.rig.sidecar.terminate()
        wrong = (
            [] if code == 0 else [f"SIGTERM: exit code {code}\n{scene.rig.sidecar.meter.tail()}"]
        )
        scene.rig.findings.check("ends in order", wrong)
        restart(scene)


class Freeze(Anywhere):
    """SIGSTOP, and SIGCONT after a while: shorter or longer than anybody's patience."""

    name: ClassVar[str] = "freeze"
    weight: ClassVar[int] = 6

    def strike(self, scene: Scene) -> None:
        """Stop it, and let it go on."""
        sidecar = scene.rig.sidecar
        sidecar.signal(signal.SIGSTOP)
        scene.afterwards(FREEZE_S, lambda: sidecar.signal(signal.SIGCONT))


class SetClock(Anywhere):
    """Somebody sets the wall clock of its machine, and sets it right after a while."""

    name: ClassVar[str] = "clock set"
    weight: ClassVar[int] = 4

    def strike(self, scene: Scene) -> None:
        """Set it; nobody has waited longer, or less long, for that."""
        rig = scene.rig
        before = self._late(rig)
        rig.wall.set(rig.chance.choice(AHEAD_S))
        late = self._late(rig)
        wrong = [] if before or not late else [f"at once after its clock was set: {late}"]
        rig.findings.check("a clock that is set makes nobody late", wrong)
        scene.later(scene.soon(*LASTS_MS), lambda: rig.wall.set(0.0))

    @staticmethod
    def _late(rig: Rig) -> str:
        """What the sidecar says of a master that says nothing; nothing where it cannot be asked."""
        try:
            found = rig.status().warnings
        except grpc.RpcError:
            return ""
        return "".join(each.text for each in found if each.what == "silent master")


def restart(scene: Scene) -> None:
    """Start the sidecar again after a while, on a thread: meanwhile the master is alone."""
    pause_s = scene.rig.chance.uniform(*ABSENCE_S)

    def start() -> None:
        time.sleep(pause_s)
        try:
            scene.rig.sidecar.start()
        except SidecarGoneError as error:
            scene.rig.findings.violate("comes back", str(error))
            with suppress(SidecarGoneError):
                scene.rig.sidecar.start()

    scene.rig.begin(start)


# Something runs out: the disk, or descriptors.

SHORT_MS = (500, 6_000)
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

    scene.later(scene.soon(*SHORT_MS), lift)
    return True
