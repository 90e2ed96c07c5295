"""What happens to the process."""

import signal
import threading
import time
from contextlib import suppress
from typing import ClassVar

from allocator.sim.torture.faults.base import Anywhere, Scene
from allocator.sim.torture.sidecar import SidecarGoneError

FREEZE_S = (0.05, 2.5)
ABSENCE_S = (0.0, 1.0)


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
        """Stop it; a thread lets it go on, for the master may be waiting by then."""
        sidecar, pause_s = scene.rig.sidecar, scene.rig.chance.uniform(*FREEZE_S)
        sidecar.signal(signal.SIGSTOP)
        timer = threading.Timer(pause_s, sidecar.signal, (signal.SIGCONT,))
        timer.daemon = True
        timer.start()


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
