"""Two where there should be one: masters that want one sidecar, sidecars that want one place."""

from typing import ClassVar

from allocator.core import Define, Kind, Options
from allocator.lab.links.base import Batch, LinkDownError, Opening
from allocator.lab.links.stream import StreamLink
from allocator.lab.module_protocol import SessionEndedError
from allocator.lab.torture.faults.base import Anywhere, Scene
from allocator.lab.torture.link import PatientLink

SECOND_S = 60.0
SECOND = "second.log"
CONFIG = 78
"""The exit code where the configuration is wrong."""


class NewerMaster(Anywhere):
    """A newer master takes the sidecar over for a moment: the old one is told, and comes back."""

    name: ClassVar[str] = "a newer master"
    weight: ClassVar[int] = 4

    def strike(self, scene: Scene) -> None:
        """Take the sidecar, have it decide on nothing, and leave."""
        if not scene.link.up:
            return
        rival = PatientLink(scene.rig.unix, scene.started_us + 1)
        try:
            _open(rival)
            rival.exchange(Batch(1, 2, []))
        except LinkDownError:
            return  # frozen, or stopped meanwhile
        finally:
            rival.close()
        before = scene.link.superseded
        # The master notices with the next that it says.
        scene.master.settle()
        scene.rig.findings.counts["superseded"] += scene.link.superseded - before


class OlderMaster(Anywhere):
    """A master that was deposed calls: it is refused, by an error that says why."""

    name: ClassVar[str] = "an older master"
    weight: ClassVar[int] = 4

    def strike(self, scene: Scene) -> None:
        """Call as somebody older; nothing may change for the one that is served."""
        scene.master.settle()
        if not scene.link.up:
            return
        rival = PatientLink(scene.rig.unix, scene.started_us - 1)
        wrong = []
        try:
            _open(rival)
            if scene.link.up:
                wrong.append("an older master was taken while a newer one had the sidecar")
        except SessionEndedError as error:
            if "older than" not in str(error):
                wrong.append(f"an older master was told {error}")
        except LinkDownError:
            return  # frozen, or stopped meanwhile
        finally:
            rival.close()
        scene.rig.findings.check("the newer master has the sidecar", wrong)


class SecondSidecar(Anywhere):
    """A second process with the same configuration: sockets, ports, journal and state."""

    name: ClassVar[str] = "a second sidecar"
    weight: ClassVar[int] = 1

    def strike(self, scene: Scene) -> None:
        """Start it, on a thread; it has to end by itself, with an error that names the place."""
        rig = scene.rig

        def start() -> None:
            code, said = rig.sidecar.second(rig.out / SECOND, SECOND_S)
            if not rig.sidecar.wanted:
                return  # the first one was not there
            if code == CONFIG:
                return  # it has read a file that was wrong at that moment
            clear = code == 1 and "cannot start" in said and str(rig.directory) in said
            named = clear or (code == 1 and "cannot be listened on" in said)
            wrong = [] if named else [f"a second sidecar ended with {code} and said\n{said}"]
            rig.findings.check("one sidecar at one place", wrong)

        if rig.sidecar.wanted:
            rig.begin(start)


def _open(link: StreamLink) -> None:
    """Begin a session of a cluster of nothing."""
    opening = Opening(Options(), lambda _kinds: (Define({0: Kind("cpus")}, {}),), 0, 1)
    link.open(opening)
    # The welcome is here by now; whether the snapshot is taken only the next answer says.
