"""Health of the gRPC services, as grpc.health.v1 has it."""

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc


class Health:
    """The same status for the process (the empty name) and for each of its services."""

    def __init__(self, services: tuple[str, ...]) -> None:
        """Begin as not serving.

        `services`: full names.
        """
        self._services = ("", *services)
        self._servicer = health.HealthServicer(experimental_non_blocking=False)
        self._set(health_pb2.HealthCheckResponse.NOT_SERVING)

    def add_to(self, server: grpc.Server) -> None:
        """Serve it."""
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    def serving(self) -> None:
        """Sessions are welcome."""
        self._set(health_pb2.HealthCheckResponse.SERVING)

    def draining(self) -> None:
        """From now on they are not."""
        self._servicer.enter_graceful_shutdown()

    def _set(self, status: int) -> None:
        for service in self._services:
            self._servicer.set(service, status)
