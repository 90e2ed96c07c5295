"""What goes wrong between two: connections, rival masters and sidecars, certificates."""

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, ClassVar

import grpc

from allocator.core import Define, Kind, Options
from allocator.lab.links.base import Batch, LinkDownError, Opening
from allocator.lab.links.sidecar_process import channel
from allocator.lab.links.stream import StreamLink
from allocator.lab.module_protocol import SessionEndedError
from allocator.lab.torture.faults.base import Anywhere, Scene, WithTls
from allocator.lab.torture.link import PatientLink
from allocator.lab.torture.proxy import Proxy, dial_tcp
from allocator.lab.torture.rig import Rig
from allocator.v1 import session_pb2 as pb

# What happens to connections.

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


# Two where there should be one: masters that want one sidecar, sidecars that want one place.

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


# Certificates that are replaced, expire, or fit only by halves.

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
