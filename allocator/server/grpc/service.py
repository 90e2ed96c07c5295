"""The gRPC service of sessions, and the health service."""

import threading
from collections.abc import Iterator

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.sessions import SessionStream
from allocator.v1 import session_pb2 as pb
from allocator.wire import WireError


class Health:
    """Lists the services of the process, and reports one status for all of them."""

    def __init__(self, services: tuple[str, ...]) -> None:
        """Start as not serving; `services`: full names; the empty one is that of the process."""
        self._services = ("", *services)
        self._servicer = health.HealthServicer(experimental_non_blocking=False)
        self._set(health_pb2.HealthCheckResponse.NOT_SERVING)

    def add_to(self, server: grpc.Server) -> None:
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)
        names = (*self._services[1:], "grpc.health.v1.Health", reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, server)

    def serving(self) -> None:
        self._set(health_pb2.HealthCheckResponse.SERVING)

    def draining(self) -> None:
        self._servicer.enter_graceful_shutdown()

    def _set(self, status: int) -> None:
        for service in self._services:
            self._servicer.set(service, status)


SERVICE = pb.DESCRIPTOR.services_by_name["SessionService"].full_name

STALLED_S = 10.0
"""Time in which a module with unread answers must read one."""


class SessionServicer:
    """Moves messages between streams and the core.

    Requests are passed as bytes, so that the session can report parse errors by field.
    """

    def __init__(self, loop: CoreLoop, *, queue_max: int, stalled_s: float = STALLED_S) -> None:
        """Serve streams; `queue_max`: maximum number of waiting messages in each direction."""
        self._loop = loop
        self._queue_max = queue_max
        self._stalled_s = stalled_s

    def handler(self) -> grpc.GenericRpcHandler:
        session: grpc.RpcMethodHandler[bytes, pb.SessionResponse] = (
            grpc.stream_stream_rpc_method_handler(
                self.session, response_serializer=pb.SessionResponse.SerializeToString
            )
        )
        return grpc.method_handlers_generic_handler(SERVICE, {"Session": session})

    def session(
        self, requests: Iterator[bytes], context: grpc.ServicerContext
    ) -> Iterator[pb.SessionResponse]:
        port = SessionStream(
            context.peer(),
            queue_max=self._queue_max,
            stalled_s=self._stalled_s,
            cut=context.cancel,
        )
        if not context.add_callback(port.hang_up):
            return
        self._loop.open(port)
        threading.Thread(
            target=self._read, args=(requests, port), name="session-reader", daemon=True
        ).start()
        yield from port.answers()

    def _read(self, requests: Iterator[bytes], port: SessionStream) -> None:
        error: WireError | None = None
        try:
            for data in requests:
                if not port.await_room():
                    text = f"no answer was read for {self._stalled_s:g} s; read them as they come"
                    error = WireError(pb.ERROR_CODE_SLOW_PEER, "", text)
                    break
                self._loop.receive(port, data)
        except grpc.RpcError as ended:
            # The stream is closed, so there is no peer to answer. gRPC keeps this error with the
            # call, and its frames refer to the call.
            ended.__traceback__ = None
        finally:
            self._loop.close(port, error)
