"""What a fault is."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from allocator.lab.master.emulated import EmulatedMaster
from allocator.lab.torture.link import TorturedLink
from allocator.lab.torture.rig import Rig


@dataclass
class Scene:
    """Where a fault strikes: the rig, and the master whose world is played.

    later: has something done after so many milliseconds of the world's time, or at its end.
    """

    rig: Rig
    master: EmulatedMaster
    link: TorturedLink
    started_us: int
    later: Callable[[int, Callable[[], None]], None]

    def afterwards(self, between_s: tuple[float, float], undo: Callable[[], None]) -> None:
        """Have something undone after a while of real time: the master may be waiting by then."""
        timer = threading.Timer(self.rig.chance.uniform(*between_s), undo)
        timer.daemon = True
        timer.start()

    def soon(self, least_ms: int, most_ms: int) -> int:
        """A while of the world's time."""
        return self.rig.chance.randint(least_ms, most_ms)


class Fault(Protocol):
    """Something that goes wrong.

    weight: how likely it is beside the others; what takes long is rare.
    """

    name: ClassVar[str]
    weight: ClassVar[int]

    def possible(self, rig: Rig) -> bool:
        """Whether it can be done here."""
        ...

    def strike(self, scene: Scene) -> None:
        """Do it; what must come of it at once is looked at here."""
        ...


class Anywhere:
    """A fault that can be done wherever a sidecar runs."""

    def possible(self, _rig: Rig) -> bool:
        """Yes."""
        return True


class WithTls:
    """A fault that needs TLS."""

    def possible(self, rig: Rig) -> bool:
        """Whether certificates can be made."""
        return rig.authority is not None
