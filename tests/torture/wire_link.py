"""A link that speaks the real protocol to a sidecar's state machine in this process."""

from collections.abc import Callable

from allocator import __version__
from allocator.core import Allocator, Decisions, Settings
from allocator.v1 import session_pb2 as pb
from allocator.wire import PROTOCOL_VERSION, Sidecar
from laboratory.links.base import Batch, LinkDownError, Opening
from laboratory.links.stream import Caller, request, snapshot, whole


class WireLink:
    """A session with a `Sidecar` in this process: all of the protocol, without sockets."""

    def __init__(self, new_allocator: Callable[[Settings], Allocator], settings: Settings) -> None:
        welcome = pb.Welcome(
            protocol_version=PROTOCOL_VERSION,
            sidecar_version=__version__,
            sidecar_id="here",
            kinds_max=new_allocator(settings).state.session_limits.kinds,
        )
        self.sidecar = Sidecar(new_allocator, settings, welcome)
        self._caller = Caller()
        self._stream = 0
        self._broken = False

    @property
    def allocator(self) -> Allocator:
        """The session's allocator."""
        return self.sidecar.allocator

    def open(self, opening: Opening) -> None:
        """Send the hello and the snapshot."""
        self.close()
        self._stream = self.sidecar.open()
        self._session = self._caller.session(opening)
        self._broken = False
        self._say(self._session.hello())
        for each in snapshot(self._session, opening):
            self._say(each)

    def send(self, batch: Batch) -> None:
        self._exchange(batch, cycle=False)

    def settle(self) -> None:
        """Do nothing: messages are applied at once."""

    def exchange(self, batch: Batch) -> Decisions:
        """Send the batch, and return the answer, which is ready at once."""
        return self._exchange(batch, cycle=True)

    def _exchange(self, batch: Batch, *, cycle: bool) -> Decisions:
        if self._broken:
            raise LinkDownError("the stream was cut")
        return whole(self._say(request(self._session, batch, cycle=cycle)))

    def cut(self) -> None:
        """Make the next exchange fail like a broken connection."""
        self._broken = True

    def close(self) -> None:
        """End the stream."""
        if self._stream:
            self.sidecar.close(self._stream)
            self._stream = 0

    def _say(self, request: pb.SessionRequest) -> list[pb.Welcome | Decisions]:
        answers = self.sidecar.receive(self._stream, request.SerializeToString())
        return [self._session.receive(answer.SerializeToString()) for _, answer in answers]
