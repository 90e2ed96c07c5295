"""A real sidecar as a separate process."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

import grpc
from grpc_health.v1 import health_pb2

from allocator.client import Bearer
from laboratory.links.end_with_parent import ending_with_us


class ProcessFigures(NamedTuple):
    """Resource usage of a process.

    memory_mib, peak_mib: resident memory now, and its peak.
    """

    memory_mib: float
    peak_mib: float
    threads: int
    descriptors: int


def figures_of(pid: int) -> ProcessFigures:
    """Read the resource usage of a process.

    Raises OSError or KeyError if there is no such process, or it has just ended.
    """
    process = Path(f"/proc/{pid}")
    text = (process / "status").read_text(encoding="ascii")
    rows = dict(line.split(":", 1) for line in text.splitlines())
    now, most = (float(rows[key].split()[0]) / 1024 for key in ("VmRSS", "VmHWM"))
    descriptors = sum(1 for _ in (process / "fd").iterdir())
    return ProcessFigures(now, most, int(rows["Threads"]), descriptors)


# A program that removes a directory when this process ends for any reason: then its standard input
# closes. It retries, because other processes may still write into the directory.
_SWEEPER = """
import os, shutil, sys, time
sys.stdin.read()
for _ in range(100):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    if not os.path.exists(sys.argv[1]):
        break
    time.sleep(0.1)
"""


@contextmanager
def scratch_directory(prefix: str) -> Iterator[Path]:
    """Make a directory that is removed at the end, even if this process is killed."""
    with (
        tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as directory,
        # A new session protects the program from Ctrl-C on the terminal.
        subprocess.Popen(  # noqa: S603 - our own interpreter and program
            [sys.executable, "-I", "-S", "-c", _SWEEPER, directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ),
    ):
        yield Path(directory)


# The sidecar itself.

START_S = 300.0
STOP_S = 10.0
HEALTH_CHECK = "/grpc.health.v1.Health/Check"


class SidecarFailedError(RuntimeError):
    """The sidecar did not start, or exited; the message has the end of its log."""


class SidecarProcess:
    """`mesos-allocator serve` on a Unix socket in a directory.

    directory: for the socket and the log; its path must be short (a socket's has about 100
        characters).
    settings: options such as ``policy.name``.
    start_s: how long it may take to start; the first start compiles.
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
        try:
            self._start()
        except BaseException:  # Ctrl-C, too: `__exit__` is not called if `__enter__` fails
            self.kill()
            raise

    def _start(self) -> None:
        # A new session, so that Ctrl-C on the terminal reaches only us; we then stop the sidecar.
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
        """Kill the process, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """Terminate the process, and wait for it."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.kill()

    def memory_mib(self) -> tuple[float, float]:
        """Resident memory now, and its peak."""
        assert self._process is not None, "the sidecar was not started"
        taken = figures_of(self._process.pid)
        return taken.memory_mib, taken.peak_mib

    def forget_peak(self) -> None:
        """Reset the peak of `memory_mib`, since starting takes more memory than running.

        Linux only; elsewhere, or without permission, the peak since the start remains.
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

    def __exit__(self, *_error: object) -> None:
        self.stop()


def channel(target: str) -> grpc.Channel:
    """Make a channel to a sidecar, without connecting yet."""
    to_sidecar = grpc.insecure_channel(target, [("grpc.enable_http_proxy", 0)])
    return with_operators_token(to_sidecar)


# Tokens of masters and operators on this machine, for sidecars that require them.

SESSION_TOKEN_FILE = "MESOS_ALLOCATOR_SESSION_TOKEN_FILE"  # noqa: S105 - a name
TOKEN_FILE = "MESOS_ALLOCATOR_TOKEN_FILE"  # noqa: S105
"""Environment variables that name the files with a master's and an operator's token."""


def read_token(variable: str) -> str:
    """Read the token from the file that a variable names; empty if it is not set.

    Raises OSError if the file cannot be read.
    """
    path = os.environ.get(variable, "")
    return Path(path).read_text(encoding="utf-8").strip() if path else ""


def with_operators_token(channel: grpc.Channel) -> grpc.Channel:
    """Send the operator's token with each call, if there is one."""
    token = read_token(TOKEN_FILE)
    return grpc.intercept_channel(channel, Bearer(token)) if token else channel
