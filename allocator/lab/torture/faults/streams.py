"""What happens to connections."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, ClassVar

import grpc

from allocator.lab.links.sidecar_process import channel
from allocator.lab.torture.faults.base import Anywhere, Scene, WithTls
from allocator.lab.torture.proxy import Proxy, dial_tcp
from allocator.lab.torture.rig import Rig
from allocator.v1 import session_pb2 as pb

STALL_S = (0.05, 2.5)
CUT_S = (0.05, 8.0)
"""Up to longer than the master waits for an answer."""

RECONNECTS = (20, 60)
CONNECTIONS = 20
METHOD = "/allocator.v1.SessionService/Session"
GARBAGE_S = 10.0


class Reconnect(Anywhere):
    """The master calls again and again, each time with a snapshot."""

    name: ClassVar[str] = "reconnect, dozens of times"
    weight: ClassVar[int] = 4

    def strike(self, scene: Scene) -> None:
        """Begin one session after the other, as long as they are taken."""
        for _ in range(scene.soon(*RECONNECTS)):
            if not scene.link.up:
                break
            scene.rig.findings.counts["reconnects"] += 1
            scene.master.session.open()


class Reset(Anywhere):
    """All connections through the proxies are reset."""

    name: ClassVar[str] = "connections reset"
    weight: ClassVar[int] = 8

    def strike(self, scene: Scene) -> None:
        """Cut them."""
        for each in _proxies(scene):
            scene.rig.findings.counts["connections_reset"] += each.reset()


class Tear(Anywhere):
    """Of the next bytes on a connection a part arrives, then it is reset."""

    name: ClassVar[str] = "connections torn"
    weight: ClassVar[int] = 8

    def strike(self, scene: Scene) -> None:
        """Tear whatever comes next."""
        for each in _proxies(scene):
            each.tear()


class Stall(Anywhere):
    """Nothing arrives for a while, and then everything does."""

    name: ClassVar[str] = "connections stalled"
    weight: ClassVar[int] = 6

    def strike(self, scene: Scene) -> None:
        """Hold back, and let it flow."""
        proxies = _proxies(scene)
        for each in proxies:
            each.stall()

        def flow() -> None:
            for each in proxies:
                each.flow()

        scene.afterwards(STALL_S, flow)


class Garble(WithTls):
    """A byte is changed under TLS: the record cannot be believed, so the connection ends."""

    name: ClassVar[str] = "bytes garbled under TLS"
    weight: ClassVar[int] = 4

    def strike(self, scene: Scene) -> None:
        """Change the next byte. In plaintext nothing could notice a wrong amount."""
        scene.rig.secure.garble()


class RawGarbage(Anywhere):
    """Peers that speak no gRPC, and some that say nothing at all."""

    name: ClassVar[str] = "garbage on sockets"
    weight: ClassVar[int] = 3

    def strike(self, scene: Scene) -> None:
        """Connect many times, say nonsense, and leave at once or never read."""
        ports = [scene.rig.ports.http]
        if scene.rig.authority is not None:
            ports.append(scene.rig.ports.grpc)
        for number in range(CONNECTIONS):
            with suppress(OSError), dial_tcp(ports[number % len(ports)])() as connection:
                connection.settimeout(1.0)
                connection.sendall(scene.rig.chance.randbytes(scene.soon(1, 4_000)))
                if number % 3 == 0:
                    connection.shutdown(socket.SHUT_WR)
        scene.rig.findings.counts["garbage_connections"] += CONNECTIONS


class SessionGarbage(Anywhere):
    """Streams of messages that are no messages, or not the ones that are due."""

    name: ClassVar[str] = "garbage in sessions"
    weight: ClassVar[int] = 4

    def strike(self, scene: Scene) -> None:
        """Say nonsense, and look at the answers: an error with a name, or nothing more."""
        wrong = []
        clock = scene.rig.sidecar.clock
        with channel(scene.rig.unix) as to_sidecar:
            call: Any = to_sidecar.stream_stream(METHOD)
            for _ in range(5):
                begin_s = clock.now_s
                answers = call(self._messages(scene), timeout=GARBAGE_S)
                try:
                    errors = [pb.SessionResponse.FromString(answer).error for answer in answers]
                except grpc.RpcError as error:
                    # A machine that stood still makes nobody late.
                    late = clock.now_s - begin_s >= 0.9 * GARBAGE_S
                    stood = error.code() is grpc.StatusCode.DEADLINE_EXCEEDED and not late
                    if error.code() not in _CUT and not scene.rig.short and not stood:
                        wrong.append(f"garbage was answered by {error.code()}: {error.details()}")
                    if scene.rig.short:
                        break  # it has nothing left to take a connection with; that takes its time
                    continue
                scene.rig.findings.counts["garbage_sessions"] += 1
                wrong += [
                    f"garbage was answered by {error}"
                    for error in errors
                    if error.code in {pb.ERROR_CODE_UNSPECIFIED, pb.ERROR_CODE_INTERNAL}
                ]
        scene.rig.findings.check("garbage gets a named error", wrong)

    @staticmethod
    def _messages(scene: Scene) -> Iterator[bytes]:
        chance = scene.rig.chance
        # A greeting would take the sidecar from the master: that is for the rivals to do.
        valid = pb.SessionRequest(events=pb.EventBatch(sequence=1)).SerializeToString()
        for _ in range(chance.randint(1, 4)):
            data = bytearray(valid if chance.random() < 0.3 else chance.randbytes(64))
            data[chance.randrange(len(data))] ^= chance.randrange(256)
            yield bytes(data)


_CUT = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
)
"""The process was stopped, or is full: no answer to what was said."""


class CutNetwork:
    """No packet arrives for a while, and nobody is told: a cable that is pulled."""

    name: ClassVar[str] = "network cut"
    weight: ClassVar[int] = 6

    def possible(self, rig: Rig) -> bool:
        """Whether there is a network to cut."""
        return rig.cable is not None

    def strike(self, scene: Scene) -> None:
        """Pull the cable, and plug it in again."""
        cable = scene.rig.cable
        assert cable is not None
        cable.pull()
        scene.afterwards(CUT_S, cable.plug)


def _proxies(scene: Scene) -> list[Proxy]:
    return [scene.rig.plain, scene.rig.secure]
