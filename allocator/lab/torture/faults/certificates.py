"""Certificates that are replaced, expire, or fit only by halves."""

import time
from typing import ClassVar

from allocator.core import Define, Kind, Options
from allocator.lab.links.base import LinkDownError, Opening
from allocator.lab.module_protocol import SessionEndedError
from allocator.lab.torture.faults.base import Scene, WithTls

LASTS_MS = (1_000, 8_000)
MARK_S = 0.01
"""Files that change within one tick of the file system's clock would look alike."""


class Rotate(WithTls):
    """Another valid certificate: sessions go on, and new ones begin with it."""

    name: ClassVar[str] = "certificate rotated"
    weight: ClassVar[int] = 4

    def strike(self, scene: Scene) -> None:
        """Replace it, and call."""
        assert scene.rig.authority is not None
        scene.rig.authority.rotate()
        scene.rig.trusted = True
        _call(scene, taken=True)


class HalfRotated(WithTls):
    """A certificate without its key: the pair from before counts."""

    name: ClassVar[str] = "certificate half rotated"
    weight: ClassVar[int] = 3

    def strike(self, scene: Scene) -> None:
        """Replace the one half, and call; the other half follows."""
        authority = scene.rig.authority
        assert authority is not None
        # What a process shows that starts now is nothing: it refuses to. So this is over at once.
        if not scene.rig.sidecar.wanted or not scene.rig.trusted:
            return
        authority.half()
        _call(scene, taken=True)
        time.sleep(MARK_S)
        authority.rotate()


class Expire(WithTls):
    """The certificate's time is over: masters do not believe it, until there is another one."""

    name: ClassVar[str] = "certificate expired"
    weight: ClassVar[int] = 3

    def strike(self, scene: Scene) -> None:
        """Show the expired one, call, and plan the next rotation."""
        rig, authority = scene.rig, scene.rig.authority
        assert authority is not None
        authority.expire()
        rig.trusted = False
        _call(scene, taken=False)

        def renew() -> None:
            assert authority is not None
            authority.rotate()
            rig.trusted = True

        scene.later(scene.soon(*LASTS_MS), renew)


def _call(scene: Scene, *, taken: bool) -> None:
    """Call by TLS as an older master, who is refused when the handshake is done."""
    rig = scene.rig
    time.sleep(MARK_S)
    stream = rig.secure_stream(scene.started_us - 1)
    opening = Opening(Options(), lambda _kinds: (Define({0: Kind("cpus")}, {}),), 0, 1)
    answered = True
    try:
        stream.open(opening)
    except SessionEndedError:
        pass  # the sidecar spoke to us: the handshake is done
    except LinkDownError:
        answered = False
    finally:
        stream.close()
    rig.findings.counts["handshakes_tried"] += 1
    rig.findings.counts["handshakes_done"] += answered
    # Where nobody answers, the process may be frozen; where somebody does, it must be believed.
    wrong = ["a master was taken by an expired certificate"] if answered and not taken else []
    # Without a descriptor it could not read the other one, and shows the one from before.
    if rig.short:
        wrong = []
    rig.findings.check("only a valid certificate is believed", wrong)
