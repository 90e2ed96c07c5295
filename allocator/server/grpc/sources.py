"""Finds the source that an observer on another machine follows: the leading master's sidecar."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import grpc

from allocator.server.config.sections import ObserverSection
from allocator.server.grpc.forwarding import OPTIONS, status_of
from allocator.server.system.disk import read_regular, reason
from allocator.server.system.tls_files import FILE_BYTES_MAX
from allocator.v1 import admin_pb2, admin_pb2_grpc, records_pb2, records_pb2_grpc

STATUS_S = 5.0
"""Maximum time for a source to answer whether it leads."""

LOOK_S = 5.0
"""Interval at which other sources are asked while the followed one has no session."""

_OPTIONS = (
    *OPTIONS,
    # Detect machines that vanished silently.
    ("grpc.keepalive_time_ms", 5_000),
    ("grpc.keepalive_timeout_ms", 5_000),
)


class Sources:
    """The record stream of the leading source.

    `current`: the address that is followed, or was followed last.
    """

    def __init__(self, section: ObserverSection, in_session: Callable[[], bool]) -> None:
        """Start without calling any source.

        `section`: must have a source.
        `in_session`: returns whether a master has a session with the followed source.
        """
        self._section = section
        self._in_session = in_session
        self.current = section.sources[0]

    def messages(self) -> Iterator[records_pb2.FollowResponse]:
        """Yield messages. Raises ConnectionError if the stream ends or its source stops leading."""
        self.current = self._leading() or self.current
        looked_s = time.monotonic()
        with self._open(self.current) as channel:
            stub = records_pb2_grpc.RecordServiceStub(channel)
            stream = stub.Follow(records_pb2.FollowRequest(), metadata=self._metadata())
            try:
                for message in stream:
                    yield message
                    if time.monotonic() - looked_s > LOOK_S and not self._in_session():
                        looked_s = time.monotonic()
                        if (other := self._other_leading()) is not None:
                            raise ConnectionError(f"it leads no more; {other} does")
            except grpc.RpcError as error:
                raise ConnectionError(_why(error)) from None
            finally:
                stream.cancel()

    def _leading(self) -> str | None:
        """Return the source to follow; None: keep the current one."""
        sources = self._section.sources
        if len(sources) == 1:
            return None
        found = self._ask(sources)
        if not found:
            raise ConnectionError(f"none of {', '.join(sources)} answers")
        # If no source leads, follow one that answers.
        leading = [each for each in found if found[each]]
        return next(iter(leading), self.current if self.current in found else next(iter(found)))

    def _other_leading(self) -> str | None:
        found = self._ask([each for each in self._section.sources if each != self.current])
        return next((each for each in found if found[each]), None)

    def _ask(self, sources: Sequence[str]) -> dict[str, bool]:
        """Ask sources in parallel whether a master has a session there; omit silent ones."""
        found = {}
        with ExitStack() as until_asked:
            calls = {}
            for each in sources:
                stub = admin_pb2_grpc.AdminServiceStub(until_asked.enter_context(self._open(each)))
                calls[each] = stub.GetStatus.future(
                    admin_pb2.GetStatusRequest(), timeout=STATUS_S, metadata=self._metadata()
                )
            for each, call in calls.items():
                try:
                    found[each] = call.result().in_session
                except grpc.RpcError:
                    continue
        return found

    @contextmanager
    def _open(self, source: str) -> Iterator[grpc.Channel]:
        """Open a channel; files are read each time, so that they can be replaced."""
        section = self._section
        if not section.tls_ca or source.startswith("unix:"):
            with grpc.insecure_channel(source, _OPTIONS) as channel:
                yield channel
            return
        ca, key, cert = map(_read, (section.tls_ca, section.tls_key, section.tls_cert))
        credentials = grpc.ssl_channel_credentials(ca, key, cert)
        with grpc.secure_channel(source, credentials, _OPTIONS) as channel:
            yield channel

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        token = (_read(self._section.token) or b"").decode("utf-8", "replace").strip()
        return (("authorization", f"Bearer {token}"),) if token else ()


def _read(path: str) -> bytes | None:
    try:
        return read_regular(path, FILE_BYTES_MAX) if path else None
    except OSError as error:
        raise ConnectionError(f"{path} cannot be read: {reason(error)}") from None


def _why(error: grpc.RpcError) -> str:
    code, text = status_of(error)
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return "it serves no followers; name an address of observer.listen there"
    # gRPC's text is a chain of errors, with the cause at the end.
    cause = text.rpartition(": ")[2] if code is grpc.StatusCode.UNAVAILABLE else text
    return cause or code.name
