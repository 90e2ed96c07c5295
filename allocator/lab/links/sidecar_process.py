"""A real sidecar as a process of its own, for as long as somebody needs it."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import grpc
from grpc_health.v1 import health_pb2

from allocator.core import PolicySpec
from allocator.lab.links.base import LinkDownError
from allocator.lab.links.end_with_parent import ending_with_us
from allocator.lab.links.machine import figures_of
from allocator.lab.links.tokens import with_operators_token
from allocator.v1 import admin_pb2, admin_pb2_grpc, settings_pb2

START_S = 300.0
STOP_S = 10.0
ADMIN_S = 30.0
HEALTH_CHECK = "/grpc.health.v1.Health/Check"


class SidecarFailedError(RuntimeError):
    """The sidecar did not come up, or ended; with the end of its log."""


class SidecarProcess:
    """`mesos-allocator serve` on a Unix socket below a directory.

    directory: where its socket and log go; the path must be short (a socket's has about 100
        characters).
    settings: options such as ``policy.name``.
    start_s: how long it may take until it serves; the first start compiles.
    """

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        start_s: float = START_S,
    ) -> None:
        self.target = f"unix:{directory / 'sidecar.sock'}"
        self.log = directory / "sidecar.log"
        self._start_s = start_s
        assignments = {"listen.targets": self.target, "http.port": "0", **(settings or {})}
        command = [sys.executable, "-m", "allocator", "serve"]
        for key, value in assignments.items():
            command += ["--set", f"{key}={value}"]
        self._command = ending_with_us(command)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process, and wait until it serves."""
        try:
            self._start()
        except BaseException:  # also Ctrl-C: nobody leaves a context that was not entered
            self.kill()
            raise

    def _start(self) -> None:
        # In a session of its own: Ctrl-C on the terminal is for us, who then end it in order.
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline_s = time.monotonic() + self._start_s
        while not self._serves():
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                tail = "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-20:])
                message = f"the sidecar does not serve at {self.target}; its log ends\n{tail}"
                raise SidecarFailedError(message)
            time.sleep(0.05)

    def kill(self) -> None:
        """End the process as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """Ask the process to end, and wait for it."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.kill()

    def memory_mib(self) -> tuple[float, float]:
        """Resident memory now, and the most that it was."""
        assert self._process is not None, "the sidecar was not started"
        taken = figures_of(self._process.pid)
        return taken.memory_mib, taken.peak_mib

    def forget_peak(self) -> None:
        """From now on `memory_mib` tells the most since now: a start takes more than what follows.

        Only Linux knows how; where it may not be asked, the most since the start stays.
        """
        assert self._process is not None, "the sidecar was not started"
        with contextlib.suppress(OSError):
            Path(f"/proc/{self._process.pid}/clear_refs").write_text("5", encoding="ascii")

    def _serves(self) -> bool:
        with channel(self.target) as to_sidecar:
            check = to_sidecar.unary_unary(
                HEALTH_CHECK,
                request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
                response_deserializer=health_pb2.HealthCheckResponse.FromString,
            )
            try:
                answer = check(health_pb2.HealthCheckRequest(), timeout=1.0)
            except grpc.RpcError:
                return False
            return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def channel(target: str) -> grpc.Channel:
    """Make a channel to a sidecar; nothing is sent yet."""
    to_sidecar = grpc.insecure_channel(target, [("grpc.enable_http_proxy", 0)])
    return with_operators_token(to_sidecar)


def set_policy(target: str, spec: PolicySpec) -> None:
    """Have a running sidecar decide otherwise from its next cycle on.

    Raises LinkDownError where no sidecar answers.
    """
    policy = settings_pb2.Policy(
        name=spec.name,
        selection=spec.selection,
        mode=spec.mode,
        flat=spec.flat,
        parameters=spec.parameters,
        subtrees=spec.subtrees,
    )
    request = admin_pb2.SetPolicyRequest(policy=policy)
    with channel(target) as to_sidecar:
        try:
            admin_pb2_grpc.AdminServiceStub(to_sidecar).SetPolicy(request, timeout=ADMIN_S)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNAVAILABLE:
                raise
            raise LinkDownError(f"no sidecar answers at {target}") from None
