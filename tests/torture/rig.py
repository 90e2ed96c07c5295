"""What faults act on: the process, its log, its network paths, its files."""

import json
import os
import random
import resource
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

from allocator.v1 import admin_pb2 as pb
from allocator.v1.admin_pb2_grpc import AdminServiceStub
from laboratory.links.end_with_parent import ending_with_us
from laboratory.links.sidecar_process import ProcessFigures, channel, figures_of
from laboratory.links.stream import StreamLink
from tests.server.processes import free_port
from tests.torture import wall_clock
from tests.torture.link import PatientLink, RunningClock
from tests.torture.report import TortureFindings
from tests.torture.wall_clock import WallClock
from tests.torture.wires import Cable, Certificates, Proxy, dial_tcp, dial_unix

# The log of a process: its rate, and the error traces in it.

MINUTE_S = 60.0
KEPT_BYTES = 16 * 2**20
"""Bytes of the log that are kept in the file; later output is only counted."""

LATEST = 200

_TRACES = ("Traceback (most recent call last)", '"exception":', "Fatal Python error")
"""Signs of a defect in a log."""


class LogMeter:
    """Reads the log of one process after the other.

    minute_bytes_max: the maximum within any minute so far.
    said: number of lines by message.
    """

    def __init__(self, path: Path, clock: RunningClock | None = None) -> None:
        self._clock = clock or RunningClock()
        self.lines = 0
        self.bytes = 0
        self.minute_bytes_max = 0
        self.said: Counter[str] = Counter()
        self._path = path
        self._changed = threading.Condition()
        self._minute: deque[tuple[float, int]] = deque()
        self._minute_bytes = 0
        self._latest: deque[str] = deque(maxlen=LATEST)
        self._traces: list[str] = []

    def read(self, pipe: IO[bytes]) -> threading.Thread:
        """Read the log of a process to its end, in a separate thread."""
        thread = threading.Thread(target=self._read, args=(pipe,), name="log", daemon=True)
        thread.start()
        return thread

    def await_said(self, event: str, after: int, within_s: float) -> bool:
        """Wait until a message has been logged more often than `after` times."""
        deadline_s = self._clock.now_s + within_s
        with self._changed:
            while self.said[event] <= after:
                if self._clock.now_s >= deadline_s:
                    return False
                self._changed.wait(0.1)
            return True

    def traces(self) -> list[str]:
        """Return the error traces since the last call."""
        with self._changed:
            found, self._traces = self._traces, []
        return found

    def tail(self, lines: int = 20) -> str:
        with self._changed:
            return "\n".join(list(self._latest)[-lines:])

    def latest(self, event: str) -> dict[str, Any]:
        """Return the latest of the recent lines with this event; empty if there is none."""
        with self._changed:
            for line in reversed(self._latest):
                entry = _entry(line)
                if entry.get("event") == event:
                    return entry
        return {}

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe, self._path.open("ab") as file:
            for data in pipe:
                if self.bytes < KEPT_BYTES:
                    file.write(data)
                    file.flush()
                self._note(data)

    def _note(self, data: bytes) -> None:
        line = data.decode("utf-8", "replace").rstrip("\n")
        now_s = time.monotonic()
        with self._changed:
            self.lines += 1
            self.bytes += len(data)
            self._minute.append((now_s, len(data)))
            self._minute_bytes += len(data)
            while self._minute[0][0] < now_s - MINUTE_S:
                self._minute_bytes -= self._minute.popleft()[1]
            self.minute_bytes_max = max(self.minute_bytes_max, self._minute_bytes)
            self.said[str(_entry(line).get("event", "(no JSON)"))[:80]] += 1
            self._latest.append(line)
            if any(trace in line for trace in _TRACES):
                self._traces.append(line)
            self._changed.notify_all()


