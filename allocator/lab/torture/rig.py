"""What faults may lay hands on: the process, the ways to it, its files."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from allocator.lab.links.sidecar_process import channel, free_port
from allocator.lab.links.stream import StreamLink
from allocator.lab.links.wall_clock import WallClock
from allocator.lab.torture.link import PatientLink
from allocator.lab.torture.report import Findings
from allocator.lab.torture.sidecar import TorturedSidecar
from allocator.lab.torture.wires import Authority, Cable, Proxy, dial_tcp, dial_unix
from allocator.v1 import admin_pb2 as pb
from allocator.v1.admin_pb2_grpc import AdminServiceStub

ANSWER_S = 5.0
JOURNAL_BYTES_MAX = 4 * 2**20

PATIENCE_CYCLES = 5
"""So that it shows soon whether somebody starves."""


class Rig:
    """A sidecar with everything around it; all of it ends with the stack.

    directory: configuration, sockets, certificates, journal and state.
    out: what is kept when all is over.
    seed: of all chance here.
    unix: the target that is never disturbed, for looking.
    grpc_port, http_port: of loopback, where the sidecar listens in each of its lives.
    cable: between the proxy of TLS and the sidecar; None: there is no right to lay one.
    wall: which the sidecar has.
    plain, secure: relays to the Unix socket, and to the port with TLS.
    trusted: whether the certificate that the sidecar shows is one to believe.
    short: whether the process has no descriptor left.
    kept: limits (of cpus, thousandths) that operators set and were told are kept, by role.
    """

    def __init__(
        self, directory: Path, out: Path, findings: Findings, seed: int, stack: ExitStack
    ) -> None:
        self.directory = directory
        self.out = out
        self.findings = findings
        self.chance = random.Random(seed)  # noqa: S311 - no secret
        self.grpc_port, self.http_port = free_port(), free_port()
        self.unix = f"unix:{directory / 'sidecar.sock'}"
        self.authority = Authority(directory)
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
        """Have something done on a thread of its own."""
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
        """Ask for the status; RpcError where no answer comes in time."""
        with self.operator() as sidecar:
            return sidecar.GetStatus(pb.GetStatusRequest(), timeout=ANSWER_S)

    def stream(self, started_us: int) -> StreamLink:
        """Make a stream by one of the ways, any of those that can be used now."""
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
        return PatientLink(target, started_us, self.authority.credentials())

    def write_config(self, extra: str = "") -> None:
        """Write the configuration, with something more at its end."""
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