def _entry(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


# The process under torture: started, stopped, killed, frozen, limited.

READY_S = 300.0
"""Time limit for becoming ready, on a busy machine; compilation is not included."""

STOP_S = 30.0


class SidecarGoneError(RuntimeError):
    """The process did not start, or exited unasked."""


class TorturedSidecar:
    """`mesos-allocator serve` with one configuration file, started again and again.

    log: file that keeps its log.
    ahead: file that says how far ahead its wall clock is, see `tests.torture.wall_clock`.
    wanted: whether it should be running now.
    """

    def __init__(self, config: Path, log: Path, ahead: Path) -> None:
        self.clock = RunningClock()
        self.meter = LogMeter(log, self.clock)
        self.lives = 0
        self.wanted = False
        self.born_s = 0.0
        self._words = [str(ahead), "serve", "--config", str(config)]
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        # The kernel kills a sidecar when the thread that started it ends, so one thread, which
        # lives as long as this object, starts them all.
        self._maker = ThreadPoolExecutor(1, "maker")

    def start(self) -> None:
        """Start it, and wait until it reports that it is ready.

        Raises SidecarGoneError with the end of its log.
        """
        with self._lock:
            ready = self.meter.said["ready"]
            process, _ = self._spawn(self.meter)
            self._process = process
            deadline_s = self.clock.now_s + READY_S
            while not self.meter.await_said("ready", ready, 0.1):
                if process.poll() is not None or self.clock.now_s > deadline_s:
                    message = f"the sidecar did not get ready; its log ends\n{self.meter.tail()}"
                    raise SidecarGoneError(message)
            self.lives += 1
            self.born_s = self.clock.now_s
            self.wanted = True

    def second(self, log: Path, within_s: float) -> tuple[int | None, str]:
        """Start another process with the same configuration.

        Returns its exit code, None if it did not exit by itself; and its output.
        """
        # Hold the lock, so that the first one cannot exit and let the second take its place.
        with self._lock:
            meter = LogMeter(log, self.clock)
            process, reader = self._spawn(meter)
            code = self._ending(process, within_s)
            if code is None:
                process.kill()
                process.wait()
        reader.join()
        return code, meter.tail()

    def kill(self) -> None:
        """Kill it, as a crash would."""
        with self._lock:
            self.wanted = False
            if self._process is not None:
                self._process.kill()
                self._process.wait()

    def terminate(self, within_s: float = STOP_S) -> int | None:
        """Terminate it; returns the exit code, None if it did not exit in time and was killed."""
        with self._lock:
            self.wanted = False
            if self._process is None:
                return 0
            with suppress(ProcessLookupError):
                self._process.terminate()
            code = self._ending(self._process, within_s)
            if code is None:
                self.kill()
            return code

    def signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def died(self) -> int | None:
        """Return its exit code if it exited unasked; else None."""
        with self._lock:
            if not self.wanted or self._process is None:
                return None
            return self._process.poll()

    def limit(self, which: int, soft: int | None) -> bool:
        """Set a soft limit of the process (None: the hard one); returns False if it has exited."""
        try:
            _, hard = resource.prlimit(self.pid, which)
            resource.prlimit(self.pid, which, (hard if soft is None else soft, hard))
        except (ProcessLookupError, ValueError):
            return False
        return True

    @property
    def pid(self) -> int:
        assert self._process is not None, "the sidecar was not started"
        return self._process.pid

    @property
    def age_s(self) -> float:
        """Time since it became ready."""
        return self.clock.now_s - self.born_s

    def figures(self) -> ProcessFigures:
        """Return the resource usage of the process; zeros if it has exited."""
        try:
            return figures_of(self.pid)
        except (OSError, KeyError):
            return ProcessFigures(0.0, 0.0, 0, 0)

    def _ending(self, process: subprocess.Popen[bytes], within_s: float) -> int | None:
        """Wait for the exit code; None if it does not exit in time."""
        deadline_s = self.clock.now_s + within_s
        while self.clock.now_s < deadline_s:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(0.1)
        return None

    def _spawn(self, meter: LogMeter) -> tuple[subprocess.Popen[bytes], threading.Thread]:
        command = [sys.executable, "-m", wall_clock.__name__, *self._words]
        # Its own process session: Ctrl-C on the terminal reaches us only, and we terminate it.
        process = self._maker.submit(
            subprocess.Popen,
            ending_with_us(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        ).result()
        assert process.stderr is not None
        return process, meter.read(process.stderr)


# The rig: the process and its surroundings.

ANSWER_S = 5.0
JOURNAL_BYTES_MAX = 4 * 2**20

PATIENCE_CYCLES = 5
"""Small, so that starvation shows soon."""


class Rig:
    """A sidecar and its surroundings, all of which end with the stack.

    directory: configuration, sockets, certificates, journal and state.
    out: files that are kept after the run.
    seed: of all random choices here.
    unix: address of the sidecar that no fault disturbs, for checks.
    grpc_port, http_port: on loopback, the same after each restart.
    cable: between the TLS proxy and the sidecar; None without the privilege to create one.
    wall: the sidecar's wall clock.
    plain, secure: proxies that disturb connections to the Unix socket, and to the TLS port.
    trusted: whether the sidecar's current certificate is valid.
    short: whether the process is out of descriptors.
    kept: limits (cpus, thousandths) by role that the sidecar confirmed to operators.
    """

    def __init__(
        self, directory: Path, out: Path, findings: TortureFindings, seed: int, stack: ExitStack
    ) -> None:
        self.directory = directory
        self.out = out
        self.findings = findings
        self.chance = random.Random(seed)
        self.grpc_port, self.http_port = free_port(), free_port()
        self.unix = f"unix:{directory / 'sidecar.sock'}"
        self.certificates = Certificates(directory)
        self.wall = WallClock(directory / "ahead")
        self.cable: Cable | None = None
        dial = dial_tcp(self.grpc_port)
        try:
            self.cable = stack.enter_context(Cable())
            dial = partial(self.cable.dial, self.grpc_port)
        except OSError as error:
            findings.note(f"no network was cut: {error}")
        to_socket = dial_unix(self.unix.removeprefix("unix:"))
        self.plain = stack.enter_context(Proxy(to_socket, seed))
        self.secure = stack.enter_context(Proxy(dial, seed + 1))
        self.trusted, self.short = True, False
        self.kept: dict[str, int] = {}
        self._threads: list[threading.Thread] = []
        config = directory / "config.toml"
        self.sidecar = TorturedSidecar(config, out / "sidecar.log", self.wall.path)
        self.write_config()
        stack.callback(self.sidecar.kill)
        stack.callback(self.await_threads)
        self.sidecar.start()

    def begin(self, work: Callable[[], None]) -> None:
        """Run something in a separate thread."""
        thread = threading.Thread(target=work, name="fault", daemon=True)
        self._threads = [each for each in self._threads if each.is_alive()] + [thread]
        thread.start()

    def await_threads(self) -> None:
        for thread in self._threads:
            thread.join()

    @contextmanager
    def operator(self) -> Iterator[AdminServiceStub]:
        with channel(self.unix) as to_sidecar:
            yield AdminServiceStub(to_sidecar)

    def status(self) -> pb.GetStatusResponse:
        """Ask for the status; RpcError if no answer comes in time."""
        with self.operator() as sidecar:
            return sidecar.GetStatus(pb.GetStatusRequest(), timeout=ANSWER_S)

    def stream(self, started_us: int) -> StreamLink:
        """Open a stream over one of the paths that work now, chosen at random."""
        ways = ["unix", "plain", "plain"] + ["secure", "secure"] * self.trusted
        way = self.chance.choice(ways)
        self.findings.counts[f"calls_{way}"] += 1
        if way == "unix":
            return PatientLink(self.unix, started_us)
        if way == "plain":
            return PatientLink(f"127.0.0.1:{self.plain.port}", started_us)
        return self.secure_stream(started_us)

    def secure_stream(self, started_us: int) -> StreamLink:
        target = f"127.0.0.1:{self.secure.port}"
        return PatientLink(target, started_us, self.certificates.credentials())

    def write_config(self, extra: str = "") -> None:
        """Write the configuration, with extra text at its end."""
        by_tls = ["127.0.0.1"] + ([self.cable.address] if self.cable else [])
        text = _CONFIG.format(
            directory=self.directory,
            http=self.http_port,
            bytes_max=JOURNAL_BYTES_MAX,
            patience=PATIENCE_CYCLES,
            listen="".join(f', "{address}:{self.grpc_port}"' for address in by_tls),
        )
        (self.directory / "config.toml").write_text(text + extra, encoding="utf-8")


_CONFIG = """[listen]
targets = ["unix:{directory}/sidecar.sock"{listen}]
tls_cert = "{directory}/served.pem"
tls_key = "{directory}/served.key"
tls_client_ca = "{directory}/ca.pem"

[http]
port = {http}

[journal]
path = "{directory}/journal"
bytes_max = {bytes_max}

[state]
directory = "{directory}/state"
save_s = 1

[log]
format = "json"

[starvation]
patience_cycles = {patience}

[learn]
patience_cycles = {patience}
"""
